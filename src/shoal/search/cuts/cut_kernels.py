"""The kernel that tries every value of a tail at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled


@compiled
def splits(
    order: NDArray[np.int64],
    starts: NDArray[np.int64],
    codes: NDArray[np.int32],
    counts: NDArray[np.int64],
    extra: NDArray[np.float64],
    stays: NDArray[np.bool_],
    low: NDArray[np.int64],
    high: NDArray[np.int64],
    entry: NDArray[np.int64],
    min_records: int,
    n_entries: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
    """The effect of splitting classes at each value: records lost, their ``extra``, classes split, useful splits.

    Class h owns the rows ``order[starts[h]:starts[h+1]]``; ``codes[row, j]`` is the finest piece of column j that a row
    lies in, ``low[j, piece]`` and ``high[j, piece]`` are the ends of the interval around it, ``entry[j, piece]`` is the
    value that would start this piece. A part with fewer than ``min_records`` records is lost; a split is useful if a
    part is not.
    """
    q = codes.shape[1]
    d = extra.shape[1]
    lost = np.zeros(n_entries, np.int64)
    sums_added = np.zeros((n_entries, d))
    n_split = np.zeros(n_entries, np.int64)
    n_useful = np.zeros(n_entries, np.int64)
    size = np.zeros(low.shape[1], np.int64)
    sums = np.zeros((low.shape[1], d))
    left_sum = np.zeros(d)
    for h in range(starts.shape[0] - 1):
        if not stays[h]:
            continue
        for j in range(q):
            inside = codes[order[starts[h]], j]
            a, b = low[j, inside], high[j, inside]
            if a == b:
                continue
            # Records, and sums of their ``extra``, in each finest piece of the interval.
            size[a : b + 1] = 0
            sums[a : b + 1] = 0
            total = 0
            total_sum = np.zeros(d)
            for r in range(starts[h], starts[h + 1]):
                row = order[r]
                p = codes[row, j]
                size[p] += counts[row]
                total += counts[row]
                for t in range(d):
                    sums[p, t] += extra[row, t]
                    total_sum[t] += extra[row, t]
            # Sweep the cut from left to right: the parts are prefix sums.
            left = 0
            left_sum[:] = 0
            for p in range(a + 1, b + 1):
                left += size[p - 1]
                for t in range(d):
                    left_sum[t] += sums[p - 1, t]
                e = entry[j, p]
                if e < 0 or left == 0 or left == total:
                    continue
                n_split[e] += 1
                if left < min_records:
                    lost[e] += left
                    for t in range(d):
                        sums_added[e, t] += left_sum[t]
                if total - left < min_records:
                    lost[e] += total - left
                    for t in range(d):
                        sums_added[e, t] += total_sum[t] - left_sum[t]
                if left >= min_records or total - left >= min_records:
                    n_useful[e] += 1
    return lost, sums_added, n_split, n_useful
