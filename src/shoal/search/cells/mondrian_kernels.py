"""The kernels with which Mondrian splits regions. Arrays in, arrays out; each has a plain version in its test.

A region is a run of parts, each some records of one row. A dimension is a column: values have ranks, in the order of
a tree's leaves from left to right, or in the order that a column cut at its median has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_when_long, compiled_within

Int = int | np.integer[Any]

RANGE, ENTROPY, GAIN = 0, 1, 2  # which dimension is tried first
BINS = 128
FAR = 1 << 31  # beyond every rank
CLEARLY_GREATER = (
    1 + 1e-9
)  # a score is greater only if it exceeds rounding errors; among ties, the first column is taken

# All loops are plain: slices, np.argmax and similar functions would triple the compile time.


class Dimensions(NamedTuple):
    """The columns, end to end: column j has ``sizes[j]`` ranks."""

    trees: NDArray[np.bool_]  # (columns)  split label by label; else cut between two values
    sizes: NDArray[np.int64]  # (columns)
    ends: NDArray[np.int64]  # (columns)  ranks from here on, such as nulls, are in no range
    weights: NDArray[np.float64]  # (columns)
    ranks_at: NDArray[np.int64]  # (columns)  where its ranks begin in lower and upper
    lower: NDArray[np.float64]  # (ranks)  a range from rank a to rank b costs upper[b] − lower[a]
    upper: NDArray[np.float64]  # (ranks)
    levels_at: NDArray[np.int64]  # (columns)  where its levels begin in labels and shares, one row of ranks for each
    labels: NDArray[np.int32]
    shares: NDArray[np.float64]


class Region(NamedTuple):
    """A run of consecutive parts, and its number of records."""

    codes: NDArray[np.int32]  # (all parts, columns)
    counts: NDArray[np.int64]  # (all parts)
    first: Int
    last: Int  # the part after the last
    n: Int


class SplitRule(NamedTuple):
    """The conditions that a split must satisfy."""

    min_records: Int  # records on every side
    parting: bool  # whether records of one part may go to two sides


class Sides(NamedTuple):
    """A split: each part's side, and its records that go to side 0 instead."""

    side: NDArray[np.int32]
    lent: NDArray[np.int64]


@compiled_within
def _common(dimensions: Dimensions, j: Int, low: Int, high: Int) -> int:
    """Return the lowest level on which two ranks, and thus all between them, share a label."""
    level = 0
    at = dimensions.levels_at[j]
    while dimensions.labels[at + low] != dimensions.labels[at + high]:
        at += dimensions.sizes[j]
        level += 1
    return level


@compiled_within
def _price(dimensions: Dimensions, j: Int, low: Int, high: Int) -> float:
    """Return the loss of a cell that covers all ranks from ``low`` to ``high``."""
    if dimensions.trees[j]:
        return float(
            dimensions.weights[j]
            * dimensions.shares[dimensions.levels_at[j] + _common(dimensions, j, low, high) * dimensions.sizes[j] + low]
        )
    if low < high and high >= dimensions.ends[j]:
        return float(dimensions.weights[j])
    return float(
        dimensions.weights[j]
        * (dimensions.upper[dimensions.ranks_at[j] + high] - dimensions.lower[dimensions.ranks_at[j] + low])
    )


@compiled_within
def _entropy(region: Region, j: Int, rank_counts: NDArray[np.int64]) -> float:
    """Return the entropy of a column in a region; ``rank_counts`` is zero before and after."""
    codes, counts, first, last, n = region
    for i in range(first, last):
        rank_counts[codes[i, j]] += counts[i]
    entropy = 0.0
    for i in range(first, last):
        share = rank_counts[codes[i, j]] / n
        if share > 0:
            entropy -= share * np.log(share)
            rank_counts[codes[i, j]] = 0
    return entropy


@compiled_within
def _median(region: Region, j: Int, low: Int, high: Int, bins: NDArray[np.int64]) -> tuple[Int, Int, Int]:
    """Return the lowest rank that half of the records do not exceed, and the records below it and up to it."""
    codes, counts, first, last, n = region
    # Histogram with at most BINS bins of equal width; narrow to the bin of the median until its width is 1.
    below = np.int64(0)
    while True:
        width = (high - low) // BINS + 1
        for b in range((high - low) // width + 1):
            bins[b] = 0
        for i in range(first, last):
            code = np.int64(codes[i, j])
            if low <= code <= high:
                bins[(code - low) // width] += counts[i]
        at = 0
        while 2 * (below + bins[at]) < n:
            below += bins[at]
            at += 1
        if width == 1:
            return low + at, below, below + bins[at]
        low += at * width
        if high > low + width - 1:
            high = low + width - 1


@compiled_within
def _lend(region: Region, j: Int, low: Int, high: Int, total: Int, amount: Int, lent: NDArray[np.int64]) -> None:
    """Move ``amount`` of the ``total`` records with these ranks to the other side, proportionally from every part."""
    codes, counts, first, last, _ = region
    passed, n_lent = np.int64(0), np.int64(0)
    for i in range(first, last):
        if low <= codes[i, j] <= high:
            passed += counts[i]
            due = np.int64(passed * (amount / total)) - n_lent
            # Despite rounding, never take too many, nor leave more to take than there are records to come.
            must, may = amount - n_lent - (total - passed), amount - n_lent
            due = must if due < must else due
            due = may if due > may else due
            lent[i] = counts[i] if due > counts[i] else (0 if due < 0 else due)
            n_lent += lent[i]


@compiled_within
def _cut(region: Region, j: Int, low: Int, high: Int, rule: SplitRule, sides: Sides, bins: NDArray[np.int64]) -> int:
    """Cut into two sides as evenly as possible; return their number, 0 if one would be too small.

    If records of one part may go to two sides, those at the median fill up the larger of the sides that are too small.
    """
    codes, _, first, last, n = region
    min_records, side, lent = rule.min_records, sides.side, sides.lent
    median, below, upto = _median(region, j, low, high, bins)
    above = n - upto
    if below < min_records and above < min_records:
        if not rule.parting:
            return 0
        for i in range(first, last):
            small = codes[i, j] < median if below > above else codes[i, j] > median
            side[i] = 0 if small else 1
            lent[i] = 0
        missing = min_records - (below if below > above else above)
        _lend(region, j, median, median, upto - below, missing, lent)
        return 2
    if above < below:  # the cut below the median is the more even one
        median -= 1
    for i in range(first, last):
        lent[i] = 0
        side[i] = 1 if codes[i, j] > median else 0
    return 2


@compiled_within
def _children(
    labels: NDArray[np.int32], at: Int, region: Region, j: Int, rule: SplitRule, sides: Sides,
    label_counts: NDArray[np.int64], side_of: NDArray[np.int32],
) -> int:  # fmt: skip
    """Make a side of each label, ``labels[at + rank]``; labels that are too small share one side.

    If that side is still too small, it is joined with the smallest other one or, if records of one part may go to two
    sides, filled up with records of the largest.
    """
    codes, counts, first, last, _ = region
    min_records, side, lent = rule.min_records, sides.side, sides.lent
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        label_counts[label] += counts[i]
        side_of[label] = -1
        lent[i] = 0
    n_sides, rest, smallest, largest = 1, np.int64(0), -1, -1
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        if side_of[label] >= 0:
            continue
        if label_counts[label] < min_records:
            side_of[label] = 0
            rest += label_counts[label]
            continue
        side_of[label] = n_sides
        n_sides += 1
        if smallest < 0 or label_counts[label] < label_counts[smallest]:
            smallest = label
        if largest < 0 or label_counts[label] > label_counts[largest]:
            largest = label
    if 0 < rest < min_records and smallest >= 0:
        if rule.parting and label_counts[largest] - (min_records - rest) >= min_records:
            low, high = np.int64(FAR), np.int64(-1)  # the ranks of a label are consecutive
            for i in range(first, last):
                code = np.int64(codes[i, j])
                if labels[at + code] == largest:
                    low = code if code < low else low
                    high = code if code > high else high
            _lend(region, j, low, high, label_counts[largest], min_records - rest, lent)
        else:
            n_sides -= 1
            merged_side = side_of[smallest]
            for i in range(first, last):  # once per label: setting ``label_counts`` to 0 marks it as done
                label = labels[at + codes[i, j]]
                if label_counts[label] > 0:
                    label_counts[label] = 0
                    if side_of[label] > merged_side:
                        side_of[label] -= 1
            side_of[smallest] = 0
    empty = 0 if rest > 0 else 1
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        label_counts[label] = 0
        side[i] = side_of[label] - empty
    return n_sides - empty


@compiled_within
def _widen(codes: NDArray[np.int32], i: Int, s: Int, low: NDArray[np.int64], high: NDArray[np.int64]) -> None:
    """Extend the bounds of a side to include a part."""
    for j in range(codes.shape[1]):
        code = np.int64(codes[i, j])
        if code < low[s, j]:
            low[s, j] = code
        if code > high[s, j]:
            high[s, j] = code


@compiled_within
def _gain(
    dimensions: Dimensions, region: Region, price: float, sides: Sides, n_sides: int, sizes: NDArray[np.int64],
    low: NDArray[np.int64], high: NDArray[np.int64],
) -> float:  # fmt: skip
    """Return the reduction in the loss of all cells per bit of information that a split uses."""
    codes, counts, first, last, n = region
    side, lent = sides
    q = codes.shape[1]
    for s in range(n_sides):
        sizes[s] = 0
        for j in range(q):
            low[s, j], high[s, j] = FAR, -1
    for i in range(first, last):
        sizes[side[i]] += counts[i]
        if lent[i] > 0:
            sizes[side[i]] -= lent[i]
            sizes[0] += lent[i]
            _widen(codes, i, np.int32(0), low, high)
        if lent[i] < counts[i]:
            _widen(codes, i, side[i], low, high)
    gain, bits = n * price, 0.0
    for s in range(n_sides):
        bits -= sizes[s] * np.log2(sizes[s] / n)
        for j in range(q):
            gain -= sizes[s] * _price(dimensions, j, low[s, j], high[s, j])
    return gain / bits


@compiled_within
def _greatest(score: NDArray[np.float64]) -> int:
    """Return the column with the largest score; among ties, the first."""
    best = 0
    for j in range(1, score.shape[0]):
        if score[j] >= 0 and score[j] > score[best] * CLEARLY_GREATER:
            best = j
    return best


class Trial(NamedTuple):
    """Room for trying splits; ``widest`` is the largest number of ranks of a column, and at least that of the bins."""

    trial: Sides
    score: NDArray[np.float64]  # (columns)
    whole: NDArray[np.int64]  # (2, columns)  the least and the greatest rank of a region
    rank_counts: NDArray[np.int64]  # (widest)  zero between calls
    bins: NDArray[np.int64]  # (widest)
    sizes: NDArray[np.int64]  # (widest)
    low: NDArray[np.int64]  # (widest, columns)
    high: NDArray[np.int64]  # (widest, columns)
    side_of: NDArray[np.int32]  # (widest)


def proposed(
    dimensions: Dimensions,
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    tried: NDArray[np.bool_],
    min_records: Int,
    by: int,
    parting: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the split to try per region: each part's side, its records that go to side 0, sides and column.

    Region r owns the parts ``starts[r]`` … ``starts[r+1]``. It has 0 sides if no column that is
    not yet ``tried`` can be split with at least ``min_records`` records on every side.
    """
    (n_parts, q), n_regions = codes.shape, len(starts) - 1
    widest = max(BINS, int(dimensions.sizes.max(initial=0)) + 1)
    sides = Sides(np.zeros(n_parts, np.int32), np.zeros(n_parts, np.int64))
    n_sides, column = np.zeros(n_regions, np.int64), np.zeros(n_regions, np.int64)
    rank_counts, bins, sizes = (np.zeros(widest, np.int64) for _ in range(3))
    whole, low, high = (np.zeros((n, q), np.int64) for n in (2, widest, widest))
    trial = Sides(np.zeros(n_parts, np.int32), np.zeros(n_parts, np.int64))
    room = Trial(trial, np.zeros(q), whole, rank_counts, bins, sizes, low, high, np.zeros(widest, np.int32))
    _propose(
        dimensions, codes, counts, starts, tried, SplitRule(int(min_records), parting), by, room, sides, n_sides, column
    )
    return sides.side, sides.lent, n_sides, column


@compiled
def _propose(
    dimensions: Dimensions,
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    tried: NDArray[np.bool_],
    rule: SplitRule,
    by: int,
    room: Trial,
    sides: Sides,
    n_sides: NDArray[np.int64],
    column: NDArray[np.int64],
) -> None:
    """Apply ``proposed``; all that it fills is made before, since that would take longer to compile."""
    trial, score, whole, rank_counts, bins, sizes, low, high, side_of = room
    min_records, q = rule.min_records, codes.shape[1]
    for r in range(starts.shape[0] - 1):
        column[r] = -1
        first, last = starts[r], starts[r + 1]
        n = np.int64(0)
        for j in range(q):
            whole[0, j], whole[1, j] = FAR, -1
        for i in range(first, last):
            n += counts[i]
            for j in range(q):
                code = np.int64(codes[i, j])
                whole[0, j] = code if code < whole[0, j] else whole[0, j]
                whole[1, j] = code if code > whole[1, j] else whole[1, j]
        if n < 2 * min_records:
            continue
        region = Region(codes, counts, first, last, n)
        price, best = 0.0, -1.0
        for j in range(q):
            score[j] = _price(dimensions, j, whole[0, j], whole[1, j])
            price += score[j]
            if tried[r, j] or whole[0, j] == whole[1, j]:
                score[j] = -1.0
            elif by == ENTROPY:
                score[j] = dimensions.weights[j] * _entropy(region, j, rank_counts) / np.log(dimensions.sizes[j])
        while True:
            j = _greatest(score)
            if score[j] < 0:
                break
            score[j] = -1.0
            if dimensions.trees[j]:
                level = _common(dimensions, j, whole[0, j], whole[1, j]) - 1
                at = dimensions.levels_at[j] + level * dimensions.sizes[j]
                n_trial_sides = _children(dimensions.labels, at, region, j, rule, trial, rank_counts, side_of)
            else:
                n_trial_sides = _cut(region, j, whole[0, j], whole[1, j], rule, trial, bins)
            if n_trial_sides < 2:
                continue
            if by == GAIN:
                gain = _gain(dimensions, region, price, trial, n_trial_sides, sizes, low, high)
                if (
                    gain <= best * CLEARLY_GREATER
                ):  # columns are sorted by cost, so among ties the most expensive is split
                    continue
                best = gain
            for i in range(first, last):
                sides.side[i], sides.lent[i] = trial.side[i], trial.lent[i]
            n_sides[r], column[r] = n_trial_sides, j
            if by != GAIN:
                break


def ordered_by(class_of: NDArray[np.int64], n_classes: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a stable order that groups the classes, and where each class starts in it."""
    starts = np.zeros(n_classes + 1, np.int64)
    np.cumsum(np.bincount(class_of, minlength=n_classes), out=starts[1:])
    order = np.empty(len(class_of), np.int64)
    _order_by(class_of, starts[:-1].copy(), order)
    return order, starts


@compiled_when_long(lambda class_of, *_: len(class_of))
def _order_by(class_of: NDArray[np.int64], next_position: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    for i in range(class_of.shape[0]):
        order[next_position[class_of[i]]] = i
        next_position[class_of[i]] += 1
