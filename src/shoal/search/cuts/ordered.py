"""Ordered domains: a column's values in sequence, so that the values that start an interval define a cut.

Numbers and dates have their natural order; the values of a tree are ordered so that those under a label are adjacent.
The sequence contains only values that occur; those that level 0 joins are one. Values without an entry in the hierarchy
follow, and the null comes last: an interval with one of these and other values can only be released as the top,
so a column never has two such intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search.cuts.cuts import Pieces
from shoal.search.full_domain.lattice import Node
from shoal.search.losses.cells import leaf_counts
from shoal.tables.frequency import FrequencyTable
from shoal.tables.values import Leaves

ABSENT = -1


@dataclass(frozen=True, eq=False)
class OrderedDomain:
    """The occurring values of a column in order."""

    hierarchy: Hierarchy
    position_of: NDArray[np.int64]  # (leaves)  place in the sequence, ABSENT for leaves that do not occur
    values: tuple[Leaves, ...]  # by place, the leaves that are this value
    whole: bool  # the column is unchanged or hidden: all of its values start intervals, or none does

    @property
    def n_values(self) -> int:
        """The number of values that occur."""
        return len(self.values)

    def leaves(self, first: int, last: int) -> Leaves:
        """Return the leaves that an interval of places stands for.

        If it contains the same occurring values as a label, it is that label (the lowest such one): the piece is then
        named as in the hierarchy, even if the hierarchy lists values that do not occur.
        """
        leaves = np.sort(np.concatenate(self.values[first : last + 1]))
        table = self.hierarchy.table
        for codes in table:
            if (codes[leaves] != codes[leaves[0]]).any():
                continue
            under = np.flatnonzero(codes == codes[leaves[0]]).astype(np.int32)
            places = self.position_of[under]
            if ((places == ABSENT) | ((places >= first) & (places <= last))).all():
                return under
            break  # higher labels stand for still more
        return leaves

    def pieces(self, starts: NDArray[np.bool_]) -> Pieces:
        """Return the piece of each leaf, given the places that start an interval; leaves without one are separate."""
        firsts = np.flatnonzero(starts)
        lasts = np.append(firsts[1:], self.n_values) - 1
        pieces: Pieces = self.hierarchy.table[0] + np.int32(len(firsts))
        for piece, (first, last) in enumerate(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            pieces[self.leaves(first, last)] = piece
        return pieces


def ordered_domain(table: FrequencyTable, j: int) -> OrderedDomain:
    """Return the ordered domain of column ``j``."""
    hierarchy = table.hierarchies[j]
    if hierarchy.leaf_order in ("numeric", "time", "rank"):
        rank = np.arange(len(hierarchy.leaves))
    else:
        rank = np.argsort(np.lexsort(hierarchy.table), kind="stable")  # by the top's code, then the next level's, …
    last = [2 if text is None else int(leaf == hierarchy.uncovered) for leaf, text in enumerate(hierarchy.leaves)]
    occurs = np.unique(hierarchy.table[0][leaf_counts(table, j) > 0])
    groups = [np.flatnonzero(hierarchy.table[0] == code).astype(np.int32) for code in occurs]
    groups.sort(key=lambda leaves: min((last[leaf], int(rank[leaf])) for leaf in leaves))
    position_of = np.full(len(hierarchy.leaves), ABSENT, np.int64)
    for i, leaves in enumerate(groups):
        position_of[leaves] = i
    return OrderedDomain(hierarchy, position_of, tuple(groups), _all_or_nothing(hierarchy))


def _all_or_nothing(hierarchy: Hierarchy) -> bool:
    """Return whether the policy allows only the ground and the top: only = "suppress"."""
    numbers = hierarchy.numbers
    return 0 < len(numbers) <= 2 and numbers[0] == 0 and numbers[-1] == hierarchy.number_of_top


# --- all columns in one list -------------------------------------------------------------------------------------

Chosen = NDArray[np.bool_]  # (values of the list)  those that start an interval
IntervalEnds = tuple[int, int]  # the first and the last place


class Axis:
    """The values of all columns in one list, without the first of each, which always starts an interval."""

    def __init__(self, table: FrequencyTable) -> None:
        self.domains = [ordered_domain(table, j) for j in range(len(table.columns))]
        self.places = np.column_stack([d.position_of[table.codes[:, j]] for j, d in enumerate(self.domains)])
        self.listed: list[NDArray[np.int64]] = []  # by column, per place but the first, its number in the list
        columns: list[int] = []
        for j, domain in enumerate(self.domains):
            numbers = np.arange(domain.n_values - 1)
            self.listed.append(len(columns) + (np.zeros_like(numbers) if domain.whole else numbers))
            columns += [j] * len(np.unique(self.listed[-1]))
        self.column = np.array(columns, np.int64)  # of each value

    @property
    def n_values(self) -> int:
        """The length of the list."""
        return len(self.column)

    def starts(self, chosen: Chosen, j: int) -> NDArray[np.bool_]:
        """Return for each place of column ``j`` whether an interval starts there."""
        return np.concatenate([[True], chosen[self.listed[j]]])

    def intervals(self, chosen: Chosen) -> tuple[list[NDArray[np.int32]], list[list[IntervalEnds]]]:
        """Return, by column, the interval of each place and the ends of each interval."""
        numbers, ends = [], []
        for j, domain in enumerate(self.domains):
            starts = self.starts(chosen, j)
            firsts = np.flatnonzero(starts)
            lasts = np.append(firsts[1:], domain.n_values) - 1
            numbers.append((np.cumsum(starts) - 1).astype(np.int32))
            ends.append(list(zip(firsts.tolist(), lasts.tolist(), strict=True)))
        return numbers, ends

    def of_node(self, node: Node) -> Chosen:
        """Return the values that start a label at the node's levels."""
        chosen = np.zeros(self.n_values, np.bool_)
        for domain, level, listed in zip(self.domains, node, self.listed, strict=True):
            codes = domain.hierarchy.table[level][[leaves[0] for leaves in domain.values]]
            chosen[listed[codes[1:] != codes[:-1]]] = True
        return chosen

    def pieces(self, chosen: Chosen) -> list[Pieces]:
        """Return the intervals as pieces of the leaves."""
        return [domain.pieces(self.starts(chosen, j)) for j, domain in enumerate(self.domains)]
