"""The losses of released cells, independent of the search that chose them.

Searches over cells also minimize ``prices``. Lattice searches price whole levels instead (``lattice.py``), by the same
definitions; a test checks that both agree on full-domain recodings.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.recoding import Parts, Recoding
from shoal.search.losses.definitions import LOSSES, WITH_LABEL
from shoal.search.losses.lattice import CellLoss, Loss, LossClasses
from shoal.search.problem import Problem
from shoal.table.frequency import ClassOf, Counts, Floats, FrequencyTable, Histogram, packed
from shoal.table.kernels import group, sum_by_class
from shoal.table.values import Values


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
    return sum_by_class(table.counts, table.codes[:, j].astype(np.int64), len(table.hierarchies[j].leaves))


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
            kept = [
                float(records @ cell_prices(type(loss), problem.table, j, value))
                for j, (value, records) in enumerate(zip(self.values, self._records, strict=True))
            ]
            return loss.published(np.array(kept), n_suppressed)
        class_of, firsts = self._alike if loss.measure is None else self._equal
        counts = sum_by_class(self.parts.counts[self._kept], class_of, len(firsts))
        classes = LossClasses(
            counts, lambda: self._prices(type(loss), firsts), lambda: self._labels.merged(class_of, len(firsts))
        )
        # The exact sum of floats: a sum of many squares can need more digits than a float has.
        total = math.fsum([*loss.kept(classes).tolist(), loss.suppressed * n_suppressed])
        return loss.published(total, n_suppressed)

    @cached_property
    def _records(self) -> list[Counts]:
        """The number of records released as each value of each column."""
        kept = np.where(self.parts.suppressed, 0, self.parts.counts)
        pairs = zip(self.parts.codes.T, self.values, strict=True)
        return [sum_by_class(kept, codes.astype(np.int64), len(value.labels)) for codes, value in pairs]

    @cached_property
    def _kept(self) -> NDArray[np.int64]:
        return np.flatnonzero(~self.parts.suppressed)

    @cached_property
    def _equal(self) -> tuple[ClassOf, NDArray[np.int64]]:
        """Parts released as the same values: the class of each part, and the first part of each class."""
        return group(packed(self.parts.codes[self._kept]))

    @cached_property
    def _alike(self) -> tuple[ClassOf, NDArray[np.int64]]:
        """The same for parts that look the same: a hidden cell released as a null equals an original null."""
        codes = self.parts.codes[self._kept]
        for j, value in enumerate(self.values):
            number = {label: i for i, label in reversed(list(enumerate(value.labels)))}
            if len(number) < len(value.labels):
                codes[:, j] = np.array([number[label] for label in value.labels], codes.dtype)[codes[:, j]]
        return group(packed(codes))

    def _prices(self, loss: type[Loss], firsts: NDArray[np.int64]) -> Floats:
        """Return [column, class]: the prices of the cells of each class's first part."""
        codes = self.parts.codes[self._kept[firsts]]
        prices = [cell_prices(loss, self.problem.table, j, value) for j, value in enumerate(self.values)]
        return np.array([of[codes[:, j]] for j, of in enumerate(prices)])

    @cached_property
    def _labels(self) -> Histogram:
        """The column to predict in each part."""
        table, rows, counts = self.problem.table, self.parts.row[self._kept], self.parts.counts[self._kept]
        labels = table.sensitive[str(self.problem.label)].taken(rows)
        if np.array_equal(counts, table.counts[rows]):
            return labels
        return replace(labels, counts=counts)  # rows are split into parts only if each has one value
