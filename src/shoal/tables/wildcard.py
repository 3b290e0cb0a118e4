"""Null matches anything: the records that each class could be confused with.

Statistical offices count a record with a missing key among all records it is compatible with. Classes then overlap; a
neighbourhood takes the place of the class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from shoal.compiled.grouping import group, sum_by_class
from shoal.tables.frequency import ClassOf, FrequencyTable, Histogram, RowNumbers, packed, unique_patterns

Nulls = Literal["category", "wildcard"]  # a separate value, or one that matches anything


def neighbourhoods(table: FrequencyTable, nulls: Sequence[int | None]) -> FrequencyTable:
    """Return the table with each row's counts replaced by those of all rows compatible with it.

    ``nulls[j]`` is the code of the null in column ``j``, or None.
    """
    if not table.n_classes:
        return table
    counts = np.zeros(table.n_classes, np.int64)
    gathered: dict[str, list[tuple[RowNumbers, Histogram]]] = {name: [] for name in table.sensitive}
    for mine, my_class, theirs, their_class in matches(table, nulls):
        n_classes = int(max(my_class.max(), their_class.max())) + 1
        counts[mine] += sum_by_class(table.counts[theirs], their_class, n_classes)[my_class]
        for name, histogram in table.sensitive.items():
            gathered[name].append((mine, histogram.selected(theirs).merged(their_class, n_classes).selected(my_class)))
    sensitive = {name: _summed(parts, table.n_classes) for name, parts in gathered.items()}
    return replace(table, counts=counts, sensitive=sensitive, nulls=tuple(nulls), own_counts=table.counts)


def matches(
    table: FrequencyTable, nulls: Sequence[int | None]
) -> Iterator[tuple[RowNumbers, ClassOf, RowNumbers, ClassOf]]:
    """Yield groupings by pattern of nulls: two rows are compatible if they get the same class.

    Two patterns are compared on the columns where neither has a null; that is one grouping, so pairs of rows are not
    enumerated.
    """
    missing = np.zeros(table.codes.shape, np.bool_)
    for j, code in enumerate(nulls):
        if code is not None:
            missing[:, j] = table.codes[:, j] == code
    patterns, pattern_of = unique_patterns(missing)
    members = [np.flatnonzero(pattern_of == p) for p in range(len(patterns))]
    for left, mine in zip(patterns, members, strict=True):
        for right, theirs in zip(patterns, members, strict=True):
            rows = np.concatenate([mine, theirs])
            class_of, _ = group(packed(table.codes[rows][:, ~(left | right)]))
            yield mine, class_of[: len(mine)], theirs, class_of[len(mine) :]


def _summed(parts: list[tuple[RowNumbers, Histogram]], n_rows: int) -> Histogram:
    """Sum histograms whose rows belong to the given rows."""
    rows = np.concatenate([r for r, _ in parts])
    lengths = np.concatenate([np.diff(h.starts) for _, h in parts])
    together = replace(
        parts[0][1],
        starts=np.concatenate([[0], np.cumsum(lengths)]),
        values=np.concatenate([h.values for _, h in parts]),
        counts=np.concatenate([h.counts for _, h in parts]),
    )
    return together.merged(rows, n_rows)
