"""The loops of ``threshold.py``: classes of a node, what each cut costs to leave out, which cuts exclude each other.

A row is a class under head and tail together: the first place of its interval in every column, and its records.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.table.jit import compiled, compiled_within

OUT, OPEN, IN = 0, 1, 2  # the state of a cut: left out, in the tail, in the head

_MIX = np.uint64(0x9E3779B97F4A7C15)

Places = NDArray[np.int16]  # (rows, columns)
Longs = NDArray[np.int64]
States = NDArray[np.int8]  # (cuts)


@compiled
def number_intervals(
    states: States, least: int, first: Longs, sizes: Longs, number: Longs, start: Longs, step: Longs
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
        for place in range(1, sizes[j]):
            if states[first[j] + place - 1] >= least:
                n += 1
                at = place
            number[j, place] = n
            start[j, place] = at
        step[j] = product
        product *= n + 1


@compiled_within
def _bits_for(n_rows: int) -> int:
    """Return the bits of a slot, so that at most half of the slots are taken."""
    bits = 4
    while (1 << bits) < 2 * n_rows:
        bits += 1
    return bits


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
) -> tuple[int, int]:
    """Merge rows in the same intervals; return the number of rows, and the slots' bits."""
    q = from_places.shape[1]
    bits = _bits_for(n_rows)
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots[: 1 << bits] = -1
    n = 0
    for i in range(n_rows):
        key = 0
        for j in range(q):
            key += step[j] * number[j, from_places[i, j]]
        h = np.int64((np.uint64(key) * _MIX) >> shift)
        while slots[h] >= 0 and slot_keys[h] != key:
            h = (h + 1) & mask
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
    return n, bits


@compiled_within
def _in_tail(states: States, first: Longs, j: int) -> bool:
    """Return whether the tail has a cut of the column."""
    return bool((states[first[j] : first[j + 1]] == 1).any())


@compiled
def removal_costs(
    places: Places,
    counts: Longs,
    keys: Longs,
    n_rows: int,
    states: States,
    first: Longs,
    step: Longs,
    slot_keys: Longs,
    slots: NDArray[np.int32],
    bits: int,
    k: int,
    out: Longs,
) -> None:
    """Return in ``out``, per cut of the tail, what it adds to Σ n·max(n, k) to leave out this cut alone."""
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    out[:] = 0
    for j in range(places.shape[1]):
        if not _in_tail(states, first, j):
            continue
        for i in range(n_rows):
            place = places[i, j]
            if place == 0 or states[first[j] + place - 1] != 1:
                continue
            key = keys[i] - step[j]  # the same intervals, but for the one before in this column
            h = np.int64((np.uint64(key) * _MIX) >> shift)
            while slots[h] >= 0 and slot_keys[h] != key:
                h = (h + 1) & mask
            if slots[h] >= 0:
                a, b = counts[i], counts[slots[h]]
                out[first[j] + place - 1] += (a + b) * max(a + b, k) - a * max(a, k) - b * max(b, k)


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
    bits = _bits_for(n_rows)
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    slots[: 1 << bits] = -1
    n = 0
    for i in range(n_rows):
        key = 0
        for j in range(places.shape[1]):
            key += step[j] * number[j, places[i, j]]
        h = np.int64((np.uint64(key) * _MIX) >> shift)
        while slots[h] >= 0 and slot_keys[h] != key:
            h = (h + 1) & mask
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


@compiled
def single_losses(
    places: Places,
    counts: Longs,
    starts: Longs,
    order: Longs,
    n_classes: int,
    states: States,
    first: Longs,
    k: int,
    sizes: Longs,
    lost: Longs,
    splits: Longs,
) -> tuple[int, int]:
    """Return the records in classes below k, and the discernibility of the others.

    Of each cut of the tail: the records that are ``lost`` if it splits the other classes, and the ``splits`` with a
    part that is not.
    """
    gone = 0
    kept = 0
    lost[:] = 0
    splits[:] = 0
    open_columns = np.array([j for j in range(places.shape[1]) if _in_tail(states, first, j)], np.int64)
    for c in range(n_classes):
        total = 0
        for r in range(starts[c], starts[c + 1]):
            total += counts[order[r]]
        if total < k:
            gone += total
            continue
        kept += total * total
        for j in open_columns:
            low = places[order[starts[c]], j]
            high = low
            for r in range(starts[c], starts[c + 1]):
                i = order[r]
                place = places[i, j]
                sizes[place] += counts[i]
                low = min(low, place)
                high = max(high, place)
            left = sizes[low]
            sizes[low] = 0
            for place in range(low + 1, high + 1):
                v = first[j] + place - 1
                if states[v] == 1:
                    if left < k:
                        lost[v] += left
                    if total - left < k:
                        lost[v] += total - left
                    if left >= k or total - left >= k:
                        splits[v] += 1
                left += sizes[place]
                sizes[place] = 0
    return gone, kept


@compiled_within
def _if_lost(size: int, k: int) -> int:
    """Return the size of a part that is lost, 0 for one that is not."""
    return size if size < k else 0


@compiled_within
def _add_to_pairs(
    more: int, first_a: int, gap_a: Longs, first_b: int, gap_b: Longs, states: States, out: Longs
) -> None:
    """Add to all pairs of cuts of the tail, one in each of two gaps between places."""
    for u in range(first_a + gap_a[0], first_a + gap_a[1]):
        if states[u] == 1:
            for v in range(first_b + gap_b[0], first_b + gap_b[1]):
                if states[v] == 1:
                    out[u, v] += more
                    out[v, u] += more


@compiled
def pair_losses(
    places: Places,
    counts: Longs,
    starts: Longs,
    order: Longs,
    n_classes: int,
    states: States,
    first: Longs,
    k: int,
    sizes: Longs,
    local: Longs,
    there: Longs,
    grid: Longs,
    lost: Longs,
    out: Longs,
) -> None:
    """Return in ``out``, for each two cuts of the tail, the records that are lost if both split the classes."""
    q = places.shape[1]
    for u in range(lost.shape[0]):
        for v in range(lost.shape[0]):
            out[u, v] = lost[u] + lost[v]
    n_there = np.zeros(q, np.int64)
    for c in range(n_classes):
        a0, a1 = starts[c], starts[c + 1]
        total = 0
        for r in range(a0, a1):
            total += counts[order[r]]
        if total < k:
            continue
        for j in range(q):  # the places that occur in this class: cuts between the same two do the same here
            low = places[order[a0], j]
            high = low
            for r in range(a0, a1):
                place = places[order[r], j]
                sizes[place] = 1
                low = min(low, place)
                high = max(high, place)
            n = 0
            for place in range(low, high + 1):
                if sizes[place]:
                    sizes[place] = 0
                    local[j, place] = n
                    there[j, n] = place
                    n += 1
            n_there[j] = n
        for i in range(q):
            m = n_there[i]
            if m < 2:
                continue
            grid[0, :m] = 0
            for r in range(a0, a1):
                grid[0, local[i, places[order[r], i]]] += counts[order[r]]
            left = 0
            for a in range(m - 1):  # cuts after place a and after place b of the same column
                left += grid[0, a]
                middle = 0
                once = _if_lost(left, k) + _if_lost(total - left, k)
                if once:  # two cuts after place a do the same
                    for u in range(first[i] + there[i, a], first[i] + there[i, a + 1]):
                        out[u, first[i] + there[i, a] : first[i] + there[i, a + 1]] -= once
                for b in range(a + 1, m - 1):
                    middle += grid[0, b]
                    right = total - left - middle
                    more = _if_lost(left, k) + _if_lost(middle, k) + _if_lost(right, k)
                    more -= once + _if_lost(left + middle, k) + _if_lost(right, k)
                    if more:
                        _add_to_pairs(more, first[i], there[i, a : a + 2], first[i], there[i, b : b + 2], states, out)
            for j in range(i + 1, q):
                w = n_there[j]
                if w < 2:
                    continue
                grid[:m, :w] = 0
                for r in range(a0, a1):
                    row = order[r]
                    grid[local[i, places[row, i]], local[j, places[row, j]]] += counts[row]
                for a in range(m):
                    along = 0
                    for b in range(w):
                        along += grid[a, b]
                        grid[a, b] = along + (grid[a - 1, b] if a else 0)
                for a in range(m - 1):
                    low_a = grid[a, w - 1]
                    for b in range(w - 1):
                        low_b = grid[m - 1, b]
                        both = grid[a, b]
                        rest = total - low_a - low_b + both
                        more = (
                            _if_lost(both, k)
                            + _if_lost(low_a - both, k)
                            + _if_lost(low_b - both, k)
                            + _if_lost(rest, k)
                        )
                        if more or low_a < k or low_b < k or total - low_a < k or total - low_b < k:
                            more -= _if_lost(low_a, k) + _if_lost(total - low_a, k)
                            more -= _if_lost(low_b, k) + _if_lost(total - low_b, k)
                            if more:
                                _add_to_pairs(
                                    more, first[i], there[i, a : a + 2], first[j], there[j, b : b + 2], states, out
                                )


@compiled
def pay_conflicts(tail: Longs, excludes: NDArray[np.bool_], costs: Longs, left: Longs) -> int:
    """Of every two cuts that exclude each other, one is left out: return what that costs at the least.

    Every such pair is paid an amount, and no cut pays more to all of its pairs than it costs to leave it out:
    whatever is left out then costs at least the sum. ``left`` is what remains of each cut's cost. Expensive pairs are
    paid first.
    """
    order = tail[np.argsort(-costs[tail], kind="mergesort")]
    left[:] = costs
    paid = 0
    for a in range(1, order.shape[0]):
        v = order[a]
        for b in range(a):
            if left[v] <= 0:
                break
            u = order[b]
            if excludes[u, v] and left[u] > 0:
                y = min(left[u], left[v])
                left[u] -= y
                left[v] -= y
                paid += y
    return paid
