"""What a choice of intervals costs, and what every finer choice costs at the least.

Between a coarse choice and the finest one that can be reached from it, a record that is kept is in a class no smaller
than its finest one, in cells no narrower than its finest ones. So each loss is a function of a sum over classes of what
it costs to keep or to suppress them, and the finest classes, kept for the least, bound everything between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.search.cuts.ordered import IntervalEnds, OrderedDomain
from shoal.search.losses.cells import leaf_counts, prices
from shoal.search.losses.lattice import CellLoss, most_frequent
from shoal.search.problem import Problem
from shoal.table.frequency import Codes, Counts, Floats, Histogram
from shoal.table.values import Vocabulary


@dataclass(frozen=True, eq=False)
class IntervalClasses:
    """Classes of some intervals."""

    codes: Codes  # (classes, columns)  number of the interval
    counts: Counts  # (classes)
    intervals: Sequence[Sequence[IntervalEnds]]  # [column][number]
    labels: Histogram | None = None  # of the column to predict, where the loss looks at it


class CutCost:
    """A loss: what classes add to its sums if they are kept, or gone, and the figure that the sums make."""

    sees_classes_only = False  # whether cells are worth nothing to it

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain]) -> None:
        self.problem = problem
        self.n = problem.table.n_records
        self.least_size = problem.least_class_size
        self.domains = domains

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """[class, sum]: what it adds; ``least``: if it may grow, and its intervals too."""
        raise NotImplementedError

    def gone(self, counts: Counts) -> Floats:
        """[class, sum]: what it adds when suppressed."""
        raise NotImplementedError

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """The published figure of each row of sums."""
        return sums[:, 0]

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """No finer choice has a lower figure, given sums of least costs with those gone who are ``lost`` for good."""
        return self.figure(sums, n_lost)


class Discernibility(CutCost):
    """A record that is kept pays the size of its class, one that is gone all records."""

    sees_classes_only = True

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """A class that is kept has at least k records, whatever it grows from."""
        counts = classes.counts.astype(np.float64)
        return np.asarray(counts * np.maximum(counts, self.least_size))[:, None]

    def gone(self, counts: Counts) -> Floats:
        """n each."""
        return np.asarray(float(self.n) * counts)[:, None]


class AverageClass(CutCost):
    """Records per class; those that are suppressed count as one."""

    sees_classes_only = True

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """A class; never more than its finest ones."""
        return np.ones((len(classes.counts), 1))

    def gone(self, counts: Counts) -> Floats:
        """None."""
        return np.zeros((len(counts), 1))

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """n / classes."""
        return np.asarray(self.n / np.maximum(1, sums[:, 0] + (n_gone > 0)))

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """No more classes than there are finest ones, or records for."""
        most = np.minimum(sums[:, 0], (self.n - n_lost) // self.least_size) + (self.problem.limit > 0)
        return np.asarray(self.n / np.maximum(1, most))


class Classification(CutCost):
    """A record that is kept pays 1/n if its label is not the most frequent of its class, one that is gone always.

    Where classes merge no more labels are right than before, so the finest classes bound all others.
    """

    sees_classes_only = True

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """The records whose labels are wrong."""
        if classes.labels is None:
            raise ValueError("the classes were counted without their labels")
        return (classes.counts - most_frequent(classes.labels)).astype(np.float64)[:, None]

    def gone(self, counts: Counts) -> Floats:
        """All of them."""
        return counts.astype(np.float64)[:, None]

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """A share."""
        return np.asarray(sums[:, 0] / self.n)


class OfCells(CutCost):
    """Losses that price every cell by its interval."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain], name: str) -> None:
        super().__init__(problem, domains)
        self.name = name
        self.vocabularies = [Vocabulary(d.hierarchy, cells) for d, cells in zip(domains, problem.cells, strict=True)]
        self._known: dict[tuple[int, IntervalEnds, bool], float] = {}

    def prices(self, classes: IntervalClasses, j: int, least: bool) -> Floats:
        """Per class, the price of its cell in column ``j``."""
        of = [self._price(j, interval, least) for interval in classes.intervals[j]]
        return np.array(of)[classes.codes[:, j]]

    def _price(self, j: int, interval: IntervalEnds, least: bool) -> float:
        key = (j, interval, least)
        if key not in self._known:
            self._known[key] = self._least(j, interval) if least else self._exact(j, interval)
        return self._known[key]

    def _exact(self, j: int, interval: IntervalEnds) -> float:
        vocabulary = self.vocabularies[j]
        value = vocabulary.taken([vocabulary.of(self.domains[j].leaves(*interval))])
        if self.name == "ambiguity":
            return float(value.sizes[0])
        return float(prices(self.problem.table, j, value, self.name)[0])

    def _least(self, j: int, interval: IntervalEnds) -> float:
        """The least price of an interval around it.

        Levels and the records under a value only grow with it. Shares and sizes need not: an interval that holds the
        values of a label is priced as the label, with all that it stands for, and a wider one that is none may be less.
        """
        vocabulary, domain = self.vocabularies[j], self.domains[j]
        own = np.sort(np.concatenate(domain.values[interval[0] : interval[1] + 1]))
        if self.name in ("loss", "arx-loss", "ambiguity") and vocabulary.of(own) != Vocabulary.TOP_ID:
            if self.name == "loss":
                return vocabulary.least_share(own)
            return len(own) / (domain.hierarchy.domain if self.name == "arx-loss" else 1)
        return self._exact(j, interval)


class LinearCells(OfCells):
    """A weighted sum over cells: loss, precision, entropy."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain], name: str) -> None:
        super().__init__(problem, domains, name)
        table, q = problem.table, len(domains)
        self.weights = _cell_loss(problem).scaled(np.ones((q, 1)))[:, 0]
        self.suppressed, self.own = 1.0, 0.0
        if name == "entropy":
            own = [leaf_counts(table, j) for j in range(q)]
            self.suppressed = math.log(self.n)
            self.own = float(self.weights @ [counts @ np.log(np.maximum(counts, 1)) for counts in own])

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """What the cells cost."""
        each = sum(w * self.prices(classes, j, least) for j, w in enumerate(self.weights))
        return np.asarray(classes.counts * each)[:, None]

    def gone(self, counts: Counts) -> Floats:
        """All cells at the price of a suppressed one."""
        return np.asarray(counts * (self.suppressed * self.weights.sum()))[:, None]

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """The sum, in entropy without what the values themselves weigh."""
        return sums[:, 0] - self.own


class ArxCells(OfCells):
    """ARX's loss: a mean of columns that is no sum, so each column has a sum of its own."""

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """What the cells cost, column by column."""
        return np.column_stack([classes.counts * self.prices(classes, j, least) for j in range(len(self.domains))])

    def gone(self, counts: Counts) -> Floats:
        """1 a cell."""
        return np.repeat(counts.astype(np.float64)[:, None], len(self.domains), axis=1)

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """The mean."""
        loss = _cell_loss(self.problem)
        return np.array([loss.shown(value) for value in loss.scaled(sums.T).sum(axis=0)])


class Levels(OfCells):
    """The mean level of those that are kept; suppression is free."""

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """Weighted levels."""
        each = sum(w * self.prices(classes, j, least) for j, w in enumerate(self.problem.weights))
        return np.asarray(classes.counts * each)[:, None]

    def gone(self, counts: Counts) -> Floats:
        """Nothing."""
        return np.zeros((len(counts), 1))

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """The mean over those that are kept."""
        return np.asarray(sums[:, 0] / np.maximum(1, self.n - n_gone))

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """As if those that may still be suppressed were all at the top."""
        top = float(np.dot(self.problem.weights, [domain.hierarchy.number_of_top for domain in self.domains]))
        more = np.maximum(0, min(self.problem.limit, self.n - 1) - n_lost)
        return np.asarray(np.maximum(0, (sums[:, 0] - more * top) / np.maximum(1, self.n - n_lost - more)))


class Ambiguity(OfCells):
    """How many ground tuples a record could be."""

    def kept(self, classes: IntervalClasses, *, least: bool = False) -> Floats:
        """The product of what its cells could be."""
        each = [self.prices(classes, j, least) for j in range(len(self.domains))]
        return np.asarray(classes.counts * np.prod(each, axis=0))[:, None]

    def gone(self, counts: Counts) -> Floats:
        """All of them."""
        return np.asarray(counts * math.prod(float(d.hierarchy.domain) for d in self.domains))[:, None]


def _cell_loss(problem: Problem) -> CellLoss:
    loss = problem.objective
    if not isinstance(loss, CellLoss):
        raise TypeError(f"{problem.objective_name} is not a sum over cells")
    return loss


_COSTS: dict[str, Callable[[Problem, Sequence[OrderedDomain], str], CutCost]] = {
    "discernibility": lambda problem, domains, _: Discernibility(problem, domains),
    "average-class": lambda problem, domains, _: AverageClass(problem, domains),
    "classification": lambda problem, domains, _: Classification(problem, domains),
    "loss": LinearCells,
    "precision": LinearCells,
    "entropy": LinearCells,
    "arx-loss": ArxCells,
    "height": Levels,
    "ambiguity": Ambiguity,
}


def cut_cost(problem: Problem, domains: Sequence[OrderedDomain]) -> CutCost:
    """The problem's objective."""
    return _COSTS[problem.objective_name](problem, domains, problem.objective_name)
