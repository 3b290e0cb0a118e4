"""Forbidden results: what must not come out when an algorithm runs on the release.

Other models protect people; these protect what can be computed (result privacy). The finished release is mined, and it
is refused where a forbidden result comes out. A cell may leave open whether a condition holds: ``*``, or 30-49 where
30-39 is asked for. An analyst may drop records that leave it open, count them as non-matches, or fill them in. A result
comes out if dropping them or counting them as non-matches shows it. If only some way to fill them in shows it, it may
come out: that cannot be determined, unless the policy says that doubt is protection enough.

M. Atallah, E. Bertino, A. Elmagarmid, M. Ibrahim, V. Verykios, "Disclosure limitation of sensitive rules", KDEX 1999.
V. Verykios, A. Elmagarmid, E. Bertino, Y. Saygin, E. Dasseni, "Association rule hiding", TKDE 16(4), 2004.
Y. Saygin, V. Verykios, C. Clifton, "Using unknowns to prevent discovery of association rules", SIGMOD Record 30(4),
2001: hiding by cells that leave it open.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from shoal.hierarchies.containment import INSIDE, OUTSIDE, UNDECIDED, UNREAD, Placing
from shoal.models.verdict import Outcome, Verdict
from shoal.notation.forms import is_star
from shoal.tables.frequency import Floats
from shoal.text.figures import format_count

Conditions = dict[str, str]  # a value, range, mask or label by column


class Minable(Protocol):
    """Released records, grouped by the columns that forbidden results name."""

    @property
    def counts(self) -> NDArray[np.int64]:
        """The number of records of each group."""

    def placed(self, column: str, value: str) -> Placing:
        """Return for each group whether its cell lies within a value."""

    def labels(self, column: str) -> CellTexts:
        """Return for each group the text of its cell, by number."""

    def numbers(self, column: str) -> Floats:
        """Return for each group the least and the largest number that its cell may be; NaN if it is no number."""


class CellTexts(NamedTuple):
    """The texts of a column as numbers: equal texts have equal numbers."""

    codes: NDArray[np.int64]
    silent: NDArray[np.bool_]  # the cell says nothing: a star, or a missing value
    coarse: NDArray[np.bool_]  # it may be one of several values of the column


class RuleCounts(NamedTuple):
    """The numbers of records for which it is decided whether they match a rule."""

    decided: int
    body: int
    matches: int

    @property
    def support(self) -> float:
        """The share of records that match the whole rule."""
        return self.matches / self.decided if self.decided else 0.0

    @property
    def confidence(self) -> float:
        """Of the records that match the condition, the share that match the conclusion."""
        return self.matches / self.body if self.body else 0.0


class ForbiddenResult(BaseModel):
    """A result that must not come out of the release."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)

    result: str
    doubt: Literal["refuse", "accept"] = Field(
        default="refuse",
        description="If cells leave open whether the result comes out, that cannot be determined, and nothing is "
        'released (`"refuse"`), or doubt is protection enough (`"accept"`).',
    )
    figure: ClassVar[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the result is about."""
        raise NotImplementedError

    @property
    def summary(self) -> str:
        """The prohibition as one readable line, without the values that it names: errors and logs contain it."""
        raise NotImplementedError

    def mining(self, mined: Minable) -> Mining:
        """Return whether the result comes out, or may come out."""
        raise NotImplementedError

    def unread(self, mined: Minable) -> str:
        """Return which cells, or which value of the policy, cannot be read; empty if all can."""
        raise NotImplementedError

    def judge(self, mined: Minable | None) -> Verdict:
        """Judge whether the result comes out; unknown where nothing was mined or a cell cannot be read."""
        missing = NOT_MINED if mined is None else self.unread(mined)
        if mined is None or missing:
            return Verdict(self.summary, "unknown", self.figure, math.nan, 0, 0, missing)
        mining = self.mining(mined)
        outcome: Outcome = "fails" if mining.comes_out else "holds"
        if outcome == "holds" and mining.possible and self.doubt == "refuse":
            outcome = "unknown"
        return Verdict(
            self.summary, outcome, self.figure, mining.figure, 0, 0, mining.open_cells if outcome == "unknown" else ""
        )


class Mining(NamedTuple):
    """What was mined: whether a result comes out, whether it may, and its figure."""

    comes_out: bool
    possible: bool
    figure: float
    open_cells: str  # how many records leave it open


NOT_MINED = "the rows were not mined"


class MatchedResult(ForbiddenResult):
    """A result about records that match given values, which suppressing cells can hide."""

    enforce: bool = Field(
        default=False,
        description="Suppress the fewest cells, in whole classes, so that the result does not come out; needs `doubt = "
        '"accept"`, because a suppressed cell may still be what it was.',
    )

    @model_validator(mode="after")
    def _doubt_is_accepted(self) -> Self:
        if self.enforce and self.doubt == "refuse":
            raise ValueError(
                'enforce needs doubt = "accept": a suppressed cell may still be what it was, so the result may come out'
            )
        return self

    def flags(self, mined: Minable) -> tuple[NDArray[np.bool_], ...]:
        """Return the groups that each figure of the result counts."""
        raise NotImplementedError

    @field_validator("where", "when", "then", mode="before", check_fields=False)
    @classmethod
    def _whole_numbers_are_texts(cls, conditions: Any) -> Any:
        if not isinstance(conditions, Mapping):
            return conditions
        return {
            name: str(value) if isinstance(value, int) and not isinstance(value, bool) else value
            for name, value in conditions.items()
        }

    @field_validator("where", "when", "then", check_fields=False)
    @classmethod
    def _says_something(cls, conditions: Conditions) -> Conditions:
        if not conditions:
            raise ValueError("name at least one column and its value")
        if any(not value.strip() or is_star(value) for value in conditions.values()):
            raise ValueError("a value is empty or '*', which every record matches")
        return conditions


class ForbiddenCount(MatchedResult):
    """The number of records that match ``where`` must not come out between ``min`` and ``max``."""

    result: Literal["count"] = "count"
    where: Conditions = Field(description="The group: a value, range, mask or label by column.")
    min: int = Field(default=1, ge=1, description="The smallest forbidden count.")
    max: int | None = Field(default=None, ge=1, description="The largest forbidden count; by default there is none.")
    figure: ClassVar[str] = "count"

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.max is not None and self.max < self.min:
            raise ValueError("max must be at least min")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the group."""
        return tuple(self.where)

    @property
    def summary(self) -> str:
        """The prohibition as one readable line."""
        up = f"{self.min} or more" if self.max is None else f"{self.min} to {self.max}"
        return f"no count of {up} in a group by {_listed(self.where)}"

    def flags(self, mined: Minable) -> tuple[NDArray[np.bool_], ...]:
        """Return which groups certainly match."""
        return (met(mined, self.where) == INSIDE,)

    def count(self, mined: Minable) -> tuple[int, int]:
        """Return the number of records that certainly match, and of those that may."""
        placed = met(mined, self.where)
        return int(mined.counts[placed == INSIDE].sum()), int(mined.counts[placed != OUTSIDE].sum())

    def comes_out(self, count: int) -> bool:
        """Return whether a count is forbidden."""
        return self.min <= count and (self.max is None or count <= self.max)

    def unread(self, mined: Minable) -> str:
        """Return which cells or value of the group cannot be read."""
        return unread_values(mined, self.where)

    def mining(self, mined: Minable) -> Mining:
        """Return whether the count of certain matches is forbidden, or that with some open ones."""
        certain, conceivable = self.count(mined)
        possible = conceivable >= self.min and (self.max is None or certain <= self.max)  # a count between is forbidden
        return Mining(self.comes_out(certain), possible, certain, open_records(conceivable - certain))


class ForbiddenRule(MatchedResult):
    """The association rule ``when`` → ``then`` must not have this support and this confidence, or more of both."""

    result: Literal["rule"] = "rule"
    when: Conditions = Field(description="The condition: a value, range, mask or label by column.")
    then: Conditions = Field(description="The conclusion, on other columns.")
    support: float = Field(
        gt=0, le=1, strict=False, description="The share of records that match the whole rule, at which it comes out."
    )
    confidence: float = Field(
        gt=0,
        le=1,
        strict=False,
        description="The share of records with the condition that have the conclusion, at which it comes out.",
    )
    figure: ClassVar[str] = "confidence"

    @model_validator(mode="after")
    def _different_columns(self) -> Self:
        if set(self.when) & set(self.then):
            raise ValueError("when and then name the same column")
        return self

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the condition, then those of the conclusion."""
        return (*self.when, *self.then)

    @property
    def summary(self) -> str:
        """The prohibition as one readable line."""
        return (
            f"no rule {_listed(self.when)} → {_listed(self.then)} with support of at least {self.support:g} "
            f"and confidence of at least {self.confidence:g}"
        )

    def flags(self, mined: Minable) -> tuple[NDArray[np.bool_], ...]:
        """Return for which groups the rule is decided, which match its condition, and which match both parts.

        It is decided for a record that fails the condition, whatever its conclusion is.
        """
        body, head = met(mined, self.when), met(mined, self.then)
        fires = (body == INSIDE) & (head != UNDECIDED)
        return (body == OUTSIDE) | fires, fires, fires & (head == INSIDE)

    def counted(self, mined: Minable) -> RuleCounts:
        """Count the records for which it is decided whether they match."""
        decided, body, matches = (int(mined.counts[flag].sum()) for flag in self.flags(mined))
        return RuleCounts(decided, body, matches)

    def filled_in(self, mined: Minable) -> RuleCounts:
        """Count with every record that may match the whole rule as a match, and without the other open ones.

        One more match raises both shares, so no other way to fill in or drop open records gives more of either.
        """
        decided, body, matches = self.counted(mined)
        condition, conclusion = met(mined, self.when), met(mined, self.then)
        may = (condition != OUTSIDE) & (conclusion != OUTSIDE)
        n_open = int(mined.counts[may & ((condition == UNDECIDED) | (conclusion == UNDECIDED))].sum())
        return RuleCounts(decided + n_open, body + n_open, matches + n_open)

    def comes_out(self, counts: RuleCounts) -> bool:
        """Return whether a miner with these thresholds finds the rule; exact, as thresholds are decimal numbers."""
        enough = counts.matches >= Fraction(str(self.support)) * counts.decided
        return counts.matches > 0 and enough and counts.matches >= Fraction(str(self.confidence)) * counts.body

    def unread(self, mined: Minable) -> str:
        """Return which cells or value of the rule cannot be read."""
        return unread_values(mined, {**self.when, **self.then})

    def mining(self, mined: Minable) -> Mining:
        """Return whether the rule comes out without the open records, or with some of them filled in."""
        certain, filled = self.counted(mined), self.filled_in(mined)
        return Mining(
            self.comes_out(certain),
            self.comes_out(filled),
            certain.confidence,
            open_records(filled.matches - certain.matches),
        )


def open_records(n: int) -> str:
    """Return how many records leave a result open, as words."""
    return f"{format_count(n, 'record')} may match: their cells leave it open"


def met(mined: Minable, values: Conditions) -> Placing:
    """Return for each group whether it meets all conditions; one that fails decides, whatever the others are."""
    placed = np.array([mined.placed(name, value) for name, value in values.items()])
    otherwise = np.where((placed == UNDECIDED).any(axis=0), UNDECIDED, INSIDE)
    return np.where((placed == OUTSIDE).any(axis=0), OUTSIDE, otherwise).astype(np.int8)


def unread_values(mined: Minable, values: Conditions) -> str:
    """Return which cells could not be read, or that a value could not."""
    for name, value in values.items():
        unread = mined.placed(name, value) == UNREAD
        if n := int(mined.counts[unread].sum()):
            if unread.all():
                return f"the value named for column {name!r} is none of its values, labels or ranges"
            return f"column {name!r}: {n} cells cannot be read as values of the column"
    return ""


def _listed(values: Conditions) -> str:
    return ", ".join(values)
