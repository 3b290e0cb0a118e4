"""Limits on the release as a whole: the average risk, and the number of unique records.

These are not verdicts on classes: some classes may exceed the limit if others compensate. If the release exceeds the
limit, the smallest classes are suppressed first, since that lowers the figure most per suppressed record.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.models.base import TOLERANCE, Merging, Passing, PrivacyModel, Scores
from shoal.models.size import PopulationModel
from shoal.tables.frequency import Counts, FrequencyTable


def records(table: FrequencyTable) -> Counts:
    """Return the records of each class; for a neighbourhood only the class's own, as neighbourhoods share records."""
    return table.counts if table.own_counts is None else table.own_counts


class ReleaseModel(PrivacyModel):
    """A limit on a figure of the whole release."""

    max: float = Field(ge=0, le=1, strict=False)
    merging: ClassVar[Merging] = "table"
    lowest_is_worst: ClassVar[bool] = False

    def value(self, table: FrequencyTable) -> float:
        """Return the figure of the whole release."""
        raise NotImplementedError

    def excess(self, table: FrequencyTable) -> Scores:
        """Return each class's contribution above the limit; the release satisfies the limit if the sum is at most 0."""
        raise NotImplementedError

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the figure of the release, repeated for every class."""
        return np.full(table.n_classes, self.value(table))

    def passes(self, table: FrequencyTable) -> Passing:
        """Return the same verdict for every class."""
        excess = float(self.excess(table).sum())
        return np.full(table.n_classes, excess <= TOLERANCE * max(1, int(records(table).sum())))

    def enforced(self, table: FrequencyTable, failing: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
        """Return the classes to suppress besides the failing ones, and the fewest records suppressed on any lower node.

        The class with the largest excess per record goes first. Taking a fraction of the last class gives a lower bound
        on what any choice of classes suppresses; generalizing can only lower it. The bound also holds for
        neighbourhoods: they only grow when records are generalized, and only shrink when others are suppressed. But
        then the remaining classes may exceed the limit again, so the caller must repeat.
        """
        n = records(table)
        slack = TOLERANCE * max(1, int(n.sum()))
        excess = np.where(failing, 0.0, self.excess(table))
        over = float(excess.sum())
        if over <= slack:
            return failing, 0
        per_record = np.where(failing, -np.inf, excess / n)
        order = np.lexsort((*table.codes.T[::-1], -per_record))
        freed = np.cumsum(np.maximum(excess[order], 0.0))
        enough = int(np.searchsorted(freed, over - slack))
        if enough == len(order):
            return np.ones_like(failing), int(n[~failing].sum())
        out = failing.copy()
        out[order[: enough + 1]] = True
        whole = int(n[order[:enough]].sum())
        rest = over - (float(freed[enough - 1]) if enough else 0.0)
        last = order[enough]
        return out, whole + math.floor(rest / excess[last] * n[last] - 1e-9)


class AverageRisk(ReleaseModel):
    """The mean probability of re-identification, Σ_E n_E · (1/n_E) / n = classes / n, is at most ``max``."""

    model: Literal["average-risk"] = "average-risk"
    figure: ClassVar[str] = "risk_mean"
    formula: ClassVar[str] = "the mean over records of 1/n_E ≤ max"

    def value(self, table: FrequencyTable) -> float:
        """Return the mean over records of 1 / (number of persons in the class)."""
        n = records(table)
        return float((n / table.persons).sum() / n.sum()) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """Return how much each class exceeds its allowance."""
        n = records(table)
        return np.asarray(n / table.persons - self.max * n)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"average risk at most {self.max:g}"


class SampleUniqueness(ReleaseModel):
    """At most a share ``max`` of the released records are alone in their class."""

    model: Literal["sample-uniqueness"] = "sample-uniqueness"
    figure: ClassVar[str] = "sample_uniqueness"
    formula: ClassVar[str] = "the share of records with n_E = 1 is ≤ max"

    def value(self, table: FrequencyTable) -> float:
        """Return the share of records that are alone in their class."""
        n = records(table)
        return float(n[table.persons == 1].sum() / n.sum()) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """Return how much each class exceeds its allowance."""
        return np.asarray(records(table) * ((table.persons == 1) - self.max))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"at most {self.max:.4g} of the records unique in the release"


class PopulationUniqueness(PopulationModel, ReleaseModel):
    """At most a share ``max`` of the released records belong to a person who is unique in the population."""

    model: Literal["population-uniqueness"] = "population-uniqueness"
    figure: ClassVar[str] = "population_uniqueness"
    formula: ClassVar[str] = "the share of records with N_E ≤ 1 is ≤ max"

    def value(self, table: FrequencyTable) -> float:
        """Return the share of records that match one person in the population, or (inconsistently) none."""
        return float(table.counts[table.people <= 1].sum() / table.n_records) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """Return how much each class exceeds its allowance."""
        return np.asarray(table.counts * ((table.people <= 1) - self.max))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"at most {self.max:.4g} of the records unique in the population"
