"""The loops of microaggregation: arrays in, arrays out, no objects."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled
from shoal.tables.frequency import Floats

Signs = NDArray[np.int32]
Records = NDArray[np.int64]


@compiled
def distances(numbers: Floats, signs: Signs, prices: Floats, squared: bool, i: int, left: Records) -> Floats:
    """Return the distance of each record of ``left`` from record ``i``."""
    out = np.zeros(len(left))
    for at in range(len(left)):
        other = left[at]
        total = 0.0
        for j in range(numbers.shape[1]):
            difference = numbers[other, j] - numbers[i, j]
            total += difference * difference if squared else abs(difference)
        for j in range(signs.shape[1]):
            if signs[other, j] != signs[i, j]:
                total += prices[j]
        out[at] = total
    return out


@compiled
def sums_of(numbers: Floats, left: Records) -> Floats:
    """Return the sum of each column over ``left``."""
    sums = np.zeros(numbers.shape[1])
    for other in left:
        for j in range(numbers.shape[1]):
            sums[j] += numbers[other, j]
    return sums


@compiled
def from_centre(
    numbers: Floats, signs: Signs, prices: Floats, squared: bool, centre: Floats, shares: Floats, left: Records
) -> Floats:
    """Return each distance from a centre; for a sign, by the share of the records that have it, how many have not."""
    out = np.zeros(len(left))
    for at in range(len(left)):
        other = left[at]
        total = 0.0
        for j in range(numbers.shape[1]):
            difference = numbers[other, j] - centre[j]
            total += difference * difference if squared else abs(difference)
        for j in range(signs.shape[1]):
            total += prices[j] * (1.0 - shares[signs[other, j]])
        out[at] = total
    return out


@compiled
def smallest_positions(values: Floats, m: int) -> Records:
    """Return the positions of the ``m`` least values, ascending; the first ones in case of ties."""
    smallest = np.empty(m, np.int64)
    n = 0
    for i in range(len(values)):
        if n == m and values[i] >= values[smallest[m - 1]]:
            continue
        p = min(n, m - 1)
        while p > 0 and values[smallest[p - 1]] > values[i]:
            smallest[p] = smallest[p - 1]
            p -= 1
        smallest[p] = i
        n = min(n + 1, m)
    return smallest[:n]


@compiled
def shortest_path(values: Floats, k: int) -> Records:
    """Return the ends of groups of k to 2k−1 neighbours in ``values``, ascending, with the least sum of squares."""
    n = len(values)
    sums = np.zeros(n + 1)
    squares = np.zeros(n + 1)
    for i in range(n):
        sums[i + 1] = sums[i] + values[i]
        squares[i + 1] = squares[i] + values[i] * values[i]
    cost = np.full(n + 1, np.inf)
    before = np.zeros(n + 1, np.int64)
    cost[0] = 0.0
    for end in range(k, n + 1):
        for start in range(max(0, end - 2 * k + 1), end - k + 1):
            if cost[start] == np.inf:
                continue
            total = sums[end] - sums[start]
            sum_of_squares = squares[end] - squares[start] - total * total / (end - start)
            if cost[start] + max(sum_of_squares, 0.0) < cost[end]:
                cost[end] = cost[start] + max(sum_of_squares, 0.0)
                before[end] = start
    ends = np.empty(n // k + 1, np.int64)
    m = 0
    end = n
    while end > 0:
        ends[m] = end
        m += 1
        end = before[end]
    return ends[:m][::-1].copy()


@compiled
def exchanged(
    numbers: Floats, group: Records, centres: Floats, sizes: Records, k: int, records: Records, near: int, slack: float
) -> int:
    """Move or swap ``records`` where that lowers the sum of squares within groups most; return the number of changes.

    Considers the ``near`` groups with the nearest centres; ``group``, ``centres`` and ``sizes`` are changed in place.
    """
    n, p = numbers.shape
    m = len(sizes)
    n_changes = 0
    away = np.empty(m)
    for i in records:
        a = group[i]
        for g in range(m):
            away[g] = 0.0
            for j in range(p):
                away[g] += (numbers[i, j] - centres[g, j]) ** 2
        # First option: i moves to another group g, if a keeps k records and g has fewer than 2k − 1.
        own_distance = away[a]
        away[a] = np.inf
        best, target, other = -slack, -1, -1
        close = smallest_positions(away, min(near, m - 1))
        if sizes[a] > k:
            for g in close:
                if sizes[g] < 2 * k - 1:
                    change = away[g] * sizes[g] / (sizes[g] + 1) - own_distance * sizes[a] / (sizes[a] - 1)
                    if change < best:
                        best, target = change, g
        # Second option: i swaps places with a record h of a near group.
        for h in range(n):
            g = group[h]
            if g == a or away[g] > away[close[-1]]:
                continue
            # x leaves a for g, and y takes its place: sizes stay, and a centre moves by (y − x) over its size.
            between, back, stay = 0.0, 0.0, 0.0
            for j in range(p):
                between += (numbers[i, j] - numbers[h, j]) ** 2
                back += (numbers[h, j] - centres[a, j]) ** 2
                stay += (numbers[h, j] - centres[g, j]) ** 2
            change = away[g] + back - own_distance - stay - between * (1.0 / sizes[a] + 1.0 / sizes[g])
            if change < best:
                best, target, other = change, g, h
        if target < 0:
            continue
        n_changes += 1
        group[i] = target
        if other >= 0:
            group[other] = a
            for j in range(p):
                step = numbers[other, j] - numbers[i, j]
                centres[a, j] += step / sizes[a]
                centres[target, j] -= step / sizes[target]
        else:
            for j in range(p):
                centres[a, j] = (centres[a, j] * sizes[a] - numbers[i, j]) / (sizes[a] - 1)
                centres[target, j] = (centres[target, j] * sizes[target] + numbers[i, j]) / (sizes[target] + 1)
            sizes[a] -= 1
            sizes[target] += 1
    return n_changes
