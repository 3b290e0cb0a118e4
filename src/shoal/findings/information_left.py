"""What is left of the data: columns without information, lost records, searches that ended early."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding, shortened
from shoal.inspection.dependencies import whole_percent
from shoal.models.finding import Finding
from shoal.policy import Policy
from shoal.text.figures import format_count, format_list, format_number

# Searches with one level or one cut per column, which suppress whole records.
ONE_LEVEL = frozenset(
    {"optimal", "exhaustive", "mingen", "samarati", "k_minimal", "incognito", "ola", "flash", "datafly", "k_optimize"}
    | {"top_down", "genetic", "annealing"}
)
HIDES_CELLS = frozenset({"local_suppression", "single_dimensional", "suppress_cells", "forest"})


def single_label(evidence: Evidence) -> Iterator[Finding]:
    """Find quasi-identifiers that have a single label."""
    table, rows = evidence.table, evidence.original
    names = [name for j, name in enumerate(table.columns) if len(np.unique(table.codes[:, j])) == 1]
    if rows is not None:
        names = [name for name in names if len(rows.frequencies(name)) > 1]
    if names and table.n_records > 1:
        single, listed = len(names) == 1, format_list(shortened([repr(name) for name in names]))
        yield finding(
            "single-label",
            f"{'Column' if single else 'Columns'} {listed} {'has' if single else 'have'} a single label in all "
            f"{format_count(table.n_records, 'record')} and {'carries' if single else 'carry'} no information",
            _remedy_of_single_labels(evidence.policy),
            names,
        )


def _remedy_of_single_labels(policy: Policy) -> str:
    """Name what the policy does not do yet: the same labels everywhere with hidden cells, or suppressed records."""
    steps = []
    if policy.release.algorithm in ONE_LEVEL:
        steps.append('Use algorithm = "single_dimensional", which hides single cells and keeps the column')
    elif not policy.release.max_suppression and policy.release.algorithm not in HIDES_CELLS:
        steps.append("Allow max_suppression")
    steps += [
        "provide a finer hierarchy",
        "give the columns that matter a weight of 10",
        "or remove columns that are not needed",
    ]
    sentence = ", ".join(steps)
    return sentence[0].upper() + sentence[1:]


def half_lost(evidence: Evidence) -> Iterator[Finding]:
    """Find out whether more than half of the records or of the information is lost."""
    suppressed, n = evidence.suppressed
    if 2 * suppressed > n:
        lost = f"{format_number(suppressed)} of {format_count(n, 'record')} are suppressed"
    elif evidence.loss is not None and evidence.loss > 0.5:
        lost = f"the loss is more than {whole_percent(evidence.loss - 1e-9)}"
    else:
        return
    yield finding(
        "half-lost",
        f"More than half of the table is lost: {lost}",
        "Relax the requirements (a smaller k), use finer hierarchies or fewer quasi-identifiers, or try "
        'algorithm = "local"',
    )


def time_budget(evidence: Evidence) -> Iterator[Finding]:
    """Find out whether the time budget ended a search early."""
    if evidence.unfinished:
        yield finding(
            "time-budget",
            evidence.unfinished[:1].upper() + evidence.unfinished[1:],
            "More time may reduce the loss: increase time_budget, or remove it",
        )
