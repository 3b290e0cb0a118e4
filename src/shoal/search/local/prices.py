"""The kernels of the bound of ``local``: prices that no class overpays, and the classes that would.

Every record has a price. If the k highest prices in no class together exceed what the class costs k records, no
partition costs less than all prices together: the larger classes are means of such, and every record is in one class.
The highest such prices are the dual of a linear program over all possible classes.

The labels that a class can share are visited column by column: a prefix of columns with one label each is a group of
records, and the labels of the next column divide it. The highest prices in a part are never above those in the whole,
and the cost only grows, so a group that does not overpay for its columns so far needs no further look.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import Ints, ShortInts
from shoal.tables.frequency import Floats

CAP, LOWER = 0, 1  # what happens to prices in a class: none stays above its cost; the highest shrink until it is fine
SHRINKS = 40  # times that the highest prices of a class shrink before all are capped
LISTED = 8  # of these, before which the class is listed with its highest prices
UNDER = 1 - 1e-14  # a share of the cost, so that rounding cannot lift prices above it
OVER = 1e-12  # the share of its cost up to which a class is not overpaid, but rounded
MIN_LISTED_EXCESS = 1e-7  # the share of its cost from which an overpaid class is worth listing


class Ladder(NamedTuple):
    """The tuples, their records, and every column's labels from the leaves up; a label's ranks are adjacent."""

    codes: ShortInts  # (tuples, columns)  ranks
    counts: Ints  # (tuples)
    heights: Ints  # (columns)  levels
    sizes: Ints  # (columns)  ranks
    starts: Ints  # (columns)  of its levels in nodes and costs, a row of ranks each
    nodes: ShortInts
    costs: Floats  # of a label, above the cheapest of its column


class ClassVisit(NamedTuple):
    """How far a visit of all classes has come: at every depth a group, sorted by a column and divided into runs."""

    depth: Ints  # (1)
    group: ShortInts  # (columns, tuples)
    n_runs: Ints  # (columns)
    ends: ShortInts  # (columns, tuples)  of runs of equal ranks
    records: ShortInts  # (columns, tuples)  in each run, up to k
    highest: Floats  # (columns, tuples)  price in each run when it was formed
    level: Ints  # (columns)
    at: Ints  # (columns)  the next run
    cost: Floats  # (columns)  of the labels of the columns before
    sorting: ShortInts  # (tuples)
    slots: Ints  # (ranks of the largest column + 1)
    top: Floats  # (k + 1)  the highest prices in a class
    top_tuples: Ints  # (k + 1)  the tuples of these
    work: Ints  # (1)  tuples looked at


class Overpaid(NamedTuple):
    """The classes whose highest prices exceeded their cost: tuples, records of each among the k, and the cost of k."""

    n: Ints  # (1)
    starts: Ints  # (room + 1)
    members: ShortInts
    shares: Floats
    limits: Floats  # (room)


def visit_of(ladder: Ladder, k: int) -> ClassVisit:
    """Return a visit that has not begun."""
    m, q = ladder.codes.shape
    return ClassVisit(
        np.zeros(1, np.int64),
        np.empty((q, m), np.int32),
        np.zeros(q, np.int64),
        np.empty((q, m), np.int32),
        np.empty((q, m), np.int32),
        np.empty((q, m)),
        np.zeros(q, np.int64),
        np.zeros(q, np.int64),
        np.zeros(q),
        np.empty(m, np.int32),
        np.empty(int(ladder.sizes.max()) + 1, np.int64),
        np.empty(k + 1),
        np.empty(k + 1, np.int64),
        np.zeros(1, np.int64),
    )


def overpaid_of(n_classes: int, n_members: int) -> Overpaid:
    """Return room for so many classes with so many members in all."""
    return Overpaid(
        np.zeros(1, np.int64),
        np.zeros(n_classes + 1, np.int64),
        np.empty(n_members, np.int32),
        np.empty(n_members),
        np.empty(n_classes),
    )


# --- groups ------------------------------------------------------------------------------------------------------


@compiled_within
def _sorted(ladder: Ladder, visit: ClassVisit, d: Int, s: Int) -> None:
    """Sort the group at a depth by the ranks of its column."""
    codes, group, sorting, slots, n_ranks = ladder.codes, visit.group, visit.sorting, visit.slots, ladder.sizes[d]
    if s > 32 and 4 * s > n_ranks:
        for r in range(n_ranks + 1):
            slots[r] = 0
        for i in range(s):
            sorting[i] = group[d, i]
            slots[codes[sorting[i], d] + 1] += 1
        for r in range(n_ranks):
            slots[r + 1] += slots[r]
        for i in range(s):
            r = codes[sorting[i], d]
            group[d, slots[r]] = sorting[i]
            slots[r] += 1
        return
    gap = 1
    while gap < s // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, s):
            u = group[d, i]
            at = i
            while at >= gap and codes[group[d, at - gap], d] > codes[u, d]:
                group[d, at] = group[d, at - gap]
                at -= gap
            group[d, at] = u
        gap //= 3


@compiled_within
def enter_group(ladder: Ladder, visit: ClassVisit, prices: Floats, k: int, d: Int, s: Int, cost: float) -> None:
    """Begin with the group of ``s`` tuples at a depth: divide it into runs of equal ranks."""
    codes, counts, group = ladder.codes, ladder.counts, visit.group
    _sorted(ladder, visit, d, s)
    n = -1
    last = -1
    for i in range(s):
        u = group[d, i]
        if codes[u, d] != last:
            n += 1
            last = codes[u, d]
            visit.records[d, n] = 0
            visit.highest[d, n] = -np.inf
        visit.records[d, n] = min(k, visit.records[d, n] + counts[u])
        visit.highest[d, n] = max(visit.highest[d, n], prices[u])
        visit.ends[d, n] = i + 1
    visit.n_runs[d] = n + 1
    visit.level[d] = visit.at[d] = 0
    visit.cost[d] = cost
    visit.depth[0] = d
    visit.work[0] += s


@compiled_within
def next_part(ladder: Ladder, visit: ClassVisit, k: int) -> tuple[int, int, bool, float]:
    """Go on to the next label of the group at hand; if all are done, to that of a group above.

    Returns the part of the group with the label, whether it may be overpaid, and what it costs; no part if all labels
    of a level are done.
    """
    codes, nodes, costs = ladder.codes, ladder.nodes, ladder.costs
    d = visit.depth[0]
    if visit.at[d] == visit.n_runs[d]:
        visit.at[d] = 0
        visit.level[d] += 1
        if visit.level[d] == ladder.heights[d]:
            visit.depth[0] -= 1
        return 0, 0, False, 0.0
    x = visit.at[d]
    first = 0 if x == 0 else visit.ends[d, x - 1]
    row = ladder.starts[d] + visit.level[d] * ladder.sizes[d]
    below = row - ladder.sizes[d] if visit.level[d] > 0 else row
    rank = codes[visit.group[d, first], d]
    node, under = nodes[row + rank], nodes[below + rank]
    cost = visit.cost[d] + costs[row + rank]
    new = visit.level[d] == 0 or costs[row + rank] < costs[below + rank]
    n_records, highest, is_under_label = 0, -np.inf, True
    while is_under_label:  # the runs under one label; with the same ones the level below was no dearer
        n_records = min(k, n_records + visit.records[d, x])
        highest = max(highest, visit.highest[d, x])
        x += 1
        if x < visit.n_runs[d]:
            rank = codes[visit.group[d, visit.ends[d, x - 1]], d]
            is_under_label = nodes[row + rank] == node
            new = new or (is_under_label and nodes[below + rank] != under)
        else:
            is_under_label = False
    visit.work[0] += x - visit.at[d]
    visit.at[d] = x
    return first, visit.ends[d, x - 1], new and n_records >= k and highest > cost, cost


@compiled_within
def _top(ladder: Ladder, visit: ClassVisit, prices: Floats, k: int, d: Int, first: Int, last: Int) -> tuple[float, int]:
    """Return the sum of the k highest prices of a part of a group that has as many records, and of how many tuples."""
    counts, group, top, top_tuples = ladder.counts, visit.group, visit.top, visit.top_tuples
    n = n_records = 0
    for i in range(first, last):
        u = group[d, i]
        price = prices[u]
        if n_records < k or price > top[n - 1]:
            y = n
            while y > 0 and top[y - 1] < price:
                top[y], top_tuples[y] = top[y - 1], top_tuples[y - 1]
                y -= 1
            top[y], top_tuples[y] = price, u
            n += 1
            n_records += counts[u]
            while n_records - counts[top_tuples[n - 1]] >= k:
                n -= 1
                n_records -= counts[top_tuples[n]]
    visit.work[0] += last - first
    total, left = 0.0, k
    for y in range(n):
        w = min(left, counts[top_tuples[y]])
        total += w * top[y]
        left -= w
    return total, n


# --- what happens in a class -------------------------------------------------------------------------------------


@compiled_within
def _capped(visit: ClassVisit, prices: Floats, d: Int, first: Int, last: Int, cost: float) -> None:
    for i in range(first, last):
        prices[visit.group[d, i]] = min(prices[visit.group[d, i]], cost)


@compiled_within
def _lowered(
    ladder: Ladder, visit: ClassVisit, prices: Floats, k: int, overpaid: Overpaid, d: Int, first: Int, last: Int,
    cost: float,
) -> None:  # fmt: skip
    """Shrink the highest prices of a class until they do not exceed its cost; list some that do."""
    for i in range(SHRINKS):
        total, n = _top(ladder, visit, prices, k, d, first, last)
        if total <= k * cost:
            return
        if i < LISTED and total > k * cost * (1 + MIN_LISTED_EXCESS):
            _listed(ladder, visit, overpaid, k, n, cost)
        for y in range(n):
            prices[visit.top_tuples[y]] *= UNDER * k * cost / total
    _capped(visit, prices, d, first, last, UNDER * cost)


@compiled_within
def _listed(ladder: Ladder, visit: ClassVisit, overpaid: Overpaid, k: int, n: Int, cost: float) -> None:
    """List a class by the ``n`` tuples with its highest prices, if there is room."""
    c = overpaid.n[0]
    start = overpaid.starts[c]
    if c == overpaid.limits.shape[0] or start + n > overpaid.members.shape[0]:
        return
    left = k
    for y in range(n):
        u = visit.top_tuples[y]
        w = min(left, ladder.counts[u])
        overpaid.members[start + y], overpaid.shares[start + y] = u, w
        left -= w
    overpaid.limits[c] = k * cost
    overpaid.starts[c + 1] = start + n
    overpaid.n[0] += 1


@compiled
def visit_classes(
    ladder: Ladder, visit: ClassVisit, prices: Floats, k: int, treatment: int, overpaid: Overpaid, work: int
) -> bool:  # fmt: skip
    """Visit the classes that are overpaid, list them, and lower their prices, until all are visited or much is done.

    Prices only fall, so whatever was fine remains so: once all are visited, no class is overpaid. Returns whether that
    is so; otherwise, the next call goes on.
    """
    m, q = ladder.codes.shape
    until = visit.work[0] + work
    if visit.work[0] == 0:
        for i in range(m):
            visit.group[0, i] = i
        enter_group(ladder, visit, prices, k, 0, m, 0.0)
    while visit.depth[0] >= 0 and visit.work[0] < until:
        d = visit.depth[0]
        first, last, promising, cost = next_part(ladder, visit, k)
        if not promising:
            continue
        total, _ = _top(ladder, visit, prices, k, d, first, last)
        if visit.top[0] <= cost or (treatment == LOWER and total <= k * cost * (1 + OVER) + OVER * OVER):
            continue
        if d + 1 < q:
            for i in range(first, last):
                visit.group[d + 1, i - first] = visit.group[d, i]
            enter_group(ladder, visit, prices, k, d + 1, last - first, cost)
        elif treatment == CAP:
            _capped(visit, prices, d, first, last, cost)
        else:
            _lowered(ladder, visit, prices, k, overpaid, d, first, last, cost)
    return bool(visit.depth[0] < 0)


# --- higher prices -----------------------------------------------------------------------------------------------


@compiled
def raise_prices(
    prices: Floats, max_prices: Floats, counts: Floats, use: Floats, starts: Ints, members: ShortInts, shares: Floats,
    limits: Floats, pull: float, n_rounds: int, n_sweeps: int,
) -> None:  # fmt: skip
    """Raise the sum of all prices while listed classes are not overpaid, approximately.

    ``use`` is how much of each listed class a fractional partition takes. Tuples of which it takes too little get
    dearer in proportion to ``pull`` (proximal point method), and of one class after the other more or less is taken,
    until it is just paid (C. Hildreth, "A quadratic programming procedure", Naval Res. Logistics Quarterly 4, 1957).
    """
    m, n = prices.shape[0], limits.shape[0]
    missing = np.ones(m)  # the share of a tuple's records that no class takes
    scale = np.zeros(n)
    for c in range(n):
        for i in range(starts[c], starts[c + 1]):
            u = members[i]
            missing[u] -= use[c] * shares[i] / counts[u]
            scale[c] += pull * shares[i] * shares[i] / counts[u]
    free = prices.copy()  # without limits; the price is the nearest within
    for _ in range(n_rounds):
        for u in range(m):
            free[u] = min(max_prices[u], max(0.0, free[u])) + pull * missing[u]
        for _ in range(n_sweeps):
            for c in range(n):
                over = -limits[c]
                for i in range(starts[c], starts[c + 1]):
                    over += shares[i] * min(max_prices[members[i]], max(0.0, free[members[i]]))
                change = max(-use[c], over / scale[c])
                if change != 0:
                    use[c] += change
                    for i in range(starts[c], starts[c + 1]):
                        u = members[i]
                        missing[u] -= change * shares[i] / counts[u]
                        free[u] -= pull * change * shares[i] / counts[u]
    for u in range(m):
        prices[u] = min(max_prices[u], max(0.0, free[u]))
