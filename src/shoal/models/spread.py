"""(k,e)-anonymity: the numbers of every class differ, and lie far enough apart.

Q. Zhang, N. Koudas, D. Srivastava, T. Yu, "Aggregate query answering on anonymized tables", ICDE 2007.
"""

from __future__ import annotations

from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.errors import PolicyError
from shoal.models.base import MAX_RECORDS, TOLERANCE, Merging, Passing, Scores, SensitiveModel
from shoal.notation.numbers import parse_number
from shoal.notation.same_values import says_nothing
from shoal.tables.frequency import Domain, Histogram


class KEAnonymity(SensitiveModel):
    """Every class has at least ``k`` different numbers, and the largest exceeds the smallest by at least ``e``.

    Otherwise a class with many different values can disclose a value approximately: salaries of 3,001, 3,002 and 3,003
    are three values and one piece of news. Texts that say nothing, such as a missing value, are no numbers.
    """

    model: Literal["k-e-anonymity"] = "k-e-anonymity"
    k: int = Field(default=2, ge=1, le=MAX_RECORDS)
    e: float = Field(ge=0, allow_inf_nan=False, strict=False)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "e"
    formula: ClassVar[str] = "k numbers differ, and max − min ≥ e"
    lowest_is_worst: ClassVar[bool] = True

    def score(self, histogram: Histogram) -> Scores:
        """Return the distance from the smallest to the largest number of each class; 0 without numbers."""
        numbers = sensitive_numbers(histogram)[histogram.values]
        if not len(numbers):
            return np.zeros(histogram.n_classes)
        starts = histogram.starts[:-1]  # no class is empty
        low = np.minimum.reduceat(np.where(np.isnan(numbers), np.inf, numbers), starts)
        high = np.maximum.reduceat(np.where(np.isnan(numbers), -np.inf, numbers), starts)
        return np.asarray(np.maximum(0.0, high - low))

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether each class has k numbers, e apart; rounding does not make an equality fail."""
        numbers = sensitive_numbers(histogram)[histogram.values]
        if not len(numbers):
            return np.zeros(histogram.n_classes, np.bool_)
        if self.k <= 2:  # two ends that differ are two numbers
            several = self.score(histogram) > 0 if self.k == 2 else ~_without_numbers(numbers, histogram)
        else:
            several = _different(numbers, histogram) >= self.k
        return np.asarray(several & (self.score(histogram) >= self.e * (1 - TOLERANCE)))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"({self.k}, {self.e:g})-anonymity of numbers{self.where}"


def sensitive_numbers(histogram: Histogram) -> NDArray[np.float64]:
    """Return the values of a column as numbers; NaN for texts that say nothing."""
    if histogram.domain is None:
        raise TypeError("the values of this histogram are persons, not sensitive values")
    return _numbers(histogram.domain)


@lru_cache(maxsize=64)
def _numbers(domain: Domain) -> NDArray[np.float64]:
    read = [None if text is None else parse_number(text) for text in domain.texts]
    if any(x is None and not says_nothing(text) for x, text in zip(read, domain.texts, strict=True)):
        raise PolicyError(
            f"column {domain.column!r}: k-e-anonymity needs numbers, but some of its values are not numbers",
            "choose another model, or name the texts for missing values",
        )
    return np.array([np.nan if x is None else float(x) for x in read])


def _without_numbers(numbers: NDArray[np.float64], histogram: Histogram) -> Passing:
    """Return which classes have no number."""
    return np.asarray(np.add.reduceat(~np.isnan(numbers), histogram.starts[:-1], dtype=np.int64) == 0)


def _different(numbers: NDArray[np.float64], histogram: Histogram) -> NDArray[np.int64]:
    """Return how many different numbers each class has."""
    is_number = ~np.isnan(numbers)
    pairs = np.unique(np.column_stack([histogram.class_of_entry[is_number], numbers[is_number]]), axis=0)
    return np.bincount(pairs[:, 0].astype(np.int64), minlength=histogram.n_classes)
