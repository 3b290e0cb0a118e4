"""Losses as lattice searches use them: the value at a node, and bounds for the nodes below and above it.

A loss that is a sum over cells splits by column: the cost of the levels, plus what the suppressed records add.
``CellLoss`` holds these as tables, so that a node is priced from its suppressed classes alone and evaluating one node
bounds every node below it. A loss of classes (``ClassLoss``) is bounded from both sides: below a node, classes can
only split; above it, they can only merge. The losses themselves are in ``definitions.py``.

Bounds compare in the loss's own unit, that of ``value``; ``published_figure`` turns it into the published figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import sum_by_class
from shoal.compiled.nodes import price_levels
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search.full_domain.rollup import Steps
from shoal.tables.frequency import Counts, Floats, Histogram

if TYPE_CHECKING:
    from shoal.search.problem import Evaluation, Problem

# The measure of a released value that its price depends on: its share of the domain (0 … 1), the number of leaves it
# stands for, its level, or the number of records of the table under it.
Measure = Literal["share", "size", "level", "records"]


class Loss:
    """What a lattice search needs from an objective, and the price of a cell that all searches share."""

    sees_classes: ClassVar[bool]  # whether evaluating the lowest node of a box gives a bound (``above``)
    measure: ClassVar[Measure | None] = None  # None if the loss does not depend on the released values
    suppressed: float  # the cost of a suppressed cell, or what a suppressed record adds

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return the price of a cell, given the measure of its released value."""
        raise NotImplementedError

    def floor(self) -> Floats:
        """Return [column, level]: the smallest cost of a level under any suppression, to be summed over columns."""
        raise NotImplementedError

    def value(self, evaluation: Evaluation) -> float:
        """Return the cost of the node."""
        raise NotImplementedError

    def below(self, evaluation: Evaluation) -> Floats:
        """Return [column, level]: the smallest cost for the nodes below, given the records that are lost there.

        The sum over the columns at the lowest levels of a box below the node bounds the whole box.
        """
        raise NotImplementedError

    def above(self, evaluation: Evaluation) -> float:
        """Return a lower bound on the cost of every node above."""
        raise NotImplementedError

    def published_figure(self, value: float) -> float:
        """Return the published figure for a value."""
        return float(value)


# --- losses of cells ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellPrices:
    """The prices of one column's cells: all records at each level, and what suppression adds to a cell."""

    base: Floats  # (levels)             Σ over records, nothing suppressed
    extra: tuple[Floats, ...]  # [level][code]  extra cost of a suppressed record; never smaller on a lower level


class LevelCounts(NamedTuple):
    """The record counts of a column that its prices depend on."""

    hierarchy: Hierarchy
    leaves: Counts  # records of each leaf
    under: list[Counts]  # [level][code]  records of each label

    @classmethod
    def from_leaves(cls, hierarchy: Hierarchy, leaves: Counts) -> LevelCounts:
        """Count the records of each label on every level."""
        levels = zip(hierarchy.table.astype(np.int64), hierarchy.labels, strict=True)
        return cls(hierarchy, leaves, [sum_by_class(leaves, codes, len(labels)) for codes, labels in levels])

    def prices(self, loss: type[Loss], level: int) -> Floats:
        """Return the price of a cell released as each label of a level."""
        hierarchy = self.hierarchy
        match loss.measure:
            case "share":
                measured = hierarchy.shares[level]
            case "size":
                measured = hierarchy.sizes[level].astype(np.float64)
            case "level":
                measured = np.full(hierarchy.cardinality(level), float(hierarchy.number(level)))
            case "records":
                measured = self.under[level].astype(np.float64)
            case None:
                return np.zeros(hierarchy.cardinality(level))
        return loss.price(measured, hierarchy)


class CellLoss(Loss):
    """A sum over cells. A subclass defines the price of a cell, and the figure computed from the columns' sums.

    The price of a cell grows with its measure, and a suppressed cell costs at least as much as any other. Only a
    ``mean_of_kept`` leaves out suppressed cells; its measure must be the level.
    """

    sees_classes = False
    linear: ClassVar[bool] = True  # whether the figure is a weighted sum of the columns' sums
    mean_of_kept: ClassVar[bool] = False  # whether suppressed cells are free and the mean is over the others
    suppressed = 1.0

    def __init__(self, problem: Problem) -> None:
        self.table = problem.table
        self.n = problem.table.n_records
        self._layout, self._steps = problem.rollup.layout, problem.rollup.steps
        leaf_counts = problem.table.leaf_counts
        self.own_prices = np.array([self.own_price(counts) for counts in leaf_counts])
        columns = list(starmap(LevelCounts.from_leaves, zip(problem.table.hierarchies, leaf_counts, strict=True)))
        prices = [
            self._cell_prices(column, own_price)
            for column, own_price in zip(columns, self.own_prices.tolist(), strict=True)
        ]
        self._base = np.zeros(self._steps.n_labels.shape)
        for j, column in enumerate(prices):
            self._base[j, : len(column.base)] = column.base
        self._prices = prices
        self._offsets, self._extra = _cheapest_under(columns, prices, self._steps)
        self._columns = np.arange(len(columns))
        self.weights = np.array(problem.weights)[:, None]
        self.shares = self.weights / self.weights.sum()
        self._floor = self.scaled(self._base)
        self._last: tuple[Evaluation | None, Floats] = None, self._floor

    # Defined by a loss, besides its measure and price.

    @staticmethod
    def own_price(_leaf_counts: Counts) -> float:
        """Return the price of a column's original cells, if the loss subtracts it from the sum."""
        return 0.0

    def scaled(self, sums: Floats) -> Floats:
        """Return [column, level]: what sums of cells add to the value; increasing in each."""
        return np.asarray(sums / self.n * self.shares)

    def at_least(self, total: float) -> float:
        """Return a lower bound on the published figure if the cells, priced by the slopes, cost at least ``total``."""
        return total / self.n

    # Derived from these definitions.

    @property
    def slopes(self) -> Floats:
        """Return what a unit of each column's price adds to a record's cost: weights that sum to 1, prices in 0 … 1."""
        return np.asarray(self.shares[:, 0])

    def tangent(self, sums: Floats) -> Floats:
        """Return the slopes at the given sums of the columns; the same as ``slopes`` for a linear loss."""
        return self.slopes

    def totals(self, kept_costs: Floats, n_suppressed: int) -> Floats:
        """Return the sum per column that ``scaled`` takes, from the cost of the kept cells."""
        if self.mean_of_kept:
            return np.asarray(kept_costs / max(1, self.n - n_suppressed))
        return np.asarray(kept_costs + n_suppressed * self.suppressed - self.own_prices)

    def published(self, kept_costs: Floats, n_suppressed: int) -> float:
        """Return the published figure, from the cost of each column's kept cells."""
        return self.published_figure(float(self.scaled(self.totals(kept_costs, n_suppressed)[:, None]).sum()))

    def _cell_prices(self, column: LevelCounts, own_price: float) -> CellPrices:
        """Return the prices of a column's cells on each level."""
        levels = range(len(column.under))
        prices = [column.prices(type(self), level) for level in levels]
        sums = np.array([under @ price for under, price in zip(column.under, prices, strict=True)])
        if self.mean_of_kept:
            return CellPrices(sums / max(1, self.n), tuple(np.zeros(len(price)) for price in prices))
        return CellPrices(sums - own_price, tuple(self.suppressed - price for price in prices))

    @property
    def base(self) -> Floats:
        """Return [column, level]: the sums of all cells, nothing suppressed."""
        return self._base

    def suppressed_extra(self) -> Floats:
        """Return [column, level, code at level 0]: what suppressing a record adds to its cell."""
        hierarchies = self.table.hierarchies
        extra = np.zeros((*self._base.shape, max(h.cardinality(0) for h in hierarchies)))
        for j, (hierarchy, prices) in enumerate(zip(hierarchies, self._prices, strict=True)):
            for level, of_label in enumerate(prices.extra):
                extra[j, level, hierarchy.table[0]] = of_label[hierarchy.table[level]]
        return extra

    def floor(self) -> Floats:
        """Return the cost of the levels without suppression."""
        return self._floor

    def value(self, evaluation: Evaluation) -> float:
        """Return the cost of the levels and of the suppressed records."""
        if not evaluation.n_suppressed:
            costs = self._floor
        elif evaluation.all_lost:
            costs = self._with_lost(evaluation)
        else:
            costs = self._with(evaluation, np.where(evaluation.failing, evaluation.table.counts, 0))
        return float(costs[self._columns, evaluation.table.levels].sum())

    def below(self, evaluation: Evaluation) -> Floats:
        """Return a bound: records lost here are suppressed on every lower node."""
        return self._with_lost(evaluation) if evaluation.n_lost else self._floor

    def _with_lost(self, evaluation: Evaluation) -> Floats:
        """Return the costs with lost records, cached because value and bounds of an evaluation are used in turn."""
        last, costs = self._last  # as one: threads that evaluate other nodes may replace both
        if last is not evaluation:
            costs = self._with(evaluation, evaluation.lost)
            self._last = evaluation, costs
        return costs

    def above(self, evaluation: Evaluation) -> float:
        """Return no bound beyond the floor."""
        return -np.inf

    def _with(self, evaluation: Evaluation, suppressed: NDArray[np.int64]) -> Floats:
        """Return [column, level]: the smallest cost of a level or any above it, up to the node's own level.

        ``suppressed`` gives the suppressed records per class. On a lower level, a class can be any code under it; the
        bound takes the cheapest, so a higher level may have a lower bound.
        """
        table, layout = evaluation.table, self._layout
        sums = price_levels(
            *(table.keys, suppressed, table.levels, layout.words, layout.shifts, layout.masks),
            *(self._steps.n_labels, self._offsets, self._extra, self._base),
        )
        return self.scaled(sums)


def _cheapest_under(
    columns: list[LevelCounts], prices: list[CellPrices], steps: Steps
) -> tuple[NDArray[np.int64], Floats]:
    """Return, for every code and every lower level, the smallest extra cost among the occurring codes under it.

    The arrays are concatenated, with ``offsets[column, level, lower level]``.
    """
    pairs = [
        (j, lower, upper)
        for j, column in enumerate(columns)
        for lower in range(len(column.under))
        for upper in range(lower, len(column.under))
    ]  # in the order of the steps
    j, lower, upper = np.array(pairs).T
    ends = steps.n_labels[j, upper].cumsum()
    starts = ends - steps.n_labels[j, upper]
    target = np.repeat(starts, steps.n_labels[j, lower]) + steps.codes.astype(np.int64)
    extra = np.concatenate([prices[column].extra[level] for column, level, _ in pairs])
    occurs = np.concatenate([columns[column].under[level] > 0 for column, level, _ in pairs])
    cheapest = np.full(ends[-1], np.inf)
    np.minimum.at(cheapest, target[occurs], extra[occurs])
    offsets = np.zeros_like(steps.offsets)
    offsets[j, upper, lower] = starts
    return offsets, np.where(cheapest < np.inf, cheapest, 0)


# --- losses of classes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LossClasses:
    """Classes as a loss sees them; expensive parts are computed only on demand."""

    counts: Counts
    prices: Callable[[], Floats]  # [column, class]: prices of its cells, if the loss has a measure
    labels: Callable[[], Histogram]  # of the column to predict


class ClassLoss(Loss):
    """A loss that depends on how records are grouped. A subclass defines what a class adds and what the sum means."""

    sees_classes = True
    suppressed = 0.0

    def __init__(self, problem: Problem) -> None:
        self.n = problem.table.n_records
        self.label = problem.label
        self._rollup = problem.rollup
        self.lattice = problem.lattice
        self.least_size = problem.least_class_size
        self.may_suppress = problem.limit > 0

    # Defined by a loss.

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        """Return what each class adds; ``lower_bound``: a lower bound if it may still merge with others or grow."""
        raise NotImplementedError

    def figure(self, sums: Floats, n_suppressed: Counts) -> Floats:
        """Return the published figure of each sum."""
        return sums

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """Return a lower bound on the figure after any merging of classes, from least sums and the lost records."""
        return self.figure(sums, n_lost)

    def least_below(self, evaluation: Evaluation) -> float:
        """Return a lower bound on the cost of every node below."""
        raise NotImplementedError

    # Derived from these definitions.

    def published(self, sums: float, n_suppressed: int) -> float:
        """Return the published figure, from what the kept classes and the suppressed records add."""
        scalars: tuple[Any, Any] = (np.float64(sums), np.int64(n_suppressed))  # NumPy scalars, faster than arrays
        return float(self.figure(*scalars))

    def value(self, evaluation: Evaluation) -> float:
        """Return the total of the kept classes and the suppressed records."""
        class_costs = self.kept_sums(self._classes(evaluation))
        if not evaluation.n_suppressed:
            return self.published(float(class_costs.sum()), 0)
        total = float(class_costs[~evaluation.failing].sum()) + self.suppressed * evaluation.n_suppressed
        return self.published(total, evaluation.n_suppressed)

    def above(self, evaluation: Evaluation) -> float:
        """Return a bound: classes only merge, and a suppressed record costs at least as much as a kept one."""
        return self.published(float(self.kept_sums(self._classes(evaluation), lower_bound=True).sum()), 0)

    def floor(self) -> Floats:
        """Return zeros: nothing is known before the first evaluation."""
        return np.zeros((len(self.lattice.shape), max(self.lattice.shape)))

    def below(self, evaluation: Evaluation) -> Floats:
        """Return one bound for the whole box, assigned to the first column."""
        costs = self.floor()
        costs[0] = self.least_below(evaluation)
        return costs

    @cached_property
    def _columns(self) -> list[LevelCounts]:
        return list(
            starmap(
                LevelCounts.from_leaves,
                zip(self._rollup.table.hierarchies, self._rollup.table.leaf_counts, strict=True),
            )
        )

    def _classes(self, evaluation: Evaluation) -> LossClasses:
        """Return the classes of a node."""
        return LossClasses(evaluation.table.counts, lambda: self._prices(evaluation), lambda: self._labels(evaluation))

    def _prices(self, evaluation: Evaluation) -> Floats:
        """Return [column, class]: the price of each class's label."""
        of_node = zip(self._columns, evaluation.node, evaluation.table.codes.T, strict=True)
        return np.array([column.prices(type(self), level)[codes] for column, level, codes in of_node])

    def _labels(self, evaluation: Evaluation) -> Histogram:
        return evaluation.table.frequency.sensitive[str(self.label)]
