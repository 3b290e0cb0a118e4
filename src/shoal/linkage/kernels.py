"""The Numba loop for nearest records: arrays in, arrays out, no objects."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within

SPAN, EQUAL, TABLE = 0, 1, 2

# What a search reads of some columns: kinds, ends and codes of both sides, weights, offsets, widths, tables.
Half = tuple[NDArray[Any], ...]


@compiled_within
def distances_from(i: int, half: Half, out: NDArray[np.float64]) -> None:
    """Return squared distances of one record to all others over some columns, one column at a time."""
    kinds, left_ends, right_ends, left_codes, right_codes, weights, offsets, widths, tables = half
    n = out.shape[0]
    out[:] = 0.0
    for j in range(kinds.shape[0]):
        if kinds[j] == 0:
            first, last = left_ends[j, 0, i], left_ends[j, 1, i]
            for t in range(n):
                gap = max(right_ends[j, 0, t] - last, first - right_ends[j, 1, t], 0.0)
                out[t] += gap * gap
        elif kinds[j] == 1:
            code, weight = left_codes[j, i], weights[j]
            if code >= 0:
                for t in range(n):
                    other = right_codes[j, t]
                    out[t] += 0.0 if other == code or other < 0 else weight
        else:
            start = offsets[j] + left_codes[j, i] * widths[j]
            for t in range(n):
                out[t] += tables[start + right_codes[j, t]]


@compiled
def nearest_tuples(
    order: NDArray[np.int64],
    left_class: NDArray[np.int64],
    first_half: Half,
    second_half: Half,
    starts: NDArray[np.int64],
    members: NDArray[np.int64],
    second: NDArray[np.int64],
    n_two: int,
    counts: NDArray[np.int64],
    rows: NDArray[np.int64],
    tolerance: float,
    best: NDArray[np.float64],
    ties: NDArray[np.int64],
    first_row: NDArray[np.int64],
) -> None:
    """Return for each record on the left the smallest squared distance, the records at it, and the first of them.

    The columns come in two halves, and every distance is a sum of two, one per half; halves have far fewer different
    tuples than wholes. Tuples on the right are grouped by the first half (``members`` from ``starts[a]`` on), so that a
    group is passed over where its half alone is too far. Records on the left come in an ``order`` that brings equal
    first halves together.
    """
    near = np.empty(starts.shape[0] - 1)
    far = np.empty(n_two)
    last = -1
    for i in order:
        if left_class[i] != last:
            last = left_class[i]
            distances_from(i, first_half, near)
        distances_from(i, second_half, far)
        # The smallest distance: the nearest group gives a first bound, by which most other groups are skipped.
        least_far = far.min()
        min_squared = np.inf
        nearest_group = near.argmin()
        for m in range(starts[nearest_group], starts[nearest_group + 1]):
            min_squared = min(min_squared, near[nearest_group] + far[second[members[m]]])
        for a in range(near.shape[0]):
            if near[a] + least_far < min_squared:
                for m in range(starts[a], starts[a + 1]):
                    min_squared = min(min_squared, near[a] + far[second[members[m]]])
        # Records at that distance, up to rounding, and the first of them.
        limit = min_squared + tolerance * (1.0 + min_squared)
        n_tied, row = 0, np.int64(1) << 62
        for a in range(near.shape[0]):
            if near[a] + least_far <= limit:
                for m in range(starts[a], starts[a + 1]):
                    t = members[m]
                    if near[a] + far[second[t]] <= limit:
                        n_tied += counts[t]
                        row = min(row, rows[t])
        best[i], ties[i], first_row[i] = min_squared, n_tied, row
