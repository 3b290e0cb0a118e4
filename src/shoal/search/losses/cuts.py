"""The cost of a choice of intervals, and a lower bound for every finer choice.

Between a coarse choice and the finest one reachable from it, a kept record is in a class no smaller than its finest
class, in cells no narrower than its finest cells. Each loss is a function of a sum over classes of the cost of keeping
or suppressing them, so the finest classes at their smallest cost bound everything in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.search.cuts.ordered import IntervalEnds, OrderedDomain
from shoal.search.losses.cells import cell_prices
from shoal.search.losses.lattice import CellLoss, ClassLoss, LossClasses
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, Counts, Floats, Histogram
from shoal.tables.values import Vocabulary


@dataclass(frozen=True, eq=False)
class IntervalClasses:
    """The equivalence classes of a choice of intervals."""

    codes: Codes  # (classes, columns)  number of the interval
    counts: Counts  # (classes)
    intervals: Sequence[Sequence[IntervalEnds]]  # [column][number]
    labels: Histogram | None = None  # of the column to predict, if the loss uses it


class CutCost:
    """A loss on cuts: what kept or suppressed classes add to its sums, and the figure computed from the sums."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain]) -> None:
        self.problem = problem
        self.n = problem.table.n_records
        self.domains = domains
        self._vocabularies = [Vocabulary(d.hierarchy, cells) for d, cells in zip(domains, problem.cells, strict=True)]
        self._price_cache: dict[tuple[int, IntervalEnds, bool], float] = {}

    @property
    def sees_classes_only(self) -> bool:
        """Whether the loss depends on classes only, so that narrower cells gain nothing."""
        return False

    def kept_sums(self, classes: IntervalClasses, *, lower_bound: bool = False) -> Floats:
        """Return [class, sum] that a kept class adds, or a lower bound if it and its intervals may still grow."""
        raise NotImplementedError

    def suppressed_sums(self, counts: Counts) -> Floats:
        """Return [class, sum] that a suppressed class adds."""
        raise NotImplementedError

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """Return the published figure for each row of sums."""
        raise NotImplementedError

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """Return a lower bound on the figure of any finer choice, from sums of least costs and the lost records."""
        return self.figure(sums, n_lost)

    def prices(self, classes: IntervalClasses, j: int, lower_bound: bool) -> Floats:
        """Return the price of each class's cell in column ``j``."""
        interval_prices = [self._price(j, interval, lower_bound) for interval in classes.intervals[j]]
        return np.array(interval_prices)[classes.codes[:, j]]

    def _price(self, j: int, interval: IntervalEnds, lower_bound: bool) -> float:
        key = (j, interval, lower_bound)
        if key not in self._price_cache:
            self._price_cache[key] = self._lowest_price(j, interval) if lower_bound else self._exact(j, interval)
        return self._price_cache[key]

    def _exact(self, j: int, interval: IntervalEnds) -> float:
        vocabulary = self._vocabularies[j]
        value = vocabulary.selected([vocabulary.number_of(self.domains[j].leaves(*interval))])
        return float(cell_prices(type(self.problem.objective), self.problem.table, j, value)[0])

    def _lowest_price(self, j: int, interval: IntervalEnds) -> float:
        """Return the smallest price of any interval that contains this one.

        Levels and record counts only grow with the interval. Shares and sizes need not: an interval with the values of
        a label is priced as the label, including all that it stands for, and a wider one without a label may cost less.
        """
        loss = self.problem.objective
        vocabulary, domain = self._vocabularies[j], self.domains[j]
        leaves = np.sort(np.concatenate(domain.values[interval[0] : interval[1] + 1]))
        if loss.measure not in ("share", "size") or vocabulary.number_of(leaves) == Vocabulary.TOP_ID:
            return self._exact(j, interval)
        smallest = vocabulary.least_share(leaves) if loss.measure == "share" else float(len(leaves))
        return float(loss.price(np.array([smallest]), domain.hierarchy)[0])


class ClassCost(CutCost):
    """A loss of classes as one sum, to which every class adds its own cost."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain], loss: ClassLoss) -> None:
        super().__init__(problem, domains)
        self.loss = loss

    @property
    def sees_classes_only(self) -> bool:
        """Whether the cells have no price."""
        return self.loss.measure is None

    def kept_sums(self, classes: IntervalClasses, *, lower_bound: bool = False) -> Floats:
        """Return the cost that the loss gives each class."""

        def prices() -> Floats:
            return np.array([self.prices(classes, j, lower_bound) for j in range(len(self.domains))])

        def labels() -> Histogram:
            if classes.labels is None:
                raise ValueError("the classes were counted without their labels")
            return classes.labels

        return self.loss.kept_sums(LossClasses(classes.counts, prices, labels), lower_bound=lower_bound)[:, None]

    def suppressed_sums(self, counts: Counts) -> Floats:
        """Return the same cost for every suppressed record."""
        return np.asarray(self.loss.suppressed * counts)[:, None]

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """Return the figure that the loss defines."""
        return self.loss.figure(sums[:, 0], n_gone)

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """Return the loss's own bound."""
        return self.loss.bound(sums[:, 0], n_lost)


class LinearCost(CutCost):
    """A weighted sum over cells, as one sum for all columns; if suppression is free, a mean over the kept cells."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain], loss: CellLoss) -> None:
        super().__init__(problem, domains)
        self.loss = loss
        self.weights = loss.scaled(np.ones((len(domains), 1)))[:, 0]
        self.own_prices = float(self.weights @ loss.own_prices)
        self.suppressed = 0.0 if loss.mean_of_kept else loss.suppressed * float(self.weights.sum())

    def kept_sums(self, classes: IntervalClasses, *, lower_bound: bool = False) -> Floats:
        """Return the weighted cost of the cells."""
        class_prices = sum(w * self.prices(classes, j, lower_bound) for j, w in enumerate(self.weights))
        return np.asarray(classes.counts * class_prices)[:, None]

    def suppressed_sums(self, counts: Counts) -> Floats:
        """Return the cost of all cells at the price of a suppressed one."""
        return np.asarray(counts * self.suppressed)[:, None]

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """Return the sum minus the values' own price, or the mean over the kept cells."""
        if self.loss.mean_of_kept:
            return np.asarray(sums[:, 0] / np.maximum(1, self.n - n_gone))
        return sums[:, 0] - self.own_prices

    def bound(self, sums: Floats, n_lost: Counts) -> Floats:
        """Return the bound; if suppression is free, it assumes that suppressible records are all at the top."""
        if not self.loss.mean_of_kept:
            return self.figure(sums, n_lost)
        max_suppressible = np.maximum(0, min(self.problem.limit, self.n - 1) - n_lost)
        return np.asarray(
            np.maximum(
                0, (sums[:, 0] - max_suppressible * self._top) / np.maximum(1, self.n - n_lost - max_suppressible)
            )
        )

    @cached_property
    def _top(self) -> float:
        """The cost of a record's cells at the top of every column, by level."""
        tops = [d.hierarchy for d in self.domains]
        return float(self.weights @ [self.loss.price(np.array([float(h.number_of_top)]), h)[0] for h in tops])


class ColumnCost(CutCost):
    """A loss of cells that is not a sum over columns: each column has its own sum."""

    def __init__(self, problem: Problem, domains: Sequence[OrderedDomain], loss: CellLoss) -> None:
        super().__init__(problem, domains)
        self.loss = loss

    def kept_sums(self, classes: IntervalClasses, *, lower_bound: bool = False) -> Floats:
        """Return the cost of the cells by column."""
        return np.column_stack(
            [classes.counts * self.prices(classes, j, lower_bound) for j in range(len(self.domains))]
        )

    def suppressed_sums(self, counts: Counts) -> Floats:
        """Return the cost of every cell at the price of a suppressed one."""
        return np.repeat((self.loss.suppressed * counts)[:, None], len(self.domains), axis=1)

    def figure(self, sums: Floats, n_gone: Counts) -> Floats:
        """Return the figure that the loss computes from the columns' sums."""
        scaled = self.loss.scaled(sums.T - self.loss.own_prices[:, None])
        return np.array([self.loss.published_figure(value) for value in scaled.sum(axis=0)])


def cut_cost(problem: Problem, domains: Sequence[OrderedDomain]) -> CutCost:
    """Return the problem's objective as a cost of cuts."""
    loss = problem.objective
    if isinstance(loss, ClassLoss):
        return ClassCost(problem, domains, loss)
    return LinearCost(problem, domains, loss) if loss.linear else ColumnCost(problem, domains, loss)
