"""Verdict: whether a requirement holds, fails or is unknown, and what is missing to decide it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np

from shoal.errors import PublicationError
from shoal.models.finding import Finding, Publication, headline, publication
from shoal.text.showing import Shown

Outcome = Literal["holds", "fails", "unknown"]  # unknown: it cannot be decided from the available data


@dataclass(frozen=True)
class Verdict:
    """The verdict on one requirement: the requirement, the figure of the worst class, and the failing classes."""

    asked: str
    outcome: Outcome
    figure: str
    worst: float  # NaN if nothing was measured; if the outcome is unknown, a bound on the figure
    classes: int  # classes that fail
    records: int  # records in them
    missing: str = ""  # the information needed to decide, if the outcome is unknown

    @property
    def holds(self) -> bool:
        """Whether the requirement holds for certain."""
        return self.outcome == "holds"

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"asked": self.asked, "holds": self.holds} | asdict(self)


_SENTENCES: dict[Outcome, str] = {
    "holds": "The policy holds",
    "fails": "The policy does not hold",
    "unknown": "Whether the policy holds cannot be determined",
}


def outcome_of_all(outcomes: Iterable[Outcome]) -> Outcome:
    """Return the outcome of several requirements together: fails if one fails, unknown if one is unknown."""
    all_outcomes = set(outcomes)
    if "fails" in all_outcomes:
        return "fails"
    return "unknown" if "unknown" in all_outcomes else "holds"


class Answered:
    """A result that holds, fails or is unknown."""

    @property
    def outcome(self) -> Outcome:
        """The outcome: holds, fails or unknown."""
        raise NotImplementedError

    @property
    def holds(self) -> bool:
        """Whether it certainly holds: nothing fails, and no requirement is unknown."""
        return self.outcome == "holds"


@dataclass(frozen=True)
class Verdicts(Answered, Shown):
    """The verdicts on all requirements of a policy."""

    verdicts: tuple[Verdict, ...]
    identifiers: tuple[str, ...]  # identifier columns that are still in the table
    records: int
    classes: int
    findings: tuple[Finding, ...] = field(default=(), compare=False)  # they apply even if everything holds

    @property
    def outcome(self) -> Outcome:
        """Fails if a requirement fails or an identifier is left; unknown if a requirement is unknown; else holds."""
        return "fails" if self.identifiers else outcome_of_all(verdict.outcome for verdict in self.verdicts)

    @property
    def sentence(self) -> str:
        """The outcome as a sentence."""
        return _SENTENCES[self.outcome]

    @property
    def publication(self) -> Publication:
        """Whether the table may be published: ready, decide first, or do not publish."""
        return publication(self.outcome, self.findings)

    @property
    def headline(self) -> str:
        """The publication verdict as a sentence with its first reason."""
        return headline(self.outcome, self.findings)

    def require_publishable(self) -> None:
        """Raise an error if the table must not be published."""
        if self.publication == "do not publish":
            reasons = [str(finding) for finding in self.findings if finding.severity == "stop"]
            raise PublicationError("\n".join([self.headline, *reasons]), "follow the findings, or do without strict")

    def same(self, other: Verdicts) -> bool:
        """Return whether another count gives the same verdicts; float sums may differ in their last digits."""
        worst, theirs = ([verdict.worst for verdict in verdicts.verdicts] for verdicts in (self, other))
        return self._counts == other._counts and np.allclose(worst, theirs, rtol=1e-9, atol=1e-12, equal_nan=True)

    @property
    def _counts(self) -> Verdicts:
        return replace(self, verdicts=tuple(replace(verdict, worst=0.0) for verdict in self.verdicts))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "publication": self.publication,
            "outcome": self.outcome,
            "holds": self.holds,
            **asdict(self),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "findings": [finding.as_dict() for finding in self.findings],
        }
