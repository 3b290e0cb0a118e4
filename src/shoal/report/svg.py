"""A chart written as SVG: axes, a legend, and marks at places of the data.

Reports, the page in the browser, notebooks and files show this one drawing. Every text is escaped here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup, escape

from shoal.engines.formats.atomic_files import write_bytes
from shoal.errors import OutputError
from shoal.report.lettering import PALETTE, WIDTH, letter_widths
from shoal.text.figures import visible

EDGE = 2  # pixels around a chart
TEXT = 12  # pixels of a line's letters
LINE_STEP = 15  # pixels from line to line
LETTER = 7.0  # pixels of a letter in a common font
GAP = 8  # pixels between labels
TARGET = 8  # pixels around a mark in which a click reaches it


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
    name: str = ""  # shown beside the pointer


@dataclass(frozen=True)
class Symbols:
    """Equal symbols: circle, ring, cross, diamond, triangle, square or tick."""

    shape: str
    area: float  # in square pixels
    colour: str
    places: tuple[tuple[float, float], ...]
    names: tuple[str, ...] = ()  # of each place, shown beside the pointer and read aloud
    links: tuple[str, ...] = ()  # where each leads; empty for a place that leads nowhere


@dataclass(frozen=True)
class Stretch:
    """A horizontal line from one place to another."""

    left: float
    right: float
    at: float
    colour: str


@dataclass(frozen=True)
class Curve:
    """A line from place to place; a dashed one leads in steps."""

    colour: str
    places: tuple[tuple[float, float], ...]
    dashed: bool = False


@dataclass(frozen=True)
class TextMark:
    """A text that begins so many pixels to the right of a place, or has its middle there."""

    at: tuple[float, float]
    text: str
    right: float | None = None


Mark = Block | Symbols | Stretch | Curve | TextMark


@dataclass(frozen=True)
class Plot:
    """What a chart shows."""

    across: PlotAxis
    up: PlotAxis
    height: float  # in pixels, without labels and legend
    marks: tuple[Mark, ...]
    legend: tuple[tuple[str, str, str], ...] = ()  # name, colour and symbol
    outer_width: float = WIDTH  # in pixels, of the whole chart
    margin: float = 0.0  # pixels to the right of the plot, for labels

    @property
    def width(self) -> float:
        """The pixels between the axis on the left and the margin on the right."""
        return self.outer_width - 2 * EDGE - self.margin - self.up.room - (LINE_STEP + 3 if self.up.title else 0)

    @property
    def leads(self) -> bool:
        """Whether marks are links."""
        return any(isinstance(mark, Symbols) and any(mark.links) for mark in self.marks)


@dataclass(frozen=True)
class Chart:
    """A drawn chart with its title and its description; notebooks display it, and ``save`` writes it."""

    plot: Plot
    name: str  # its id on a page
    title: str
    description: str

    def drawn(self) -> Markup:
        """Return the SVG for a page, whose caption is the description and has the id that ends in ``-d``."""
        return plot_svg(self.plot, self.name, self.title)

    def svg(self) -> str:
        """Return the SVG as a file of its own, on white."""
        return str(plot_svg(self.plot, self.name, self.title, self.description))

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write the chart as an SVG file; ``force`` replaces an existing one."""
        check_chart_file(Path(path))
        write_bytes(Path(path), self.svg().encode(), force=force)

    def figure(self, code: str = "") -> Markup:
        """Return the chart on a white card with its description, below ``code``, which is how it was asked for."""
        style = (
            "display: inline-block; vertical-align: top; margin: 0 1em 1em 0; padding: .6em; "
            f"width: {self.plot.outer_width / 12:g}em; max-width: 100%; box-sizing: border-box; background: #ffffff; "
            f"color: {PALETTE['ink']}"
        )
        above = Markup("<p><code>{}</code></p>").format(code) if code else ""
        return Markup('<figure style="{}">{}{}<figcaption id="{}-d">{}</figcaption></figure>').format(
            style, above, self.drawn(), self.name, visible(self.description)
        )

    def _repr_html_(self) -> str:
        return str(self.figure())


def check_chart_file(path: Path) -> None:
    """Reject a file type that charts cannot be saved as, before the long work starts."""
    if path.suffix.lower() != ".svg":
        raise OutputError(f"{path}: a chart can only be saved as .svg", "use this file extension")


def plot_svg(plot: Plot, name: str, title: str, description: str = "", *, beside_table: bool = False) -> Markup:
    """Return the chart with its title.

    With ``description`` it is a file of its own, on white; without, the page has the description, with the id that ends
    in ``-d``. A chart with links is a group of them, any other one picture. With ``beside_table`` the page has the same
    points in a table, so that screen readers and the tabulator key pass the chart by.
    """
    legend, top = _legend(plot)
    below = (20 if plot.across.ticks else 0) + (LINE_STEP if plot.across.title else 0)
    outer = math.ceil(top + plot.height + below + 2 * EDGE)
    role = f'role="{"group" if plot.leads else "img"}" aria-labelledby="{{0}}-t" aria-describedby="{{0}}-d"'
    role = 'aria-hidden="true" focusable="false"' if beside_table else role
    head = Markup(
        f'<svg class="chart" {role} viewBox="0 0 {{1}} {{2}}" width="{{1}}" height="{{2}}" '
        'xmlns="http://www.w3.org/2000/svg"><title id="{0}-t">{3}</title>'
    ).format(name, _px(plot.outer_width), outer, visible(title))
    if description:
        white = Markup('<desc id="{}-d">{}</desc><rect width="100%" height="100%" fill="#ffffff"/>')
        head += white.format(name, visible(description))
    left = plot.outer_width - EDGE - plot.margin - plot.width
    parts = [
        f'<g font-family="system-ui, sans-serif" font-size="{TEXT}" font-variant="tabular-nums" '
        f'fill="{PALETTE["ink"]}">',
        *legend,
        f'<g transform="translate({_px(left)},{_px(EDGE + top)})">',
        *_across(plot),
        *_up(plot),
        *(piece for mark in plot.marks for piece in _mark(plot, mark, -1 if beside_table else 0)),
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
    for x, text, anchor in _fitting(list(zip(places, ("".join(lines) for _, lines in axis.ticks), strict=True)), w):
        yield _text(x, h + 17, text, anchor)
    if axis.title:
        yield _title(w / 2, h + 17 + LINE_STEP, axis.title, turned=False)


def _fitting(labels: Sequence[tuple[float, str]], width: float) -> list[tuple[float, str, str]]:
    """Return every label, or every second, fourth, … one if they would overlap; none leaves the chart at its ends."""
    every = 1
    while True:
        labels_that_fit: list[tuple[float, str, str]] = []
        end = -math.inf
        for x, text in labels[::every]:
            half = LETTER * letter_widths(text) / 2
            at = min(max(x, half), max(width - half, half))
            if at - half < end + GAP and labels_that_fit:
                break
            end = at + half
            anchor = "start" if x < half else "end" if x > width - half else "middle"
            labels_that_fit.append(({"start": 0.0, "middle": x, "end": width}[anchor], text, anchor))
        else:
            return labels_that_fit
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
        if x > EDGE and x + width - 16 > plot.outer_width - EDGE:
            x, y = float(EDGE), y + LINE_STEP + 3
        drawn = _symbol(shape, 100 if shape == "square" else 90, x + 5, y + 7)
        parts += [f'<path d="{drawn}" fill="{PALETTE[colour]}"/>', _text(x + 16, y + 11, name, "start")]
        x += width
    if not plot.legend:
        return [], 0.0 if plot.up.rows else TEXT / 2  # half a label stands above the axis
    return parts, y + LINE_STEP + 5 - EDGE


def _mark(plot: Plot, mark: Mark, tabindex: int) -> Iterator[str]:
    match mark:
        case Block():
            xs, ys = (
                sorted(_x(plot, x) for x in (mark.left, mark.right)),
                sorted(_y(plot, y) for y in (mark.low, mark.high)),
            )
            attributes = f' fill-opacity="{mark.opacity:.2f}"' if mark.opacity < 1 else ""
            attributes += f' stroke="{PALETTE["ink"]}" stroke-width="0.6"' if mark.outlined else ""
            size = f'width="{_px(xs[1] - xs[0])}" height="{_px(ys[1] - ys[0])}"'
            end = f">{_tip(mark.name)}</rect>" if mark.name else "/>"
            yield f'<rect x="{_px(xs[0])}" y="{_px(ys[0])}" {size} fill="{PALETTE[mark.colour]}"{attributes}{end}'
        case Symbols():
            yield from _symbols(plot, mark, tabindex)
        case Stretch():
            ends = f'x1="{_px(_x(plot, mark.left))}" x2="{_px(_x(plot, mark.right))}"'
            y = _px(_y(plot, mark.at))
            yield f'<line {ends} y1="{y}" y2="{y}" stroke="{PALETTE[mark.colour]}" stroke-width="2"/>'
        case Curve():
            points = [(_px(_x(plot, x)), _px(_y(plot, y))) for x, y in mark.places]
            step = "H{}V{}" if mark.dashed else "L{},{}"
            drawn = "".join(f"M{x},{y}" if i == 0 else step.format(x, y) for i, (x, y) in enumerate(points))
            looks = 'stroke-dasharray="3 3"' if mark.dashed else 'stroke-width="1.5"'
            if drawn:
                yield f'<path d="{drawn}" fill="none" stroke="{PALETTE[mark.colour]}" {looks}/>'
        case TextMark():
            left, base = _x(plot, mark.at[0]) + (mark.right or 0.0), _y(plot, mark.at[1]) + 4
            yield _text(left, base, mark.text, "middle" if mark.right is None else "start")


def _symbols(plot: Plot, mark: Symbols, tabindex: int) -> Iterator[str]:
    """Draw symbols as one path, or each by itself where they have names or links."""
    fill = f'fill="{PALETTE[mark.colour]}"'
    places = [(_x(plot, x), _y(plot, y)) for x, y in mark.places]
    if not mark.names:
        drawn = "".join(_symbol(mark.shape, mark.area, x, y) for x, y in places)
        if drawn:
            yield f'<path d="{drawn}" {fill}/>'
        return
    for (x, y), name, link in zip(places, mark.names, mark.links or [""] * len(places), strict=True):
        drawn = f'{_tip(name)}<path d="{_symbol(mark.shape, mark.area, x, y)}" {fill}/>'
        target = f'<circle cx="{_px(x)}" cy="{_px(y)}" r="{TARGET}" fill="none" pointer-events="all"/>'
        skipped = f' tabindex="{tabindex}"' if tabindex else ""
        label = f'aria-label="{escape(visible(name))}"'
        yield f'<a href="{escape(link)}" {label}{skipped}>{drawn}{target}</a>' if link else f"<g>{drawn}</g>"


def _tip(name: str) -> str:
    return f"<title>{escape(visible(name))}</title>"


def _symbol(shape: str, area: float, x: float, y: float) -> str:
    """Return the path of a symbol around a place."""
    r = math.sqrt(area) / 2
    match shape:
        case "circle":
            r = math.sqrt(area / math.pi)
            d = f"{r:.2f}"
            return f"M{_px(x - r)},{_px(y)}a{d},{d} 0 1 1 {2 * r:.2f},0a{d},{d} 0 1 1 -{2 * r:.2f},0Z"
        case "ring":  # the inner circle leads the other way round, which leaves it empty
            r = math.sqrt(area / math.pi)
            i = max(0.5, r - 1.5)
            inner = f"M{_px(x - i)},{_px(y)}a{i:.2f},{i:.2f} 0 1 0 {2 * i:.2f},0a{i:.2f},{i:.2f} 0 1 0 -{2 * i:.2f},0Z"
            return _symbol("circle", area, x, y) + inner
        case "square":
            return f"M{_px(x - r)},{_px(y - r)}h{_px(2 * r)}v{_px(2 * r)}h-{_px(2 * r)}Z"
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
