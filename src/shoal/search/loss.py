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
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.search.lattice import Node
from shoal.table.frequency import FrequencyTable
from shoal.table.kernels import sum_by_class, sum_cells

if TYPE_CHECKING:
    from shoal.search.base import Evaluation, Problem

Floats = NDArray[np.float64]


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


class CellLoss:
    """A sum over cells. Subclasses give the prices and how a column's sum enters the figure."""

    sees_classes = False

    def __init__(self, problem: Problem) -> None:
        self.table = table = problem.table
        self.n = table.n_records
        self.q = len(table.columns)
        self._layout = problem.rollup.layout
        prices = [self.prices(table, j) for j in range(self.q)]
        self._base = np.zeros((self.q, max(h.n_levels for h in table.hierarchies)))
        for j, column in enumerate(prices):
            self._base[j, : len(column.base)] = column.base
        self._offsets, self._flat = _cheapest_below(table, prices)
        self._columns = np.arange(self.q)
        self.weights = np.array(problem.weights)[:, None]
        self.shares = self.weights / self.weights.sum()
        self._floor = self.scaled(self._base)
        self._last: Evaluation | None = None
        self._last_costs = self._floor

    @staticmethod
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """What the cells of column ``j`` cost."""
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
        elif seen.n_suppressed == seen.lost.sum():  # who is lost fails, so equal sums are the same records
            costs = self._with_lost(seen)
        else:
            costs = self.scaled(self._base + self._extra(seen, np.where(seen.failing, seen.table.counts, 0)))
        return float(costs[self._columns, seen.node].sum())

    def below(self, seen: Evaluation) -> Floats:
        """Who is lost here is suppressed on every lower node."""
        return _from_here_up(self._with_lost(seen), seen.node) if seen.n_lost else self._floor

    def _with_lost(self, seen: Evaluation) -> Floats:
        """Value and bounds of a look are asked for one after the other: the sums are kept in between."""
        if self._last is not seen:
            self._last = seen
            self._last_costs = self.scaled(self._base + self._extra(seen, seen.lost))
        return self._last_costs

    def above(self, seen: Evaluation) -> float:
        """Nothing beyond the floor."""
        return -np.inf

    def _extra(self, seen: Evaluation, weights: NDArray[np.int64]) -> Floats:
        """[column, level]: what suppressing ``weights`` records of each class adds at the least at that level."""
        node = np.array(seen.node)
        layout = self._layout
        return sum_cells(
            seen.table.keys,
            weights,
            layout.words,
            layout.shifts,
            layout.masks,
            node + 1,
            self._offsets[self._columns, node],
            self._flat,
        )


def _from_here_up(costs: Floats, node: Node) -> Floats:
    """The least cost of a level or any above it, up to the node's own.

    The bound on a level takes the cheapest code under each class, so a higher level may have a lower bound.
    """
    beyond = np.arange(costs.shape[1]) > np.array(node)[:, None]
    costs = np.where(beyond, np.inf, costs)
    return np.asarray(np.minimum.accumulate(costs[:, ::-1], axis=1)[:, ::-1])


def _cheapest_below(table: FrequencyTable, prices: list[CellPrices]) -> tuple[NDArray[np.int64], Floats]:
    """For every code of every level and every lower level, the least extra among the codes under it.

    Returned end to end with ``offsets[column, level, lower level]``.
    """
    n_levels = max(h.n_levels for h in table.hierarchies)
    offsets = np.zeros((len(prices), n_levels, n_levels), np.int64)
    flat, end = [], 0
    for j, (hierarchy, column) in enumerate(zip(table.hierarchies, prices, strict=True)):
        present = np.flatnonzero(_leaf_counts(table, j))  # a bound over codes that do not occur is needlessly low
        extra = np.array([column.extra[level][hierarchy.table[level][present]] for level in range(hierarchy.n_levels)])
        for level in range(hierarchy.n_levels):
            codes = hierarchy.table[level][present]
            order = np.argsort(codes, kind="stable")
            starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
            least = np.zeros((level + 1, hierarchy.cardinality(level)))
            least[:, codes[order][starts]] = np.minimum.reduceat(extra[: level + 1, order], starts, axis=1)
            offsets[j, level, : level + 1] = end + least.shape[1] * np.arange(level + 1)
            flat.append(least.ravel())
            end += least.size
    return offsets, np.concatenate(flat)


def _leaf_counts(table: FrequencyTable, j: int) -> NDArray[np.int64]:
    return sum_by_class(table.counts, table.codes[:, j].astype(np.int64), len(table.hierarchies[j].leaves))


def _by_price(table: FrequencyTable, j: int, price: Callable[[int], Floats]) -> CellPrices:
    """Prices that depend on the released code alone; a suppressed cell costs 1."""
    hierarchy = table.hierarchies[j]
    counts = _leaf_counts(table, j)
    levels = [price(level) for level in range(hierarchy.n_levels)]
    base = np.array([counts @ cost[hierarchy.table[level]] for level, cost in enumerate(levels)])
    return CellPrices(base, tuple(1 - cost for cost in levels))


class IyengarLoss(CellLoss):
    """Mean over cells of (M−1)/(D−1), for intervals of (upper−lower)/(max−min); a suppressed cell is 1.

    V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
    """

    @staticmethod
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """The hierarchy's shares."""
        return _by_price(table, j, lambda level: table.hierarchies[j].shares[level])


class ArxLoss(CellLoss):
    """ARX's Loss: M/D per cell, each column scaled to 0 … 1, the geometric mean over the columns."""

    @staticmethod
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """M/D, a suppressed cell 1."""
        hierarchy = table.hierarchies[j]
        return _by_price(table, j, lambda level: hierarchy.sizes[level] / hierarchy.domain)

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
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """level/height."""
        hierarchy = table.hierarchies[j]
        top = max(1, hierarchy.number_of_top)
        return _by_price(table, j, lambda level: np.full(hierarchy.cardinality(level), hierarchy.number(level) / top))


class HeightLoss(CellLoss):
    """The sum of the levels; suppression is free."""

    @staticmethod
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """The level itself."""
        hierarchy = table.hierarchies[j]
        extra = tuple(np.zeros(hierarchy.cardinality(level)) for level in range(hierarchy.n_levels))
        levels = np.array([hierarchy.number(level) for level in range(hierarchy.n_levels)], np.float64)
        return CellPrices(levels, extra)

    def scaled(self, sums: Floats) -> Floats:
        """Weighted, as it is."""
        return np.asarray(sums * self.weights)


class EntropyLoss(CellLoss):
    """Non-uniform entropy: Σ over cells of −ln(n(value)/n(released value)), a suppressed cell counts as the top.

    A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", TKDE 21(2), 2009.
    """

    @staticmethod
    def prices(table: FrequencyTable, j: int) -> CellPrices:
        """ln n(released) − ln n(value), summed over records."""
        hierarchy = table.hierarchies[j]
        counts = _leaf_counts(table, j)
        own = counts @ np.log(np.maximum(counts, 1))
        base, extra = [], []
        for level in range(hierarchy.n_levels):
            under = np.zeros(hierarchy.cardinality(level), np.int64)
            np.add.at(under, hierarchy.table[level], counts)
            log = np.log(np.maximum(under, 1))
            base.append(counts @ log[hierarchy.table[level]] - own)
            extra.append(np.log(table.n_records) - log)
        return CellPrices(np.array(base), tuple(extra))

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
