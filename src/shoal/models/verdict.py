"""Verdict: whether a requirement holds, fails, or cannot be told, and what is missing to tell."""

from __future__ import annotations

import warnings
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from shoal.text.showing import Shown

if TYPE_CHECKING:
    from shoal.judge.warning_list import Caution

Outcome = Literal["holds", "fails", "unknown"]  # unknown: it cannot be told from what is there


@dataclass(frozen=True)
class Verdict:
    """One requirement: what was asked, what was found in the worst class, and who is at fault."""

    asked: str
    outcome: Outcome
    figure: str
    worst: float  # NaN where nothing was measured; where the outcome is unknown, a bound on the figure
    classes: int  # classes that fail
    records: int  # records in them
    missing: str = ""  # what is needed to tell, where the outcome is unknown

    @property
    def holds(self) -> bool:
        """Whether the requirement holds for certain."""
        return self.outcome == "holds"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"asked": self.asked, "holds": self.holds} | asdict(self)


_SENTENCES: dict[Outcome, str] = {
    "holds": "The policy holds",
    "fails": "The policy does not hold",
    "unknown": "Whether the policy holds cannot be determined",
}


class Answered:
    """What holds, fails, or cannot be told."""

    @property
    def outcome(self) -> Outcome:
        """Which of the three."""
        raise NotImplementedError

    @property
    def holds(self) -> bool:
        """Whether it holds for certain: nothing fails, and nothing that is required cannot be told."""
        return self.outcome == "holds"

    @property
    def hold(self) -> bool:
        """The old name of ``holds``, for one more version."""
        warnings.warn("hold is now called holds", DeprecationWarning, stacklevel=2)
        return self.holds


@dataclass(frozen=True)
class Verdicts(Answered, Shown):
    """The answer to a policy."""

    verdicts: tuple[Verdict, ...]
    identifiers: tuple[str, ...]  # columns that should be gone and are not
    records: int
    classes: int
    warnings: tuple[Caution, ...] = field(default=(), compare=False)  # what a user should know although it holds

    @property
    def outcome(self) -> Outcome:
        """fails where one requirement fails or an identifier is left; unknown where one cannot be told; else holds."""
        found = {verdict.outcome for verdict in self.verdicts}
        if self.identifiers or "fails" in found:
            return "fails"
        return "unknown" if "unknown" in found else "holds"

    @property
    def sentence(self) -> str:
        """The answer in words."""
        return _SENTENCES[self.outcome]

    def same(self, other: Verdicts) -> bool:
        """Whether another count says the same; figures are sums of floats, and may differ in their last digits."""
        worst, theirs = ([verdict.worst for verdict in found.verdicts] for found in (self, other))
        return self._counts == other._counts and np.allclose(worst, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)

    @property
    def _counts(self) -> Verdicts:
        return replace(self, verdicts=tuple(replace(verdict, worst=0.0) for verdict in self.verdicts))

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "outcome": self.outcome,
            "holds": self.holds,
            "hold": self.holds,  # its old name, for one more version
            **asdict(self),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
        }
