"""Findings: what the publisher of a table should know even if it satisfies its policy, made in one place.

All entry points take their findings from here: ``anonymize`` (and so the certificate, the report and the terminal),
``check`` and ``apply``. They are derived from counts, never from rows, so they are the same on every engine. They name
columns and numbers, never a value from the data. Each ends with the next step.
"""

from collections.abc import Callable, Iterable

from shoal.findings.attack_results import attack_succeeds, with_attacks
from shoal.findings.dependences import copy_of_quasi, reveals_quasi, reveals_sensitive
from shoal.findings.evidence import Evidence
from shoal.findings.information_left import half_lost, single_label, time_budget
from shoal.findings.kinds import KINDS, finding, ordered
from shoal.findings.persons import persons_repeat, persons_spelled
from shoal.findings.published_bytes import beside_the_table, stored_cells
from shoal.findings.recognised_values import identifying_values
from shoal.findings.released_labels import labels_give_back
from shoal.findings.reservations import closeness_before_suppression, nulls_alone
from shoal.findings.sensitive_columns import guessed_values, near_numbers, spelling, unprotected
from shoal.findings.singled_out import answers_single_out, singled_out, unique_plain, unique_sensitive
from shoal.findings.two_digit_years import two_digit_years
from shoal.models.finding import Finding, Publication, Severity, headline, publication

__all__ = [
    "FINDERS",
    "KINDS",
    "Evidence",
    "Finding",
    "Publication",
    "Severity",
    "finding",
    "findings_of",
    "headline",
    "ordered",
    "publication",
    "with_attacks",
]

# Each looks for one kind of finding; a new one is registered here, and its kind in kinds.py.
FINDERS: tuple[Callable[[Evidence], Iterable[Finding]], ...] = (
    beside_the_table,
    stored_cells,
    identifying_values,
    unique_plain,
    singled_out,
    persons_repeat,
    persons_spelled,
    reveals_quasi,
    attack_succeeds,
    labels_give_back,
    unprotected,
    guessed_values,
    unique_sensitive,
    answers_single_out,
    reveals_sensitive,
    copy_of_quasi,
    near_numbers,
    spelling,
    two_digit_years,
    nulls_alone,
    closeness_before_suppression,
    single_label,
    half_lost,
    time_budget,
)


def findings_of(evidence: Evidence) -> tuple[Finding, ...]:
    """Return all findings, the gravest first, and otherwise in the order of ``KINDS``; many of a kind become one."""
    findings = [single for finder in FINDERS for single in finder(evidence)] if evidence.table.n_records else []
    findings += [finding("reading", note, "") for note in evidence.notes]
    return ordered(findings)
