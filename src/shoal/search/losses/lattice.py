"""What a recoding costs, and the dict LOSSES.

A loss that is a sum over cells splits by column: what the levels cost, plus what the suppressed records add.
``CellLoss`` holds these as tables, so that a node is priced from its suppressed classes alone and one look at a
node bounds every node below it. A loss of classes (``ClassLoss``) is bounded from both sides: below a node
classes can only split, above it they can only merge.

Bounds compare in the loss's own unit, ``Evaluation.value``; ``shown`` turns it into the published figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError
from shoal.search.full_domain.rollup import Steps
from shoal.table.frequency import Counts, Floats, Histogram
from shoal.table.hierarchy import Hierarchy
from shoal.table.kernels import price_levels, sum_by_class

if TYPE_CHECKING:
    from shoal.search.problem import Evaluation, Problem


class Loss(Protocol):
    """What a search asks of an objective."""

    sees_classes: bool  # whether a look at the lowest node of a box tells something (``above``)

    def floor(self) -> Floats:
        """[column, level]: what a level costs at the least, whoever is suppressed; to be summed over columns."""

    def value(self, seen: Evaluation) -> float:
        """What the node costs."""

    def below(self, seen: Evaluation) -> Floats:
        """[column, level]: the same for the nodes below, now that it is known who is lost there.

        Summed over the columns at the lowest levels of a box below the node it bounds the whole box.
        """

    def above(self, seen: Evaluation) -> float:
        """What every node above costs at the least."""

    def shown(self, value: float) -> float:
        """The published figure."""


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


class CellLoss:
    """A sum over cells. Subclasses give the prices and how a column's sum enters the figure."""

    sees_classes = False

    def __init__(self, problem: Problem) -> None:
        self.table = problem.table
        self.n = problem.table.n_records
        self._layout, self._steps = problem.rollup.layout, problem.rollup.steps
        columns = list(starmap(LevelCounts.of, zip(problem.table.hierarchies, problem.rollup.leaf_counts, strict=True)))
        prices = [self.prices(column) for column in columns]
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

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """What the cells of a column cost."""
        raise NotImplementedError

    def scaled(self, sums: Floats) -> Floats:
        """[column, level]: what sums of cells add to the value; increasing in each."""
        return np.asarray(sums / self.n * self.shares)

    def shown(self, value: float) -> float:
        """The published figure."""
        return float(value)

    def floor(self) -> Floats:
        """The levels alone."""
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


def _by_price(column: LevelCounts, price: Callable[[int], Floats]) -> CellPrices:
    """Prices that depend on the released code alone; a suppressed cell costs 1."""
    levels = [price(level) for level in range(len(column.under))]
    base = [under @ cost for under, cost in zip(column.under, levels, strict=True)]
    return CellPrices(np.array(base), tuple(1 - cost for cost in levels))


class IyengarLoss(CellLoss):
    """Mean over cells of (M−1)/(D−1), for intervals of (upper−lower)/(max−min); a suppressed cell is 1.

    V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
    """

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """The hierarchy's shares."""
        return _by_price(column, lambda level: column.hierarchy.shares[level])


class ArxLoss(CellLoss):
    """ARX's Loss: M/D per cell, each column scaled to 0 … 1, the geometric mean over the columns."""

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """M/D, a suppressed cell 1."""
        return _by_price(column, lambda level: column.hierarchy.sizes[level] / column.hierarchy.domain)

    def scaled(self, sums: Floats) -> Floats:
        """w·ln(1 + L) with L = (Σ − N/D)/(N − N/D); a column of one value loses nothing."""
        least, room = self._range
        return np.asarray(np.log1p(np.maximum(0, (sums - least) / room)) * self.shares)

    @cached_property
    def _range(self) -> tuple[Floats, Floats]:
        least = self.n / np.array([[h.domain] for h in self.table.hierarchies])
        return least, np.where(least < self.n, self.n - least, np.inf)

    def shown(self, value: float) -> float:
        """Π(1 + L)^w − 1 with weights that sum to 1; equal ones make it the geometric mean."""
        return float(np.expm1(value))


class PrecisionLoss(CellLoss):
    """1 − Prec: mean over cells of level/height; a suppressed cell is 1.

    L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5), 2002.
    """

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """level/height."""
        hierarchy = column.hierarchy
        top = max(1, hierarchy.number_of_top)
        return _by_price(column, lambda level: np.full(hierarchy.cardinality(level), hierarchy.number(level) / top))


class HeightLoss(CellLoss):
    """The sum of the levels; suppression is free."""

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """The level itself."""
        levels = [float(column.hierarchy.number(level)) for level in range(column.hierarchy.n_levels)]
        return CellPrices(np.array(levels), tuple(np.zeros(len(under)) for under in column.under))

    def scaled(self, sums: Floats) -> Floats:
        """Weighted, as it is."""
        return np.asarray(sums * self.weights)


class EntropyLoss(CellLoss):
    """Non-uniform entropy: Σ over cells of −ln(n(value)/n(released value)), a suppressed cell counts as the top.

    A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", TKDE 21(2), 2009.
    """

    @staticmethod
    def prices(column: LevelCounts) -> CellPrices:
        """ln n(released) − ln n(value), summed over records."""
        own = column.leaves @ np.log(np.maximum(column.leaves, 1))
        logs = [np.log(np.maximum(under, 1)) for under in column.under]
        base = [under @ log - own for under, log in zip(column.under, logs, strict=True)]
        return CellPrices(np.array(base), tuple(np.log(column.leaves.sum()) - log for log in logs))

    def scaled(self, sums: Floats) -> Floats:
        """Weighted, as it is."""
        return np.asarray(sums * self.weights)


# --- losses of classes ----------------------------------------------------------------------------------------


class ClassLoss:
    """A loss that sees only how records are grouped."""

    sees_classes = True

    def __init__(self, problem: Problem) -> None:
        self.n = problem.table.n_records
        self.lattice = problem.lattice
        self.least_size = problem.least_class_size
        self.may_suppress = problem.limit > 0

    def floor(self) -> Floats:
        """Nothing is known before the first look."""
        return np.zeros((len(self.lattice.shape), max(self.lattice.shape)))

    def whole(self, bound: float) -> Floats:
        """One number for a box, as if the first column alone cost it."""
        costs = self.floor()
        costs[0] = bound
        return costs

    def shown(self, value: float) -> float:
        """The published figure."""
        return float(value)


class Discernibility(ClassLoss):
    """Σ n_E² over kept classes, and n for every suppressed record.

    R. J. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005.
    """

    def value(self, seen: Evaluation) -> float:
        """As defined."""
        kept = seen.table.counts[~seen.failing].astype(np.float64)
        return float(kept @ kept) + float(self.n) * seen.n_suppressed

    def below(self, seen: Evaluation) -> Floats:
        """Who is lost pays n on every lower node; the others are in classes of an admissible size, or pay n too."""
        return self.whole(float(self.n) * seen.n_lost + float(self.least_size) * (self.n - seen.n_lost))

    def above(self, seen: Evaluation) -> float:
        """Classes only grow, and a suppressed record pays more than any class could cost it."""
        counts = seen.table.counts.astype(np.float64)
        return float(counts @ np.maximum(counts, self.least_size))


class AverageClass(ClassLoss):
    """Records per class; the suppressed records, all *, count as one class.

    C_AVG of LeFevre et al. is this figure divided by k.
    """

    def value(self, seen: Evaluation) -> float:
        """n / classes."""
        classes = len(seen.failing) - int(seen.failing.sum()) + (seen.n_suppressed > 0)
        return self.n / classes

    def below(self, seen: Evaluation) -> Floats:
        """A class of which n records can be kept splits into at most n / k."""
        most = (seen.table.counts - seen.lost) // self.least_size
        return self.whole(self.n / max(1, int(most.sum()) + self.may_suppress))

    def above(self, seen: Evaluation) -> float:
        """Classes only merge; where records are suppressed they take up at least one class."""
        return self.n / len(seen.table.counts)


class Ambiguity(ClassLoss):
    """Σ over records of the number of ground tuples that the released one could stand for; all of them if suppressed.

    M. E. Nergiz, C. Clifton, "Thoughts on k-anonymization", Data & Knowledge Engineering 63(3), 2007.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.hierarchies = problem.table.hierarchies
        self.all = math.prod(float(h.domain) for h in self.hierarchies)

    def value(self, seen: Evaluation) -> float:
        """As defined."""
        kept = np.where(seen.failing, 0, seen.table.counts)
        return float(kept @ self._tuples(seen)) + self.all * seen.n_suppressed

    def below(self, seen: Evaluation) -> Floats:
        """Who is lost could be anybody on every lower node; a record that is kept stands at least for itself."""
        return self.whole(self.all * seen.n_lost + (self.n - seen.n_lost))

    def above(self, seen: Evaluation) -> float:
        """What a record stands for only grows."""
        return float(seen.table.counts @ self._tuples(seen))

    def _tuples(self, seen: Evaluation) -> Floats:
        codes = seen.table.codes
        leaves = [
            h.sizes[level][codes[:, j]] for j, (h, level) in enumerate(zip(self.hierarchies, seen.node, strict=True))
        ]
        return np.asarray(np.prod(np.array(leaves, np.float64), axis=0))


class Classification(ClassLoss):
    """Share of the records whose label is not the most frequent of their class; a suppressed one counts as wrong.

    V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.label is None:
            raise PolicyError("objective 'classification' needs a column to predict", "name it: release.label")
        self.label = problem.label

    def value(self, seen: Evaluation) -> float:
        """As defined."""
        return float(self._wrong(seen)[~seen.failing].sum() + seen.n_suppressed) / self.n

    def below(self, seen: Evaluation) -> Floats:
        """Who is lost is wrong on every lower node; of the others all may be right."""
        return self.whole(seen.n_lost / self.n)

    def above(self, seen: Evaluation) -> float:
        """Where classes merge no more are right than before, and who is suppressed is wrong."""
        return float(self._wrong(seen).sum()) / self.n

    def _wrong(self, seen: Evaluation) -> NDArray[np.int64]:
        return seen.table.counts - most_frequent(seen.table.frequency.sensitive[self.label])


def most_frequent(labels: Histogram) -> NDArray[np.int64]:
    """Per class, how often its most frequent value occurs."""
    return np.maximum.reduceat(labels.counts, labels.starts[:-1]) if labels.n_classes else np.zeros(0, np.int64)


WITH_LABEL: dict[str, Callable[[Problem], Loss]] = {"classification": Classification}  # where a policy names one

LOSSES: dict[str, Callable[[Problem], Loss]] = {
    "loss": IyengarLoss,
    "arx-loss": ArxLoss,
    "discernibility": Discernibility,
    "average-class": AverageClass,
    "height": HeightLoss,
    "precision": PrecisionLoss,
    "entropy": EntropyLoss,
    "ambiguity": Ambiguity,
}
