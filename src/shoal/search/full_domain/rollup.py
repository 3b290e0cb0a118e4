"""Frequency tables of lattice nodes, each derived from the smallest available table that is more specific.

C1 makes this exact: a label has one parent, so grouping a grouped table again gives the same result as grouping the
records (the roll-up property of Incognito). Each class is one packed key, so that a node costs one pass of shifts,
lookups and hashing over the table it is derived from.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.deriving import derive_large, derive_node, unpack
from shoal.compiled.nodes import number_large
from shoal.compiled.threads import done_in_parts
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.search.full_domain.lattice import Node, moved_to_level
from shoal.tables.frequency import ClassOf, Codes, Counts, FrequencyTable

Levels = NDArray[np.int64]  # (columns)
PackedKeys = NDArray[np.uint64]  # (classes, words)


class KeyLayout:
    """The position of each column's code in a packed key: as many bits as its largest code needs, word after word."""

    def __init__(self, cardinalities: list[int]) -> None:
        words, shifts, masks = [], [], []
        word = used_bits = 0
        for cardinality in cardinalities:
            bits = max(1, (cardinality - 1).bit_length())
            if used_bits + bits > 64:
                word, used_bits = word + 1, 0
            words.append(word)
            shifts.append(used_bits)
            masks.append((1 << bits) - 1)
            used_bits += bits
        self.n_words = word + 1
        self.words = np.array(words, np.int64)
        self.shifts = np.array(shifts, np.uint64)
        self.masks = np.array(masks, np.uint64)

    def packed(self, codes: Codes) -> PackedKeys:
        """Pack the codes of each row into a key."""
        return self.packed_columns(codes.T, len(codes))

    def packed_columns(self, columns: Iterable[Codes], n_rows: int) -> PackedKeys:
        """Pack codes that are given column by column."""
        keys = np.zeros((n_rows, self.n_words), np.uint64)
        for column, word, shift in zip(columns, self.words, self.shifts, strict=True):
            keys[:, word] |= column.astype(np.uint64) << shift
        return keys

    def codes(self, keys: PackedKeys) -> Codes:
        """Unpack keys into the codes of each row."""
        return unpack(keys, self.words, self.shifts, self.masks)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The classes of one node; histograms are merged only on demand."""

    node: Node
    levels: Levels  # the node's, as an array
    keys: PackedKeys
    counts: Counts
    class_of: ClassOf  # the class of each row of the source
    source: NodeTable | FrequencyTable  # the table it was derived from
    layout: KeyLayout

    @property
    def room(self) -> int:
        """The number of values it holds, for the memory limit."""
        return self.keys.size + len(self.counts) + len(self.class_of)

    @property
    def codes(self) -> Codes:
        """(classes, columns): codes at the node's levels."""
        return self.layout.codes(self.keys)

    @property
    def frequency(self) -> FrequencyTable:
        """The full table: codes, counts, histograms, persons."""
        # Kept as by ``cached_property``, in which Python 3.11 lets only one thread at a time merge histograms.
        if "_frequency" not in self.__dict__:
            self.__dict__["_frequency"] = self._merged()
        table: FrequencyTable = self.__dict__["_frequency"]
        return table

    def _merged(self) -> FrequencyTable:
        above = self.source.frequency if isinstance(self.source, NodeTable) else self.source
        if not above.sensitive and above.entities is None:
            return replace(above, codes=self.codes, counts=self.counts)
        n_classes = len(self.counts)
        return replace(
            above,
            codes=self.codes,
            counts=self.counts,
            sensitive={name: h.merged(self.class_of, n_classes) for name, h in above.sensitive.items()},
            entities=above.entities and above.entities.merged(self.class_of, n_classes),
        )

    def large(self, min_records: int) -> tuple[NDArray[np.int64], FrequencyTable]:
        """Return the classes of at least ``min_records`` records, and their table, without merging the others."""
        large, class_of = number_large(self.counts, min_records, self.class_of)
        if "_frequency" in self.__dict__:
            return large, self.frequency.selected(large)
        above = self.source.frequency if isinstance(self.source, NodeTable) else self.source
        return large, FrequencyTable(
            above.columns,
            self.layout.codes(self.keys[large]),
            self.counts[large],
            {name: h.merged(class_of, len(large)) for name, h in above.sensitive.items()},
            above.entities and above.entities.merged(class_of, len(large)),
            above.hierarchies,
        )


LARGE = 4096  # rows from which an intermediate table is worth keeping as a start for others


HUGE = 1 << 17  # classes from which a table no longer fits the processor's cache

SAMPLE = 4096  # rows of a huge table that show how many classes they will be in

# Combinations of labels per ground tuple between which a coarser node is worth evaluating before a node with a huge
# table: with fewer, hardly any record is alone; with more, its table is hardly smaller.
COARSER = (0.05, 0.3)


class Rollup:
    """Derives node tables and caches them within a memory limit.

    From a huge table, a node is one step. From a large one it is reached column by column, in a fixed order, so that
    nodes with a common prefix share the intermediate tables; from a small table, the rest is one step again.
    """

    def __init__(self, table: FrequencyTable, room: int | None = None) -> None:
        self.table = table
        # The number of values that may be cached: 512 MB, or a few tables as large as the ground's.
        self._room = max(1 << 26, 8 * table.n_classes) if room is None else room
        self._with_classes = bool(table.sensitive) or table.entities is not None
        hierarchies = table.hierarchies
        self.steps = Steps.from_hierarchies(hierarchies)
        self.layout = KeyLayout(self.steps.n_labels.max(axis=1).tolist())
        # Columns with many values come first: generalizing them shrinks a table most.
        self._order = sorted(range(len(hierarchies)), key=lambda j: -hierarchies[j].cardinality(0))
        heights = [hierarchy.height for hierarchy in hierarchies]
        self._bits = max(heights).bit_length() + 1
        self._guard = sum(1 << (self._bits * (j + 1) - 1) for j in range(len(heights)))
        self._ground = self._grouped_ground()
        self._tables: dict[Node, NodeTable] = {}  # in the order of last use
        self._marks: dict[Node, int] = {}  # of each table in the cache, if it may be searched
        self._trunk: Rollup | None = None  # of a branch

    def branch(self) -> Rollup:
        """Return a roll-up that finds the tables of this one and keeps its own to itself, for one part of the work.

        Which table a node is derived from decides on the order of its classes, and so on the last bits of a sum over
        them. Several parts may use branches at the same time: none sees a table of another, and this one is not used
        before they are joined.
        """
        copied = copy(self)
        copied._tables, copied._marks, copied._trunk, copied._room = {}, {}, self, sys.maxsize
        return copied

    def join(self, branch: Rollup) -> None:
        """Take over what a branch has used and derived."""
        for node, table in branch._tables.items():
            if node in self._tables:
                self._tables[node] = self._tables.pop(node)
            else:
                self._remember(table)

    def n_to_group(self, node: Node) -> int:
        """Return how many classes are grouped to derive the table of ``node``."""
        return len(self._nearest(node).counts)

    def at(self, node: Node) -> NodeTable:
        """Return the table of ``node``."""
        table = self._nearest(node)
        while table.node != node:
            table = self._derived(table, self._stop(table, node))
            self._remember(table)
        return table

    def _stop(self, table: NodeTable, node: Node) -> Node:
        """Return the next node on the way from a table to a node."""
        if not LARGE < len(table.counts) <= HUGE:
            return node
        j = next(j for j in self._order if table.node[j] != node[j])
        return moved_to_level(table.node, j, node[j])

    def coarser(self, node: Node) -> Iterator[Node]:
        """Yield nodes above ``node`` if its table would be derived from a huge one, coarsest first; otherwise none.

        The columns with most labels keep their levels, the others go to the top.
        """
        n = len(self._ground.counts)
        if n <= HUGE or len(self._nearest(node).counts) <= HUGE:
            return
        n_labels = [int(column_labels[level]) for column_labels, level in zip(self.steps.n_labels, node, strict=True)]
        levels = [hierarchy.height for hierarchy in self.table.hierarchies]
        cells = 1
        for j in sorted(range(len(node)), key=lambda j: -n_labels[j]):
            levels[j] = node[j]
            cells *= n_labels[j]
            if cells > COARSER[1] * n:
                return
            if cells > COARSER[0] * n:
                yield tuple(levels)

    def _nearest(self, node: Node) -> NodeTable:
        """Return a small table from which the node can be derived: the last cached one on the way from the ground.

        If that table is large, searching the whole cache for a smaller one is cheaper than using it.
        """
        nearest_table, levels = self._ground, list(node)
        for j in reversed(self._order):
            if node[j]:
                if (cached := self._cached(tuple(levels))) is not None:
                    nearest_table = cached
                    break
                levels[j] = 0
        if len(nearest_table.counts) > 32 * LARGE:
            high, guard = self._mark(node) | self._guard, self._guard
            fit = [
                rollup._tables[low]
                for rollup in ((self,) if self._trunk is None else (self._trunk, self))
                for low, mark in rollup._marks.items()
                if (high - mark) & guard == guard
            ]
            nearest_table = min(fit, key=lambda table: len(table.counts), default=nearest_table)
        return nearest_table

    def _cached(self, node: Node) -> NodeTable | None:
        """Return the table of a node if it is cached, and mark it as most recently used."""
        table = self._tables.pop(node, None)
        if table is None and self._trunk is not None:
            table = self._trunk._tables.get(node)
        if table is not None:
            self._tables[node] = table
        return table

    def _mark(self, node: Node) -> int:
        """Return the levels of a node in one number; no bit of the guard is lost where a node below is subtracted."""
        return sum(level << (self._bits * j) for j, level in enumerate(node))

    def _derived(self, source: NodeTable, node: Node) -> NodeTable:
        levels = np.array(node)
        keys, counts, class_of = self._regrouped(source.keys, source.counts, source.levels, levels)
        # Without histograms to merge, a table need not keep a reference to its source.
        origin = source if self._with_classes else self.table
        return NodeTable(node, levels, keys, counts, class_of, origin, self.layout)

    def _grouped_ground(self) -> NodeTable:
        # Level 0 may already join leaves (top-coding), so the ground node is a grouping like any other.
        ground = (0,) * len(self.table.columns)
        levels = np.array(ground)
        columns = (h.table[0][leaves] for h, leaves in zip(self.table.hierarchies, self.table.codes.T, strict=True))
        keys = self.layout.packed_columns(columns, len(self.table.counts))
        if all(h.cardinality(0) == len(h.leaves) for h in self.table.hierarchies):
            counts, class_of = self.table.counts, np.arange(len(keys) if self._with_classes else 0)
        else:
            keys, counts, class_of = self._regrouped(keys, self.table.counts, levels, levels)
        return NodeTable(ground, levels, keys, counts, class_of, self.table, self.layout)

    def _regrouped(
        self, keys: PackedKeys, counts: Counts, from_levels: Levels, to_levels: Levels
    ) -> tuple[PackedKeys, Counts, ClassOf]:
        """Recode rows from one node's levels to another's and group again, by the kernel that suits the table."""
        layout, steps, with_classes = self.layout, self.steps, self._with_classes
        if keys.shape[1] == 1 and (len(counts) <= 2 * HUGE or self._seem_few(keys, counts, from_levels, to_levels)):
            narrow, sums, class_of = self._hashed(keys, counts, from_levels, to_levels, with_classes)
            return narrow[:, None], sums, class_of
        changed = np.flatnonzero(from_levels != to_levels)
        offsets = steps.offsets[changed, from_levels[changed], to_levels[changed]]
        fields = (layout.words[changed], layout.shifts[changed], layout.masks[changed])
        row_arrays = (keys, counts, *fields, offsets, steps.codes)
        if len(counts) <= HUGE:
            group_keys, sums, class_of = derive_large(*row_arrays, with_classes, 0, 0)
            return group_keys.copy(), sums.copy(), class_of  # copies, to free the unused rest of the arrays
        halves = done_in_parts(lambda half: derive_large(*row_arrays, with_classes, half, 1), range(2))
        (group_keys, sums, class_of), (second_keys, more_sums, more_classes) = halves
        if with_classes:
            class_of = np.where(class_of < 0, more_classes + len(sums), class_of)
        return np.concatenate([group_keys, second_keys]), np.concatenate([sums, more_sums]), class_of

    def _hashed(
        self, keys: PackedKeys, counts: Counts, from_levels: Levels, to_levels: Levels, with_classes: bool
    ) -> tuple[NDArray[np.uint64], Counts, ClassOf]:
        """Recode and group rows whose keys are one word, with one hash table."""
        layout, steps = self.layout, self.steps
        max_groups = len(counts) if len(counts) <= HUGE else steps.max_classes(to_levels)
        return derive_node(
            *(keys[:, 0], counts, from_levels, to_levels, layout.shifts, layout.masks),
            *(steps.n_labels, steps.offsets, steps.codes, with_classes, max_groups),
        )

    def _seem_few(self, keys: PackedKeys, counts: Counts, from_levels: Levels, to_levels: Levels) -> bool:
        """Estimate whether a table fits the processor's cache, by the rows of a sample that coincide."""
        sample = np.arange(0, len(keys), max(1, len(keys) // SAMPLE))
        _, sample_keys, _ = self._hashed(keys[sample], counts[sample], from_levels, to_levels, False)
        return 2 * (len(sample) - len(sample_keys)) * HUGE >= len(sample) ** 2  # n rows in m classes have n² / 2m pairs

    def _remember(self, table: NodeTable) -> None:
        self._room -= table.room
        while self._room < 0 and self._tables:
            oldest = next(iter(self._tables))
            self._room += self._tables.pop(oldest).room
            self._marks.pop(oldest, None)
        self._tables[table.node] = table
        if len(self._ground.counts) > 32 * LARGE:
            self._marks[table.node] = self._mark(table.node)


class Steps(NamedTuple):
    """All steps of all hierarchies, from a level to itself or a higher one, concatenated."""

    codes: NDArray[np.uint64]  # the code at the higher level for every code at the lower one; a function because of C1
    offsets: NDArray[np.int64]  # [column, level, higher level]: where each begins
    n_labels: NDArray[np.int64]  # [column, level]

    @classmethod
    def from_hierarchies(cls, hierarchies: tuple[Hierarchy, ...]) -> Steps:
        """Compute the steps once for all nodes."""
        n_levels = max(h.n_levels for h in hierarchies)
        offsets = np.zeros((len(hierarchies), n_levels, n_levels), np.int64)
        n_labels = np.ones((len(hierarchies), n_levels), np.int64)
        codes, end = [], 0
        for j, hierarchy in enumerate(hierarchies):
            for lower in range(hierarchy.n_levels):
                n_labels[j, lower] = n = hierarchy.cardinality(lower)
                steps = np.zeros((hierarchy.n_levels - lower, n), np.uint64)
                steps[:, hierarchy.table[lower]] = hierarchy.table[lower:]
                offsets[j, lower, lower : hierarchy.n_levels] = end + n * np.arange(len(steps))
                codes.append(steps.ravel())
                end += steps.size
        return cls(np.concatenate(codes), offsets, n_labels)

    def max_classes(self, levels: Levels) -> int:
        """Return an upper bound on the number of classes at these levels."""
        return math.prod(self.n_labels[np.arange(len(levels)), levels].tolist())
