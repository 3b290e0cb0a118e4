"""Frequency tables of lattice nodes, each derived from the smallest one at hand that is more specific.

C1 makes this exact: a label has one parent, so grouping a grouped table again gives what grouping the records
would give (the roll-up property of Incognito). Each class is one packed key, so that a node costs one pass of
shifts, lookups and hashing over the table it is derived from.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shoal.search.lattice import Node, below, replaced
from shoal.table.frequency import ClassOf, Codes, Counts, FrequencyTable
from shoal.table.hierarchy import Hierarchy
from shoal.table.kernels import derive, derive_large

Keys = NDArray[np.uint64]  # (classes, words)


class Layout:
    """Where each column's code sits in a packed key: as many bits as its largest code needs, words filled in turn."""

    def __init__(self, cardinalities: list[int]) -> None:
        words, shifts, masks = [], [], []
        word = used = 0
        for cardinality in cardinalities:
            bits = max(1, (cardinality - 1).bit_length())
            if used + bits > 64:
                word, used = word + 1, 0
            words.append(word)
            shifts.append(used)
            masks.append((1 << bits) - 1)
            used += bits
        self.n_words = word + 1
        self.words = np.array(words, np.int64)
        self.shifts = np.array(shifts, np.uint64)
        self.masks = np.array(masks, np.uint64)

    def packed(self, codes: Codes) -> Keys:
        """Codes to keys."""
        keys = np.zeros((len(codes), self.n_words), np.uint64)
        for j, column in enumerate(codes.T):
            keys[:, self.words[j]] |= column.astype(np.uint64) << self.shifts[j]
        return keys

    def codes(self, keys: Keys) -> Codes:
        """Keys to codes."""
        return ((keys[:, self.words] >> self.shifts) & self.masks).astype(np.int32)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The classes of one node; histograms are only merged when somebody asks."""

    node: Node
    keys: Keys
    counts: Counts
    class_of: ClassOf  # the class of each row of the source
    source: NodeTable | FrequencyTable  # what it was derived from
    layout: Layout

    @property
    def room(self) -> int:
        """Numbers that it holds."""
        return self.keys.size + len(self.counts) + len(self.class_of)

    @property
    def codes(self) -> Codes:
        """(classes, columns): codes at the node's levels."""
        return self.layout.codes(self.keys)

    @cached_property
    def frequency(self) -> FrequencyTable:
        """The full table: codes, counts, histograms, persons."""
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


LARGE = 1024  # rows from which a table on the way is worth keeping: others will start from it


HUGE = 1 << 17  # classes from which a table no longer fits the processor's cache


class Rollup:
    """Derives node tables and remembers them while there is room.

    A node is reached from the ground column by column, in one order for all, so that nodes which begin alike share the
    tables on the way; from a small table the rest of the way is one step.
    """

    def __init__(self, table: FrequencyTable, room: int | None = None) -> None:
        self.table = table
        # Numbers that may be remembered: 512 MB, or a few tables as large as the ground's.
        self._room = max(1 << 26, 8 * table.n_classes) if room is None else room
        self._with_classes = bool(table.sensitive) or table.entities is not None
        hierarchies = table.hierarchies
        self.layout = Layout([max(h.cardinality(level) for level in range(h.n_levels)) for h in hierarchies])
        self._offsets, self._steps = _step_tables(hierarchies)
        self._cardinality = [[h.cardinality(level) for level in range(h.n_levels)] for h in hierarchies]
        # Columns with many values first: generalizing them shrinks a table most.
        self._order = sorted(range(len(hierarchies)), key=lambda j: -hierarchies[j].cardinality(0))
        self._ground = self._grouped_ground()
        self._tables: dict[Node, NodeTable] = {}  # those asked for last come last

    def at(self, node: Node) -> NodeTable:
        """The table of ``node``."""
        table = self._nearest(node)
        while table.node != node:
            stop = node
            if len(table.counts) > LARGE:
                j = next(j for j in self._order if table.node[j] != node[j])
                stop = replaced(table.node, j, node[j])
            table = self._derived(table, stop)
            self._remember(table)
        return table

    def _nearest(self, node: Node) -> NodeTable:
        """A small table that the node can be derived from: the last one remembered on the way from the ground.

        Where that is large, searching all that is remembered for a smaller one costs less than using it.
        """
        found = self._ground
        for stop in reversed(self._way(node)):
            if stop in self._tables:
                found = self._tables[stop] = self._tables.pop(stop)
                break
        if len(found.counts) > 32 * LARGE:
            fit = [table for table in self._tables.values() if below(table.node, node)]
            found = min(fit, key=lambda table: len(table.counts), default=found)
        return found

    def _way(self, node: Node) -> list[Node]:
        """The nodes on the way from the ground, the ground left out."""
        levels = [0] * len(node)
        way = []
        for j in self._order:
            if node[j]:
                levels[j] = node[j]
                way.append(tuple(levels))
        return way

    def _derived(self, source: NodeTable, node: Node) -> NodeTable:
        changed = [j for j, level in enumerate(node) if source.node[j] != level]
        layout = self.layout
        offsets = np.array([self._offsets[j, source.node[j], node[j]] for j in changed], np.int64)
        recode = (layout.words[changed], layout.shifts[changed], layout.masks[changed], offsets, self._steps)
        keys, counts, class_of = _regrouped(source.keys, source.counts, recode, self._most(node), self._with_classes)
        # Without histograms to merge, a table need not hold on to the one it came from.
        return NodeTable(node, keys, counts, class_of, source if self._with_classes else self.table, layout)

    def _most(self, node: Node) -> int:
        """No table at these levels has more classes."""
        return min(1 << 40, math.prod(of[level] for of, level in zip(self._cardinality, node, strict=True)))

    def _grouped_ground(self) -> NodeTable:
        # Level 0 may already join leaves (top-coding), so the ground node is a grouping like any other.
        table = self.table
        ground = (0,) * len(table.columns)
        keys = self.layout.packed(node_codes(table, ground))
        none, bits = np.zeros(0, np.int64), np.zeros(0, np.uint64)
        recode = (none, bits, bits, none, self._steps)
        keys, counts, class_of = _regrouped(keys, table.counts, recode, len(keys), self._with_classes)
        return NodeTable(ground, keys, counts, class_of, table, self.layout)

    def _remember(self, table: NodeTable) -> None:
        self._room -= table.room
        while self._room < 0 and self._tables:
            oldest = next(iter(self._tables))
            self._room += self._tables.pop(oldest).room
        self._tables[table.node] = table


Recode = tuple[
    NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64], NDArray[np.int64], NDArray[np.uint64]
]  # words, shifts, masks, offsets, steps of the columns that change


def _regrouped(
    keys: Keys, counts: Counts, recode: Recode, most: int, with_classes: bool
) -> tuple[Keys, Counts, ClassOf]:
    """Recode and group again, by the kernel that suits the table."""
    if keys.shape[1] == 1 and min(len(counts), most) <= HUGE:
        narrow, sums, class_of = derive(keys[:, 0], counts, *recode[1:], most, with_classes)
        return narrow[:, None], sums, class_of
    if len(counts) <= HUGE:
        return derive_large(keys, counts, *recode, with_classes, 0, 0)
    # One thread for each half of the keys; the kernels let go of Python's lock.
    with ThreadPoolExecutor(2) as pool:
        shares = [pool.submit(derive_large, keys, counts, *recode, with_classes, i, 1) for i in range(2)]
        (found, sums, class_of), (more, more_sums, more_classes) = (share.result() for share in shares)
    if with_classes:
        class_of = np.where(class_of < 0, more_classes + len(sums), class_of)
    return np.concatenate([found, more]), np.concatenate([sums, more_sums]), class_of


def _step_tables(hierarchies: tuple[Hierarchy, ...]) -> tuple[dict[tuple[int, int, int], int], NDArray[np.uint64]]:
    """Every ``step`` of every hierarchy end to end, and where each begins."""
    offsets, steps, end = {}, [np.zeros(0, np.uint64)], 0
    for j, hierarchy in enumerate(hierarchies):
        for lower in range(hierarchy.n_levels):
            for upper in range(lower, hierarchy.n_levels):
                offsets[j, lower, upper] = end
                steps.append(hierarchy.step(lower, upper).astype(np.uint64))
                end += len(steps[-1])
    return offsets, np.concatenate(steps)


def node_codes(table: FrequencyTable, node: Node) -> Codes:
    """The released codes of every ground tuple at ``node``."""
    columns = [
        h.table[level][table.codes[:, j]] for j, (h, level) in enumerate(zip(table.hierarchies, node, strict=True))
    ]
    return np.column_stack(columns).astype(np.int32)
