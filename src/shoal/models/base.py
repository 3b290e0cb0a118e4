"""PrivacyModel: one verdict per equivalence class, and how verdicts behave when classes merge."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from shoal.tables.frequency import FrequencyTable, Histogram, RowNumbers

Passing = NDArray[np.bool_]
Scores = NDArray[np.float64]

# absorbing: a passing class still passes after any records join it.
# convex:    the union of passing classes passes, but merging with a failing class can make a passing class fail.
# table:     the release as a whole passes or fails; fewer classes and fewer uniques are better.
Merging = Literal["absorbing", "convex", "table"]

# Sums of shares have rounding errors of about 1e-16 per term; a bound that is met exactly must count as met.
TOLERANCE = 1e-12

# More records than any table has; a small multiple of it still fits in 64 bits.
MAX_RECORDS = 10**18


class PrivacyModel(BaseModel):
    """A condition on every class of a release. Subclasses define the score and which side of the bound is safe."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    merging: ClassVar[Merging]
    formula: ClassVar[str] = ""  # the condition in symbols, for the page of the models
    figure: ClassVar[str]  # the name of the score among the measured figures
    lowest_is_worst: ClassVar[bool]  # True if the smallest score is the worst (k, ℓ), False if the largest is (t, α)

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the score of each class."""
        raise NotImplementedError

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether each class satisfies the model."""
        raise NotImplementedError

    def components(self) -> tuple[PrivacyModel, ...]:
        """Return models that together are equivalent; a search prunes by each as far as its ``merging`` allows."""
        return (self,)

    def possible(self, table: FrequencyTable, suppressed: int) -> bool:
        """Return whether suppressing classes is enough to satisfy the model."""
        return True

    @property
    def unions_pass(self) -> bool:
        """Whether the union of passing classes passes, as ``merging`` says; some variants of a model lose this."""
        return True

    @property
    def class_by_class(self) -> bool:
        """Whether the verdict of a class depends on that class alone, not on others of the release."""
        return True

    def max_passing(self, table: FrequencyTable, rows: RowNumbers) -> Scores:
        """Return, for each class of ``rows``, an upper bound on the number of records in a part that passes."""
        return table.counts[rows].astype(np.float64)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        raise NotImplementedError


class SensitiveModel(PrivacyModel):
    """A condition on the sensitive values of each class; without ``column`` it covers every sensitive column."""

    column: str | None = None

    def histograms(self, table: FrequencyTable) -> Iterator[Histogram]:
        """Yield the histograms that this model judges."""
        if self.column is not None:
            yield table.sensitive[self.column]
        else:
            yield from table.sensitive.values()

    def score(self, histogram: Histogram) -> Scores:
        """Return the score of each class for one sensitive column."""
        raise NotImplementedError

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether each class satisfies the model for one sensitive column."""
        raise NotImplementedError

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the worst score of each class over the covered columns."""
        worst = np.minimum if self.lowest_is_worst else np.maximum
        return np.asarray(worst.reduce([self.score(h) for h in self.histograms(table)]))

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether each class passes for every covered column."""
        return reduce(np.logical_and, map(self.accepts, self.histograms(table)))

    def max_passing(self, table: FrequencyTable, rows: RowNumbers) -> Scores:
        """Return the smallest bound over the covered columns."""
        return reduce(np.minimum, (self.max_passing_by_column(h, rows) for h in self.histograms(table)))

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return ``max_passing`` for one sensitive column; the whole class if no better bound is known."""
        return np.add.reduceat(histogram.counts, histogram.starts[:-1])[rows].astype(np.float64)

    @property
    def where(self) -> str:
        """The column name, as ``summary`` shows it."""
        return f" on {self.column}" if self.column else ""
