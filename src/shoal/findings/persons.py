"""Whether k counts records where it should count persons."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.columns.persons import repeated
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.models.finding import Finding
from shoal.text import toml
from shoal.text.figures import format_count


def persons_repeat(evidence: Evidence) -> Iterator[Finding]:
    """Find a column by which people seem to have several records each while k counts records."""
    repeating = repeated(evidence.known, evidence.policy)
    if repeating is None:
        return
    name, spread = repeating
    identifier = name in evidence.policy.identifiers
    role = "" if identifier else 'Set role = "identifier" for it and a'
    yield finding(
        "persons-repeat",
        f"{'Identifier' if identifier else 'Column'} {name!r} repeats, with "
        f"{format_count(spread.distinct, 'different value')} in {format_count(spread.records, 'record')}: one "
        "person may have several records, but k counts records",
        f"{role or 'A'}dd entity = {toml.string(name)} to [release] if it identifies people",
        [name],
    )
