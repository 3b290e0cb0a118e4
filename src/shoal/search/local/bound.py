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
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.kernels import sum_by_class
from shoal.search.cells.classes import Partition
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
from shoal.search.local.rule_prices import (
    SLIGHT,
    Lists,
    ValueRules,
    lists_of,
    value_rules,
    visit_passing_classes,
)
from shoal.search.local.rules import ClassRules, class_rules_of
from shoal.search.losses.definitions import ArxLoss
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats

AT_ONCE = 10_000_000  # tuples looked at in one call: some tenths of a second
MOST = 100 * AT_ONCE  # in a round; beyond, the bound is the best so far
ROUNDS = 2  # a benchmark takes more: the bound gains little, and a run waits for it
ENOUGH = 0.01  # overpaid classes for each tuple with which the rounds end,
STEADY = 1e-4  # if the sum of all prices changed by no more than this share
LIFTED = 1.02  # guessed prices: in most classes they are below what these cost
PULL = 0.3  # of the mean price, by which a record gets dearer that no class takes
PULLS, SWEEPS = 5, 10  # in a round
PASSING_ROUNDS = 5  # where classes must pass more than a size,
PASSING_LOOKS = 5_000  # at each tuple and value, after which there is no further one,
PASSING_WORK = AT_ONCE  # or at all of them, unless there is a time budget to use up
PASSING_PULL = 0.4  # of the mean price that the first of them proves
BETWEEN = 1 / 3  # the power of a bound's share of the cost that is the share to begin with
FAINT = 0.1  # that share at the least
MEMBERS = 24  # of an overpaid class, for which there is room on average


def least_loss(problem: Problem, space: Space, partition: Partition, guess: Floats) -> tuple[float | None, str]:
    """Return a bound on the objective in its published unit, and in words if it bounds another figure.

    ``guess`` are prices of the tuples in proportion to the mean cost of a record, for columns of about these weights,
    or zeros. They are only lowered until no class is overpaid, so whatever they are, the bound holds.

    In any class, at least k records of the table lie under the cells of its records. Ranges and sets may be cheaper
    than any label, so the bound assumes that their columns cost nothing.
    """
    free_of_charge = space.loss.mean_of_kept and problem.limit > 0  # to suppress a record
    if not isinstance(problem.objective, CellLoss) or free_of_charge:
        return None, ""
    rules = class_rules_of(problem)
    tuples = PricedTuples.of(space, space.loss.slopes, partition, rules.least)
    mean = float(tuples.cost @ tuples.counts) / max(1, problem.n_records)
    found = list(least_costs(problem, tuples, 0 if guess.any() else ROUNDS, LIFTED * mean * guess))
    if found and rules.column is not None:
        found += least_costs_of_passing(problem, PricedValues.of(space, tuples, partition, rules), PASSING_ROUNDS)
    if not found:
        return None, ""
    total = max(found)
    bound = space.loss.at_least(total)
    if not isinstance(space.loss, ArxLoss):
        return bound, ""
    mean = math.floor(space.loss.mean_at_least(total) * 1e4) / 1e4  # down: what is claimed must hold
    meeting = "" if rules.column is None else " that meets the requirements"
    return bound, f"no recoding along these hierarchies{meeting} has a mean cell loss below {mean:.4f}"


@dataclass(frozen=True, eq=False)
class PricedTuples:
    """The tuples with the labels that they can share, and what they cost in a solution; above the cheapest cells."""

    k: int  # no class has fewer records
    ladder: Ladder
    ground: float  # the cheapest cells of all columns
    most: Floats  # (tuples)  no price can be higher
    class_of: Ints  # (parts)  of the solution
    tuple_of: Ints
    counts: Ints
    cost: Floats

    @classmethod
    def of(cls, space: Space, weights: Floats, partition: Partition, k: int | None = None) -> PricedTuples:
        """Price the labels of each column with a weight; few values come first, since their groups end soonest."""
        problem = space.problem
        k = problem.least_class_size if k is None else k
        counts = sum_by_class(problem.table.counts, space.tuple_of_row, len(space.codes))
        labels = [j for j, cells in enumerate(problem.cells) if cells == "hierarchy" and _in_rows(space, j)]
        order = sorted(labels, key=lambda j: len(np.unique(space.codes[:, j])))
        columns = [space.columns[j] for j in order]
        # A leaf that is written like the top costs as much as a label, and nothing as a set.
        least = [c.node_prices.min() if j in labels else c.node_prices[0].min() for j, c in enumerate(space.columns)]
        costs = [(space.columns[j].node_prices - least[j]) * weights[j] for j in order]
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
        most = np.zeros(len(counts))
        for i, cost in enumerate(costs):
            most += cost[-1][ladder.codes[:, i]]
        if problem.limit > 0 or problem.keep_suppressed:
            most = np.minimum(most, space.suppressed(weights))
        else:  # who needs others costs them as much: one of k may be worth a class of all
            most *= k
        kept = np.flatnonzero(partition.class_of >= 0)
        kept = kept[np.argsort(partition.class_of[kept], kind="stable")]
        tuple_of, class_of = space.tuple_of_row[partition.row[kept]], partition.class_of[kept]
        cost = _paid(ladder, tuple_of, class_of)
        ground = float(np.asarray(weights) @ np.array(least))
        return cls(k, ladder, ground, most, class_of, tuple_of, partition.counts[kept], cost)


@dataclass(frozen=True, eq=False)
class PricedValues:
    """The same by sensitive value: a tuple with records of two values is two, which may have different prices."""

    priced: PricedTuples
    rules: ValueRules

    @classmethod
    def of(cls, space: Space, tuples: PricedTuples, partition: Partition, rules: ClassRules) -> PricedValues:
        """Divide the tuples by the value of the column that has rules."""
        histogram = space.problem.table.sensitive[rules.column or ""]
        n_values, lengths = histogram.n_values, np.diff(histogram.starts)
        keys = space.tuple_of_row[histogram.class_of_entry] * n_values + histogram.values
        units, unit_of = np.unique(keys, return_inverse=True)
        kept = np.flatnonzero(partition.class_of >= 0)
        kept = kept[np.argsort(partition.class_of[kept], kind="stable")]
        # A part of a row is all of it, unless the row has one value only.
        n_entries = lengths[partition.row[kept]]
        part = np.repeat(np.arange(len(kept)), n_entries)
        within = np.arange(len(part)) - np.repeat(np.cumsum(n_entries) - n_entries, n_entries)
        entries = histogram.starts[partition.row[kept]][part] + within
        counts = np.where(n_entries[part] == 1, partition.counts[kept][part], histogram.counts[entries])
        tuple_of, class_of = unit_of[entries], partition.class_of[kept][part]
        ladder = tuples.ladder._replace(
            codes=np.ascontiguousarray(tuples.ladder.codes[units // n_values]),
            counts=sum_by_class(histogram.counts, unit_of, len(units)),
        )
        cost, most = _paid(ladder, tuple_of, class_of), tuples.most[units // n_values]
        priced = PricedTuples(tuples.k, ladder, tuples.ground, most, class_of, tuple_of, counts, cost)
        return cls(priced, value_rules((units % n_values).astype(np.int64), rules.rows))


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


def least_costs(
    problem: Problem, tuples: PricedTuples, n_rounds: int, guess: Floats | None = None
) -> Iterator[float]:  # fmt: skip
    """Yield ever higher bounds on the cost of all records, as long as there is time; of the first, one from a guess."""
    ground = tuples.ground * problem.n_records
    if not len(tuples.ladder.sizes):
        yield ground
        return
    prices = tuples.most.copy()
    np.minimum.at(prices, tuples.tuple_of, tuples.cost)
    if not _Looking.at(problem, tuples).lower(prices, CAP, 0.0):
        return
    best = _proved(tuples.ladder.counts, prices)
    yield ground + best
    for prices in chain(_lowered(problem, tuples, guess), fair_prices(problem, tuples, n_rounds)):
        if (proved := _proved(tuples.ladder.counts, prices)) > best:
            best = proved
            yield ground + best


def _lowered(problem: Problem, tuples: PricedTuples, guess: Floats | None) -> Iterator[Floats]:
    """Yield the guessed prices, if any, lowered until no class is overpaid."""
    if guess is not None and guess.any():
        prices = np.minimum(tuples.most, guess)
        if _Looking.at(problem, tuples).lower(prices, LOWER, 0.5):
            yield prices


def fair_prices(problem: Problem, tuples: PricedTuples, n_rounds: int, work: int | None = None) -> Iterator[Floats]:
    """Yield prices of the tuples that no class overpays, one round after the other, as long as there is time.

    With ``work``, the rounds end after about so many tuples have been looked at.
    """
    ladder = tuples.ladder
    counts = ladder.counts
    looking = _Looking.at(problem, tuples)
    room = looking.overpaid
    paid = np.bincount(tuples.tuple_of, tuples.cost * tuples.counts, len(counts))
    kept = np.bincount(tuples.tuple_of, tuples.counts, len(counts))
    prices = np.minimum(tuples.most, (paid + (counts - kept) * tuples.most) / counts)
    pool = _Pool.of(tuples)
    pull = PULL * float((counts * prices).sum()) / problem.n_records  # not by BLAS, which adds in its threads' order
    for i in range(n_rounds):
        lowered = prices.copy()
        if pull <= 0 or not looking.lower(lowered, LOWER, (i + 1) / (n_rounds + 1)):
            return
        yield lowered
        if work is not None and looking.work[0] > work:
            return
        before = float((counts * prices).sum())
        pool.add(room)
        pool.raised(prices, tuples.most, counts, pull)
        if room.n[0] <= ENOUGH * len(counts) and abs(float((counts * prices).sum()) - before) <= STEADY * before:
            return


def _proved(counts: Ints, prices: Floats) -> float:
    """Return the sum of prices, less what classes may be overpaid without being counted as such."""
    return max(0.0, float(counts @ prices) * (1 - 2 * OVER) - OVER * OVER * int(counts.sum()))


def least_costs_of_passing(problem: Problem, values: PricedValues, n_rounds: int) -> Iterator[float]:
    """Yield ever higher bounds on the cost of all records in classes that pass, as long as there is time.

    The cost of a solution may be far above any bound, so prices begin between it and the bound by the smallest size.
    A round lowers them until no class is overpaid that may pass. The next one begins halfway between both, and raises
    them by what the classes known so far allow.
    """
    tuples, rules = values.priced, values.rules
    counts = tuples.ladder.counts
    if not len(tuples.ladder.sizes):
        return
    looking = _Looking.at(problem, tuples)
    low = tuples.most.copy()
    np.minimum.at(low, tuples.tuple_of, tuples.cost)
    paid = np.bincount(tuples.tuple_of, tuples.cost * tuples.counts, len(counts))
    kept = np.bincount(tuples.tuple_of, tuples.counts, len(counts))
    prices = np.minimum(tuples.most, (paid + (counts - kept) * tuples.most) / counts)
    if not looking.lower(low, CAP, 0.0) or (whole := float((counts * prices).sum())) <= 0:
        return
    prices *= max(FAINT, float((counts * low).sum()) / whole) ** BETWEEN
    n = len(counts) + 64
    room, pool, lists = overpaid_of(n, n * MEMBERS), _Pool.of(tuples), lists_of(rules)
    best, pull, least = 0.0, 0.0, -float(tuples.most.max())
    most = PASSING_WORK if problem.time_budget is None else PASSING_LOOKS * len(counts)
    for i in range(n_rounds):
        low = prices.copy()
        if not looking.lower_passing(low, rules, lists, room, (i + 1) / (n_rounds + 1)):
            return
        proved = _proved(counts, low) - SLIGHT * float((counts * np.abs(low)).sum())
        if proved > best:
            best = proved
            yield tuples.ground * problem.n_records + best
        else:
            pull *= 2
        pull = pull or PASSING_PULL * max(FAINT * whole, best) / problem.n_records
        if looking.work[0] > most:
            return
        pool.add(room)
        prices = (prices + low) / 2
        pool.raised(prices, tuples.most, counts, pull, least)


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

    def lower(self, prices: Floats, what: int, share: float) -> bool:
        """Lower prices until no class is overpaid; False if there is no time for it."""
        self.overpaid.n[0] = 0
        of = (prices, self.k, what, self.overpaid, AT_ONCE)
        return self._visited(lambda visit: visit_classes(self.ladder, visit, *of), share)

    def lower_passing(self, prices: Floats, rules: ValueRules, lists: Lists, room: Overpaid, share: float) -> bool:
        """Lower prices until no class is overpaid that may pass; False if there is no time for it."""
        room.n[0] = 0
        of = (rules, lists, prices, room, AT_ONCE // 4)
        return self._visited(lambda visit: visit_passing_classes(self.ladder, visit, *of), share)

    def _visited(self, go_on: Callable[[ClassVisit], bool], share: float) -> bool:
        """Visit all classes; False if there is no time for it."""
        visit = visit_of(self.ladder, self.k)
        ended = False
        while not ended:
            self.problem.progress("bounding", share)
            if self.problem.out_of_time or visit.work[0] > MOST:
                return False
            ended = go_on(visit)
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

    def raised(self, prices: Floats, most: Floats, counts: Ints, pull: float, least: float = 0.0) -> None:
        """Raise the prices in place."""
        raise_prices(
            prices, most, counts.astype(np.float64), self.use, self.starts, self.members, self.shares, self.limits,
            least, pull, PULLS, SWEEPS,
        )  # fmt: skip
