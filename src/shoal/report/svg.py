"""A chart written as SVG: axes, a legend, and marks at places of the data.

Altair and a JavaScript engine draw the same in a second and 150 MB, which a person would wait for with every report.
Every text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from shoal.report.lettering import PALETTE, WIDTH, letter_widths
from shoal.text.figures import visible

EDGE = 2  # pixels around a chart
TEXT = 12  # pixels of a line's letters
LINE_STEP = 15  # pixels from line to line
LETTER = 7.0  # pixels of a letter in a common font
GAP = 8  # pixels between labels


@dataclass(frozen=True)
class PlotAxis:
    """An axis: where it begins and ends, and the lines of its labels by place."""

    low: float
    high: float
    ticks: tuple[tuple[float, tuple[str, ...]], ...] = ()
    title: str | None = None
    grid: bool = False
    room: float = 0.0  # pixels for the labels of the axis on the left
    rows: bool = False  # whether it leads downwards, and its places are rows, which need no ticks


@dataclass(frozen=True)
class Block:
    """A rectangle between four places."""

    left: float
    right: float
    low: float
    high: float
    colour: str
    opacity: float = 1.0
    outlined: bool = False


@dataclass(frozen=True)
class Symbols:
    """Equal symbols: circle, cross, diamond, triangle or tick."""

    shape: str
    area: float  # in square pixels
    colour: str
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Stretch:
    """A horizontal line from one place to another."""

    left: float
    right: float
    at: float
    colour: str


@dataclass(frozen=True)
class Stairs:
    """A dashed line that leads from place to place in steps."""

    colour: str
    places: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Plot:
    """What a chart shows."""

    across: PlotAxis
    up: PlotAxis
    height: float  # in pixels, without labels and legend
    marks: tuple[Block | Symbols | Stretch | Stairs, ...]
    legend: tuple[tuple[str, str, str], ...] = ()  # name, colour and symbol

    @property
    def width(self) -> float:
        """The pixels between the axis on the left and the edge on the right."""
        return WIDTH - 2 * EDGE - self.up.room - (LINE_STEP + 3 if self.up.title else 0)


def plot_svg(plot: Plot, name: str, title: str) -> Markup:
    """Return the chart for a page, with its title; its description has the id that ends in ``-d``."""
    legend, top = _legend(plot)
    below = (20 if plot.across.ticks else 0) + (LINE_STEP if plot.across.title else 0)
    whole = math.ceil(top + plot.height + below + 2 * EDGE)
    head = Markup(
        '<svg class="chart" role="img" aria-labelledby="{0}-t" aria-describedby="{0}-d" viewBox="0 0 {1} {2}" '
        'width="{1}" height="{2}" xmlns="http://www.w3.org/2000/svg"><title id="{0}-t">{3}</title>'
    ).format(name, WIDTH, whole, visible(title))
    left = WIDTH - EDGE - plot.width
    parts = [
        f'<g font-family="system-ui, sans-serif" font-size="{TEXT}" fill="{PALETTE["ink"]}">',
        *legend,
        f'<g transform="translate({_px(left)},{_px(EDGE + top)})">',
        *_across(plot),
        *_up(plot),
        *(piece for mark in plot.marks for piece in _mark(plot, mark)),
        "</g></g></svg>",
    ]
    return head + Markup("".join(parts))


def _px(x: float) -> str:
    return f"{x:.1f}".removesuffix(".0")


def _x(plot: Plot, value: float) -> float:
    axis = plot.across
    return (value - axis.low) / (axis.high - axis.low) * plot.width


def _y(plot: Plot, value: float) -> float:
    axis = plot.up
    share = (value - axis.low) / (axis.high - axis.low)
    return (share if axis.rows else 1 - share) * plot.height


def _text(x: float, y: float, text: str, anchor: str, attributes: str = "") -> str:
    return f'<text x="{_px(x)}" y="{_px(y)}" text-anchor="{anchor}"{attributes}>{escape(text)}</text>'


def _title(x: float, y: float, text: str, turned: bool) -> str:
    attributes = f' fill="{PALETTE["muted"]}"'
    if turned:
        attributes += f' transform="rotate(-90 {_px(x)} {_px(y)})"'
    return _text(x, y, text, "middle", attributes)


def _lines(pieces: Sequence[str], colour: str) -> Iterator[str]:
    if pieces:
        yield f'<path d="{"".join(pieces)}" fill="none" stroke="{PALETTE[colour]}"/>'


def _across(plot: Plot) -> Iterator[str]:
    axis, h, w = plot.across, plot.height, plot.width
    places = [_x(plot, at) for at, _ in axis.ticks]
    if axis.grid:
        yield from _lines([f"M{_px(x)},0v{_px(h)}" for x in places], "grid")
    if axis.ticks:
        yield from _lines([f"M0,{_px(h)}h{_px(w)}", *(f"M{_px(x)},{_px(h)}v5" for x in places)], "muted")
    for x, text, anchor in _fitting_labels(
        list(zip(places, ("".join(lines) for _, lines in axis.ticks), strict=True)), w
    ):
        yield _text(x, h + 17, text, anchor)
    if axis.title:
        yield _title(w / 2, h + 17 + LINE_STEP, axis.title, turned=False)


def _fitting_labels(labels: Sequence[tuple[float, str]], width: float) -> list[tuple[float, str, str]]:
    """Return every label, or every second, fourth, … one if they would overlap; none leaves the chart at its ends."""
    every = 1
    while True:
        placed: list[tuple[float, str, str]] = []
        end = -math.inf
        for x, text in labels[::every]:
            half = LETTER * letter_widths(text) / 2
            at = min(max(x, half), max(width - half, half))
            if at - half < end + GAP and placed:
                break
            end = at + half
            anchor = "start" if x < half else "end" if x > width - half else "middle"
            placed.append(({"start": 0.0, "middle": x, "end": width}[anchor], text, anchor))
        else:
            return placed
        every *= 2


def _up(plot: Plot) -> Iterator[str]:
    axis, h = plot.up, plot.height
    places = [_y(plot, at) for at, _ in axis.ticks]
    yield from _lines(
        [f"M0,0v{_px(h)}", *(f"M0,{_px(y)}h-5" for y in (() if axis.rows else places))] if axis.ticks else (), "muted"
    )
    for y, (_, lines) in zip(places, axis.ticks, strict=True):
        for i, line in enumerate(lines):
            yield _text(-8, y + 4 + LINE_STEP * (i - (len(lines) - 1) / 2), line, "end")
    if axis.title:
        yield _title(-axis.room - 3, h / 2, axis.title, turned=True)


def _legend(plot: Plot) -> tuple[list[str], float]:
    """Return the names of the colours and symbols, as many in a line as fit, and the pixels that they take."""
    parts, x, y = [], float(EDGE), float(EDGE)
    for name, colour, shape in plot.legend:
        width = 16 + LETTER * letter_widths(name) + 16
        if x > EDGE and x + width - 16 > WIDTH - EDGE:
            x, y = float(EDGE), y + LINE_STEP + 3
        drawn = f"M{_px(x)},{_px(y + 2)}h10v10h-10Z" if shape == "square" else _symbol(shape, 90, x + 5, y + 7)
        parts += [f'<path d="{drawn}" fill="{PALETTE[colour]}"/>', _text(x + 16, y + 11, name, "start")]
        x += width
    return parts, y + LINE_STEP + 5 - EDGE if plot.legend else 0.0


def _mark(plot: Plot, mark: Block | Symbols | Stretch | Stairs) -> Iterator[str]:
    colour = PALETTE[mark.colour]
    match mark:
        case Block():
            xs, ys = (
                sorted(_x(plot, x) for x in (mark.left, mark.right)),
                sorted(_y(plot, y) for y in (mark.low, mark.high)),
            )
            attributes = f' fill-opacity="{mark.opacity:.2f}"' if mark.opacity < 1 else ""
            attributes += f' stroke="{PALETTE["ink"]}" stroke-width="0.6"' if mark.outlined else ""
            size = f'width="{_px(xs[1] - xs[0])}" height="{_px(ys[1] - ys[0])}"'
            yield f'<rect x="{_px(xs[0])}" y="{_px(ys[0])}" {size} fill="{colour}"{attributes}/>'
        case Symbols():
            drawn = "".join(_symbol(mark.shape, mark.area, _x(plot, x), _y(plot, y)) for x, y in mark.places)
            if drawn:
                yield f'<path d="{drawn}" fill="{colour}"/>'
        case Stretch():
            ends = f'x1="{_px(_x(plot, mark.left))}" x2="{_px(_x(plot, mark.right))}"'
            y = _px(_y(plot, mark.at))
            yield f'<line {ends} y1="{y}" y2="{y}" stroke="{colour}" stroke-width="2"/>'
        case Stairs():
            points = [(_px(_x(plot, x)), _px(_y(plot, y))) for x, y in mark.places]
            drawn = "".join(f"M{x},{y}" if i == 0 else f"H{x}V{y}" for i, (x, y) in enumerate(points))
            if drawn:
                yield f'<path d="{drawn}" fill="none" stroke="{colour}" stroke-dasharray="3 3"/>'


def _symbol(shape: str, area: float, x: float, y: float) -> str:
    """Return the path of a symbol around a place."""
    r = math.sqrt(area) / 2
    match shape:
        case "circle":
            r = math.sqrt(area / math.pi)
            d = f"{r:.2f}"
            return f"M{_px(x - r)},{_px(y)}a{d},{d} 0 1 1 {2 * r:.2f},0a{d},{d} 0 1 1 -{2 * r:.2f},0Z"
        case "cross":
            arm, thick = _px(r * 0.6), _px(r * 0.8)
            long = f"h{thick}v{arm}h{arm}v{thick}h-{arm}v{arm}h-{thick}v-{arm}h-{arm}v-{thick}h{arm}"
            return f"M{_px(x - r * 0.4)},{_px(y - r)}{long}Z"
        case "diamond":
            d = _px(r)
            return f"M{_px(x)},{_px(y - r)}l{d},{d}l-{d},{d}l-{d},-{d}Z"
        case "triangle":
            h = r * math.sqrt(3) / 2
            return f"M{_px(x)},{_px(y - h)}l{_px(r)},{_px(2 * h)}h-{_px(2 * r)}Z"
        case _:  # a tick
            return f"M{_px(x - 1.5)},{_px(y - r)}h3v{_px(2 * r)}h-3Z"
