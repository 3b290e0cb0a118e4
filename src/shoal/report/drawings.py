"""What the charts of a report show: axes, marks and legend of each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from shoal.alternatives.dominance import beaten
from shoal.report.fates import Fate
from shoal.report.lettering import STATES, WIDTH, cut_label, label_room, rows_height, wrapped_label
from shoal.report.summary import Bin, Distribution, LatticeNode, PartitionPlot, Slice, Tick
from shoal.report.svg import EDGE, GAP, LETTER, Block, Curve, Mark, Plot, PlotAxis, Stretch, Symbols
from shoal.text.figures import format_number, format_share

if TYPE_CHECKING:
    from shoal.alternatives.frontier import Frontier, Point

MOST_STEPS = 4  # of an axis of numbers
BEST, BEATEN, OTHER_LT = "smallest loss at this risk", "larger loss", "other ℓ or t"


def round_steps(low: float, high: float, max_steps: int, min_step: float = 0.0) -> list[float]:
    """Return round numbers from ``low`` to ``high``, at most so many steps of at least ``least`` apart."""
    size = 10.0 ** math.floor(math.log10((high - low) / max_steps))
    step = next(size * times for times in (1, 2, 5, 10, 20) if (high - low) <= max_steps * size * times * (1 + 1e-9))
    step = max(step, min_step)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [i * step for i in range(first, last + 1)]


def _written(numbers: Sequence[float], percent: bool) -> list[str]:
    """Return numbers with as many decimals as distinguish them."""
    times = 100 if percent else 1
    step = min((b - a for a, b in pairwise(numbers)), default=1.0) * times
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [f"{x * times:,.{decimals}f}{'%' * percent}" for x in numbers]


def number_axis(
    low: float, high: float, title: str, pixels: float, *, percent: bool = False, whole: bool = False, ends: bool = True
) -> PlotAxis:
    """Return an axis of numbers; with ``ends`` it ends at a round one. As many are written as there is room for."""
    for max_steps in range(MOST_STEPS, 0, -1):
        steps = round_steps(low, high, max_steps, 1.0 if whole else 0.0)
        if ends and steps[-1] < high * (1 - 1e-9):
            steps.append(steps[-1] + (steps[-1] - steps[-2] if len(steps) > 1 else high))
        texts = _written(steps, percent)
        if sum(LETTER * len(text) + GAP for text in texts) <= pixels:
            break
    high = max(high, steps[-1]) if ends else high
    return PlotAxis(low, high, tuple((x, (text,)) for x, text in zip(steps, texts, strict=True)), title, grid=True)


def row_axis(names: Sequence[str], title: str | None = None) -> PlotAxis:
    """Return an axis with a row per name."""
    ticks = tuple((i + 0.5, tuple(wrapped_label(name))) for i, name in enumerate(names))
    return PlotAxis(0, len(names), ticks, title, room=label_room(names), rows=True)


def _bars(
    up: PlotAxis, series: Sequence[tuple[str, str, Sequence[float]]], title: str, height: float, **axis: Any
) -> Plot:
    """Draw bars side by side: the name, the colour and the lengths of each series; one alone needs no legend."""
    pixels = WIDTH - 2 * EDGE - up.room
    longest = axis.pop("most", max((x for _, _, lengths in series for x in lengths), default=0.0) or 1.0)
    thick = 0.8 / len(series)
    marks = tuple(
        Block(0.0, x, i + 0.1 + thick * n, i + 0.1 + thick * (n + 1), colour)
        for n, (_, colour, lengths) in enumerate(series)
        for i, x in enumerate(lengths)
    )
    legend = tuple((name, colour, "square") for name, colour, _ in series) if len(series) > 1 else ()
    return Plot(number_axis(0.0, longest, title, pixels, **axis), up, height, marks, legend)


def risk_plot(bins: Sequence[Bin], unit: str = "record") -> Plot:
    """Draw the share of records by the probability of a right guess, before and after."""
    up = row_axis([size.name for size in bins], f"{unit}s in the class")
    series = [
        ("before", "second", [size.before for size in bins]),
        ("after", "accent", [size.after for size in bins]),
    ]
    return _bars(up, series, "share of records", 26 * len(bins), percent=True)


def size_plot(bins: Sequence[Bin], unit: str = "record") -> Plot:
    """Draw the classes of the release by size."""
    up = row_axis([size.name for size in bins], f"{unit}s in the class")
    return _bars(up, [("", "accent", [size.classes for size in bins])], "classes", 22 * len(bins), whole=True)


def loss_plot(columns: Sequence[Fate]) -> Plot:
    """Draw the loss of each column."""
    names = [column.name for column in columns]
    series = [("", "accent", [column.loss for column in columns])]
    return _bars(row_axis(names), series, "loss", rows_height(22, names), percent=True, most=1.0)


def distribution_plot(distribution: Distribution, number: int) -> Plot:
    """Draw the distribution of the release and of one of its classes."""
    series = [("release", "accent", distribution.release), ("class", "second", distribution.classes[number].shares)]
    return _bars(
        row_axis(distribution.values), series, "share of records", rows_height(26, distribution.values), percent=True
    )


def attack_plot(attacks: Sequence[Any]) -> Plot:
    """Draw the success rate of each attack with its interval, and the rate without the release."""
    names = [risk.name for risk in attacks]
    up = row_axis(names)
    marks: list[Stretch | Symbols] = []
    for i, risk in enumerate(attacks):
        low, high = risk.interval
        marks.append(Stretch(low, high, i + 0.5, "accent"))
        marks.append(Symbols("circle", 50, "accent", ((risk.share, i + 0.5),)))
        if risk.control is not None:
            marks.append(Symbols("tick", 256, "second", ((risk.control.share, i + 0.5),)))
    shares = [x for risk in attacks for x in (*risk.interval, risk.share, risk.control.share if risk.control else 0.0)]
    pixels = WIDTH - 2 * EDGE - up.room
    across = number_axis(0.0, max(shares, default=0.0) or 1.0, "successful attempts", pixels, percent=True)
    return Plot(across, up, rows_height(24, names), tuple(marks))


def _levels(title: str, numbers: Sequence[int], labels: Sequence[str], max_letters: int) -> PlotAxis:
    """Return an axis of levels, with ``labels`` instead of the numbers if given."""
    low, high = min(numbers), max(numbers)
    named = dict(zip(numbers, labels, strict=True)) if labels else {}
    ticks = tuple(
        (x, cut_label(named.get(x, str(x)), max_letters)) for x in range(low, high + 1, 1 + (high - low) // 12)
    )
    room = label_room([text for _, text in ticks], max_letters)
    return PlotAxis(low - 0.5, high + 0.5, tuple((x, (text,)) for x, text in ticks), title, room=room)


def _states(nodes: Sequence[LatticeNode], area: Callable[[str], int]) -> dict[str, Any]:
    states = [state for state in STATES if any(node.state == state for node in nodes)]
    marks = [
        Symbols(
            STATES[state_name][1],
            area(state_name),
            STATES[state_name][0],
            tuple((n.position, n.height) for n in nodes if n.state == state_name),
        )
        for state_name in states
    ]
    return {"marks": tuple(marks), "legend": tuple((state_name, *STATES[state_name]) for state_name in states)}


def lattice_plot(nodes: Sequence[LatticeNode]) -> Plot:
    """Draw every node at its height, with those that satisfy the policy and the chosen one."""
    widest = max(abs(node.position) for node in nodes) + 0.5
    up = _levels("height", [node.height for node in nodes], (), 12)
    area = 60 if len(nodes) <= 100 else 18
    drawn = _states(nodes, lambda state: 160 if state == "chosen" else area)
    layers = 1 + max(node.height for node in nodes)
    margin = widest * 16 / WIDTH
    return Plot(PlotAxis(-widest - margin, widest + margin), up, min(260, 60 + 30 * layers), **drawn)


def slice_plot(chosen_slice: Slice) -> Plot:
    """Draw the levels of two columns, the others as chosen, with those that satisfy the policy."""
    across, up = (sorted({int(getattr(node, axis)) for node in chosen_slice.nodes}) for axis in ("position", "height"))
    return Plot(
        _levels(cut_label(chosen_slice.across, 24), across, chosen_slice.labels[0], 8),
        _levels(cut_label(chosen_slice.up, 24), up, chosen_slice.labels[1], 12),
        max(140, 30 * len(up)),
        **_states(chosen_slice.nodes, lambda _: 160),
    )


def partition_plot(partition: PartitionPlot) -> Plot:
    """Draw the classes in two columns; the axes name only values that many people have."""
    across, up = partition.ticks
    largest = max(box.records for box in partition.boxes)
    return Plot(
        _named(partition.across, across, 8, [x for box in partition.boxes for x in (box.left, box.right)]),
        _named(partition.up, up, 14, [y for box in partition.boxes for y in (box.bottom, box.top)]),
        240,
        tuple(
            Block(
                b.left, b.right, b.bottom, b.top, "accent", 0.05 + 0.35 * math.sqrt(b.records / largest), outlined=True
            )
            for b in partition.boxes
        ),
    )


def _named(name: str, ticks: Sequence[Tick], max_letters: int, ends: Sequence[float]) -> PlotAxis:
    low, high = min(ends), max(ends)
    labels = tuple((tick.at, (cut_label(tick.label, max_letters),)) for tick in ticks if low <= tick.at <= high)
    return PlotAxis(
        low, high, labels, cut_label(name, 24), room=label_room([tick.label for tick in ticks], max_letters)
    )


def frontier_plot(frontier: Frontier, chosen: int | None = None, name: str = "chosen", link: str = "") -> Plot:
    """Draw loss against measured risk, one point per solved release; ``name`` is that of the chosen one in the legend.

    With ``link`` each point is a link: the text with the number of the point after it.

    Where there is something to be had for a greater loss, a line leads along the releases that lose least. It compares
    like with like: releases with the ℓ and t of the chosen one, or of most.
    """
    kinds = frontier_kinds(frontier, chosen, name)
    looks = {
        BEATEN: ("muted", "circle", 30),
        OTHER_LT: ("second", "triangle", 60),
        BEST: ("accent", "circle", 70),
        name: ("good", "diamond", 160),
    }
    solved = [
        (kind, (p.risk, p.loss), i, _point_name(p, frontier.objective))
        for i, (p, kind) in enumerate(zip(frontier, kinds, strict=True))
        if p.feasible and p.risk is not None and p.loss is not None
    ]
    marks: list[Mark] = [Curve("muted", tuple(least_losses(frontier, kinds)), dashed=True)]
    for kind, (colour, shape, area) in looks.items():  # the chosen one last: others may lie at the same place
        of_kind = [entry for entry in solved if entry[0] == kind]
        names = tuple(text for *_, text in of_kind)
        links = tuple(f"{link}{i}" for _, _, i, _ in of_kind) if link else ()
        marks.append(Symbols(shape, area, colour, tuple(position for _, position, *_ in of_kind), names, links))
    up = loss_axis([loss for _, (_, loss), *_ in solved], frontier.objective)
    highest_risk = max(risk for _, (risk, _), *_ in solved) or 1.0
    across = number_axis(0.0, highest_risk, "risk in the smallest class", WIDTH - up.room - 24, percent=True)
    legend = tuple((kind, *looks[kind][:2]) for kind in looks if any(own_kind == kind for own_kind, *_ in solved))
    return Plot(across, up, 220, tuple(marks), legend)


def loss_axis(losses: Sequence[float], title: str) -> PlotAxis:
    """Return an axis on the left that shows losses and their differences."""
    low, high = min(losses), max(losses)
    margin = max((high - low) / 20, abs(high) * 1e-4) or 0.5
    axis = number_axis(low - margin, high + margin, title, math.inf, ends=False)
    room = 12 + LETTER * max((len(line) for _, lines in axis.ticks for line in lines), default=0)
    return replace(axis, grid=False, room=room)


def _point_name(point: Point, objective: str) -> str:
    risk, loss = format_share(point.risk or 0.0, 1), format_number(point.loss or 0.0)
    return f"{parameters_in_words(point.asked)}: risk {risk}, {objective} {loss}"


def parameters_in_words(parameters: Mapping[str, float]) -> str:
    """Return the parameters of a point of a frontier as a person writes them."""
    return ", ".join(f"{name} = {value:g}" for name, value in parameters.items())


def frontier_kinds(frontier: Frontier, chosen: int | None, name: str) -> list[str]:
    """Classify each point by whether it has the smallest loss at its risk."""
    promises = [(point.asked.get("l"), point.asked.get("t")) for point in frontier]
    usual = max(promises, key=promises.count) if chosen is None else promises[chosen]
    return [
        name if i == chosen else OTHER_LT if promise != usual else BEATEN if worse else BEST
        for i, (promise, worse) in enumerate(zip(promises, beaten(frontier), strict=True))
    ]


def least_losses(frontier: Frontier, kinds: Sequence[str]) -> list[tuple[float, float]]:
    """Return the points of the line, by risk: no other with their ℓ and t dominates them."""
    points = sorted(
        {
            (point.risk, point.loss)
            for point, kind in zip(frontier, kinds, strict=True)
            if kind != OTHER_LT and point.risk is not None and point.loss is not None
        }
    )
    return [(risk, loss) for i, (risk, loss) in enumerate(points) if all(loss < other for _, other in points[:i])]
