"""The report of a check as one HTML file: what fails, where, by how much, and what to do; no value of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from shoal import __version__
from shoal.judge import as_attackers_see, failing_classes
from shoal.judge.figures import figures
from shoal.models.verdict import Verdict, Verdicts
from shoal.policy import Policy
from shoal.release import now
from shoal.report.essentials import found_in
from shoal.report.html import environment, style
from shoal.report.rows import requirement_grid, size_words
from shoal.report.summary import SIZES, size_bins
from shoal.report.wording import unit_of
from shoal.tables.frequency import FrequencyTable
from shoal.text.figures import format_count, format_list, format_number, format_share
from shoal.text.showing import shows

if TYPE_CHECKING:
    from shoal.tables.frequency import Counts


@dataclass(frozen=True)
class Size:
    """Failing classes of about the same size."""

    name: str
    classes: int
    records: int


@dataclass(frozen=True)
class CheckReport:
    """What the report of a check says."""

    verdicts: Verdicts
    sentence: str
    risk: str
    fails: tuple[str, ...]
    sizes: tuple[Size, ...]
    at_fault: int  # records in classes that fail a requirement
    failing_without: tuple[tuple[str, int], ...]  # the same if a column were hidden, the most helpful first
    steps: tuple[str, ...]


def check_report(verdicts: Verdicts, table: FrequencyTable, policy: Policy) -> CheckReport:
    """Count the failing records of the table, and how many would fail without each column."""
    judged_classes = as_attackers_see(table, policy)
    failing = failing_classes(table, policy)
    at_fault = int(table.counts[failing].sum())
    failing_without = (
        _failing_by_hidden_column(table, policy) if at_fault and policy.release.nulls != "wildcard" else ()
    )
    return CheckReport(
        verdicts,
        _sentence(verdicts),
        found_in(figures(table, attacker_view=judged_classes), policy, verdicts.records, unit_of(table)),
        tuple(_failed(verdict, verdicts.records) for verdict in verdicts.verdicts if verdict.outcome == "fails"),
        tuple(_sizes(judged_classes.persons[failing], table.counts[failing])),
        at_fault,
        failing_without,
        tuple(_steps(verdicts, policy, at_fault, failing_without)),
    )


@shows("Verdicts", "verdict page")
def render_check(verdicts: Verdicts, table: FrequencyTable, policy: Policy) -> str:
    """Render the report of a check."""
    fields = {
        "found": check_report(verdicts, table, policy),
        "requirements": requirement_grid(verdicts.verdicts, verdicts.identifiers),
        "unit": unit_of(table),
        "created": now(),
        "version": __version__,
    }
    return environment().get_template("check.html").render(fields | style())


def _sentence(verdicts: Verdicts) -> str:
    n = len(verdicts.verdicts)
    size = size_words(verdicts)
    if verdicts.outcome == "fails":
        failed = sum(verdict.outcome == "fails" for verdict in verdicts.verdicts)
        left = f", {format_count(len(verdicts.identifiers), 'identifier')} not removed" if verdicts.identifiers else ""
        return (
            f"This table does not satisfy its policy: {failed} of {format_count(n, 'requirement')} failed{left}; "
            f"{size}."
        )
    if verdicts.outcome == "unknown":
        untold = sum(verdict.outcome == "unknown" for verdict in verdicts.verdicts)
        statement = f"{untold} of {format_count(n, 'requirement')} cannot be determined"
        return f"Whether this table satisfies its policy cannot be determined: {statement}; {size}."
    return (
        f"This table satisfies its policy: {'the requirement holds' if n == 1 else f'all {n} requirements hold'}; "
        f"{size}."
    )


def _failed(verdict: Verdict, records: int) -> str:
    sentence = f"{verdict.asked}: the worst value is {verdict.figure} = {format_number(verdict.worst)}"
    if not verdict.classes:
        return f"{sentence}."
    part = (
        f"{format_number(verdict.records)} of {format_count(records, 'record')} "
        f"({format_share(verdict.records, records)})"
    )
    return f"{sentence}; {part} in {format_count(verdict.classes, 'class')} fail."


def _sizes(persons: Counts, records: Counts) -> Iterator[Size]:
    if not len(persons):
        return
    bin_of = size_bins(persons)
    for at in np.unique(bin_of).tolist():
        inside = bin_of == at
        yield Size(SIZES[at], int(inside.sum()), int(records[inside].sum()))


def _failing_by_hidden_column(table: FrequencyTable, policy: Policy) -> tuple[tuple[str, int], ...]:
    """Count the failing records if one column were suppressed."""
    failing_counts = []
    for j, name in enumerate(table.columns):
        codes = table.codes.copy()
        codes[:, j] = 0
        hidden = table.recoded(codes)
        failing_counts.append((name, int(hidden.counts[failing_classes(hidden, policy)].sum())))
    return tuple(sorted(failing_counts, key=lambda entry: entry[1]))


def _steps(
    verdicts: Verdicts, policy: Policy, at_fault: int, failing_without: tuple[tuple[str, int], ...]
) -> Iterator[str]:
    if verdicts.identifiers:
        yield f"Remove {format_list([repr(name) for name in verdicts.identifiers])}: declared as identifier."
    for verdict in verdicts.verdicts:
        if verdict.outcome == "unknown":
            yield f"To check {verdict.asked}: {verdict.missing}."
        if verdict.outcome == "fails" and verdict.asked.startswith("forbid."):
            yield f"{verdict.asked}: it comes out. Generalize a column that it names, or require a larger k."
        if verdict.outcome == "fails" and not verdict.classes and verdict.asked.endswith("measured"):
            yield f"{verdict.asked}: require more of the classes, such as a larger k, ℓ-diversity or t-closeness."
    if not at_fault:
        return
    if failing_without and failing_without[0][1] < at_fault:
        name, left = failing_without[0]
        fewer = f"{format_number(left)} instead of {format_count(at_fault, 'record')}"
        yield f"Generalize {name!r} first: without it, {fewer} fail."
    if 2 * at_fault <= verdicts.records:
        part = f"{format_count(at_fault, 'record')} ({format_share(at_fault, verdicts.records)})"
        yield f"Suppressing the failing classes removes {part}; check again, because other records may then fail."
    yield "Use shoal anonymize with the original table and this policy to find a release with the smallest loss."
