"""Other releases to choose from: nodes of the lattice, points of the frontier, algorithms; and where each is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from shoal.alternatives.compare import Entry
from shoal.alternatives.frontier import Point
from shoal.recoding import FullDomain
from shoal.release import Release
from shoal.report.drawings import loss_axis, parameters_in_words
from shoal.report.summary import MOST_WORK
from shoal.report.svg import Plot, PlotAxis, Symbols, plot_svg
from shoal.search import Problem
from shoal.search.full_domain.lattice import Lattice, Node, below
from shoal.search.full_domain.visits import Visit, Visits
from shoal.web.jobs import LivePoint
from shoal.web.pages import texts

DRAWN = 150  # nodes of a lattice up to which all of it is drawn
LISTED = 300  # nodes that are listed and drawn at most
WIDTH = 400  # pixels of a chart
STEP = 30  # between two layers of a lattice
# Colour, symbol and area of each kind; those on top of the others come last.
LOOKS = {
    "unseen": ("muted", "ring", 50),
    "ruled-out": ("muted", "cross", 60),
    "fails": ("second", "cross", 80),
    "point": ("muted", "triangle", 70),
    "holds": ("accent", "circle", 70),
    "unmeasured": ("accent", "ring", 70),
    "algorithm": ("second", "square", 80),
    "chosen": ("good", "diamond", 160),
}


def neighbours_of(release: Release, visits: Visits) -> None:
    """Evaluate the nodes that differ by one level in one column, where the search has not."""
    recoding, original = release.recoding, release.counted.table
    if not isinstance(recoding, FullDomain) or 2 * len(recoding.node) * original.n_classes > MOST_WORK:
        return
    policy, population = release.policy, release.reference.population
    problem = Problem.of(original, policy, population=population, visits=visits)
    for node in (recoding.node, *_around_node(recoding)):
        if node not in visits.of:
            problem.evaluate(node)


def _around_node(recoding: FullDomain) -> list[Node]:
    around = []
    for j, hierarchy in enumerate(recoding.hierarchies):
        levels = [level for level in (recoding.node[j] - 1, recoding.node[j] + 1) if 0 <= level <= hierarchy.height]
        around += [(*recoding.node[:j], level, *recoding.node[j + 1 :]) for level in levels]
    return around


def node_list(release: Release, visits: Visits) -> list[dict[str, Any]]:
    """The visited nodes, for a table: this release first, then those that hold by loss, then the others by loss."""
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return []
    near = set(_around_node(recoding))
    order = {"chosen": 0, "holds": 1, "unmeasured": 1, "fails": 2}
    listed: list[dict[str, Any]] = []
    for visit in visits.of.values():
        kind = _kind_of(visit, recoding, release)
        changed = [
            (h.column, h.number(chosen_level), h.number(level))
            for h, chosen_level, level in zip(recoding.hierarchies, recoding.node, visit.node, strict=True)
            if chosen_level != level
        ]
        listed.append(
            {
                "id": _id_of(visit.node),
                "node": visit.node,
                "kind": kind,
                "near": visit.node in near,
                "changed": changed,
                "levels": _numbers_of(recoding, visit.node),
                "suppressed": visit.suppressed,
                "risk": visit.risk,
                "loss": visit.loss,
            }
        )
    listed.sort(key=lambda node: (order[node["kind"]], not node["near"], node["loss"], node["node"]))
    return listed[:LISTED]


def _kind_of(visit: Visit, recoding: FullDomain, release: Release) -> str:
    if visit.node == recoding.node:
        return "chosen"
    # Limits on attacks and forbidden results are judged on the rows, once the node is built.
    return (
        "fails" if not visit.feasible else "unmeasured" if release.policy.limits or release.policy.forbid else "holds"
    )


def _id_of(node: Node) -> str:
    return "node-" + "-".join(map(str, node))


def _numbers_of(recoding: FullDomain, node: Node) -> str:
    return ",".join(str(h.number(level)) for h, level in zip(recoding.hierarchies, node, strict=True))


def lattice_of(release: Release, visits: Visits) -> Plot | None:
    """Every node at its height, with what the search knows of it; None where the lattice is too large to draw."""
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return None
    lattice = Lattice(tuple(h.height for h in recoding.hierarchies))
    if lattice.n_nodes > DRAWN:
        return None
    barren = [visit.node for visit in visits.of.values() if visit.barren]
    marks = []
    for height in range(lattice.height + 1):
        layer = list(lattice.layer(height))
        for i, node in enumerate(layer):
            visit = visits.of.get(node)
            if visit is not None:
                kind = _kind_of(visit, recoding, release)
            else:
                kind = "ruled-out" if any(below(node, high) for high in barren) else "unseen"
            row = "" if visit is None else _id_of(node)
            marks.append(((i + 0.5) / len(layer), float(height), kind, row, _named_levels(recoding, node)))
    axes = PlotAxis(0.0, 1.0), PlotAxis(-0.5, lattice.height + 0.5)
    return _chosen_from(marks, *axes, STEP * (lattice.height + 1))


def _chosen_from(marks: Sequence[LivePoint], across: PlotAxis, up: PlotAxis, height: float) -> Plot:
    """Draw marks that lead to their rows in the table below."""
    symbols, legend, names_of_kinds = [], [], vars(texts().drawn)
    for kind, (colour, shape, area) in LOOKS.items():
        if of_kind := [mark for mark in marks if mark[2] == kind]:
            links = tuple(row and f"#{row}" for *_, row, _ in of_kind)
            names = tuple(name for *_, name in of_kind)
            places = tuple((x, y) for x, y, *_ in of_kind)
            symbols.append(Symbols(shape, area, colour, places, names if any(names) else (), links))
            legend.append((names_of_kinds[kind.replace("-", "_")], colour, shape))
    return Plot(across, up, height, tuple(symbols), tuple(legend), WIDTH)


def _named_levels(recoding: FullDomain, node: Node) -> str:
    return ", ".join(f"{h.column} {h.number(level)}" for h, level in zip(recoding.hierarchies, node, strict=True))


def drawn_beside_table(plot: Plot | None, name: str, title: str) -> Markup:
    """The SVG of a chart whose points are rows of a table on the same page; empty where there is none."""
    return Markup() if plot is None else plot_svg(plot, name, title, beside_table=True)


def marks_of(
    nodes: Sequence[Mapping[str, Any]], points: Iterable[Point], entries: Iterable[Entry], objective: str
) -> list[LivePoint]:
    """Risk, loss, kind, row and name of everything that can be chosen."""
    marks: list[LivePoint] = []
    for node in nodes:
        changed = ", ".join(f"{column} {now}" for column, _, now in node["changed"])
        marks.append((node["risk"], node["loss"], node["kind"], node["id"], changed or texts().drawn.chosen))
    for i, point in enumerate(points):
        if point.risk and point.loss is not None:
            marks.append((point.risk, point.loss, "point", f"point-{i}", parameters_in_words(point.asked)))
    for entry in entries:
        if entry.outcome == "found" and entry.risk:
            name = entry.algorithm
            marks.append((entry.risk, entry.loss[objective], "algorithm", f"algorithm-{name}", name))
    return [mark for mark in marks if mark[0] and mark[1] is not None]


def scatter_of(rows: Sequence[LivePoint], objective: str) -> Plot | None:
    """Loss by risk on a logarithmic scale, because a risk of 1 in 2 and 1 in 200 both matter."""
    if not rows:
        return None
    largest = max(2.0, max(1 / risk for risk, *_ in rows))
    up = loss_axis([loss for _, loss, *_ in rows], objective)
    steps = (n for exponent in range(8) for n in (10**exponent, 2 * 10**exponent, 5 * 10**exponent) if n <= largest)
    ticks = tuple((math.log(n), (f"{n:,}",)) for n in steps)
    across = PlotAxis(0.0, 1.04 * math.log(largest), ticks, texts().drawn.across, grid=True)
    marks = [(math.log(max(1.0, 1 / risk)), loss, kind, row, name) for risk, loss, kind, row, name in rows]
    return _chosen_from(marks, across, up, 200)
