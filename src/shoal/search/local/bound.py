"""A lower bound for any recoding of cells: prices of records that no class of k or more overpays.

First each record is priced as if it could choose the best k records of the whole table, whoever else needs them. Then
the records have to share their companions: a linear program over all possible classes, of which those that matter are
added round by round (cutting planes). Every round ends with prices that no class overpays (``prices.py``), so
each is a proof, and the best one counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import sum_by_class
from shoal.search.cells.classes import Partition
from shoal.search.cells.merge import least_size
from shoal.search.local.boxes import Space
from shoal.search.local.kernels import Ints
from shoal.search.local.prices import (
    CAP,
    LOWER,
    OVER,
    ClassVisit,
    Ladder,
    Overpaid,
    overpaid_of,
    raise_prices,
    visit_classes,
    visit_of,
)
from shoal.search.losses.definitions import ArxLoss
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats

AT_ONCE = 10_000_000  # tuples looked at in one call: some tenths of a second
MAX_LOOKS = 100 * AT_ONCE  # in a round; beyond, the bound is the best so far
ROUNDS = 6  # a benchmark takes more, which gains little
LOOKS = 20_000  # at each tuple, after which no further round begins
ENOUGH = 0.01  # overpaid classes for each tuple with which the rounds end,
STEADY = 1e-4  # if the sum of all prices changed by no more than this share
PULL = 0.3  # of the mean price, by which a record gets dearer that no class takes
PULLS, SWEEPS = 5, 10  # in a round


def least_loss(problem: Problem, space: Space, partition: Partition) -> tuple[float | None, str]:
    """Return a bound on the objective in its published unit, and in words if it bounds another figure.

    In any class, at least k records of the table lie under the cells of its records. Ranges and sets may be cheaper
    than any label, so the bound assumes that their columns cost nothing.
    """
    free_of_charge = space.loss.mean_of_kept and problem.limit > 0  # to suppress a record
    if not isinstance(problem.objective, CellLoss) or free_of_charge:
        return None, ""
    tuples = PricedTuples.of(space, space.loss.slopes, partition)
    totals = list(least_costs(problem, tuples, ROUNDS, LOOKS * len(tuples.ladder.counts)))
    if not totals:
        return None, ""
    total = max(totals)
    bound = space.loss.at_least(total)
    if not isinstance(space.loss, ArxLoss):
        return bound, ""
    mean = math.floor(space.loss.mean_at_least(total) * 1e4) / 1e4  # down: what is claimed must hold
    return bound, f"no recoding along these hierarchies has a mean cell loss below {mean:.4f}"


@dataclass(frozen=True, eq=False)
class PricedTuples:
    """The tuples with the labels that they can share, and what they cost in a solution; above the cheapest cells."""

    k: int  # no class has fewer records
    ladder: Ladder
    ground: float  # the cheapest cells of all columns
    max_prices: Floats  # (tuples)  no price can be higher
    class_of: Ints  # (parts)  of the solution
    tuple_of: Ints
    counts: Ints
    cost: Floats

    @classmethod
    def of(cls, space: Space, weights: Floats, partition: Partition) -> PricedTuples:
        """Price the labels of each column with a weight; few values come first, since their groups end soonest."""
        problem = space.problem
        k = least_size(problem)
        counts = sum_by_class(problem.table.counts, space.tuple_of_row, len(space.codes))
        labels = [j for j, cells in enumerate(problem.cells) if cells == "hierarchy" and _in_rows(space, j)]
        order = sorted(labels, key=lambda j: len(np.unique(space.codes[:, j])))
        columns = [space.columns[j] for j in order]
        # A leaf that is written like the top costs as much as a label, and nothing as a set.
        cheapest = [c.node_prices.min() if j in labels else c.node_prices[0].min() for j, c in enumerate(space.columns)]
        costs = [(space.columns[j].node_prices - cheapest[j]) * weights[j] for j in order]
        sizes = [column.nodes.size for column in columns]
        ladder = Ladder(
            np.ascontiguousarray(space.codes[:, order].astype(np.int32)),
            counts,
            np.array([len(column.nodes) for column in columns], np.int64),
            np.array([column.nodes.shape[1] for column in columns], np.int64),
            np.cumsum([0, *sizes])[:-1].astype(np.int64),
            np.concatenate([np.zeros(0, np.int32), *(column.nodes.ravel() for column in columns)]),
            np.concatenate([np.zeros(0), *(cost.ravel() for cost in costs)]),
        )
        max_prices = np.zeros(len(counts))
        for i, cost in enumerate(costs):
            max_prices += cost[-1][ladder.codes[:, i]]
        if problem.limit > 0 or problem.keep_suppressed:
            max_prices = np.minimum(max_prices, space.suppressed(weights))
        else:  # who needs others costs them as much: one of k may be worth a class of all
            max_prices *= k
        in_class = np.flatnonzero(partition.class_of >= 0)
        in_class = in_class[np.argsort(partition.class_of[in_class], kind="stable")]
        tuple_of, class_of = space.tuple_of_row[partition.row[in_class]], partition.class_of[in_class]
        cost = _paid(ladder, tuple_of, class_of)
        ground = float(np.asarray(weights) @ np.array(cheapest))
        return cls(k, ladder, ground, max_prices, class_of, tuple_of, partition.counts[in_class], cost)


def _in_rows(space: Space, j: int) -> bool:
    """Return whether the ranks of every label of a column are adjacent; where not, it is taken to cost nothing."""
    nodes = space.columns[j].nodes
    return all(1 + np.count_nonzero(np.diff(row)) == len(np.unique(row)) for row in nodes)


def _paid(ladder: Ladder, tuple_of: Ints, class_of: Ints) -> Floats:
    """Return what each part costs per record at the lowest labels that all of its class share; classes are in order."""
    cost = np.zeros(len(tuple_of))
    if not len(tuple_of):
        return cost
    firsts = np.flatnonzero(np.diff(class_of, prepend=-1))
    lengths = np.diff(firsts, append=len(class_of))
    for j, (start, height, size) in enumerate(zip(ladder.starts, ladder.heights, ladder.sizes, strict=True)):
        ranks = ladder.codes[tuple_of, j]
        price = ladder.costs[start + (height - 1) * size + ranks]
        for level in range(int(height))[::-1]:
            at = ladder.nodes[start + level * size + ranks]
            alike = np.minimum.reduceat(at, firsts) == np.maximum.reduceat(at, firsts)
            price = np.where(np.repeat(alike, lengths), ladder.costs[start + level * size + ranks], price)
        cost += price
    return cost


# --- prices ------------------------------------------------------------------------------------------------------


def least_costs(problem: Problem, tuples: PricedTuples, n_rounds: int, work: float = math.inf) -> Iterator[float]:
    """Yield ever higher bounds on the cost of all records, as long as there is time."""
    ground = tuples.ground * problem.n_records
    if not len(tuples.ladder.sizes):
        yield ground
        return
    prices = tuples.max_prices.copy()
    np.minimum.at(prices, tuples.tuple_of, tuples.cost)
    if not _Looking.at(problem, tuples).lower(prices, CAP, 0.0):
        return
    best = _proved(tuples.ladder.counts, prices)
    yield ground + best
    for prices in fair_prices(problem, tuples, n_rounds, work):
        if (proved := _proved(tuples.ladder.counts, prices)) > best:
            best = proved
            yield ground + best


def fair_prices(problem: Problem, tuples: PricedTuples, n_rounds: int, work: float) -> Iterator[Floats]:
    """Yield prices of the tuples that no class overpays, one round after the other, as long as there is time.

    No round begins after ``work`` tuples have been looked at.
    """
    ladder = tuples.ladder
    counts = ladder.counts
    looking = _Looking.at(problem, tuples)
    room = looking.overpaid
    paid = np.bincount(tuples.tuple_of, tuples.cost * tuples.counts, len(counts))
    n_kept = np.bincount(tuples.tuple_of, tuples.counts, len(counts))
    prices = np.minimum(tuples.max_prices, (paid + (counts - n_kept) * tuples.max_prices) / counts)
    pool = _Pool.of(tuples)
    pull = PULL * float((counts * prices).sum()) / problem.n_records  # not by BLAS, which adds in its threads' order
    for i in range(n_rounds):
        lowered = prices.copy()
        if pull <= 0 or not looking.lower(lowered, LOWER, (i + 1) / (n_rounds + 1)):
            return
        yield lowered
        if looking.work[0] > work:
            return
        before = float((counts * prices).sum())
        pool.add(room)
        pool.raised(prices, tuples.max_prices, counts, pull)
        if room.n[0] <= ENOUGH * len(counts) and abs(float((counts * prices).sum()) - before) <= STEADY * before:
            return


def _proved(counts: Ints, prices: Floats) -> float:
    """Return the sum of prices, less what classes may be overpaid without being counted as such."""
    return max(0.0, float(counts @ prices) * (1 - 2 * OVER) - OVER * OVER * int(counts.sum()))


@dataclass(frozen=True, eq=False)
class _Looking:
    """Visits of all classes, in calls short enough to be interrupted."""

    problem: Problem
    ladder: Ladder
    k: int
    overpaid: Overpaid
    work: Ints  # (1)  tuples looked at

    @classmethod
    def at(cls, problem: Problem, tuples: PricedTuples) -> _Looking:
        """Begin to look at the classes of these tuples."""
        k, n = tuples.k, len(tuples.ladder.counts) + 64
        return cls(problem, tuples.ladder, k, overpaid_of(n, n * min(k, 16) + k), np.zeros(1, np.int64))

    def lower(self, prices: Floats, treatment: int, share: float) -> bool:
        """Lower prices until no class is overpaid; False if there is no time for it."""
        self.overpaid.n[0] = 0
        arguments = (prices, self.k, treatment, self.overpaid, AT_ONCE)
        return self._visited(lambda visit: visit_classes(self.ladder, visit, *arguments), share)

    def _visited(self, go_on: Callable[[ClassVisit], bool], share: float) -> bool:
        """Visit all classes; False if there is no time for it."""
        visit = visit_of(self.ladder, self.k)
        finished = False
        while not finished:
            self.problem.progress("bounding", share)
            if self.problem.out_of_time or visit.work[0] > MAX_LOOKS:
                return False
            finished = go_on(visit)
        self.work[0] += visit.work[0]
        return True


@dataclass(eq=False)
class _Pool:
    """The classes of the linear program so far, and how much of each a fractional partition takes."""

    starts: Ints
    members: NDArray[np.int32]
    shares: Floats
    limits: Floats
    use: Floats

    @classmethod
    def of(cls, tuples: PricedTuples) -> _Pool:
        """Begin with the classes of a solution."""
        firsts = np.flatnonzero(np.diff(tuples.class_of, prepend=-1))
        starts = np.append(firsts, len(tuples.class_of)).astype(np.int64)
        return cls(
            starts,
            tuples.tuple_of.astype(np.int32),
            tuples.counts.astype(np.float64),
            np.add.reduceat(tuples.cost * tuples.counts, firsts) if len(firsts) else np.zeros(0),
            np.ones(len(firsts)),
        )

    def add(self, overpaid: Overpaid) -> None:
        """Add classes of which nothing is taken yet."""
        n = int(overpaid.n[0])
        n_members = int(overpaid.starts[n])
        self.starts = np.concatenate([self.starts, self.starts[-1] + overpaid.starts[1 : n + 1]])
        self.members = np.concatenate([self.members, overpaid.members[:n_members]])
        self.shares = np.concatenate([self.shares, overpaid.shares[:n_members]])
        self.limits = np.concatenate([self.limits, overpaid.limits[:n]])
        self.use = np.concatenate([self.use, np.zeros(n)])

    def raised(self, prices: Floats, max_prices: Floats, counts: Ints, pull: float) -> None:
        """Raise the prices in place."""
        raise_prices(
            prices, max_prices, counts.astype(np.float64), self.use, self.starts, self.members, self.shares,
            self.limits, pull, PULLS, SWEEPS,
        )  # fmt: skip
