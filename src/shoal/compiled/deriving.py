"""Loops that derive the classes of coarser levels: packed keys are recoded and grouped in one pass.

As in ``grouping``, the arrays that a loop fills are made before it is called, if it runs often.
"""

from __future__ import annotations

from threading import local

import numpy as np

from shoal.compiled.arrays import Codes, Ints, Words
from shoal.compiled.grouping import MIX, slot_bits
from shoal.compiled.jit import compiled, compiled_when_long, compiled_within
from shoal.compiled.threads import done_in_parts

BLOCK = 512  # rows that are recoded together

PART = 4096  # rows grouped at a time if a table exceeds the processor's cache


def derive(
    keys: Words,
    counts: Ints,
    shifts: Words,
    masks: Words,
    offsets: Ints,
    steps: Words,
    max_keys: int,
    with_classes: bool,
) -> tuple[Words, Ints, Ints]:
    """Recode some columns of rows that are packed into one word each, and group again.

    Returns the new keys, their counts, and the class of each old row (empty unless ``with_classes``). ``keys`` are the
    packed rows and ``counts`` their records. Column ``c`` begins at bit ``shifts[c]`` and its widest code is
    ``masks[c]``; its code ``x`` becomes ``steps[offsets[c] + x]``, or 0 if the offset is negative. At most ``max_keys``
    keys are different, which keeps the hash table small.
    """
    q = len(shifts)
    lower, upper = np.zeros(q, np.int64), np.ones(q, np.int64)
    n_labels, begins = np.ones((q, 2), np.int64), np.zeros((q, 2, 2), np.int64)
    n_labels[:, 1] += offsets >= 0
    begins[:, 0, 1] = offsets
    return derive_node(
        keys, counts, lower, upper, shifts, masks, n_labels, begins, steps, with_classes, max_keys, max_keys
    )


def derive_in_halves(
    keys: Words,
    counts: Ints,
    shifts: Words,
    masks: Words,
    offsets: Ints,
    steps: Words,
    max_keys: int,
    with_classes: bool,
) -> tuple[Words, Ints, Ints]:
    """Apply ``derive`` to many rows with few different keys: to each half on its own core, then to the two results.

    The keys come in the same order: those of the first half as they appear there, then the others.
    """
    middle = len(keys) // 2
    (keys_of_first, sums_of_first, class_of_row), (keys_of_second, sums_of_second, classes_of_second) = done_in_parts(
        lambda half: derive(*half, shifts, masks, offsets, steps, max_keys, with_classes),
        [(keys[:middle], counts[:middle]), (keys[middle:], counts[middle:])],
    )
    keys, counts = np.concatenate([keys_of_first, keys_of_second]), np.concatenate([sums_of_first, sums_of_second])
    # No column is recoded again.
    merged_keys, sums_of_first, number = derive(
        keys, counts, shifts[:0], masks[:0], offsets[:0], steps, max_keys, with_classes
    )
    if with_classes:
        class_of_row = np.concatenate(
            [number[: len(keys_of_first)][class_of_row], number[len(keys_of_first) :][classes_of_second]]
        )
    return merged_keys, sums_of_first, class_of_row


def derive_node(
    keys: Words,
    counts: Ints,
    from_levels: Ints,
    to_levels: Ints,
    shifts: Words,
    masks: Words,
    n_labels: Ints,
    offsets: Ints,
    steps: Words,
    with_classes: bool,
    max_keys: int,
    other_combinations: int = 1,
) -> tuple[Words, Ints, Ints]:
    """Apply ``derive`` from the levels ``from_levels`` to the levels ``to_levels``.

    ``keys``, ``counts``, ``shifts``, ``masks`` and ``steps`` are as in ``derive``, with an entry for every column. The
    step of column ``c`` from level ``a`` to level ``b`` begins at ``offsets[c, a, b]``; level ``b`` has
    ``n_labels[c, b]`` codes; if it has only one, that is 0. At most ``max_keys`` keys are different, which
    decides on the memory that is used. Columns that are not listed have at most ``other_combinations`` combinations.
    """
    slots, rows, out, sums = _buffers.for_keys(min(max_keys, len(keys)))
    class_of = np.empty(len(keys) if with_classes else 0, np.int64)
    n_classes = _derive(
        *(keys, counts, from_levels, to_levels, shifts, masks, n_labels, offsets, steps, other_combinations),
        *(slots, rows, out, sums, class_of),
    )
    return out[:n_classes].copy(), sums[:n_classes].copy(), class_of


_Buffers = tuple[Codes, Words, Words, Ints]
MAX_KEPT_KEYS = 1 << 18  # keys up to which the memory is kept: 6 MB a thread


class _ScratchBuffers(local):
    """Per-thread scratch buffers for ``_derive``."""

    def __init__(self) -> None:
        self._capacity = -1

    def for_keys(self, max_keys: int) -> _Buffers:
        """Return slots for so many different keys, a block of rows, the keys and their counts, one more of each."""
        if max_keys > MAX_KEPT_KEYS:
            return _new_buffers(max_keys)
        if max_keys > self._capacity:
            self._arrays, self._capacity = _new_buffers(max_keys), max_keys
        return self._arrays


def _new_buffers(max_keys: int) -> _Buffers:
    rows, out, sums = (np.empty(size, np.uint64) for size in (BLOCK, max_keys + 1, max_keys + 1))
    return np.empty(1 << slot_bits(max_keys), np.int32), rows, out, sums.view(np.int64)


_buffers = _ScratchBuffers()


@compiled_when_long(lambda keys, _, from_levels, *rest: len(keys) * (5 + len(from_levels)) + 9 * len(from_levels))
def _derive(
    keys: Words,
    counts: Ints,
    from_levels: Ints,
    to_levels: Ints,
    shifts: Words,
    masks: Words,
    n_labels: Ints,
    offsets: Ints,
    steps: Words,
    other_combinations: int,
    slots: Codes,
    rows: Words,
    out: Words,
    sums: Ints,
    class_of: Ints,
) -> int:
    """Apply ``derive_node``; return the number of different keys.

    Rows are processed in blocks, column by column: a loop over one column consists of loads and shifts that run in
    parallel. Indices are unsigned: they need no check for negative ones, which would cost as much as the loop itself.
    """
    n = keys.shape[0]
    # Which bits stay, and how many keys there can be: the hash table is cleared for no more.
    kept_bits = ~np.uint64(0)
    labels = min(n, other_combinations)
    for c in range(from_levels.shape[0]):
        labels = min(n, labels * n_labels[c, to_levels[c]])
        if from_levels[c] != to_levels[c]:
            kept_bits &= ~(masks[c] << shifts[c])
    bits = 4
    while (1 << bits) < 2 * labels and (1 << bits) < slots.shape[0]:
        bits += 1
    for i in range(1 << bits):
        slots[i] = -1
    mask = np.uint64((1 << bits) - 1)
    shift = np.uint64(64 - bits)
    n_classes = np.uint64(0)
    for first in range(0, n, BLOCK):
        old = keys[first : first + BLOCK]
        number = counts[first : first + BLOCK]
        for i in range(old.shape[0]):
            rows[i] = old[i] & kept_bits
        for c in range(from_levels.shape[0]):
            if from_levels[c] == to_levels[c] or n_labels[c, to_levels[c]] == 1:
                continue
            at, wide = shifts[c], masks[c]
            step = steps[offsets[c, from_levels[c], to_levels[c]] :]
            for i in range(old.shape[0]):
                rows[i] |= step[(old[i] >> at) & wide] << at
        for i in range(old.shape[0]):
            # Each row is recorded as if it began a class, and an empty slot stands for that class: whether it
            # does begin one is unpredictable, and a wrong branch prediction costs more than all this.
            key = rows[i]
            out[n_classes] = key
            sums[n_classes] = 0
            h = (key * MIX) >> shift
            while True:
                slot = slots[h]
                class_of_key = n_classes if slot < 0 else np.uint64(slot)
                if out[class_of_key] == key:
                    break
                h = (h + np.uint64(1)) & mask
            slots[h] = class_of_key
            sums[class_of_key] += number[i]
            n_classes += np.uint64(slot < 0)
            if class_of.shape[0] > 0:
                class_of[first + i] = class_of_key
    return int(n_classes)


@compiled_within
def _recode_block(
    old: Words, words: Ints, shifts: Words, masks: Words, offsets: Ints, steps: Words, rows: Words, hashes: Words
) -> None:
    """Recode some columns of a block of rows of several words each, and hash the result.

    ``old`` are the rows; column ``c`` is in word ``words[c]``, and ``shifts``, ``masks``, ``offsets`` and ``steps`` are
    as in ``derive``. The recoded rows go to ``rows``, their hashes to ``hashes``.
    """
    n_words = old.shape[1]
    for i in range(old.shape[0]):
        for w in range(n_words):
            rows[i, w] = old[i, w]
    for c in range(words.shape[0]):
        w, at, wide = words[c], shifts[c], masks[c]
        other_bits = ~(wide << at)
        step = steps[offsets[c] :]
        for i in range(old.shape[0]):
            rows[i, w] = (rows[i, w] & other_bits) | (step[(rows[i, w] >> at) & wide] << at)
    for i in range(old.shape[0]):
        hashes[i] = rows[i, 0] * MIX
    for w in range(1, n_words):
        for i in range(old.shape[0]):
            hashes[i] = ((hashes[i] ^ (hashes[i] >> np.uint64(29))) + rows[i, w]) * MIX


@compiled
def derive_large(
    keys: Words,
    counts: Ints,
    words: Ints,
    shifts: Words,
    masks: Words,
    offsets: Ints,
    steps: Words,
    with_classes: bool,
    share: int,
    share_bits: int,
) -> tuple[Words, Ints, Ints]:
    """Apply ``derive`` to keys of several words, column ``c`` in ``words[c]``, and to tables larger than the cache.

    ``counts``, ``shifts``, ``masks``, ``offsets``, ``steps`` and ``with_classes`` are as in ``derive``. Only the rows
    whose hash begins with the ``share_bits`` of ``share`` are processed.

    One hash table of millions of slots misses the cache with every row. So rows are first distributed by the next bits
    of their hash into parts of a few thousand, in order, and each part is grouped by a table that fits. Shares have no
    class in common, so each can be processed by a separate thread; rows of other shares get class −1.

    Rows are recoded twice, to count the parts and to distribute them: that costs less than storing the result.
    """
    n_rows, n_words = keys.shape
    part_bits = 1
    while (n_rows >> (part_bits + share_bits)) > PART:
        part_bits += 1
    n_parts = 1 << part_bits
    unit, mine = np.uint64(1), np.uint64(share)
    share_shift, part_shift = np.uint64(63 - share_bits), np.uint64(64 - part_bits)
    left = np.uint64(share_bits)
    block = 512
    rows = np.empty((block, n_words), np.uint64)
    hashes = np.empty(block, np.uint64)
    # How many rows of this share each part has, and from that where each part ends.
    ends = np.zeros(n_parts + 1, np.int64)
    for first in range(0, n_rows, block):
        old = keys[first : first + block]
        _recode_block(old, words, shifts, masks, offsets, steps, rows, hashes)
        for i in range(old.shape[0]):
            ends[((hashes[i] << left) >> part_shift) + unit] += (hashes[i] >> unit) >> share_shift == mine
    largest = np.int64(ends.max())
    for p in range(n_parts):
        ends[p + 1] += ends[p]
    n = ends[n_parts]
    # Rows of other shares are all written to one place beyond the end, because branches would be unpredictable.
    out = np.empty((n + 1, n_words), np.uint64)
    sums = np.empty(n + 1, np.int64)
    from_row = np.empty(n + 1 if with_classes else 0, np.int64)
    # Rows are written to their parts, in order.
    next_row = ends[:n_parts].copy()
    for first in range(0, n_rows, block):
        old = keys[first : first + block]
        number = counts[first : first + block]
        _recode_block(old, words, shifts, masks, offsets, steps, rows, hashes)
        for i in range(old.shape[0]):
            in_share = (hashes[i] >> unit) >> share_shift == mine
            part = (hashes[i] << left) >> part_shift
            target = np.uint64(next_row[part] if in_share else n)
            next_row[part] += in_share
            for w in range(n_words):
                out[target, w] = rows[i, w]
            sums[target] = number[i]
            if with_classes:
                from_row[target] = first + i
    # Each part is grouped by one hash table that fits the cache, large enough for the largest.
    bits = 4
    while (1 << bits) < 2 * largest:
        bits += 1
    mask = np.uint64((1 << bits) - 1)
    slots = np.empty(1 << bits, np.int32)
    class_of = np.full(n_rows if with_classes else 0, -1, np.int64)
    # Classes overwrite the rows they are made from: there are never more classes than rows read.
    n_classes = np.uint64(0)
    for p in range(n_parts):
        slots[:] = -1
        for first in range(ends[p], ends[p + 1], block):
            old = out[first : min(first + block, ends[p + 1])]
            _recode_block(old, words[:0], shifts[:0], masks[:0], offsets[:0], steps, rows, hashes)
            for i in range(old.shape[0]):
                number_of = sums[first + i]
                for w in range(n_words):
                    out[n_classes, w] = rows[i, w]
                sums[n_classes] = 0
                h = (hashes[i] << (left + np.uint64(part_bits))) >> np.uint64(64 - bits)
                while True:
                    slot = slots[h]
                    class_of_key = n_classes if slot < 0 else np.uint64(slot)
                    equal = True
                    for w in range(n_words):
                        equal &= out[class_of_key, w] == rows[i, w]
                    if equal:
                        break
                    h = (h + unit) & mask
                slots[h] = class_of_key
                sums[class_of_key] += number_of
                n_classes += np.uint64(slot < 0)
                if with_classes:
                    class_of[from_row[first + i]] = class_of_key
    return out[:n_classes], sums[:n_classes], class_of


def unpack(keys: Words, words: Ints, shifts: Words, masks: Words) -> Codes:
    """Return the codes of each key, column ``c`` from ``words[c]``."""
    out = np.empty((len(keys), len(words)), np.int32)
    _unpack(keys, words, shifts, masks, out)
    return out


@compiled_when_long(lambda keys, words, *_: len(keys) * len(words))
def _unpack(keys: Words, words: Ints, shifts: Words, masks: Words, out: Codes) -> None:
    for i in range(keys.shape[0]):
        for c in range(words.shape[0]):
            out[i, c] = (keys[i, words[c]] >> shifts[c]) & masks[c]
