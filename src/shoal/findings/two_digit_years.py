"""Dates whose years have two digits: which century is meant is a guess."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.hierarchies.dates import Dates
from shoal.models.finding import Finding
from shoal.text.figures import format_count


def two_digit_years(evidence: Evidence) -> Iterator[Finding]:
    """Find dates with years below the pivot, which are read as 20yy: somebody aged 99 is taken for a child."""
    for name, column in evidence.policy.columns.items():
        spec = column.hierarchy
        if not isinstance(spec, Dates) or "%y" not in spec.format.replace("%%", ""):
            continue
        if name not in evidence.policy.quasi or name not in evidence.known.columns:
            continue
        days = [day for day in map(spec.day, evidence.known.texts(name)) if day is not None]
        early = sum(day.year >= 2000 for day in days)
        if early:
            verb = "has" if early == 1 else "have"
            yield finding(
                "two-digit-years",
                f"Column {name!r}: {early} of {format_count(len(days), 'distinct date')} {verb} a year of two digits "
                f"below the pivot {spec.pivot}, which is read as 20yy",
                "If some of them are of the 20th century, set a lower pivot, or write years with four digits",
                [name],
            )
