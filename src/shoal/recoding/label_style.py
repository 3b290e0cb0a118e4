"""The style of interval labels: whole numbers, 30-39, unless the release itself shows a number with decimals.

A value with decimals makes the intervals of its column half-open, [30, 40), because 39.5 is not in 30-39. If every such
value is suppressed, the style alone would reveal that such a record existed. The style is therefore settled once it is
known which records stay: the column is written as if the suppressed values had never been there.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from shoal.hierarchies.builders import SAFE_HARBOR_AGES, SafeHarbor
from shoal.hierarchies.hierarchy import TOP
from shoal.hierarchies.intervals import Intervals, WholeIntervals, is_whole, leaf_numbers
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.tables.frequency import FrequencyTable


def with_whole_numbers(
    policy: Policy,
    table: FrequencyTable,
    recoding: Recoding,
    population: FrequencyTable | None,
    raised: Collection[str],
) -> Policy:
    """Return the policy with whole-number labels where the recoding shows no other numbers; else unchanged.

    ``raised``: columns in which one leaf of the table stands for all leaves under its lowest label.
    """
    columns = dict(policy.columns)
    for j, name in enumerate(policy.quasi):
        spec = _intervals(columns[name].hierarchy)
        if spec is not None and _only_hidden(j, table, recoding, population, name in raised):
            whole = WholeIntervals.model_construct(**dict(spec))
            columns[name] = columns[name].model_copy(update={"hierarchy": whole})
    return policy if columns == dict(policy.columns) else policy.model_copy(update={"columns": columns})


def shows_hidden_decimals(table: FrequencyTable, recoding: Recoding, policy: Policy, raised: Collection[str]) -> bool:
    """Return whether a recoding under a settled policy still shows decimals in labels of whole numbers."""
    return any(
        isinstance(policy.columns[name].hierarchy, WholeIntervals)
        and not _only_hidden(j, table, recoding, None, name in raised)
        for j, name in enumerate(policy.quasi)
    )


def _intervals(spec: object) -> Intervals | None:
    """Return a column's intervals if its policy has whole numbers only; with others, all labels are half-open."""
    if isinstance(spec, SafeHarbor) and spec.safe_harbor == "age":
        return SAFE_HARBOR_AGES
    if not isinstance(spec, Intervals):
        return None
    return spec if all(map(is_whole, spec.numbers)) else None


def _only_hidden(
    j: int, table: FrequencyTable, recoding: Recoding, population: FrequencyTable | None, raised: bool
) -> bool:
    """Return whether column ``j`` has numbers with decimals, all of them in cells that reveal nothing."""
    hierarchy = table.hierarchies[j]
    numbers = leaf_numbers(hierarchy)
    fractional = np.array([value is not None and not is_whole(value) for value in numbers], np.bool_)
    if not fractional.any():
        return False
    if population is not None and fractional[population.codes[:, j]].any():
        return False  # decimals occur outside the table too, so the style reveals nothing about its records
    if raised:  # a leaf stands for its neighbours
        fractional = np.isin(hierarchy.table[0], hierarchy.table[0][fractional])
    parts, labels = recoding.parts(table), recoding.released[j].labels
    tells = np.array([label not in (None, TOP) for label in labels], np.bool_)
    leaves = table.codes[parts.row, j]
    return not (fractional[leaves] & tells[parts.codes[:, j]] & ~parts.suppressed).any()
