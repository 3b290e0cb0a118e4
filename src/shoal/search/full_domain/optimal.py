"""Optimal: the smallest loss of all full-domain generalizations, proved.

Our own branch and bound over boxes of the lattice. A box contains all nodes between a lowest and a highest one.
Evaluating the highest node shows which records are lost, that is, suppressed on every node of the box:
  - if more are lost than may be suppressed, the box contains no solution;
  - otherwise their cost is due at every level, which bounds the box by its lowest node;
  - levels that alone would cost more than the best solution are cut off, and the evaluation repeats on the rest.
If the table of the highest node is huge, coarser nodes above it are evaluated first: they may rule out the box too.
A surviving box is split at the top of its costliest column. Losses of classes are also bounded from the lowest node,
above which classes only merge. Verdicts prune only as far as the models' merging allows (``Problem.monotone``).
Under k-anonymity, ``deep.py`` takes over if thousands of nodes have not closed the gap.

Needs  nothing: any models, any objective.
Finds  the node that ``exhaustive`` finds, with the same tie-breaking.
Costs  one grouping per visited node; usually a small share of the lattice, all of it in the worst case.
"""

from __future__ import annotations

import heapq
import math
from operator import getitem
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.nodes import raise_low
from shoal.recoding import Recoding
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.deep import DeepSearch, can_search_deep
from shoal.search.full_domain.lattice import Node, below, moved_to_level
from shoal.search.problem import Problem

Costs = list[list[float]]  # [column][level], to be summed over columns


class Box(NamedTuple):
    """The nodes from ``low`` to ``high``; none of them costs less than ``bound``."""

    bound: float
    serial: int  # among equal bounds the older box comes first; numbers are unique
    low: Node
    high: Node
    costs: Costs

    @property
    def columns(self) -> list[int]:
        """Return the columns that have more than one level."""
        return [j for j, (lowest, highest) in enumerate(zip(self.low, self.high, strict=True)) if lowest < highest]


def optimal(problem: Problem) -> Recoding:
    """Split the box with the smallest bound until no bound is below the best solution."""
    search = _BranchAndBound(problem)
    search.descend(problem.lattice.top)
    for node in problem.hints:
        search.look(node)
    bound = search.close()
    if search.best.evaluation is None:
        raise problem.infeasible() if bound is None else problem.unfinished()
    return problem.best_node(search.best.evaluation, "optimal", proved=bound is None, bound=bound)


class Look(NamedTuple):
    """The remembered part of an evaluation, which itself holds the whole table of its node."""

    feasible: bool
    barren: bool  # no solution here or below
    costs: Costs  # lower bound on the cost of every node below, per column and level
    above: float  # lower bound on the cost of every node above


DIVE = 200  # boxes between two descents that look for a better solution
REPORT = 16  # boxes between two progress reports
SHALLOW = 5000  # evaluated nodes before the deep search takes over, where it can
NEAR = 0.1  # of the best cost: a gap that the deep search closes at once, not by halves


class _BranchAndBound:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best = Best()
        self.boxes: list[Box] = []
        self.looks: dict[Node, Look] = {}
        self.barren = _NodeList(len(problem.table.columns))  # nodes below which there is no solution
        self.n_boxes = 0
        self.floor: Costs = problem.objective.floor().tolist()

    def look(self, node: Node) -> Look:
        """Evaluate a node at most once."""
        if node in self.looks:
            return self.looks[node]
        problem, objective = self.problem, self.problem.objective
        evaluation = problem.evaluate(node, bounded=not objective.sees_classes)
        barren = problem.rules_out_below(evaluation)
        if evaluation.feasible:
            self.best.offer(objective.value(evaluation), evaluation)
        if barren:
            self.barren.append(node)
        costs = [] if barren else objective.below(evaluation).tolist()
        above = objective.above(evaluation) if objective.sees_classes else -np.inf
        self.looks[node] = look = Look(evaluation.feasible, barren, costs, above)
        return look

    def descend(self, node: Node) -> None:
        """Look for a solution: from ``node``, repeatedly undo the costliest step that leaves a feasible node."""
        self.look(node)
        steps = [j for j, level in enumerate(node) if level > 0]
        while steps and not self.problem.out_of_time:
            j = max(steps, key=lambda j: self.floor[j][node[j]] - self.floor[j][node[j] - 1])
            lower = moved_to_level(node, j, node[j] - 1)
            if self.look(lower).feasible:
                node = lower
            if node != lower or node[j] == 0:
                steps.remove(j)

    def close(self) -> float | None:
        """Split boxes until none can hold a better solution; if time runs out, return a lower bound on the cost."""
        self.add(self.problem.lattice.ground, self.problem.lattice.top)
        n_split = 0
        while self.boxes:
            box = heapq.heappop(self.boxes)
            if self.best.excludes(box.bound, box.low):
                continue
            if self.problem.out_of_time:
                return min(box.bound, self.best.value)
            if len(self.looks) >= SHALLOW and self.best.evaluation is not None and can_search_deep(self.problem):
                return self._close_deep(box.bound)
            n_split += 1
            if n_split % DIVE == 0:
                self.descend(box.high)
            # Separate a column's top level from the rest: evaluating the rest is then most informative.
            j = max(box.columns, key=lambda j: box.costs[j][box.high[j]] - box.costs[j][box.high[j] - 1])
            self.add(moved_to_level(box.low, j, box.high[j]), box.high)
            self.add(box.low, moved_to_level(box.high, j, box.high[j] - 1))
            if n_split % REPORT == 1:
                self._report(box.bound)
        return None

    def _close_deep(self, bound: float) -> float | None:
        """Search the whole lattice depth first, with thresholds that halve the gap; return as ``close`` does."""
        deep = DeepSearch(self.problem, self.best, lambda: self._report(bound))
        while True:
            gap = self.best.value - bound
            threshold = bound + gap / 2 if gap > NEAR * abs(self.best.value) else math.inf
            left_out = deep.close(self.problem.lattice.ground, threshold)
            if left_out is None:
                return min(bound, self.best.value)
            if left_out == math.inf:
                return None
            bound = left_out
            self._report(bound)

    def add(self, low: Node, high: Node) -> None:
        """Keep a box if it can hold a solution, reduced to the levels that can."""
        while True:
            shrunk = self._raised(low, high)
            if shrunk is None:
                return
            low = shrunk
            if self.problem.after:
                low, high = self._in_order(low, high)
                if not below(low, high):
                    return
            if high not in self.looks and any(self._excluded(low, node) for node in self.problem.rollup.coarser(high)):
                return
            look = self.look(high)
            if look.barren:
                return
            bound = sum(map(getitem, look.costs, low))
            if self.problem.objective.sees_classes:
                bound = max(bound, self.look(low).above)
            if self.best.excludes(bound, low):
                return
            cut = self._cut(low, high, look.costs, bound)
            if cut == high:
                break
            high = cut
        if low != high:
            self.n_boxes += 1
            heapq.heappush(self.boxes, Box(bound, self.n_boxes, low, high, look.costs))

    def _excluded(self, low: Node, above: Node) -> bool:
        """Return whether the evaluation of a node above a box rules it out."""
        look = self.look(above)
        return look.barren or self.best.excludes(sum(map(getitem, look.costs, low)), low)

    def _raised(self, low: Node, high: Node) -> Node | None:
        """Return the lowest node that is not below a barren one, if the box has such a node."""
        if high in self.looks:
            return low
        raised = np.array(low)
        return tuple(raised.tolist()) if raise_low(raised, np.array(high), self.barren.levels) else None

    def _in_order(self, low: Node, high: Node) -> tuple[Node, Node]:
        """Reduce the box to nodes that generalize the columns in the required order."""
        for a, b in self.problem.after:
            if low[b] > 0:
                low = moved_to_level(low, a, self.problem.lattice.heights[a])
            if high[a] < self.problem.lattice.heights[a]:
                high = moved_to_level(high, b, 0)
        return low, high

    def _cut(self, low: Node, high: Node, costs: Costs, bound: float) -> Node:
        """Return the highest levels of a node that costs no more than the best."""
        levels = list(high)
        safe = self.best.value - self.best.slack - bound
        for j, column in enumerate(costs):
            if column[high[j]] - column[low[j]] < safe:
                continue
            rest = bound - column[low[j]]
            while levels[j] > low[j] and self.best.excludes(
                rest + column[levels[j]], moved_to_level(low, j, levels[j])
            ):
                levels[j] -= 1
        return tuple(levels)

    def _report(self, bound: float) -> None:
        displayed = self.problem.objective.published_figure
        if self.best.evaluation is None:
            self.problem.progress("looking for an answer", 0)
        else:
            lower, best = displayed(bound), displayed(self.best.value)
            self.problem.progress(f"best {best:.4f}, none below {lower:.4f}", lower / best if best else 1.0)


class _NodeList:
    """A growing list of nodes as an array, for the kernel that compares a box with all of them."""

    def __init__(self, n_columns: int) -> None:
        self._levels = np.zeros((64, n_columns), np.int64)
        self._n = 0

    @property
    def levels(self) -> NDArray[np.int64]:
        """The levels as an array, [node, column]."""
        return self._levels[: self._n]

    def append(self, node: Node) -> None:
        """Append a node, growing the array if necessary."""
        if self._n == len(self._levels):
            self._levels = np.concatenate([self._levels, np.zeros_like(self._levels)])
        self._levels[self._n] = node
        self._n += 1
