"""Threshold search: prove that no cut of ordered domains has a discernibility below a threshold, depth first.

For k-anonymity and the paper's own loss, where ``k_optimize`` has looked at some nodes and the gap is still open. A
set of cuts S between a head and head and tail together costs exactly

    Σ over records of max(size of the class, k)  +  (n - k) · records in classes below k.

The first sum is F(R), where R are the cuts of the tail that S leaves out. A record's class is the records that no cut
outside R separates from it, so its size is supermodular in R and grows with it, and so is max(·, k), a convex
increasing function of it. Therefore F(R) ≥ F(∅) + Σ over cuts of R of what leaving out this cut alone adds: costs of
cuts can be added, those of different columns too. The second sum only grows with S. This gives
  - a bound: F(∅), and n - k for each record that the head alone loses;
  - cuts that exclude each other: two of the tail which, added to the head, lose more records than the limit allows
    or than a set below the threshold can lose. At least one of the two is left out. If every such pair is paid, and
    no cut pays more than what leaving it out adds, then the payments add up to a bound, as in a minimum vertex cover;
  - a cut leaves the tail if with it the bound reaches the threshold: what it loses, and what is left to pay of all
    cuts that it excludes. It joins the head if without it the bound does;
  - a cut also leaves the tail if it is useless: of every class that it splits, no part is kept.
Then the search decides about one cut: the one that costs most to leave out, preferably one that excludes much. Classes
are merged from those of the node above, so that deep nodes are cheap. The lower the threshold, the more cuts are
decided without a search; the threshold is raised by a factor until it passes the best set, and this repeats little.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.search.cuts.ordered import Axis, Chosen
from shoal.search.cuts.threshold_classes import (
    IN,
    OPEN,
    OUT,
    Longs,
    Places,
    States,
    head_classes,
    merge_rows,
    number_intervals,
    removal_costs,
)
from shoal.search.cuts.threshold_losses import pair_losses, single_losses
from shoal.search.cuts.threshold_payments import pay_conflicts
from shoal.search.losses.definitions import Discernibility
from shoal.search.problem import Problem

FACTOR = 2.0  # by which the threshold is raised
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
class CutNode:
    """A node that waits: the state of each cut, the rows to merge, and what is known of it."""

    states: States
    places: Places
    counts: Longs
    costs: Longs | None  # of leaving out each cut, if the rows are merged
    excludes: NDArray[np.bool_]  # [cut, cut]
    grown: bool  # the head has cuts that ``excludes`` does not take into account
    bound: int  # no set below costs less


class ThresholdSearch:
    """The depth-first search of one problem; ``below`` is called once per threshold."""

    def __init__(self, problem: Problem, axis: Axis, offer: Callable[[Chosen, int], int]) -> None:
        self.offer = offer  # takes a set and its cost, and returns the cost of the best set known
        self.k, self.n, self.limit = problem.least_class_size, problem.table.n_records, problem.limit
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
        self._sizes, self._local, self._there = (np.zeros(s, np.int64) for s in (wide, (q, wide), (q, wide)))
        self._grid, self._pairs = np.zeros((wide, wide), np.int64), np.zeros((n_cuts, n_cuts), np.int64)

    def begin(self) -> None:
        """Start at the root of the tree."""
        n_cuts = int(self.first[-1])
        none = np.zeros((n_cuts, n_cuts), np.bool_)
        self.open = [CutNode(np.full(n_cuts, OPEN, np.int8), self.places, self.counts, None, none, True, 0)]

    def step(self, threshold: int) -> int:
        """Decide about one cut of the last open node; return the threshold, lower if a better set was found."""
        node = self.open.pop()
        if node.bound >= threshold:
            return threshold
        states, excludes, grown = node.states.copy(), node.excludes, node.grown
        places, counts, costs = node.places, node.counts, node.costs
        while True:
            self.n_evaluated += 1
            self.n_rows += len(counts)
            if costs is None:
                places, counts, keys, step, bits = self._merged(places, counts, states)
            base = int((counts * np.maximum(counts, self.k)).sum())
            if base >= threshold:
                return threshold
            # A set below the threshold can lose no more records than these.
            most = min(self.limit, self.n - 1, (threshold - 1 - base) // max(1, self.n - self.k))
            heads, gone, kept, lost, splits = self._under_head(places, counts, states)
            if gone > most:
                return threshold
            cost = kept + self.n * gone  # of the head without the tail
            if cost < threshold:
                threshold = min(threshold, self.offer(states == IN, cost))
            tail = states == OPEN
            leave = tail & ((splits == 0) | (gone + lost > most))
            if leave.any():
                states[leave] = OUT
                costs = None
                continue
            if not tail.any():
                return threshold
            if costs is None:
                costs = np.zeros(len(states), np.int64)
                removal_costs(
                    places, counts, keys, len(keys), states, self.first, step, *self._slots, bits, self.k, costs
                )
            if grown:
                pair_losses(
                    places, counts, *self._of_head[1:], heads, states, self.first, self.k, self._sizes, self._local,
                    self._there, self._grid, lost, self._pairs,
                )  # fmt: skip
                excludes = excludes | (gone + self._pairs > most)
                grown = False
            among = np.flatnonzero(tail)
            left = np.zeros_like(costs)
            bound = base + (self.n - self.k) * gone + int(pay_conflicts(among, excludes, costs, left))
            if bound >= threshold:
                return threshold
            pairs = excludes[np.ix_(among, among)]
            np.fill_diagonal(pairs, False)
            lose = (self.n - self.k) * lost[among]
            without = bound + left[among] >= threshold
            within = bound + lose + pairs @ left[among] >= threshold
            if (without & within).any():
                return threshold
            if not (without | within).any():
                break
            states[among[within]] = OUT
            states[among[without]] = IN
            grown = bool(without.any())
            if within.any():
                costs = None
        room = threshold - base
        dear = np.minimum(costs[among], room).astype(np.float64)
        bars = np.minimum(lose + pairs @ costs[among], room).astype(np.float64)
        v = int(among[(np.maximum(bars, base / 1000) * dear * dear).argmax()])
        for state in (OUT, IN):  # the last comes first
            child = states.copy()
            child[v] = state
            self.open.append(
                CutNode(child, places, counts, costs if state == IN else None, excludes, state == IN, bound)
            )
        return threshold

    @property
    def bound(self) -> float:
        """The least bound of the open nodes."""
        return min((node.bound for node in self.open), default=math.inf)

    def _merged(self, places: Places, counts: Longs, states: States) -> tuple[Places, Longs, Longs, Longs, int]:
        """Return the classes under head and tail together: places, records, keys; the steps of keys; bits of a slot."""
        step = np.zeros(len(self.sizes), np.int64)
        number_intervals(states, OPEN, self.first, self.sizes, self._number, self._start, step)
        into, sums, keys = np.empty_like(places), np.empty_like(counts), np.empty_like(counts)
        n, bits = merge_rows(
            places, counts, len(counts), self._number, self._start, step, into, sums, keys, *self._slots
        )
        if n < len(counts) // 2:  # the rest is no longer needed
            into, sums, keys = into[:n].copy(), sums[:n].copy(), keys[:n].copy()
        return into[:n], sums[:n], keys[:n], step, bits

    def _under_head(self, places: Places, counts: Longs, states: States) -> tuple[int, int, int, Longs, Longs]:
        """Return the number of classes under the head, their lost records and discernibility; by cut what it splits."""
        step = np.zeros(len(self.sizes), np.int64)
        number_intervals(states, IN, self.first, self.sizes, self._number, self._start, step)
        slot_keys, slots = np.empty_like(self._slots[0]), np.empty_like(self._slots[1])
        n = head_classes(places, counts, len(counts), self._number, step, slot_keys, slots, *self._of_head)
        lost, splits = np.zeros(len(states), np.int64), np.zeros(len(states), np.int64)
        gone, kept = single_losses(
            places, counts, *self._of_head[1:], n, states, self.first, self.k, self._sizes, lost, splits
        )
        return n, gone, kept, lost, splits
