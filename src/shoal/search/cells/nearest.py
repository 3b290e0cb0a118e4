"""Nearest tuples: distances between tuples of leaves, and the nearest neighbours of a tuple.

The distance of two tuples is the cost of a class of both: per column, the level of their nearest common ancestor
over the height, times the column's weight. For hierarchies with two levels, it is the number of columns that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.compiled.jit import compiled
from shoal.compiled.threads import done_in_parts
from shoal.errors import OutOfTimeError
from shoal.search.cells.classes import Partition
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, Counts, Floats, packed

TupleNumbers = NDArray[np.int64]  # numbers of tuples
Near = list[tuple[TupleNumbers, Floats]]  # neighbours of some tuples, and their distances
Piece = dict[int, int]  # the number of records of each tuple

SMALL = 1024  # leaves of a column up to which all their distances are kept: 8 MB a column
MIN_THREADED = 5_000  # tuples that are worth a second thread
TOGETHER = 64  # tuples whose neighbours are searched together
LOOKED_AT = 4_000_000  # tuples that one thread compares without a pause
WAVE = 32  # such searches between two checks of the time


class Metric:
    """The distinct tuples of a table at its lowest levels, and the distances between them."""

    def __init__(self, problem: Problem) -> None:
        table = problem.table
        ground = [h.table[0][table.codes[:, j]] for j, h in enumerate(table.hierarchies)]
        codes = np.column_stack(ground).astype(np.int32)
        self.problem = problem
        self.class_of, firsts = group(packed(codes))  # of each row of the table, its tuple
        self.codes: Codes = codes[firsts]
        self.counts: Counts = sum_by_class(table.counts, self.class_of, len(firsts))
        self._paths = [np.array([h.step(0, level) for level in range(h.n_levels)]) for h in table.hierarchies]
        self._costs = [  # of each level
            weight * np.array([h.number(level) - h.number(0) for level in range(h.n_levels)]) / max(1, h.number_of_top)
            for h, weight in zip(table.hierarchies, problem.weights, strict=True)
        ]
        cardinalities = [h.cardinality(0) for h in table.hierarchies]
        self._all = [self._pairs(j, n) if n <= SMALL else None for j, n in enumerate(cardinalities)]
        # Columns with many values come first: they separate tuples most, so sums that are too large end early.
        self._order = sorted(range(len(cardinalities)), key=lambda j: -cardinalities[j])
        starts = np.cumsum([0, *(cardinalities[j] for j in self._order)])[:-1]
        self._places = np.ascontiguousarray(self.codes[:, self._order] + starts).astype(np.int32)
        self.n_scans = 0  # scans of all tuples

    @property
    def n(self) -> int:
        """The number of tuples."""
        return len(self.counts)

    def between(self, j: int, a: Codes, b: Codes) -> Floats:
        """Return the cost of column ``j`` in a class of two values, for each pair."""
        paths = self._paths[j]
        levels = np.zeros(np.broadcast(a, b).shape, np.int64)
        for of_level in paths[:-1]:  # below their common ancestor two values differ, from there on they agree
            levels += of_level[a] != of_level[b]
        return np.asarray(self._costs[j][levels])

    def _pairs(self, j: int, n: int) -> Floats:
        values = np.arange(n, dtype=np.int32)
        return self.between(j, values[:, None], values[None, :])

    def to_value(self, j: int, code: int) -> Floats:
        """Return the cost of column ``j`` in a class of ``code`` and each of its values."""
        costs_of_codes = self._all[j]
        if costs_of_codes is not None:
            return np.asarray(costs_of_codes[code])
        return self.between(j, np.array(code, np.int32), np.arange(self._paths[j].shape[1], dtype=np.int32))

    def matrix(self) -> Floats:
        """Return the distances between all pairs of tuples."""
        to_all = (
            np.add.reduce([self.to_value(j, int(code))[self.codes[:, j]] for j, code in enumerate(tuple_codes)])
            for tuple_codes in self.codes
        )
        return np.array(list(to_all))

    def nearest(self, i: int, m: int, barred: NDArray[np.bool_]) -> tuple[TupleNumbers, Floats]:
        """Return the ``m`` tuples nearest to tuple ``i`` that are not barred, and their distances; ties by number."""
        self._scan(1)
        return self._scanned(i, m, barred)

    def nearest_others(self, tuples: TupleNumbers, m: int) -> Near:
        """Return the same for each of some tuples, with only the tuple itself barred; threads share the tuples."""
        size = max(1, min(TOGETHER, LOOKED_AT // self.n)) if self.n >= MIN_THREADED else WAVE * TOGETHER
        neighbours: Near = []
        while True:
            self.problem.progress("looking for nearest tuples", len(neighbours) / max(1, len(tuples)))
            if len(neighbours) == len(tuples):
                return neighbours
            wave = tuples[len(neighbours) : len(neighbours) + WAVE * min(size, TOGETHER)]
            self._scan(len(wave))
            batches = [wave[first : first + size] for first in range(0, len(wave), size)]
            neighbours += chain.from_iterable(done_in_parts(partial(self._near, m=m), batches))

    def _scan(self, n_tuples: int) -> None:
        """Count scans of all tuples, unless time is over."""
        self.n_scans += n_tuples
        if self.problem.out_of_time:
            raise OutOfTimeError(
                f"no solution was found within {self.problem.time_budget:g} seconds, "
                f"after the neighbours of {self.n_scans} of {self.n} distinct tuples or more",
                "increase time_budget, or use algorithm 'datafly'",
            )

    def _near(self, tuples: TupleNumbers, m: int) -> Near:
        """Return the nearest of each tuple but itself."""
        barred = np.zeros(self.n, np.bool_)
        neighbours = []
        for i in tuples.tolist():
            barred[i] = True
            neighbours.append(self._scanned(i, m, barred))
            barred[i] = False
        return neighbours

    def _scanned(self, i: int, m: int, barred: NDArray[np.bool_]) -> tuple[TupleNumbers, Floats]:
        costs = np.concatenate([self.to_value(j, int(self.codes[i, j])) for j in self._order])
        neighbours: tuple[TupleNumbers, Floats] = _nearest(self._places, costs, barred, m)
        return neighbours

    def classes(self, partition: Partition) -> Clustering:
        """Return the cost of a partition's classes in each column."""
        kept_parts = np.flatnonzero(partition.class_of >= 0)
        order = kept_parts[np.argsort(partition.class_of[kept_parts], kind="stable")]
        codes = self.codes[self.class_of[partition.row[order]]]
        starts = np.flatnonzero(np.diff(partition.class_of[order], prepend=-1))
        first = codes[starts]
        class_of = partition.class_of[order]
        hull = np.empty((len(starts), codes.shape[1]))
        for j in range(codes.shape[1]):
            hull[:, j] = np.maximum.reduceat(self.between(j, codes[:, j], first[class_of, j]), starts)
        return Clustering(self, first, hull)

    def cost(self, partition: Partition) -> float:
        """Return the cost of all released cells, in columns of weight 1."""
        is_kept = partition.class_of >= 0
        sizes = sum_by_class(partition.counts[is_kept], partition.class_of[is_kept], partition.n_classes)
        return float(sizes @ self.classes(partition).hull.sum(axis=1))

    def partition(self, pieces: Sequence[Piece]) -> Partition:
        """Return the classes that pieces stand for; the records of a tuple are assigned to its pieces in turn."""
        tuples = np.array([i for piece in pieces for i in piece], np.int64)
        counts = np.array([count for piece in pieces for count in piece.values()], np.int64)
        classes = np.repeat(np.arange(len(pieces)), [len(piece) for piece in pieces])
        dealt = np.argsort(tuples, kind="stable")
        rows = np.argsort(self.class_of, kind="stable")
        # Both orders list the same records, tuple by tuple: they are split wherever either has a boundary.
        by_piece, by_row = np.cumsum(counts[dealt]), np.cumsum(self.problem.table.counts[rows])
        ends = np.union1d(by_piece, by_row)
        row, class_of = rows[np.searchsorted(by_row, ends)], classes[dealt][np.searchsorted(by_piece, ends)]
        order = np.lexsort((class_of, row))
        return Partition(row[order], np.diff(ends, prepend=0)[order], class_of[order])


@dataclass(frozen=True, eq=False)
class Clustering:
    """Classes of tuples: one value per column, and the column's cost."""

    metric: Metric
    codes: Codes  # (classes, columns)
    hull: Floats  # (classes, columns)

    def union(self, i: int) -> Floats:
        """Return the cost per column of the union of class ``i`` with each class."""
        union_hull = np.maximum(self.hull, self.hull[i])
        for j in range(union_hull.shape[1]):
            np.maximum(
                union_hull[:, j], self.metric.to_value(j, int(self.codes[i, j]))[self.codes[:, j]], out=union_hull[:, j]
            )
        return np.asarray(union_hull)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The nearest tuples of each tuple that occurs fewer than ``k`` times; none for the others."""

    metric: Metric
    k: int
    tuples: list[TupleNumbers]
    costs: list[Floats]

    @classmethod
    def from_metric(cls, metric: Metric, k: int, m: int) -> Neighbours:
        """Find the ``m`` nearest tuples of each."""
        neighbours = [(np.empty(0, np.int64), np.empty(0))] * metric.n
        rare_tuples = np.flatnonzero(metric.counts < k)
        for i, near in zip(rare_tuples.tolist(), metric.nearest_others(rare_tuples, m), strict=True):
            neighbours[i] = near
        return cls(metric, k, [tuples for tuples, _ in neighbours], [costs for _, costs in neighbours])

    @cached_property
    def crowd(self) -> Floats:
        """The distance at which each tuple reaches k records: a lower bound on its cost in any class of k.

        If too few neighbours are known, the distance of the last of them.
        """
        out = np.zeros(self.metric.n)
        counts = self.metric.counts
        for i, (tuples, costs) in enumerate(zip(self.tuples, self.costs, strict=True)):
            if len(tuples):
                met = counts[i] + np.cumsum(counts[tuples])
                out[i] = costs[min(int(np.searchsorted(met, self.k)), len(costs) - 1)]
        return out

    @property
    def bound(self) -> float:
        """A lower bound on the cost of any k-anonymous partition."""
        return float(self.metric.counts @ self.crowd)


@compiled
def _nearest(
    places: NDArray[np.int32], costs: Floats, barred: NDArray[np.bool_], m: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the ``m`` rows with the smallest Σ costs[places], sorted by cost and then by number."""
    nearest_rows = np.empty(m, np.int64)
    at = np.empty(m, np.float64)
    n = 0
    for i in range(places.shape[0]):
        if barred[i]:
            continue
        max_cost = at[m - 1] if n == m else np.inf
        cost = 0.0
        for j in range(places.shape[1]):
            cost += costs[places[i, j]]
            if cost >= max_cost:
                break
        if cost >= max_cost:
            continue
        p = min(n, m - 1)
        while p > 0 and at[p - 1] > cost:
            at[p], nearest_rows[p] = at[p - 1], nearest_rows[p - 1]
            p -= 1
        at[p], nearest_rows[p] = cost, i
        n = min(n + 1, m)
    return nearest_rows[:n], at[:n]


def parted(piece: Piece, i: int, n: int) -> tuple[Piece, Piece]:
    """Split ``n`` records of tuple ``i`` off a piece; return them and the rest."""
    left = {**piece, i: piece[i] - n}
    return {i: n}, {t: count for t, count in left.items() if count}


def united(*pieces: Piece) -> Piece:
    """Return the union of some pieces."""
    out: Piece = {}
    for piece in pieces:
        for i, count in piece.items():
            out[i] = out.get(i, 0) + count
    return out


def n_records_in(piece: Piece) -> int:
    """Return the number of records in a piece."""
    return sum(piece.values())
