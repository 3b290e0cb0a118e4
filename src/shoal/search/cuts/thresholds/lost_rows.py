"""Which rows of a class two cuts of the tail lose together, and neither alone; for ``threshold_losses.py``.

The places of a class in a column are numbered: ``local[place]`` is the number of a place, ``there[number]`` the place.
A cut that lies anywhere between two neighbours of them splits the class in the same way.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled_within
from shoal.search.cuts.thresholds.classes import Longs, Places, States

ListedRows = NDArray[np.int32]  # [cut, cut, ...]


@compiled_within
def _list_for_pairs(
    row: int,
    first_a: int,
    gap_a: Longs,
    first_b: int,
    gap_b: Longs,
    states: States,
    rows: ListedRows,
    n_listed: Longs,
) -> None:
    """List a row for all pairs of cuts of the tail, one in each of two gaps between places, while there is room."""
    for u in range(first_a + gap_a[0], first_a + gap_a[1]):
        if states[u] == 1:
            for v in range(first_b + gap_b[0], first_b + gap_b[1]):
                if states[v] == 1 and n_listed[u, v] < rows.shape[2]:
                    rows[u, v, n_listed[u, v]] = row
                    n_listed[u, v] += 1


@compiled_within
def list_lost_beside(
    members: Longs,
    places: Places,
    sizes: Longs,
    k: int,
    local: Longs,
    positions: Longs,
    m: int,
    first: int,
    states: States,
    rows: ListedRows,
    n_listed: Longs,
) -> None:
    """List the rows of a class that one cut of a column loses, and those that are lost between two of them.

    ``sizes[a]`` are the records at place a.
    """
    upto = np.cumsum(sizes[:m])
    total = upto[m - 1]
    for row in members:
        at = local[places[row]]
        for a in range(m - 1):
            if (upto[a] if a >= at else total - upto[a]) < k:
                for u in range(first + positions[a], first + positions[a + 1]):
                    if states[u] == 1 and n_listed[u, u] < rows.shape[2]:
                        rows[u, u, n_listed[u, u]] = row
                        n_listed[u, u] += 1
        for a in range(at - 1, -1, -1):
            if upto[at] - upto[a] >= k:
                break
            if total - upto[a] < k:
                continue
            for b in range(at, m - 1):
                if upto[b] - upto[a] >= k:
                    break
                if upto[b] >= k:
                    _list_for_pairs(
                        row, first, positions[a : a + 2], first, positions[b : b + 2], states, rows, n_listed
                    )


@compiled_within
def _corner(upto: Longs, m: int, w: int, a: int, b: int, after_a: bool, after_b: bool) -> int:
    """Return the records before or after place a (which counts as before) of one column and place b of the other."""
    if after_a and after_b:
        return int(upto[m - 1, w - 1] - upto[a, w - 1] - upto[m - 1, b] + upto[a, b])
    if after_a:
        return int(upto[m - 1, b] - upto[a, b])
    return int(upto[a, w - 1] - upto[a, b]) if after_b else int(upto[a, b])


@compiled_within
def list_lost_corners(
    members: Longs,
    places_a: Places,
    places_b: Places,
    upto: Longs,
    k: int,
    local_a: Longs,
    local_b: Longs,
    there_a: Longs,
    there_b: Longs,
    m: int,
    w: int,
    first_a: int,
    first_b: int,
    states: States,
    small: NDArray[np.bool_],
    rows: ListedRows,
    n_listed: Longs,
) -> None:
    """List the rows of a class that are lost in a corner between cuts of two columns, and by neither cut alone.

    ``upto[a, b]`` are the records up to place a of the one column and place b of the other.
    """
    any_small = False
    for a in range(m):
        for b in range(w):  # is the smallest corner around these places lost?
            is_small = a < m - 1 and b < w - 1 and upto[a, b] < k
            is_small |= a < m - 1 and b > 0 and upto[a, w - 1] - upto[a, b - 1] < k
            is_small |= a > 0 and b < w - 1 and upto[m - 1, b] - upto[a - 1, b] < k
            is_small |= a > 0 and b > 0 and _corner(upto, m, w, a - 1, b - 1, True, True) < k
            small[a, b] = is_small
            any_small |= is_small
    if not any_small:
        return
    total = upto[m - 1, w - 1]
    for row in members:
        at_a, at_b = local_a[places_a[row]], local_b[places_b[row]]
        if not small[at_a, at_b]:
            continue
        for after_a in (False, True):
            for after_b in (False, True):
                a, step_a, end_a = (at_a - 1, -1, -1) if after_a else (at_a, 1, m - 1)
                from_b, step_b, end_b = (at_b - 1, -1, -1) if after_b else (at_b, 1, w - 1)
                while a != end_a:  # the corner grows
                    side_a = total - upto[a, w - 1] if after_a else upto[a, w - 1]
                    b = from_b
                    while b != end_b and _corner(upto, m, w, a, b, after_a, after_b) < k:
                        side_b = total - upto[m - 1, b] if after_b else upto[m - 1, b]
                        if side_a >= k and side_b >= k:
                            _list_for_pairs(
                                row, first_a, there_a[a : a + 2], first_b, there_b[b : b + 2], states, rows, n_listed
                            )
                        b += step_b
                    if b == from_b:
                        break
                    a += step_a
