"""Columns that reveal others: a column that is released as it is may undo what was done to another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.findings.singled_out import severity_of
from shoal.models.finding import Finding
from shoal.text.figures import format_list


def reveals_quasi(evidence: Evidence) -> Iterator[Finding]:
    """Find unchanged columns that reveal a generalized one, such as the birth year and the age."""
    policy, revealing = evidence.policy, evidence.telling
    for name in (*policy.having("plain"), *policy.sensitive):
        copied = {quasi for quasi in policy.quasi if name in policy.sensitive and (quasi, name) in revealing.guesses}
        coarser = set(_coarser(evidence, name)) if evidence.original is None else set()
        revealed = revealing.by(
            name, (q for q in policy.quasi if q in coarser or (q in evidence.generalized and q not in copied))
        )
        if revealed:
            role = policy.columns[name].role
            small = evidence.small_classes([*evidence.linkable, name])
            revealed_kind = "a coarser quasi-identifier" if coarser else "a generalized column"
            yield finding(
                "reveals-quasi",
                f"Column {name!r} is released unchanged and reveals {revealed_kind}: {format_list(revealed)}",
                'Set role = "quasi" for it as well, or remove it'
                if role == "plain"
                else f'Remove {name!r}, or set role = "quasi" for it and generalize it too',
                [name],
                small.few,
                severity_of(small),
            )


def _coarser(evidence: Evidence, name: str) -> Iterator[str]:
    """Return the quasi-identifiers, as released, that a column determines and has more values than."""
    table, revealing = evidence.table, evidence.telling
    for j, quasi in enumerate(table.columns):
        pair = name, quasi
        if pair in revealing.guesses and revealing.dependences[pair].groups > len(np.unique(table.codes[:, j])):
            yield quasi


def reveals_sensitive(evidence: Evidence) -> Iterator[Finding]:
    """Find plain columns that reveal a sensitive one, as a drug reveals the disease."""
    for name in evidence.policy.having("plain"):
        revealed = evidence.telling.by(name, evidence.policy.sensitive)
        if revealed:
            yield finding(
                "reveals-sensitive",
                f"Column {name!r} is plain and reveals a sensitive value: {format_list(revealed)}",
                'Set role = "quasi" if outsiders may know it; otherwise set role = "sensitive" with the '
                "same requirements",
                [name],
            )


def copy_of_quasi(evidence: Evidence) -> Iterator[Finding]:
    """Find quasi-identifiers that reveal a sensitive column, which no class can hide."""
    for name in evidence.policy.quasi:
        revealed = evidence.telling.by(name, evidence.policy.sensitive)
        if revealed:
            yield finding(
                "copy-of-quasi",
                f"Quasi-identifier {name!r} reveals a sensitive column: {format_list(revealed)}. Anyone who knows one "
                "knows the other",
                'Remove one of them, or set role = "quasi" for both',
                [name],
            )
