"""Threshold search: prove that no cut of ordered domains has a discernibility below a threshold, depth first.

For k-anonymity and the paper's own loss, where ``k_optimize`` has looked at some nodes and the gap is still open. A
set of cuts S between a head and head and tail together costs exactly

    Σ over records of max(size of the class, k)  +  (n - k) · records in classes below k.

The first sum is F(R), where R are the cuts of the tail that S leaves out. A record's class is the records that no cut
outside R separates from it, so its size is supermodular in R and grows with it, and so is max(·, k), a convex
increasing function of it. Therefore F(R) ≥ F(∅) + Σ over cuts of R of what leaving out this cut alone adds: costs of
cuts can be added, those of different columns too; those of one column exactly, run by run (``threshold_runs.py``). The
second sum only grows with S. This gives
  - a bound: F(∅), and n - k for each record that the head alone loses;
  - cuts that exclude each other: two of the tail which, added to the head, lose more records than the limit allows
    or than a set below the threshold can lose. At least one of the two is left out. If every such pair is paid, and
    no cut pays more than what leaving it out adds, then the payments add up to a bound, as in a minimum vertex cover;
  - two cuts that lose fewer records: one of the two is left out, or these records are lost. Cuts and records share
    the payment, no record paying more than n - k (``threshold_payments.py``);
  - a cut leaves the tail if with it the bound reaches the threshold: what it loses, and what is left to pay of the
    runs of cuts that it excludes, or of the records that it loses with others. It joins the head if without it the
    bound does;
  - a cut also leaves the tail if it is useless: of every class that it splits, no part is kept.
Then the search decides about one cut: the one that costs most to leave out, preferably one that excludes much. Classes
are merged from those of the node above, so that deep nodes are cheap. The lower the threshold, the more cuts are
decided without a search; the threshold is raised by a factor until it passes the best set, and this repeats little.
The fewer records may be lost, the more cuts exclude each other: a search that loses none is the fastest, and its best
set is a start for a search that may.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from shoal.search.cuts.ordered import Axis, Chosen
from shoal.search.cuts.thresholds.classes import (
    IN,
    OPEN,
    OUT,
    Longs,
    Places,
    States,
    head_classes,
    merge_rows,
    number_intervals,
)
from shoal.search.cuts.thresholds.losses import pair_losses, single_losses
from shoal.search.cuts.thresholds.payments import Excludes, gains_of_cuts, pack_lists, pay_conflicts
from shoal.search.cuts.thresholds.runs import costs_of_cuts, run_costs
from shoal.search.losses.definitions import Discernibility
from shoal.search.problem import Problem

LISTED = 16  # rows of two cuts that may pay
# By which the threshold is raised: less where a search for twice the threshold may well not end.
FACTOR, FINER = 2.0, 1.3
MOST_CUTS = 500  # a matrix of pairs per node of the way


def can_search_by_thresholds(problem: Problem, axis: Axis) -> bool:
    """Return whether class sizes alone decide and are the loss, and keys of classes fit 64 bits."""
    return (
        isinstance(problem.objective, Discernibility)
        and problem.sizes_decide
        and not problem.keep_suppressed
        and 0 < axis.n_values <= MOST_CUTS
        and not any(domain.whole and domain.n_values > 2 for domain in axis.domains)
        and math.prod(domain.n_values for domain in axis.domains) < 1 << 62
        and problem.table.n_records < 1 << 31
    )


@dataclass(frozen=True, eq=False)
class HeadLosses:
    """The records lost under a head, and the records lost and classes split by each cut of the tail."""

    n_classes: int
    n_lost: int  # records in classes below k
    kept_discernibility: int  # the discernibility of the others
    lost: Longs  # records that are lost if the cut splits the other classes
    splits: Longs  # the splits with a part that is not


@dataclass(frozen=True, eq=False)
class Conflicts:
    """Cuts of the tail that lose records together: which exclude each other, and rows that the others lose."""

    excludes: Excludes
    tail_index: Longs  # the lists of rows are those of ``pack_lists``
    starts: Longs
    listed: Longs
    sizes: Longs

    @classmethod
    def empty(cls, n_cuts: int) -> Conflicts:
        """Return no conflicts of any cut."""
        nothing = np.zeros(n_cuts, np.int64)
        return cls(np.zeros((n_cuts, n_cuts), np.bool_), nothing, np.zeros(2, np.int64), nothing[:0], nothing[:0])


@dataclass(frozen=True, eq=False)
class RunCosts:
    """What leaving out cuts adds, as ``threshold_runs.py`` describes: single cuts, and runs of a column."""

    cuts: Longs
    squares: Longs  # where the square of each column starts
    runs: Longs


@dataclass(frozen=True, eq=False)
class CutNode:
    """A node that waits: the state of each cut, the rows to merge, and what is known of it."""

    states: States
    places: Places
    counts: Longs
    added: RunCosts | None  # if the rows are merged
    head: HeadLosses | None  # None if cuts have joined the head: then the conflicts are those of the smaller head
    conflicts: Conflicts
    bound: int  # no set below costs less


class ThresholdSearch:
    """The depth-first search of one problem with at most ``limit`` records lost."""

    def __init__(self, problem: Problem, axis: Axis, offer: Callable[[Chosen, int], int], limit: int) -> None:
        self.offer = offer  # takes a set and its cost, and returns the cost of the best set known
        self.k, self.n, self.limit = problem.least_class_size, problem.table.n_records, limit
        self.sizes = np.array([domain.n_values for domain in axis.domains])
        self.first = np.concatenate([[0], np.cumsum(self.sizes - 1)])  # the first cut of each column
        self.places = axis.places.astype(np.int16)
        self.counts = problem.table.counts.astype(np.int64)
        self.open: list[CutNode] = []
        self.n_evaluated = 0
        self.n_rows = 0  # of all evaluations
        n, q, wide = len(self.counts), len(self.sizes), int(self.sizes.max())
        slots = 1 << max(4, (2 * n - 1).bit_length())
        n_cuts = int(self.first[-1])
        self._number, self._start = np.zeros((q, wide), np.int64), np.zeros((q, wide), np.int64)
        self._slots = np.zeros(slots, np.int64), np.zeros(slots, np.int32)
        self._of_head = np.zeros(n, np.int64), np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
        self._groups = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self._sizes, self._local, self._positions = (np.zeros(s, np.int64) for s in (wide, (q, wide), (q, wide)))
        self._grid, self._pairs = np.zeros((wide, wide), np.int64), np.zeros((n_cuts, n_cuts), np.int64)
        # If nothing may be lost, all cuts that lose records together exclude each other: no rows are listed.
        self._rows = np.zeros((n_cuts, n_cuts, LISTED if limit else 0), np.int32)
        self._n_listed = np.zeros((n_cuts, n_cuts), np.int64)
        self._renumbered = np.full(n, -1)

    def begin(self) -> None:
        """Start at the root of the tree."""
        n_cuts = int(self.first[-1])
        states = np.full(n_cuts, OPEN, np.int8)
        self.open = [CutNode(states, self.places, self.counts, None, None, Conflicts.empty(n_cuts), 0)]

    def step(self, threshold: int) -> int:
        """Decide about one cut of the last open node; return the threshold, lower if a better set was found."""
        node = self.open.pop()
        if node.bound >= threshold:
            return threshold
        states, head, conflicts = node.states.copy(), node.head, node.conflicts
        places, counts, added = node.places, node.counts, node.added
        price = self.n - self.k  # of a lost record
        while True:
            self.n_evaluated += 1
            self.n_rows += len(counts)
            if added is None:
                places, counts, keys = self._merged(places, counts, states)
            base = int((counts * np.maximum(counts, self.k)).sum())
            if base >= threshold:
                return threshold
            # A set below the threshold can lose no more records than these.
            max_lost = min(self.limit, self.n - 1, (threshold - 1 - base) // max(1, price))
            grown = head is None
            if head is None:
                head = self._under_head(places, counts, states)
                cost = head.kept_discernibility + self.n * head.n_lost  # without the tail
                if head.n_lost <= max_lost and cost < threshold:
                    threshold = min(threshold, self.offer(states == IN, cost))
            if head.n_lost > max_lost:
                return threshold
            tail = states == OPEN
            leave = tail & ((head.splits == 0) | (head.n_lost + head.lost > max_lost))
            if leave.any():
                states[leave] = OUT
                added = None
                head = None if grown else head
                continue
            if not tail.any():
                return threshold
            if added is None:
                added = self._added(places, counts, keys, states)
            costs = added.cuts
            among = np.flatnonzero(tail)
            if grown:
                conflicts = self._conflicts(places, counts, states, among, head, conflicts.excludes, max_lost)
            lists = conflicts.tail_index, conflicts.starts, conflicts.listed
            prices = price * conflicts.sizes
            budget, left = prices.copy(), np.zeros_like(costs)
            paid = int(pay_conflicts(among, conflicts.excludes, costs, *lists, budget, left))
            bound = base + price * head.n_lost + paid
            if bound >= threshold:
                return threshold
            beyond, whole = gains_of_cuts(
                among, conflicts.excludes, costs, left, *lists, prices, budget, states, self.first, added.squares,
                added.runs,
            )  # fmt: skip
            must_add, must_drop = bound + left[among] >= threshold, bound + beyond >= threshold
            if (must_add & must_drop).any():
                return threshold
            if not (must_add | must_drop).any():
                break
            states[among[must_drop]] = OUT
            states[among[must_add]] = IN
            if must_add.any():
                head = None
            if must_drop.any():
                added = None
        room = threshold - base
        dear = np.minimum(costs[among], room).astype(np.float64)
        bars = np.minimum(whole, room).astype(np.float64)
        v = int(among[(np.maximum(bars, base / 1000) * dear * dear).argmax()])
        out, inside = states.copy(), states.copy()
        out[v], inside[v] = OUT, IN
        self.open.append(CutNode(out, places, counts, None, head, conflicts, bound))
        self.open.append(CutNode(inside, places, counts, added, None, conflicts, bound))  # comes first
        return threshold

    @property
    def bound(self) -> float:
        """The least bound of the open nodes."""
        return min((node.bound for node in self.open), default=math.inf)

    def _merged(self, places: Places, counts: Longs, states: States) -> tuple[Places, Longs, Longs]:
        """Return the classes under head and tail together: places, records, keys."""
        step = self._numbered(states, OPEN)
        into, sums, keys = np.empty_like(places), np.empty_like(counts), np.empty_like(counts)
        n = merge_rows(places, counts, len(counts), self._number, self._start, step, into, sums, keys, *self._slots)
        if n < len(counts) // 2:  # the rest is no longer needed
            into, sums, keys = into[:n].copy(), sums[:n].copy(), keys[:n].copy()
        return into[:n], sums[:n], keys[:n]

    def _numbered(self, states: States, min_state: int) -> Longs:
        """Number the intervals between cuts of at least this state, and return the steps of keys."""
        step = np.zeros(len(self.sizes), np.int64)
        number_intervals(states, min_state, self.first, self.sizes, self._number, self._start, step)
        return step

    def _added(self, places: Places, counts: Longs, keys: Longs, states: States) -> RunCosts:
        """Return what leaving out cuts of the tail adds; the rows were just merged."""
        step = self._numbered(states, OPEN)
        before = np.concatenate([[0], np.cumsum(states >= OPEN)])[self.first]
        squares = np.concatenate([[0], np.cumsum((np.diff(before) + 1) ** 2)])
        runs, costs = np.zeros(squares[-1], np.int64), np.zeros(len(states), np.int64)
        run_costs(
            places, counts, keys, states, self.first, self._number, step, self.k, *self._slots, *self._groups, squares,
            runs,
        )  # fmt: skip
        costs_of_cuts(states, self.first, squares, runs, costs)
        return RunCosts(costs, squares, runs)

    def _under_head(self, places: Places, counts: Longs, states: States) -> HeadLosses:
        """Group the rows by the head, and see what each cut of the tail splits."""
        step = self._numbered(states, IN)
        n = head_classes(places, counts, len(counts), self._number, step, *self._slots, *self._of_head)
        lost, splits = np.zeros(len(states), np.int64), np.zeros(len(states), np.int64)
        n_lost, kept_discernibility = single_losses(
            places, counts, *self._of_head[1:], n, states, self.first, self.k, self._sizes, lost, splits
        )
        return HeadLosses(n, n_lost, kept_discernibility, lost, splits)

    def _conflicts(
        self,
        places: Places,
        counts: Longs,
        states: States,
        tail: Longs,
        head: HeadLosses,
        excludes: Excludes,
        max_lost: int,
    ) -> Conflicts:
        """Return the conflicts under a head whose rows were just grouped, and the exclusions known before."""
        pair_losses(
            places, counts, *self._of_head[1:], head.n_classes, states, self.first, self.k, self._sizes, self._local,
            self._positions, self._grid, head.lost, self._pairs, self._rows, self._n_listed,
        )  # fmt: skip
        excludes = excludes | (head.n_lost + self._pairs > max_lost)
        np.fill_diagonal(excludes, False)
        if not self._rows.shape[2]:
            return replace(Conflicts.empty(len(states)), excludes=excludes)
        return Conflicts(excludes, *pack_lists(tail, excludes, self._rows, self._n_listed, counts, self._renumbered))
