"""What a loss is to a search of the lattice: its value at a node, and bounds on the nodes below and above.

A loss that is a sum over cells splits by column: what the levels cost, plus what the suppressed records add.
``CellLoss`` holds these as tables, so that a node is priced from its suppressed classes alone and one look at a
node bounds every node below it. A loss of classes (``ClassLoss``) is bounded from both sides: below a node
classes can only split, above it they can only merge. The losses themselves are in ``definitions.py``.

Bounds compare in the loss's own unit, that of ``value``; ``shown`` turns it into the published figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.search.full_domain.rollup import Steps
from shoal.table.frequency import Counts, Floats, Histogram
from shoal.table.hierarchy import Hierarchy
from shoal.table.kernels import price_levels, sum_by_class

if TYPE_CHECKING:
    from shoal.search.problem import Evaluation, Problem

# What of a released value a price looks at: its share of the domain (0 … 1), the leaves that it stands for, its level,
# or the records of the table under it.
Measure = Literal["share", "size", "level", "records"]


class Loss:
    """What a search of the lattice asks of an objective, and the price of a cell that all searches share."""

    sees_classes: ClassVar[bool]  # whether a look at the lowest node of a box tells something (``above``)
    measure: ClassVar[Measure | None] = None  # None where what the cells are released as makes no difference
    suppressed: float  # what a suppressed cell costs, or a suppressed record adds

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """What a cell costs, by the measure of the value that it is released as."""
        raise NotImplementedError

    def floor(self) -> Floats:
        """[column, level]: what a level costs at the least, whoever is suppressed; to be summed over columns."""
        raise NotImplementedError

    def value(self, seen: Evaluation) -> float:
        """What the node costs."""
        raise NotImplementedError

    def below(self, seen: Evaluation) -> Floats:
        """[column, level]: the same for the nodes below, now that it is known who is lost there.

        Summed over the columns at the lowest levels of a box below the node it bounds the whole box.
        """
        raise NotImplementedError

    def above(self, seen: Evaluation) -> float:
        """What every node above costs at the least."""
        raise NotImplementedError

    def shown(self, value: float) -> float:
        """The figure that is published for a value."""
        return float(value)


# --- losses of cells ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellPrices:
    """What the cells of one column cost: all records at each level, and what suppression adds to a cell."""

    base: Floats  # (levels)             Σ over records, nothing suppressed
    extra: tuple[Floats, ...]  # [level][code]  more for a suppressed record; never less on a lower level


class LevelCounts(NamedTuple):
    """A column as its prices depend on it."""

    hierarchy: Hierarchy
    leaves: Counts  # records of each leaf
    under: list[Counts]  # [level][code]  records of each label

    @classmethod
    def of(cls, hierarchy: Hierarchy, leaves: Counts) -> LevelCounts:
        """Counted on every level."""
        levels = zip(hierarchy.table.astype(np.int64), hierarchy.labels, strict=True)
        return cls(hierarchy, leaves, [sum_by_class(leaves, codes, len(labels)) for codes, labels in levels])

    def prices(self, loss: type[Loss], level: int) -> Floats:
        """Per label of a level, what a cell costs that is released as it."""
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
    """A sum over cells. A subclass says what a cell costs, and how the sums of the columns make the figure.

    The price of a cell grows with its measure, and a suppressed cell costs no less than any other. Only a
    ``mean_of_kept`` leaves suppressed cells out; its measure must be the level.
    """

    sees_classes = False
    linear: ClassVar[bool] = True  # whether the figure is a weighted sum of the columns' sums
    mean_of_kept: ClassVar[bool] = False  # whether suppressed cells cost nothing, and the mean is over the others
    suppressed = 1.0

    def __init__(self, problem: Problem) -> None:
        self.table = problem.table
        self.n = problem.table.n_records
        self._layout, self._steps = problem.rollup.layout, problem.rollup.steps
        leaf_counts = problem.rollup.leaf_counts
        self.own = np.array([self.own_price(counts) for counts in leaf_counts])
        columns = list(starmap(LevelCounts.of, zip(problem.table.hierarchies, leaf_counts, strict=True)))
        prices = [self._cell_prices(column, own) for column, own in zip(columns, self.own.tolist(), strict=True)]
        self._base = np.zeros(self._steps.n_labels.shape)
        for j, column in enumerate(prices):
            self._base[j, : len(column.base)] = column.base
        self._offsets, self._extra = _cheapest_under(columns, prices, self._steps)
        self._columns = np.arange(len(columns))
        self.weights = np.array(problem.weights)[:, None]
        self.shares = self.weights / self.weights.sum()
        self._floor = self.scaled(self._base)
        self._last: Evaluation | None = None
        self._last_costs = self._floor

    # What a loss defines, besides its measure and price.

    @staticmethod
    def own_price(_leaf_counts: Counts) -> float:
        """What the cells of a column cost as they were, where that is taken off the sum."""
        return 0.0

    def scaled(self, sums: Floats) -> Floats:
        """[column, level]: what sums of cells add to the value; increasing in each."""
        return np.asarray(sums / self.n * self.shares)

    def at_least(self, total: float) -> float:
        """The published figure of answers whose cells cost ``total`` at the least, priced by the slopes."""
        return total / self.n

    # What follows from it.

    @property
    def slopes(self) -> Floats:
        """What a unit of each column's price adds to a record's cost: weights that sum to 1, each price from 0 to 1."""
        return np.asarray(self.shares[:, 0])

    def tangent(self, sums: Floats) -> Floats:
        """The same where the columns' sums are these already; where the loss is linear there is no difference."""
        return self.slopes

    def totals(self, kept: Floats, n_suppressed: int) -> Floats:
        """Per column the sum that ``scaled`` takes, from what the cells cost that are kept."""
        if self.mean_of_kept:
            return np.asarray(kept / max(1, self.n - n_suppressed))
        return np.asarray(kept + n_suppressed * self.suppressed - self.own)

    def published(self, kept: Floats, n_suppressed: int) -> float:
        """The figure, from what the kept cells of each column cost."""
        return self.shown(float(self.scaled(self.totals(kept, n_suppressed)[:, None]).sum()))

    def _cell_prices(self, column: LevelCounts, own: float) -> CellPrices:
        """What the cells of a column cost on each level."""
        levels = range(len(column.under))
        prices = [column.prices(type(self), level) for level in levels]
        sums = np.array([under @ price for under, price in zip(column.under, prices, strict=True)])
        if self.mean_of_kept:
            return CellPrices(sums / max(1, self.n), tuple(np.zeros(len(price)) for price in prices))
        return CellPrices(sums - own, tuple(self.suppressed - price for price in prices))

    def floor(self) -> Floats:
        """What the levels cost with nobody suppressed."""
        return self._floor

    def value(self, seen: Evaluation) -> float:
        """The levels, and the suppressed records."""
        if not seen.n_suppressed:
            costs = self._floor
        elif seen.all_lost:
            costs = self._with_lost(seen)
        else:
            costs = self._with(seen, np.where(seen.failing, seen.table.counts, 0))
        return float(costs[self._columns, seen.table.levels].sum())

    def below(self, seen: Evaluation) -> Floats:
        """Who is lost here is suppressed on every lower node."""
        return self._with_lost(seen) if seen.n_lost else self._floor

    def _with_lost(self, seen: Evaluation) -> Floats:
        """Value and bounds of a look are asked for one after the other: the costs are kept in between."""
        if self._last is not seen:
            self._last = seen
            self._last_costs = self._with(seen, seen.lost)
        return self._last_costs

    def above(self, seen: Evaluation) -> float:
        """Nothing beyond the floor."""
        return -np.inf

    def _with(self, seen: Evaluation, suppressed: NDArray[np.int64]) -> Floats:
        """[column, level]: the least cost of a level or any above it, up to the node's own.

        As many records of each class are suppressed. On a lower level a class may be any code under it, and the bound
        takes the cheapest, so that a higher level may have a lower bound.
        """
        table, layout = seen.table, self._layout
        sums = price_levels(
            *(table.keys, suppressed, table.levels, layout.words, layout.shifts, layout.masks),
            *(self._steps.n_labels, self._offsets, self._extra, self._base),
        )
        return self.scaled(sums)


def _cheapest_under(
    columns: list[LevelCounts], prices: list[CellPrices], steps: Steps
) -> tuple[NDArray[np.int64], Floats]:
    """For every code of every level and every lower level, the least extra among the codes under it that occur.

    Returned end to end with ``offsets[column, level, lower level]``.
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
    to = np.repeat(starts, steps.n_labels[j, lower]) + steps.codes.astype(np.int64)
    extra = np.concatenate([prices[column].extra[level] for column, level, _ in pairs])
    occurs = np.concatenate([columns[column].under[level] > 0 for column, level, _ in pairs])
    least = np.full(ends[-1], np.inf)
    np.minimum.at(least, to[occurs], extra[occurs])
    offsets = np.zeros_like(steps.offsets)
    offsets[j, upper, lower] = starts
    return offsets, np.where(least < np.inf, least, 0)


# --- losses of classes ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class LossClasses:
    """Classes as a loss sees them; what takes time is made only where it is asked for."""

    counts: Counts
    prices: Callable[[], Floats]  # [column, class]: of its cells, where the loss has a measure
    labels: Callable[[], Histogram]  # of the column to predict


class ClassLoss(Loss):
    """A loss that sees how records are grouped. A subclass says what a class adds, and what the sum means."""

    sees_classes = True
    suppressed = 0.0

    def __init__(self, problem: Problem) -> None:
        self.n = problem.table.n_records
        self.label = problem.label
        self._rollup = problem.rollup
        self.lattice = problem.lattice
        self.least_size = problem.least_class_size
        self.may_suppress = problem.limit > 0

    # What a loss defines.

    def kept(self, classes: LossClasses, *, least: bool = False) -> Floats:
        """What each class adds; ``least``: where it may still merge with others, or grow into their place."""
        raise NotImplementedError

    def figure(self, sums: Floats, n_suppressed: Counts) -> Floats:
        """The published figure of each sum."""
        return sums

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """No merging of the classes has a lower figure, given least sums with those gone who are lost for good."""
        return self.figure(sums, n_lost)

    def least_below(self, seen: Evaluation) -> float:
        """What every node below costs at the least."""
        raise NotImplementedError

    # What follows from it.

    def published(self, sums: float, n_suppressed: int) -> float:
        """The figure, from what the kept classes and the suppressed records add."""
        one: tuple[Any, Any] = (np.float64(sums), np.int64(n_suppressed))  # as arrays, in less time
        return float(self.figure(*one))

    def value(self, seen: Evaluation) -> float:
        """What the kept classes and the suppressed records add up to."""
        kept = self.kept(self._classes(seen))
        if not seen.n_suppressed:
            return self.published(float(kept.sum()), 0)
        total = float(kept[~seen.failing].sum()) + self.suppressed * seen.n_suppressed
        return self.published(total, seen.n_suppressed)

    def above(self, seen: Evaluation) -> float:
        """Classes only merge, and a suppressed record costs no less than one that is kept."""
        return self.published(float(self.kept(self._classes(seen), least=True).sum()), 0)

    def floor(self) -> Floats:
        """Nothing is known before the first look."""
        return np.zeros((len(self.lattice.shape), max(self.lattice.shape)))

    def below(self, seen: Evaluation) -> Floats:
        """One number for a box, as if the first column alone cost it."""
        costs = self.floor()
        costs[0] = self.least_below(seen)
        return costs

    @cached_property
    def _columns(self) -> list[LevelCounts]:
        return list(starmap(LevelCounts.of, zip(self._rollup.table.hierarchies, self._rollup.leaf_counts, strict=True)))

    def _classes(self, seen: Evaluation) -> LossClasses:
        """The classes of a node."""
        return LossClasses(seen.table.counts, lambda: self._prices(seen), lambda: self._labels(seen))

    def _prices(self, seen: Evaluation) -> Floats:
        """[column, class]: the price of the label of each class."""
        of_node = zip(self._columns, seen.node, seen.table.codes.T, strict=True)
        return np.array([column.prices(type(self), level)[codes] for column, level, codes in of_node])

    def _labels(self, seen: Evaluation) -> Histogram:
        return seen.table.frequency.sensitive[str(self.label)]
