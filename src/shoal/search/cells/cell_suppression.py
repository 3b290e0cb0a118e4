"""Cell suppression: a hidden cell is a star, equal to other stars and to nothing else.

Records that look the same afterwards form a class, so hiding cells means assigning records to classes: a class hides
the columns in which its records differ. A *pattern* is a set of columns to hide. The possible classes of a pattern are
the groups of records by the other columns; every record chooses a pattern, and every chosen group must pass.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.compiled.threads import done_in_parts
from shoal.models.size import KAnonymity
from shoal.search.cells.classes import SUPPRESSED, Partition, class_table, passing
from shoal.search.problem import Problem
from shoal.tables.frequency import ClassOf, Codes, Counts, Floats, packed

Pattern = NDArray[np.bool_]  # (columns)  which are hidden

PATTERNS = 1024  # patterns to try, cheapest first: all of them up to ten columns
TOGETHER = 32  # patterns that are tried on both cores before the least costs are compared
CHOICES = 2500  # choices of rows between classes up to which a whole table is solved exactly
BRANCHES = 500  # nodes that the solver may visit for that
ROUNDS = 100  # neighbourhoods of a larger table that are solved separately
AROUND = 18  # parts of rows in one


@dataclass(frozen=True, eq=False)
class HideableCells:
    """The cells of a problem whose columns have two levels, shown and hidden, and the cost of hiding each."""

    problem: Problem
    codes: Codes  # (rows, columns)  of the shown labels; the number after the last is the star
    costs: Floats  # (rows, columns)  of hiding; 0 where a cell is a star from the start
    counts: Counts  # records of each row

    @classmethod
    def of(cls, problem: Problem, costs: Floats) -> HideableCells:
        """Build from the ``costs`` of all cells; cells that are stars from the start cost nothing."""
        codes = np.empty(problem.table.codes.shape, np.int32)
        costs = costs.copy()
        for j, h in enumerate(problem.table.hierarchies):
            # The text of the top is always a star: values without an entry have it on every level.
            leaf_codes = np.array(
                [code if label != h.top else h.cardinality(0) for code, label in enumerate(h.labels[0])]
            )
            codes[:, j] = leaf_codes[h.table[0][problem.table.codes[:, j]]]
            costs[codes[:, j] == h.cardinality(0), j] = 0
        return cls(problem, codes, costs, problem.table.counts)

    @cached_property
    def k(self) -> int | None:
        """The required class size, if size alone decides whether a class passes."""
        sizes = [m.k for m in self.problem.models if isinstance(m, KAnonymity) and not m.columns]
        plain = len(sizes) == len(self.problem.models) and self.problem.table.entities is None
        return max(sizes, default=None) if plain else None

    @cached_property
    def patterns(self) -> list[Pattern]:
        """The cheapest patterns in ascending order; the last one always hides everything."""
        cheapest_patterns = list(cheapest(self.counts @ self.costs, PATTERNS))
        return (
            cheapest_patterns
            if cheapest_patterns[-1].all()
            else [*cheapest_patterns, np.ones(len(cheapest_patterns[0]), np.bool_)]
        )

    def cost(self, pattern: Pattern) -> Floats:
        """Return the cost of the pattern for a record of each row."""
        return np.asarray(self.costs[:, pattern].sum(axis=1))

    @cached_property
    def _words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]] | None:
        """One word per row, and the bits of each column in it; None if a word is too short."""
        bits = [int(column.max(initial=0)).bit_length() for column in self.codes.T]
        if sum(bits) > 64:
            return None
        starts = (np.cumsum(bits) - bits).astype(np.uint64)
        words = np.zeros(len(self.codes), np.uint64)
        for column, start in zip(self.codes.T, starts, strict=True):
            words |= column.astype(np.uint64) << start
        return words, np.array([(1 << n) - 1 for n in bits], np.uint64) << starts

    def groups(self, pattern: Pattern, rows: NDArray[np.int64]) -> tuple[ClassOf, int]:
        """Return the classes of some rows under a pattern."""
        if self._words is None:
            keys = packed(self.codes[rows][:, ~pattern])
        else:
            words, bits = self._words
            keys = words[rows] & np.bitwise_or.reduce(bits[~pattern])
        class_of, firsts = group(keys)
        return class_of, len(firsts)

    def passes(self, rows: NDArray[np.int64], class_of: ClassOf, n_classes: int) -> NDArray[np.bool_]:
        """Return which classes of some rows satisfy all requirements."""
        if self.k is not None:
            return np.asarray(sum_by_class(self.counts[rows], class_of, n_classes) >= self.k)
        return passing(self.problem, class_table(self.problem.table, rows, self.counts[rows], class_of, n_classes))

    def within_reach(self, rows: NDArray[np.int64], class_of: ClassOf, n_classes: int) -> NDArray[np.bool_]:
        """Return which classes have a part that may pass; under absorbing models, those that pass as a whole."""
        if self.k is not None:
            return self.passes(rows, class_of, n_classes)
        classes = class_table(self.problem.table, rows, self.counts[rows], class_of, n_classes)
        passes = classes.counts >= self.problem.least_class_size
        for model in self.problem.absorbing:
            passes &= model.passes(classes)
        return np.asarray(passes)


def cheapest(weights: Floats, max_patterns: int) -> Iterator[Pattern]:
    """Yield sets of columns by the sum of their weights, the empty set first."""
    order = np.argsort(weights, kind="stable")
    ranked = weights[order].tolist()
    yield np.zeros(len(ranked), np.bool_)
    heap: list[tuple[float, tuple[int, ...]]] = [(ranked[0], (0,))]
    for _ in range(max_patterns - 1):
        if not heap:
            return
        weight, chosen = heapq.heappop(heap)
        pattern = np.zeros(len(ranked), np.bool_)
        pattern[order[list(chosen)]] = True
        yield pattern
        last = chosen[-1] + 1
        if last < len(ranked):  # each set is reached once: by adding its last column, or by advancing it
            heapq.heappush(heap, (weight + ranked[last], (*chosen, last)))
            heapq.heappush(heap, (weight - ranked[last - 1] + ranked[last], (*chosen[:-1], last)))


def bound(cells: HideableCells) -> float:
    """Return a lower bound on the cost: every record at its cheapest pattern with a group that could pass."""
    lower_bounds = left_out(cells)
    for first in range(0, len(cells.patterns), TOGETHER):
        batch = cells.patterns[first : first + TOGETHER]
        parts = done_in_parts(partial(_least_costs, cells, lower_bounds), [batch[::2], batch[1::2]])
        lower_bounds = np.minimum(*parts)
    return float(cells.counts @ lower_bounds)


def _least_costs(cells: HideableCells, lower_bounds: Floats, patterns: list[Pattern]) -> Floats:
    """Return the ``lower_bounds`` of the rows, lowered where one of these patterns is cheaper."""
    rows = np.arange(len(cells.counts))
    for pattern in patterns:
        cost = cells.cost(pattern)
        if (cost < lower_bounds).any():
            class_of, n_classes = cells.groups(pattern, rows)
            reach = cells.within_reach(rows, class_of, n_classes)[class_of]
            lower_bounds = np.where(reach, np.minimum(lower_bounds, cost), lower_bounds)
    return lower_bounds


def left_out(cells: HideableCells) -> Floats:
    """Return for each row a lower bound on the cost of the omitted patterns; infinite if none is omitted."""
    q = cells.codes.shape[1]
    sizes = np.bincount([int(pattern.sum()) for pattern in cells.patterns], minlength=q + 1)
    n = next((n for n in range(q + 1) if sizes[n] < math.comb(q, n)), None)
    if n is None:
        return np.full(len(cells.counts), np.inf)
    return np.asarray(np.sort(cells.costs, axis=1)[:, :n].sum(axis=1))


def partition_and_bound(cells: HideableCells) -> tuple[Partition | None, float]:
    """Return a partition into passing classes and a lower bound; None if even a single class of all records fails."""
    n_rows = len(cells.counts)
    if not cells.passes(np.arange(n_rows), np.zeros(n_rows, np.int64), 1)[0]:
        return None, 0.0
    lower_bound = bound(cells)
    best = covered(cells)
    if cells.k is None or cost_of(cells, best) <= lower_bound + 1e-9 or cells.problem.out_of_time:
        return best, lower_bound
    solved, exact_bound = (None, 0.0)
    if len(cells.patterns) == 1 << cells.codes.shape[1]:
        solved, exact_bound = exact(cells, cells.k, cells.patterns, BRANCHES)
    if solved is None:
        best = improve_classes(cells, cells.k, best)
    elif cost_of(cells, solved) < cost_of(cells, best):
        best = solved
    return best, max(lower_bound, exact_bound)


# --- greedy: the cheapest patterns first -------------------------------------------------------------------------


def covered(cells: HideableCells) -> Partition:
    """Release every passing group of the remaining records, pattern by pattern, cheapest first."""
    n_rows = len(cells.counts)
    class_of = np.full(n_rows, SUPPRESSED, np.int64)
    left, n_classes = np.arange(n_rows), 0
    for i, pattern in enumerate(cells.patterns):
        if not len(left):
            break
        groups, n_groups = cells.groups(pattern, left)
        passes = cells.passes(left, groups, n_groups)
        is_released = passes[groups]
        class_of[left[is_released]] = n_classes + groups[is_released]
        n_classes += n_groups
        left = left[~is_released]
        cells.problem.progress("hiding cells", i / len(cells.patterns))
    return _with_leftover(cells, Partition.of_rows(cells.problem.table, class_of), left)


def _with_leftover(cells: HideableCells, partition: Partition, left: NDArray[np.int64]) -> Partition:
    """Add the remaining rows to the cheapest class that still passes; otherwise everything becomes one class."""
    class_of = partition.class_of.copy()
    for r in left:
        assigned = np.flatnonzero(class_of >= 0)
        if not len(assigned):
            break
        for c in _nearest(cells, class_of, assigned, int(r)):
            together = np.append(np.flatnonzero(class_of == c), r)
            if cells.passes(together, np.zeros(len(together), np.int64), 1)[0]:
                class_of[r] = c
                break
        else:
            break
    if (class_of < 0).any():
        class_of = np.zeros(len(class_of), np.int64)
    return Partition.of_rows(cells.problem.table, class_of)


TRIES = 8  # classes that are tried for a remaining row


def _nearest(cells: HideableCells, class_of: ClassOf, assigned: NDArray[np.int64], r: int) -> list[int]:
    """Return the classes that are cheapest to widen to include row ``r``."""
    n_classes = int(class_of.max()) + 1
    order = assigned[np.argsort(class_of[assigned], kind="stable")]
    starts = np.flatnonzero(np.diff(class_of[order], prepend=-1))
    low, high = (f.reduceat(cells.codes[order], starts, axis=0) for f in (np.minimum, np.maximum))
    spread = low != high
    differs = spread | (low != cells.codes[r])
    weight = np.zeros((n_classes, cells.codes.shape[1]))
    np.add.at(weight, class_of[order], cells.counts[order, None] * cells.costs[order])
    added_cost = (weight * (differs & ~spread)).sum(axis=1) + cells.counts[r] * (differs * cells.costs[r]).sum(axis=1)
    return [int(c) for c in np.argsort(added_cost, kind="stable")[:TRIES]]


# --- exact, where sizes decide and the table is small ------------------------------------------------------------


def exact(cells: HideableCells, k: int, patterns: list[Pattern], branches: int) -> tuple[Partition | None, float]:
    """Return the optimal partition by integer programming, and a lower bound; no partition if the table is too large.

    A class is open or not; records choose among the open classes, and at least k records choose an open class.
    Solved by HiGHS, limited by branches and not by time, so that the result is the same on every machine.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    row, class_of, cost = _choices(cells, k, patterns)
    n_rows, n_choices, n_classes = len(cells.counts), len(row), int(class_of.max(initial=-1)) + 1
    if not n_choices:
        return None, 0.0
    counts = cells.counts.astype(np.float64)
    ones, choice_numbers = np.ones(n_choices), np.arange(n_choices)
    opened = n_choices + class_of  # the variable that opens a choice's class
    n_variables = n_choices + n_classes
    all_dealt = coo_array((ones, (row, choice_numbers)), (n_rows, n_variables))
    enough = coo_array(
        (np.append(ones, np.full(n_classes, -float(k))), (np.append(class_of, np.arange(n_classes)),
         np.arange(n_variables))), (n_classes, n_variables)
    )  # fmt: skip
    only_open = coo_array(
        (np.append(ones, -counts[row]), (np.tile(choice_numbers, 2), np.append(choice_numbers, opened)))
    )
    solution = milp(
        np.append(cost, np.zeros(n_classes)),
        integrality=np.ones(n_variables),
        bounds=Bounds(0, np.append(counts[row], np.ones(n_classes))),
        constraints=[
            LinearConstraint(all_dealt, counts, counts),
            LinearConstraint(enough, lb=0),
            LinearConstraint(only_open, ub=0),
        ],
        options={"node_limit": branches, "mip_rel_gap": 0},
    )
    lower_bound = float(solution.mip_dual_bound or 0.0)
    if solution.x is None:
        return None, lower_bound
    dealt = np.rint(solution.x[:n_choices]).astype(np.int64)
    chosen = np.flatnonzero(dealt)
    numbers = np.unique(class_of[chosen], return_inverse=True)[1]
    # The solver works in floats, within tolerances: its result is used only if it adds up in whole records.
    whole = np.array_equal(sum_by_class(dealt, row, n_rows), cells.counts) and (dealt >= 0).all()
    large = (sum_by_class(dealt[chosen], numbers, int(numbers.max(initial=-1)) + 1) >= k).all()
    return (Partition(row[chosen], dealt[chosen], numbers) if whole and large else None), lower_bound


def _choices(cells: HideableCells, k: int, patterns: list[Pattern]) -> tuple[NDArray[np.int64], ClassOf, Floats]:
    """Return every pair of a row and a class that it may join, class by class, with its cost; none if too many."""
    rows = np.arange(len(cells.counts))
    chosen, classes, costs = [], [], []
    n_found = n_choices = 0
    for pattern in patterns:
        class_of, n_classes = cells.groups(pattern, rows)
        order = np.argsort(class_of, kind="stable")
        starts = np.searchsorted(class_of[order], np.arange(n_classes))
        spread = _differing(cells.codes[order], starts)
        # A group that agrees on a column hidden by the pattern is also the group of a cheaper pattern.
        fit = (spread == pattern).all(axis=1) & (sum_by_class(cells.counts, class_of, n_classes) >= k)
        mine = np.flatnonzero(fit[class_of])
        n_choices += len(mine)
        if n_choices > CHOICES:
            break
        chosen.append(mine)
        classes.append((n_found + np.cumsum(fit) - 1)[class_of[mine]])
        costs.append(cells.cost(pattern)[mine])
        n_found += int(fit.sum())
    if n_choices > CHOICES or not chosen:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return np.concatenate(chosen), np.concatenate(classes), np.concatenate(costs)


# --- improving, where the table is too large for that ------------------------------------------------------------


def improve_classes(cells: HideableCells, k: int, partition: Partition) -> Partition:
    """Dissolve neighbouring classes and reassign their records optimally, a fixed number of times."""
    rng = np.random.default_rng(cells.problem.terms.seed)
    spread = _spread(cells, partition)
    for i in range(ROUNDS):
        costly = np.flatnonzero(np.asarray(spread.any(axis=1))[partition.class_of])
        if not len(costly) or cells.problem.out_of_time:
            break
        chosen = _around(cells, partition, int(rng.choice(costly)), rng)
        inside = chosen[partition.class_of]
        rows, row_of = np.unique(partition.row[inside], return_inverse=True)
        counts = np.bincount(row_of, weights=partition.counts[inside]).astype(np.int64)
        subproblem = replace(cells, codes=cells.codes[rows], costs=cells.costs[rows], counts=counts)
        hidden = spread[partition.class_of[inside]]
        solved, _ = exact(subproblem, k, _pairwise(subproblem.codes, hidden), BRANCHES // 10)
        before = (partition.counts[inside] * (hidden * cells.costs[partition.row[inside]]).sum(axis=1)).sum()
        # Equal costs are accepted too: they can lead to further improvements.
        if solved is not None and cost_of(subproblem, solved) <= before + 1e-9:
            number = np.cumsum(~chosen) - 1  # of the classes that stay; the new ones follow
            partition = Partition(
                np.append(partition.row[~inside], rows[solved.row]),
                np.append(partition.counts[~inside], solved.counts),
                np.append(number[partition.class_of[~inside]], solved.class_of + int((~chosen).sum())),
            )
            spread = np.concatenate([spread[~chosen], _spread(subproblem, solved)])
        cells.problem.progress("hiding fewer cells", (i + 1) / ROUNDS)
    return partition


def _pairwise(codes: Codes, spread: NDArray[np.bool_]) -> list[Pattern]:
    """Return the patterns to try in a neighbourhood: those in which two rows differ, and those that classes hide."""
    differ = (codes[:, None, :] != codes[None, :, :]).reshape(-1, codes.shape[1])
    return list(np.unique(np.concatenate([differ, spread]), axis=0))


def _around(cells: HideableCells, partition: Partition, part: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return which classes are nearest to one part, few enough to solve together; ties are broken at random."""
    differs = cells.codes[partition.row] != cells.codes[partition.row[part]]
    distance = (differs * cells.costs[partition.row[part]]).sum(axis=1) + 0.5 * rng.random(len(partition.row))
    distance[part] = -1
    sizes = np.bincount(partition.class_of)
    chosen = np.zeros(len(sizes), np.bool_)
    room = AROUND
    for c in partition.class_of[_smallest_distances(distance, 4 * AROUND)].tolist():
        if not chosen[c]:
            room -= sizes[c]
            if room < 0:
                break
            chosen[c] = True
    return chosen


def _smallest_distances(values: Floats, m: int) -> NDArray[np.int64]:
    """Return the places of the ``m`` least values in a stable order, without sorting the others."""
    if len(values) <= m:
        return np.argsort(values, kind="stable")
    near = np.flatnonzero(values <= np.partition(values, m - 1)[m - 1])
    return near[np.argsort(values[near], kind="stable")][:m]


def cost_of(cells: HideableCells, partition: Partition) -> float:
    """Return the cost of a partition: every class hides the columns in which its records differ."""
    hidden = _spread(cells, partition)[partition.class_of] * cells.costs[partition.row]
    return float(partition.counts @ hidden.sum(axis=1))


def _spread(cells: HideableCells, partition: Partition) -> NDArray[np.bool_]:
    """Return the columns in which the records of each class differ."""
    order = np.argsort(partition.class_of, kind="stable")
    return _differing(
        cells.codes[partition.row[order]], np.searchsorted(partition.class_of[order], np.arange(partition.n_classes))
    )


def _differing(codes: Codes, starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.asarray(np.minimum.reduceat(codes, starts, axis=0) != np.maximum.reduceat(codes, starts, axis=0))
