"""Centres: cells released as one number or label for a whole class: its mean, median or mode.

A centre is not a set of leaves. It covers every value that the cells of its class could have: their range, like a cell
of kind ``range``, and has the same loss. Equal texts must cover equal sets, however, and classes with different ranges
may have the same mean. The value then covers all of these ranges, and its loss is their mean over its records.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import sum_by_class
from shoal.hierarchies.hierarchy import Hierarchy, Label
from shoal.notation.numbers import EXACT, decimal_places, parse_number, written_decimal
from shoal.tables.values import Ids, Leaves, Values, Vocabulary, covering

CENTRES = ("mean", "median", "mode")

# Digits of a mean or median beyond those of the data.
DIGITS = 2

Starts = NDArray[np.int64]


def needs(cells: str) -> tuple[str, ...]:
    """Return the orders of leaves that a kind of cell requires; empty if any will do."""
    return {"mean": ("numeric",), "median": ("numeric", "time")}.get(cells, ())


def centred(
    hierarchy: Hierarchy, cells: str, leaves: Leaves, counts: NDArray[np.int64], starts: Starts
) -> tuple[Values, Ids]:
    """Return the centre of each class, as values and their numbers; class i owns ``leaves[starts[i]:starts[i+1]]``.

    ``counts`` has the number of records of each. A class with a leaf that is not shown unchanged at the lowest level,
    such as a null or a top-coded number, has no mean that could be shown, and gets the label that covers it.
    """
    vocabulary = Vocabulary(hierarchy, "tight-range" if hierarchy.leaf_order in ("numeric", "time") else "tight-set")
    covers = covering(vocabulary, leaves, starts)
    ids, of_class = np.unique(covers, return_inverse=True)
    ranges = vocabulary.selected(ids.tolist())
    if cells == "mode" or hierarchy.leaf_order != "numeric":
        labels = _chosen(hierarchy, cells, leaves, counts, starts)
    else:
        hidden = [ranges.labels[i] for i in of_class.tolist()]
        labels = _numbers(hierarchy, cells, leaves, counts, starts, hidden)
    return _values(vocabulary, labels, ranges, of_class, np.add.reduceat(counts, starts))


def _values(
    vocabulary: Vocabulary, labels: Sequence[Label], ranges: Values, of_class: NDArray[np.int64], sizes: Starts
) -> tuple[Values, Ids]:
    """Build one value per text."""
    hierarchy = vocabulary.hierarchy
    numbers = {label: i for i, label in enumerate(dict.fromkeys(labels))}
    value_of = np.array([numbers[label] for label in labels], np.int64)
    records = sum_by_class(sizes, value_of, len(numbers))
    shares = np.bincount(value_of, ranges.shares[of_class] * sizes, len(numbers)) / records
    members: list[set[int]] = [set() for _ in numbers]
    for value, cover in zip(value_of.tolist(), of_class.tolist(), strict=True):
        members[value].add(cover)
    stood_for, leaves_of, levels = [], [], []
    for numbers_of_ranges in members:
        together = np.unique(np.concatenate([ranges.covers[i] for i in numbers_of_ranges])).astype(np.int32)
        stood_for.append(together)
        # A value without an entry may be anything.
        leaves_of.append(hierarchy.domain if hierarchy.uncovered in together.tolist() else len(together))
        levels.append(hierarchy.number(vocabulary.lowest(together)[0]))
    values = Values(
        hierarchy,
        tuple(numbers),
        tuple(stood_for),
        np.minimum(shares, 1.0),
        np.array(leaves_of, np.int64),
        np.array(levels, np.int64),
    )
    return values, value_of.astype(np.int32)


def _numbers(
    hierarchy: Hierarchy,
    cells: str,
    leaves: Leaves,
    counts: NDArray[np.int64],
    starts: Starts,
    hidden: Sequence[Label],
) -> list[Label]:
    """Return means or medians, exact before rounding; ``hidden`` if none can be shown."""
    alone = np.bincount(hierarchy.table[0]) == 1
    exact_numbers = [
        parse_number(text) if text is not None and alone[code] and text == hierarchy.labels[0][code] else None
        for text, code in zip(hierarchy.leaves, hierarchy.table[0].tolist(), strict=True)
    ]
    places = (
        max((decimal_places(value.normalize(EXACT)) for value in exact_numbers if value is not None), default=0)
        + DIGITS
    )
    # Python's integers never overflow; the table has few leaves compared with its records.
    scaled = np.array(
        [0 if value is None else int(EXACT.scaleb(value, places)) for value in exact_numbers], dtype=object
    )
    is_shown = np.logical_and.reduceat(np.array([value is not None for value in exact_numbers])[leaves], starts)
    sizes = np.add.reduceat(counts, starts)
    if cells == "mean":
        totals = np.add.reduceat(scaled[leaves] * counts.astype(object), starts)
        doubled = [2 * total for total in totals.tolist()]
        parts = sizes.tolist()
    else:
        # Leaves are in numeric order, so the median of a class is found by counting.
        owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(leaves)))
        order = np.lexsort((leaves, owner))
        ends = np.cumsum(counts[order])
        begins = np.cumsum(sizes) - sizes
        low = leaves[order][np.searchsorted(ends, begins + (sizes - 1) // 2, side="right")]
        high = leaves[order][np.searchsorted(ends, begins + sizes // 2, side="right")]
        doubled = (scaled[low] + scaled[high]).tolist()
        parts = [1] * len(starts)
    # Half up: (2t + n) // 2n is t/n + ½, rounded down.
    return [
        written_decimal((twice + n) // (2 * n), places) if has_number else label
        for twice, n, has_number, label in zip(doubled, parts, is_shown.tolist(), hidden, strict=True)
    ]


def _chosen(hierarchy: Hierarchy, cells: str, leaves: Leaves, counts: NDArray[np.int64], starts: Starts) -> list[Label]:
    """Return the most frequent label of the lowest level or, for dates, the median; the first one in case of ties."""
    codes = hierarchy.table[0][leaves].astype(np.int64)
    n_codes = hierarchy.cardinality(0)
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(leaves)))
    pairs, at = np.unique(owner * n_codes + codes, return_inverse=True)
    records = sum_by_class(counts, at, len(pairs))
    owner, codes = np.divmod(pairs, n_codes)
    begins = np.flatnonzero(np.diff(owner, prepend=-1))
    if cells == "mode":
        best = np.lexsort((np.arange(len(pairs)), -records, owner))[begins]
    else:
        sizes = np.add.reduceat(records, begins)
        best = np.searchsorted(np.cumsum(records), np.cumsum(sizes) - sizes + (sizes - 1) // 2, side="right")
    return [hierarchy.labels[0][code] for code in codes[best].tolist()]
