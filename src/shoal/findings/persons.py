"""Whether k counts records, or spellings, where it should count persons."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.engines.dependence import SmallClasses
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.models.finding import Finding, Severity
from shoal.notation.same_values import spelled_alike
from shoal.text import toml
from shoal.text.figures import format_count, format_number


def persons_repeat(evidence: Evidence) -> Iterator[Finding]:
    """Find a column by which people seem to have several records each while k counts records."""
    if evidence.repeating is None:
        return
    name, spread = evidence.repeating
    small = evidence.small_classes(evidence.linkable) if evidence.person == name and evidence.linkable else None
    identifier = name in evidence.policy.identifiers
    nulls = int(evidence.known.frequencies(name).sum()) - spread.records
    role = "" if identifier else 'Set role = "identifier" for it and a'
    yield finding(
        "persons-repeat",
        f"{'Identifier' if identifier else 'Column'} {name!r} repeats, with "
        f"{format_count(spread.distinct, 'different value')} in {format_count(spread.records, 'record')}: one "
        f"person may have several records, but k counts records{_classes(small, evidence.k)}",
        f"{role or 'A'}dd entity = {toml.string(name)} to [release] if it identifies people{_nulls(nulls)}",
        [name],
        None if small is None else small.few,
        _severity(small, in_doubt=nulls > 0 and _other_key(evidence)),
    )


def _severity(small: SmallClasses | None, *, in_doubt: bool) -> Severity:
    """Return how grave it is; whether a column with nulls beside another key identifies people is to be decided."""
    if small is None or (in_doubt and small.classes):
        return "decide"
    return "stop" if small.classes else "note"


def _other_key(evidence: Evidence) -> bool:
    """Return whether another identifier has a value of its own in every record."""
    spreads = evidence.known.spreads([name for name in evidence.policy.identifiers if name in evidence.known.columns])
    return any(
        spread.distinct == spread.records == int(evidence.known.frequencies(name).sum())
        for name, spread in spreads.items()
    )


def _nulls(nulls: int) -> str:
    """Return what must be done first to the records without a person, which a policy with an entity refuses."""
    return f", after filling in or removing the {format_count(nulls, 'record')} without a value in it" if nulls else ""


def _classes(small: SmallClasses | None, k: int) -> str:
    if small is None:
        return ""
    if not small.classes:
        return f". Every class holds at least {format_count(k, 'person')} all the same"
    verb = "holds" if small.classes == 1 else "hold"
    return f". {format_count(small.classes, 'class')} {verb} fewer than {k} persons, {format_number(small.few)} in all"


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
