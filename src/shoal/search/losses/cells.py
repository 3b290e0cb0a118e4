"""The losses of released cells, independent of the search that chose them.

Searches over cells also minimize ``prices``. Lattice searches price whole levels instead (``lattice.py``), by the same
definitions; a test checks that both agree on full-domain recodings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from shoal.compiled.grouping import group, sum_by_class
from shoal.recoding import Parts, Recoding
from shoal.search.losses.definitions import LOSSES, WITH_LABEL
from shoal.search.losses.lattice import CellLoss, Loss, LossClasses
from shoal.search.problem import Problem
from shoal.tables.frequency import ClassOf, Codes, Counts, Floats, FrequencyTable, Histogram, packed
from shoal.tables.values import Values


def losses(problem: Problem, recoding: Recoding) -> dict[str, float]:
    """Return every loss of a recoding by name, including the classification loss if a label is named."""
    released = _ReleasedCells(problem, recoding.released, recoding.parts(problem.table))
    names = LOSSES if problem.label is None else LOSSES | WITH_LABEL
    return {name: released.loss(name) for name in names}


def loss_of(problem: Problem, values: tuple[Values, ...], parts: Parts, name: str) -> float:
    """Return one loss of released parts, as the published figure."""
    return _ReleasedCells(problem, values, parts).loss(name)


def prices(table: FrequencyTable, j: int, values: Values, name: str) -> Floats:
    """Return the price of a cell released as each value of column ``j``, in the loss ``name``."""
    return cell_prices((LOSSES | WITH_LABEL)[name], table, j, values)


def cell_prices(loss: type[Loss], table: FrequencyTable, j: int, values: Values) -> Floats:
    """The same, given the definition of a loss; 0 if the loss does not depend on the released values."""
    match loss.measure:
        case "share":
            measured = values.shares
        case "size":
            measured = values.sizes.astype(np.float64)
        case "level":
            measured = values.levels.astype(np.float64)
        case "records":
            measured = values.under(leaf_counts(table, j)).astype(np.float64)
        case None:
            return np.zeros(len(values.labels))
    return loss.price(measured, values.hierarchy)


def leaf_counts(table: FrequencyTable, j: int) -> Counts:
    """Return the number of records with each leaf of column ``j``."""
    return table.leaf_counts[j]


class _KeptClasses(NamedTuple):
    """Classes of parts that are not suppressed, at least in part."""

    codes: Codes  # (classes, columns)
    counts: Counts  # records that are not suppressed
    of_tuple: ClassOf  # the class of each released tuple; −1 if all of it is suppressed


@dataclass(frozen=True, eq=False)
class _ReleasedCells:
    """Released parts, grouped only when a loss needs it."""

    problem: Problem
    values: tuple[Values, ...]
    parts: Parts

    def loss(self, name: str) -> float:
        """Return one loss by name."""
        problem = self.problem
        loss = problem.objective if name == problem.objective_name else (LOSSES | WITH_LABEL)[name](problem)
        n_suppressed = self.parts.n_suppressed
        if isinstance(loss, CellLoss):
            kept_costs = [
                float(records @ cell_prices(type(loss), problem.table, j, value))
                for j, (value, records) in enumerate(zip(self.values, self._records, strict=True))
            ]
            return loss.published(np.array(kept_costs), n_suppressed)
        classes = self._alike if loss.measure is None else self._equal
        as_loss_sees = LossClasses(
            classes.counts,
            lambda: self._prices(type(loss), classes.codes),
            lambda: self._labels.merged(self._class_of(classes), len(classes.counts)),
        )
        # The exact sum of floats: a sum of many squares can need more digits than a float has.
        total = math.fsum([*loss.kept_sums(as_loss_sees).tolist(), loss.suppressed * n_suppressed])
        return loss.published(total, n_suppressed)

    @cached_property
    def _records(self) -> list[Counts]:
        """The number of records released as each value of each column."""
        pairs = zip(self._equal.codes.T, self.values, strict=True)
        return [sum_by_class(self._equal.counts, codes.astype(np.int64), len(value.labels)) for codes, value in pairs]

    @cached_property
    def _equal(self) -> _KeptClasses:
        """Parts released as the same values."""
        tuple_of, firsts = self.parts.tuples
        counts = sum_by_class(self.parts.kept_counts, tuple_of, len(firsts))
        nonempty = counts > 0
        return _KeptClasses(
            self.parts.codes[firsts[nonempty]], counts[nonempty], np.where(nonempty, np.cumsum(nonempty) - 1, -1)
        )

    @cached_property
    def _alike(self) -> _KeptClasses:
        """Parts that look the same: a hidden cell released as a null equals an original null."""
        equal, codes = self._equal, self._equal.codes.copy()
        for j, value in enumerate(self.values):
            number = {label: i for i, label in reversed(list(enumerate(value.labels)))}
            if len(number) < len(value.labels):
                codes[:, j] = np.array([number[label] for label in value.labels], codes.dtype)[codes[:, j]]
        class_of, firsts = group(packed(codes))
        counts = sum_by_class(equal.counts, class_of, len(firsts))
        return _KeptClasses(codes[firsts], counts, np.append(class_of, -1)[equal.of_tuple])

    def _class_of(self, classes: _KeptClasses) -> ClassOf:
        """Return the class of each part; −1 if it is suppressed."""
        return np.where(self.parts.suppressed, -1, classes.of_tuple[self.parts.tuples[0]])

    def _prices(self, loss: type[Loss], codes: Codes) -> Floats:
        """Return [column, class]: the prices of cells released as these values."""
        prices = [cell_prices(loss, self.problem.table, j, value) for j, value in enumerate(self.values)]
        return np.array([column_prices[codes[:, j]] for j, column_prices in enumerate(prices)])

    @cached_property
    def _labels(self) -> Histogram:
        """The column to predict in each part."""
        table, parts = self.problem.table, self.parts
        labels = table.sensitive[str(self.problem.label)].selected(parts.row)
        if np.array_equal(parts.counts, table.counts[parts.row]):
            return labels
        return replace(labels, counts=parts.counts)  # rows are split into parts only if each has one value
