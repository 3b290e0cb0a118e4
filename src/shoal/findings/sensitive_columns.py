"""Sensitive columns that no requirement protects, or that a requirement protects less than it seems."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.findings.singled_out import SLIGHT
from shoal.models import SensitiveModel
from shoal.models.closeness import TCloseness
from shoal.models.diversity import distinct, most_frequent
from shoal.models.finding import Finding
from shoal.models.measured import InferenceRisk
from shoal.models.spread import KEAnonymity
from shoal.notation.same_values import spelled_alike
from shoal.policy import Policy
from shoal.text.figures import format_count, format_number, format_share


def unprotected_columns(policy: Policy) -> list[str]:
    """Return the sensitive columns without a requirement: k-anonymity does not hide what a whole class shares."""
    if any(isinstance(limit, InferenceRisk) for limit in policy.limits):
        return []
    protected = [model.column for model in policy.models if isinstance(model, SensitiveModel)]
    return [name for name in policy.sensitive if None not in protected and name not in protected]


def unprotected(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive columns without a requirement, and say how much a class gives away."""
    without = unprotected_columns(evidence.policy)
    for name, histogram in evidence.as_seen.sensitive.items():
        if name not in without:
            continue
        alike = distinct(histogram) == 1
        n_alike = int(evidence.table.counts[alike].sum())
        if n_alike:
            size = f"{format_count(int(alike.sum()), 'class')} with {format_count(n_alike, 'record')}"
            share = f"In {size}, all records have the same value: finding the class discloses it"
        else:
            share = (
                f"In one class, {format_share(float(most_frequent(histogram).max()), 1)} of the records share a value"
            )
        yield finding(
            "unprotected",
            f"No requirement protects {name!r}. {share}",
            "Require distinct-l-diversity or t-closeness",
            [name],
            int(evidence.table.persons[alike].sum()) if n_alike else None,
            "stop" if n_alike > SLIGHT * evidence.table.n_records else "decide",
        )


# Three quarters: then at least half of the records have a number that no other has.
NEARLY_ALL = 0.75
_BY_DISTANCE = ("ordered", "numeric", "hierarchical")


def near_numbers(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive numbers that are almost all different: every class is diverse, but may hold similar numbers."""
    table, policy = evidence.table, evidence.policy
    models: list[SensitiveModel] = [model for model in policy.models if isinstance(model, KEAnonymity)]
    models += [model for model in policy.models if isinstance(model, TCloseness) and model.distance in _BY_DISTANCE]
    for name, histogram in table.sensitive.items():
        whole = np.bincount(histogram.values, histogram.counts, minlength=histogram.n_values)
        values, n = int((whole > 0).sum()), table.n_records
        numeric = histogram.domain is not None and histogram.domain.numbers is not None
        if not numeric or values < NEARLY_ALL * n or n < 2 or any(model.column in (None, name) for model in models):
            continue
        yield finding(
            "near-numbers",
            f"The numbers in {name!r} are almost all different, with {format_count(values, 'different value')} in "
            f"{format_count(n, 'record')}: a class can be diverse and still contain only similar numbers",
            'Require t-closeness with distance = "numeric"',
            [name],
        )


def spelling(evidence: Evidence) -> Iterator[Finding]:
    """Find sensitive values with several spellings, which make a class look more diverse than it is."""
    for name, histogram in evidence.as_seen.sensitive.items():
        if histogram.domain is None:
            continue
        present = np.unique(histogram.values)
        alike = np.zeros(histogram.n_values, np.int32)
        alike[present] = spelled_alike([histogram.domain.texts[i] for i in present.tolist()])
        n_values, n_alike = len(present), len(np.unique(alike[present]))
        if n_alike == n_values:
            continue
        yield finding(
            "spelling",
            f"Values of {name!r} differ only in spelling (case, spaces, Unicode form, number format, empty or null): "
            f"{format_number(n_values)} spellings of {format_count(n_alike, 'value')}, which diversity counts "
            "as one and distances between distributions as different",
            "Unify the spelling before anonymizing",
            [name],
        )
