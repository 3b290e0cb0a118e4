"""The charts of a report in Altair, small enough for a narrow page, for notebooks, where they may be changed.

A chart is turned into SVG without a browser. A report draws the same charts by itself (``drawings``): that takes
neither Altair nor a JavaScript engine.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import altair as alt
from markupsafe import Markup

from shoal.alternatives.frontier import Frontier
from shoal.report.drawings import BEATEN, BEST, OTHER_MODELS, frontier_kinds, least_losses
from shoal.report.fates import Fate
from shoal.report.lettering import PALETTE, STATES, WIDTH, cut_label, label_room, rows_height, wrapped_label
from shoal.report.summary import Bin, Distribution, LatticeNode, PartitionPlot, Slice, Tick
from shoal.text.figures import visible


@contextmanager
def unchecked() -> Iterator[None]:
    """Make charts without validating each of their parts, which takes longer than drawing them; tests validate them."""
    with alt.utils.schemapi.debug_mode(False):
        yield


def risk_chart(bins: Sequence[Bin], unit: str = "record") -> Any:
    """Draw the share of records by the probability of a right guess, before and after."""
    rows = [
        {"chance": size_bin.name, "table": table, "share": share}
        for size_bin in bins
        for table, share in (("before", size_bin.before), ("after", size_bin.after))
    ]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar()
        .encode(
            y=_labels("chance", [size_bin.name for size_bin in bins], f"{unit}s in the class"),
            yOffset=alt.YOffset("table:N", sort=["before", "after"]),
            x=alt.X("share:Q", axis=alt.Axis(format="%", tickCount=3), title="share of records"),
            color=_colours("table", before="second", after="accent"),
        ),
        height=26 * len(bins),
    )


def size_chart(bins: Sequence[Bin], unit: str = "record") -> Any:
    """Draw the classes of the release by size."""
    rows = [{"size": size_bin.name, "classes": size_bin.classes} for size_bin in bins]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar(color=PALETTE["accent"])
        .encode(
            y=_labels("size", [size_bin.name for size_bin in bins], f"{unit}s in the class"),
            x=alt.X("classes:Q", axis=alt.Axis(format=",d", tickCount=3, tickMinStep=1), title="classes"),
        ),
        height=22 * len(bins),
    )


def loss_chart(columns: Sequence[Fate]) -> Any:
    """Draw the loss of each column."""
    rows = [{"place": i, "loss": column.loss} for i, column in enumerate(columns)]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar(color=PALETTE["accent"])
        .encode(
            y=_labels("place", [column.name for column in columns]),
            x=alt.X("loss:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=3), title="loss"),
        ),
        height=rows_height(22, [column.name for column in columns]),
    )


def lattice_chart(nodes: Sequence[LatticeNode]) -> Any:
    """Draw every node at its height, with those that satisfy the policy and the chosen one."""
    rows = [{"x": node.place, "height": node.height, "node": node.state} for node in nodes]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(zero=False, padding=8)),
        y=_levels("height", "height", [node.height for node in nodes]),
        **_states(nodes),
    )
    size = 60 if len(nodes) <= 100 else 18
    unchosen = base.transform_filter("datum.node != 'chosen'").mark_point(filled=True, size=size, opacity=1)
    chosen = base.transform_filter("datum.node == 'chosen'").mark_point(filled=True, size=160, opacity=1)
    layers = 1 + max(node.height for node in nodes)
    return _plot(alt.layer(unchosen, chosen), height=min(260, 60 + 30 * layers))


def slice_chart(lattice_slice: Slice) -> Any:
    """Draw the levels of two columns, the others as chosen, with those that satisfy the policy."""
    rows = [{"x": node.place, "y": node.height, "node": node.state} for node in lattice_slice.nodes]
    across, up = (sorted({int(getattr(node, axis)) for node in lattice_slice.nodes}) for axis in ("place", "height"))
    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_point(filled=True, size=160, opacity=1)
        .encode(
            x=_levels("x", cut_label(lattice_slice.across, 24), across, lattice_slice.labels[0]),
            y=_levels("y", cut_label(lattice_slice.up, 24), up, lattice_slice.labels[1]),
            **_states(lattice_slice.nodes),
        )
    )
    return _plot(chart, height=max(140, 30 * len(up)), legend_columns=2)


def _levels(field: str, title: str, numbers: Sequence[int], labels: Sequence[str] = ()) -> Any:
    """Return an axis of levels, with ``labels`` instead of the numbers if given."""
    kind: Any = alt.X if field == "x" else alt.Y
    low, high = min(numbers), max(numbers)
    axis: dict[str, Any] = {"values": list(range(low, high + 1, 1 + (high - low) // 12)), "grid": False}
    if labels:
        texts = json.dumps([cut_label(label, 8 if field == "x" else 12) for label in labels])
        room: dict[str, Any] = {} if field == "x" else {"minExtent": label_room(labels, 12)}
        axis |= {"labelExpr": f"{texts}[indexof({json.dumps(list(numbers))}, datum.value)]", **room}
    else:
        axis["format"] = "d"
    scale = alt.Scale(domain=[low - 0.5, high + 0.5], nice=False)
    return kind(f"{field}:Q", title=title, axis=alt.Axis(**axis), scale=scale)


def _states(nodes: Sequence[LatticeNode]) -> dict[str, Any]:
    states = [state for state in STATES if any(node.state == state for node in nodes)]
    shapes = alt.Scale(domain=states, range=[STATES[state][1] for state in states])
    return {
        "color": _colours("node", **{state: STATES[state][0] for state in states}),
        "shape": alt.Shape("node:N", sort=states, scale=shapes),
    }


def partition_chart(partition: PartitionPlot) -> Any:
    """Draw the classes in two columns; the axes name only values that many people have."""
    rows = [{"x": b.left, "x2": b.right, "y": b.bottom, "y2": b.top, "records": b.records} for b in partition.boxes]
    across, up = partition.ticks
    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_rect(fill=PALETTE["accent"], stroke=PALETTE["ink"], strokeWidth=0.6)
        .encode(
            x=_named("x", partition.across, across),
            y=_named("y", partition.up, up),
            x2="x2:Q",
            y2="y2:Q",
            fillOpacity=alt.FillOpacity("records:Q", scale=alt.Scale(type="sqrt", range=[0.05, 0.4]), legend=None),
        )
    )
    return _plot(chart, height=240)


def _named(letter: str, name: str, ticks: Sequence[Tick]) -> Any:
    kind: Any = alt.X if letter == "x" else alt.Y
    places, max_letters = [tick.at for tick in ticks], 8 if letter == "x" else 14
    texts = json.dumps([cut_label(tick.label, max_letters) for tick in ticks])
    expression = f"{texts}[indexof({json.dumps(places)}, datum.value)]"
    room: dict[str, Any] = (
        {} if letter == "x" else {"minExtent": label_room([tick.label for tick in ticks], max_letters)}
    )
    axis = alt.Axis(values=places, labelExpr=expression, grid=False, labelFlush=False, **room)
    return kind(f"{letter}:Q", title=cut_label(name, 24), axis=axis, scale=alt.Scale(zero=False, nice=False))


def distribution_chart(distribution: Distribution, class_number: int) -> Any:
    """Draw the distribution of the release and of one of its classes."""
    skewed = distribution.classes[class_number]
    rows = [
        {"place": i, "of": series, "share": share}
        for i in range(len(distribution.values))
        for series, share in (("release", distribution.release[i]), ("class", skewed.shares[i]))
    ]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar()
        .encode(
            y=_labels("place", distribution.values),
            yOffset=alt.YOffset("of:N", sort=["release", "class"]),
            x=alt.X("share:Q", axis=alt.Axis(format="%", tickCount=3), title="share of records"),
            color=_colours("of", release="accent", **{"class": "second"}),
        ),
        height=rows_height(26, distribution.values),
    )


def attack_chart(attacks: Sequence[Any]) -> Any:
    """Draw the success rate of each attack with its interval, and the rate without the release."""
    rows = [
        {
            "place": i,
            "share": risk.share,
            "low": risk.interval[0],
            "high": risk.interval[1],
            "control": None if risk.control is None else risk.control.share,
        }
        for i, risk in enumerate(attacks)
    ]
    names = [risk.name for risk in attacks]
    base = alt.Chart(alt.InlineData(rows)).encode(y=_labels("place", names))
    percent = alt.Axis(format="%", tickCount=3)
    interval = base.mark_rule(color=PALETTE["accent"], strokeWidth=2).encode(
        x=alt.X("low:Q", axis=percent, title="successful attempts"), x2="high:Q"
    )
    success = base.mark_point(filled=True, size=50, color=PALETTE["accent"], opacity=1).encode(x="share:Q")
    control = base.mark_tick(color=PALETTE["second"], thickness=3, opacity=1).encode(x="control:Q")
    return _plot(alt.layer(interval, success, control), height=rows_height(24, names))


def frontier_chart(frontier: Frontier, chosen: int | None = None, name: str = "chosen") -> Any:
    """Draw loss against measured risk, one point per solved release; ``name`` is its name in the legend.

    Where there is something to be had for a greater loss, a line leads along the releases that lose least. It compares
    like with like: releases with the ℓ and t of the chosen one, or of most.
    """
    kinds = frontier_kinds(frontier, chosen, name)
    rows = [
        {
            "risk": point.risk,
            "loss": point.loss,
            "release": kind,
            "asked": ", ".join(f"{parameter} = {value:g}" for parameter, value in point.asked.items()),
        }
        for point, kind in zip(frontier, kinds, strict=True)
        if point.feasible
    ]
    looks = {
        BEATEN: ("muted", "circle", 30),
        OTHER_MODELS: ("second", "triangle-up", 60),
        BEST: ("accent", "circle", 70),
        name: ("good", "diamond", 160),
    }
    present_kinds = [kind for kind in looks if any(row["release"] == kind for row in rows)]
    rows.sort(
        key=lambda row: present_kinds.index(str(row["release"]))
    )  # the chosen one last: others may lie at the same place
    encoded = {
        "x": alt.X(
            "risk:Q",
            axis=alt.Axis(format="~%", tickCount=5),
            scale=alt.Scale(zero=True),
            title="risk in the smallest class",
        ),
        "y": alt.Y("loss:Q", title=frontier.objective, scale=alt.Scale(zero=False, padding=10)),
    }
    points = (
        alt.Chart(alt.InlineData(rows))
        .mark_point(filled=True, opacity=1)
        .encode(
            **encoded,
            color=_colours("release", **{kind: looks[kind][0] for kind in present_kinds}),
            shape=alt.Shape(
                "release:N", scale=alt.Scale(domain=present_kinds, range=[looks[kind][1] for kind in present_kinds])
            ),
            size=alt.Size(
                "release:N",
                scale=alt.Scale(domain=present_kinds, range=[looks[kind][2] for kind in present_kinds]),
                legend=None,
            ),
            tooltip=["asked:N", "risk:Q", "loss:Q"],
        )
    )
    best = [{"risk": risk, "loss": loss} for risk, loss in least_losses(frontier, kinds)]
    line = alt.Chart(alt.InlineData(best)).mark_line(
        color=PALETTE["muted"], strokeDash=[3, 3], strokeWidth=1, interpolate="step-after"
    )
    return _plot(alt.layer(line.encode(**encoded), points), height=220, legend_columns=2)


def _labels(field: str, names: Sequence[str], title: str | None = None) -> Any:
    """Return a row per name, in the order given; rows are numbered, so names never become part of an expression.

    Vega evaluates ``labelExpr``; the list is written as JSON, which is a subset of its literals.
    """
    if field == "place":
        texts = json.dumps([wrapped_label(name) for name in names])
        axis = alt.Axis(labelExpr=f"{texts}[datum.value]", minExtent=label_room(names))
        return alt.Y("place:O", sort=list(range(len(names))), axis=axis, title=None)
    return alt.Y(f"{field}:O", sort=list(names), axis=alt.Axis(minExtent=label_room(names)), title=title)


def _colours(field: str, **names: str) -> Any:
    domain = list(names)
    return alt.Color(
        f"{field}:N",
        sort=domain,
        scale=alt.Scale(domain=domain, range=[PALETTE[names[name]] for name in domain]),
        legend=alt.Legend(title=None),
    )


def _plot(chart: Any, *, height: int, legend_columns: int = 0) -> Any:
    ink, muted, grid = PALETTE["ink"], PALETTE["muted"], PALETTE["grid"]
    drawn = chart.copy(deep=False)
    # Set one by one: the methods that do so validate each, and those that configure a part copy the whole chart.
    drawn.width, drawn.height, drawn.padding, drawn.background = WIDTH, height, 2, "transparent"
    drawn.autosize = alt.AutoSizeParams(type="fit-x", contains="padding")
    drawn.config = alt.Config(
        aria=False,
        font="system-ui, sans-serif",
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=ink,
            titleColor=muted,
            gridColor=grid,
            domainColor=muted,
            tickColor=muted,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=150,
            labelSeparation=8,
        ),
        legend=alt.LegendConfig(
            labelColor=ink,
            labelFontSize=12,
            orient="top",
            symbolOpacity=1,
            padding=0,
            offset=6,
            direction="horizontal",
            columns=legend_columns,  # 0: all side by side
            columnPadding=24,  # letters may be wider than those that were measured
        ),
    )
    return drawn


# Vega always labels its groups for screen readers; our title and description replace that.
_TAG, _MARKED = re.compile(r"<[a-z][^>]*>"), re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_ROOT = re.compile(r"<svg[^>]*\bviewBox=\"([0-9. -]+)\"[^>]*>")


def inlined(chart: Any, name: str, title: str) -> Markup:
    """Return the chart as SVG for a page, with its title; its description has the id that ends in ``-d``."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_dict(validate=False))
    root_tag = _ROOT.match(svg)
    if root_tag is None:
        raise ValueError("the chart was not turned into SVG as expected")
    _, _, width, height = root_tag[1].split()
    # The converter escapes what it draws; ours is escaped here.
    head = Markup(
        '<svg class="chart" role="img" aria-labelledby="{0}-t" aria-describedby="{0}-d" viewBox="{1}" width="{2}" '
        'height="{3}" xmlns="http://www.w3.org/2000/svg"><title id="{0}-t">{4}</title>'
    ).format(name, root_tag[1], width, height, visible(title))
    return head + Markup(_TAG.sub(lambda tag: _MARKED.sub("", tag[0]), svg[root_tag.end() :]))


CHARTS: dict[str, Callable[..., Any]] = {
    "risk": risk_chart,
    "sizes": size_chart,
    "columns": loss_chart,
    "lattice": lattice_chart,
    "slice": slice_chart,
    "partition": partition_chart,
    "distribution": distribution_chart,
    "attacks": attack_chart,
    "frontier": frontier_chart,
}
