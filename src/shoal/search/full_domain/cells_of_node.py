"""The classes of a node with few combinations of labels: a counter for each combination, and no hashing.

A cell is a combination of labels, and its number is a sum with a term for each column, so that a row is counted by a
few lookups and one addition. The counters that are not 0 are the classes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled

PIECE = 12  # bits of a key that are looked up at once, unless one column has more
INNER = 1 << 11  # cells that share the first columns
BLOCK = 512  # rows whose cells are looked up together

PackedKeys = NDArray[np.uint64]  # (classes, words)
CellNumbers = NDArray[np.int64]


class KeyPlaces(Protocol):
    """Where the code of each column is in a packed key."""

    n_words: int
    words: CellNumbers
    shifts: NDArray[np.uint64]
    masks: NDArray[np.uint64]


class NodeCells(NamedTuple):
    """The cells of a node, and how the keys of a lower node lead to them."""

    words: CellNumbers  # [piece]  the word of a key that it reads
    shifts: NDArray[np.uint64]
    masks: NDArray[np.uint64]
    starts: CellNumbers  # where the terms of a piece begin
    terms: NDArray[np.uint32]  # what the bits of a piece add to the number of a cell
    outer: PackedKeys  # the keys of the first columns' labels, and of the others: one of each makes the key of a cell
    inner: PackedKeys


def cells_of_node(
    layout: KeyPlaces, codes: NDArray[np.uint64], offsets: CellNumbers, n_here: Sequence[int], n_there: Sequence[int]
) -> NodeCells:
    """Return the cells of a node with ``n_there`` labels in each column, reached from one with ``n_here``.

    Code ``x`` of column ``j`` becomes ``codes[offsets[j] + x]``.
    """
    columns = [j for j, n in enumerate(n_there) if n > 1]
    strides = {j: math.prod(n_there[i] for i in columns if i > j) for j in columns}
    pieces: list[list[int]] = []
    for j in columns:
        if pieces and _width(layout, [*pieces[-1], j]) <= PIECE:
            pieces[-1].append(j)
        else:
            pieces.append([j])
    terms, starts = [np.zeros(1, np.uint32)], [0]
    for piece in pieces:
        base = layout.shifts[piece[0]]
        bits = np.arange(n_here[piece[0]] if len(piece) == 1 else 1 << _width(layout, piece), dtype=np.uint64)
        cell_numbers = np.zeros(len(bits), np.int64)
        for j in piece:
            code = (bits >> (layout.shifts[j] - base)) & layout.masks[j]
            column_codes = np.minimum(code.astype(np.int64), n_here[j] - 1)  # no row has a greater one
            cell_numbers += codes[offsets[j] + column_codes].astype(np.int64) * strides[j]
        starts.append(starts[-1] + len(terms[-1]))
        terms.append(cell_numbers.astype(np.uint32))
    split = next(i for i in range(len(columns) + 1) if math.prod(n_there[j] for j in columns[i:]) <= INNER)
    heads = [piece[0] for piece in pieces]
    return NodeCells(
        layout.words[heads],
        layout.shifts[heads],
        np.array([(1 << _width(layout, piece)) - 1 for piece in pieces], np.uint64),
        np.array(starts[1:], np.int64),
        np.concatenate(terms),
        _keys(layout, columns[:split], n_there),
        _keys(layout, columns[split:], n_there),
    )


def _width(layout: KeyPlaces, columns: Sequence[int]) -> int:
    """Return how many bits of a word some columns span; more than a word if they are in different ones."""
    first, last = columns[0], columns[-1]
    if layout.words[first] != layout.words[last]:
        return 65
    return int(layout.shifts[last] - layout.shifts[first]) + int(layout.masks[last]).bit_length()


def _keys(layout: KeyPlaces, columns: Sequence[int], n_labels: Sequence[int]) -> PackedKeys:
    """Return the packed keys of all combinations of labels of some columns, the last one changing first."""
    keys = np.zeros((1, layout.n_words), np.uint64)
    for j in columns:
        column_keys = np.zeros((n_labels[j], layout.n_words), np.uint64)
        column_keys[:, layout.words[j]] = np.arange(n_labels[j], dtype=np.uint64) << layout.shifts[j]
        keys = (keys[:, None] | column_keys[None]).reshape(-1, layout.n_words)
    return keys


def count_cells(
    keys: PackedKeys, counts: CellNumbers, cells: NodeCells, with_classes: bool
) -> tuple[PackedKeys, CellNumbers, CellNumbers]:
    """Add up the ``counts`` of rows in their cells; return the keys of the cells that have any, and their sums.

    Also return the class of each row, if ``with_classes``. Arrays are made here: those of NumPy have large pages.
    """
    sums = np.zeros(len(cells.outer) * len(cells.inner), np.int64)
    cell_of = np.empty(len(keys) if with_classes else 0, np.uint32)
    scratch = np.empty(BLOCK, np.uint32)
    add_to_cells(
        keys, counts, cells.words, cells.shifts, cells.masks, cells.starts, cells.terms, sums, cell_of, scratch
    )
    n_classes = np.count_nonzero(sums)
    out, totals = np.empty((n_classes + 1, keys.shape[1]), np.uint64), np.empty(n_classes + 1, np.int64)
    number_of = np.empty(len(sums) if with_classes else 0, np.int64)
    take_cells(sums, cells.outer, cells.inner, out, totals, number_of)
    return out[:n_classes], totals[:n_classes], number_of[cell_of]


@compiled
def add_to_cells(
    keys: PackedKeys,
    counts: CellNumbers,
    words: CellNumbers,
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    starts: CellNumbers,
    terms: NDArray[np.uint32],
    sums: CellNumbers,
    cell_of: NDArray[np.uint32],
    cells: NDArray[np.uint32],
) -> None:
    """Add the ``counts`` of rows to the ``sums`` of their cells, and write the cell of each row if there is room.

    ``words``, ``shifts``, ``masks``, ``starts`` and ``terms`` are those of ``NodeCells``; ``cells`` is room for those
    of a block of rows.
    """
    block = cells.shape[0]
    for first in range(0, keys.shape[0], block):
        rows = keys[first : first + block]
        number = counts[first : first + block]
        for i in range(rows.shape[0]):
            cells[i] = 0
        # The cell of a row is a sum: each group of columns adds a term that is looked up by its bits in the key.
        for p in range(words.shape[0]):
            w, at, wide = words[p], shifts[p], masks[p]
            column_terms = terms[starts[p] :]
            for i in range(rows.shape[0]):
                cells[i] += column_terms[(rows[i, w] >> at) & wide]
        for i in range(rows.shape[0]):
            sums[np.uint64(cells[i])] += number[i]
        if cell_of.shape[0]:
            for i in range(rows.shape[0]):
                cell_of[first + i] = cells[i]


@compiled
def take_cells(
    sums: CellNumbers,
    outer: PackedKeys,
    inner: PackedKeys,
    out: PackedKeys,
    totals: CellNumbers,
    number_of: CellNumbers,
) -> None:
    """Write the keys and sums of the cells that have any rows, and the class of each cell if there is room.

    There is room for one more, since every cell is written, and overwritten where nobody is: the branch would be
    unpredictable.
    """
    n, cell = np.uint64(0), np.uint64(0)
    for a in range(outer.shape[0]):
        for b in range(inner.shape[0]):
            for w in range(out.shape[1]):
                out[n, w] = outer[a, w] | inner[b, w]
            totals[n] = sums[cell]
            if number_of.shape[0]:
                number_of[cell] = n
            n += np.uint64(sums[cell] > 0)
            cell += np.uint64(1)
