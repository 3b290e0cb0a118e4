"""The classes of a node of ``search.py``.

A row is a class under head and tail together: the first place of its interval in every column, and its records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within

OUT, OPEN, IN = 0, 1, 2  # the state of a cut: left out, in the tail, in the head

_MIX = np.uint64(0x9E3779B97F4A7C15)

Places = NDArray[np.int16]  # (rows, columns)
Longs = NDArray[np.int64]
States = NDArray[np.int8]  # (cuts)


@compiled
def number_intervals(
    states: States, min_state: int, first: Longs, sizes: Longs, number: Longs, start: Longs, step: Longs
) -> None:
    """Number the intervals between cuts of at least this state.

    ``number[j, place]`` is the interval of a place, ``start[j, place]`` its first place; ``step[j]`` is what the next
    interval of column j adds to a key.
    """
    product = 1
    for j in range(sizes.shape[0]):
        n = 0
        at = 0
        number[j, 0] = 0
        start[j, 0] = 0
        for position in range(1, sizes[j]):
            if states[first[j] + position - 1] >= min_state:
                n += 1
                at = position
            number[j, position] = n
            start[j, position] = at
        step[j] = product
        product *= n + 1


@compiled_within
def bits_for(n_rows: int) -> int:
    """Return the bits of a slot, so that at most half of the slots are taken."""
    bits = 4
    while (1 << bits) < 2 * n_rows:
        bits += 1
    return bits


@compiled_within
def slot_of_key(key: int, slot_keys: Longs, slots: NDArray[np.int32], bits: int) -> int:
    """Return the slot that holds a key, or the empty one where it belongs."""
    mask = (1 << bits) - 1
    h = np.int64((np.uint64(key) * _MIX) >> np.uint64(64 - bits))
    while slots[h] >= 0 and slot_keys[h] != key:
        h = (h + 1) & mask
    return int(h)


@compiled
def merge_rows(
    from_places: Places,
    from_counts: Longs,
    n_rows: int,
    number: Longs,
    start: Longs,
    step: Longs,
    places: Places,
    counts: Longs,
    keys: Longs,
    slot_keys: Longs,
    slots: NDArray[np.int32],
) -> int:
    """Merge rows in the same intervals; return the number of rows."""
    q = from_places.shape[1]
    bits = bits_for(n_rows)
    slots[: 1 << bits] = -1
    n = 0
    for i in range(n_rows):
        key = 0
        for j in range(q):
            key += step[j] * number[j, from_places[i, j]]
        h = slot_of_key(key, slot_keys, slots, bits)
        if slots[h] >= 0:
            counts[slots[h]] += from_counts[i]
            continue
        slots[h] = n
        slot_keys[h] = key
        keys[n] = key
        counts[n] = from_counts[i]
        for j in range(q):
            places[n, j] = start[j, from_places[i, j]]
        n += 1
    return n


@compiled_within
def in_tail(states: States, first: Longs, j: int) -> bool:
    """Return whether the tail has a cut of the column."""
    cut = first[j]
    while cut < first[j + 1] and states[cut] != 1:
        cut += 1
    return bool(cut < first[j + 1])


@compiled
def head_classes(
    places: Places,
    counts: Longs,
    n_rows: int,
    number: Longs,
    step: Longs,
    slot_keys: Longs,
    slots: NDArray[np.int32],
    class_of: Longs,
    starts: Longs,
    order: Longs,
) -> int:
    """Group the rows by the intervals of the head; class c has the rows ``order[starts[c]:starts[c + 1]]``."""
    bits = bits_for(n_rows)
    slots[: 1 << bits] = -1
    n = 0
    for i in range(n_rows):
        key = 0
        for j in range(places.shape[1]):
            key += step[j] * number[j, places[i, j]]
        h = slot_of_key(key, slot_keys, slots, bits)
        if slots[h] < 0:
            slots[h] = n
            slot_keys[h] = key
            starts[n + 1] = 0
            n += 1
        class_of[i] = slots[h]
        starts[slots[h] + 1] += 1
    starts[0] = 0
    for c in range(n):
        starts[c + 1] += starts[c]
    for i in range(n_rows - 1, -1, -1):  # backwards: the ends become the starts
        c = class_of[i]
        starts[c + 1] -= 1
        order[starts[c + 1]] = i
    for c in range(n):
        starts[c] = starts[c + 1]
    starts[n] = n_rows
    return n
