"""The kernels of the bound of ``local`` where more is required than a size: prices that no passing class overpays.

As in ``prices.py``, the labels that a class can share are visited column by column. Only the highest price of a
class differs: its records must have sensitive values that may pass. Of every value, the highest prices of a group are
listed, and for each size that a class can have, the dearest choice is taken that the rules allow: at most so many
records of a value, at least so many, so many different values, and one sum over the records that is large enough, whose
multiplier (Lagrange) is looked for. Any multiplier gives an upper bound on what a class can be worth, so the prices are
a proof wherever the search for it ends. A group has all choices of its parts, so it is never worth less than they.

A record may have a negative price: one with a value that is scarce around it lets others have a class.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import Ints, ShortInts
from shoal.search.local.prices import (
    LISTED,
    MUCH,
    OVER,
    SHRINKS,
    ClassVisit,
    Ladder,
    Overpaid,
    enter_group,
    next_part,
)
from shoal.search.local.rules import SizeRule
from shoal.tables.frequency import Floats

SINGLY = 6  # times that only prices of a class are lowered, before all as high are
TRIES = 14  # multipliers for one size
SLIGHT = 1e-11  # of all amounts that are added up, more than rounding can change
STEP = 1e-10  # records; a smaller part is none


class ValueRules(NamedTuple):
    """What the sensitive values of a passing class must satisfy at the least, for every size from the smallest.

    The last row is for classes of its size and all larger ones: they are taken as if records could be divided.
    A test wants a sum: the first ``full`` records of a value add ``rate`` each, the next one ``part``, others nothing.
    """

    values: Ints  # (records)  the value of each
    sizes: Ints  # (rows)  ascending
    caps: Floats  # (rows, values)  the most records of each value
    floors: Floats  # (rows, values)  the fewest
    distinct: Ints  # (rows)  different values
    rate: Floats  # (tests, rows, values)
    full: Floats  # (tests, rows, values)
    part: Floats  # (tests, rows, values)
    wanted: Floats  # (tests, rows)
    room: Ints  # (values)  the most records of each value in any row
    needed: Ints  # values of which some row wants a record


class Lists(NamedTuple):
    """The highest prices of a group by value, and room for choices among them."""

    n_values: Ints  # (1)
    present: Ints  # (values)  that the group has
    length: Ints  # (values)
    records: Ints  # (values)
    price: Floats  # (values, room)
    who: ShortInts  # (values, room)
    at: Ints  # (values)
    ends: Floats  # (values)  of the record at, counted in records
    taken: Floats  # (values)
    low: Floats  # (values)
    high: Floats  # (values)
    best: Floats  # (values)
    multipliers: Floats  # (tests, rows + 1)  found last; at the end for records that can be divided
    found: Floats  # (3)  row, worth above the cost, size


def value_rules(values: Ints, rows: Sequence[SizeRule]) -> ValueRules:
    """Return the rules for records with these values."""
    caps, floors = np.array([row.caps for row in rows]), np.array([row.floors for row in rows])
    return ValueRules(
        values,
        np.array([row.size for row in rows], np.int64),
        caps,
        floors,
        np.array([row.distinct for row in rows], np.int64),
        np.array([row.rate for row in rows]).swapaxes(0, 1).copy(),
        np.array([row.full for row in rows]).swapaxes(0, 1).copy(),
        np.array([row.part for row in rows]).swapaxes(0, 1).copy(),
        np.array([row.wanted for row in rows]).T.copy(),
        np.ceil(caps.max(axis=0)).astype(np.int64),
        np.flatnonzero(floors.any(axis=0)),
    )


def lists_of(rules: ValueRules) -> Lists:
    """Return lists without prices, with room for as many records of a value as a class can have."""
    m, room = len(rules.room), int(rules.room.max(initial=0)) + 1
    return Lists(
        n_values=np.zeros(1, np.int64),
        present=np.zeros(m, np.int64),
        length=np.zeros(m, np.int64),
        records=np.zeros(m, np.int64),
        price=np.empty((m, room)),
        who=np.empty((m, room), np.int32),
        at=np.zeros(m, np.int64),
        ends=np.zeros(m),
        taken=np.zeros(m),
        low=np.zeros(m),
        high=np.zeros(m),
        best=np.zeros(m),
        multipliers=np.zeros((len(rules.wanted), len(rules.sizes) + 1)),
        found=np.zeros(3),
    )


# --- the dearest class of a group ----------------------------------------------------------------------------------


@compiled_within
def _list_prices(
    ladder: Ladder, visit: ClassVisit, rules: ValueRules, lists: Lists, prices: Floats, d: Int, first: Int, last: Int
) -> None:  # fmt: skip
    """List the highest prices of every value in a part of a group, for as many records as a class can have of it."""
    counts, group, values, room = ladder.counts, visit.group, rules.values, rules.room
    length, records, price, who = lists.length, lists.records, lists.price, lists.who
    for i in range(lists.n_values[0]):
        length[lists.present[i]] = records[lists.present[i]] = 0
    n_values = 0
    for i in range(first, last):
        u = group[d, i]
        v = values[u]
        if length[v] == 0:
            if room[v] == 0:
                continue
            lists.present[n_values] = v
            n_values += 1
        own = prices[u]
        n = length[v]
        if records[v] < room[v] or own > price[v, n - 1]:
            y = n
            while y > 0 and price[v, y - 1] < own:
                price[v, y], who[v, y] = price[v, y - 1], who[v, y - 1]
                y -= 1
            price[v, y], who[v, y] = own, u
            n += 1
            records[v] += counts[u]
            while records[v] - counts[who[v, n - 1]] >= room[v]:
                n -= 1
                records[v] -= counts[who[v, n]]
            length[v] = n
    lists.n_values[0] = n_values
    visit.work[0] += last - first


@compiled_within
def _take(ladder: Ladder, lists: Lists, v: Int, amount: float) -> float:
    """Take some of the next record of a value; returns what it adds to the worth."""
    x = lists.taken[v] + amount
    worth = float(amount * lists.price[v, lists.at[v]])
    lists.taken[v] = x
    if x + STEP >= lists.ends[v]:
        lists.taken[v] = lists.ends[v]
        lists.at[v] += 1
        if lists.at[v] < lists.length[v]:
            lists.ends[v] += ladder.counts[lists.who[v, lists.at[v]]]
    return worth


@compiled_within
def _dearest(
    ladder: Ladder, rules: ValueRules, lists: Lists, row: Int, test: Int, n: float, factor: float, multiplier: float
) -> tuple[bool, float, float, float]:  # fmt: skip
    """Choose ``n`` records with the highest prices plus what they add to a sum, by a multiplier.

    First what every class must have of a value, then the dearest records of as many other values as it needs, then the
    dearest of all. That is the best choice, because in every value the records get cheaper and add no more: a choice
    without one of these values has a record of a value that it needs less, which can be exchanged.

    Returns whether there are so many, what they are worth, what they add, and the sum of absolute amounts.
    """
    caps, floors = rules.caps, rules.floors
    rate, full, part = rules.rate, rules.full, rules.part
    taken, at, ends, present = lists.taken, lists.at, lists.ends, lists.present
    m = lists.n_values[0]
    worth, gain, size, total = 0.0, 0.0, 0.0, 0.0
    n_distinct = 0
    for i in range(m):
        v = present[i]
        taken[v] = 0.0
        at[v] = 0
        ends[v] = ladder.counts[lists.who[v, 0]]
    forced = rules.distinct[row] if factor == 1.0 else 0
    stage = 0  # floors, different values, the rest
    turn = 0
    while True:
        best = -1
        key, limit, own_rate = -np.inf, 0.0, 0.0
        if stage == 0:
            if turn == rules.needed.shape[0]:
                stage = 1
                for i in range(m):
                    n_distinct += taken[present[i]] > 0
                continue
            v = rules.needed[turn]
            if lists.length[v] == 0 and floors[row, v] * factor > STEP:
                return False, 0.0, 0.0, 0.0
            if floors[row, v] * factor <= STEP or taken[v] + STEP >= floors[row, v] * factor:
                turn += 1
                continue
        elif stage == 1 and n_distinct >= forced:
            stage = 2
        if stage == 2 and size + STEP >= n:
            return True, worth, gain, total
        for i in range(m):
            v = present[i]
            if stage == 0 and v != rules.needed[turn]:
                continue
            x = taken[v]
            if (stage == 1 and x > 0) or at[v] == lists.length[v] or x + STEP >= caps[row, v] * factor:
                continue
            till = min(ends[v], caps[row, v] * factor)
            r = 0.0
            if x + STEP < full[test, row, v] * factor:
                r = rate[test, row, v]
                till = min(till, full[test, row, v] * factor)
            elif part[test, row, v] > 0 and x + STEP < full[test, row, v] + 1:
                r = part[test, row, v]
                till = min(till, full[test, row, v] + 1)
            own = lists.price[v, at[v]] + multiplier * r
            if own > key:
                best, key, limit, own_rate = v, own, till - x, r
        if best < 0:
            return False, 0.0, 0.0, 0.0
        if stage == 0:
            limit = min(limit, floors[row, best] * factor - taken[best])
        elif stage == 1:
            limit = min(limit, 1.0)
            n_distinct += 1
        if size + limit > n + STEP:
            if stage < 2:  # what is forced alone is more than the size
                return False, 0.0, 0.0, 0.0
            limit = n - size
        price = lists.price[best, at[best]]
        worth += _take(ladder, lists, best, limit)
        gain += limit * own_rate
        size += limit
        total += limit * (abs(price) + multiplier * abs(own_rate))


@compiled_within
def _worth(
    ladder: Ladder, rules: ValueRules, lists: Lists, row: Int, n: float, factor: float, cost: float, exact: bool
) -> float:  # fmt: skip
    """Return an upper bound on what the records of a class of size ``n`` are worth above its cost; -1 if not above.

    The choice is in ``lists.best``. Where ``exact`` is false, it is enough to know that some choice is above.
    """
    least = np.inf
    present, m = lists.present, lists.n_values[0]
    for test in range(rules.wanted.shape[0]):
        want = rules.wanted[test, row] * factor
        warm = row if factor == 1.0 else rules.sizes.shape[0]
        multiplier = lists.multipliers[test, warm]
        low_gain, low_worth, high_gain, high_worth = 0.0, 0.0, 0.0, 0.0
        has_low, has_high = False, False
        over = np.inf
        scale = 0.0
        for _ in range(TRIES):
            enough, worth, gain, total = _dearest(ladder, rules, lists, row, test, n, factor, multiplier)
            if not enough:
                return -1.0
            above = worth - n * cost + SLIGHT * (total + n * cost)
            if want > -np.inf:
                above += multiplier * (gain - want) + SLIGHT * multiplier * abs(want)
            over = min(over, above)
            if over <= 0:
                lists.multipliers[test, warm] = multiplier
                return -1.0
            if want == -np.inf or gain >= want:
                has_high = True
                high_gain, high_worth = gain, worth
                for i in range(m):
                    lists.high[present[i]] = lists.taken[present[i]]
                if want == -np.inf or multiplier == 0.0 or (worth > n * cost and not exact):
                    break
            else:
                has_low = True
                low_gain, low_worth = gain, worth
                for i in range(m):
                    lists.low[present[i]] = lists.taken[present[i]]
            before = multiplier
            if has_low and has_high:
                multiplier = max(0.0, (low_worth - high_worth) / (high_gain - low_gain))
                if abs(multiplier - before) <= 1e-12 * before:
                    break
            elif has_high:
                multiplier = 0.0
            else:
                scale = max(scale, total / n)
                multiplier = 2 * multiplier + scale
        if over < least:
            least = over
            share = 1.0 if has_high else 0.0
            if has_low and has_high:
                share = (want - low_gain) / (high_gain - low_gain)
            for i in range(m):  # of the last two choices, such that the sum is just large enough
                v = present[i]
                lists.best[v] = 0.0
                if has_high:
                    lists.best[v] += share * lists.high[v]
                if has_low:
                    lists.best[v] += (1 - share) * lists.low[v]
        lists.multipliers[test, warm] = multiplier
    return least


@compiled_within
def _overpaid(
    ladder: Ladder, rules: ValueRules, lists: Lists, n_records: Int, cost: float, before: Int, exact: bool
) -> bool:  # fmt: skip
    """Return whether a class of listed records may be worth more than it costs; it is in ``best`` and ``found``.

    The row ``before``, if any, is looked at first.
    """
    last = rules.sizes.shape[0] - 1
    largest = float(rules.sizes[last])
    for i in range(-1 if before >= 0 else 0, last + 1):
        row = i if i >= 0 else before
        n = float(rules.sizes[row])
        if n > n_records:
            return False
        if row == last:
            over = _worth(ladder, rules, lists, last, n, 1.0, cost, exact)
        else:
            # A larger class is never worth more than if it were as small, and its records could be divided.
            if i >= 0 and _worth(ladder, rules, lists, last, n, n / largest, cost, False) <= 0:
                return False
            over = _worth(ladder, rules, lists, row, n, 1.0, cost, exact)
        if over > 0:
            lists.found[0], lists.found[1], lists.found[2] = row, over, n
            return True
    return False


# --- what happens to it ---------------------------------------------------------------------------------------------


@compiled_within
def _list_class(ladder: Ladder, lists: Lists, overpaid: Overpaid, cost: float) -> None:
    """List the class in ``best`` as overpaid, if there is room."""
    c = overpaid.n[0]
    end = overpaid.starts[c]
    if c == overpaid.limits.shape[0]:
        return
    for i in range(lists.n_values[0]):
        v = lists.present[i]
        left = lists.best[v]
        y = 0
        while left > STEP and y < lists.length[v]:
            if end == overpaid.members.shape[0]:
                return
            u = lists.who[v, y]
            w = min(left, float(ladder.counts[u]))
            overpaid.members[end], overpaid.shares[end] = u, w
            left -= w
            end += 1
            y += 1
    overpaid.limits[c] = lists.found[2] * cost
    overpaid.starts[c + 1] = end
    overpaid.n[0] += 1


@compiled_within
def _lower_class(
    ladder: Ladder, visit: ClassVisit, rules: ValueRules, lists: Lists, prices: Floats, overpaid: Overpaid, d: Int,
    first: Int, last: Int, n_records: Int, cost: float,
) -> None:  # fmt: skip
    """Lower prices until no class of a part of a group is worth too much; list some that are.

    First only the records of such a class get cheaper. Where that does not end, there are many more like them: then no
    record of a value remains dearer than the cheapest of the class.
    """
    for i in range(SHRINKS):
        _list_prices(ladder, visit, rules, lists, prices, d, first, last)
        if not _overpaid(ladder, rules, lists, n_records, cost, -1 if i == 0 else int(lists.found[0]), True):
            return
        over, n = lists.found[1], lists.found[2]
        if i < LISTED and over > n * cost * MUCH:
            _list_class(ladder, lists, overpaid, cost)
        less = over / n * (1 + OVER) + SLIGHT * cost
        for j in range(lists.n_values[0]):
            v = lists.present[j]
            left = lists.best[v]
            lists.low[v] = np.inf
            y = 0
            while left > STEP and y < lists.length[v]:
                u = lists.who[v, y]
                if i < SINGLY:
                    prices[u] -= less
                else:
                    lists.low[v] = prices[u] - less
                left -= ladder.counts[u]
                y += 1
        if i >= SINGLY:
            for j in range(first, last):
                u = visit.group[d, j]
                prices[u] = min(prices[u], lists.low[rules.values[u]])
    for i in range(first, last):
        prices[visit.group[d, i]] = min(prices[visit.group[d, i]], cost * (1 - 4 * SLIGHT))


@compiled
def visit_passing_classes(
    ladder: Ladder, visit: ClassVisit, rules: ValueRules, lists: Lists, prices: Floats, overpaid: Overpaid, work: int
) -> bool:
    """Visit the classes that may pass and are overpaid, as ``visit_classes`` does, and lower their prices.

    Returns whether all are visited; otherwise, the next call goes on.
    """
    m, q = ladder.codes.shape
    k = rules.sizes[0]
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
        _list_prices(ladder, visit, rules, lists, prices, d, first, last)
        n_records = 0
        for i in range(lists.n_values[0]):
            n_records += lists.records[lists.present[i]]
        if not _overpaid(ladder, rules, lists, n_records, cost, -1, False):
            continue
        if d + 1 < q:
            for i in range(first, last):
                visit.group[d + 1, i - first] = visit.group[d, i]
            enter_group(ladder, visit, prices, k, d + 1, last - first, cost)
        else:
            _lower_class(ladder, visit, rules, lists, prices, overpaid, d, first, last, n_records, cost)
    return bool(visit.depth[0] < 0)
