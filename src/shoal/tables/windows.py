"""Windows: labels of several values that are fixed before classes are formed, so that they give no value back.

The tightest range or set of a class gives values back: each end of the range, and each member of the
set, occurs. With ``cells = "range"`` and ``"set"``, a class is written as the smallest *window* that contains it.

The rule. The n values of a column that occur in the table have positions 0 to n − 1: in a range in their own order; in
a set by labels of the hierarchy, if it has any between the values and the top, and then by records, most first. Windows
have sizes 3, 5, 9, 17 and so on, up to n, in ranges without 9, and begin at the multiples of a step: 2, 2, 2, 4, 8 (a
quarter of the size, rounded down, and at least 2). The last window of a size is extended to position n − 1. A class of
one value is written as that value, any other as the smallest window that contains it; of several of one size, the one
whose middle is nearest to that of the class, so that its ends are seldom values of the class. If there is none, or if
it is the whole column, it is written as the top, and so is a class of nulls and others.

What a label tells is between which positions the lowest and the highest value of the class lie, but no value: every
window, and the top of n ≥ 3 positions, is what two classes of two records are written as that have no value in common,
or three of which no value is in all. Proof: Let a window of at least 4 positions go from b to e. The classes {b, e} and
{b + 1, e − 1} are in no smaller one: the next smaller size, even if extended, is too short, or, for the latter and with
sizes 3 and 5, begins at b and ends before e − 1. They are in no other of the same size: as the step is 2 or more, it
begins after b + 1 or ends before e − 1. In a window of 3, any two values make such a class. The top is written for
{0, n − 1} and, from n = 4 on, {1, n − 2}: windows that contain 1 begin at 0, and end before n − 2, or are the whole
column; with n = 3, for any two.

All classes together may tell more: a value in the label of one class only must be in that class, because it occurs.
Then a second class is written as a larger window, which contains it too (``covered_twice``).

With n = 2 there is nothing to hide a value among. There a class with both is written as the top, and so is, for each of
them, a class in which all have one value (``companions``), drawn at random, so that the two cannot be told apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.tables.values import Ids, Leaves, Vocabulary, leaf_groups

FIXED = ("range", "set")
Positions = NDArray[np.int64]


def sizes(n: int, *, ranges: bool) -> Iterator[tuple[int, int]]:
    """Yield the sizes of windows over n positions, with the step from one to the next.

    In ranges, five people in nine values would often be the only ones with the value at an end.
    """
    size = 3
    while size <= n:
        if not (ranges and size == 9):
            yield size, max(2, size // 4)
        size = 2 * size - 1


def windows_around(n: int, low: Positions, high: Positions, *, ranges: bool) -> tuple[Positions, Positions]:
    """Return the first and the last position of the smallest window from ``low`` to ``high``; all n if there is none.

    Of several, the one whose middle is nearest to theirs. A single position is its own window.
    """
    first, last = np.where(low == high, low, 0), np.where(low == high, high, n - 1)
    unset = low != high
    for size, step in sizes(n, ranges=ranges):
        ending = (n - size) // step * step  # the first position of the last window
        lowest = np.minimum(np.maximum(-(-(high - size + 1) // step) * step, 0), ending)
        highest = np.minimum(low // step * step, ending)
        centred = (low + high - size + 1 + step) // (2 * step) * step
        start = np.clip(centred, lowest, np.maximum(lowest, highest))
        end = np.where(start == ending, n - 1, start + size - 1)
        fits = unset & (start <= low) & (high <= end) & ~((start == 0) & (end == n - 1))
        first, last = np.where(fits, start, first), np.where(fits, end, last)
        unset &= ~fits
    return first, last


@dataclass(frozen=True, eq=False)
class FixedLabels:
    """The positions of a column's values, and the windows over them.

    Groups of leaves that level 0 joins have one position. Nulls, and values without an entry, come last: they are in no
    window. Values of the hierarchy that do not occur have no position; a range covers those that lie in it.
    """

    ranges: bool
    groups: tuple[Leaves, ...]  # by position
    position: NDArray[np.int32]  # of each leaf; in ranges, one that does not occur has the position after it
    n_shown: int  # positions in windows

    @classmethod
    def for_column(cls, hierarchy: Hierarchy, cells: str, counts: NDArray[np.int64]) -> FixedLabels:
        """Return the windows of a column with ``counts`` records of each leaf."""
        ranges = cells == "range"
        rank, groups = leaf_groups(hierarchy)
        of_group = np.bincount(rank, counts, len(groups)).astype(np.int64)
        hidden = np.array([hierarchy.leaves[g[0]] is None or g[0] == hierarchy.uncovered for g in groups], np.bool_)
        occurring = np.flatnonzero(of_group > 0)
        if not ranges:
            above = hierarchy.table[1:-1, [int(groups[g][0]) for g in occurring.tolist()]]
            occurring = occurring[np.lexsort((-of_group[occurring], *above, hidden[occurring]))]
        position = np.searchsorted(occurring, np.arange(len(groups))) if ranges else np.zeros(len(groups), np.int64)
        position[occurring] = np.arange(len(occurring))
        position[hidden & (of_group == 0)] = len(occurring)  # in no range
        return cls(
            ranges,
            tuple(groups[g] for g in occurring.tolist()),
            position[rank].astype(np.int32),
            int((~hidden[occurring]).sum()),
        )

    @property
    def n(self) -> int:
        """The number of positions."""
        return len(self.groups)

    @property
    def two_valued(self) -> bool:
        """Whether a class that is not of one value has all values of the column."""
        return self.n == 2

    def around(self, low: Positions, high: Positions) -> tuple[Positions, Positions]:
        """Return the window for each lowest and highest position; from 0 to n − 1 is the top."""
        first, last = windows_around(self.n_shown, low, high, ranges=self.ranges)
        whole = (low != high) & ((high >= self.n_shown) | (last - first + 1 >= self.n_shown))
        return np.where(whole, 0, first), np.where(whole, self.n - 1, last)

    def leaves(self, first: int, last: int) -> Leaves:
        """Return the leaves of a window, ascending."""
        if first == last or not self.ranges:
            return np.sort(np.concatenate(self.groups[first : last + 1])).astype(np.int32)
        between = np.flatnonzero((self.position >= first) & (self.position <= last))
        outer = (self.groups[first].min(), self.groups[last].max())
        return np.asarray(between[(between >= outer[0]) & (between <= outer[1])], np.int32)

    def value(self, vocabulary: Vocabulary, first: int, last: int) -> int:
        """Return the value that a window is released as."""
        if last - first + 1 == self.n and self.n > 1:
            return Vocabulary.TOP_ID
        return vocabulary.number_of(self.leaves(first, last))


def written_as(
    fixed: FixedLabels, vocabulary: Vocabulary, leaves: Leaves, counts: NDArray[np.int64], starts: NDArray[np.int64]
) -> Ids:
    """Return the value that each class is released as; class i owns ``leaves[starts[i]:starts[i+1]]``.

    ``counts`` has the number of records of each.
    """
    positions = fixed.position[leaves].astype(np.int64)
    low, high = np.minimum.reduceat(positions, starts), np.maximum.reduceat(positions, starts)
    n_records = np.add.reduceat(counts, starts)
    around = covered_twice(fixed, *fixed.around(low, high), n_records)
    window, window_of = np.unique(np.column_stack(around), axis=0, return_inverse=True)
    values = [fixed.value(vocabulary, first, last) for first, last in window.tolist()]
    ids = np.array(values, np.int32)[window_of.ravel()]
    if fixed.two_valued:
        # Drawn by what only who has the table knows, so that the same table gives the same release.
        seed = zlib.crc32(np.concatenate([leaves, starts, counts]).astype("<i8").tobytes())
        ids[companions(low != high, np.random.default_rng(seed))] = Vocabulary.TOP_ID
    return ids


def covered_twice(
    fixed: FixedLabels, first: Positions, last: Positions, n_records: NDArray[np.int64]
) -> tuple[Positions, Positions]:
    """Widen windows until every position is in those of two classes, or a class is written as its value.

    Every value of the column occurs, so a class whose window alone contains one would have it for certain. Of another
    class, the window is replaced by the smallest that contains the value too: where it adds least, times records.
    """
    first, last = first.copy(), last.copy()
    while len(first) > 1 and not fixed.two_valued:
        ends = np.bincount(first, minlength=fixed.n + 1) - np.bincount(last + 1, minlength=fixed.n + 1)
        is_value = np.bincount(first[first == last], minlength=fixed.n) > 0
        alone = (np.cumsum(ends)[:-1] == 1) & ~is_value
        if not alone.any():
            break
        begin = int(np.argmax(alone))
        covering = int(np.flatnonzero((first <= begin) & (last >= begin))[0])
        covered_again = np.flatnonzero(~alone[begin : last[covering] + 1])
        end = int(begin + covered_again[0] - 1) if len(covered_again) else int(last[covering])
        wider = fixed.around(np.minimum(first, begin), np.maximum(last, end))
        cost = (wider[1] - wider[0] - last + first) * n_records.astype(np.float64)
        cost[covering] = np.inf
        widened = int(np.lexsort((n_records, last, first, cost))[0])
        first[widened], last[widened] = wider[0][widened], wider[1][widened]
    return first, last


def companions(mixed: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.int64]:
    """Return, of a column with two values, the classes of one value that are written like those with both.

    One for each class with both, drawn at random; all if there are not as many. Any rule by the size of a class would
    tell which classes have both: were the smallest taken, all that are larger than one that is not.
    """
    alone = np.flatnonzero(~mixed)
    return np.sort(random.permutation(alone)[: int(mixed.sum())])
