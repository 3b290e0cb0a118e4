"""A budget for the frequency table: if there are too many distinct tuples, counting starts at coarser levels.

The values of each column, which are few, are fetched, and the engine gets a table for each column: every value, and one
value that represents all values with the same label at the lowest allowed level. Grouping by these gives the tuples of
that level. The column with the most labels is raised first. Every release still satisfies the policy; finer releases
are not searched, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.local import LocalEngine
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.codec import Coded
from shoal.policy import Policy


@dataclass(frozen=True, eq=False)
class Coarse:
    """A column that is raised level by level."""

    values: pa.ChunkedArray  # distinct, as in the engine
    hierarchy: Hierarchy  # all of it
    leaves: NDArray[np.int32]  # of the values
    level: int
    top: int  # the highest level that the policy allows

    @classmethod
    def of(cls, name: str, values: pa.ChunkedArray, policy: Policy, outside: LocalEngine | None) -> Coarse:
        """Start with no column raised to a coarser level."""
        alone = LocalEngine(pa.table({name: values}))
        hierarchy, column, coded = alone.hierarchy(name, policy, outside), policy.columns[name], alone.coded(name)
        leaves = hierarchy.encode([*coded.texts, None] if None in hierarchy.leaves else coded.texts)
        top = hierarchy.height if column.max_level is None else min(column.max_level, hierarchy.height)
        lowest = min(column.min_level, top)
        return cls(values, hierarchy, leaves[coded.codes], lowest, lowest if column.only else top)

    @property
    def codes(self) -> NDArray[np.int32]:
        """The label of each value at the current level."""
        return np.asarray(self.hierarchy.table[self.level][self.leaves])

    @property
    def n_labels(self) -> int:
        """The number of distinct labels at the current level."""
        return len(np.unique(self.codes))

    @property
    def stand_ins(self) -> pa.ChunkedArray:
        """For each value, the one that represents all values with its label."""
        _, first, inverse = np.unique(self.codes, return_index=True, return_inverse=True)
        return self.values.take(pa.array(first[inverse.ravel()]))


def next_up(columns: Mapping[str, Coarse]) -> str | None:
    """Return the column to raise: the one with the most labels among those that can still be raised."""
    free = {name: column.n_labels for name, column in columns.items() if column.level < column.top}
    return max(free, key=lambda name: free[name], default=None)


class Domains:
    """All values of the raised columns, so that hierarchies do not depend on how the table was counted."""

    def __init__(self, columns: Mapping[str, Coarse], outside: LocalEngine | None) -> None:
        self._columns = columns
        self._outside = outside
        self.columns = [*columns, *([] if outside is None else outside.columns)]

    def coded(self, name: str) -> Coded:
        """Return the texts of a column, and whether it has nulls; nothing else is needed."""
        parts = [] if self._outside is None or name not in self._outside.columns else [self._outside.coded(name)]
        if name in self._columns:
            parts.append(LocalEngine(pa.table({name: self._columns[name].values})).coded(name))
        texts = sorted({text for part in parts for text in part.texts})
        null = any(bool((part.codes < 0).any()) for part in parts)
        return Coded(np.full(1, -1 if null else 0, np.int32), tuple(texts), pa.array([], pa.string()))
