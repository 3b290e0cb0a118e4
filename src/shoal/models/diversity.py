"""Models of the variety of sensitive values: distinct, entropy and recursive ℓ-diversity.

A. Machanavajjhala, J. Gehrke, D. Kifer, M. Venkitasubramaniam, "ℓ-diversity: privacy beyond k-anonymity", ICDE 2006.
The recursive condition sums the tail, r_1 < c (r_ℓ + … + r_m); some lecture notes print a comma instead of the sum.

All three look at what texts say (``notation.same_values``). Several spellings of a value are one value. Texts that say
nothing, such as a missing value, ``?`` or ``not asked``, are no value: someone who knows that a person's value is known
would learn it from a class of one value and unknown ones. The laws of merging hold for the records that say something.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.models.base import MAX_RECORDS, TOLERANCE, Merging, Passing, Scores, SensitiveModel
from shoal.models.kernels import entropies, heads_and_tails
from shoal.models.parts import most_recursive, most_with_entropy
from shoal.tables.frequency import Counts, Histogram, RowNumbers


def distinct(histogram: Histogram) -> Counts:
    """Return m, the number of distinct values in each class."""
    return np.diff(histogram.informative.starts)


def class_sizes(histogram: Histogram) -> Counts:
    """Return n_E, the number of records in each class."""
    return np.add.reduceat(histogram.counts, histogram.starts[:-1]) if histogram.n_classes else np.zeros(0, np.int64)


def shares(histogram: Histogram) -> NDArray[np.float64]:
    """Return p_s for every entry: the share of its value in its class."""
    return np.asarray(histogram.counts / np.repeat(class_sizes(histogram), np.diff(histogram.starts)))


def entropy(histogram: Histogram) -> Scores:
    """Return the entropy −Σ p ln p of each class; 0 without values."""
    return entropies(histogram.informative.starts, histogram.informative.counts)


def most_frequent(histogram: Histogram) -> Scores:
    """Return the largest p_s of each class: the α of (α,k)-anonymity."""
    return np.maximum.reduceat(shares(histogram), histogram.starts[:-1]) if histogram.n_classes else np.zeros(0)


def head_and_tail(histogram: Histogram, l: int) -> tuple[Counts, Counts]:
    """Return r_1 and r_ℓ + r_{ℓ+1} + … + r_m of each class."""
    return heads_and_tails(histogram.informative.starts, histogram.informative.counts, l)


def silent_records(histogram: Histogram) -> Counts:
    """Return how many records of each class have a text that says nothing; any part of a class may have them."""
    if histogram.informative is histogram:
        return np.zeros(histogram.n_classes, np.int64)
    informative = histogram.informative
    n_informative = np.bincount(informative.class_of_entry, informative.counts, histogram.n_classes).astype(np.int64)
    return class_sizes(histogram) - n_informative


def least_c(histogram: Histogram, l: int) -> Scores:
    """Return r_1 / (r_ℓ + … + r_m): recursive (c,ℓ)-diversity holds exactly for the values of c above it."""
    head, tail = head_and_tail(histogram, l)
    return np.asarray(np.divide(head, tail, out=np.full(len(head), np.inf), where=tail > 0))


class DistinctDiversity(SensitiveModel):
    """Every class has at least ``l`` distinct sensitive values."""

    model: Literal["distinct-l-diversity"] = "distinct-l-diversity"
    l: int = Field(ge=1, le=MAX_RECORDS)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "l"
    formula: ClassVar[str] = "m ≥ ℓ"
    lowest_is_worst: ClassVar[bool] = True

    def score(self, histogram: Histogram) -> Scores:
        """Return the number m of distinct values in each class."""
        return distinct(histogram).astype(np.float64)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether m ≥ ℓ for each class."""
        return np.asarray(distinct(histogram) >= self.l)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"distinct {self.l}-diversity{self.where}"


class EntropyDiversity(SensitiveModel):
    """The entropy of the sensitive values in every class is at least ln ``l``."""

    model: Literal["entropy-l-diversity"] = "entropy-l-diversity"
    l: float = Field(ge=1, allow_inf_nan=False, strict=False)
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "entropy_l"
    formula: ClassVar[str] = "−Σ p_s ln p_s ≥ ln ℓ"
    lowest_is_worst: ClassVar[bool] = True

    def score(self, histogram: Histogram) -> Scores:
        """Return exp H, the ℓ that each class reaches."""
        return np.exp(entropy(histogram))

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether H ≥ ln ℓ (≥, not >: ℓ values with equal shares are entropy ℓ-diverse)."""
        return np.asarray(entropy(histogram) >= np.log(self.l) - TOLERANCE)

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return the size of the largest part with enough entropy; rounding never makes it too small."""
        informative = histogram.informative
        largest = most_with_entropy(informative.starts, informative.counts, rows, math.log(self.l) - 2 * TOLERANCE)
        return largest + silent_records(histogram)[rows]

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"entropy {self.l:g}-diversity{self.where}"


class RecursiveDiversity(SensitiveModel):
    """The most frequent value of a class occurs less than ``c`` times as often as the ``l``-th and all rarer ones."""

    model: Literal["recursive-l-diversity"] = "recursive-l-diversity"
    c: float = Field(gt=0, allow_inf_nan=False, strict=False)
    l: int = Field(ge=1, le=MAX_RECORDS)
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "recursive_c"
    formula: ClassVar[str] = "r₁ < c · (r_ℓ + r_{ℓ+1} + … + r_m)"
    lowest_is_worst: ClassVar[bool] = False

    def score(self, histogram: Histogram) -> Scores:
        """Return the value that c must exceed for each class."""
        return least_c(histogram, self.l)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether r_1 < c · tail; rounding of c · tail never turns an equality into a pass."""
        head, tail = head_and_tail(histogram, self.l)
        return np.asarray(head * (1 + TOLERANCE) < self.c * tail)

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return the size of the largest part whose most frequent value is rare enough."""
        informative = histogram.informative
        return (
            most_recursive(informative.starts, informative.counts, rows, self.c, self.l)
            + silent_records(histogram)[rows]
        )

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"recursive ({self.c:g}, {self.l})-diversity{self.where}"
