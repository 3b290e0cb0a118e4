"""Models of class sizes: k-anonymity, k-map, δ-presence, and p-sensitive and (α,k)-anonymity, which also judge values.

L. Sweeney, "k-anonymity: a model for protecting privacy", IJUFKS 10(5), 2002.
T. M. Truta, B. Vinay, "Privacy protection: p-sensitive k-anonymity property", ICDEW 2006.
R. C.-W. Wong, J. Li, A. W.-C. Fu, K. Wang, "(α,k)-anonymity", KDD 2006.
K. El Emam, F. K. Dankar, "Protecting privacy using k-anonymity", JAMIA 15(5), 2008 (k-map).
M. E. Nergiz, M. Atzori, C. Clifton, "Hiding the presence of individuals from shared databases", SIGMOD 2007.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, field_validator, model_validator

from shoal.compiled.grouping import group, sum_by_class
from shoal.models.base import MAX_RECORDS, TOLERANCE, Merging, Passing, PrivacyModel, Scores, SensitiveModel
from shoal.models.diversity import distinct
from shoal.models.shares import ShareBound, Shares
from shoal.tables.frequency import Counts, FrequencyTable, RowNumbers, packed
from shoal.tables.wildcard import neighbourhoods


class KAnonymity(PrivacyModel):
    """At least ``k`` respondents in every class: records, or persons if the policy names an entity column.

    ``columns`` restricts the quasi-identifier: an attacker who knows only these columns still finds at least k
    respondents. Several requirements with different sets protect a table that can be linked in several ways.
    """

    model: Literal["k-anonymity"] = "k-anonymity"
    k: int = Field(ge=1, le=MAX_RECORDS)
    columns: tuple[str, ...] | None = Field(default=None, min_length=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "k"
    formula: ClassVar[str] = "n_E ≥ k"
    lowest_is_worst: ClassVar[bool] = True

    @field_validator("columns", mode="before")
    @classmethod
    def _a_list_will_do(cls, columns: object) -> object:
        return tuple(columns) if isinstance(columns, list) else columns

    @property
    def class_by_class(self) -> bool:
        """Whether whole classes are counted: a subset of the columns is shared with other classes."""
        return self.columns is None

    def crowd(self, table: FrequencyTable) -> Counts:
        """Return for each class the number of respondents that share its values in ``columns``."""
        if self.columns is None:
            return table.persons
        chosen = [table.columns.index(name) for name in self.columns]
        class_of, firsts = group(packed(table.codes[:, chosen]))
        if table.entities is not None:
            return np.diff(table.entities.merged(class_of, len(firsts)).starts)[class_of]
        if table.own_counts is None:
            return sum_by_class(table.counts, class_of, len(firsts))[class_of]
        # Neighbourhoods overlap, so their counts cannot be added: matches in these columns are counted again.
        alone = sum_by_class(table.own_counts, class_of, len(firsts))
        restricted = FrequencyTable(self.columns, table.codes[firsts][:, chosen], alone)
        return neighbourhoods(restricted, [table.nulls[j] for j in chosen]).counts[class_of]

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the size n_E of each class."""
        return self.crowd(table).astype(np.float64)

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether n_E ≥ k for each class."""
        return self.crowd(table) >= self.k

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"{self.k}-anonymity" + (f" over {', '.join(self.columns)}" if self.columns else "")


class MaximumRisk(PrivacyModel):
    """No record can be re-identified with a probability above ``max``: 1/n_E ≤ max."""

    model: Literal["maximum-risk"] = "maximum-risk"
    max: float = Field(gt=0, le=1, strict=False)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "risk_max"
    formula: ClassVar[str] = "1/n_E ≤ max"
    lowest_is_worst: ClassVar[bool] = False

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the risk 1/n_E of each class."""
        return np.asarray(1 / table.persons)

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether 1/n_E ≤ max for each class."""
        return np.asarray(table.persons * self.max >= 1 - TOLERANCE)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"re-identification risk at most {self.max:g}"


class PSensitive(SensitiveModel):
    """k-anonymity, and at least ``p`` distinct values of each sensitive column in every class."""

    model: Literal["p-sensitive"] = "p-sensitive"
    p: int = Field(ge=1, le=MAX_RECORDS)
    k: int = Field(ge=1, le=MAX_RECORDS)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "l"
    formula: ClassVar[str] = "n_E ≥ k and m ≥ p"
    lowest_is_worst: ClassVar[bool] = True

    @model_validator(mode="after")
    def _p_at_most_k(self) -> Self:
        if self.p > self.k:
            raise ValueError(f"p must be at most k: a class of {self.k} records cannot have more values")
        return self

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the smallest number of distinct values over the sensitive columns."""
        return np.asarray(np.minimum.reduce([distinct(h) for h in self.histograms(table)]), np.float64)

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether n_E ≥ k and m ≥ p for each class."""
        return np.asarray((table.persons >= self.k) & (self.scores(table) >= self.p))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"{self.p}-sensitive {self.k}-anonymity{self.where}"


class AlphaK(ShareBound):
    """k-anonymity, and no sensitive value has a share above ``alpha`` in any class."""

    model: Literal["alpha-k-anonymity"] = "alpha-k-anonymity"
    alpha: float = Field(gt=0, le=1, strict=False)
    k: int = Field(ge=1, le=MAX_RECORDS)
    figure: ClassVar[str] = "alpha"
    formula: ClassVar[str] = "n_E ≥ k and every p_s ≤ α"

    def components(self) -> tuple[PrivacyModel, ...]:
        """Return k-anonymity separately, because it is absorbing and a search can prune by it."""
        return (KAnonymity(k=self.k), self)

    def cap(self, q: Shares) -> Shares:
        """Return α for every value."""
        return np.full_like(q, self.alpha)

    def excess(self, p: Shares, q: Shares) -> Shares:
        """Return the share itself."""
        return p

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether n_E ≥ k and max p_s ≤ α for each class."""
        return np.asarray((table.persons >= self.k) & super().passes(table))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"({self.alpha:g}, {self.k})-anonymity{self.where}{self.exempt_words}"


class PopulationModel(PrivacyModel):
    """A condition on the number of people in a population who share the tuple of each class.

    ``population`` is a table of the population, relative to the policy file; the frequency table carries its counts.
    """

    population: str


class KMap(PopulationModel):
    """At least ``k`` people in the population share the tuple of every class."""

    model: Literal["k-map"] = "k-map"
    k: int = Field(ge=1, le=MAX_RECORDS)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "k_map"
    formula: ClassVar[str] = "N_E ≥ k"
    lowest_is_worst: ClassVar[bool] = True

    def scores(self, table: FrequencyTable) -> Scores:
        """Return the number N_E of people in the population for each class."""
        return table.people.astype(np.float64)

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether N_E ≥ k for each class."""
        return table.people >= self.k

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"{self.k}-map"


class DeltaPresence(PopulationModel):
    """A share between ``low`` and ``high`` of the people in every population class is in the table.

    A population class without anyone in the table has share 0; with ``low`` above 0 it fails, and suppression cannot
    change that.
    """

    model: Literal["delta-presence"] = "delta-presence"
    low: float = Field(default=0.0, ge=0, le=1, strict=False)
    high: float = Field(gt=0, le=1, strict=False)
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "presence"
    formula: ClassVar[str] = "low ≤ n_E/N_E ≤ high, for every class of the population"
    lowest_is_worst: ClassVar[bool] = False

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.low > self.high:
            raise ValueError("low must be at most high")
        return self

    def scores(self, table: FrequencyTable) -> Scores:
        """Return n_E / N_E for each class; infinite if the population inconsistently has nobody with this tuple."""
        nobody = np.full(table.n_classes, np.inf)
        return np.asarray(np.divide(table.counts, table.people, out=nobody, where=table.people > 0))

    def passes(self, table: FrequencyTable) -> Passing:
        """Return whether low ≤ n_E / N_E ≤ high; none if a population class without records is below low."""
        share = self.scores(table)
        nobody_missing = self.low == 0 or table.absent == 0
        return np.asarray((share >= self.low - TOLERANCE) & (share <= self.high + TOLERANCE) & nobody_missing)

    def max_passing(self, table: FrequencyTable, rows: RowNumbers) -> Scores:
        """Return the largest allowed share of the people in each population class."""
        return np.asarray(np.minimum(table.counts[rows], (self.high + TOLERANCE) * table.people[rows]))

    def possible(self, table: FrequencyTable, suppressed: int) -> bool:
        """Return whether it can hold: with ``low`` above 0, no population class and no record may be missing."""
        return self.low == 0 or (table.absent == 0 and suppressed == 0)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"({self.low:g}, {self.high:g})-presence"
