"""Labels that give values back: what the texts of a release prove about the original values of its classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from shoal.attacks.downcoding import downcoded
from shoal.attacks.label_columns import BY_CLASS, columns_of_release, given_back_columns
from shoal.findings.evidence import Evidence
from shoal.findings.kinds import finding, shortened
from shoal.models.finding import Finding
from shoal.tables.values import TIGHT
from shoal.text.figures import format_count, format_list, format_number

REMEDY = 'Set cells = "range" or "set", whose labels are fixed before classes are formed, for the columns that differ'


def labels_give_back(evidence: Evidence) -> Iterator[Finding]:
    """Find records whose whole original tuple follows from the labels of their class, as ``downcoding`` counts them."""
    policy, labels = evidence.policy, evidence.labels
    names = given_back_columns(policy)
    if not names or labels is None:
        return
    rows, hierarchies, leaf_counts = labels()
    coded = {name: rows.coded(name) for name in policy.quasi}
    proved = downcoded(columns_of_release(coded, hierarchies, leaf_counts, policy), rows.weights, likelihoods=False)
    n_tuples = len(proved.tuples) + proved.n_single
    if n_tuples:
        revealing = [policy.quasi[j] for j in np.unique(proved.tuples.column).tolist()] or list(names)
        yield finding(
            "labels-give-back",
            f"Labels give values back: {format_number(n_tuples)} of "
            f"{format_count(proved.n_general, 'generalized record')} get the whole original tuple back from the "
            f"released texts alone, by the cells of {_listed(revealing)}",
            REMEDY,
            revealing,
            n_tuples,
        )
        return
    tight = [name for name in names if policy.columns[name].cells in TIGHT and policy.release.algorithm in BY_CLASS]
    if tight and proved.n_general:
        yield finding(
            "labels-give-back",
            f"Each end of a tight range and each member of a tight set occurs in its class ({_listed(tight)}): labels "
            "name original values",
            REMEDY,
            tight,
            severity="decide",
        )


def _listed(names: Sequence[str]) -> str:
    return format_list(shortened([repr(name) for name in names]))
