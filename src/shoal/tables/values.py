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
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.errors import HierarchyError
from shoal.hierarchies.hierarchy import Hierarchy, Label, once_per_hierarchy
from shoal.hierarchies.intervals import leaf_numbers
from shoal.notation.labels import ends_of, half_open_ends_of, set_of_members, written_member, written_range
from shoal.notation.numbers import EXACT
from shoal.tables.frequency import packed

Leaves = NDArray[np.int32]  # ascending
Ids = NDArray[np.int32]  # numbers of values
Integer = TypeVar("Integer", bound=np.integer[Any])
MAX_SPAN = 2**36
TIGHT = ("tight-range", "tight-set")  # cells that end at values of the class, or name its values


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
        first, last, n = _ends_and_sizes(self.covers)
        before = np.concatenate([[0], np.cumsum(counts)])
        records = before[last + 1] - before[first]  # of consecutive leaves, however many they are
        for i in np.flatnonzero(last - first + 1 != n).tolist():
            records[i] = counts[self.covers[i]].sum()
        return np.asarray(records, np.int64)


def _ends_and_sizes(covers: Sequence[Leaves]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the first leaf, the last leaf and the number of leaves of each set; of an empty one 0, -1 and 0."""
    n = np.array([len(leaves) for leaves in covers], np.int64)
    first = np.array([leaves[0] if len(leaves) else 0 for leaves in covers], np.int64)
    return first, np.array([leaves[-1] if len(leaves) else -1 for leaves in covers], np.int64), n


def _under(hierarchy: Hierarchy, level: int) -> list[Leaves]:
    """Return the leaves under each label of a level."""
    codes = hierarchy.table[level]
    order = np.argsort(codes, kind="stable").astype(np.int32)
    return cut_at(order, np.cumsum(np.bincount(codes, minlength=hierarchy.cardinality(level)))[:-1])


def cut_at(array: NDArray[Integer], places: NDArray[np.int64]) -> list[NDArray[Integer]]:
    """Return the parts of an array between some places, as views; ``np.split`` takes ten times as long."""
    return [array[begin:end] for begin, end in pairwise([0, *places.tolist(), len(array)])]


class _LabelValues:
    """The labels of a hierarchy as values: the part of a vocabulary that is the same in all of them."""

    def __init__(self, hierarchy: Hierarchy) -> None:
        self.labels: list[Label] = []
        self.covers: list[Leaves] = []
        self.at: list[tuple[int, int]] = []  # level and code
        self.by_label: dict[Label, int] = {}
        self.by_leaves: dict[bytes | tuple[int, int], int] = {}
        self.nodes = np.empty((hierarchy.n_levels, len(hierarchy.leaves)), np.int32)
        for level in range(hierarchy.height, -1, -1):
            for code, leaves in enumerate(_under(hierarchy, level)):
                self.nodes[level, leaves] = self._numbered(hierarchy, level, code, leaves)
        self.nodes.setflags(write=False)
        self.shares = np.array([hierarchy.shares[level][code] for level, code in self.at], np.float64)
        self.sizes = np.array([hierarchy.sizes[level][code] for level, code in self.at], np.int64)
        self.levels = np.array([hierarchy.number(level) for level, _ in self.at], np.int64)

    def _numbered(self, hierarchy: Hierarchy, level: int, code: int, leaves: Leaves) -> int:
        """Number a label of the hierarchy; levels are processed from the top down.

        A label that also occurs at a higher level is the same text, so it must mean the same: the higher one, which
        covers more. Labels that cover the same leaves are one value, shown as the lowest of them.
        """
        label = hierarchy.labels[level][code]
        number = self.by_label.get(label)
        if number is not None:
            if not np.isin(leaves, self.covers[number]).all():
                raise HierarchyError(
                    f"column {hierarchy.column!r}: a label at level {hierarchy.number(level)} occurs on a "
                    "higher level for other values, and cells of different levels would look alike",
                    "give labels with different meanings different names, or use a full-domain algorithm",
                )
            if len(leaves) == len(self.covers[number]):
                self.at[number] = (level, code)
            return number
        key = _key(leaves)
        number = self.by_leaves.get(key)
        if number is None:
            number = self.by_label[label] = self.by_leaves[key] = len(self.labels)
            self.labels.append(label)
            self.covers.append(leaves)
            self.at.append((level, code))
            return number
        del self.by_label[self.labels[number]]
        self.labels[number], self.at[number] = label, (level, code)
        self.by_label[label] = number
        return number


_label_values_of = once_per_hierarchy(_LabelValues)


class Vocabulary:
    """The values of a column, numbered on demand: every label of the hierarchy, and any other set of leaves.

    ``nodes[level, leaf]`` is the value that covers a leaf at a level; ``TOP_ID`` is that of the top.
    """

    TOP_ID = 0

    def __init__(self, hierarchy: Hierarchy, cells: str = "hierarchy", *, written: bool = True) -> None:
        self.hierarchy = hierarchy
        self.cells = cells  # whether labels of several numbers or dates may be used, and which
        self._written = written  # if not, ranges and sets are only priced: their labels are numbers, not texts
        self._of_hierarchy = _label_values_of(hierarchy)  # the first values; those after them are ranges and sets
        self.nodes = self._of_hierarchy.nodes
        self._labels = self._of_hierarchy.labels.copy()
        self._covers = self._of_hierarchy.covers.copy()
        self._by_label = self._of_hierarchy.by_label.copy()
        self._by_leaves = self._of_hierarchy.by_leaves.copy()

    def _added(self, label: Label, leaves: Leaves) -> int:
        self._by_label[label] = self._by_leaves[_key(leaves)] = len(self._labels)
        self._labels.append(label)
        self._covers.append(leaves)
        return len(self._labels) - 1

    def number_of(self, leaves: Leaves) -> int:
        """Return the value that covers exactly these leaves (ascending, including all that level 0 joins with them).

        Nulls and values without an entry are in no range and in no set but the whole: together with them it is the top.
        """
        number = self._by_leaves.get(_key(leaves))
        if self._hides(leaves):
            return self.TOP_ID if number is None else number
        if number is not None and not self._tells_more(number, leaves):
            return number
        if not self._written:
            return self._added(f"value {len(self._labels)}", leaves)
        for write in (self._range, self._set):  # one by one: the text of a set contains every member
            label = write(leaves)
            if label is not None and label not in self._by_label:
                return self._added(label, leaves)
        raise HierarchyError(
            f"column {self.hierarchy.column!r}: a range or set would look like a label of its hierarchy",
            'rename the label, or leave out cells = "range" or "set"',
        )

    def _tells_more(self, number: int, leaves: Leaves) -> bool:
        """Return whether a range is preferred to a label: 30-39 may cover two values that lie at 34 and 35."""
        at = self._of_hierarchy.at
        if self.cells == "hierarchy" or number >= len(at) or at[number][0] == 0:
            return False
        return self._range(leaves) not in (None, self._labels[number])

    def _range(self, leaves: Leaves) -> str | None:
        """Return the text of a range if the leaves are consecutive numbers or dates."""
        order = self.hierarchy.leaf_order
        if order not in ("numeric", "time") or leaves[-1] - leaves[0] + 1 != len(leaves):
            return None
        first, last = (self._ground[leaf] for leaf in (leaves[0], leaves[-1]))
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

    @cached_property
    def _ground(self) -> list[Label]:
        """Return the label of level 0 of each leaf."""
        return [self.hierarchy.labels[0][code] for code in self.hierarchy.table[0].tolist()]

    def _set(self, leaves: Leaves) -> str:
        return set_of_members(map(self._members.__getitem__, dict.fromkeys(self.hierarchy.table[0][leaves].tolist())))

    @cached_property
    def _members(self) -> list[str]:
        """Return the labels of level 0 as members of sets, formatted once: sets of thousands of values are common."""
        return [written_member(str(label)) for label in self.hierarchy.labels[0]]

    @property
    def values(self) -> Values:
        """Return all values so far."""
        return self.selected(range(len(self._labels)))

    def selected(self, ids: Sequence[int]) -> Values:
        """Return some of the values so far, in that order."""
        hierarchy, listed_values = self.hierarchy, self._of_hierarchy
        numbers = np.asarray(ids, np.int64)
        listed = numbers < len(listed_values.labels)
        shares, sizes = np.empty(len(numbers)), np.empty(len(numbers), np.int64)
        levels = np.empty(len(numbers), np.int64)
        for out, of_label in (
            (shares, listed_values.shares),
            (sizes, listed_values.sizes),
            (levels, listed_values.levels),
        ):
            out[listed] = of_label[numbers[listed]]
        other_sets = [self._covers[i] for i in numbers[~listed].tolist()]
        sizes[~listed] = [len(leaves) for leaves in other_sets]
        level_of, code_of = self._lowest_of_all(other_sets)
        levels[~listed] = [hierarchy.number(level) for level in level_of]
        of_labels = [float(hierarchy.shares[level][code]) for level, code in zip(level_of, code_of, strict=True)]
        shares[~listed] = np.minimum(self._shares(other_sets), of_labels)
        return Values(
            hierarchy,
            tuple(self._labels[i] for i in ids),
            tuple(self._covers[i] for i in ids),
            shares,
            sizes,
            levels,
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

    def _lowest_of_all(self, covers: Sequence[Leaves]) -> tuple[list[int], list[int]]:
        """Return the level and the code of ``lowest`` for each of many sets of leaves."""
        first, last, n = _ends_and_sizes(covers)
        levels = np.full(len(covers), self.hierarchy.height)
        for level in range(self.hierarchy.height - 1, -1, -1):
            levels[self._changes[level, first] == self._changes[level, last]] = level
        codes = self.hierarchy.table[levels, first]
        for i in np.flatnonzero(last - first + 1 != n).tolist():
            levels[i], codes[i] = self.lowest(covers[i])
        return levels.tolist(), codes.tolist()

    def _share(self, leaves: Leaves) -> float:
        """Return (M−1)/(D−1); for numbers, the part of the data's range."""
        hierarchy = self.hierarchy
        if hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric":
            # Leaves are in numeric order, so the ends are enough; some, such as a null, have none.
            numbers, span = leaf_numbers(hierarchy), _span(hierarchy)
            smallest = next((n for leaf in leaves if (n := numbers[leaf]) is not None), None)
            largest = next((n for leaf in leaves[::-1] if (n := numbers[leaf]) is not None), None)
            if smallest is not None and largest is not None and span:
                return float((largest - smallest) / span)
        return (len(leaves) - 1) / max(1, hierarchy.domain - 1)

    def _shares(self, covers: Sequence[Leaves]) -> NDArray[np.float64]:
        """Return ``_share`` of many sets of leaves, at once if they are numbers of few digits."""
        hierarchy = self.hierarchy
        if hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric":
            if (points := _points(hierarchy)) is None:
                return np.array([self._share(leaves) for leaves in covers])
            first, last, n = _ends_and_sizes(covers)
            low, high = points.following[first], points.preceding[last]
            sure = (last - first + 1 == n) & (low <= high)  # consecutive, and some are numbers
            spans = points.scaled[np.where(sure, high, 0)] - points.scaled[np.where(sure, low, 0)]
            shares = spans / points.span
            for i in np.flatnonzero(~sure).tolist():
                shares[i] = self._share(covers[i])
            return np.asarray(shares)
        return np.array([len(leaves) - 1 for leaves in covers], np.int64) / max(1, hierarchy.domain - 1)

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
    def _hidden(self) -> NDArray[np.bool_]:
        """Return the leaves that are in no range and in no set: nulls, and values without an entry."""
        leaves = self.hierarchy.leaves
        return np.array(
            [text is None or leaf == self.hierarchy.uncovered for leaf, text in enumerate(leaves)], np.bool_
        )


@once_per_hierarchy
def _span(hierarchy: Hierarchy) -> Decimal:
    """Return the range of all numbers."""
    numbers = [n for n in leaf_numbers(hierarchy) if n is not None]
    return max(numbers, default=Decimal(0)) - min(numbers, default=Decimal(0))


class _LeafPoints(NamedTuple):
    """The numbers of the leaves as whole multiples of a power of ten."""

    scaled: NDArray[np.int64]  # 0 for leaves that are not numbers
    following: NDArray[np.int64]  # the nearest leaf from this one on that is a number; len(leaves) if none is
    preceding: NDArray[np.int64]  # the nearest leaf up to this one that is a number; -1 if none is
    span: int


@once_per_hierarchy
def _points(hierarchy: Hierarchy) -> _LeafPoints | None:
    """Return the numbers if quotients of them are the same in binary as in decimals; None if they are not.

    A quotient of whole numbers below 2^36 that is not itself a double is farther than 10^-27 from the midpoint of two,
    so that rounding it to 28 digits first, as decimals do, changes nothing.
    """
    numbers = leaf_numbers(hierarchy)
    present = [n for n in numbers if n is not None]
    if not (span := _span(hierarchy)):
        return None
    # Numbers of reasonable size have exponents (``parse_number``).
    places = max(0, *(-int(n.as_tuple().exponent) for n in present))
    smallest = min(present)
    if EXACT.scaleb(span, places) >= MAX_SPAN:
        return None
    scaled = np.array([0 if n is None else int(EXACT.scaleb(EXACT.subtract(n, smallest), places)) for n in numbers])
    at = np.arange(len(numbers))
    missing = np.array([n is None for n in numbers])
    following = np.minimum.accumulate(np.where(missing, len(numbers), at)[::-1])[::-1]
    preceding = np.maximum.accumulate(np.where(missing, -1, at))
    return _LeafPoints(scaled, following, preceding, int(EXACT.scaleb(span, places)))


def _key(leaves: Leaves) -> bytes | tuple[int, int]:
    """Return a key that identifies a set of leaves (ascending): the ends if they are consecutive, to save memory."""
    first, last = int(leaves[0]), int(leaves[-1])
    return (first, last) if last - first + 1 == len(leaves) else leaves.tobytes()


# --- the least value that stands for all of a class ------------------------------------------------------------


def covering(vocabulary: Vocabulary, leaves: Leaves, starts: NDArray[np.int64]) -> Ids:
    """Return, per class, the smallest value that covers all its leaves; class i owns ``leaves[starts[i]:starts[i+1]]``.

    The vocabulary's ``cells`` gives the kind: a label of the hierarchy, the tightest range, or the tightest set.
    Labels that are fixed before classes are formed have rules of their own (``windows``).
    """
    if vocabulary.cells == "hierarchy":
        return _nearest_common(vocabulary.nodes, leaves, starts)
    # Leaves that level 0 joins (top-coding) are indistinguishable, so they are added and removed together.
    rank, groups = leaf_groups(vocabulary.hierarchy)
    places = rank[leaves]
    ids = np.empty(len(starts), np.int32)
    if vocabulary.cells != "tight-set":
        bounds = np.column_stack([np.minimum.reduceat(places, starts), np.maximum.reduceat(places, starts)])
        class_of, firsts = group(packed(bounds))
        ends = np.cumsum([0, *map(len, groups)])
        in_order = np.concatenate([*groups, np.empty(0, np.int32)])
        falls = np.cumsum(np.diff(in_order, prepend=-1) < 0)
        ids_of = []
        for low, high in bounds[firsts].tolist():
            first, last = ends[low], ends[high + 1] - 1
            wanted = in_order[first : last + 1]  # a view: thousands of ranges of thousands of leaves need no memory
            ids_of.append(vocabulary.number_of(wanted if falls[first] == falls[last] else np.sort(wanted)))
        return np.array(ids_of, np.int32)[class_of]
    owner = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(leaves)))
    owner, places = np.divmod(np.unique(owner * len(groups) + places), len(groups))
    lengths = np.bincount(owner, minlength=len(starts))
    begins = np.cumsum(lengths) - lengths
    for length in np.unique(lengths):  # classes of equal length are compared at once
        mine = np.flatnonzero(lengths == length)
        members = places[begins[mine, None] + np.arange(length)]
        class_of, firsts = group(packed(members))
        values_of_length = [
            vocabulary.number_of(np.sort(np.concatenate([groups[g] for g in key]))) for key in members[firsts].tolist()
        ]
        ids[mine] = np.array(values_of_length, np.int32)[class_of]
    return ids


def _nearest_common(nodes: Ids, leaves: Leaves, starts: NDArray[np.int64]) -> Ids:
    """Return the label of the lowest level at which all leaves of a class have the same label."""
    ids = np.full(len(starts), Vocabulary.TOP_ID, np.int32)
    for level in range(len(nodes) - 1, -1, -1):
        of_level = nodes[level][leaves]
        lowest, highest = np.minimum.reduceat(of_level, starts), np.maximum.reduceat(of_level, starts)
        ids = np.where(lowest == highest, lowest, ids)
    return ids.astype(np.int32)


@once_per_hierarchy
def leaf_groups(hierarchy: Hierarchy) -> tuple[NDArray[np.int32], Sequence[Leaves]]:
    """Return the groups of leaves that level 0 distinguishes, in the order of their first leaf; nulls come last."""
    groups = sorted(
        _under(hierarchy, 0),
        key=lambda group: (hierarchy.leaves[group[0]] is None or group[0] == hierarchy.uncovered, int(group[0])),
    )
    rank = np.empty(len(hierarchy.leaves), np.int32)
    if groups:
        rank[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    rank.setflags(write=False)
    return rank, tuple(groups)
