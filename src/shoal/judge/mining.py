"""A release as a miner reads it: the distinct rows of the columns that forbidden results name, from one GROUP BY."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.engines.base import Groups, Query, Rows, WrittenFile
from shoal.errors import HierarchyError
from shoal.judge.recount import regrouped
from shoal.policy import Policy
from shoal.table import codec
from shoal.table.codec import Coded
from shoal.table.containment import OUTSIDE, UNDECIDED, UNREAD, Placing, placing


@dataclass(frozen=True, eq=False)
class Mined:
    """Groups of released records, and what their cells say about the values that forbidden results name."""

    columns: Mapping[str, Coded]
    counts: NDArray[np.int64]
    policy: Policy
    _known: dict[tuple[str, str], Placing] = field(default_factory=dict, repr=False)

    def placed(self, column: str, value: str) -> Placing:
        """Return for each group whether its cell lies within a value."""
        if (column, value) not in self._known:
            self._known[column, value] = self._of_texts(column, value)[self.columns[column].codes]
        return self._known[column, value]

    def _of_texts(self, column: str, value: str) -> Placing:
        """Return the same for each text of a column, and last for a null: it is no value, or any as a wildcard."""
        of = self.policy.columns[column]
        wildcard = of.role == "quasi" and self.policy.release.nulls == "wildcard"
        mark, texts = self.policy.marks.get(column), self.columns[column].texts
        try:
            found = placing(column, texts, value, of.hierarchy, mark=mark, folder=self.policy.folder)
        except HierarchyError:  # its file is not at hand, say
            return np.full(len(texts) + 1, UNREAD, np.int8)
        return np.append(found, np.int8(UNDECIDED if wildcard else OUTSIDE))


def mine(released: Rows | Query | Groups | WrittenFile, policy: Policy) -> Mined | None:
    """Group released rows by the columns of forbidden results; None if the policy forbids none."""
    if not policy.forbid:
        return None
    names = list(dict.fromkeys(name for result in policy.forbid for name in result.columns))
    groups = regrouped(released, names)
    columns = {name: codec.encode_texts(name, groups.table[name]) for name in names}
    return Mined(columns, np.asarray(groups.table[groups.weight]).astype(np.int64), policy)
