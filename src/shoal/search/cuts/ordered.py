"""Ordered domains: a column's values in a row, so that a cut is told by the values that start an interval.

Numbers and dates lie as they do; the values of a tree so that those under a label are next to each other. Only values
that occur are in the row, those that level 0 joins as one. What has no entry in the hierarchy comes after them and null
last: an interval with either among others can be released as the top only, and so never two of a column are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.search.cuts.cuts import Pieces
from shoal.search.full_domain.lattice import Node
from shoal.search.losses.cells import leaf_counts
from shoal.table.frequency import FrequencyTable
from shoal.table.hierarchy import Hierarchy
from shoal.table.values import Leaves

ABSENT = -1


@dataclass(frozen=True, eq=False)
class OrderedDomain:
    """The values of a column in order."""

    hierarchy: Hierarchy
    place: NDArray[np.int64]  # (leaves)  place in the row, ABSENT for leaves that do not occur
    values: tuple[Leaves, ...]  # by place, the leaves that are this value
    whole: bool  # the column stays as it is or is hidden: its values start intervals together or not at all

    @property
    def n_values(self) -> int:
        """The number of values that occur."""
        return len(self.values)

    def leaves(self, first: int, last: int) -> Leaves:
        """What an interval of places stands for.

        Where it holds the same values of the data as a label, it is that label, the lowest of them: a piece then reads
        as the hierarchy names it, though the hierarchy lists values that do not occur.
        """
        own = np.sort(np.concatenate(self.values[first : last + 1]))
        table = self.hierarchy.table
        for codes in table:
            if (codes[own] != codes[own[0]]).any():
                continue
            under = np.flatnonzero(codes == codes[own[0]]).astype(np.int32)
            places = self.place[under]
            if ((places == ABSENT) | ((places >= first) & (places <= last))).all():
                return under
            break  # higher labels stand for still more
        return own

    def pieces(self, starts: NDArray[np.bool_]) -> Pieces:
        """The piece of each leaf, given which places start an interval; leaves of no interval are on their own."""
        firsts = np.flatnonzero(starts)
        lasts = np.append(firsts[1:], self.n_values) - 1
        pieces: Pieces = self.hierarchy.table[0] + np.int32(len(firsts))
        for piece, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            pieces[self.leaves(first, last)] = piece
        return pieces


def ordered(table: FrequencyTable, j: int) -> OrderedDomain:
    """The domain of column ``j``."""
    hierarchy = table.hierarchies[j]
    if hierarchy.leaf_order in ("numeric", "time", "rank"):
        rank = np.arange(len(hierarchy.leaves))
    else:
        rank = np.argsort(np.lexsort(hierarchy.table), kind="stable")  # by the top's code, then the next level's, …
    last = [2 if text is None else int(leaf == hierarchy.uncovered) for leaf, text in enumerate(hierarchy.leaves)]
    occurs = np.unique(hierarchy.table[0][leaf_counts(table, j) > 0])
    groups = [np.flatnonzero(hierarchy.table[0] == code).astype(np.int32) for code in occurs]
    groups.sort(key=lambda of: min((last[leaf], int(rank[leaf])) for leaf in of))
    place = np.full(len(hierarchy.leaves), ABSENT, np.int64)
    for i, of in enumerate(groups):
        place[of] = i
    return OrderedDomain(hierarchy, place, tuple(groups), _all_or_nothing(hierarchy))


def _all_or_nothing(hierarchy: Hierarchy) -> bool:
    """Whether the policy left the ground and the top and nothing between: only = "suppress"."""
    numbers = hierarchy.numbers
    return 0 < len(numbers) <= 2 and numbers[0] == 0 and numbers[-1] == hierarchy.number_of_top


# --- all columns in one list -------------------------------------------------------------------------------------

Chosen = NDArray[np.bool_]  # (values of the list)  those that start an interval
IntervalEnds = tuple[int, int]  # the first and the last place


class Axis:
    """The values of all columns in one list, without the first of each, which always starts an interval."""

    def __init__(self, table: FrequencyTable) -> None:
        self.domains = [ordered(table, j) for j in range(len(table.columns))]
        self.places = np.column_stack([d.place[table.codes[:, j]] for j, d in enumerate(self.domains)])
        self.listed: list[NDArray[np.int64]] = []  # by column, per place but the first, its number in the list
        columns: list[int] = []
        for j, domain in enumerate(self.domains):
            numbers = np.arange(domain.n_values - 1)
            self.listed.append(len(columns) + (np.zeros_like(numbers) if domain.whole else numbers))
            columns += [j] * len(np.unique(self.listed[-1]))
        self.column = np.array(columns, np.int64)  # of each value

    @property
    def n_values(self) -> int:
        """Length of the list."""
        return len(self.column)

    def starts(self, chosen: Chosen, j: int) -> NDArray[np.bool_]:
        """Per place of column ``j``, whether an interval starts there."""
        return np.concatenate([[True], chosen[self.listed[j]]])

    def intervals(self, chosen: Chosen) -> tuple[list[NDArray[np.int32]], list[list[IntervalEnds]]]:
        """By column: the interval of each place, and the ends of each interval."""
        numbers, ends = [], []
        for j, domain in enumerate(self.domains):
            starts = self.starts(chosen, j)
            firsts = np.flatnonzero(starts)
            lasts = np.append(firsts[1:], domain.n_values) - 1
            numbers.append((np.cumsum(starts) - 1).astype(np.int32))
            ends.append(list(zip(firsts.tolist(), lasts.tolist(), strict=True)))
        return numbers, ends

    def of_node(self, node: Node) -> Chosen:
        """The values that start a label of the node's levels."""
        chosen = np.zeros(self.n_values, np.bool_)
        for domain, level, listed in zip(self.domains, node, self.listed, strict=True):
            codes = domain.hierarchy.table[level][[of[0] for of in domain.values]]
            chosen[listed[codes[1:] != codes[:-1]]] = True
        return chosen

    def pieces(self, chosen: Chosen) -> list[Pieces]:
        """The intervals as pieces of the leaves."""
        return [domain.pieces(self.starts(chosen, j)) for j, domain in enumerate(self.domains)]
