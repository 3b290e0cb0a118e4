"""Columns that are released as they are and identify people."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engines.dependence import Spread
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding, shortened
from shoal.models.finding import Finding
from shoal.text.figures import format_count, format_list

# Below this share of the records, the few that have a value say little about the column.
FILLED = 0.05


def unique_plain(evidence: Evidence) -> Iterator[Finding]:
    """Find plain columns in which at least half of the values occur only once."""
    n = evidence.table.n_records
    possible = evidence.may_be_published(evidence.policy.having("plain"), _may_be_alone)
    names = [name for name in possible if name in evidence.published.columns] if possible else []
    unique = {
        name: spread
        for name, spread in (evidence.published.spreads(names) if names else {}).items()
        if 2 * spread.alone >= spread.records >= max(2, FILLED * n)
    }
    if not unique:
        return
    parts = [f"{name!r} ({_different(spread, n)})" for name, spread in unique.items()]
    one = len(parts) == 1
    yield finding(
        "unique-plain",
        f"{'Column' if one else 'Columns'} {format_list(shortened(parts))} {'is' if one else 'are'} plain but nearly "
        "unique: "
        f"{'it identifies' if one else 'they identify'} people to anyone who knows {'it' if one else 'them'}",
        'Set role = "quasi" if outsiders may know the values, or role = "identifier" to remove them',
        list(unique),
    )


def _may_be_alone(spread: Spread, n_gone: int) -> bool:
    """Return whether half of the records may have a unique value after some are gone: each makes one more unique."""
    return 2 * (spread.alone + n_gone) >= spread.records - n_gone


def _different(spread: Spread, n: int) -> str:
    if spread.distinct == n:
        return "different in every record"
    of = (
        format_count(n, "record")
        if spread.records == n
        else f"the {format_count(spread.records, 'record')} with a value"
    )
    return f"{format_count(spread.distinct, 'different value')} in {of}"
