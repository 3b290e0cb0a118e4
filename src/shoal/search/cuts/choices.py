"""Choices: evaluation of a set of values that start an interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.models.size import KAnonymity
from shoal.search.cells.classes import passing
from shoal.search.cuts.cuts import RowsToGroup
from shoal.search.cuts.ordered import Axis, Chosen
from shoal.search.losses.cuts import IntervalClasses, cut_cost
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, FrequencyTable


@dataclass(frozen=True, eq=False)
class EvaluatedChoice:
    """The result of evaluating one set of values."""

    classes: FrequencyTable
    failing: NDArray[np.bool_]  # (classes)
    n_suppressed: int
    value: float  # in the problem's objective; infinite if it may not be released

    @property
    def feasible(self) -> bool:
        """Whether it may be released."""
        return self.value < math.inf


class Choices:
    """The sets of values of a problem's columns, and their costs."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.axis = Axis(problem.table)
        self.cost = cut_cost(problem, self.axis.domains)
        self.sizes_decide = problem.table.entities is None and all(isinstance(m, KAnonymity) for m in problem.models)
        self.n_evaluated = 0
        self._rows = RowsToGroup(
            self._counted(problem.table), self.axis.places, [domain.n_values for domain in self.axis.domains]
        )

    def evaluated(self, chosen: Chosen) -> EvaluatedChoice:
        """Group the records by intervals, judge and price the classes; failing classes are suppressed."""
        problem = self.problem
        self.n_evaluated += 1
        numbers, ends = self.axis.intervals(chosen)
        classes = self._rows.classes(numbers)
        failing = classes.counts < problem.least_class_size if self.sizes_decide else ~passing(problem, classes)
        n_suppressed = int(classes.counts[failing].sum())
        if n_suppressed > problem.limit or failing.all() or not self._stars_pass(classes, failing):
            return EvaluatedChoice(classes, failing, n_suppressed, math.inf)
        left = classes.selected(np.flatnonzero(~failing))
        kept_classes = IntervalClasses(left.codes, left.counts, ends, problem.labels(left))
        sums = self.cost.kept_sums(kept_classes).sum(axis=0) + self.cost.suppressed_sums(classes.counts[failing]).sum(
            axis=0
        )
        return EvaluatedChoice(
            classes, failing, n_suppressed, float(self.cost.figure(sums[None], np.array([n_suppressed]))[0])
        )

    def _stars_pass(self, classes: FrequencyTable, failing: NDArray[np.bool_]) -> bool:
        """Return whether the suppressed records pass as one class, if they stay in the release."""
        failing_classes = np.flatnonzero(failing)
        if not len(failing_classes) or not self.problem.keep_suppressed:
            return True
        stars = classes.selected(failing_classes).merged(np.zeros(len(failing_classes), np.int64), 1, classes.codes[:1])
        return bool(passing(self.problem, stars).all())

    def codes(self, numbers: list[NDArray[np.int32]]) -> Codes:
        """Return the intervals of each row of the table, given those of each place."""
        return np.column_stack([interval_of[self.axis.places[:, j]] for j, interval_of in enumerate(numbers)])

    def _counted(self, table: FrequencyTable) -> FrequencyTable:
        """Return the table without sensitive values if nothing uses them."""
        if self.sizes_decide and table.sensitive and not self.problem.sees_labels:
            return FrequencyTable(table.columns, table.codes, table.counts)
        return table
