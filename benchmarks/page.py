"""Writes docs/performance.md and its plots from what optimal.py and scale.py measured: no figure is typed by hand.

python benchmarks/optimal.py --json optimal.json
python benchmarks/scale.py --largest 10000000 --json scale.json
python benchmarks/page.py optimal.json scale.json
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from charts import lines, save_panels

from shoal.report.drawings import row_axis
from shoal.report.svg import Plot, PlotAxis, Stretch, Symbols

DOCS = Path(__file__).resolve().parents[1] / "docs"

TEXT = """\
# Performance

Measured on {date} on a machine with {cores} cores ({cpu}); {versions}. [Benchmarks](../benchmarks/README.md) write this
page. Seconds of CPU, of the search alone unless said otherwise.

## The optimum of Adult

{records:,} records, nine quasi-identifiers, a lattice of {nodes:,} nodes, ARX's loss. `optimal` finds and proves the
optimum.

![CPU seconds of every search, to the left those of shoal, to the right those of ARX](optimal.svg)

{faster}

{searches}

One plain `GROUP BY` of the nine columns takes {group_by:.4f} s.

The first run on a machine compiles: {compilation:.1f} s once. A whole process, from start to exit:

{processes}

With ℓ-diversity, t-closeness or β-likeness as well: [performance with a sensitive column](performance_sensitive.md).

## With rows, columns and distinct tuples

Generated census-like tables, k = 5, at most 2 % suppressed. Nearly every record of these is unique: the search works on
distinct tuples, and where many records share one it costs as much as a smaller table.

![CPU seconds by rows on the left, by columns on the right](scale.svg)

{rows}

{columns}

## A lattice of more than a billion nodes

Fifteen columns of four levels, {large_rows:,} records, {large_distinct:,} distinct tuples, with a time budget. Where
the bound does not close in time, the gap is reported: the loss of the best solution, and what no solution is below.

{large}

## On both cores

Some searches that take longer than a second, with one thread and with two. The answers are the same, to the byte.

{cores_of_searches}
"""


def between(page: Path, program: str, text: str) -> None:
    """Put what a program measured into a page, between the marks that name it."""
    begin, end = f"<!-- benchmarks/{program} writes from here -->", "<!-- to here -->"
    before, opening, rest = page.read_text().partition(begin)
    _, closing, after = rest.partition(end)
    if not opening or not closing:
        raise SystemExit(f"{page.name} has no place for benchmarks/{program}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")


def folded(summary: str, text: str) -> str:
    """A block of a page that opens on a click."""
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


def written_part(page: Path, program: str) -> str:
    """The part of a page that another program writes, with its marks; only these if it has not been written yet."""
    begin, end = f"<!-- benchmarks/{program} writes from here -->", "<!-- to here -->"
    _, opening, rest = page.read_text(encoding="utf-8").partition(begin)
    return f"{begin}{rest.partition(end)[0]}{end}" if opening else f"{begin}\n{end}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown, figures to the right."""
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def scaled(rows: list[dict[str, Any]]) -> str:
    """What a search took."""
    head = ("rows", "columns", "distinct", "nodes", "seen", "wall s", "CPU s", "loss", "")
    return table(
        head,
        [
            (
                f"{row['rows']:,}",
                str(row["columns"]),
                f"{row['distinct']:,}",
                f"{row['nodes']:,}",
                f"{row['evaluated']:,}",
                f"{row['wall']:.2f}",
                f"{row['cpu']:.2f}",
                f"{row['loss']:.4f}",
                "proved" if row["proved"] else f"none below {row['bound']:.4f}",
            )
            for row in rows
        ],
    )


def page(optimal: dict[str, Any], scale: dict[str, Any]) -> str:
    """The whole page."""
    searches = optimal["searches"]
    has_arx = "arx" in searches[0]
    head = ["k", "suppress at most", "CPU s", "nodes seen", "loss", "suppressed"]
    cells = [
        [
            str(row["k"]),
            f"{row['max_suppression']:.0%}",
            f"{row['cpu']:.3f}",
            f"{row['evaluated']:,}",
            f"{row['loss']:.7f}",
            f"{row['suppressed']:,}",
            *([f"{row['arx']:.3f}", f"{row['arx'] / row['cpu']:.1f}"] if has_arx else []),
        ]
        for row in searches
    ]
    faster = ""
    if has_arx:
        head += ["ARX, CPU s", "× faster"]
        ratios = [row["arx"] / row["cpu"] for row in searches]
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        faster = (
            f"ARX was compiled from its sources and ran in the same run, warm, its best of as many: shoal is "
            f"{min(ratios):.1f} to {max(ratios):.1f} times as fast, {mean:.1f} times in the geometric mean."
        )
    processes = [
        (name, f"{use['wall']:.2f}", f"{use['cpu']:.2f}", f"{use['peak']:.0f}")
        for name, use in optimal["processes"].items()
    ]
    machine = optimal["machine"]
    return TEXT.format(
        date=optimal["date"],
        cores=machine["cores"],
        cpu=machine["cpu"],
        versions=", ".join(f"{name} {number}" for name, number in machine["versions"].items()),
        records=optimal["records"],
        nodes=searches[0]["nodes"],
        searches=folded("Every search", table(head, cells)),
        group_by=optimal["group_by"]["cpu"],
        faster=faster,
        compilation=optimal["first_use"]["compilation"]["wall"],
        processes=table(("", "wall s", "CPU s", "peak MB"), processes),
        rows=scaled(scale["rows"]),
        columns=folded("With more and more columns, 100,000 records", scaled(scale["columns"])),
        large_rows=scale["large"]["rows"],
        large_distinct=scale["large"]["distinct"],
        large=scaled([scale["large"]]),
        cores_of_searches=written_part(DOCS / "performance.md", "cores.py"),
    )


def compared(searches: list[dict[str, Any]]) -> Plot:
    """One line per search: how long each of the two takes."""
    seconds = {key: [math.log10(row[key]) for row in searches if key in row] for key in ("cpu", "arx")}
    up = row_axis([_named(row) for row in searches])
    low, high = (
        round_to(extreme(x for values in seconds.values() for x in values))
        for extreme, round_to in ((min, math.floor), (max, math.ceil))
    )
    across = PlotAxis(low, high, tuple((x, (f"{10.0**x:g}",)) for x in range(low, high + 1)), "CPU seconds", grid=True)
    between_tools = tuple(
        Stretch(a, b, i + 0.5, "grid") for i, (a, b) in enumerate(zip(seconds["cpu"], seconds["arx"], strict=False))
    )
    looks = (("shoal", "accent", "cpu"), ("ARX", "second", "arx"))
    points = tuple(
        Symbols("circle", 80, colour, tuple((x, i + 0.5) for i, x in enumerate(seconds[key])))
        for _, colour, key in looks
    )
    legend = tuple((name, colour, "circle") for name, colour, key in looks if seconds[key])
    return Plot(across, up, 24 * len(searches), (*between_tools, *points), legend, outer_width=600)


def _named(row: dict[str, Any]) -> str:
    return f"k = {row['k']}, {row['max_suppression']:.0%}"


def grown(scale: dict[str, Any]) -> list[Plot]:
    """How a search grows with rows, and with columns."""
    return [
        lines(
            {"shoal": [(row[part], row["cpu"]) for row in scale[part]]},
            (part, "CPU seconds"),
            logs=(part == "rows", True),
            size=(340, 220),
        )
        for part in ("rows", "columns")
    ]


if __name__ == "__main__":
    optimal, scale = (json.loads(Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:3])
    (DOCS / "performance.md").write_text(page(optimal, scale), encoding="utf-8")
    save_panels([[compared(optimal["searches"])]], DOCS / "optimal.svg", "CPU seconds of every search")
    save_panels([grown(scale)], DOCS / "scale.svg", "CPU seconds by rows and by columns")
