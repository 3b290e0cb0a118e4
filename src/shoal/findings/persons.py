"""Whether k counts records, or spellings, where it should count persons."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.columns.persons import repeated
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.models.finding import Finding
from shoal.table.same_values import spelled_alike
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


MAX_SPELLINGS = 1_000_000  # different keys of persons that are compared


def persons_spelled(evidence: Evidence) -> Iterator[Finding]:
    """Find keys of persons that differ in spelling only, such as 1 and 01: each counts as a person of its own."""
    entity, rows = evidence.policy.release.entity, evidence.known
    if entity is None or entity not in rows.columns or rows.spreads([entity])[entity].distinct > MAX_SPELLINGS:
        return
    keys = rows.texts(entity)
    n_alike = len(keys) - len(set(spelled_alike(keys).tolist()))
    if n_alike:
        yield finding(
            "persons-spelled",
            f"Column {entity!r} identifies persons, but {format_count(n_alike, 'value')} "
            "differ from others in spelling only, as 1 and 01 do: k may count one person several times",
            "Write them in one way first",
            [entity],
        )
