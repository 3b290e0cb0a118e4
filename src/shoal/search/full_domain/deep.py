"""Deep search: close a box of the lattice depth first, splitting classes instead of merging them.

For k-anonymity and losses of cells, where ``optimal`` has looked at many nodes and the gap is still open. A box is the
nodes S with low ≤ S ≤ high, and the classes of its highest node are known. One step decides about one column j:
  - the nodes with S_j = low_j: their highest node is ``high`` with column j at low_j. Its classes are those of ``high``
    split by this column: one pass over the rows, with a counter for each part and no hashing. If more records are lost
    than may be suppressed, none of these nodes is a solution; otherwise they are a box inside this one;
  - the others have S_j ≥ low_j + 1: the same box with a higher ``low``, which needs no pass.
The first column is the one whose levels differ most in cost: raising its lowest level raises the bound most.

The bound of a box is that of ``optimal``. A record in a class of fewer than k records at ``high`` is in a class no
larger at any S ≤ high, so it is suppressed at every node of the box. With these records suppressed and the others
kept, column j costs at least cost_j(l) at any level from l to high_j: the price of a kept cell grows with its level, a
suppressed one costs no less than a kept one, and ``scaled`` is increasing. So Σ cost_j(low_j) bounds the box. Rows are
split here, not merged, so each lost record is priced at its own value and not at the cheapest one of its class.

A search with a threshold leaves out boxes whose bound reaches it, and returns the least such bound: no node costs less
than this bound or the best solution. Searching again with a higher threshold repeats the work, which is a small share
of what the higher threshold costs; in return nothing has to be remembered but the way to the current box.

Two threads search the boxes that are left after the first few decisions, in waves. Each box of a wave begins with the
best solution of the waves before, and what they find is compared in their order: which thread is faster changes
nothing, not even the number of evaluated nodes.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from itertools import islice, repeat

import numpy as np
from numpy.typing import NDArray

from shoal.compiled import threads
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.deep_kernels import split_classes, split_sizes
from shoal.search.full_domain.lattice import Node
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats

MOST_ROWS = 1 << 27  # the classes of rows in memory: one number per row and level of the way to the current box
MOST_PARTS = 1 << 26  # the parts of all classes in memory, four bytes each: a column of many values splits into many
DECIDED = 5  # columns that are decided in the boxes that threads search
WAVE = 32  # boxes that begin with the same best solution


@dataclass(eq=False)
class SplitBox:
    """The nodes from ``low`` to ``high``; no more records are lost at ``high`` than may be suppressed."""

    low: list[int]
    high: list[int]
    class_of: NDArray[np.int32]  # (rows)  lost rows are in class ``n_classes``
    n_classes: int
    n_lost: int
    sums: Floats  # [column, level]  cells of all records, the lost ones suppressed
    costs: list[list[float]]  # [column][level]  the smallest cost of the level or any above it, up to the highest


def can_search_deep(problem: Problem) -> bool:
    """Return whether class sizes alone decide, the loss is one of cells, and every node may be released."""
    return (
        problem.sizes_decide
        and isinstance(problem.objective, CellLoss)
        and not problem.objective.mean_of_kept
        and not (problem.after or problem.keep_suppressed or problem.people is not None)
        and problem.n_records < 1 << 31
        and problem.table.n_classes * (2 * len(problem.lattice.heights) + WAVE) <= MOST_ROWS
        and _most_parts(problem) <= MOST_PARTS
    )


def _most_parts(problem: Problem) -> int:
    """Return how many parts one split may have to count: no class that is left is smaller than the least size."""
    n_classes = min(problem.table.n_classes, problem.n_records // problem.least_class_size)
    return (n_classes + 1) * max(hierarchy.cardinality(0) for hierarchy in problem.table.hierarchies)


@dataclass(eq=False)
class Branch:
    """The state of the search of one box."""

    best: Best
    left_out: float = math.inf  # the least bound of the boxes that reach the threshold
    n_split: int = 0
    in_time: bool = True


class DeepSearch:
    """Searches a problem's lattice and improves the best solution."""

    def __init__(self, problem: Problem, best: Best, report: Callable[[], None]) -> None:
        if not isinstance(problem.objective, CellLoss):
            raise TypeError("deep search needs a loss of cells")
        self.problem, self.best, self.report = problem, best, report
        self.objective = problem.objective
        self.min_class_size = problem.least_class_size
        self.most_lost = min(problem.limit, problem.n_records - 1)
        ground = problem.rollup.at(problem.lattice.ground)
        self._leaves = np.ascontiguousarray(ground.codes.T)  # [column, row]  codes at level 0
        self._counts = ground.counts.astype(np.int32)
        self._extra = self.objective.suppressed_extra()
        self._parts: dict[tuple[int, int, int], tuple[NDArray[np.int32], int]] = {}
        self._evaluation_lock = threading.Lock()  # to evaluate nodes, which changes the problem's caches
        self._stopped = False

    def close(self, low: Node, threshold: float) -> float | None:
        """Search all nodes above ``low``; return a lower bound on those left out, None if time runs out.

        The bound is infinite if nothing was left out: then no node above ``low`` is better than the best solution.
        """
        box = self._top(list(low))
        if box is None:
            return math.inf
        trunk = Branch(self.best)
        pieces = self._pieces(box, threshold, trunk, DECIDED)
        with ThreadPoolExecutor(threads.THREADS) as pool:
            try:
                while trunk.in_time and (wave := list(islice(pieces, WAVE))):
                    branches = [Branch(copy(self.best)) for _ in wave]
                    list(pool.map(self._search, wave, repeat(threshold), branches))
                    for branch in branches:
                        self._merge(trunk, branch)
                    self.report()
            finally:
                self._stopped = True  # if an exception ends the search, it ends the threads too
        self._stopped = False
        self.problem.n_evaluated += trunk.n_split
        return trunk.left_out if trunk.in_time else None

    def _merge(self, trunk: Branch, branch: Branch) -> None:
        trunk.left_out = min(trunk.left_out, branch.left_out)
        trunk.n_split += branch.n_split
        trunk.in_time &= branch.in_time
        if branch.best.evaluation is not None:
            trunk.best.offer(branch.best.value, branch.best.evaluation)

    def _top(self, low: list[int]) -> SplitBox | None:
        """Return the box up to the top of the lattice; None if it contains no solution."""
        # At the top every record has the same label, or one of few: one class, split by the labels of each column.
        n = len(self._counts)
        top = list(self.problem.lattice.top)
        whole = np.zeros(n, np.int32)
        box: SplitBox | None = self._box(low, top, whole, 1, 0, self.objective.base.copy())
        for j, level in enumerate(top):
            if box is not None:
                box = self._split(box, j, *self._parts_under(j, level, None), top)
        return box

    def _pieces(self, box: SplitBox, threshold: float, branch: Branch, n_left: int) -> Iterator[SplitBox]:
        """Search the nodes above the boxes in which ``n_left`` more columns are decided, and yield these boxes."""
        if n_left == 0:
            yield box
            return
        self._offer(box, branch)
        while (j := self._next_column(box, threshold, branch)) is not None:
            if (inner := self._lowered(box, j, branch)) is not None:
                yield from self._pieces(inner, threshold, branch, n_left - 1)
            box.low[j] += 1

    def _search(self, box: SplitBox, threshold: float, branch: Branch) -> None:
        """Search a box depth first; what is found and left out goes to its branch."""
        self._offer(box, branch)
        while (j := self._next_column(box, threshold, branch)) is not None:
            if (inner := self._lowered(box, j, branch)) is not None:
                self._search(inner, threshold, branch)
            box.low[j] += 1

    def _next_column(self, box: SplitBox, threshold: float, branch: Branch) -> int | None:
        """Return the column to decide about next; None if nothing of the box is left to search."""
        low, high, costs = box.low, box.high, box.costs
        bound = sum(column_costs[level] for column_costs, level in zip(costs, low, strict=True))
        if branch.best.excludes(bound, tuple(low)):
            return None
        if bound >= threshold:
            branch.left_out = min(branch.left_out, bound)
            return None
        best_column, max_cost = None, -1.0
        for j, column_costs in enumerate(costs):
            a, b = low[j], high[j]
            # Many columns cost the same from bottom to top: then the first step decides.
            if (
                a < b
                and (cost := column_costs[b] - column_costs[a] + (column_costs[a + 1] - column_costs[a]) / 2) > max_cost
            ):
                best_column, max_cost = j, cost
        if best_column is not None and (self._stopped or self.problem.out_of_time):
            branch.in_time = False
        return best_column if branch.in_time else None

    def _offer(self, box: SplitBox, branch: Branch) -> None:
        """Keep the highest node of a box if it is better."""
        value = sum(column_costs[level] for column_costs, level in zip(box.costs, box.high, strict=True))
        node = tuple(box.high)
        if not branch.best.excludes(value, node):
            with self._evaluation_lock:
                evaluation = self.problem.evaluate(node)
                if evaluation.feasible:
                    branch.best.offer(self.objective.value(evaluation), evaluation)

    def _lowered(self, box: SplitBox, j: int, branch: Branch) -> SplitBox | None:
        """Return the nodes with column ``j`` at its lowest level; None if none of them is a solution."""
        branch.n_split += 1
        level = box.low[j]
        high = [*box.high[:j], level, *box.high[j + 1 :]]
        return self._split(box, j, *self._parts_under(j, level, box.high[j]), high)

    def _split(self, box: SplitBox, j: int, part: NDArray[np.int32], n_parts: int, high: list[int]) -> SplitBox | None:
        """Split the classes of a box by a column; ``high`` is then its highest node."""
        grouping = (self._counts, box.class_of, box.n_classes, part, n_parts, self.min_class_size)
        lost, sizes = split_sizes(self._leaves[j], *grouping)
        if box.n_lost + lost > self.most_lost:
            return None
        sums = box.sums.copy()
        class_of, n_classes = split_classes(j, self._leaves, *grouping, sizes, self._extra, sums)
        return self._box(list(box.low), high, class_of, n_classes, box.n_lost + lost, sums)

    def _box(
        self, low: list[int], high: list[int], class_of: NDArray[np.int32], n_classes: int, n_lost: int, sums: Floats
    ) -> SplitBox:
        costs = self.objective.scaled(sums).tolist()
        for column_costs, highest in zip(costs, high, strict=True):
            for level in range(highest - 1, -1, -1):
                column_costs[level] = min(column_costs[level], column_costs[level + 1])
        return SplitBox(low, high, class_of, n_classes, n_lost, sums, costs)

    def _parts_under(self, j: int, level: int, high: int | None) -> tuple[NDArray[np.int32], int]:
        """Number the labels of a level under each label of a higher one, or all of them; by code at level 0."""
        key = (j, level, -1 if high is None else high)
        if key not in self._parts:
            table = self.problem.table.hierarchies[j].table
            n_codes = self.problem.table.hierarchies[j].cardinality(0)
            label_of, above = np.zeros(n_codes, np.int64), np.zeros(n_codes, np.int64)
            label_of[table[0]] = table[level]
            if high is not None:
                above[table[0]] = table[high]
            part, n_parts = np.zeros(n_codes, np.int32), 1
            for label in np.unique(above):
                under, number = np.unique(label_of[above == label], return_inverse=True)
                part[above == label] = number
                n_parts = max(n_parts, len(under))
            self._parts[key] = part, n_parts
        return self._parts[key]
