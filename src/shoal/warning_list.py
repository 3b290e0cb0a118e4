"""The one list of warnings: what whoever answers for a table should know although it keeps its policy.

Every entry point takes its warnings from here: ``anonymize`` (and so the certificate, the report and the terminal),
``check`` and ``apply``. They are drawn from counts, never from rows, so they are the same on every engine; they name
columns and numbers, never a value of the data. Each ends with the next step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from shoal.engines.dependence import Spread
from shoal.judge import as_seen
from shoal.models import ReleaseModel, SensitiveModel
from shoal.models.diversity import distinct, most_frequent
from shoal.models.measured import InferenceRisk
from shoal.policy import Policy
from shoal.report.formats import counted, number, share
from shoal.table.frequency import FrequencyTable
from shoal.table.wildcard import neighbourhoods

# What is warned about, by the name of its kind; docs/warnings.md explains each.
KINDS = (
    "reading",
    "unique-plain",
    "unprotected",
    "closeness-before-suppression",
    "nulls-alone",
)


class Caution(str):
    """A warning: a text like any other that also knows its ``kind`` and, where it is about one, its ``column``."""

    kind: str
    column: str | None

    def __new__(cls, text: str, kind: str = "", column: str | None = None) -> Caution:
        """One argument suffices, as copies are made from the text and get the rest from the state."""
        self = super().__new__(cls, text)
        self.kind, self.column = kind, column
        return self


def _caution(kind: str, column: str | None, fact: str, step: str) -> Caution:
    return Caution(f"{fact}. {step}.", kind, column)


class Countable(Protocol):
    """Rows that stay where they are, as an engine counts them."""

    @property
    def columns(self) -> list[str]:
        """Their names."""

    def spreads(self, names: Sequence[str], /) -> Mapping[str, Spread]:
        """How well each of some columns tells the records apart."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the warnings are drawn from."""

    policy: Policy
    table: FrequencyTable  # the classes of what goes out, counted again
    published: Countable  # the rows that go out; only their plain columns are looked at
    notes: Sequence[str] = ()  # what the engine told while it read


def warnings_of(evidence: Evidence) -> tuple[Caution, ...]:
    """All warnings, in the order of ``KINDS``."""
    found = [Caution(note, "reading") for note in evidence.notes]
    if evidence.table.n_records:
        seen = as_seen(evidence.table, evidence.policy)
        found += _unique_plain(evidence)
        found += _unprotected(seen, evidence)
        found += _closeness_before_suppression(evidence.table, seen, evidence.policy)
        found += _nulls_alone(evidence.table, seen, evidence.policy)
    return tuple(found)


# ── plain columns ───────────────────────────────────────────────────────────────────────────────────────────

# Below this share of the records, the few that have a value say little about the column.
FILLED = 0.05


def _unique_plain(evidence: Evidence) -> Iterator[Caution]:
    """Plain columns in which at least half of the values are one record's alone."""
    n = evidence.table.n_records
    names = [name for name in evidence.policy.having("plain") if name in evidence.published.columns]
    for name, spread in evidence.published.spreads(names).items():
        if 2 * spread.alone < spread.records or spread.records < max(2, FILLED * n):
            continue
        of = counted(n, "record") if spread.records == n else f"the {counted(spread.records, 'record')} that have one"
        told = (
            "different in every record"
            if spread.distinct == n
            else f"nearly unique, with {counted(spread.distinct, 'different value')} in {of}"
        )
        yield _caution(
            "unique-plain",
            name,
            f"Column {name!r} is plain but {told}: it identifies people to whoever knows it",
            'Set role = "quasi" if outsiders may know it, or role = "identifier" to remove it',
        )


# ── sensitive columns ───────────────────────────────────────────────────────────────────────────────────────


def _unprotected(seen: FrequencyTable, evidence: Evidence) -> Iterator[Caution]:
    """Sensitive columns of which nothing is required: being one of k does not hide what all of them have."""
    policy = evidence.policy
    models = [model for model in policy.models if isinstance(model, SensitiveModel)]
    if any(isinstance(limit, InferenceRisk) for limit in policy.limits):
        return
    for name, histogram in seen.sensitive.items():
        if any(model.column in (None, name) for model in models):
            continue
        alike = distinct(histogram) == 1
        if alike.any():
            n_alike = int(evidence.table.counts[alike].sum())
            size = f"{counted(int(alike.sum()), 'class')} with {counted(n_alike, 'record')}"
            found = f"In {size} all have the same value: finding the class tells it"
        else:
            found = f"In one class, {share(float(most_frequent(histogram).max()), 1)} of the records share a value"
        yield _caution(
            "unprotected",
            name,
            f"No requirement protects {name!r}. {found}",
            "Require distinct-l-diversity or t-closeness",
        )


# ── requirements that hold with a reservation ───────────────────────────────────────────────────────────────


def _closeness_before_suppression(table: FrequencyTable, seen: FrequencyTable, policy: Policy) -> Iterator[Caution]:
    """Requirements that hold against the table before suppression, not against what is released."""
    models = [model for model in policy.models if isinstance(model, SensitiveModel)]
    if not any(h.domain is not None and h.domain.whole.sum() > table.n_records for h in table.sensitive.values()):
        return  # nothing is missing: both are the same
    alone = as_seen(_compared_with_itself(table), policy)
    for model in models:
        if model.passes(seen).all() and not model.passes(alone).all():
            scores = model.scores(alone)
            worst = float(scores.min() if model.least else scores.max())
            yield _caution(
                "closeness-before-suppression",
                model.column,
                f"{model.asked} holds against the table before suppression; against the released records alone "
                f"{model.figure} is {worst:.4g}",
                'Set suppressed = "keep", which makes both the same',
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
    """Requirements that hold because some records are null in every quasi column, and so match anybody.

    By the letter k − 1 such records hide every other one; whoever knows that they tell nothing sees who is alone.
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
                blank = counted(int(table.counts[empty].sum()), "record")
                yield _caution(
                    "nulls-alone",
                    None,
                    f"{model.asked} holds for {number(alone)} of {counted(table.n_records, 'record')} only because "
                    f"anybody matches {blank}, null in every quasi column",
                    'Set nulls = "category" to count them apart, or remove them',
                )
