"""PrivacyModel: a verdict per class, and how verdicts behave when classes merge."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from shoal.table.frequency import FrequencyTable, Histogram

Passing = NDArray[np.bool_]
Scores = NDArray[np.float64]

# absorbing: a passing class passes whatever joins it.
# convex:    the union of passing classes passes, but a failing class may spoil a passing one.
# table:     the release as a whole passes or fails; fewer classes and fewer uniques are better.
Merging = Literal["absorbing", "convex", "table"]

# Sums of shares carry rounding of about 1e-16 per term; a bound met exactly must count as met.
TOLERANCE = 1e-12

# No table has as many records, and a few times as many still are a number of 64 bits.
MOST = 10**18


class PrivacyModel(BaseModel):
    """A condition on every class of a release. Subclasses say what they score and which side of the bound is safe."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    model: str
    merging: ClassVar[Merging]
    figure: ClassVar[str]  # the name of its score among the measured figures
    least: ClassVar[bool]  # True where the least score is the worst (k, ℓ), False where the greatest is (t, α)

    def scores(self, table: FrequencyTable) -> Scores:
        """The figure of each class."""
        raise NotImplementedError

    def passes(self, table: FrequencyTable) -> Passing:
        """Whether each class satisfies the model."""
        raise NotImplementedError

    def components(self) -> tuple[PrivacyModel, ...]:
        """The models that together ask the same; a search prunes by each as its own merging allows."""
        return (self,)

    def possible(self, table: FrequencyTable, suppressed: int) -> bool:
        """Whether suppressing classes is enough to satisfy the model."""
        return True

    @property
    def unions_pass(self) -> bool:
        """Whether the union of passing classes passes, as ``merging`` says; a reading of a model may give that up."""
        return True

    def most_kept(self, table: FrequencyTable) -> Scores:
        """Per class, how many of its records a part of it that passes can have at the most."""
        return table.counts.astype(np.float64)

    @property
    def asked(self) -> str:
        """The requirement in one line, for people."""
        raise NotImplementedError


class SensitiveModel(PrivacyModel):
    """A condition on the sensitive values of each class; without ``column`` it covers every sensitive column."""

    column: str | None = None

    def histograms(self, table: FrequencyTable) -> Iterator[Histogram]:
        """The histograms that this model judges."""
        if self.column is not None:
            yield table.sensitive[self.column]
        else:
            yield from table.sensitive.values()

    def score(self, histogram: Histogram) -> Scores:
        """The figure of each class, for one sensitive column."""
        raise NotImplementedError

    def accepts(self, histogram: Histogram) -> Passing:
        """Whether each class satisfies the model, for one sensitive column."""
        raise NotImplementedError

    def scores(self, table: FrequencyTable) -> Scores:
        """The worst figure over the columns covered."""
        worst = np.minimum if self.least else np.maximum
        return np.asarray(worst.reduce([self.score(h) for h in self.histograms(table)]))

    def passes(self, table: FrequencyTable) -> Passing:
        """Every column covered must pass."""
        return np.asarray(np.logical_and.reduce([self.accepts(h) for h in self.histograms(table)]))

    def most_kept(self, table: FrequencyTable) -> Scores:
        """The least over the columns covered."""
        return np.asarray(np.minimum.reduce([self.most(h) for h in self.histograms(table)]))

    def most(self, histogram: Histogram) -> Scores:
        """``most_kept`` for one sensitive column; all of the class where nothing better is known."""
        return np.add.reduceat(histogram.counts, histogram.starts[:-1]).astype(np.float64)

    @property
    def where(self) -> str:
        """The column, for ``asked``."""
        return f" on {self.column}" if self.column else ""
