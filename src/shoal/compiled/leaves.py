"""Loops over the leaves of all columns at once: a table of many rows is read once, not once for each column."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.arrays import Codes, Ints, Words
from shoal.compiled.jit import compiled_when_long


def records_by_leaf(leaves: Codes, counts: Ints, n_leaves: Sequence[int]) -> list[Ints]:
    """Return the number of records with each leaf, per column."""
    starts = np.concatenate([[0], np.cumsum(n_leaves)]).astype(np.int64)
    sums = np.zeros(starts[-1], np.int64)
    add_by_leaf(np.ascontiguousarray(leaves), counts, starts, sums)
    return [sums[first:last] for first, last in pairwise(starts)]


def recoded_leaves(leaves: Codes, of_leaf: Sequence[NDArray[np.integer]]) -> tuple[Codes, Words | None]:
    """Return what ``of_leaf``, per column, says that each leaf becomes, and each row of this in one word.

    Words are equal exactly if the rows are; None if 64 bits are not enough.
    """
    starts = np.concatenate([[0], np.cumsum([len(labels_of_leaf) for labels_of_leaf in of_leaf])]).astype(np.int64)
    recoded = np.concatenate([*of_leaf, []]).astype(np.int32)
    bits = np.array([int(labels_of_leaf.max(initial=0)).bit_length() for labels_of_leaf in of_leaf], np.uint64)
    out, keys = np.empty(leaves.shape, np.int32), np.empty(len(leaves), np.uint64)
    recode_leaves(np.ascontiguousarray(leaves), recoded, starts, bits, out, keys)
    return out, keys if bits.sum() <= 64 else None


@compiled_when_long(lambda leaves, *_: leaves.size)
def add_by_leaf(leaves: Codes, counts: Ints, starts: Ints, sums: Ints) -> None:
    """Add the counts of rows to the ``sums`` of their leaves; those of column ``j`` begin at ``starts[j]``."""
    for i in range(leaves.shape[0]):
        for j in range(leaves.shape[1]):
            sums[starts[j] + leaves[i, j]] += counts[i]


@compiled_when_long(lambda leaves, *_: leaves.size)
def recode_leaves(leaves: Codes, recoded: Codes, starts: Ints, bits: Words, out: Codes, keys: Words) -> None:
    """Write to ``out`` what each leaf became: leaf ``x`` of column ``j``, ``became[starts[j] + x]``.

    ``keys`` get the ``bits`` of all columns of a row, one after the other.
    """
    for i in range(leaves.shape[0]):
        key = np.uint64(0)
        for j in range(leaves.shape[1]):
            code = recoded[starts[j] + leaves[i, j]]
            out[i, j] = code
            key = (key << bits[j]) | np.uint64(code)
        keys[i] = key
