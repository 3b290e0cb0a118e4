"""Every kind of finding with its severity; docs/findings.md explains each.

A kind with several severities has the gravest first, which is the one it has unless a count makes it milder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from shoal.models.finding import Finding, Severity
from shoal.text.figures import format_count, format_list

KINDS: dict[str, tuple[Severity, ...]] = {
    "beside-the-table": ("stop", "decide"),
    "stored-cells": ("decide",),
    "identifying-values": ("stop",),
    "unique-plain": ("stop",),
    "singled-out": ("stop", "decide"),
    "persons-repeat": ("stop", "decide", "note"),
    "persons-spelled": ("decide",),
    "reveals-quasi": ("stop", "decide"),
    "attack-succeeds": ("stop", "decide"),
    "labels-give-back": ("stop", "decide"),
    "unprotected": ("stop", "decide"),
    "guessed-values": ("decide",),
    "unique-sensitive": ("stop", "decide"),
    "answers-single-out": ("decide",),
    "reveals-sensitive": ("decide",),
    "copy-of-quasi": ("decide",),
    "near-numbers": ("decide",),
    "spelling": ("note",),
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


_ORDER: dict[Severity, int] = {"stop": 0, "decide": 1, "note": 2}
ALIKE = 3  # findings of one kind from which they are told as one
LISTED = 12  # columns that a merged finding names


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, the gravest first and otherwise by kind; many of one kind and severity become one.

    A certificate of another version may have kinds that are unknown here: they come last.
    """
    kinds = {kind: i for i, kind in enumerate(KINDS)}
    alike: dict[tuple[int, int, str], list[Finding]] = {}
    for single in findings:
        alike.setdefault((_ORDER[single.severity], kinds.get(single.kind, len(kinds)), single.kind), []).append(single)
    return tuple(single for key in sorted(alike) for single in _merged(alike[key]))


def _merged(alike: list[Finding]) -> list[Finding]:
    """Return one finding for many of a kind: the one that concerns most people, and the columns of the others."""
    if len(alike) < ALIKE or not all(single.columns for single in alike):
        return alike
    first = max(alike, key=lambda single: single.people or 0)
    other_columns = [name for single in alike if single is not first for name in single.columns]
    names = format_list(shortened([repr(name) for name in dict.fromkeys(other_columns)], LISTED))
    return [
        replace(
            first,
            fact=f"{first.fact}. The same holds for {names}",
            columns=tuple(dict.fromkeys((*first.columns, *other_columns))),
        )
    ]
