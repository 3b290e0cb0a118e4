"""Local suppression: one level per column, and additional suppression of single cells (AG_CS).

AG_CS in the taxonomy of Ciriani, De Capitani di Vimercati, Foresti, Samarati, "k-Anonymity", 2007. Statistical offices
call it global recoding followed by local suppression.
Needs  models that are judged class by class.
Finds  a release without suppressed records that costs no more than the best node that needs no suppression.
Costs  three runs of ``optimal``, then one greedy cell suppression for each of at most 60 nodes: the steps up and down
       from the best node so far, as long as one of them improves it.

A node that generalizes less needs more suppressed cells. To weigh the two, the search suppresses the cells at every
visited node and compares the policy's objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from shoal.compiled.threads import done_ahead, go_on_if_wanted
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.recoding import FullDomain, Recoding
from shoal.search.cells import cell_suppression
from shoal.search.cells.classes import Partition, recoding_of_partition, require_class_by_class
from shoal.search.cells.star_levels import levels_of, not_as_one, with_levels
from shoal.search.full_domain.lattice import Node, moved_to_level
from shoal.search.full_domain.optimal import optimal
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Problem

SHARES = (0.0, 0.02, 0.1)  # of records that may still fail at the nodes from which the search starts
NODES = 60  # visited nodes


@dataclass(frozen=True, eq=False)
class SuppressedNode:
    """A node, and its cost after cell suppression."""

    node: Node
    value: float


def local_suppression(problem: Problem) -> Recoding:
    """Start from nodes at which few records fail, and step to neighbours while the total cost decreases."""
    require_class_by_class(problem, "local_suppression")
    n_rows = problem.table.n_classes
    top = _cells(problem, problem.lattice.top)
    if not top.passes(np.arange(n_rows), np.zeros(n_rows, np.int64), 1)[0]:
        raise problem.infeasible() if problem.monotone else not_as_one(problem, "local_suppression")
    visited: set[Node] = set()
    best = min(_looks(problem, _starts(problem), visited), key=_rank)
    better: SuppressedNode | None = best
    while better is not None:
        best = better
        better = _better_neighbour(problem, best, visited)
    cells = _cells(problem, best.node)
    partition, _ = cell_suppression.partition_and_bound(cells)
    if partition is None:
        raise ValueError("what passes as one class passes when dealt out")
    answer = min((_answer(problem, cells, p) for p in (partition, cell_suppression.covered(cells))), key=lambda a: a[0])
    return replace(answer[1], n_evaluated=len(visited), n_nodes=problem.lattice.n_nodes)


def _rank(look: SuppressedNode) -> tuple[float, Node]:
    return look.value, look.node


def _starts(problem: Problem) -> list[Node]:
    """Return the top, and the best nodes if some records may fail."""
    starts = [problem.lattice.top]
    n = problem.table.n_records
    seconds = None if problem.time_budget is None else problem.time_budget / (len(SHARES) + 1)
    for share in SHARES:
        terms = replace(problem.terms, limit=int(share * n), keep_suppressed=False, time_budget=seconds)
        relaxed = Problem(problem.table, problem.asked, terms, rollup=problem.rollup, progress=problem.progress)
        try:
            answer = optimal(relaxed)
        except (InfeasibleError, OutOfTimeError):
            continue
        if isinstance(answer, FullDomain):
            starts.append(answer.node)
    return list(dict.fromkeys(starts))


def _better_neighbour(problem: Problem, best: SuppressedNode, visited: set[Node]) -> SuppressedNode | None:
    """Return the first step up or down that reduces the cost."""
    steps = [(j, other) for j, level in enumerate(best.node) for other in (level - 1, level + 1)]
    nodes = [moved_to_level(best.node, j, other) for j, other in steps if 0 <= other <= problem.lattice.heights[j]]
    new = [node for node in nodes if node not in visited]
    looks = _looks(problem, new, visited)
    for _ in new:
        if len(visited) >= NODES or problem.out_of_time:
            return None
        look = next(looks)
        if look.value < best.value - 1e-12 * abs(best.value):
            return look
    return None


def _looks(problem: Problem, nodes: list[Node], visited: set[Node]) -> Iterator[SuppressedNode]:
    """Suppress the cells at each node, on both cores; a node counts as visited when it is requested."""
    for look, reports in done_ahead(partial(_look, problem), nodes):
        visited.add(look.node)
        for step, share in reports:
            problem.progress(step, share)
        problem.progress("weighing levels against hidden cells", min(1.0, len(visited) / NODES))
        yield look


def _look(problem: Problem, node: Node) -> tuple[SuppressedNode, list[tuple[str, float]]]:
    """Suppress the cells at a node; return also its progress reports, for when the node is requested."""
    reports: list[tuple[str, float]] = []

    def noted(step: str, share: float) -> None:
        go_on_if_wanted()
        reports.append((step, share))

    quiet = copy(problem)
    quiet.progress = noted
    cells = _cells(quiet, node)
    return SuppressedNode(node, _answer(quiet, cells, cell_suppression.covered(cells))[0]), reports


def _cells(problem: Problem, node: Node) -> cell_suppression.HideableCells:
    """Return the cells at a node; hiding a cell costs the information that it still has."""
    narrowed = with_levels(problem, levels_of(problem, node))
    costs = np.empty(problem.table.codes.shape)
    for j, h in enumerate(narrowed.table.hierarchies):
        shares = h.shares[0][h.table[0][problem.table.codes[:, j]]]
        costs[:, j] = problem.weights[j] * np.maximum(h.shares[-1][0] - shares, 0)
    return cell_suppression.HideableCells.of(narrowed, costs)


def _answer(problem: Problem, cells: cell_suppression.HideableCells, partition: Partition) -> tuple[float, Recoding]:
    """Return the cost of a partition in the policy's objective, and its recoding."""
    answer = recoding_of_partition(cells.problem, partition, "local_suppression")
    answer = replace(answer, hierarchies=problem.table.hierarchies)
    return loss_of(problem, answer.released, answer.parts(problem.table), problem.objective_name), answer
