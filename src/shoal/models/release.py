"""What holds for the release as a whole: the average risk, and how many records are unique.

These are no verdicts on classes: some classes may be worse than the limit where others make up for it. Where too many
are, the smallest classes are suppressed first, since that lowers the figure most for each record that goes.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.models.base import TOLERANCE, Merging, Passing, PrivacyModel, Scores
from shoal.models.size import PopulationModel
from shoal.table.frequency import Counts, FrequencyTable


def records(table: FrequencyTable) -> Counts:
    """The records of each class; of a neighbourhood, those of the class itself: neighbourhoods share records."""
    return table.counts if table.own is None else table.own


class ReleaseModel(PrivacyModel):
    """A limit on a figure of the whole release."""

    max: float = Field(ge=0, le=1, strict=False)
    merging: ClassVar[Merging] = "table"
    least: ClassVar[bool] = False

    def value(self, table: FrequencyTable) -> float:
        """The figure of the whole release."""
        raise NotImplementedError

    def excess(self, table: FrequencyTable) -> Scores:
        """Per class, by how much it puts the release over the limit; the release holds where the sum is at most 0."""
        raise NotImplementedError

    def scores(self, table: FrequencyTable) -> Scores:
        """The figure, the same for every class."""
        return np.full(table.n_classes, self.value(table))

    def passes(self, table: FrequencyTable) -> Passing:
        """All classes pass, or none does."""
        excess = float(self.excess(table).sum())
        return np.full(table.n_classes, excess <= TOLERANCE * max(1, int(records(table).sum())))

    def enforced(self, table: FrequencyTable, failing: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], int]:
        """The classes to suppress beyond the failing ones, and how many records at least have to go on any lower node.

        Per record, the class with the greatest excess goes first. Taking a fraction of the last class bounds from
        below what any choice of classes suppresses; generalizing can only lower it. With neighbourhoods the bound
        holds too: they only grow where records are generalized, and only shrink where others go. But then those that
        stay may exceed the limit again: ask once more.
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
    """The mean chance of re-identification, Σ_E n_E · (1/n_E) / n = classes / n, is at most ``max``."""

    model: Literal["average-risk"] = "average-risk"
    figure: ClassVar[str] = "risk_mean"

    def value(self, table: FrequencyTable) -> float:
        """Mean over records of one in the persons of the class."""
        n = records(table)
        return float((n / table.persons).sum() / n.sum()) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """What the class has above its allowance."""
        n = records(table)
        return np.asarray(n / table.persons - self.max * n)

    @property
    def asked(self) -> str:
        """The requirement in one line."""
        return f"average risk at most {self.max:g}"


class SampleUniqueness(ReleaseModel):
    """At most a share ``max`` of the released records is alone in its class."""

    model: Literal["sample-uniqueness"] = "sample-uniqueness"
    figure: ClassVar[str] = "sample_uniqueness"

    def value(self, table: FrequencyTable) -> float:
        """The share of records that are alone."""
        n = records(table)
        return float(n[table.persons == 1].sum() / n.sum()) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """What the class has above its allowance."""
        return np.asarray(records(table) * ((table.persons == 1) - self.max))

    @property
    def asked(self) -> str:
        """The requirement in one line."""
        return f"at most {self.max:.4g} of the records unique in the release"


class PopulationUniqueness(PopulationModel, ReleaseModel):
    """At most a share ``max`` of the released records belongs to someone unique in the population."""

    model: Literal["population-uniqueness"] = "population-uniqueness"
    figure: ClassVar[str] = "population_uniqueness"

    def value(self, table: FrequencyTable) -> float:
        """The share of records with one person in the population, or, against reason, none."""
        return float(table.counts[table.people <= 1].sum() / table.n_records) if table.n_classes else 0.0

    def excess(self, table: FrequencyTable) -> Scores:
        """What the class has above its allowance."""
        return np.asarray(table.counts * ((table.people <= 1) - self.max))

    @property
    def asked(self) -> str:
        """The requirement in one line."""
        return f"at most {self.max:.4g} of the records unique in the population"
