"""The definition of every loss, and the dict LOSSES; searches over nodes, cells and cuts all use these classes.

A loss of cells defines the measure of a released value and its price; a loss of classes defines what a class adds.
``lattice.py`` and ``cuts.py`` compute the bounds that the searches use.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.errors import PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search.losses.lattice import CellLoss, ClassLoss, LossClasses
from shoal.tables.frequency import Counts, Floats, Histogram

if TYPE_CHECKING:
    from shoal.search.problem import Evaluation, Problem


# --- losses of cells ------------------------------------------------------------------------------------------


class IyengarLoss(CellLoss):
    """Mean over cells of (M−1)/(D−1), for intervals of (upper−lower)/(max−min); a suppressed cell is 1.

    V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
    """

    measure = "share"

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return the share itself."""
        return measured


class ArxLoss(CellLoss):
    """ARX's Loss: M/D per cell, each column scaled to 0 … 1, the geometric mean over the columns."""

    measure = "size"
    linear = False

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return M/D; a suppressed cell is 1."""
        return np.asarray(measured / hierarchy.domain)

    def scaled(self, sums: Floats) -> Floats:
        """Return w·ln(1 + L) with L = (Σ − N/D)/(N − N/D); a column with one value loses nothing."""
        minimum, room = self._range
        return np.asarray(np.log1p(np.maximum(0, (sums - minimum) / room)) * self.shares)

    @cached_property
    def _range(self) -> tuple[Floats, Floats]:
        minimum = self.n / np.array([[h.domain] for h in self.table.hierarchies])
        return minimum, np.where(minimum < self.n, self.n - minimum, np.inf)

    def published_figure(self, value: float) -> float:
        """Return Π(1 + L)^w − 1 with weights that sum to 1; with equal weights, the geometric mean."""
        return float(np.expm1(value))

    @cached_property
    def _domains(self) -> Floats:
        return np.array([h.domain for h in self.table.hierarchies], np.float64)

    @cached_property
    def slopes(self) -> Floats:
        """Return w/(1 − 1/D): as long as nothing is lost, ln(1 + L) grows like L."""
        return np.where(self._domains > 1, self.shares[:, 0] / np.maximum(1 - 1 / self._domains, 1e-9), 0.0)

    def tangent(self, sums: Floats) -> Floats:
        """Return the slopes divided by 1 + L: the product over columns is replaced by its tangent."""
        minimum = 1 / self._domains
        scaled = np.maximum(0, sums / self.n - minimum) / np.maximum(1 - minimum, 1e-9)
        return np.asarray(self.slopes / (1 + scaled))

    def mean_at_least(self, total: float) -> float:
        """Return the mean of L over columns, from the cost of all cells priced by the slopes."""
        return max(0.0, total / self.n - float(self.slopes @ (1 / self._domains)))

    def at_least(self, total: float) -> float:
        """Bound from below: Σ w ln(1 + L) is concave, so for given Σ w L it is smallest with all loss in one column.

        That is the column with the smallest weight; if the loss does not fit there, ln(1 + L) ≥ L ln 2 for L ≤ 1.
        """
        mean = self.mean_at_least(total)
        smallest = float(self.shares[self.shares > 0].min())
        return self.published_figure(smallest * math.log1p(mean / smallest) if mean <= smallest else mean * math.log(2))


class PrecisionLoss(CellLoss):
    """1 − Prec: mean over cells of level/height; a suppressed cell is 1.

    L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5), 2002.
    """

    measure = "level"

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return the level divided by the height of the hierarchy."""
        return np.asarray(measured / max(1, hierarchy.number_of_top))


class _WeightedSum(CellLoss):
    """A loss whose figure is the weighted sum of its columns, not their mean."""

    def scaled(self, sums: Floats) -> Floats:
        """Return the weighted sums, without scaling."""
        return np.asarray(sums * self.weights)

    def at_least(self, total: float) -> float:
        """Return the bound, multiplied by the sum of all weights because the slopes are weights that sum to 1."""
        weights = self.weights[:, 0]
        return (total / self.n if self.mean_of_kept else total) * float(weights.sum()) - float(
            weights @ self.own_prices
        )


class HeightLoss(_WeightedSum):
    """The sum of the levels; suppression is free."""

    measure = "level"
    mean_of_kept = True

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return the level itself."""
        return measured


class EntropyLoss(_WeightedSum):
    """Non-uniform entropy: Σ over cells of −ln(n(value)/n(released value)), a suppressed cell counts as the top.

    A. Gionis, T. Tassa, "k-Anonymization with minimal loss of information", TKDE 21(2), 2009.
    """

    measure = "records"

    def __init__(self, problem: Problem) -> None:
        self.suppressed = math.log(max(1, problem.n_records))
        super().__init__(problem)

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return ln n(released value)."""
        return np.asarray(np.log(np.maximum(measured, 1)))

    @staticmethod
    def own_price(leaf_counts: Counts) -> float:
        """Return Σ over records of ln n(value)."""
        return float(leaf_counts @ np.log(np.maximum(leaf_counts, 1)))


# --- losses of classes ----------------------------------------------------------------------------------------


class Discernibility(ClassLoss):
    """Σ n_E² over kept classes, and n for every suppressed record.

    R. J. Bayardo, R. Agrawal, "Data privacy through optimal k-anonymization", ICDE 2005.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.suppressed = float(self.n)

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        """Return n_E²; a class that may still grow ends with at least k records."""
        counts = classes.counts.astype(np.float64)
        return np.asarray(counts * (np.maximum(counts, self.least_size) if lower_bound else counts))

    def least_below(self, evaluation: Evaluation) -> float:
        """Return a bound: lost records cost n on every lower node; others are in admissible classes or cost n."""
        return float(self.n) * evaluation.n_lost + float(self.least_size) * (self.n - evaluation.n_lost)


class AverageClass(ClassLoss):
    """Records per class; the suppressed records, all *, count as one class.

    C_AVG of LeFevre et al. is this figure divided by k.
    """

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        """Return 1 for each class; merging never increases the number of classes."""
        return np.ones(len(classes.counts))

    def figure(self, sums: Floats, n_suppressed: Counts) -> Floats:
        """Return n divided by the number of classes."""
        return np.asarray(self.n / np.maximum(1, sums + (n_suppressed > 0)))

    def least_below(self, evaluation: Evaluation) -> float:
        """Return a bound: a class of which n records can be kept splits into at most n / k classes."""
        max_parts = (evaluation.table.counts - evaluation.lost) // self.least_size
        return self.n / max(1, int(max_parts.sum()) + self.may_suppress)

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """Return a bound: there are no more classes than finest classes, or than the records allow."""
        max_classes = np.minimum(sums, (self.n - n_lost) // self.least_size) + self.may_suppress
        return np.asarray(self.n / np.maximum(1, max_classes))


class Ambiguity(ClassLoss):
    """Σ over records of the number of ground tuples that the released tuple can stand for; all of them if suppressed.

    M. E. Nergiz, C. Clifton, "Thoughts on k-anonymization", Data & Knowledge Engineering 63(3), 2007.
    """

    measure = "size"

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.suppressed = math.prod(float(h.domain) for h in problem.table.hierarchies)

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        """Return M, the number of values that a cell can stand for."""
        return measured

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        """Return the product over columns of the values that the cells can stand for; merging only increases it."""
        return np.asarray(classes.counts * np.prod(classes.prices(), axis=0))

    def least_below(self, evaluation: Evaluation) -> float:
        """Return a bound: on lower nodes a lost record can be any tuple, and a kept one stands at least for itself."""
        return self.suppressed * evaluation.n_lost + (self.n - evaluation.n_lost)


class ClassificationLoss(ClassLoss):
    """The share of records whose label is not the most frequent in their class; a suppressed record counts as wrong.

    V. S. Iyengar, "Transforming data to satisfy privacy constraints", KDD 2002.
    """

    suppressed = 1.0

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        if problem.label is None:
            raise PolicyError("objective 'classification' needs a column to predict", "name it: release.label")

    def kept_sums(self, classes: LossClasses, *, lower_bound: bool = False) -> Floats:
        """Return the records whose label is wrong; merging never decreases their number."""
        return (classes.counts - most_frequent_counts(classes.labels())).astype(np.float64)

    def figure(self, sums: Floats, n_suppressed: Counts) -> Floats:
        """Return the share of all records."""
        return np.asarray(sums / self.n)

    def least_below(self, evaluation: Evaluation) -> float:
        """Return a bound: lost records are wrong on every lower node; all others may be right."""
        return evaluation.n_lost / self.n


def most_frequent_counts(labels: Histogram) -> Counts:
    """Return the frequency of each class's most frequent value."""
    return np.maximum.reduceat(labels.counts, labels.starts[:-1]) if labels.n_classes else np.zeros(0, np.int64)


# Losses that need a column to predict, named by the policy.
WITH_LABEL: dict[str, type[CellLoss] | type[ClassLoss]] = {"classification": ClassificationLoss}

LOSSES: dict[str, type[CellLoss] | type[ClassLoss]] = {
    "loss": IyengarLoss,
    "arx-loss": ArxLoss,
    "discernibility": Discernibility,
    "average-class": AverageClass,
    "height": HeightLoss,
    "precision": PrecisionLoss,
    "entropy": EntropyLoss,
    "ambiguity": Ambiguity,
}
