"""Cover: pick sets of k to 2k−1 close records greedily until all are covered, then make the cover a partition.

A. Meyerson, R. Williams, "On the complexity of optimal k-anonymity", PODS 2004.
Needs  models that are judged class by class. The theorems apply to k-anonymity alone: classes that fail another model
       are merged with the nearest, at an unbounded cost.
Finds  a partition into classes of k to 2k−1 records (more only if all are equal); cells in which a class differs are
       suppressed. The paper proves a factor of O(k log k), with a constant of at most 4, for sets chosen among all
       subsets, and O(k log m) for m columns if the sets are balls. This module proves and claims (2k−1)²/(2k)·H for
       all subsets and twice that for balls, H = 1 + 1/2 + … + 1/(2k−1), or a smaller factor that the solution proves.
       Records are suppressed only if the other models cannot be satisfied otherwise.
Costs  all subsets of k to 2k−1 records if they are few (SUBSETS); otherwise O(n²) distances for n distinct tuples,
       usually a few times, and O(kn) memory.

Proof of the factor. The diameter d(S) of a set is the largest weighted number of columns in which two of its records
differ. If the records of a class of size s differ in a column, they do so in at least s−1 pairs. Hence at most s·d/2
columns differ, and the class costs at most s²·d/2. In an optimal solution, whose classes can be assumed to have at most
2k−1 records, a class costs at least k·d. The greedy algorithm picks the set with the smallest diameter per uncovered
record; as for every set cover, the diameters of the chosen sets add up to at most H times those of the optimum. If two
sets share a record, the larger one gives it up. If both have k records, their union has at most 2k−1, and its diameter
is at most the sum of theirs.

Balls. A set consists of the j ≤ 2k−1 uncovered records nearest to an uncovered record, filled up to k with the nearest
covered records, and is priced by its radius. If i records of an optimal class are uncovered, the ball around one of
them with j = i has a radius of at most the diameter of the class. The chosen radii therefore add up to at most H times
these diameters, and the diameters to twice that. The paper takes all records within a radius; limiting their number
replaces log m by H.

A ball that needs covered records takes them immediately from classes with more than k records; if there are none, it
joins the class of the nearest record, which has exactly k. So the covered records always form a partition. Groups of k
or more equal records are classes from the start.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from shoal.recoding import Recoding
from shoal.search.cells.classes import recoding_of_partition, require_class_by_class
from shoal.search.cells.forest import claimed, hiding
from shoal.search.cells.merge import least_size, merged, require_crowd
from shoal.search.cells.nearest import Metric, Neighbours, Piece, TupleNumbers, n_records_in, united
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats

SUBSETS = 100_000  # sets tried, for at most FEW records; beyond that, balls are used
MAX_RECORDS_FOR_SUBSETS = 64
MAX_NEIGHBOURS = 200  # neighbours kept per tuple, but at most 4k and at least 2k: a ball has up to 2k−1 records


def cover(problem: Problem) -> Recoding:
    """Choose among all subsets if they are few, otherwise among balls."""
    require_class_by_class(problem, "cover")
    hidden = hiding(problem)
    k = least_size(hidden)
    require_crowd(hidden, k)
    metric = Metric(hidden)
    neighbours = Neighbours.from_metric(metric, k, width(metric, k))
    is_small = hidden.table.n_records <= MAX_RECORDS_FOR_SUBSETS and n_subsets(hidden.table.n_records, k) <= SUBSETS
    start = metric.partition(by_subsets(metric, k) if is_small else Balls(neighbours).classes())
    partition = merged(metric, start)
    factor = (2 * k - 1) ** 2 / (2 * k if is_small else k) * sum(1 / i for i in range(1, 2 * k))
    answer = recoding_of_partition(
        hidden,
        partition,
        "cover",
        claim=claimed(
            "suppresses at most {} times as many cells as necessary",
            factor if partition is start else None,
            neighbours,
            partition,
        ),
        n_evaluated=metric.n_scans,
    )
    return replace(answer, hierarchies=problem.table.hierarchies)


# --- all subsets -----------------------------------------------------------------------------------------------------


def n_subsets(n: int, k: int) -> int:
    """Return the number of sets of k to 2k−1 out of n records."""
    return sum(comb(n, s) for s in range(k, min(2 * k - 1, n) + 1))


def by_subsets(metric: Metric, k: int) -> list[Piece]:
    """Choose greedily among all sets of k to 2k−1 records; among ties the first, smaller sets before larger ones."""
    tuple_of = np.repeat(np.arange(metric.n), metric.counts)
    distances = metric.matrix()[np.ix_(tuple_of, tuple_of)]
    n = len(tuple_of)
    sets = [np.array(list(combinations(range(n), s))) for s in range(k, min(2 * k - 1, n) + 1)]
    diameters = np.concatenate([_diameters(subsets, distances) for subsets in sets])
    membership = np.concatenate([_members(subsets, n) for subsets in sets])
    chosen = []
    uncovered = np.ones(n, np.float32)  # counts of so few are exact, and the product is fast
    while uncovered.any():
        new = membership @ uncovered
        with np.errstate(divide="ignore", invalid="ignore"):
            prices = np.where(new > 0, diameters / new, np.inf)
        # Among equally cheap sets, take the one that covers the most; if the price is 0, all its records are free.
        best = np.flatnonzero(prices == prices.min())
        best = best[new[best].argmax()]
        chosen.append(set(np.flatnonzero(membership[best]).tolist()))
        uncovered[membership[best] > 0] = 0
    classes = []
    for records in reduced(chosen, k):
        piece: Piece = defaultdict(int)
        for record in sorted(records):
            piece[int(tuple_of[record])] += 1
        classes.append(piece)
    return classes


def _diameters(sets: NDArray[np.int64], distances: Floats) -> Floats:
    out = np.zeros(len(sets))
    for a, b in combinations(sets.T, 2):
        np.maximum(out, distances[a, b], out=out)
    return out


def _members(sets: NDArray[np.int64], n: int) -> NDArray[np.float32]:
    membership = np.zeros((len(sets), n), np.float32)
    np.put_along_axis(membership, sets, 1, axis=1)
    return membership


def reduced(sets: list[set[int]], k: int) -> list[set[int]]:
    """Turn a cover by sets of k to 2k−1 records into a partition into such sets, without a larger sum of diameters."""
    classes: list[set[int]] = []
    for records in sets:
        members = set(records)
        for other in list(classes):
            for shared in sorted(members & other):
                if len(other) > k:
                    other.remove(shared)
                elif len(members) > k:
                    members.remove(shared)
                else:
                    classes.remove(other)
                    members |= other
                    break
        classes.append(members)
    return classes


# --- balls -----------------------------------------------------------------------------------------------------------


def width(metric: Metric, k: int) -> int:
    """Return the number of neighbours to keep per tuple; more of them mean fewer searches when these are covered."""
    return min(metric.n - 1, max(2 * k, min(4 * k, MAX_NEIGHBOURS)))


class Balls:
    """Chooses balls around uncovered records greedily, and maintains a partition of the covered records."""

    def __init__(self, neighbours: Neighbours) -> None:
        self.metric, self.k = neighbours.metric, neighbours.k
        self.crowd = neighbours.crowd  # the radius that reaches k records
        self.tuples, self.costs = list(neighbours.tuples), list(neighbours.costs)
        self.width = width(self.metric, self.k)
        counts = self.metric.counts
        self.left = np.where(counts < self.k, counts, 0)  # records that are not covered
        self.pieces: dict[int, Piece] = {}
        self.n_made = 0
        self.classes_of: dict[int, set[int]] = defaultdict(set)  # of a tuple with covered records
        for i in np.flatnonzero(counts >= self.k).tolist():
            self._add({i: int(counts[i])})

    def classes(self) -> list[Piece]:
        """Choose balls until they cover everything."""
        n_left = int(self.left.sum())
        balls = [self._priced(i) for i in np.flatnonzero(self.left).tolist()]
        heapq.heapify(balls)
        while balls:
            price, _, i = heapq.heappop(balls)
            if not self.left[i]:
                continue
            # Prices only rise as fewer records are uncovered: a ball whose price has not risen is still the cheapest.
            now = self._priced(i)
            if now[0] > price:
                heapq.heappush(balls, now)
                continue
            self._cover(i, -now[1])
            self.metric.problem.progress("covering records", 1 - float(self.left.sum()) / n_left)
        return [self.pieces[at] for at in sorted(self.pieces)]

    def _priced(self, i: int) -> tuple[float, int, int]:
        """Return the smallest radius per new record of a ball around tuple ``i``, and minus its most new records."""
        max_size = 2 * self.k - 1
        while True:
            tuples, costs = self.tuples[i], self.costs[i]
            met = self.left[i] + np.cumsum(self.left[tuples])
            new = np.minimum(np.concatenate([self.left[i : i + 1], met]), max_size)
            prices = np.maximum(np.concatenate([[0.0], costs]), self.crowd[i]) / new
            best = len(prices) - 1 - int(prices[::-1].argmin())
            # Tuples that are not listed are no nearer than the last listed one: stop once they cannot be cheaper.
            complete = len(tuples) < self.width or self.width == self.metric.n - 1 or new[-1] == max_size
            if complete or prices[best] < max(costs[-1], self.crowd[i]) / max_size:
                return float(prices[best]), -int(new[best]), i
            self.tuples[i], self.costs[i] = self._nearest(i, self.left == 0, self.width)

    def _nearest(self, i: int, barred: NDArray[np.bool_], m: int) -> tuple[TupleNumbers, Floats]:
        barred[i] = True
        return self.metric.nearest(i, m, barred)

    def _cover(self, i: int, new: int) -> None:
        """Add the ball of ``new`` uncovered records around tuple ``i``, with covered ones if it has fewer than k.

        In that case it contains all uncovered records within the radius of k records: with more it would be cheaper.
        """
        ball: Piece = {}
        radius = self.crowd[i]
        for t, cost in zip([i, *self.tuples[i].tolist()], [0.0, *self.costs[i].tolist()], strict=True):
            if n_taken := min(int(self.left[t]), new - n_records_in(ball)):
                ball[t] = n_taken
                radius = max(radius, cost)
        for t, n_taken in ball.items():
            self.left[t] -= n_taken
        if n_records_in(ball) >= self.k:
            self._add(ball)
            return
        covered, costs = self._nearest(i, self.metric.counts == self.left, self.k)
        near = [i, *covered[costs <= radius].tolist()]
        for t in near:
            for at in sorted(self.classes_of[t]):
                self._lend(ball, at, t)
        if n_records_in(ball) < self.k:
            at = next(at for t in near for at in sorted(self.classes_of[t]))
            ball = united(ball, self._removed(at))
        self._add(ball)

    def _lend(self, ball: Piece, at: int, t: int) -> None:
        """Move records of tuple ``t`` from a class with more than k records to the ball, which has fewer."""
        piece = self.pieces[at]
        n_taken = min(self.k - n_records_in(ball), n_records_in(piece) - self.k, piece[t])
        if n_taken > 0:
            ball[t] = ball.get(t, 0) + n_taken
            piece[t] -= n_taken
            if not piece[t]:
                del piece[t]
                self.classes_of[t].discard(at)

    def _add(self, piece: Piece) -> None:
        at = self.n_made
        self.n_made += 1
        self.pieces[at] = piece
        for t in piece:
            self.classes_of[t].add(at)

    def _removed(self, at: int) -> Piece:
        piece = self.pieces.pop(at)
        for t in piece:
            self.classes_of[t].discard(at)
        return piece
