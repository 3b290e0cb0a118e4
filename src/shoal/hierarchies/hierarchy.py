"""Generalization hierarchies as lookup tables from leaf and level to code.

Two laws are checked whenever a hierarchy is made: C1, a label has exactly one parent at the next level; C2, the top
level has one label. Messages count labels and never quote them, because a leaf is a value from the data.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from itertools import pairwise
from typing import Literal, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shoal.errors import HierarchyError, UncoveredValueError
from shoal.hierarchies.pieces import first_seen, looked_up, pieces_of

Label = str | None
Scalar = TypeVar("Scalar", bound=np.generic)
Result = TypeVar("Result")
LeafOrder = Literal["given", "numeric", "time", "rank", "text"]

# Searches prepare every pair of levels before they check the time.
MAX_LEVELS = 256

TOP = "*"
"""The top of every hierarchy that is built from the data."""


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A lookup table: ``table[level, leaf]`` is the code, within its level, of the label for the leaf."""

    column: str
    leaves: tuple[Label, ...]  # text of every ground value; None is the null
    table: NDArray[np.int32]  # (levels, leaves); top- and bottom-coding merge leaves at level 0 already
    labels: tuple[tuple[Label, ...], ...]  # labels[level][code] is what is released; unique within a level
    shares: tuple[NDArray[np.float64], ...]  # shares[level][code] is the loss of a released cell, 0 to 1
    leaf_order: LeafOrder  # as the file or tree lists them, by number, date, place on a scale, or text
    uncovered: int | None = None  # the leaf that represents every value without an entry of its own
    share_of: Literal["leaves", "range"] = "leaves"  # what a share measures: (M-1)/(D-1), or a range
    numbers: tuple[int, ...] = ()  # of the levels, if some were left out
    top_number: int | None = None  # of the highest level, which may have been left out

    def __repr__(self) -> str:
        # Leaves are values from the data, and printed objects are logged.
        return f"<Hierarchy of {self.column!r}: {len(self.leaves)} values, {self.n_levels} levels>"

    @classmethod
    def from_paths(
        cls,
        column: str,
        paths: Sequence[Sequence[Label]],
        *,
        shares: Sequence[Sequence[float]] | None = None,
        leaf_order: LeafOrder = "given",
    ) -> Hierarchy:
        """Build from one path (leaf, level 1, …, top) per leaf."""
        if not paths:
            raise HierarchyError(f"column {column!r}: its hierarchy has no values")
        lengths = Counter(map(len, paths))
        if len(lengths) > 1:
            odd = len(paths) - max(lengths.values())
            raise HierarchyError(
                f"column {column!r}: {odd} of {len(paths)} paths are longer or shorter than the others",
                "give every value a label on every level; an unchanged value is repeated",
            )
        levels = [[path[level] for path in paths] for level in range(len(paths[0]))]
        if not levels:
            raise HierarchyError(f"column {column!r}: its hierarchy has no levels")
        return cls.from_levels(column, levels[0], levels, shares=shares, leaf_order=leaf_order)

    @classmethod
    def from_levels(
        cls,
        column: str,
        leaves: Sequence[Label],
        levels: Sequence[Sequence[Label]],
        *,
        shares: Sequence[Sequence[float]] | None = None,
        leaf_order: LeafOrder = "given",
    ) -> Hierarchy:
        """Build from labels ``levels[level][leaf]``; level 0 differs from ``leaves`` if it is already coarser.

        ``shares[level][code]`` replaces the shares by leaves; codes number labels by first appearance.
        """
        if len(levels) > MAX_LEVELS:
            raise HierarchyError(
                f"column {column!r}: its hierarchy has {len(levels)} levels; at most {MAX_LEVELS} are allowed",
                "remove levels that differ little from their neighbours",
            )
        if repeated := len(leaves) - len(first_seen(leaves)):
            raise HierarchyError(f"column {column!r}: {repeated} values have more than one entry at level 0 (C1)")
        table = np.empty((len(levels), len(leaves)), np.int32)
        labels = []
        for level, of_leaf in enumerate(levels):
            labels.append(tuple(first_seen(of_leaf)))
            code_of = {label: code for code, label in enumerate(labels[-1])}
            table[level] = looked_up(of_leaf, code_of)
        _require_single_parents(column, table)
        _require_one_top(column, labels[-1])
        by_leaves = cls(column, tuple(leaves), _frozen(table), tuple(labels), _by_leaves(table, labels), leaf_order)
        if shares is None:
            return by_leaves
        range_shares = tuple(_frozen(np.array(of_level, np.float64)) for of_level in shares)
        return replace(by_leaves, shares=range_shares, share_of="range")

    @classmethod
    def empty(cls, column: str, n_levels: int, leaf_order: LeafOrder) -> Hierarchy:
        """Build without leaves, as for a column of nulls; the top has its label, so leaves can be added."""
        labels: list[tuple[Label, ...]] = [()] * (n_levels - 1) + [(TOP,)]
        table = np.empty((n_levels, 0), np.int32)
        return cls(column, (), _frozen(table), tuple(labels), _by_leaves(table, labels), leaf_order)

    @property
    def n_levels(self) -> int:
        """The number of levels, including the ground and the top."""
        return len(self.labels)

    @property
    def height(self) -> int:
        """The number of steps from the ground to the top."""
        return self.n_levels - 1

    @property
    def domain(self) -> int:
        """The D of the loss: all leaves, including the null, without the one for uncovered values."""
        return max(1, len(self.leaves) - (self.uncovered is not None))

    @property
    def top(self) -> Label:
        """The single label of the top level."""
        return self.labels[-1][0]

    def selected(self, levels: Sequence[int]) -> Hierarchy:
        """Return only these levels, in ascending order; each keeps its number."""
        return replace(
            self,
            table=_frozen(self.table[list(levels)]),
            labels=tuple(self.labels[level] for level in levels),
            shares=tuple(self.shares[level] for level in levels),
            numbers=tuple(self.number(level) for level in levels),
            top_number=self.number_of_top,
        )

    @property
    def number_of_top(self) -> int:
        """The height of the whole hierarchy."""
        return self.height if self.top_number is None else self.top_number

    def number(self, level: int) -> int:
        """Return the number of a level in the whole hierarchy."""
        return self.numbers[level] if self.numbers else level

    @property
    def fingerprint(self) -> str:
        """A hash of the labels of every listed leaf at every level; nulls and uncovered values belong to the data."""
        listed = [i for i, text in enumerate(self.leaves) if text is not None and i != self.uncovered]
        paths = [
            [self.leaves[i], *(labels[row[i]] for labels, row in zip(self.labels, self.table, strict=True))]
            for i in listed
        ]
        return hashlib.sha256(json.dumps(paths).encode()).hexdigest()

    def cardinality(self, level: int) -> int:
        """Return the number of labels of a level."""
        return len(self.labels[level])

    def label(self, level: int, code: int) -> Label:
        """Return the released label for a code of a level."""
        return self.labels[level][code]

    @cached_property
    def sizes(self) -> tuple[NDArray[np.int64], ...]:
        """``sizes[level][code]``: the number of leaves under a label (M); an uncovered value may be any, hence D."""
        sizes = _sizes(self.table, self.labels, self.uncovered)
        if self.uncovered is not None:
            for level, code in enumerate(self.table[:, self.uncovered]):
                sizes[level][code] = self.domain
        return tuple(_frozen(size) for size in sizes)

    @cached_property
    def _leaf_of(self) -> dict[Label, int]:
        return {text: leaf for leaf, text in enumerate(self.leaves) if leaf != self.uncovered}

    def knows(self, values: Sequence[Label]) -> list[bool]:
        """Return whether each value has a leaf of its own."""
        leaf_of = self._leaf_of
        return [value in leaf_of for value in values]

    def missing(self, values: Sequence[Label]) -> int:
        """Count the distinct values without a leaf of their own."""
        missing_values: set[Label] = set()
        for piece in pieces_of(values):
            missing_values.update(set(piece).difference(self._leaf_of))
        return len(missing_values)

    def encode(self, values: Sequence[Label]) -> NDArray[np.int32]:
        """Return the leaf of each value."""
        other = -1 if self.uncovered is None else self.uncovered
        leaves = looked_up(values, self._leaf_of, other)
        if self.uncovered is None and (leaves < 0).any():
            raise uncovered_values(self.column, self.missing(values), len(set(values)))
        return leaves

    def step(self, lower: int, upper: int) -> NDArray[np.int32]:
        """Map every code at level ``lower`` to its code at level ``upper``; C1 makes it a function."""
        if not 0 <= lower <= upper < self.n_levels:
            raise ValueError(f"no step from level {lower} to level {upper} of {self.n_levels} levels")
        codes = np.zeros(self.cardinality(lower), np.int32)
        codes[self.table[lower]] = self.table[upper]
        return codes

    def with_null(self) -> Hierarchy:
        """Add null as a leaf: a separate value at every level but the top.

        A hierarchy of one level has no room for that (C2), so it gets a top first.
        """
        if None in self._leaf_of:
            return self
        if self.n_levels == 1:
            return self._under_a_new_top().with_null()
        grown = self._with_leaf(None, [None] * self.height + [self.top])
        if self.share_of == "leaves":
            shares = _by_leaves(grown.table, grown.labels, grown.uncovered)
            if self.uncovered is not None:
                shares = _raised(shares, grown.table[:, self.uncovered])
        else:
            shares = _extended(self.shares, grown.labels)
            if grown.domain > 1:
                shares = (*shares[:-1], _frozen(np.ones(1)))
        return replace(grown, shares=shares)

    def with_uncovered(self) -> Hierarchy:
        """Add a leaf for all values without an entry: it is at the top on every level, with full loss."""
        if self.uncovered is not None:
            return self
        grown = self._with_leaf(self.top, [self.top] * self.n_levels)
        leaf = len(self.leaves)
        # Share 1 at the top too, even if D = 1: a loss that decreases on the way up would mislead a search.
        shares = _raised(_extended(self.shares, grown.labels), grown.table[:, leaf])
        return replace(grown, shares=shares, uncovered=leaf)

    def _with_leaf(self, text: Label, path: Sequence[Label]) -> Hierarchy:
        labels = [
            labels_of_level if label in labels_of_level else (*labels_of_level, label)
            for labels_of_level, label in zip(self.labels, path, strict=True)
        ]
        codes = [labels_of_level.index(label) for labels_of_level, label in zip(labels, path, strict=True)]
        table = np.column_stack([self.table, np.array(codes, np.int32)])
        _require_single_parents(self.column, table)
        return replace(self, leaves=(*self.leaves, text), table=_frozen(table), labels=tuple(labels))

    def _under_a_new_top(self) -> Hierarchy:
        table = np.vstack([self.table, np.zeros((1, len(self.leaves)), np.int32)])
        labels = (*self.labels, (TOP,))
        return replace(self, table=_frozen(table), labels=labels, shares=(*self.shares, self.shares[-1]))


def once_per_hierarchy(make: Callable[[Hierarchy], Result]) -> Callable[[Hierarchy], Result]:
    """Return a function that computes its result once per hierarchy, and forgets it with the hierarchy.

    For what follows from a hierarchy alone and takes long if it has thousands of leaves. The result must not refer to
    the hierarchy, which would then never be freed, and must not be changed.
    """
    results: WeakKeyDictionary[Hierarchy, Result] = WeakKeyDictionary()

    @wraps(make)
    def cached_result(hierarchy: Hierarchy) -> Result:
        if hierarchy not in results:
            results[hierarchy] = make(hierarchy)
        return results[hierarchy]

    return cached_result


def uncovered_values(column: str, missing: int, distinct: int) -> UncoveredValueError:
    """Build the error for values that a hierarchy does not cover."""
    return UncoveredValueError(
        f"column {column!r}: {missing} of {distinct} distinct values are missing from its hierarchy",
        'extend the hierarchy, or set uncovered = "suppress" to send them to the top level',
    )


def _require_single_parents(column: str, table: NDArray[np.int32]) -> None:
    for level, (lower, upper) in enumerate(pairwise(table)):
        parent = np.zeros(lower.max(initial=-1) + 1, np.int32)
        parent[lower] = upper
        # The last assignment wins, so a label with two parents disagrees with at least one leaf.
        if at_fault := len(np.unique(lower[parent[lower] != upper])):
            raise HierarchyError(
                f"column {column!r}: {at_fault} labels at level {level} have more than one parent "
                f"at level {level + 1} (C1)",
                "give labels with different meanings different names, or the same parent",
            )


def _require_one_top(column: str, labels: Sequence[Label]) -> None:
    if len(labels) != 1:
        raise HierarchyError(
            f"column {column!r}: the top level has {len(labels)} labels instead of one (C2)",
            f"end every path with the same label, such as {TOP}",
        )


def _sizes(
    table: NDArray[np.int32], labels: Sequence[Sequence[Label]], uncovered: int | None = None
) -> list[NDArray[np.int64]]:
    listed = table if uncovered is None else np.delete(table, uncovered, axis=1)
    return [
        np.bincount(row, minlength=len(labels_of_level)).astype(np.int64)
        for row, labels_of_level in zip(listed, labels, strict=True)
    ]


def _by_leaves(
    table: NDArray[np.int32], labels: Sequence[Sequence[Label]], uncovered: int | None = None
) -> tuple[NDArray[np.float64], ...]:
    """Return Iyengar's (M-1)/(D-1), which is 0 if the domain has one value and nothing can be lost."""
    largest = max(1, table.shape[1] - (uncovered is not None) - 1)
    return tuple(_frozen(np.maximum(size - 1, 0) / largest) for size in _sizes(table, labels, uncovered))


def _extended(
    shares: tuple[NDArray[np.float64], ...], labels: Sequence[Sequence[Label]]
) -> tuple[NDArray[np.float64], ...]:
    """Add shares of 0 for new labels."""
    pairs = zip(shares, labels, strict=True)
    return tuple(_frozen(np.pad(share, (0, len(labels_of_level) - len(share)))) for share, labels_of_level in pairs)


def _raised(shares: tuple[NDArray[np.float64], ...], codes: NDArray[np.int32]) -> tuple[NDArray[np.float64], ...]:
    """Set the share of one code per level to 1."""
    pairs = zip(shares, codes, strict=True)
    return tuple(_frozen(np.where(np.arange(len(share)) == code, 1.0, share)) for share, code in pairs)


def _frozen(array: NDArray[Scalar]) -> NDArray[Scalar]:
    array.setflags(write=False)
    return array
