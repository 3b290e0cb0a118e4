"""Finding: one thing that the publisher of a table should know, and what all findings mean for publication.

Two statements are made about a table. The policy verdict says whether it satisfies its policy. The publication verdict
says whether it may be published: a policy covers only the columns it names, and can hold while a person is exposed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from shoal.models.verdict import Outcome

Severity = Literal["stop", "decide", "note"]  # do not publish; decide first; good to know
Publication = Literal["ready", "decide first", "do not publish"]


@dataclass(frozen=True)
class Finding:
    """A fact about a table, what to do about it, and how much it matters; it contains no value from the data."""

    kind: str
    severity: Severity
    fact: str
    remedy: str
    columns: tuple[str, ...] = ()
    people: int | None = None  # how many persons it concerns, if that was counted

    def __str__(self) -> str:
        return " ".join(part if part.endswith(".") else f"{part}." for part in (self.fact, self.remedy) if part)

    @property
    def label(self) -> str:
        """The severity in words."""
        return LABELS[self.severity]

    @classmethod
    def from_dict(cls, line: Mapping[str, Any]) -> Finding:
        """Return the finding that ``as_dict`` gave these values."""
        return cls(**(dict(line) | {"columns": tuple(line["columns"])}))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self) | {"columns": list(self.columns)}


LABELS: dict[Severity, str] = {"stop": "Do not publish", "decide": "Decide first", "note": "Note"}


def publication(outcome: Outcome, findings: Sequence[Finding]) -> Publication:
    """Return whether a table may be published, from the outcome of its policy and all findings.

    A table that breaks its own policy must not be published; if it cannot be judged, the publisher decides.
    """
    severities = {finding.severity for finding in findings}
    if outcome == "fails" or "stop" in severities:
        return "do not publish"
    return "decide first" if outcome == "unknown" or "decide" in severities else "ready"


# The first words of the headline at every door.
WORDS: dict[Publication, str] = {
    "ready": "Ready to publish",
    "decide first": "Decide first",
    "do not publish": "Do not publish",
}


def headline(outcome: Outcome, findings: Sequence[Finding]) -> str:
    """Return the publication verdict as one sentence with its first reason and the number of others."""
    verdict = publication(outcome, findings)
    if verdict == "ready":
        return f"{WORDS[verdict]}."
    deciding = "stop" if verdict == "do not publish" else "decide"
    reasons = [_lower_first(finding.fact).rstrip(".") for finding in findings if finding.severity == deciding]
    if outcome == "fails":
        reasons.insert(0, "the policy does not hold")
    elif outcome == "unknown" and verdict == "decide first":
        reasons.insert(0, "whether the policy holds cannot be determined")
    n_further = len(reasons) - 1
    further = f" (and {n_further} more {'reason' if n_further == 1 else 'reasons'})" if n_further else ""
    return f"{WORDS[verdict]}: {reasons[0]}{further}."


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
