"""The result of verifying a certificate: a line for each statement, and what the recount found beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from shoal.models.finding import Finding, Publication, headline, publication
from shoal.models.verdict import Answered, Outcome
from shoal.text.figures import format_count
from shoal.text.showing import Shown


@dataclass(frozen=True)
class Line:
    """One statement of a certificate."""

    name: str
    claimed: Any
    found: Any  # None if it was not counted
    holds: bool | None  # None if the release alone cannot show it
    why: str = ""  # why it cannot be determined, or what is wrong
    required: bool = False  # whether it is a requirement of the policy: if that is unknown, so is the whole


@dataclass(frozen=True)
class Verification(Answered, Shown):
    """All statements that were checked."""

    lines: tuple[Line, ...]
    findings: tuple[Finding, ...] = ()  # of the recount, and what only the certificate states

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    @property
    def outcome(self) -> Outcome:
        """ "fails" if something contradicts the certificate, "unknown" if a requirement cannot be checked."""
        if any(line.holds is False for line in self.lines):
            return "fails"
        return "unknown" if any(line.required and line.holds is None for line in self.lines) else "holds"

    @property
    def publication(self) -> Publication:
        """Whether the release may be published: not if something contradicts its certificate."""
        return publication(self.outcome, self.findings)

    @property
    def headline(self) -> str:
        """The publication verdict as a sentence with its first reason."""
        if self.outcome == "fails":
            return "Do not publish: the certificate does not hold."
        return headline(self.outcome, self.findings)

    @property
    def sentence(self) -> str:
        """The result as a sentence."""
        if self.outcome == "fails":
            return f"The certificate does not hold: {', '.join(line.name for line in self if line.holds is False)}."
        if self.outcome == "holds":
            verdict = "Every requirement holds, and nothing contradicts the certificate"
            against = [finding for finding in self.findings if finding.severity != "note"]
            n = format_count(len(against), "finding")
            return (
                f"{verdict}." if not against else f"{verdict}, but {n} of the recount should be read before it is used."
            )
        missing = dict.fromkeys(line.why for line in self if line.required and line.holds is None)
        reasons = "; ".join(missing)
        return f"Whether every requirement holds cannot be determined ({reasons}); nothing contradicts the rest."

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "outcome": self.outcome,
            "holds": self.holds,
            "publication": self.publication,
            "findings": [finding.as_dict() for finding in self.findings],
            "lines": [asdict(line) for line in self.lines],
        }
