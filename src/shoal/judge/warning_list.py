"""Warnings: what the publisher of a table should know even if it satisfies its policy.

All entry points take their warnings from here: ``anonymize`` (and so the certificate, the report and the terminal),
``check`` and ``apply``. They are derived from counts, never from rows, so they are the same on every engine. They name
columns and numbers, never a value from the data. Each ends with the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from shoal.columns.look_alikes import spelled_alike
from shoal.columns.persons import repeated
from shoal.columns.telling import Telling, whole_percent
from shoal.engines.dependence import Spread, TellingPair
from shoal.judge import as_seen
from shoal.judge.evidence import Evidence
from shoal.models import ReleaseModel, SensitiveModel
from shoal.models.closeness import TCloseness
from shoal.models.diversity import distinct, most_frequent
from shoal.models.measured import InferenceRisk
from shoal.policy import Policy
from shoal.table.frequency import FrequencyTable, Histogram
from shoal.table.wildcard import neighbourhoods
from shoal.text import toml
from shoal.text.figures import format_count, format_list, format_number, format_share

# What is warned about, by the name of its kind; docs/warnings.md explains each.
KINDS = (
    "reading",
    "persons-repeat",
    "unique-plain",
    "reveals-quasi",
    "reveals-sensitive",
    "copy-of-quasi",
    "unprotected",
    "near-numbers",
    "spelling",
    "single-label",
    "half-lost",
    "time-budget",
    "closeness-before-suppression",
    "nulls-alone",
)


class Caution(str):
    """A warning: a string with its ``kind`` and, if it concerns one column, its ``column``."""

    kind: str
    column: str | None

    def __new__(cls, text: str, kind: str = "", column: str | None = None) -> Caution:
        """One argument is enough, because copies are made from the text and restore the rest from their state."""
        self = super().__new__(cls, text)
        self.kind, self.column = kind, column
        return self


def _caution(kind: str, column: str | None, fact: str, step: str) -> Caution:
    return Caution(f"{fact}. {step}.", kind, column)


def warnings_of(evidence: Evidence) -> tuple[Caution, ...]:
    """Return all warnings, in the order of ``KINDS``."""
    found = [Caution(note, "reading") for note in evidence.notes]
    if evidence.table.n_records:
        table, policy = evidence.table, evidence.policy
        seen = as_seen(table, policy)
        told = _telling(evidence)
        found += _persons_repeat(evidence)
        found += _unique_plain(evidence)
        found += _reveals_quasi(evidence, told)
        found += _reveals_sensitive(evidence, told)
        found += _copy_of_quasi(evidence, told)
        found += _unprotected(seen, evidence)
        found += _near_numbers(table, policy)
        found += _spelling(seen)
        found += _single_label(evidence)
        found += _half_lost(evidence)
        found += _time_budget(evidence)
        found += _closeness_before_suppression(table, seen, policy)
        found += _nulls_alone(table, seen, policy)
    return tuple(found)


# ── columns that identify ───────────────────────────────────────────────────────────────────────────────────

# Below this share of the records, the few that have a value say little about the column.
FILLED = 0.05


def _persons_repeat(evidence: Evidence) -> Iterator[Caution]:
    """Warn if people seem to have several records each while k counts records."""
    found = repeated(evidence.known, evidence.policy)
    if found is None:
        return
    name, spread = found
    identifier = name in evidence.policy.identifiers
    role = "" if identifier else 'Set role = "identifier" for it and a'
    yield _caution(
        "persons-repeat",
        name,
        f"{'Identifier' if identifier else 'Column'} {name!r} repeats, with "
        f"{format_count(spread.distinct, 'different value')} in {format_count(spread.records, 'record')}: one "
        "person may have several records, but k counts records",
        f"{role or 'A'}dd entity = {toml.string(name)} to [release] if it identifies people",
    )


def _unique_plain(evidence: Evidence) -> Iterator[Caution]:
    """Warn of plain columns in which at least half of the values occur only once."""
    n = evidence.table.n_records
    possible = evidence.may_be_published(evidence.policy.having("plain"), _may_be_alone)
    names = [name for name in possible if name in evidence.published.columns] if possible else []
    found = {
        name: spread
        for name, spread in (evidence.published.spreads(names) if names else {}).items()
        if 2 * spread.alone >= spread.records >= max(2, FILLED * n)
    }
    if not found:
        return
    parts = [f"{name!r} ({_different(spread, n)})" for name, spread in found.items()]
    one = len(parts) == 1
    yield _caution(
        "unique-plain",
        next(iter(found)) if one else None,
        f"{'Column' if one else 'Columns'} {format_list(_few(parts))} {'is' if one else 'are'} plain but nearly "
        "unique: "
        f"{'it identifies' if one else 'they identify'} people to anyone who knows {'it' if one else 'them'}",
        'Set role = "quasi" if outsiders may know the values, or role = "identifier" to remove them',
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


def _few(parts: Sequence[str], most: int = 6) -> list[str]:
    return list(parts) if len(parts) <= most else [*parts[: most - 1], format_count(len(parts) - most + 1, "other")]


# ── columns that tell others ────────────────────────────────────────────────────────────────────────────────


def _telling(evidence: Evidence) -> Telling:
    """Find unchanged columns that reveal generalized quasi-identifiers, and known ones that reveal sensitive ones."""
    policy, rows = evidence.policy, evidence.known
    plain = [name for name in policy.having("plain") if name in rows.columns]
    pairs: dict[TellingPair, tuple[int, ...]] = {
        (name, quasi): (1, 2) for quasi in evidence.generalized for name in (*plain, *policy.sensitive)
    }
    if evidence.original is None:  # what the values were cannot be told: what tells a label and is finer tells more
        pairs |= {(name, quasi): (1,) for quasi in policy.quasi for name in plain}
    pairs |= {(name, other): (1,) for name in (*plain, *policy.quasi) for other in policy.sensitive}
    return Telling.of(rows, pairs, evidence.hidden)


def _reveals_quasi(evidence: Evidence, told: Telling) -> Iterator[Caution]:
    """Warn of unchanged columns that reveal a generalized one, such as the birth year and the age."""
    policy = evidence.policy
    for name in (*policy.having("plain"), *policy.sensitive):
        copied = {quasi for quasi in policy.quasi if name in policy.sensitive and (quasi, name) in told.guesses}
        finer = set(_finer(evidence, told, name)) if evidence.original is None else set()
        found = told.by(
            name, (q for q in policy.quasi if q in finer or (q in evidence.generalized and q not in copied))
        )
        if found:
            role = policy.columns[name].role
            what = "a coarser quasi-identifier" if finer else "a generalized column"
            yield _caution(
                "reveals-quasi",
                name,
                f"Column {name!r} is released unchanged and reveals {what}: {format_list(found)}",
                'Set role = "quasi" for it as well, or remove it'
                if role == "plain"
                else f'Remove {name!r}, or set role = "quasi" for it and generalize it too',
            )


def _finer(evidence: Evidence, told: Telling, name: str) -> Iterator[str]:
    """Return the quasi-identifiers, as released, that a column determines and has more values than."""
    table = evidence.table
    for j, quasi in enumerate(table.columns):
        pair = name, quasi
        if pair in told.guesses and told.dependences[pair].groups > len(np.unique(table.codes[:, j])):
            yield quasi


def _reveals_sensitive(evidence: Evidence, told: Telling) -> Iterator[Caution]:
    for name in evidence.policy.having("plain"):
        found = told.by(name, evidence.policy.sensitive)
        if found:
            yield _caution(
                "reveals-sensitive",
                name,
                f"Column {name!r} is plain and reveals a sensitive value: {format_list(found)}",
                'Set role = "quasi" if outsiders may know it; otherwise set role = "sensitive" with the '
                "same requirements",
            )


def _copy_of_quasi(evidence: Evidence, told: Telling) -> Iterator[Caution]:
    for name in evidence.policy.quasi:
        found = told.by(name, evidence.policy.sensitive)
        if found:
            yield _caution(
                "copy-of-quasi",
                name,
                f"Quasi-identifier {name!r} reveals a sensitive column: {format_list(found)}. Anyone who knows one "
                "knows the other",
                'Remove one of them, or set role = "quasi" for both',
            )


# ── sensitive columns ───────────────────────────────────────────────────────────────────────────────────────


def unprotected_columns(policy: Policy) -> list[str]:
    """Return the sensitive columns without a requirement: k-anonymity does not hide what a whole class shares."""
    if any(isinstance(limit, InferenceRisk) for limit in policy.limits):
        return []
    protected = [model.column for model in policy.models if isinstance(model, SensitiveModel)]
    return [name for name in policy.sensitive if None not in protected and name not in protected]


def _unprotected(seen: FrequencyTable, evidence: Evidence) -> Iterator[Caution]:
    """Warn of sensitive columns without a requirement, and say how much a class gives away."""
    without = unprotected_columns(evidence.policy)
    for name, histogram in seen.sensitive.items():
        if name not in without:
            continue
        alike = distinct(histogram) == 1
        if alike.any():
            n_alike = int(evidence.table.counts[alike].sum())
            size = f"{format_count(int(alike.sum()), 'class')} with {format_count(n_alike, 'record')}"
            found = f"In {size}, all records have the same value: finding the class discloses it"
        else:
            found = (
                f"In one class, {format_share(float(most_frequent(histogram).max()), 1)} of the records share a value"
            )
        yield _caution(
            "unprotected",
            name,
            f"No requirement protects {name!r}. {found}",
            "Require distinct-l-diversity or t-closeness",
        )


def _near_numbers(table: FrequencyTable, policy: Policy) -> Iterator[Caution]:
    """Warn of sensitive numbers that are almost all different: every class is diverse, but may hold similar numbers."""
    models = [model for model in policy.models if isinstance(model, TCloseness) and model.distance in _BY_DISTANCE]
    for name, histogram in table.sensitive.items():
        whole = np.bincount(histogram.values, histogram.counts, minlength=histogram.n_values)
        values, n = int((whole > 0).sum()), table.n_records
        numeric = histogram.domain is not None and histogram.domain.numbers is not None
        if not numeric or values < ALMOST * n or n < 2 or any(model.column in (None, name) for model in models):
            continue
        yield _caution(
            "near-numbers",
            name,
            f"The numbers in {name!r} are almost all different, with {format_count(values, 'different value')} in "
            f"{format_count(n, 'record')}: a class can be diverse and still contain only similar numbers",
            'Require t-closeness with distance = "numeric"',
        )


# Three quarters: then at least half of the records have a number that no other has.
ALMOST = 0.75
_BY_DISTANCE = ("ordered", "numeric", "hierarchical")


def _spelling(seen: FrequencyTable) -> Iterator[Caution]:
    """Warn of sensitive values with several spellings, which make a class look more diverse than it is."""
    for name, histogram in seen.sensitive.items():
        if histogram.domain is None:
            continue
        present = np.unique(histogram.values)
        alike = np.zeros(histogram.n_values, np.int32)
        alike[present] = spelled_alike([histogram.domain.texts[i] for i in present.tolist()])
        n_values, n_alike = len(present), len(np.unique(alike[present]))
        if n_alike == n_values:
            continue
        entries = alike[histogram.values], histogram.n_classes, n_alike, None, histogram.counts
        least, really = (int(distinct(h).min()) for h in (histogram, Histogram.of(histogram.class_of_entry, *entries)))
        falls = (
            f"; without these variants, the least diverse class has {really} values instead of {least}"
            if really < least
            else ""
        )
        yield _caution(
            "spelling",
            name,
            f"Values of {name!r} differ only in spelling (case, spaces, Unicode form, number format, empty or null): "
            f"{format_number(n_values)} spellings of {format_count(n_alike, 'value')}, which diversity counts "
            f"as different{falls}",
            "Unify the spelling before anonymizing",
        )


# ── what is left ────────────────────────────────────────────────────────────────────────────────────────────


def _single_label(evidence: Evidence) -> Iterator[Caution]:
    """Warn of quasi-identifiers that have a single label."""
    table, rows = evidence.table, evidence.original
    names = [name for j, name in enumerate(table.columns) if len(np.unique(table.codes[:, j])) == 1]
    if rows is not None:
        names = [name for name in names if len(rows.frequencies(name)) > 1]
    if names and table.n_records > 1:
        one, told = len(names) == 1, format_list(_few([repr(name) for name in names]))
        yield _caution(
            "single-label",
            names[0] if one else None,
            f"{'Column' if one else 'Columns'} {told} {'has' if one else 'have'} a single label in all "
            f"{format_count(table.n_records, 'record')} and {'carries' if one else 'carry'} no information",
            "Allow max_suppression, provide a finer hierarchy, set max_level, or remove columns that are not needed",
        )


def _half_lost(evidence: Evidence) -> Iterator[Caution]:
    """Warn if more than half of the records or of the information is lost."""
    suppressed, n = evidence.suppressed
    if 2 * suppressed > n:
        lost = f"{format_number(suppressed)} of {format_count(n, 'record')} are suppressed"
    elif evidence.loss is not None and evidence.loss > 0.5:
        lost = f"the loss is more than {whole_percent(evidence.loss - 1e-9)}"
    else:
        return
    yield _caution(
        "half-lost",
        None,
        f"More than half of the table is lost: {lost}",
        "Relax the requirements (a smaller k), use finer hierarchies or fewer quasi-identifiers, or try "
        'algorithm = "local"',
    )


def _time_budget(evidence: Evidence) -> Iterator[Caution]:
    """Warn if the time budget ended a search early."""
    if evidence.unfinished:
        yield _caution(
            "time-budget",
            None,
            evidence.unfinished[:1].upper() + evidence.unfinished[1:],
            "More time may reduce the loss: increase time_budget, or remove it",
        )


# ── requirements that hold with a reservation ───────────────────────────────────────────────────────────────


def _closeness_before_suppression(table: FrequencyTable, seen: FrequencyTable, policy: Policy) -> Iterator[Caution]:
    """Warn of requirements that hold compared with the original but not with the release alone."""
    models = [model for model in policy.models if isinstance(model, SensitiveModel)]
    if not any(h.domain is not None and h.domain.whole.sum() > table.n_records for h in table.sensitive.values()):
        return  # nothing was dropped: both are the same
    alone = as_seen(_compared_with_itself(table), policy)
    for model in models:
        if model.passes(seen).all() and not model.passes(alone).all():
            scores = model.scores(alone)
            worst = float(scores.min() if model.least else scores.max())
            yield _caution(
                "closeness-before-suppression",
                model.column,
                f"{model.asked} holds compared with the table before suppression; compared with the released "
                f"records alone, {model.figure} is {worst:.4g}",
                'Set suppressed = "keep" to make both comparisons the same',
            )


def _compared_with_itself(table: FrequencyTable) -> FrequencyTable:
    sensitive = {}
    for name, histogram in table.sensitive.items():
        whole = np.zeros(histogram.n_values, np.int64)
        np.add.at(whole, histogram.values, histogram.counts)
        present = whole > 0
        domain = histogram.domain
        if domain is not None:
            sensitive[name] = replace(
                histogram,
                values=(np.cumsum(present) - 1)[histogram.values].astype(np.int32),
                n_values=int(present.sum()),
                domain=domain.restricted(present, whole),
            )
    return replace(table, sensitive=sensitive)


def _nulls_alone(table: FrequencyTable, seen: FrequencyTable, policy: Policy) -> Iterator[Caution]:
    """Warn of requirements that hold only because records with nulls in every quasi-identifier match everyone.

    Formally, k − 1 such records hide every other one; someone who ignores them sees who is unique.
    """
    if policy.release.nulls != "wildcard":
        return
    missing = [codes == (-1 if null is None else null) for codes, null in zip(table.codes.T, table.nulls, strict=True)]
    empty = np.logical_and.reduce(missing)
    if not empty.any() or empty.all():
        return
    rest = table.taken(np.flatnonzero(~empty))
    among_themselves = neighbourhoods(rest, table.nulls)
    for model in policy.models:
        if not isinstance(model, ReleaseModel) and model.passes(seen).all():
            alone = int(rest.counts[~model.passes(among_themselves)].sum())
            if alone:
                blank = format_count(int(table.counts[empty].sum()), "record")
                yield _caution(
                    "nulls-alone",
                    None,
                    f"{model.asked} holds for {format_number(alone)} of "
                    f"{format_count(table.n_records, 'record')} only because "
                    f"they match {blank} with nulls in every quasi-identifier",
                    'Set nulls = "category" to treat nulls as a value, or remove these records',
                )
