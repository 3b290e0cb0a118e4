"""A lower bound on the cost of conflicts: of two cuts that lose records together, one is left out or the records go.

A set of cuts either leaves out one of two cuts, or it loses every row that both together lose. What leaving out a cut
costs, and what losing a row costs, is shared out among such triples of two cuts and a row: each is paid an amount, and
nobody pays more to all of its triples than it costs. Whatever is left out or lost then costs at least the sum: this is
the dual of a linear program, a weighted cover. A row that a cut loses alone is a pair of this cut and the row. Two cuts
that exclude each other lose more than may be lost: of these, no row pays.

So a set that leaves out R_j of the cuts of each column j costs, beyond all payments, at least what R_j costs as runs
less what its cuts have paid, over all columns, and what is left of every row that it loses. No column's part is
negative, since runs cost no less than their cuts and no cut pays more than it costs. ``gains_of_cuts`` takes the least
of every column's part over the sets R_j that a chosen cut admits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled
from shoal.search.cuts.thresholds.classes import Longs, States
from shoal.search.cuts.thresholds.lost_rows import ListedRows
from shoal.search.cuts.thresholds.runs import least_beyond

Excludes = NDArray[np.bool_]  # [cut, cut]
TOLL = 4  # times what leaving out a cut alone adds: the most that it takes of what is left of rows


@compiled
def pack_lists(
    tail: Longs, excludes: Excludes, rows: ListedRows, n_listed: Longs, counts: Longs, number: Longs
) -> tuple[Longs, Longs, Longs, Longs]:
    """Return the rows of all pairs of the tail that do not exclude each other in one list, renumbered.

    The cuts' places in the list of pairs; where in the list each pair starts; the list; the records of its rows.
    ``number`` is -1 everywhere before and after.
    """
    t = tail.shape[0]
    tail_index = np.zeros(excludes.shape[0], np.int64)
    starts = np.zeros(t * t + 1, np.int64)
    n = 0
    for a in range(t):
        tail_index[tail[a]] = a
        for b in range(t):
            if a <= b and not excludes[tail[a], tail[b]]:
                n += n_listed[tail[a], tail[b]]
            starts[a * t + b + 1] = n
    packed = np.empty(n, np.int64)
    sizes = np.empty(min(n, counts.shape[0]), np.int64)
    n_rows = 0
    for a in range(t):
        for b in range(a, t):
            e = a * t + b
            for r in range(starts[e + 1] - starts[e]):
                row = rows[tail[a], tail[b], r]
                if number[row] < 0:
                    number[row] = n_rows
                    sizes[n_rows] = counts[row]
                    n_rows += 1
                packed[starts[e] + r] = number[row]
    number[: counts.shape[0]] = -1
    return tail_index, starts, packed, sizes[:n_rows].copy()


@compiled
def pay_conflicts(
    tail: Longs,
    excludes: Excludes,
    costs: Longs,
    tail_index: Longs,
    starts: Longs,
    listed: Longs,
    budget: Longs,
    left: Longs,
) -> int:
    """Return a lower bound on the cost of leaving out one cut of each conflicting pair, or losing their rows.

    ``left`` is what remains of each cut's cost, ``budget`` what it costs to lose each row, and what remains of that.
    Expensive pairs are paid first.
    """
    t = int(np.sqrt(starts.shape[0] - 1))
    order = tail[np.argsort(-costs[tail], kind="mergesort")]
    left[:] = costs
    paid = 0
    for a in range(order.shape[0]):
        v = order[a]
        e = tail_index[v] * t + tail_index[v]
        for r in range(starts[e], starts[e + 1]):
            y = min(left[v], budget[listed[r]])
            left[v] -= y
            budget[listed[r]] -= y
            paid += y
    for a in range(1, order.shape[0]):
        v = order[a]
        for b in range(a):
            if left[v] <= 0:
                break
            u = order[b]
            if left[u] <= 0:
                continue
            if excludes[u, v]:
                y = min(left[u], left[v])
                left[u] -= y
                left[v] -= y
                paid += y
                continue
            e = tail_index[min(u, v)] * t + tail_index[max(u, v)]
            for r in range(starts[e], starts[e + 1]):
                y = min(left[u], left[v], budget[listed[r]])
                left[u] -= y
                left[v] -= y
                budget[listed[r]] -= y
                paid += y
    return paid


@compiled
def gains_of_cuts(
    tail: Longs,
    excludes: Excludes,
    costs: Longs,
    left: Longs,
    tail_index: Longs,
    starts: Longs,
    listed: Longs,
    prices: Longs,
    budget: Longs,
    states: States,
    first: Longs,
    squares: Longs,
    runs: Longs,
) -> tuple[Longs, Longs]:
    """Return, per cut of the tail, what it costs beyond the payments if the cut is chosen, and without any payments.

    Its rows are lost, and so are the rows that it loses with another cut, or that one is left out: what is left of
    these rows is shared out among the others as a toll for staying. All that it excludes are left out together, in
    runs: beyond the payments, a column costs what its runs cost less what its cuts have paid, and the tolls, at the
    least. ``prices`` are what it costs to lose each row, ``budget`` what the payments leave of it.
    """
    t = int(np.sqrt(starts.shape[0] - 1))
    q = squares.shape[0] - 1
    wide = (first[1:] - first[:-1]).max() + 2
    column, at = np.zeros(states.shape[0], np.int64), np.zeros(states.shape[0], np.int64)
    paid, toll, cheapest = np.zeros((q, wide), np.int64), np.zeros((q, wide), np.int64), np.zeros(wide, np.int64)
    decided, initial = np.zeros((q, wide), np.int8), np.zeros((q, wide), np.int8)
    n_intervals, differs = np.ones(q, np.int64), np.zeros(q, np.bool_)
    for j in range(q):
        for v in range(first[j], first[j + 1]):
            if states[v] >= 1:
                column[v], at[v] = j, n_intervals[j]
                initial[j, at[v]] = states[v]
                paid[j, at[v]] = costs[v] - left[v]
                n_intervals[j] += 1
    beyond, whole = np.zeros(tail.shape[0], np.int64), np.zeros(tail.shape[0], np.int64)
    spent = np.zeros(budget.shape[0], np.int64)
    for a in range(tail.shape[0]):
        u = tail[a]
        decided[:] = initial
        toll[:] = 0
        differs[:] = False
        decided[column[u], at[u]] = 2
        e = tail_index[u] * t + tail_index[u]
        for r in range(starts[e], starts[e + 1]):
            beyond[a] += budget[listed[r]]
            spent[listed[r]] = budget[listed[r]]
            whole[a] += prices[listed[r]]
        for b in range(tail.shape[0]):
            v = tail[b]
            if excludes[u, v]:
                decided[column[v], at[v]] = 0
                differs[column[v]] = True
                whole[a] += costs[v]
            elif u != v:
                e = tail_index[min(u, v)] * t + tail_index[max(u, v)]
                rest, price = TOLL * costs[v], 0
                for r in range(starts[e], starts[e + 1]):
                    y = min(rest, budget[listed[r]] - spent[listed[r]])
                    spent[listed[r]] += y
                    rest -= y
                    price += prices[listed[r]]
                toll[column[v], at[v]] = TOLL * costs[v] - rest
                differs[column[v]] |= rest < TOLL * costs[v]
                whole[a] += min(price, costs[v])
        for j in range(q):
            if differs[j]:
                n = n_intervals[j]
                square = runs[squares[j] : squares[j] + n * n].reshape(n, n)
                beyond[a] += least_beyond(square, decided[j], paid[j], toll[j], cheapest)
        for b in range(tail.shape[0]):
            e = tail_index[min(u, tail[b])] * t + tail_index[max(u, tail[b])]
            for r in range(starts[e], starts[e + 1]):
                spent[listed[r]] = 0
    return beyond, whole
