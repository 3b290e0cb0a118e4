"""Other releases to choose from: nodes of the lattice, points of the frontier, algorithms; and where each is drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.alternatives.compare import Entry
from shoal.alternatives.frontier import Point
from shoal.recoding import FullDomain
from shoal.release import Release
from shoal.report.summary import MOST_WORK
from shoal.search import Problem
from shoal.search.full_domain.lattice import Lattice, Node, below
from shoal.search.full_domain.visits import Visit, Visits

DRAWN = 150  # nodes of a lattice up to which all of it is drawn
LISTED = 300  # nodes that are listed and drawn at most
WIDTH, HEIGHT, EDGE = 460, 260, 46  # of a picture, and the room for its axes
STEP = 30  # between two layers of a lattice


@dataclass(frozen=True)
class Mark:
    """A point in a picture that leads to its row in the table below it."""

    x: float
    y: float
    kind: str  # chosen, holds, fails, unmeasured, ruled-out, unseen, point, algorithm
    row: str  # the id of the row; empty where it leads nowhere
    name: str


@dataclass(frozen=True)
class Scatter:
    """Risk against loss: points and the ticks of both axes."""

    marks: tuple[Mark, ...]
    across: tuple[tuple[float, str], ...]
    up: tuple[tuple[float, str], ...]


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
    found = []
    for j, hierarchy in enumerate(recoding.hierarchies):
        levels = [level for level in (recoding.node[j] - 1, recoding.node[j] + 1) if 0 <= level <= hierarchy.height]
        found += [(*recoding.node[:j], level, *recoding.node[j + 1 :]) for level in levels]
    return found


def node_list(release: Release, visits: Visits) -> list[dict[str, Any]]:
    """The visited nodes, for a table: this release first, then those that hold by loss, then the others by loss."""
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return []
    near = set(_around_node(recoding))
    order = {"chosen": 0, "holds": 1, "unmeasured": 1, "fails": 2}
    found: list[dict[str, Any]] = []
    for visit in visits.of.values():
        kind = _kind_of(visit, recoding, release)
        changed = [
            (h.column, h.number(was), h.number(now))
            for h, was, now in zip(recoding.hierarchies, recoding.node, visit.node, strict=True)
            if was != now
        ]
        found.append(
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
    found.sort(key=lambda each: (order[each["kind"]], not each["near"], each["loss"], each["node"]))
    return found[:LISTED]


def _kind_of(visit: Visit, recoding: FullDomain, release: Release) -> str:
    if visit.node == recoding.node:
        return "chosen"
    # Limits on attacks and forbidden results are judged on the rows, once the node is built: until then nobody knows.
    return (
        "fails" if not visit.feasible else "unmeasured" if release.policy.limits or release.policy.forbid else "holds"
    )


def _id_of(node: Node) -> str:
    return "node-" + "-".join(map(str, node))


def _numbers_of(recoding: FullDomain, node: Node) -> str:
    return ",".join(str(h.number(level)) for h, level in zip(recoding.hierarchies, node, strict=True))


def lattice_of(release: Release, visits: Visits) -> dict[str, Any] | None:
    """Every node at its height, with what the search knows of it; None where the lattice is too large to draw."""
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return None
    lattice = Lattice(tuple(h.height for h in recoding.hierarchies))
    if lattice.n_nodes > DRAWN:
        return None
    barren = [visit.node for visit in visits.of.values() if visit.barren]
    marks = []
    height = STEP * (lattice.height + 1)
    for layer in range(lattice.height + 1):
        nodes = list(lattice.layer(layer))
        for i, node in enumerate(nodes):
            visit = visits.of.get(node)
            if visit is not None:
                kind = _kind_of(visit, recoding, release)
            else:
                kind = "ruled-out" if any(below(node, high) for high in barren) else "unseen"
            x = WIDTH * (i + 0.5) / len(nodes)
            row = "" if visit is None else _id_of(node)
            marks.append(Mark(x, height - STEP * (layer + 0.5), kind, row, _named_levels(recoding, node)))
    kinds = [kind for kind in KINDS_OF_NODES if any(mark.kind == kind for mark in marks)]
    return {"marks": marks, "height": height, "kinds": kinds, "n": lattice.n_nodes}


KINDS_OF_NODES = ("chosen", "holds", "unmeasured", "fails", "ruled-out", "unseen")


def _named_levels(recoding: FullDomain, node: Node) -> str:
    return ", ".join(f"{h.column} {h.number(level)}" for h, level in zip(recoding.hierarchies, node, strict=True))


def asked_in_words(asked: Mapping[str, float]) -> str:
    """Parameters of a point as a person writes them."""
    return ", ".join(f"{name} = {value:g}" for name, value in asked.items())


def marks_of(
    nodes: Sequence[Mapping[str, Any]], points: Iterable[Point], entries: Iterable[Entry], objective: str
) -> list[tuple[float, float, str, str, str]]:
    """Risk, loss, kind, row and name of everything that can be chosen; this release last, on top of the others."""
    found = [
        (node["risk"], node["loss"], node["kind"], node["id"], ", ".join(f"{c} {b}" for c, _, b in node["changed"]))
        for node in reversed(nodes)
    ]
    found = [
        *((p.risk, p.loss, "point", f"point-{i}", asked_in_words(p.asked)) for i, p in enumerate(points) if p.feasible),
        *found[:-1],
        *(
            (e.risk, e.loss[objective], "algorithm", f"algorithm-{e.algorithm}", e.algorithm)
            for e in entries
            if e.outcome == "found"
        ),
        *found[-1:],
    ]
    return [each for each in found if each[0] and each[1] is not None]


def scatter_of(given: Iterable[tuple[float, float, str, str, str]]) -> Scatter | None:
    """Places in the picture: risk on a logarithmic scale, because a risk of 1 in 2 and 1 in 200 both matter."""
    rows = list(given)
    if not rows:
        return None
    low, high = (edge(row[1] for row in rows) for edge in (min, max))
    if high - low < 1e-9:
        low, high = low - 0.05 * max(1.0, abs(low)), high + 0.05 * max(1.0, abs(high))
    most = max(2.0, max(1 / row[0] for row in rows))

    def across(one_in: float) -> float:
        return EDGE + (WIDTH - EDGE - 14) * math.log(max(1.0, one_in)) / math.log(most)

    def up(loss: float) -> float:
        return HEIGHT - EDGE - (HEIGHT - EDGE - 16) * (loss - low) / (high - low)

    marks = tuple(
        Mark(round(across(1 / risk), 1), round(up(loss), 1), kind, row, name) for risk, loss, kind, row, name in rows
    )
    ticks: list[tuple[float, str]] = []
    for n in (1, 2, 5, 10, 20, 50, 100, 1_000, 10_000, 100_000, 1_000_000):
        if n <= most and (not ticks or across(n) - ticks[-1][0] >= 42):
            ticks.append((round(across(n), 1), f"{n:,}"))
    steps = [low + (high - low) * i / 4 for i in range(5)]
    return Scatter(marks, tuple(ticks), tuple((round(up(loss), 1), f"{loss:.3g}") for loss in steps))
