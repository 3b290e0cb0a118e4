"""How many: k-anonymity, and p-sensitive k-anonymity, which adds a count of values.

L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
T. M. Truta, B. Vinay, "Privacy protection: p-sensitive k-anonymity property", ICDEW 2006.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from shoal.models.base import Merging, PrivacyModel, Scores, SensitiveModel, Verdicts
from shoal.models.diversity import distinct
from shoal.table.frequency import FrequencyTable


class KAnonymity(PrivacyModel):
    """At least ``k`` respondents in every class: records, or persons where an entity column is named."""

    model: Literal["k-anonymity"] = "k-anonymity"
    k: int = Field(ge=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "k"
    least: ClassVar[bool] = True

    def scores(self, table: FrequencyTable) -> Scores:
        """n_E."""
        return table.persons.astype(np.float64)

    def passes(self, table: FrequencyTable) -> Verdicts:
        """n_E ≥ k."""
        return table.persons >= self.k

    @property
    def asked(self) -> str:
        """In one line."""
        return f"{self.k}-anonymity"


class PSensitive(SensitiveModel):
    """k-anonymity, and at least ``p`` distinct values of each sensitive column in every class."""

    model: Literal["p-sensitive"] = "p-sensitive"
    p: int = Field(ge=1)
    k: int = Field(ge=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "l"
    least: ClassVar[bool] = True

    @model_validator(mode="after")
    def _p_at_most_k(self) -> Self:
        if self.p > self.k:
            raise ValueError(f"p must be at most k: a class of {self.k} records may have no more values than that")
        return self

    def scores(self, table: FrequencyTable) -> Scores:
        """The least number of distinct values over the sensitive columns."""
        return np.asarray(np.minimum.reduce([distinct(h) for h in self.histograms(table)]), np.float64)

    def passes(self, table: FrequencyTable) -> Verdicts:
        """n_E ≥ k and m ≥ p."""
        return np.asarray((table.persons >= self.k) & (self.scores(table) >= self.p))

    @property
    def asked(self) -> str:
        """In one line."""
        return f"{self.p}-sensitive {self.k}-anonymity{self.where}"
