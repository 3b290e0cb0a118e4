"""Plots: Altair charts that can be modified, and files of them that need no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import altair as alt
import numpy as np

from shoal.alternatives.compare import Comparison
from shoal.alternatives.recommend import Exploration
from shoal.engines.files.whole_files import write_bytes
from shoal.errors import OutputError
from shoal.propose.preview import Preview
from shoal.report.charts import frontier_chart
from shoal.report.essentials import worth
from shoal.report.lettering import PALETTE
from shoal.text.showing import shows

KINDS = (".html", ".svg", ".png")


def comparison_chart(comparison: Comparison) -> Any:
    """Draw loss against time, one point per algorithm."""
    rows = [
        {
            "algorithm": entry.algorithm,
            "kind": entry.kind,
            "seconds": entry.seconds,
            "loss": entry.loss[comparison.objective],
            "classes": entry.classes,
            "suppressed": entry.suppressed,
            "proved": worth(entry, comparison.objective) or "not proved",
        }
        for entry in comparison
        if entry.outcome == "found"
    ]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("seconds:Q", scale=alt.Scale(type="log"), title="search time in seconds"),
        y=alt.Y("loss:Q", title=comparison.objective),
        tooltip=[f"{name}:{kind}" for name, kind in _TOOLTIP],
    )
    points = base.mark_point(size=80, filled=True).encode(
        color=alt.Color("kind:N", title="recoding"), shape=alt.Shape("proved:N", title="smallest loss")
    )
    names = base.mark_text(align="left", dx=7, dy=-4).encode(text="algorithm:N")
    return alt.layer(points, names).properties(width=560, height=360)


_TOOLTIP = (
    ("algorithm", "N"),
    ("kind", "N"),
    ("loss", "Q"),
    ("seconds", "Q"),
    ("classes", "Q"),
    ("suppressed", "Q"),
    ("proved", "N"),
)


@shows("Exploration", "chart")
def exploration_chart(exploration: Exploration) -> Any:
    """Draw loss against risk; mark the recommended release if there is one recommendation, else the policy's own."""
    name = "recommended" if len(exploration.recommendations) == 1 else "this policy"
    chart = frontier_chart(exploration.frontier, exploration.chosen, name)
    return chart.properties(width=560, height=360, background="white", padding=12)


@shows("Preview", "chart")
def hierarchy_chart(preview: Preview) -> Any:
    """Draw every level of a hierarchy as a row of boxes, as wide as the record counts of the labels."""
    table = preview.hierarchy.table
    order = np.lexsort(table)  # by the top's code, then the next level's, …: leaves of one label stand together
    ends = np.concatenate([[0], np.cumsum(preview.counts[order])])
    rows: list[dict[str, Any]] = []
    for level in preview.levels:
        codes = table[level.number][order]
        starts = np.flatnonzero(np.diff(codes, prepend=-1))
        for first, last in zip(starts, [*starts[1:], len(codes)], strict=True):
            begin, end = int(ends[first]), int(ends[last])
            if end > begin:
                label = level.labels[codes[first]]
                rows.append(
                    {
                        "level": level.number,
                        "label": label,
                        "begin": begin,
                        "end": end,
                        "records": end - begin,
                        "middle": (begin + end) / 2,
                        "shown": label if end - begin > preview.records / 24 else "",
                    }
                )
    base = alt.Chart(alt.InlineData(rows)).encode(
        y=alt.Y("level:O", sort="descending", title="level"), tooltip=["level:O", "label:N", "records:Q"]
    )
    boxes = base.mark_rect(stroke="white", color=PALETTE["accent"], opacity=0.55).encode(
        x=alt.X("begin:Q", title="records", axis=alt.Axis(format=",d", tickCount=5)), x2="end:Q"
    )
    names = base.mark_text(color=PALETTE["ink"], limit=110).encode(x="middle:Q", text="shown:N")
    height = 34 * len(preview.levels)
    return alt.layer(boxes, names).properties(width=680, height=height, background="white", padding=12)


def check_plot(path: Path) -> None:
    """Reject a file type that plots cannot be saved as, before the long work starts."""
    if path.suffix.lower() not in KINDS:
        raise OutputError(f"{path}: a plot can be saved as {', '.join(KINDS)}", "use one of these file extensions")


def save_chart(chart: Any, path: Path, *, force: bool = False) -> None:
    """Write a chart; an HTML page includes its own scripts and opens without a network."""
    check_plot(path)
    import vl_convert

    spec = chart.to_json()
    match path.suffix.lower():
        case ".html":
            content = vl_convert.vegalite_to_html(spec, bundle=True).encode()
        case ".svg":
            content = vl_convert.vegalite_to_svg(spec).encode()
        case _:
            content = vl_convert.vegalite_to_png(spec, scale=2)
    write_bytes(path, content, force=force)
