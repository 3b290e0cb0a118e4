"""Nodes of the generalization lattice: which classes are too small, what is lost, and bounds on the nodes above."""

from __future__ import annotations

import numpy as np

from shoal.compiled.arrays import Flags, Floats, Ints, Words
from shoal.compiled.jit import compiled_when_long


def number_large(sizes: Ints, min_size: int, class_of: Ints) -> tuple[Ints, Ints]:
    """Return the classes of at least ``min_size`` records, and for each row its class's number among them, or −1."""
    number, large = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    out = np.empty(len(class_of), np.int64)
    n = _number_large(sizes, min_size, class_of, number, large, out)
    return large[:n].copy(), out


@compiled_when_long(lambda sizes, _, class_of, *rest: len(sizes) + len(class_of) // 2)
def _number_large(sizes: Ints, min_size: int, class_of: Ints, number: Ints, large: Ints, out: Ints) -> int:
    n = 0
    for c in range(sizes.shape[0]):
        number[c] = n if sizes[c] >= min_size else -1
        large[n] = c
        n += sizes[c] >= min_size
    for i in range(class_of.shape[0]):
        out[i] = number[class_of[i]]
    return n


def too_small(counts: Ints, min_size: int) -> tuple[Flags, Ints, int]:
    """Return which counts are below ``min_size``, these counts with 0 for the others, and their sum."""
    small, lost = np.empty(len(counts), np.bool_), np.empty(len(counts), np.int64)
    return small, lost, _too_small(counts, min_size, small, lost)


@compiled_when_long(lambda counts, *_: 2 * len(counts))
def _too_small(counts: Ints, min_size: int, small: Flags, lost: Ints) -> int:
    total = np.int64(0)
    for i in range(counts.shape[0]):
        small[i] = counts[i] < min_size
        lost[i] = counts[i] if counts[i] < min_size else 0
        total += lost[i]
    return int(total)


def lose_classes(
    counts: Ints, large: Ints, stays: Flags, passing: Flags, max_staying: Floats, min_size: int
) -> tuple[Flags, Ints, int, int]:
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
    counts: Ints,
    large: Ints,
    stays: Flags,
    passing: Flags,
    max_staying: Floats,
    min_size: int,
    failing: Flags,
    lost: Ints,
) -> tuple[int, int]:
    # All fail; then those that pass, or of which a part may stay, are taken out.
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
    keys: Words,
    weights: Ints,
    levels: Ints,
    words: Ints,
    shifts: Words,
    masks: Words,
    n_labels: Ints,
    offsets: Ints,
    prices: Floats,
    base: Floats,
) -> Floats:
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
    keys: Words,
    weights: Ints,
    levels: Ints,
    words: Ints,
    shifts: Words,
    masks: Words,
    n_labels: Ints,
    offsets: Ints,
    prices: Floats,
    rows: Words,
    weight: Ints,
    weights_of_codes: Ints,
    out: Floats,
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
def raise_low(low: Ints, high: Ints, barren: Ints) -> bool:
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
