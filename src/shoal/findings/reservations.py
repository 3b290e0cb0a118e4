"""Requirements that hold with a reservation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding
from shoal.judge import as_attackers_see
from shoal.models import ReleaseModel, SensitiveModel
from shoal.models.finding import Finding
from shoal.tables.frequency import FrequencyTable
from shoal.tables.wildcard import neighbourhoods
from shoal.text.figures import format_count, format_number


def closeness_before_suppression(evidence: Evidence) -> Iterator[Finding]:
    """Find requirements that hold compared with the original but not with the release alone."""
    table, policy = evidence.table, evidence.policy
    models = [model for model in policy.models if isinstance(model, SensitiveModel)]
    if not any(h.domain is not None and h.domain.whole.sum() > table.n_records for h in table.sensitive.values()):
        return  # nothing was dropped: both are the same
    alone = as_attackers_see(_compared_with_itself(table), policy)
    for model in models:
        if model.passes(evidence.as_attackers_see).all() and not model.passes(alone).all():
            scores = model.scores(alone)
            worst = float(scores.min() if model.lowest_is_worst else scores.max())
            yield finding(
                "closeness-before-suppression",
                f"{model.summary} holds compared with the table before suppression; compared with the released "
                f"records alone, {model.figure} is {worst:.4g}",
                'Set suppressed = "keep" to make both comparisons the same',
                [] if model.column is None else [model.column],
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


def nulls_alone(evidence: Evidence) -> Iterator[Finding]:
    """Find requirements that hold only because records with nulls in every quasi-identifier match everyone.

    Formally, k − 1 such records hide every other one; someone who ignores them sees who is unique.
    """
    table, policy = evidence.table, evidence.policy
    if policy.release.nulls != "wildcard":
        return
    missing = [codes == (-1 if null is None else null) for codes, null in zip(table.codes.T, table.nulls, strict=True)]
    empty = np.logical_and.reduce(missing)
    if not empty.any() or empty.all():
        return
    rest = table.selected(np.flatnonzero(~empty))
    among_themselves = neighbourhoods(rest, table.nulls)
    for model in policy.models:
        if not isinstance(model, ReleaseModel) and model.passes(evidence.as_attackers_see).all():
            alone = int(rest.counts[~model.passes(among_themselves)].sum())
            if alone:
                blank = format_count(int(table.counts[empty].sum()), "record")
                yield finding(
                    "nulls-alone",
                    f"{model.summary} holds for {format_number(alone)} of "
                    f"{format_count(table.n_records, 'record')} only because "
                    f"they match {blank} with nulls in every quasi-identifier",
                    'Set nulls = "category" to treat nulls as a value, or remove these records',
                )
