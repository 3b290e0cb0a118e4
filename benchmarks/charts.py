"""Charts of what the benchmarks measured, drawn as reports draw theirs."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shoal.report.lettering import label_room
from shoal.report.svg import Curve, Plot, PlotAxis, Symbols, plot_svg

COLOURS = ("accent", "second", "good", "bad", "muted")


def axis(values: Sequence[float], title: str, *, log: bool) -> PlotAxis:
    """An axis over values; a logarithmic one has a tick per power of ten."""
    low, high = min(values), max(values)
    if not log:
        chosen = sorted(set(values)) if len(set(values)) <= 12 else [low + (high - low) * i / 4 for i in range(5)]
        return PlotAxis(low, high, tuple((x, (f"{x:.3g}",)) for x in chosen), title)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    powers = range(first, max(last, first + 1) + 1)
    return PlotAxis(first, powers[-1], tuple((x, (f"{10.0**x:,.10g}",)) for x in powers), title, grid=True)


def lines(
    series: Mapping[str, Sequence[tuple[float, float]]],
    titles: tuple[str, str],
    *,
    logs: tuple[bool, bool],
    size: tuple[float, float] = (300, 180),
    dashed: Sequence[str] = (),
) -> Plot:
    """A line with its points per name."""
    across, up = (
        axis([point[i] for points in series.values() for point in points], titles[i], log=logs[i]) for i in (0, 1)
    )
    up = replace(up, grid=False, room=label_room([text for _, (text,) in up.ticks]))
    marks: list[Curve | Symbols] = []
    for (name, points), colour in zip(series.items(), COLOURS * 2, strict=False):
        places = tuple(tuple(math.log10(x) if log else x for x, log in zip(p, logs, strict=True)) for p in points)
        marks.append(Curve(colour, places, dashed=name in dashed))
        marks.append(Symbols("circle", 24, colour, places))
    legend = [(name, colour, "square") for name, colour in zip(series, COLOURS * 2, strict=False)]
    return Plot(across, up, size[1], tuple(marks), tuple(legend) if len(series) > 1 else (), size[0])


def save_panels(rows: Sequence[Sequence[Plot]], path: Path, title: str) -> None:
    """Write plots in rows beside one another as one SVG file."""
    parts, y, width = [], 0, 0
    for i, row in enumerate(rows):
        x, tallest = 0, 0
        for j, plot in enumerate(row):
            svg = str(plot_svg(plot, f"panel-{i}-{j}", title))
            wide, high = map(int, re.findall(r'(?:width|height)="(\d+)"', svg.partition(">")[0]))
            parts.append(f'<g transform="translate({x},{y})">{svg}</g>')
            x, tallest = x + wide + 16, max(tallest, high)
        y, width = y + tallest + 12, max(width, x - 16)
    white = '<rect width="100%" height="100%" fill="#ffffff"/>'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}" width="{width}" height="{y}">'
    path.write_text(f"{head}<title>{title}</title>{white}{''.join(parts)}</svg>\n", encoding="utf-8")
