"""What happened to each quasi-identifier: kept, generalized or suppressed, with a common label as an example."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import sum_by_class
from shoal.hierarchies.hierarchy import Hierarchy, Label
from shoal.policy import Policy
from shoal.recoding import Parts
from shoal.tables.frequency import Counts, FrequencyTable
from shoal.tables.values import Values
from shoal.tables.wildcard import neighbourhoods

if TYPE_CHECKING:
    from shoal.release import Release

SHARED = 5

FateKind = Literal["kept", "coarsened", "hidden"]


@dataclass(frozen=True)
class Fate:
    """What happened to a quasi-identifier in the released records; suppressed records are reported separately."""

    name: str
    kept_share: float  # share of the released cells that are as they were …
    hidden_share: float  # … and that are hidden; the others are coarser
    loss: float  # of the released cells: 0 keeps every value, 1 hides all
    original_label: str | None  # a label that many share, where there is one …
    released_label: str | None  # … and what it was released as

    @property
    def kind(self) -> FateKind:
        """The fate in one word."""
        return "kept" if self.kept_share == 1 else "hidden" if self.hidden_share == 1 else "coarsened"


def original_tables(original: FrequencyTable, policy: Policy) -> tuple[FrequencyTable, FrequencyTable]:
    """Return the classes of the original, and what an intruder cannot distinguish from each."""
    table = replace(original, sensitive={}).recoded(original.codes)  # rows may have been counted apart
    if policy.release.nulls != "wildcard":
        return table, table
    nulls = [h.leaves.index(None) if None in h.leaves else None for h in original.hierarchies]
    return table, neighbourhoods(table, nulls)


def fates(release: Release, original: FrequencyTable, parts: Parts) -> tuple[Fate, ...]:
    """Return one fate per quasi-identifier; ``original`` is the searched table, ``parts`` its recoding."""
    return tuple(_fate(release, original, parts, j) for j in range(len(original.columns)))


def _fate(release: Release, original: FrequencyTable, parts: Parts, j: int) -> Fate:
    values = release.recoding.released[j]
    hierarchy = values.hierarchy
    left = np.where(parts.suppressed, 0, parts.counts)
    of_value = sum_by_class(left, parts.codes[:, j].astype(np.int64), len(values.labels))
    n = max(1, int(left.sum()))
    unchanged, hidden = _as_they_were(values), np.array([label == hierarchy.top for label in values.labels], np.bool_)
    crowd = label_threshold(release.policy)
    coarser = np.where(unchanged | hidden, 0, of_value)  # the best example if the cells of a column differ
    original_label, released_label = (
        _example(original, parts, j, values, coarser, crowd) if coarser.any() else (None, None)
    )
    if released_label is None:
        original_label, released_label = _example(original, parts, j, values, of_value, crowd)
    return Fate(
        hierarchy.column,
        int(of_value[unchanged].sum()) / n,
        int(of_value[hidden].sum()) / n,
        float(of_value @ values.shares) / n,
        original_label,
        released_label,
    )


def _as_they_were(values: Values) -> NDArray[np.bool_]:
    """Return which released values are values of the data."""
    leaves = values.hierarchy.leaves
    pairs = zip(values.labels, values.covers, strict=True)
    return np.array([len(covered) == 1 and label == leaves[covered[0]] for label, covered in pairs], np.bool_)


def _example(
    original: FrequencyTable, parts: Parts, j: int, values: Values, of_value: Counts, crowd: int
) -> tuple[str | None, str | None]:
    """Return a common released label, and the finest label below it that at least ``crowd`` people have.

    Neither belongs to a record: both are told only where a crowd stands behind them.
    """
    hierarchy = values.hierarchy
    common = int(of_value.argmax()) if len(of_value) else -1
    if common < 0 or _persons(original, parts.row[_released_as(parts, j, common)]) < crowd:
        return None, None
    released_label = shortened_label(values.labels[common])
    inside = np.zeros(len(hierarchy.leaves), np.bool_)
    inside[values.covers[common]] = True
    for level in range(hierarchy.n_levels):
        of_leaf = hierarchy.table[level]
        whole = ~np.isin(np.arange(hierarchy.cardinality(level)), of_leaf[~inside])
        persons = per_label(original, j, hierarchy, level)
        persons[~whole] = 0
        best = int(persons.argmax())
        if persons[best] >= crowd:
            as_general = level > 0 and np.array_equal(of_leaf == best, inside)
            return None if as_general else shortened_label(hierarchy.labels[level][best]), released_label
    return None, released_label


def label_threshold(policy: Policy) -> int:
    """Return how many people must have a label before it is shown: as many as a class requires, at least five."""
    return max([SHARED, *(getattr(model, "k", SHARED) for model in policy.models)])


def _released_as(parts: Parts, j: int, value: int) -> NDArray[np.bool_]:
    return np.asarray((parts.codes[:, j] == value) & ~parts.suppressed)


def _persons(table: FrequencyTable, rows: NDArray[np.int64]) -> int:
    """Count the people of some rows: distinct entities, or records."""
    inside = np.zeros(table.n_classes, np.bool_)  # a row may come in several parts
    inside[rows] = True
    if table.entities is None:
        return int(table.counts[inside].sum())
    return len(np.unique(table.entities.selected(np.flatnonzero(inside)).values))


def per_label(table: FrequencyTable, j: int, hierarchy: Hierarchy, level: int) -> Counts:
    """Count the people of each label of a level."""
    codes, n = hierarchy.table[level][table.codes[:, j]].astype(np.int64), hierarchy.cardinality(level)
    if table.entities is None:
        return sum_by_class(table.counts, codes, n)
    return np.diff(table.entities.merged(codes, n).starts)


def shortened_label(label: Label, max_length: int = 40) -> str:
    """Return a label as a reader sees it."""
    text = "(missing)" if label is None else "(empty)" if label == "" else label
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def columns_with_fate(columns: Sequence[Fate], kind: FateKind) -> list[str]:
    """Return the columns with this fate."""
    return [column.name for column in columns if column.kind == kind]
