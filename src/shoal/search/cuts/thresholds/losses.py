"""The records lost by cuts at a node of ``search.py``: by each cut of the tail, and by each pair of cuts."""

from __future__ import annotations

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cuts.thresholds.classes import Longs, Places, States, in_tail
from shoal.search.cuts.thresholds.lost_rows import ListedRows, list_lost_beside, list_lost_corners


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
    n_lost = 0
    kept_discernibility = 0
    lost[:] = 0
    splits[:] = 0
    open_columns = np.array([j for j in range(places.shape[1]) if in_tail(states, first, j)], np.int64)
    for c in range(n_classes):
        total = 0
        for r in range(starts[c], starts[c + 1]):
            total += counts[order[r]]
        if total < k:
            n_lost += total
            continue
        kept_discernibility += total * total
        # Records of the class at each place of the column, then a sweep over its cuts with prefix sums.
        for j in open_columns:
            low = places[order[starts[c]], j]
            high = low
            for r in range(starts[c], starts[c + 1]):
                i = order[r]
                position = places[i, j]
                sizes[position] += counts[i]
                low = min(low, position)
                high = max(high, position)
            left = sizes[low]
            sizes[low] = 0
            for position in range(low + 1, high + 1):
                v = first[j] + position - 1
                if states[v] == 1:
                    if left < k:
                        lost[v] += left
                    if total - left < k:
                        lost[v] += total - left
                    if left >= k or total - left >= k:
                        splits[v] += 1
                left += sizes[position]
                sizes[position] = 0
    return n_lost, kept_discernibility


@compiled_within
def _if_lost(size: int, k: int) -> int:
    """Return the size of a part that is lost, 0 for one that is not."""
    return size if size < k else 0


@compiled_within
def _add_to_pairs(
    amount: int, first_a: int, gap_a: Longs, first_b: int, gap_b: Longs, states: States, out: Longs
) -> None:
    """Add to all pairs of cuts of the tail, one in each of two gaps between places."""
    for u in range(first_a + gap_a[0], first_a + gap_a[1]):
        if states[u] == 1:
            for v in range(first_b + gap_b[0], first_b + gap_b[1]):
                if states[v] == 1:
                    out[u, v] += amount
                    out[v, u] += amount


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
    positions: Longs,
    grid: Longs,
    lost: Longs,
    out: Longs,
    rows: ListedRows,
    n_listed: Longs,
) -> None:
    """Return in ``out``, for each two cuts of the tail, the records that are lost if both split the classes.

    ``rows[u, v]`` with u < v are the first rows that only both together lose, ``rows[u, u]`` the first that one cut
    loses; ``n_listed`` is how many there are. Without room for any, none are listed.
    """
    q = places.shape[1]
    small = np.zeros(grid.shape, np.bool_)
    n_listed[:] = 0
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
                position = places[order[r], j]
                sizes[position] = 1
                low = min(low, position)
                high = max(high, position)
            n = 0
            for position in range(low, high + 1):
                if sizes[position]:
                    sizes[position] = 0
                    local[j, position] = n
                    positions[j, n] = position
                    n += 1
            n_there[j] = n
        for i in range(q):
            m = n_there[i]
            if m < 2:
                continue
            grid[0, :m] = 0
            for r in range(a0, a1):
                grid[0, local[i, places[order[r], i]]] += counts[order[r]]
            if rows.shape[2]:
                list_lost_beside(
                    order[a0:a1], places[:, i], grid[0], k, local[i], positions[i], m, first[i], states, rows, n_listed
                )
            left = 0
            for a in range(m - 1):  # cuts after place a and after place b of the same column
                left += grid[0, a]
                middle = 0
                single_loss = _if_lost(left, k) + _if_lost(total - left, k)
                if single_loss:  # two cuts after place a do the same
                    for u in range(first[i] + positions[i, a], first[i] + positions[i, a + 1]):
                        out[u, first[i] + positions[i, a] : first[i] + positions[i, a + 1]] -= single_loss
                for b in range(a + 1, m - 1):
                    middle += grid[0, b]
                    right = total - left - middle
                    joint_loss = _if_lost(left, k) + _if_lost(middle, k) + _if_lost(right, k)
                    joint_loss -= single_loss + _if_lost(left + middle, k) + _if_lost(right, k)
                    if joint_loss:
                        _add_to_pairs(
                            joint_loss,
                            first[i],
                            positions[i, a : a + 2],
                            first[i],
                            positions[i, b : b + 2],
                            states,
                            out,
                        )
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
                if rows.shape[2]:
                    list_lost_corners(
                        order[a0:a1], places[:, i], places[:, j], grid, k, local[i], local[j],
                        positions[i], positions[j], m, w, first[i], first[j], states, small, rows, n_listed,
                    )  # fmt: skip
                for a in range(m - 1):
                    low_a = grid[a, w - 1]
                    for b in range(w - 1):
                        low_b = grid[m - 1, b]
                        corner = grid[a, b]
                        rest = total - low_a - low_b + corner
                        joint_loss = (
                            _if_lost(corner, k)
                            + _if_lost(low_a - corner, k)
                            + _if_lost(low_b - corner, k)
                            + _if_lost(rest, k)
                        )
                        if joint_loss or low_a < k or low_b < k or total - low_a < k or total - low_b < k:
                            joint_loss -= _if_lost(low_a, k) + _if_lost(total - low_a, k)
                            joint_loss -= _if_lost(low_b, k) + _if_lost(total - low_b, k)
                            if joint_loss:
                                _add_to_pairs(
                                    joint_loss,
                                    first[i],
                                    positions[i, a : a + 2],
                                    first[j],
                                    positions[j, b : b + 2],
                                    states,
                                    out,
                                )
