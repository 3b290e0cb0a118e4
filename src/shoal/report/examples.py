"""A few records before and after: constructed ones, unless the owner of the data allows original ones.

The released values are public. The original values of a constructed example are drawn column by column from values
that many people share, or made up from the released range, so they describe nobody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from shoal.compiled.grouping import group, sum_by_class
from shoal.hierarchies.hierarchy import Label
from shoal.notation.labels import ends_of, half_open_ends_of
from shoal.recoding import Parts
from shoal.report.fates import label_threshold, per_label, shortened_label
from shoal.tables.frequency import Counts, FrequencyTable, packed
from shoal.tables.values import Values

if TYPE_CHECKING:
    from shoal.release import Release

ROWS = 5
UNTOLD = "…"  # no value that could stand here is shared by enough people


@dataclass(frozen=True)
class Example:
    """The quasi-identifiers of a record before and after."""

    before: tuple[str, ...]
    after: tuple[str, ...]


def examples(release: Release, original: FrequencyTable, parts: Parts, *, originals: bool) -> tuple[Example, ...]:
    """Return records from classes of all sizes, the largest first; from the input only if ``originals`` are allowed."""
    kept_parts = np.flatnonzero(~parts.suppressed)
    if not len(kept_parts):
        return ()
    released, hierarchies = release.recoding.released, release.recoding.hierarchies
    class_of, firsts = group(packed(parts.codes[kept_parts]))
    sizes = sum_by_class(parts.counts[kept_parts], class_of, len(firsts))
    order = np.argsort(-sizes, kind="stable")
    places = np.unique(np.linspace(0, len(order) - 1, min(ROWS, len(order))).astype(np.int64))
    invent = [_inventor(original, j, values, label_threshold(release.policy)) for j, values in enumerate(released)]
    example_records = []
    for i, position in enumerate(places.tolist()):
        part = kept_parts[firsts[order[position]]]
        codes, leaves = parts.codes[part].tolist(), original.codes[parts.row[part]].tolist()
        if originals:
            before = [h.leaves[leaf] for h, leaf in zip(hierarchies, leaves, strict=True)]
        else:
            before = [inventor(code, i) for inventor, code in zip(invent, codes, strict=True)]
        after = [values.labels[code] for values, code in zip(released, codes, strict=True)]
        example_records.append(
            Example(
                tuple(shortened_label(cell, 24) for cell in before), tuple(shortened_label(cell, 24) for cell in after)
            )
        )
    return tuple(example_records)


def _inventor(original: FrequencyTable, j: int, values: Values, crowd: int) -> Callable[[int, int], Label]:
    """Return a function that makes up possible originals of a released value, a different one each time."""
    hierarchy = values.hierarchy

    @cache
    def persons(level: int) -> Counts:
        return per_label(original, j, hierarchy, level)

    def before(code: int, example_number: int) -> Label:
        label, covered = values.labels[code], values.covers[code]
        if len(covered) == 1 and label == hierarchy.leaves[covered[0]]:
            return label
        inside = np.zeros(len(hierarchy.leaves), np.bool_)
        inside[covered] = True
        for level in range(hierarchy.height):
            of_leaf = hierarchy.table[level]
            whole = ~np.isin(np.arange(hierarchy.cardinality(level)), of_leaf[~inside])
            common = np.flatnonzero(whole & (persons(level) >= crowd))
            finer = [at for at in common.tolist() if hierarchy.labels[level][at] != label]
            if finer:
                return hierarchy.labels[level][finer[(5 * example_number + j) % len(finer)]]
            if level == 0 and (made_up := _middle_of(label)) is not None:
                return made_up
        return UNTOLD

    return before


def _middle_of(label: Label) -> str | None:
    """Return a number in the middle of a range."""
    ends = None if label is None else half_open_ends_of(label) or ends_of(label)
    if ends is None or ends[0] is None or ends[1] is None:
        return None
    try:
        low, high = Decimal(str(ends[0])), Decimal(str(ends[1]))
    except InvalidOperation:
        return None
    if low >= high:
        return None
    whole = low == low.to_integral_value() and high == high.to_integral_value()
    middle = (low + high) / 2
    return str(int(middle)) if whole else f"{middle:f}"
