"""Points: records as numbers and categories, and the distance between two of them.

For numbers alone, the squared Euclidean distance of standardized columns. With at least one category, Gower's distance:
for a number the difference over the range, for a category 0 or 1, for a hierarchy the level of the nearest common
ancestor over its height.

J. C. Gower, "A general coefficient of similarity and some of its properties", Biometrics 27(4), 1971.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.masking.kernels import Signs
from shoal.tables.frequency import Floats


@dataclass(frozen=True, eq=False)
class Points:
    """Records: columns of scaled numbers, and signs, which add a price if two records differ in them."""

    numbers: Floats  # (records, columns)
    signs: Signs  # (records, signs)  no two columns share a sign
    prices: Floats  # (signs)  of the columns
    squared: bool  # whether differences of numbers are squared

    @classmethod
    def from_columns(
        cls,
        numbers: Sequence[Floats],
        signs: Sequence[NDArray[np.int32]] = (),
        prices: Sequence[float] = (),
        *,
        n: int,
        weights: Sequence[float] | None = None,
    ) -> Points:
        """Build from ``n`` records: columns of numbers with their weights, and of signs with their prices."""
        squared = not signs
        scaled = [
            _scaled(column, squared) * (np.sqrt(weight) if squared else weight)
            for column, weight in zip(numbers, weights or [1.0] * len(numbers), strict=True)
        ]
        starts = np.cumsum([0, *(int(column.max(initial=-1)) + 1 for column in signs)])
        sign_codes = [column + start for column, start in zip(signs, starts[:-1], strict=True)]
        return cls(
            np.ascontiguousarray(np.column_stack(scaled)) if scaled else np.zeros((n, 0)),
            np.ascontiguousarray(np.column_stack(sign_codes), np.int32) if sign_codes else np.zeros((n, 0), np.int32),
            np.array(prices, np.float64),
            squared,
        )

    @property
    def n(self) -> int:
        """The number of records."""
        return len(self.numbers)

    @cached_property
    def n_signs(self) -> int:
        """The number of signs over all columns."""
        return int(self.signs.max(initial=-1)) + 1

    def subset(self, records: NDArray[np.int64]) -> Points:
        """Return some of the records."""
        return Points(self.numbers[records], self.signs[records], self.prices, self.squared)


def _scaled(column: Floats, squared: bool) -> Floats:
    """Scale to standard deviations, or to a part of the range; a constant column distinguishes no records."""
    column = scaled_to_unit(column)
    spread = float(np.std(column)) if squared else float(np.ptp(column))
    if not len(column) or spread == 0:
        return np.zeros(len(column))
    return np.asarray((column - column.mean()) / spread)


def scaled_to_unit(column: Floats) -> Floats:
    """Scale to between −1 and 1, where no square of a double overflows."""
    largest = float(np.abs(column).max(initial=0.0))
    return np.asarray(column / largest) if largest else column
