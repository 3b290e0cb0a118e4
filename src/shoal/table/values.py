"""Values: what the cells of one column may be released as, and the leaves that each value covers.

A full-domain release shows the labels of one level. Other recodings mix levels, or show ranges and sets of leaves. In
each case a released value covers a set of leaves, and equal texts must cover equal sets, because equal texts form a
class. So a set that a label of the hierarchy covers is always released as that label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.errors import HierarchyError
from shoal.table.frequency import packed
from shoal.table.hierarchy import Hierarchy, Label
from shoal.table.intervals import parse_number
from shoal.table.kernels import group
from shoal.table.labels import ends_of, half_open_ends_of, set_of_members, written_member, written_range

Leaves = NDArray[np.int32]  # ascending
Ids = NDArray[np.int32]  # numbers of values


@dataclass(frozen=True, eq=False)
class Values:
    """The released values of a column, by number."""

    hierarchy: Hierarchy
    labels: tuple[Label, ...]
    covers: tuple[Leaves, ...]  # the leaves that a value covers
    shares: NDArray[np.float64]  # the loss of a cell, 0 to 1
    sizes: NDArray[np.int64]  # leaves that it could be (M); any for an uncovered one
    levels: NDArray[np.int64]  # of the lowest label that covers as much, by its number in the whole hierarchy

    def __repr__(self) -> str:
        # Labels may be values from the data, and printed objects are logged.
        return f"<Values of {self.hierarchy.column!r}: {len(self.labels)}>"

    @classmethod
    def of_level(cls, hierarchy: Hierarchy, level: int, *, and_top: bool = False) -> Values:
        """Return the labels of a level by code, followed by the top if cells may be suppressed individually."""
        levels = [level, hierarchy.height] if and_top and level < hierarchy.height else [level]
        return cls(
            hierarchy,
            tuple(label for at in levels for label in hierarchy.labels[at]),
            tuple(leaves for at in levels for leaves in _under(hierarchy, at)),
            np.concatenate([hierarchy.shares[at] for at in levels]),
            np.concatenate([hierarchy.sizes[at] for at in levels]),
            np.repeat([hierarchy.number(at) for at in levels], [hierarchy.cardinality(at) for at in levels]),
        )

    def under(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return, per value, the number of records whose leaf it covers, given the records of each leaf."""
        return np.array([counts[leaves].sum() for leaves in self.covers], np.int64)


def _under(hierarchy: Hierarchy, level: int) -> list[Leaves]:
    """Return the leaves under each label of a level."""
    codes = hierarchy.table[level]
    order = np.argsort(codes, kind="stable").astype(np.int32)
    return np.split(order, np.cumsum(np.bincount(codes, minlength=hierarchy.cardinality(level)))[:-1])


class Vocabulary:
    """The values of a column, numbered on demand: every label of the hierarchy, and any other set of leaves.

    ``nodes[level, leaf]`` is the value that covers a leaf at a level; ``TOP_ID`` is that of the top.
    """

    TOP_ID = 0

    def __init__(self, hierarchy: Hierarchy, cells: str = "hierarchy") -> None:
        self.hierarchy = hierarchy
        self.cells = cells  # hierarchy, range or set: whether labels of several numbers or dates may be used
        self._labels: list[Label] = []
        self._covers: list[Leaves] = []
        self._at: list[tuple[int, int] | None] = []  # level and code, if it is a label of the hierarchy
        self._by_label: dict[Label, int] = {}
        self._by_leaves: dict[bytes | tuple[int, int], int] = {}
        self.nodes = np.empty((hierarchy.n_levels, len(hierarchy.leaves)), np.int32)
        for level in range(hierarchy.height, -1, -1):
            for code, leaves in enumerate(_under(hierarchy, level)):
                self.nodes[level, leaves] = self._node(level, code, leaves)

    def _node(self, level: int, code: int, leaves: Leaves) -> int:
        """Number a label of the hierarchy; levels are processed from the top down.

        A label that also occurs at a higher level is the same text, so it must mean the same: the higher one, which
        covers more. Labels that cover the same leaves are one value, shown as the lowest of them.
        """
        label = self.hierarchy.labels[level][code]
        found = self._by_label.get(label)
        if found is not None:
            if not np.isin(leaves, self._covers[found]).all():
                raise HierarchyError(
                    f"column {self.hierarchy.column!r}: a label at level {self.hierarchy.number(level)} occurs on a "
                    "higher level for other values, and cells of different levels would look alike",
                    "give labels with different meanings different names, or use a full-domain algorithm",
                )
            if len(leaves) == len(self._covers[found]):
                self._at[found] = (level, code)
            return found
        found = self._by_leaves.get(_key(leaves))
        if found is None:
            return self._added(label, leaves, (level, code))
        del self._by_label[self._labels[found]]
        self._labels[found], self._at[found] = label, (level, code)
        self._by_label[label] = found
        return found

    def _added(self, label: Label, leaves: Leaves, at: tuple[int, int] | None) -> int:
        self._by_label[label] = self._by_leaves[_key(leaves)] = len(self._labels)
        self._labels.append(label)
        self._covers.append(leaves)
        self._at.append(at)
        return len(self._labels) - 1

    def of(self, leaves: Leaves) -> int:
        """Return the value that covers exactly these leaves (ascending, including all that level 0 joins with them).

        Nulls and values without an entry are in no range and in no set but the whole: together with them it is the top.
        """
        found = self._by_leaves.get(_key(leaves))
        if self._hides(leaves):
            return self.TOP_ID if found is None else found
        if found is not None and not self._tells_more(found, leaves):
            return found
        for write in (self._range, self._set):  # one by one: the text of a set contains every member
            label = write(leaves)
            if label is not None and label not in self._by_label:
                return self._added(label, leaves, None)
        raise HierarchyError(
            f"column {self.hierarchy.column!r}: a range or set would look like a label of its hierarchy",
            'rename the label, or leave out cells = "range" or "set"',
        )

    def _tells_more(self, found: int, leaves: Leaves) -> bool:
        """Return whether a range is preferred to a label: 30-39 may cover two values that lie at 34 and 35."""
        at = self._at[found]
        if self.cells == "hierarchy" or at is None or at[0] == 0:
            return False
        return self._range(leaves) not in (None, self._labels[found])

    def _range(self, leaves: Leaves) -> str | None:
        """Return the text of a range if the leaves are consecutive numbers or dates."""
        order = self.hierarchy.leaf_order
        if order not in ("numeric", "time") or leaves[-1] - leaves[0] + 1 != len(leaves):
            return None
        first, last = (self.hierarchy.labels[0][self.hierarchy.table[0][leaf]] for leaf in (leaves[0], leaves[-1]))
        if first is None or last is None:
            return None
        if order == "time":
            return written_range(first, last, dates=True)
        if whole := half_open_ends_of(last):  # bins with decimals: from the first lower end to the last upper end
            begin = half_open_ends_of(first)
            return None if begin is None else f"[{begin[0]}, {whole[1]})"
        # Below 18 together with 19 is <=19: if the first one is bottom-coded, the range has no lower end.
        lower, upper = (None, None) if first.startswith("<") else ends_of(first), ends_of(last)
        if lower is None or upper is None or lower[0] is upper[1] is None:  # open at both ends, it is not a range
            return None
        return written_range(lower[0], upper[1])

    def _set(self, leaves: Leaves) -> str:
        return set_of_members(map(self._members.__getitem__, dict.fromkeys(self.hierarchy.table[0][leaves].tolist())))

    @cached_property
    def _members(self) -> list[str]:
        """Return the labels of level 0 as members of sets, formatted once: sets of thousands of values are common."""
        return [written_member(str(label)) for label in self.hierarchy.labels[0]]

    @property
    def values(self) -> Values:
        """Return all values so far."""
        return self.taken(range(len(self._labels)))

    def taken(self, ids: Sequence[int]) -> Values:
        """Return some of the values so far, in that order."""
        hierarchy = self.hierarchy
        shares, sizes, levels = [], [], []
        for i in ids:
            leaves, at = self._covers[i], self._at[i]
            level, code = self.lowest(leaves) if at is None else at
            levels.append(hierarchy.number(level))
            if at is None:
                sizes.append(len(leaves))
                shares.append(min(self._share(leaves), float(hierarchy.shares[level][code])))
            else:
                sizes.append(int(hierarchy.sizes[level][code]))
                shares.append(float(hierarchy.shares[level][code]))
        return Values(
            hierarchy,
            tuple(self._labels[i] for i in ids),
            tuple(self._covers[i] for i in ids),
            np.array(shares),
            np.array(sizes, np.int64),
            np.array(levels, np.int64),
        )

    def least_share(self, leaves: Leaves) -> float:
        """Return a lower bound on the share of any value that covers these leaves."""
        codes = self.hierarchy.table[:, leaves]
        common = np.flatnonzero((codes == codes[:, :1]).all(axis=1))
        return min(self._share(leaves), *(float(self.hierarchy.shares[level][codes[level, 0]]) for level in common))

    def lowest(self, leaves: Leaves) -> tuple[int, int]:
        """Return the lowest label that covers all of some leaves (ascending)."""
        table, first, last = self.hierarchy.table, int(leaves[0]), int(leaves[-1])
        in_a_row = last - first + 1 == len(leaves)
        for level in np.flatnonzero(table[:, first] == table[:, last]).tolist():
            changes, code = self._changes[level], int(table[level, first])
            if changes[first] == changes[last] or not (in_a_row or (table[level, leaves] != code).any()):
                return level, code
        return self.hierarchy.height, int(table[-1, first])

    def _share(self, leaves: Leaves) -> float:
        """Return (M−1)/(D−1); for numbers, the part of the data's range."""
        hierarchy = self.hierarchy
        if hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric":
            # Leaves are in numeric order, so the ends are enough; some, such as a null, have none.
            least, most = self._first_number(leaves), self._first_number(leaves[::-1])
            if least is not None and most is not None and self._span:
                return float((most - least) / self._span)
        return (len(leaves) - 1) / max(1, hierarchy.domain - 1)

    def _first_number(self, leaves: Leaves) -> Decimal | None:
        return next((n for leaf in leaves if (n := self._numbers[leaf]) is not None), None)

    @cached_property
    def _changes(self) -> NDArray[np.int64]:
        """Count, per level and leaf, the label changes up to it: without a change, consecutive leaves share a label."""
        return np.cumsum(np.diff(self.hierarchy.table, axis=1, prepend=self.hierarchy.table[:, :1]) != 0, axis=1)

    def _hides(self, leaves: Leaves) -> bool:
        """Return whether a leaf is in no range and in no set; for consecutive leaves, only the ends are checked."""
        first, last = int(leaves[0]), int(leaves[-1])
        if last - first + 1 == len(leaves):
            return bool(self._n_hidden[last + 1] > self._n_hidden[first])
        return bool(self._hidden[leaves].any())

    @cached_property
    def _n_hidden(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self._hidden)])

    @cached_property
    def _numbers(self) -> list[Decimal | None]:
        return [None if text is None else parse_number(text) for text in self.hierarchy.leaves]

    @cached_property
    def _span(self) -> Decimal:
        """Return the range of all numbers."""
        known = [n for n in self._numbers if n is not None]
        return max(known, default=Decimal(0)) - min(known, default=Decimal(0))

    @cached_property
    def _hidden(self) -> NDArray[np.bool_]:
        """Return the leaves that are in no range and in no set: nulls, and values without an entry."""
        leaves = self.hierarchy.leaves
        return np.array(
            [text is None or leaf == self.hierarchy.uncovered for leaf, text in enumerate(leaves)], np.bool_
        )


def _key(leaves: Leaves) -> bytes | tuple[int, int]:
    """Return a key that identifies a set of leaves (ascending): the ends if they are consecutive, to save memory."""
    first, last = int(leaves[0]), int(leaves[-1])
    return (first, last) if last - first + 1 == len(leaves) else leaves.tobytes()


# --- the least value that stands for all of a class ------------------------------------------------------------


def covering(vocabulary: Vocabulary, leaves: Leaves, starts: NDArray[np.int64]) -> Ids:
    """Return, per class, the smallest value that covers all its leaves; class i owns ``leaves[starts[i]:starts[i+1]]``.

    The vocabulary's ``cells`` gives the kind: a label of the hierarchy, a range of its leaves, or any set.
    """
    if vocabulary.cells == "hierarchy":
        return _nearest_common(vocabulary.nodes, leaves, starts)
    # Leaves that level 0 joins (top-coding) are indistinguishable, so they are added and removed together.
    rank, groups = told_apart(vocabulary.hierarchy)
    places = rank[leaves]
    ids = np.empty(len(starts), np.int32)
    if vocabulary.cells != "set":
        bounds = np.column_stack([np.minimum.reduceat(places, starts), np.maximum.reduceat(places, starts)])
        class_of, firsts = group(packed(bounds))
        ends = np.cumsum([0, *map(len, groups)])
        in_order = np.concatenate([*groups, np.empty(0, np.int32)])
        falls = np.cumsum(np.diff(in_order, prepend=-1) < 0)
        ids_of = []
        for low, high in bounds[firsts].tolist():
            first, last = ends[low], ends[high + 1] - 1
            wanted = in_order[first : last + 1]  # a view: thousands of ranges of thousands of leaves need no memory
            ids_of.append(vocabulary.of(wanted if falls[first] == falls[last] else np.sort(wanted)))
        return np.array(ids_of, np.int32)[class_of]
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(leaves)))
    owner, places = np.divmod(np.unique(owner * len(groups) + places), len(groups))
    lengths = np.bincount(owner, minlength=len(starts))
    begins = np.cumsum(lengths) - lengths
    for length in np.unique(lengths):  # classes of equal length are compared at once
        mine = np.flatnonzero(lengths == length)
        members = places[begins[mine, None] + np.arange(length)]
        class_of, firsts = group(packed(members))
        of = [vocabulary.of(np.sort(np.concatenate([groups[g] for g in key]))) for key in members[firsts].tolist()]
        ids[mine] = np.array(of, np.int32)[class_of]
    return ids


def _nearest_common(nodes: Ids, leaves: Leaves, starts: NDArray[np.int64]) -> Ids:
    """Return the label of the lowest level at which all leaves of a class have the same label."""
    ids = np.full(len(starts), Vocabulary.TOP_ID, np.int32)
    for level in range(len(nodes) - 1, -1, -1):
        of_level = nodes[level][leaves]
        least, most = np.minimum.reduceat(of_level, starts), np.maximum.reduceat(of_level, starts)
        ids = np.where(least == most, least, ids)
    return ids.astype(np.int32)


def told_apart(hierarchy: Hierarchy) -> tuple[NDArray[np.int32], Sequence[Leaves]]:
    """Return the groups of leaves that level 0 distinguishes, in the order of their first leaf; nulls come last."""
    groups = sorted(
        _under(hierarchy, 0),
        key=lambda of: (hierarchy.leaves[of[0]] is None or of[0] == hierarchy.uncovered, int(of[0])),
    )
    rank = np.empty(len(hierarchy.leaves), np.int32)
    for place, of in enumerate(groups):
        rank[of] = place
    return rank, groups
