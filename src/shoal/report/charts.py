"""The pictures of a report as Altair charts, small enough for a narrow page, in colours that a page can exchange.

A chart is turned into SVG without a browser. Its colours are those of ``PALETTE``, each the value of an attribute, so
that a style sheet finds them by that value and puts others in their place where the page is dark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import altair as alt
from markupsafe import Markup

from shoal.report.summary import Bin, Box, ColumnLoss, Distribution, LatticeNode
from shoal.sweep import Frontier

PALETTE = {
    "ink": "#1b2430",
    "muted": "#52606e",
    "grid": "#d5dbe2",
    "accent": "#0b5cad",
    "second": "#b4530a",
    "good": "#0a6b3b",
    "bad": "#a61b1c",
}
WIDTH = 300  # of a whole chart: it fits into the narrowest page at its natural size


def risk_chart(bins: Sequence[Bin]) -> Any:
    """Share of the records by the chance that a guess is right, before and after."""
    rows = [
        {"chance": each.name, "table": table, "share": share}
        for each in bins
        for table, share in (("before", each.before), ("after", each.after))
    ]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar()
        .encode(
            y=_labels("chance", [each.name for each in bins]),
            yOffset=alt.YOffset("table:N", sort=["before", "after"]),
            x=alt.X("share:Q", axis=alt.Axis(format="%", tickCount=3), title="share of the records"),
            color=_colours("table", before="second", after="accent"),
        ),
        height=26 * len(bins),
    )


def size_chart(bins: Sequence[Bin]) -> Any:
    """Classes of the release by their size."""
    rows = [{"size": each.name, "classes": each.classes} for each in bins]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar(color=PALETTE["accent"])
        .encode(
            y=_labels("size", [each.name for each in bins]),
            x=alt.X("classes:Q", axis=alt.Axis(format="~s", tickCount=3, tickMinStep=1), title="classes"),
        ),
        height=22 * len(bins),
    )


def loss_chart(columns: Sequence[ColumnLoss]) -> Any:
    """What the cells of each column have lost."""
    rows = [{"place": i, "loss": column.loss} for i, column in enumerate(columns)]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar(color=PALETTE["accent"])
        .encode(
            y=_labels("place", [column.name for column in columns]),
            x=alt.X("loss:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%", tickCount=3), title="loss"),
        ),
        height=22 * len(columns),
    )


def lattice_chart(nodes: Sequence[LatticeNode]) -> Any:
    """Every node in the row of its height; which keep the policy, and which was chosen."""
    rows = [{"x": node.place, "height": node.height, "node": node.state} for node in nodes]
    states = {"unsafe": ("second", "cross"), "safe": ("accent", "circle"), "chosen": ("good", "diamond")}
    shown = [state for state in states if any(node.state == state for node in nodes)]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("x:Q", axis=None, scale=alt.Scale(zero=False, padding=8)),
        y=alt.Y(
            "height:Q",
            title="height",
            axis=alt.Axis(format="d", tickMinStep=1),
            scale=alt.Scale(domain=[-0.5, max(node.height for node in nodes) + 0.5], nice=False),
        ),
        color=_colours("node", **{state: states[state][0] for state in shown}),
        shape=alt.Shape(
            "node:N", sort=shown, scale=alt.Scale(domain=shown, range=[states[state][1] for state in shown])
        ),
    )
    size = 60 if len(nodes) <= 100 else 18
    others = base.transform_filter("datum.node != 'chosen'").mark_point(filled=True, size=size)
    chosen = base.transform_filter("datum.node == 'chosen'").mark_point(filled=True, size=160)
    return _plot(alt.layer(others, chosen), height=260)


def partition_chart(boxes: Sequence[Box], across: str, up: str) -> Any:
    """Where the classes lie in two columns; the ends of the axes are not named, as few people may stand there."""
    rows = [{"x": b.left, "x2": b.right, "y": b.bottom, "y2": b.top, "records": b.records} for b in boxes]

    def axis(letter: str, name: str) -> dict[str, Any]:
        bare = alt.Axis(labels=False, ticks=False, grid=False)
        kind: Any = alt.X if letter == "x" else alt.Y
        return {letter: kind(f"{letter}:Q", title=_short(name), axis=bare, scale=alt.Scale(zero=False, nice=False))}

    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_rect(fill=PALETTE["accent"], stroke=PALETTE["ink"], strokeWidth=0.6)
        .encode(
            **axis("x", across),
            **axis("y", up),
            x2="x2:Q",
            y2="y2:Q",
            fillOpacity=alt.FillOpacity("records:Q", scale=alt.Scale(type="sqrt", range=[0.08, 0.6]), legend=None),
        )
    )
    return _plot(chart, height=240)


def distribution_chart(found: Distribution, place: int) -> Any:
    """The release as a whole against one of its classes."""
    skewed = found.classes[place]
    rows = [
        {"place": i, "of": of, "share": share}
        for i in range(len(found.values))
        for of, share in (("release", found.release[i]), ("class", skewed.shares[i]))
    ]
    return _plot(
        alt.Chart(alt.InlineData(rows))
        .mark_bar()
        .encode(
            y=_labels("place", found.values),
            yOffset=alt.YOffset("of:N", sort=["release", "class"]),
            x=alt.X("share:Q", axis=alt.Axis(format="%", tickCount=3), title="share of the records"),
            color=_colours("of", release="accent", **{"class": "second"}),
        ),
        height=26 * len(found.values),
    )


def attack_chart(attacks: Sequence[Any]) -> Any:
    """How often each attack worked, with its interval, and how often it would have without the release."""
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
    names = [risk.name if risk.column is None else f"{risk.name} ({risk.column})" for risk in attacks]
    base = alt.Chart(alt.InlineData(rows)).encode(y=_labels("place", names))
    percent = alt.Axis(format="%", tickCount=3)
    interval = base.mark_rule(color=PALETTE["accent"], strokeWidth=2).encode(
        x=alt.X("low:Q", axis=percent, title="attempts that worked"), x2="high:Q"
    )
    found = base.mark_point(filled=True, size=50, color=PALETTE["accent"], opacity=1).encode(x="share:Q")
    control = base.mark_tick(color=PALETTE["second"], thickness=3).encode(x="control:Q")
    return _plot(alt.layer(interval, found, control), height=24 * len(rows))


def frontier_chart(found: Frontier, chosen: int | None = None) -> Any:
    """Loss against the measured risk, one point per release that was solved for."""
    rows = [
        {"risk": point.risk, "loss": point.loss, "release": "chosen" if i == chosen else "other"}
        for i, point in enumerate(found)
        if point.feasible
    ]
    rows.sort(key=lambda row: row["release"] == "chosen")  # drawn last: others may lie at the same place
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("risk:Q", axis=alt.Axis(format="%", tickCount=5), title="risk in the smallest class"),
        y=alt.Y("loss:Q", title=found.objective, scale=alt.Scale(zero=False, padding=10)),
    )
    states = {"other": "accent"} if chosen is None else {"other": "accent", "chosen": "good"}
    points = base.mark_point(filled=True, size=70, opacity=1).encode(
        color=_colours("release", **states) if len(states) > 1 else alt.value(PALETTE["accent"]),
        shape=alt.Shape("release:N", scale=alt.Scale(domain=["other", "chosen"], range=["circle", "diamond"]))
        if len(states) > 1
        else alt.value("circle"),
    )
    return _plot(points, height=220)


def _labels(field: str, names: Sequence[str]) -> Any:
    """A row per name, in the order given. Names of the data never become part of an expression: rows are numbered.

    Vega evaluates ``labelExpr``; the list is written as JSON, which is a subset of its literals.
    """
    if field == "place":
        texts = json.dumps([_short(name) for name in names])
        axis = alt.Axis(labelExpr=f"{texts}[datum.value]", minExtent=_room(names))
        return alt.Y("place:O", sort=list(range(len(names))), axis=axis, title=None)
    return alt.Y(f"{field}:O", sort=list(names), axis=alt.Axis(minExtent=_room(names)), title=None)


def _room(names: Sequence[str]) -> int:
    """Pixels for the longest label in the widest of the usual fonts, which may not be the one that is measured."""
    return 12 + 8 * max((len(_short(name)) for name in names), default=0)


def _colours(field: str, **names: str) -> Any:
    domain = list(names)
    return alt.Color(
        f"{field}:N",
        sort=domain,
        scale=alt.Scale(domain=domain, range=[PALETTE[names[name]] for name in domain]),
        legend=alt.Legend(title=None),
    )


def _short(text: str) -> str:
    return text if len(text) <= 16 else text[:15] + "…"


def _plot(chart: Any, *, height: int) -> Any:
    ink, muted, grid = PALETTE["ink"], PALETTE["muted"], PALETTE["grid"]
    return (
        chart.properties(
            width=WIDTH,
            height=height,
            padding=2,
            autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
            background="transparent",
        )
        .configure(aria=False, font="system-ui, sans-serif")
        .configure_view(stroke=None)
        .configure_axis(
            labelColor=ink,
            titleColor=muted,
            gridColor=grid,
            domainColor=muted,
            tickColor=muted,
            labelFontSize=12,
            titleFontSize=12,
            titleFontWeight="normal",
            labelLimit=130,
        )
        .configure_legend(
            labelColor=ink, labelFontSize=12, orient="top", symbolOpacity=1, padding=0, offset=6, direction="horizontal"
        )
    )


# Vega marks its groups for screen readers even when told not to; the title and the description say more.
_TAG, _MARKED = re.compile(r"<[a-z][^>]*>"), re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
_ROOT = re.compile(r"<svg[^>]*\bviewBox=\"([0-9. -]+)\"[^>]*>")


def inlined(chart: Any, name: str, title: str, described: str) -> Markup:
    """The chart as SVG for a page, with its title and a description for those who do not see it."""
    import vl_convert

    svg = vl_convert.vegalite_to_svg(chart.to_dict())
    found = _ROOT.match(svg)
    if found is None:
        raise ValueError("the chart was not turned into SVG as expected")
    _, _, width, height = found[1].split()
    # The converter escapes what it draws; ours is escaped here.
    head = Markup(
        '<svg class="chart" role="img" aria-labelledby="{0}-t {0}-d" viewBox="{1}" width="{2}" height="{3}" '
        'xmlns="http://www.w3.org/2000/svg"><title id="{0}-t">{4}</title><desc id="{0}-d">{5}</desc>'
    ).format(name, found[1], width, height, title, described)
    return head + Markup(_TAG.sub(lambda tag: _MARKED.sub("", tag[0]), svg[found.end() :]))


def style_rules() -> str:
    """Style rules that exchange the colours of the charts for the page's own."""
    return "\n".join(
        f'.chart [{attribute}="{colour}"] {{ {attribute}: var(--{name}); }}'
        for name, colour in PALETTE.items()
        for attribute in ("fill", "stroke")
    )
