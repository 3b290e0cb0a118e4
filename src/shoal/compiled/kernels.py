"""Numba loops: arrays in, arrays out, no objects.

Each is compiled when first called and cached on disk; each has a NumPy equivalent in its test. The arrays that a loop
fills are made before it is called: a loop that makes them takes twice as long to compile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled_when_long

MIX = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: multiplicative hashing spreads packed keys evenly

DENSE = 1 << 16  # cells of a matrix of counts that fits the processor's cache


def group(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number equal keys alike, by first appearance; return the class of each key, and where each class starts."""
    bits = slot_bits(len(keys))
    slots = np.full(1 << bits, -1, np.int64)
    class_of, firsts = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    n_classes = _number_keys(keys, bits, slots, class_of, firsts)
    return class_of, firsts[:n_classes].copy()


def slot_bits(n: int) -> int:
    """Return the bits of a hash table's slots: at least twice as many as there are keys."""
    return max(4, (2 * n - 1).bit_length())


@compiled_when_long(lambda keys, *_: 3 * len(keys))
def _number_keys(
    keys: NDArray[np.uint64],
    bits: int,
    slots: NDArray[np.int64],
    class_of: NDArray[np.int64],
    firsts: NDArray[np.int64],
) -> int:
    """Apply ``group``; return the number of classes. ``slots``, 2 to the power of ``bits``, are −1."""
    mask = (1 << bits) - 1
    shift = np.uint64(64 - bits)
    n_classes = 0
    for i in range(keys.shape[0]):
        key = keys[i]
        h = np.int64((key * MIX) >> shift)
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
    return n_classes


def sum_by_class(values: NDArray[np.int64], class_of: NDArray[np.int64], n_classes: int) -> NDArray[np.int64]:
    """Sum the ``values`` that belong to the same class."""
    out = np.zeros(n_classes, np.int64)
    _add_by_class(values, class_of, out)
    return out


@compiled_when_long(lambda values, *_: len(values))
def _add_by_class(values: NDArray[np.int64], class_of: NDArray[np.int64], out: NDArray[np.int64]) -> None:
    for i in range(values.shape[0]):
        out[class_of[i]] += values[i]


@compiled_when_long(lambda starts, values, *rest: 4 * len(values) + len(starts) + 3 * len(rest[4]))
def _merge_densely(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    class_of: NDArray[np.int64],
    n_values: int,
    rows_begun: NDArray[np.int32],
    matrix: NDArray[np.int64],
    out_starts: NDArray[np.int64],
    out_values: NDArray[np.int32],
    out_counts: NDArray[np.int64],
) -> None:
    """Apply ``merge_histograms`` by way of ``matrix``, a matrix [class, value] of zeros that fits the cache.

    Its first row is for class −1. ``rows_begun``, zeros, an entry more than there are values, becomes the number of
    rows that begin there: rows are short, and a loop over the entries of each would be mispredicted.
    """
    for i in range(class_of.shape[0]):
        rows_begun[np.uint64(starts[i])] += 1
    row = -1
    for e in range(values.shape[0]):
        row += rows_begun[e]
        matrix[np.uint64((class_of[np.uint64(row)] + 1) * n_values + values[e])] += counts[e]
    end = np.uint64(0)
    at = np.uint64(n_values)
    for c in range(out_starts.shape[0] - 1):
        for v in range(n_values):
            # Written in any case, and overwritten where it is 0: the branch would be unpredictable.
            out_values[end] = v
            out_counts[end] = matrix[at]
            end += np.uint64(matrix[at] != 0)
            at += np.uint64(1)
        out_starts[c + 1] = end


@compiled_when_long(lambda starts, values, *rest: 9 * len(values) + 6 * len(starts))
def _merge_sparsely(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    class_of: NDArray[np.int64],
    next_entry: NDArray[np.int64],
    entry_class: NDArray[np.int64],
    entry_count: NDArray[np.int64],
    first: NDArray[np.int64],
    ends: NDArray[np.int64],
    out_starts: NDArray[np.int64],
    out_values: NDArray[np.int32],
    out_counts: NDArray[np.int64],
) -> None:
    """Apply ``merge_histograms`` by distributing the entries, first by value and then, in that order, by class.

    ``next_entry``, an entry per value, and ``first`` and ``ends``, one per class, each and one more, are 0. Sorting
    the values of every class would take longer, and an array's own sort half a second to compile.
    """
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            first[class_of[i] + 1] += starts[i + 1] - starts[i]
            for e in range(starts[i], starts[i + 1]):
                next_entry[values[e] + 1] += 1
    for v in range(next_entry.shape[0] - 1):
        next_entry[v + 1] += next_entry[v]
    for c in range(first.shape[0] - 1):
        first[c + 1] += first[c]
        ends[c] = first[c]
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            for e in range(starts[i], starts[i + 1]):
                at = np.uint64(next_entry[values[e]])
                next_entry[values[e]] += 1
                entry_class[at] = class_of[i]
                entry_count[at] = counts[e]
    begin = np.int64(0)
    for v in range(next_entry.shape[0] - 1):
        for p in range(begin, next_entry[v]):  # which is now where the entries of the value end
            target = np.uint64(entry_class[p])
            at = np.uint64(ends[target])
            if ends[target] > first[target] and out_values[at - np.uint64(1)] == v:
                out_counts[at - np.uint64(1)] += entry_count[p]
            else:
                out_values[at] = v
                out_counts[at] = entry_count[p]
                ends[target] += 1
        begin = next_entry[v]
    end = 0
    for c in range(first.shape[0] - 1):
        for p in range(first[c], ends[c]):
            out_values[end] = out_values[p]
            out_counts[end] = out_counts[p]
            end += 1
        out_starts[c + 1] = end


def merge_histograms(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    class_of: NDArray[np.int64],
    n_classes: int,
    n_values: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Sum the sparse histograms of rows that belong to the same class; values ascend within a class.

    Rows of class −1 are left out.
    """
    n = len(values)
    out_starts, dense = np.zeros(n_classes + 1, np.int64), n_classes * n_values <= 4 * n + DENSE
    max_entries = min(n_classes * n_values, n) + 1 if dense else n
    out_values, out_counts = np.empty(max_entries, np.int32), np.empty(max_entries, np.int64)
    if dense:
        rows_begun, matrix = np.zeros(n + 1, np.int32), np.zeros((n_classes + 1) * n_values, np.int64)
        _merge_densely(
            starts, values, counts, class_of, n_values, rows_begun, matrix, out_starts, out_values, out_counts
        )
    else:
        next_entry, first, ends = (np.zeros(size + 1, np.int64) for size in (n_values, n_classes, n_classes))
        entry_class, entry_count = np.empty(n, np.int64), np.empty(n, np.int64)
        _merge_sparsely(
            starts,
            values,
            counts,
            class_of,
            next_entry,
            entry_class,
            entry_count,
            first,
            ends,
            out_starts,
            out_values,
            out_counts,
        )
    end = out_starts[-1]
    return out_starts, out_values[:end].copy(), out_counts[:end].copy()


def number_large(
    sizes: NDArray[np.int64], min_size: int, class_of: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the classes of at least ``min_size`` records, and for each row its class's number among them, or −1."""
    number, large = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    out = np.empty(len(class_of), np.int64)
    n = _number_large(sizes, min_size, class_of, number, large, out)
    return large[:n].copy(), out


@compiled_when_long(lambda sizes, _, class_of, *rest: len(sizes) + len(class_of) // 2)
def _number_large(
    sizes: NDArray[np.int64],
    min_size: int,
    class_of: NDArray[np.int64],
    number: NDArray[np.int64],
    large: NDArray[np.int64],
    out: NDArray[np.int64],
) -> int:
    n = 0
    for c in range(sizes.shape[0]):
        number[c] = n if sizes[c] >= min_size else -1
        large[n] = c
        n += sizes[c] >= min_size
    for i in range(class_of.shape[0]):
        out[i] = number[class_of[i]]
    return n


def take_histograms(
    starts: NDArray[np.int64], values: NDArray[np.int32], counts: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the sparse histograms of the given rows."""
    out_starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(starts[rows + 1] - starts[rows], out=out_starts[1:])
    out_values, out_counts = np.empty(out_starts[-1], np.int32), np.empty(out_starts[-1], np.int64)
    _take_histograms(starts, values, counts, rows, out_values, out_counts)
    return out_starts, out_values, out_counts


@compiled_when_long(lambda _, values, counts, rows, *rest: len(rows) + len(rest[0]))
def _take_histograms(
    starts: NDArray[np.int64],
    values: NDArray[np.int32],
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    out_values: NDArray[np.int32],
    out_counts: NDArray[np.int64],
) -> None:
    at = 0
    for r in range(rows.shape[0]):
        for e in range(starts[rows[r]], starts[rows[r] + 1]):
            out_values[at], out_counts[at] = values[e], counts[e]
            at += 1


def too_small(counts: NDArray[np.int64], min_size: int) -> tuple[NDArray[np.bool_], NDArray[np.int64], int]:
    """Return which counts are below ``min_size``, these counts with 0 for the others, and their sum."""
    small, lost = np.empty(len(counts), np.bool_), np.empty(len(counts), np.int64)
    return small, lost, _too_small(counts, min_size, small, lost)


@compiled_when_long(lambda counts, *_: 2 * len(counts))
def _too_small(counts: NDArray[np.int64], min_size: int, small: NDArray[np.bool_], lost: NDArray[np.int64]) -> int:
    total = np.int64(0)
    for i in range(counts.shape[0]):
        small[i] = counts[i] < min_size
        lost[i] = counts[i] if counts[i] < min_size else 0
        total += lost[i]
    return int(total)


def lose_classes(
    counts: NDArray[np.int64],
    large: NDArray[np.int64],
    stays: NDArray[np.bool_],
    passing: NDArray[np.bool_],
    max_staying: NDArray[np.float64],
    min_size: int,
) -> tuple[NDArray[np.bool_], NDArray[np.int64], int, int]:
    """Return which classes fail, how many records of each are lost at every lower node, and the sums of both.

    ``counts`` are the records of all classes. All fail and are lost, except some of the ``large`` ones, which have an
    entry each: those ``passing``, and of those that only ``stays`` marks, a part of at most ``max_staying`` records, in
    their order; a part of fewer than ``min_size`` is lost too.
    """
    failing, lost = np.empty(len(counts), np.bool_), np.empty(len(counts), np.int64)
    n_suppressed, n_lost = _lose_classes(counts, large, stays, passing, max_staying, min_size, failing, lost)
    return failing, lost, n_suppressed, n_lost


@compiled_when_long(lambda counts, large, *_: 2 * len(counts) + 2 * len(large))
def _lose_classes(
    counts: NDArray[np.int64],
    large: NDArray[np.int64],
    stays: NDArray[np.bool_],
    passing: NDArray[np.bool_],
    max_staying: NDArray[np.float64],
    min_size: int,
    failing: NDArray[np.bool_],
    lost: NDArray[np.int64],
) -> tuple[int, int]:
    total = np.int64(0)
    for c in range(counts.shape[0]):
        failing[c] = True
        lost[c] = counts[c]
        total += counts[c]
    n_suppressed = n_lost = total
    torn = 0
    for i in range(large.shape[0]):
        c = large[i]
        stay = np.int64(0)
        if passing[i]:
            stay = counts[c]
            failing[c] = False
            n_suppressed -= stay
        elif stays[i]:
            stay = np.int64(max_staying[torn] + 1e-6)  # rounding must not lose a record that may stay
            torn += 1
        if stay >= min_size:
            lost[c] -= stay
            n_lost -= stay
    return int(n_suppressed), int(n_lost)


def price_levels(
    keys: NDArray[np.uint64],
    weights: NDArray[np.int64],
    levels: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    n_labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    prices: NDArray[np.float64],
    base: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return ``base`` + Σ over rows of weight × price, per column and level: the least for the level or any above it.

    ``keys`` are rows at ``levels``, packed as in ``derive_large``, with a weight each. Above ``levels[j]``, column
    ``j`` has ``base`` alone. Its cells have codes ``x`` below ``n_labels[j, levels[j]]`` and cost
    ``prices[offsets[j, levels[j], l] + x]`` at level ``l``.
    """
    out = base.copy()
    n = len(weights)
    rows, weight, weights_of_codes = np.empty(keys.shape, np.uint64), np.empty(n, np.int64), np.empty(4 * n, np.int64)
    _price_levels(
        keys, weights, levels, words, shifts, masks, n_labels, offsets, prices, rows, weight, weights_of_codes, out
    )
    return out


@compiled_when_long(lambda _, weights, levels, *rest: len(weights) + 4 * np.count_nonzero(weights) * sum(levels + 2))
def _price_levels(
    keys: NDArray[np.uint64],
    weights: NDArray[np.int64],
    levels: NDArray[np.int64],
    words: NDArray[np.int64],
    shifts: NDArray[np.uint64],
    masks: NDArray[np.uint64],
    n_labels: NDArray[np.int64],
    offsets: NDArray[np.int64],
    prices: NDArray[np.float64],
    rows: NDArray[np.uint64],
    weight: NDArray[np.int64],
    weights_of_codes: NDArray[np.int64],
    out: NDArray[np.float64],
) -> None:
    """Apply ``price_levels``; ``rows`` and ``weight`` become those with a nonzero weight."""
    n = 0
    for i in range(weights.shape[0]):
        for w in range(keys.shape[1]):
            rows[n, w] = keys[i, w]
        weight[n] = weights[i]
        n += weights[i] != 0
    four = np.uint64(4)
    for j in range(levels.shape[0]):
        w, at, wide, top = words[j], shifts[j], masks[j], levels[j]
        n_codes = n_labels[j, top]
        if n_codes <= n:
            # Weights per code first, in four alternating sums: consecutive rows often have the same code,
            # and an addition would wait for the previous one.
            for x in range(4 * n_codes):
                weights_of_codes[x] = 0
            for i in range(n):
                weights_of_codes[((rows[i, w] >> at) & wide) * four + np.uint64(i) % four] += weight[i]
            for level in range(top + 1):
                price = prices[offsets[j, top, level] :]
                for x in range(4 * n_codes):
                    out[j, level] += weights_of_codes[x] * price[x >> 2]
        else:
            for level in range(top + 1):
                price = prices[offsets[j, top, level] :]
                for i in range(n):
                    out[j, level] += weight[i] * price[(rows[i, w] >> at) & wide]
        for level in range(top - 1, -1, -1):
            out[j, level] = min(out[j, level], out[j, level + 1])


@compiled_when_long(lambda _, high, barren: barren.size)
def raise_low(low: NDArray[np.int64], high: NDArray[np.int64], barren: NDArray[np.int64]) -> bool:
    """Raise ``low`` to the lowest node up to ``high`` that is not below a ``barren`` one; return whether it exists."""
    for b in range(barren.shape[0]):
        n_over = 0
        for j in range(high.shape[0]):
            if high[j] > barren[b, j]:
                n_over += 1
                column = j
                if n_over == 2:
                    break
        if n_over == 0:
            return False
        if n_over == 1:  # the box sticks out in one column only, so its levels there must
            low[column] = max(low[column], barren[b, column] + 1)
    return True
