"""What it adds to leave out several cuts of one column, for ``search.py``.

F(R) is supermodular, so what a set of cuts adds is at least the sum of what its cuts add, column by column. Within a
column this can be said exactly: cuts that are left out join intervals into runs, classes of different runs stay apart,
and so the runs' costs add up. A long run costs far more than its cuts one by one: every two of its intervals meet.

``runs`` has a square for each column, one after the other. With n intervals between the cuts of head and tail, [a, b]
of a column's square is what it adds to Σ size·max(size, k) to join the intervals a to b, if no cut of the head lies
between them. Cut i of the column lies between its intervals i - 1 and i, and so [i - 1, i] is what leaving it out adds.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cuts.thresholds.classes import Longs, Places, States, bits_for, in_tail, slot_of_key

NEVER = 1 << 60  # the cost of what must not be


@compiled
def run_costs(
    places: Places,
    counts: Longs,
    keys: Longs,
    states: States,
    first: Longs,
    number: Longs,
    step: Longs,
    k: int,
    slot_keys: Longs,
    slots: NDArray[np.int32],
    before: Longs,
    ends: Longs,
    squares: Longs,
    runs: Longs,
) -> None:
    """Fill the squares, which start at ``squares`` and are zero before, of columns with a cut of the tail.

    ``number`` and ``step`` are those of the intervals between cuts of head and tail, ``keys`` those of the rows. A
    group is the rows that differ in this column only. Σ over groups of a function of the records between two places
    is counted by its mixed differences: every two rows of a group add to all runs that contain both.
    """
    n_rows = places.shape[0]
    bits = bits_for(n_rows)
    wide = number.shape[1]
    at, sizes, part = np.empty(wide, np.int64), np.empty(wide, np.int64), np.zeros(wide, np.int64)
    for j in range(places.shape[1]):
        if not in_tail(states, first, j):
            continue
        n = 1
        for v in range(first[j], first[j + 1]):
            if states[v] >= 1:
                part[n] = part[n - 1] + (states[v] == 2)  # of the head
                n += 1
        square = runs[squares[j] : squares[j] + n * n].reshape(n, n)
        slots[: 1 << bits] = -1
        n_ends = 0
        for i in range(n_rows):
            key = keys[i] - step[j] * number[j, places[i, j]]
            h = slot_of_key(key, slot_keys, slots, bits)
            other = slots[h]
            before[i] = other
            if other < 0:
                slot_keys[h] = key
            elif before[other] < 0:
                ends[n_ends] = h
                n_ends += 1
            slots[h] = i
        for e in range(n_ends):
            m = 0
            i = int(slots[ends[e]])
            while i >= 0:  # the group in order
                position = number[j, places[i, j]]
                b = m
                while b > 0 and at[b - 1] > position:
                    at[b], sizes[b] = at[b - 1], sizes[b - 1]
                    b -= 1
                at[b], sizes[b] = position, counts[i]
                m += 1
                i = before[i]
            for b in range(1, m):
                inner = 0  # between a and b
                for a in range(b - 1, -1, -1):
                    if part[at[a]] != part[at[b]]:
                        break
                    right = inner + sizes[b]
                    left = inner + sizes[a]
                    whole = left + sizes[b]
                    square[at[a], at[b]] += (
                        whole * max(whole, k) - right * max(right, k) - left * max(left, k) + inner * max(inner, k)
                    )
                    inner = left
        for a in range(n - 2, -1, -1):
            for b in range(a + 2, n):
                square[a, b] += square[a + 1, b] + square[a, b - 1] - square[a + 1, b - 1]


@compiled
def costs_of_cuts(states: States, first: Longs, squares: Longs, runs: Longs, costs: Longs) -> None:
    """Return in ``costs`` what it adds to leave out each cut of the tail alone."""
    costs[:] = 0
    for j in range(squares.shape[0] - 1):
        n = 1
        for v in range(first[j], first[j + 1]):
            n += states[v] >= 1
        i = 0
        for v in range(first[j], first[j + 1]):
            if states[v] >= 1:
                i += 1
                if states[v] == 1:
                    costs[v] = runs[squares[j] + (i - 1) * n + i]


@compiled_within
def least_beyond(square: Longs, decided: States, paid: Longs, toll: Longs, cheapest: Longs) -> int:
    """Return a lower bound on the cost of a column's cuts beyond their payments.

    Cuts that are left out cost their runs, and have paid. Others pay their toll. Those that are decided are out or in.
    ``cheapest[b]`` is room for what the cuts before b cost, if b stays.
    """
    n = square.shape[0]
    cheapest[0] = 0
    for b in range(1, n + 1):
        if b < n and decided[b] == 0:
            cheapest[b] = NEVER
            continue
        best = cheapest[b - 1]
        before = 0
        for a in range(b - 2, -1, -1):
            if decided[a + 1] == 2:
                break
            before += paid[a + 1]
            best = min(best, cheapest[a] + square[a, b - 1] - before)
        cheapest[b] = best + (toll[b] if b < n else 0)
    return int(cheapest[n])
