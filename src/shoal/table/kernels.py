"""The few Numba loops: arrays in, arrays out, no objects.

Each is compiled when first called and kept on disk; each has a NumPy twin in its test.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing spreads packed keys evenly


@njit(cache=True, nogil=True)
def group(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number equal keys alike, by first appearance: the class of each key, and the place where each class starts."""
    n = keys.shape[0]
    bits = 4
    while (1 << bits) < 2 * n:
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, -1, np.int64)
    class_of = np.empty(n, np.int64)
    firsts = np.empty(n, np.int64)
    n_classes = 0
    for i in range(n):
        key = keys[i]
        h = np.int64((key * _MIX) >> shift)
        while True:
            c = slots[h]
            if c < 0:
                slots[h] = n_classes
                firsts[n_classes] = i
                class_of[i] = n_classes
                n_classes += 1
                break
            if keys[firsts[c]] == key:
                class_of[i] = c
                break
            h = (h + 1) & mask
    return class_of, firsts[:n_classes].copy()


@njit(cache=True, nogil=True)
def sum_by_class(values: NDArray[np.int64], class_of: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """Add up the ``values`` that fall into the same class."""
    out = np.zeros(n_classes, np.int64)
    for i in range(values.shape[0]):
        out[class_of[i]] += values[i]
    return out


@njit(cache=True, nogil=True)
def merge_histograms(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    class_of: NDArray[np.int64],
    n_classes: int,
    n_values: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Add up the sparse histograms of the rows that fall into the same class; values ascend within a class."""
    n_rows = class_of.shape[0]
    place = np.zeros(n_classes + 1, np.int64)
    for i in range(n_rows):
        place[class_of[i] + 1] += 1
    for c in range(n_classes):
        place[c + 1] += place[c]
    members = np.empty(n_rows, np.int64)
    cursor = place[:-1].copy()
    for i in range(n_rows):
        c = class_of[i]
        members[cursor[c]] = i
        cursor[c] += 1
    out_starts = np.zeros(n_classes + 1, np.int64)
    out_values = np.empty(values.shape[0], np.int32)
    out_counts = np.empty(values.shape[0], np.int64)
    held = np.zeros(n_values, np.int64)
    touched = np.empty(n_values, np.int32)
    end = 0
    for c in range(n_classes):
        n_touched = 0
        for r in range(place[c], place[c + 1]):
            row = members[r]
            for e in range(starts[row], starts[row + 1]):
                v = values[e]
                if held[v] == 0:
                    touched[n_touched] = v
                    n_touched += 1
                held[v] += counts[e]
        touched[:n_touched].sort()
        for t in range(n_touched):
            v = touched[t]
            out_values[end] = v
            out_counts[end] = held[v]
            held[v] = 0
            end += 1
        out_starts[c + 1] = end
    return out_starts, out_values[:end].copy(), out_counts[:end].copy()


@njit(cache=True, nogil=True)
def derive(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    steps: NDArray[np.uint64],
    most: int,
    with_classes: bool,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """Recode some columns of rows packed into one word each, and group again.

    Gives the new keys, their counts, and the class of each old row. Column ``c`` sits at bit ``shifts[c]``; its code
    ``x`` becomes ``steps[offsets[c] + x]``. At most ``most`` keys are different, which keeps the hash table small.
    Rows go in blocks, column by column: a loop over one column is loads and shifts that run side by side.
    """
    n = keys.shape[0]
    bits = 4
    while (1 << bits) < 2 * min(n, most):
        bits += 1
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots = np.full(1 << bits, -1, np.int32)
    out = np.empty(min(n, most), np.uint64)
    sums = np.empty(min(n, most), np.int64)
    class_of = np.empty(n if with_classes else 0, np.int64)
    n_classes = 0
    kept = ~np.uint64(0)
    for c in range(shifts.shape[0]):
        kept &= ~(masks[c] << shifts[c])
    block = 512
    rows = np.empty(block, np.uint64)
    for first in range(0, n, block):
        size = min(block, n - first)
        for i in range(size):
            rows[i] = keys[first + i] & kept
        for c in range(shifts.shape[0]):
            at, wide, start = shifts[c], masks[c], offsets[c]
            for i in range(size):
                rows[i] |= steps[start + np.int64((keys[first + i] >> at) & wide)] << at
        for i in range(size):
            key = rows[i]
            h = np.int64((key * _MIX) >> shift)
            while True:
                found = slots[h]
                if found < 0:
                    found = n_classes
                    slots[h] = found
                    out[found] = key
                    sums[found] = counts[first + i]
                    n_classes += 1
                    break
                if out[found] == key:
                    sums[found] += counts[first + i]
                    break
                h = (h + 1) & mask
            if with_classes:
                class_of[first + i] = found
    return out[:n_classes].copy(), sums[:n_classes].copy(), class_of


@njit(cache=True, nogil=True)
def derive_large(
    keys: NDArray[np.uint64],
    counts: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    steps: NDArray[np.uint64],
    with_classes: bool,
    share: int,
    share_bits: int,
) -> tuple[NDArray[np.uint64], NDArray[np.int64], NDArray[np.int64]]:
    """``derive`` for keys of several words, column ``c`` in ``words[c]``, and for tables beyond the processor's cache.

    Only the rows whose hash begins with the ``share_bits`` of ``share`` are taken.

    One hash table of millions of slots misses the cache with every row. So rows are first dealt out by the next bits
    of their hash into parts of a few thousand, in order, and each part is grouped by a table that fits. Shares have
    no class in common, so that each can be done by a thread of its own; rows of other shares get class −1.
    """
    n_rows, n_words = keys.shape
    n = 0
    part_bits = 1
    while (n_rows >> (part_bits + share_bits)) > 4096:
        part_bits += 1
    part_shift = np.uint64(64 - part_bits)
    rows = np.empty((n_rows, n_words), np.uint64)
    hashes = np.empty(n_rows, np.uint64)
    from_row = np.empty(n_rows, np.int64)
    ends = np.zeros((1 << part_bits) + 1, np.int64)
    for i in range(n_rows):
        for w in range(n_words):
            rows[n, w] = keys[i, w]
        for c in range(words.shape[0]):
            w = words[c]
            code = np.int64((rows[n, w] >> shifts[c]) & masks[c])
            rows[n, w] = (rows[n, w] & ~(masks[c] << shifts[c])) | (steps[offsets[c] + code] << shifts[c])
        mixed = rows[n, 0] * _MIX
        for w in range(1, n_words):
            mixed = ((mixed ^ (mixed >> np.uint64(29))) + rows[n, w]) * _MIX
        if share_bits and np.int64(mixed >> np.uint64(64 - share_bits)) != share:
            continue
        mixed <<= np.uint64(share_bits)
        hashes[n] = mixed
        from_row[n] = i
        ends[np.int64(mixed >> part_shift) + 1] += 1
        n += 1
    largest = np.int64(ends.max())
    for p in range(1 << part_bits):
        ends[p + 1] += ends[p]
    dealt = np.empty((n, n_words), np.uint64)
    dealt_counts = np.empty(n, np.int64)
    dealt_hashes = np.empty(n, np.uint64)
    dealt_from = np.empty(n if with_classes else 0, np.int64)
    place = ends[:-1].copy()
    for i in range(n):
        part = np.int64(hashes[i] >> part_shift)
        to = place[part]
        place[part] = to + 1
        for w in range(n_words):
            dealt[to, w] = rows[i, w]
        dealt_counts[to] = counts[from_row[i]]
        dealt_hashes[to] = hashes[i]
        if with_classes:
            dealt_from[to] = from_row[i]
    bits = 4
    while (1 << bits) < 2 * largest:
        bits += 1
    mask = (1 << bits) - 1
    slots = np.empty(1 << bits, np.int32)
    out = rows  # no longer needed, and never read beyond what is written
    sums = np.empty(n, np.int64)
    class_of = np.full(n_rows if with_classes else 0, -1, np.int64)
    n_classes = 0
    for p in range(1 << part_bits):
        slots[:] = -1
        for r in range(ends[p], ends[p + 1]):
            h = np.int64((dealt_hashes[r] << np.uint64(part_bits)) >> np.uint64(64 - bits))
            while True:
                c = slots[h]
                if c < 0:
                    c = n_classes
                    slots[h] = c
                    for w in range(n_words):
                        out[c, w] = dealt[r, w]
                    sums[c] = dealt_counts[r]
                    n_classes += 1
                    break
                same = True
                for w in range(n_words):
                    if out[c, w] != dealt[r, w]:
                        same = False
                        break
                if same:
                    sums[c] += dealt_counts[r]
                    break
                h = (h + 1) & mask
            if with_classes:
                class_of[dealt_from[r]] = c
    return out[:n_classes].copy(), sums[:n_classes].copy(), class_of


@njit(cache=True, nogil=True)
def sum_cells(
    keys: NDArray[np.uint64],
    weights: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    n_levels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    prices: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Σ over rows of weight × price, per column and level.

    ``prices[offsets[j, l] + x]`` is the price at level ``l`` of a cell that has code ``x`` at the node.
    """
    q = words.shape[0]
    out = np.zeros(offsets.shape)
    for i in range(weights.shape[0]):
        n = weights[i]
        if n == 0:
            continue
        for j in range(q):
            code = np.int64((keys[i, words[j]] >> shifts[j]) & masks[j])
            for level in range(n_levels[j]):
                out[j, level] += n * prices[offsets[j, level] + code]
    return out
