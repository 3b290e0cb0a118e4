"""The kernels with which Mondrian splits regions. Arrays in, arrays out; each has a plain version in its test.

A region is a run of parts, each some records of one row. A dimension is a column: values have ranks, in the order of
a tree's leaves from left to right, or in the order that a column cut at its median has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.table.jit import compiled, compiled_when_long, compiled_within

Int = int | np.integer[Any]

RANGE, ENTROPY, GAIN = 0, 1, 2  # which dimension is tried first
BINS = 128
FAR = 1 << 31  # beyond every rank
MORE = 1 + 1e-9  # a score is greater only if it exceeds rounding errors; among ties, the first column is taken

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

    least: Int  # records on every side
    parting: bool  # whether records of one part may go to two sides


class Sides(NamedTuple):
    """A split: each part's side, and its records that go to side 0 instead."""

    side: NDArray[np.int32]
    lent: NDArray[np.int64]


@compiled_within
def _common(of: Dimensions, j: Int, low: Int, high: Int) -> int:
    """Return the lowest level on which two ranks, and thus all between them, share a label."""
    level = 0
    at = of.levels_at[j]
    while of.labels[at + low] != of.labels[at + high]:
        at += of.sizes[j]
        level += 1
    return level


@compiled_within
def _price(of: Dimensions, j: Int, low: Int, high: Int) -> float:
    """Return the loss of a cell that covers all ranks from ``low`` to ``high``."""
    if of.trees[j]:
        return float(of.weights[j] * of.shares[of.levels_at[j] + _common(of, j, low, high) * of.sizes[j] + low])
    if low < high and high >= of.ends[j]:
        return float(of.weights[j])
    return float(of.weights[j] * (of.upper[of.ranks_at[j] + high] - of.lower[of.ranks_at[j] + low]))


@compiled_within
def _entropy(of: Region, j: Int, held: NDArray[np.int64]) -> float:
    """Return the entropy of a column in a region; ``held`` is zero before and after."""
    codes, counts, first, last, n = of
    for i in range(first, last):
        held[codes[i, j]] += counts[i]
    entropy = 0.0
    for i in range(first, last):
        share = held[codes[i, j]] / n
        if share > 0:
            entropy -= share * np.log(share)
            held[codes[i, j]] = 0
    return entropy


@compiled_within
def _median(of: Region, j: Int, low: Int, high: Int, bins: NDArray[np.int64]) -> tuple[Int, Int, Int]:
    """Return the lowest rank that half of the records do not exceed, and the records below it and up to it."""
    codes, counts, first, last, n = of
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
def _lend(of: Region, j: Int, low: Int, high: Int, total: Int, amount: Int, lent: NDArray[np.int64]) -> None:
    """Move ``amount`` of the ``total`` records with these ranks to the other side, proportionally from every part."""
    codes, counts, first, last, _ = of
    passed, taken = np.int64(0), np.int64(0)
    for i in range(first, last):
        if low <= codes[i, j] <= high:
            passed += counts[i]
            due = np.int64(passed * (amount / total)) - taken
            # Despite rounding, never take too many, nor leave more to take than there are records to come.
            must, may = amount - taken - (total - passed), amount - taken
            due = must if due < must else due
            due = may if due > may else due
            lent[i] = counts[i] if due > counts[i] else (0 if due < 0 else due)
            taken += lent[i]


@compiled_within
def _cut(of: Region, j: Int, low: Int, high: Int, rule: SplitRule, to: Sides, bins: NDArray[np.int64]) -> int:
    """Cut into two sides as evenly as possible; return their number, 0 if one would be too small.

    If records of one part may go to two sides, those at the median fill up the larger of the sides that are too small.
    """
    codes, _, first, last, n = of
    least, side, lent = rule.least, to.side, to.lent
    median, below, upto = _median(of, j, low, high, bins)
    above = n - upto
    if below < least and above < least:
        if not rule.parting:
            return 0
        for i in range(first, last):
            small = codes[i, j] < median if below > above else codes[i, j] > median
            side[i] = 0 if small else 1
            lent[i] = 0
        missing = least - (below if below > above else above)
        _lend(of, j, median, median, upto - below, missing, lent)
        return 2
    if above < below:  # the cut below the median is the more even one
        median -= 1
    for i in range(first, last):
        lent[i] = 0
        side[i] = 1 if codes[i, j] > median else 0
    return 2


@compiled_within
def _children(
    labels: NDArray[np.int32], at: Int, of: Region, j: Int, rule: SplitRule, to: Sides, held: NDArray[np.int64],
    side_of: NDArray[np.int32],
) -> int:  # fmt: skip
    """Make a side of each label, ``labels[at + rank]``; labels that are too small share one side.

    If that side is still too small, it is joined with the smallest other one or, if records of one part may go to two
    sides, filled up with records of the largest.
    """
    codes, counts, first, last, _ = of
    least, side, lent = rule.least, to.side, to.lent
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        held[label] += counts[i]
        side_of[label] = -1
        lent[i] = 0
    n_sides, rest, smallest, largest = 1, np.int64(0), -1, -1
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        if side_of[label] >= 0:
            continue
        if held[label] < least:
            side_of[label] = 0
            rest += held[label]
            continue
        side_of[label] = n_sides
        n_sides += 1
        if smallest < 0 or held[label] < held[smallest]:
            smallest = label
        if largest < 0 or held[label] > held[largest]:
            largest = label
    if 0 < rest < least and smallest >= 0:
        if rule.parting and held[largest] - (least - rest) >= least:
            low, high = np.int64(FAR), np.int64(-1)  # the ranks of a label are consecutive
            for i in range(first, last):
                code = np.int64(codes[i, j])
                if labels[at + code] == largest:
                    low = code if code < low else low
                    high = code if code > high else high
            _lend(of, j, low, high, held[largest], least - rest, lent)
        else:
            n_sides -= 1
            gone = side_of[smallest]
            for i in range(first, last):  # once per label: setting ``held`` to 0 marks it as done
                label = labels[at + codes[i, j]]
                if held[label] > 0:
                    held[label] = 0
                    if side_of[label] > gone:
                        side_of[label] -= 1
            side_of[smallest] = 0
    empty = 0 if rest > 0 else 1
    for i in range(first, last):
        label = labels[at + codes[i, j]]
        held[label] = 0
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
    dimensions: Dimensions, of: Region, price: float, to: Sides, n_sides: int, sizes: NDArray[np.int64],
    low: NDArray[np.int64], high: NDArray[np.int64],
) -> float:  # fmt: skip
    """Return the reduction in the loss of all cells per bit of information that a split uses."""
    codes, counts, first, last, n = of
    side, lent = to
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
        if score[j] >= 0 and score[j] > score[best] * MORE:
            best = j
    return best


class Trial(NamedTuple):
    """Room for trying splits; ``widest`` is the largest number of ranks of a column, and at least that of the bins."""

    trial: Sides
    score: NDArray[np.float64]  # (columns)
    whole: NDArray[np.int64]  # (2, columns)  the least and the greatest rank of a region
    held: NDArray[np.int64]  # (widest)  zero between calls
    bins: NDArray[np.int64]  # (widest)
    sizes: NDArray[np.int64]  # (widest)
    low: NDArray[np.int64]  # (widest, columns)
    high: NDArray[np.int64]  # (widest, columns)
    side_of: NDArray[np.int32]  # (widest)


def proposed(
    of: Dimensions,
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    tried: NDArray[np.bool_],
    least: Int,
    by: int,
    parting: bool,
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the split to try per region: each part's side, its records that go to side 0, sides and column.

    Region r owns the parts ``starts[r]`` … ``starts[r+1]``. It has 0 sides if no column that is
    not yet ``tried`` can be split with at least ``least`` records on every side.
    """
    (n_parts, q), n_regions = codes.shape, len(starts) - 1
    widest = max(BINS, int(of.sizes.max(initial=0)) + 1)
    found = Sides(np.zeros(n_parts, np.int32), np.zeros(n_parts, np.int64))
    n_sides, column = np.zeros(n_regions, np.int64), np.zeros(n_regions, np.int64)
    held, bins, sizes = (np.zeros(widest, np.int64) for _ in range(3))
    whole, low, high = (np.zeros((n, q), np.int64) for n in (2, widest, widest))
    trial = Sides(np.zeros(n_parts, np.int32), np.zeros(n_parts, np.int64))
    room = Trial(trial, np.zeros(q), whole, held, bins, sizes, low, high, np.zeros(widest, np.int32))
    _propose(of, codes, counts, starts, tried, SplitRule(int(least), parting), by, room, found, n_sides, column)
    return found.side, found.lent, n_sides, column


@compiled
def _propose(
    of: Dimensions,
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    starts: NDArray[np.int64],
    tried: NDArray[np.bool_],
    rule: SplitRule,
    by: int,
    room: Trial,
    to: Sides,
    n_sides: NDArray[np.int64],
    column: NDArray[np.int64],
) -> None:
    """Apply ``proposed``; all that it fills is made before, since that would take longer to compile."""
    trial, score, whole, held, bins, sizes, low, high, side_of = room
    least, q = rule.least, codes.shape[1]
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
        if n < 2 * least:
            continue
        region = Region(codes, counts, first, last, n)
        price, best = 0.0, -1.0
        for j in range(q):
            score[j] = _price(of, j, whole[0, j], whole[1, j])
            price += score[j]
            if tried[r, j] or whole[0, j] == whole[1, j]:
                score[j] = -1.0
            elif by == ENTROPY:
                score[j] = of.weights[j] * _entropy(region, j, held) / np.log(of.sizes[j])
        while True:
            j = _greatest(score)
            if score[j] < 0:
                break
            score[j] = -1.0
            if of.trees[j]:
                level = _common(of, j, whole[0, j], whole[1, j]) - 1
                at = of.levels_at[j] + level * of.sizes[j]
                found = _children(of.labels, at, region, j, rule, trial, held, side_of)
            else:
                found = _cut(region, j, whole[0, j], whole[1, j], rule, trial, bins)
            if found < 2:
                continue
            if by == GAIN:
                gain = _gain(of, region, price, trial, found, sizes, low, high)
                if gain <= best * MORE:  # columns are sorted by cost, so among ties the most expensive is split
                    continue
                best = gain
            for i in range(first, last):
                to.side[i], to.lent[i] = trial.side[i], trial.lent[i]
            n_sides[r], column[r] = found, j
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
def _order_by(class_of: NDArray[np.int64], place: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    for i in range(class_of.shape[0]):
        order[place[class_of[i]]] = i
        place[class_of[i]] += 1
