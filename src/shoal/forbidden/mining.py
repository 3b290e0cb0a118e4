"""A release as a miner reads it: the distinct rows of the columns that forbidden results name, from one GROUP BY."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from shoal.engines.base import Groups, Query, Rows, WrittenFile
from shoal.errors import HierarchyError
from shoal.hierarchies.builders import build
from shoal.hierarchies.containment import OUTSIDE, UNDECIDED, UNREAD, Placing, placing, vagueness
from shoal.hierarchies.spans import spans
from shoal.judge.recount import regrouped
from shoal.models.forbidden import CellTexts
from shoal.notation import codec
from shoal.notation.codec import Coded
from shoal.notation.forms import is_star
from shoal.policy import Policy
from shoal.tables.frequency import Floats


@dataclass(frozen=True, eq=False)
class Mined:
    """Groups of released records, and what their cells say about the values that forbidden results name."""

    columns: Mapping[str, Coded]
    counts: NDArray[np.int64]
    policy: Policy
    _placings: dict[tuple[str, str], Placing] = field(default_factory=dict, repr=False)

    def placed(self, column: str, value: str) -> Placing:
        """Return for each group whether its cell lies within a value."""
        if (column, value) not in self._placings:
            self._placings[column, value] = self._of_texts(column, value)[self.columns[column].codes]
        return self._placings[column, value]

    def labels(self, column: str) -> CellTexts:
        """Return for each group the number of its text; the null is the last, and says nothing."""
        cells = self.columns[column]
        spec, mark = self.policy.columns[column].hierarchy, self.policy.marks.get(column)
        try:
            silent, coarse = vagueness(column, cells.texts, spec, mark=mark, folder=self.policy.folder)
        except HierarchyError:  # its file is not at hand, say
            silent, coarse = np.zeros(len(cells.texts), np.bool_), np.ones(len(cells.texts), np.bool_)
        codes = np.where(cells.codes < 0, len(cells.texts), cells.codes).astype(np.int64)
        return CellTexts(codes, np.append(silent, True)[codes], np.append(coarse, False)[codes])

    def silent(self, column: str) -> NDArray[np.bool_]:
        """Return for each group whether its cell is a star or missing."""
        cells = self.columns[column]
        return np.array([*(is_star(text) for text in cells.texts), True], np.bool_)[cells.codes]

    def numbers(self, column: str) -> Floats:
        """Return the least and the largest number that each cell may be; NaN if it is none, infinite for a null."""
        cells, policy = self.columns[column], self.policy
        spec, mark = policy.columns[column].hierarchy, policy.marks.get(column)
        try:
            declared = build(column, spec, [], nulls=False, uncovered="error", folder=policy.folder)
        except HierarchyError:
            return np.full((len(self.counts), 2), math.nan)
        read = spans(cells.texts, declared if declared.leaves else None, mark)
        ends = [(math.nan, math.nan) if x is None else (x[0][0], max(span[1] for span in x)) for x in read]
        return np.asarray(np.array([*ends, (-math.inf, math.inf)], np.float64)[cells.codes])

    def placed_text(self, column: str, text: str, value: str) -> int:
        """Return where a text that the column may not have yet lies."""
        return int(self._placing(column, [text], value)[0])

    def _of_texts(self, column: str, value: str) -> Placing:
        """Return the same for each text of a column, and last for a null: it is no value, or any as a wildcard."""
        column_policy = self.policy.columns[column]
        wildcard = column_policy.role == "quasi" and self.policy.release.nulls == "wildcard"
        placed = self._placing(column, self.columns[column].texts, value)
        return np.append(placed, np.int8(UNDECIDED if wildcard else OUTSIDE))

    def _placing(self, column: str, texts: Sequence[str], value: str) -> Placing:
        spec, mark = self.policy.columns[column].hierarchy, self.policy.marks.get(column)
        try:
            return placing(column, texts, value, spec, mark=mark, folder=self.policy.folder)
        except HierarchyError:  # its file is not at hand, say
            return np.full(len(texts), UNREAD, np.int8)


def mine(released: Rows | Query | Groups | WrittenFile, policy: Policy) -> Mined | None:
    """Group released rows by the columns of forbidden results; None if the policy forbids none."""
    if not policy.forbid:
        return None
    return mined_by(released, list(dict.fromkeys(name for result in policy.forbid for name in result.columns)), policy)


def mined_by(released: Rows | Query | Groups | WrittenFile, names: Sequence[str], policy: Policy) -> Mined:
    """Group released rows by some columns."""
    groups = regrouped(released, names)
    columns = {name: codec.encode_texts(name, groups.table[name]) for name in names}
    return Mined(columns, np.asarray(groups.table[groups.weight]).astype(np.int64), policy)
