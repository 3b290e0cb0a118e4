"""k-Optimize: the smallest loss of all cuts of ordered domains, proved.

R. J. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005.
Needs  models that are judged class by class; verdicts prune as far as their merging allows.
Finds  the set of values that start an interval (the first of each column always does) with the smallest loss.
Costs  one grouping per node of the set-enumeration tree, which has a node for every set; most are pruned unvisited. A
       few dozen records can still take hours: without a time budget the search ends after some thousand visited nodes,
       and if these do not prove the solution optimal, it reports a lower bound on the loss.

A node is a head (the values that start an interval) and a tail (the values that still may). Below it,
  - records in a class that fails for good under the head are suppressed; all others are in classes no smaller and in
    cells no narrower than under head and tail together. This bounds the loss of all sets between the two;
  - a value leaves the tail if its splits would lose so many records that the bound reaches the best known loss;
  - a value also leaves the tail if it is useless: every part that it splits off is lost. This requires a loss that
    depends on classes only, since a narrower cell has a value for other losses.
The rest of the tail is pruned repeatedly until no value leaves it; the value that splits the most classes comes next.
The paper searches depth first. Here the child with that value and the node with the rest of its tail, to be pruned
again, wait in a heap, and the node with the smallest bound comes first: at any time, no set costs less than that bound.
The first solution for pruning comes from hill climbing, started from the best full-domain node and from the end of a
dive into the tree, with a few restarts of a column.
If k-anonymity is all that is required, the paper's own loss, discernibility, is searched by thresholds after some nodes
(``thresholds/``): on large tables this closes gaps that stay wide here.
The paper's losses depend on classes only; losses of cells are bounded in the same way (``losses/cuts.py``).
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.models.size import KAnonymity
from shoal.recoding import FullDomain, Recoding
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.choices import Choices
from shoal.search.cuts.cut_kernels import splits
from shoal.search.cuts.cuts import recoding_of_cuts
from shoal.search.cuts.ordered import Axis, Chosen
from shoal.search.cuts.thresholds.search import FACTOR, FINER, ThresholdSearch, can_search_by_thresholds
from shoal.search.full_domain.optimal import optimal
from shoal.search.losses.cuts import IntervalClasses
from shoal.search.problem import Problem
from shoal.tables.frequency import ClassOf, Codes, Counts, Floats, FrequencyTable, packed

KICKS = 20  # columns that hill climbing restarts
SHARE = 0.5  # the largest share of the time for hill climbing
# Evaluations of tree nodes without a time budget: a number, so that every run gives the same result. If values are
# tried one by one, this many of them take as long as the rest of an evaluation.
LOOKS, VALUES = 8_000, 8
# Evaluations before a search by thresholds, which has loops to compile; and without a time budget, the rows that it may
# merge for each row of the table, or for each of a thousand if there are fewer. If records may be suppressed, this
# share of the time or the rows is for a search that suppresses none.
LOOKS_BEFORE_THRESHOLDS, ROWS, FIRST = 100, 28_000, 0.25
# The share of the remaining budget for the next threshold, and the smallest factor by which the threshold grows.
PLANNED, LEAST_RISE = 0.85, 1.03


def k_optimize(problem: Problem) -> Recoding:
    """Expand the node with the smallest bound until no bound is below the best solution."""
    require_class_by_class(problem, "k_optimize")
    search = _SetEnumeration(problem)
    search.climb_and_kick()
    bound = search.close()
    if search.best is None:
        raise problem.infeasible() if bound is None else problem.unfinished()
    closed, suppresses_minimum = bound is None, problem.suppresses_least
    return recoding_of_cuts(
        problem,
        search.axis.pieces(search.best),
        "k_optimize",
        proved=closed and suppresses_minimum,
        claim=f"no cut has a smaller loss, {problem.rule}" if closed and not suppresses_minimum else "",
        bound=bound if suppresses_minimum else None,
        n_evaluated=search.choices.n_evaluated,
    )


@dataclass(frozen=True, eq=False)
class _Tried:
    """The effect of adding each value of a tail to the head."""

    lost: Counts  # records that fail for good
    sums_added: Floats  # [value, sum]  what these records add to the sums of the bound
    n_split: Counts  # classes that it splits
    n_useful: Counts  # splits with a part that is not lost


@dataclass(frozen=True, eq=False)
class _PrunedNode:
    """A node with its pruned tail; none of its sets costs less than ``bound``."""

    tail: Chosen
    bound: float
    bounds: Floats  # with each value of the tail in the head
    n_split: Counts


class _SetEnumeration:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.choices = Choices(problem)
        self.axis, self.cost = self.choices.axis, self.choices.cost
        self.best: Chosen | None = None
        self.value = math.inf
        # If nothing may be suppressed and unions of passing classes pass, a failing class rules out all sets below.
        self.fatal = problem.models if problem.monotone else problem.absorbing
        # Sizes alone can show that records fail for good, even if other models also judge the candidates.
        table = problem.table
        self.sizes_decide = table.entities is None and all(isinstance(m, KAnonymity) for m in self.fatal)
        bare = self.sizes_decide and not problem.sees_labels
        self.table = FrequencyTable(table.columns, table.codes, table.counts) if bare else table
        self.n_looks = 0  # evaluations of tree nodes, weighted by their work
        # Stars that stay must pass too, and fewer of them may fail.
        self.prune_useless = self.cost.sees_classes_only and not problem.keep_suppressed

    # --- the first solution --------------------------------------------------------------------------------------

    def offer(self, chosen: Chosen) -> float:
        """Keep a set if it is better, and return its cost."""
        value = self.choices.evaluated(chosen).value
        if not self.excludes(value):
            self.value, self.best = value, chosen.copy()
        return value

    def excludes(self, bound: float) -> bool:
        """Return whether a cost of at least ``bound`` can no longer win, allowing for rounding of float sums."""
        return bound == math.inf or bound >= self.value - 1e-11 * max(1.0, abs(self.value))

    def climb_and_kick(self) -> None:
        """Toggle single values while it helps; then restart a column, and repeat."""
        rng = np.random.default_rng(self.problem.terms.seed)
        until = math.inf
        if self.problem.time_budget is not None:
            until = time.monotonic() + SHARE * self.problem.time_budget
        order = np.arange(self.axis.n_values)
        if (node := self.full_domain()) is not None:
            self.climb(node, order, until)
        self.climb(self.dive(until), order, until)
        for kick in range(KICKS if len(order) else 0):
            if self.best is None or time.monotonic() > until:
                return
            self.problem.progress("climbing", kick / KICKS)
            chosen = self.best & (self.axis.column != rng.choice(self.axis.column))
            self.climb(chosen, rng.permutation(order), until)

    def dive(self, until: float) -> Chosen:
        """Descend the tree by the value that splits the most classes, to the end of the tail."""
        head, tail = np.zeros(self.axis.n_values, np.bool_), np.ones(self.axis.n_values, np.bool_)
        self.offer(head)
        while time.monotonic() < until and (pruned_node := self.pruned(head, tail)) is not None:
            v = _most_splitting(pruned_node)
            head, tail = _with(head, v), _without_value(pruned_node.tail, v)
            self.offer(head)
        return head

    def full_domain(self) -> Chosen | None:
        """Return the best lattice node as intervals."""
        problem = self.problem
        seconds = None if problem.time_budget is None else SHARE / 4 * problem.time_budget
        terms = replace(problem.terms, time_budget=seconds)
        lattice = Problem(problem.table, problem.asked, terms, rollup=problem.rollup)
        try:
            answer = optimal(lattice)
        except (InfeasibleError, OutOfTimeError):
            return None
        return self.axis.of_node(answer.node) if isinstance(answer, FullDomain) else None

    def climb(self, chosen: Chosen, order: NDArray[np.int64], until: float) -> None:
        """Climb from a set by the first toggle that helps, until none does."""
        value = self.offer(chosen)
        since = 0
        while since < len(order):
            for v in order.tolist():
                if since >= len(order) or time.monotonic() > until:
                    return
                chosen = chosen.copy()
                chosen[v] = ~chosen[v]
                changed = self.offer(chosen)
                since += 1
                if changed < value - 1e-11 * max(1.0, abs(changed)):
                    value, since = changed, 0
                else:
                    chosen[v] = ~chosen[v]

    # --- the tree ------------------------------------------------------------------------------------------------

    def close(self) -> float | None:
        """Search the tree; if the search ends early, return a lower bound on the cost of every set."""
        empty = np.zeros(self.axis.n_values, np.bool_)
        heap = [(-math.inf, 0, empty, ~empty)]  # among equal bounds the older node comes first; numbers are unique
        n_nodes = self.n_looks = 0  # evaluations of the hill climbing do not count
        while heap:
            bound, _, head, tail = heapq.heappop(heap)
            if self.excludes(bound):
                return None
            if self.problem.out_of_time or (self.problem.time_budget is None and self.n_looks >= LOOKS):
                return bound
            if self.n_looks >= LOOKS_BEFORE_THRESHOLDS and can_search_by_thresholds(self.problem, self.axis):
                return self.close_by_thresholds(bound)
            if (n_nodes := n_nodes + 1) % 100 == 0:
                self._report(bound)
            pruned_node = self.pruned(head, tail)
            if pruned_node is None:
                continue
            v = _most_splitting(pruned_node)
            rest = _without_value(pruned_node.tail, v)
            heapq.heappush(heap, (pruned_node.bound, 2 * n_nodes, head, rest))
            self.offer(_with(head, v))
            heapq.heappush(heap, (float(pruned_node.bounds[v]), 2 * n_nodes + 1, _with(head, v), rest))
        return None

    def close_by_thresholds(self, bound: float) -> float | None:
        """Raise the threshold below which no set costs, up to the best; return it if the search ends early."""
        problem = self.problem
        rows = ROWS * max(1000, problem.table.n_classes)
        if problem.limit:
            rows -= self.suppress_nothing(round(FIRST * rows))
        search = ThresholdSearch(problem, self.axis, self._cheaper, problem.limit)
        return self._raised(search, math.ceil(max(0.0, bound)), FINER if problem.limit else FACTOR, rows, 0.0)

    def suppress_nothing(self, rows: int) -> int:
        """Search for a start where nothing is suppressed, which is much faster; return the rows that it merged."""
        problem = self.problem
        search = ThresholdSearch(problem, self.axis, self._cheaper, 0)
        self._raised(search, self._known_cost, FACTOR, rows, (1 - FIRST) * problem.seconds_left)
        if self.best is not None:
            until = time.monotonic() + FIRST * problem.seconds_left
            self.climb(self.best, np.arange(self.axis.n_values), until)
        return search.n_rows

    @property
    def _known_cost(self) -> int:
        """The smallest known discernibility; larger than any possible one if none is known."""
        return self.problem.table.n_records**2 + 1 if self.best is None else round(self.value)

    def _raised(self, search: ThresholdSearch, proved: int, factor: float, rows: int, seconds: float) -> float | None:
        """Raise the threshold by a factor until it passes the best; return it if the search ends early.

        It ends after so many rows, or with a time budget if no more than these seconds are left. The threshold rises by
        less where the search for it would otherwise not end.
        """
        problem = self.problem
        began, available = search.n_rows, problem.seconds_left - seconds
        passed: list[tuple[int, int]] = []  # thresholds, and the rows that it took to search for them
        while True:
            best, before = self._known_cost, search.n_rows
            left = float(rows - before)
            if problem.time_budget is not None and passed:
                spent = max(1e-9, available - (problem.seconds_left - seconds))
                left = (before - began) * (available - spent) / spent
            aim = threshold = min(best, math.ceil(proved * min(factor, _affordable(passed, left))) + 1)
            search.begin()
            for n_nodes in itertools.count(1):
                if not search.open:
                    break
                ends = search.n_rows >= rows if problem.time_budget is None else problem.seconds_left < seconds
                if ends or problem.out_of_time:
                    self.choices.n_evaluated += search.n_evaluated
                    return float(max(proved, min(search.bound, threshold)))
                threshold = search.step(threshold)
                if n_nodes % 100 == 0:
                    self._report(proved)
            if threshold < aim or aim == best:
                self.choices.n_evaluated += search.n_evaluated
                return None
            proved = aim
            passed.append((aim, search.n_rows - before))

    def _cheaper(self, chosen: Chosen, cost: int) -> int:
        """Offer a set. Its cost is verified by counting the classes; on a mismatch, nothing is proved."""
        return cost if self.offer(chosen) <= cost else self.problem.table.n_records**2 + 1

    def pruned(self, head: Chosen, tail: Chosen) -> _PrunedNode | None:
        """Prune the tail until no value leaves it; None if no value is left or no set below the node can be better."""
        while tail.any():
            sums, n_lost, tried = self._look(head, tail)
            bound = float(self.cost.bound(sums[None], np.array([n_lost]))[0])
            if n_lost > self.problem.limit or n_lost == self.problem.table.n_records or self.excludes(bound):
                return None
            bounds = np.maximum(bound, self.cost.bound(sums + tried.sums_added, n_lost + tried.lost))
            leaves = np.array([self.excludes(b) for b in bounds.tolist()]) | (n_lost + tried.lost > self.problem.limit)
            if self.prune_useless:
                leaves |= tried.n_useful == 0
            if not (leaves & tail).any():
                return _PrunedNode(tail, bound, bounds, tried.n_split)
            tail = tail & ~leaves
        return None

    def _look(self, head: Chosen, tail: Chosen) -> tuple[Floats, int, _Tried]:
        """Return the sums of the bound, the records that fail for good, and the effect of each value of the tail."""
        axis, min_records = self.axis, self.problem.least_class_size
        numbers, ends = axis.intervals(head | tail)
        codes = self.choices.codes(numbers)
        class_of, firsts = group(packed(codes))
        finest = self.table.merged(class_of, len(firsts), codes[firsts])
        around = _Around(axis, axis.intervals(head)[0], ends)
        coarse = np.column_stack([interval_of[finest.codes[:, j]] for j, interval_of in enumerate(around.outer)])
        inside, firsts = group(packed(coarse))  # the class under the head that contains each finest class
        fails = self._fails(finest.merged(inside, len(firsts), coarse[firsts]))
        suppressed_sums, kept_sums = (
            self.cost.suppressed_sums(finest.counts),
            self.cost.kept_sums(
                IntervalClasses(finest.codes, finest.counts, ends, self.problem.labels(finest)), lower_bound=True
            ),
        )
        sums = np.where(fails[inside][:, None], suppressed_sums, kept_sums).sum(axis=0)
        n_lost = int(finest.counts[fails[inside]].sum())
        extra = suppressed_sums - kept_sums
        if not self.sizes_decide:
            values = np.flatnonzero(tail)
            tried = _Tried(*_nothing(axis.n_values, extra.shape[1]))
        else:
            values = np.flatnonzero(tail & around.whole[axis.column]) if axis.n_values else np.zeros(0, np.int64)
            order = np.argsort(inside, kind="stable")
            starts = np.searchsorted(inside[order], np.arange(len(firsts) + 1))
            tried = _Tried(
                *splits(
                    order,
                    starts,
                    finest.codes,
                    finest.counts,
                    extra,
                    ~fails,
                    around.low,
                    around.high,
                    around.value,
                    min_records,
                    axis.n_values,
                )
            )
        self.n_looks += 1 + len(values) // VALUES
        for v in values.tolist():
            self._try(v, finest, inside, fails, extra, around, tried)
        return sums, n_lost, tried

    def _fails(self, classes: FrequencyTable) -> NDArray[np.bool_]:
        """Return whether each class fails for good."""
        if self.sizes_decide:
            return np.asarray(classes.counts < self.problem.least_class_size)
        fails = np.zeros(classes.n_classes, np.bool_)
        for model in self.fatal:
            fails |= ~model.passes(classes)
        return fails

    def _try(
        self,
        v: int,
        finest: FrequencyTable,
        inside: ClassOf,
        fails: NDArray[np.bool_],
        extra: Floats,
        around: _Around,
        tried: _Tried,
    ) -> None:
        """Split the classes at one value, and judge the parts by all models."""
        side = around.side(v, finest.codes)
        rows = np.flatnonzero((side >= 0) & ~fails[inside])
        if not len(rows):
            return
        keys = inside[rows] * (int(side.max()) + 1) + side[rows]
        parts, part_of = np.unique(keys, return_inverse=True)
        class_of_part = parts // (int(side.max()) + 1)
        is_split = np.bincount(class_of_part)[class_of_part] > 1
        judged = finest.selected(rows).merged(
            part_of, len(parts), np.zeros((len(parts), finest.codes.shape[1]), np.int32)
        )
        lost = self._fails(judged)
        tried.lost[v] = judged.counts[lost].sum()
        tried.sums_added[v] = extra[rows[lost[part_of]]].sum(axis=0)
        tried.n_split[v] = len(np.unique(class_of_part[is_split]))
        tried.n_useful[v] = int((is_split & ~lost).sum())

    def _report(self, bound: float) -> None:
        if self.best is None:
            self.problem.progress("looking for an answer", 0)
        else:
            share = max(0.0, bound / self.value) if self.value > 0 else 1.0
            self.problem.progress(f"best {self.value:.4f}, none below {bound:.4f}", share)


class _Around:
    """The positions of a node's finest intervals within those of its head."""

    def __init__(self, axis: Axis, numbers: list[NDArray[np.int32]], ends: list[list[tuple[int, int]]]) -> None:
        shape = len(ends), max(map(len, ends))
        self.axis = axis
        self.whole = np.array([domain.whole for domain in axis.domains])
        self.outer: list[NDArray[np.int32]] = []  # by column, the head's interval around each finest one
        self.low, self.high = np.zeros(shape, np.int64), np.zeros(shape, np.int64)  # its ends, in finest intervals
        self.value = np.full(shape, -1)  # the value that starts the finest interval; -1 if no single value does
        for j, column_ends in enumerate(ends):
            firsts = np.array([first for first, _ in column_ends])
            outer = numbers[j][firsts]
            self.outer.append(outer)
            self.low[j, : len(column_ends)] = np.searchsorted(outer, outer, "left")
            self.high[j, : len(column_ends)] = np.searchsorted(outer, outer, "right") - 1
            if not self.whole[j]:
                self.value[j, 1 : len(column_ends)] = axis.listed[j][firsts[1:] - 1]

    def side(self, v: int, codes: Codes) -> NDArray[np.int64]:
        """Return the side of a value on which each class lies; -1 if the value lies in another interval."""
        j = int(self.axis.column[v])
        column = codes[:, j].astype(np.int64)
        if self.whole[j]:
            return column
        at = int(np.flatnonzero(self.value[j] == v)[0])
        near = (column >= self.low[j, at]) & (column <= self.high[j, at])
        return np.where(near, column >= at, -1)


def _nothing(n_values: int, n_sums: int) -> tuple[Counts, Floats, Counts, Counts]:
    zeros = np.zeros(n_values, np.int64)
    return zeros, np.zeros((n_values, n_sums)), zeros.copy(), zeros.copy()


def _affordable(passed: list[tuple[int, int]], left: float) -> float:
    """Return by how much the threshold may rise so that the search for it needs about what is left.

    The work grows with a power of the threshold, which the last two searches tell.
    """
    if len(passed) < 2 or left <= 0:
        return math.inf
    (low, low_count), (high, high_count) = passed[-2:]
    power = max(1.0, math.log(max(1, high_count) / max(1, low_count)) / math.log(high / low))
    return max(LEAST_RISE, float((PLANNED * left / max(1, high_count)) ** (1 / power)))


def _most_splitting(pruned_node: _PrunedNode) -> int:
    """Return the first value in the paper's order of the tail; among ties, the first."""
    return int(np.where(pruned_node.tail, pruned_node.n_split, -1).argmax())


def _with(chosen: Chosen, v: int) -> Chosen:
    chosen = chosen.copy()
    chosen[v] = True
    return chosen


def _without_value(chosen: Chosen, v: int) -> Chosen:
    chosen = chosen.copy()
    chosen[v] = False
    return chosen
