"""Every kind of finding with its severity; docs/findings.md explains each.

A kind with several severities has the gravest first, which is the one it has unless a count makes it milder.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.models.finding import Finding, Severity
from shoal.text.figures import format_count

KINDS: dict[str, tuple[Severity, ...]] = {
    "persons-repeat": ("decide",),
    "persons-spelled": ("decide",),
    "unique-plain": ("stop",),
    "reveals-quasi": ("stop",),
    "reveals-sensitive": ("decide",),
    "copy-of-quasi": ("decide",),
    "unprotected": ("decide",),
    "near-numbers": ("decide",),
    "spelling": ("decide", "note"),
    "two-digit-years": ("decide",),
    "nulls-alone": ("decide",),
    "closeness-before-suppression": ("note",),
    "single-label": ("note",),
    "half-lost": ("note",),
    "time-budget": ("note",),
    "proposed-roles": ("note",),
    "reading": ("note",),
    "writing": ("note",),
}


def finding(
    kind: str,
    fact: str,
    remedy: str,
    columns: Sequence[str] = (),
    people: int | None = None,
    severity: Severity | None = None,
) -> Finding:
    """Return a finding of a registered kind; without a severity, with the gravest that its kind can have."""
    possible = KINDS[kind]
    if severity is not None and severity not in possible:
        raise ValueError(f"a finding of the kind {kind} cannot have the severity {severity}")
    return Finding(kind, severity or possible[0], fact, remedy, tuple(columns), people)


def shortened(parts: Sequence[str], longest: int = 6) -> list[str]:
    """Return the parts of a list for a message; of a long one the first, and how many others there are."""
    if len(parts) <= longest:
        return list(parts)
    return [*parts[: longest - 1], format_count(len(parts) - longest + 1, "other")]
