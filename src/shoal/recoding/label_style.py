"""How intervals are written: as whole numbers, 30-39, unless the release itself shows a number with decimals.

A value with decimals makes the intervals of its column half-open, [30, 40): 39.5 lies in no 30-39. Where every such
value is suppressed, that style would be all that is left of it, and would tell that somebody was there. So the style
is settled when it is known who stays: the column is then written as if those values had never been.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.table.builders import SAFE_HARBOR_AGES, SafeHarbor
from shoal.table.frequency import FrequencyTable
from shoal.table.intervals import Intervals, WholeIntervals, is_whole, number


def settled(
    policy: Policy,
    table: FrequencyTable,
    recoding: Recoding,
    population: FrequencyTable | None,
    raised: Collection[str],
) -> Policy:
    """The policy that writes whole numbers where the answer shows no others; the same policy where it is as it was.

    ``raised``: columns in which one leaf of the table stands for all under its lowest label.
    """
    columns = dict(policy.columns)
    for j, name in enumerate(policy.quasi):
        spec = _intervals(columns[name].hierarchy)
        if spec is not None and _only_hidden(j, table, recoding, population, name in raised):
            whole = WholeIntervals.model_construct(**dict(spec))
            columns[name] = columns[name].model_copy(update={"hierarchy": whole})
    return policy if columns == dict(policy.columns) else policy.model_copy(update={"columns": columns})


def shows_hidden_decimals(table: FrequencyTable, recoding: Recoding, policy: Policy, raised: Collection[str]) -> bool:
    """Whether an answer to a settled policy shows decimals after all, in labels of whole numbers."""
    return any(
        isinstance(policy.columns[name].hierarchy, WholeIntervals)
        and not _only_hidden(j, table, recoding, None, name in raised)
        for j, name in enumerate(policy.quasi)
    )


def _intervals(spec: object) -> Intervals | None:
    """The intervals of a column whose policy has whole numbers only: where it has others, all labels are half-open."""
    if isinstance(spec, SafeHarbor) and spec.safe_harbor == "age":
        return SAFE_HARBOR_AGES
    if not isinstance(spec, Intervals):
        return None
    return spec if all(map(is_whole, spec.numbers)) else None


def _only_hidden(
    j: int, table: FrequencyTable, recoding: Recoding, population: FrequencyTable | None, raised: bool
) -> bool:
    """Whether column ``j`` has numbers with decimals, and none of them is in a cell that tells anything."""
    hierarchy = table.hierarchies[j]
    numbers = [None if text is None else number(text) for text in hierarchy.leaves]
    fractional = np.array([value is not None and not is_whole(value) for value in numbers], np.bool_)
    if not fractional.any():
        return False
    if population is not None and fractional[population.codes[:, j]].any():
        return False  # outside the table there are some too, and who is there is no secret of it
    if raised:  # a leaf stands for its neighbours
        fractional = np.isin(hierarchy.table[0], hierarchy.table[0][fractional])
    parts, labels = recoding.parts(table), recoding.released[j].labels
    tells = np.array([label not in (None, hierarchy.top) for label in labels], np.bool_)
    leaves = table.codes[parts.row, j]
    return not (fractional[leaves] & tells[parts.codes[:, j]] & ~parts.suppressed).any()
