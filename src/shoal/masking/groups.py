"""Groups of similar records: MDAV, V-MDAV with groups of variable size, and the optimum for a single column.

J. Domingo-Ferrer, J. M. Mateo-Sanz, "Practical data-oriented microaggregation for statistical disclosure control",
TKDE 14(1), 2002; J. Domingo-Ferrer, V. Torra, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", Data Mining and Knowledge Discovery 11(2), 2005.
A. Solanas, A. Martínez-Ballesté, "V-MDAV: a multivariate microaggregation with variable group size", COMPSTAT 2006.
S. L. Hansen, S. Mukherjee, "A polynomial algorithm for optimal univariate microaggregation", TKDE 15(4), 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.threads import done_in_parts, kept_threads
from shoal.masking.kernels import distances, exchanged, from_centre, shortest_path, smallest_positions, sums_of
from shoal.masking.points import Points, scaled_to_unit
from shoal.tables.frequency import Floats

Values = TypeVar("Values", NDArray[np.int64], Floats)
GroupOf = NDArray[np.int64]  # the number of the group of each record
Heard = Callable[[float], None]  # the share that is done; it may raise an exception to stop the computation

BATCH = 64  # records between two checks of the time: no loop delays an interrupt for long
MIN_THREADED = 1 << 14  # records from which two threads need less time, although one has to wake up the other
NEAR = 8  # groups that a record may move to or swap with


def unheard(_share: float) -> None:
    """Ignore progress: the default."""


def mdav_groups(points: Points, k: int, heard: Heard = unheard) -> GroupOf:
    """Form groups of k to 2k−1: around the record farthest from the mean, then around the one farthest from that.

    O(n²/k) distances. Ties are resolved in favour of the first record.
    """
    group = np.empty(points.n, np.int64)
    left = np.arange(points.n)
    sign_counts = _sign_counts(points, left)
    n_groups = 0

    def close(away: Floats) -> NDArray[np.int64]:
        nonlocal n_groups
        members = smallest_positions(away, k)
        group[left[members]] = n_groups
        n_groups += 1
        np.subtract.at(sign_counts, points.signs[left[members]].ravel(), 1.0)
        return np.sort(members)

    with kept_threads() as pool:
        while len(left) >= 2 * k:
            heard(1 - len(left) / points.n)
            first = left[int(_from_mean(points, left, sign_counts, pool).argmax())]
            away = _distances_from(points, int(first), left, pool)
            grouped = close(away)
            left, away = _remaining(left, grouped), _remaining(away, grouped)
            if len(left) >= 2 * k:  # 3k when the round began
                last = left[int(away.argmax())]
                left = _remaining(left, close(_distances_from(points, int(last), left, pool)))
    group[left] = n_groups
    return group


def _remaining(values: Values, places: NDArray[np.int64]) -> Values:
    """Return the values at all other places; the ``places`` ascend, and are so few that what is between is copied."""
    starts, ends = [0, *(places + 1).tolist()], [*places.tolist(), len(values)]
    return np.concatenate([values[start:end] for start, end in zip(starts, ends, strict=True)])


def v_mdav(points: Points, k: int, gamma: float = 0.2, heard: Heard = unheard) -> GroupOf:
    """Form groups that grow up to 2k−1 while the nearest outside record is nearer to them than to any other record.

    Nearer by the factor ``gamma``: 0.2 for scattered records, 1.1 for clustered ones. O(n²) distances.
    """
    group = np.full(points.n, -1, np.int64)
    left = np.arange(points.n)
    order = np.argsort(-_from_mean(points, left, _sign_counts(points, left)), kind="stable")
    factor = gamma * gamma if points.squared else gamma
    n_groups = 0
    for start in order.tolist():
        if group[start] >= 0:
            continue
        if len(left) < k:
            break
        heard(1 - len(left) / points.n)
        members = left[smallest_positions(_distances_from(points, start, left), k)]
        group[members] = n_groups
        left = left[group[left] < 0]
        near = np.full(len(left), np.inf)
        for i in members.tolist():
            near = np.minimum(near, _distances_from(points, i, left))
        size = k
        while size < 2 * k - 1 and len(left) > 1:
            at = int(near.argmin())
            away = _distances_from(points, int(left[at]), left)
            away[at] = np.inf
            if not near[at] < factor * away.min():
                break
            group[left[at]] = n_groups
            stays = np.arange(len(left)) != at
            left, near = left[stays], np.minimum(near, away)[stays]
            size += 1
        n_groups += 1
    settled = np.flatnonzero(group >= 0)
    for i in left.tolist():
        group[i] = group[settled[int(_distances_from(points, i, settled).argmin())]] if n_groups else 0
    return _halved(points, group, k)


def univariate(values: Floats, k: int) -> GroupOf:
    """Group one column with the least sum of squares: a shortest path over its sorted values, O(nk)."""
    order = np.argsort(values, kind="stable")
    scaled = scaled_to_unit(values)
    ends = shortest_path(scaled_to_unit(scaled - scaled.mean())[order], k)
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
    return group


def improve_groups(points: Points, group: GroupOf, k: int, heard: Heard = unheard) -> GroupOf:
    """Move and swap records between near groups until no change lowers the sum of squares.

    For numbers only. Sizes stay between k and 2k−1.
    """
    group = group.copy()
    sizes = np.bincount(group)
    if len(sizes) < 2:
        return group
    centres = np.column_stack([np.bincount(group, column) for column in points.numbers.T]) / sizes[:, None]
    slack = 1e-9 * float((points.numbers**2).sum()) / points.n  # a gain below rounding errors does not count
    records = np.arange(points.n)
    n_changes = 1
    while n_changes:
        n_changes = 0
        for begin in range(0, points.n, BATCH):
            heard(begin / points.n)
            n_changes += exchanged(
                points.numbers, group, centres, sizes, k, records[begin : begin + BATCH], NEAR, slack
            )
    return group


def _halved(points: Points, group: GroupOf, k: int) -> GroupOf:
    """Regroup groups of 2k or more, which the last records may have formed."""
    group = group.copy()
    for large in np.flatnonzero(np.bincount(group) >= 2 * k).tolist():
        members = np.flatnonzero(group == large)
        parts = mdav_groups(points.subset(members), k)
        group[members] = np.where(parts == 0, large, group.max() + parts)
    return group


def _distances_from(points: Points, i: int, left: NDArray[np.int64], pool: ThreadPoolExecutor | None = None) -> Floats:
    point_arrays = (points.numbers, points.signs, points.prices, points.squared)
    return _one_by_one(partial(distances, *point_arrays, i), left, pool)


def _from_mean(
    points: Points, left: NDArray[np.int64], sign_counts: Floats, pool: ThreadPoolExecutor | None = None
) -> Floats:
    """Return each distance from the mean of ``left``; for a sign, how often another record has a different one."""
    point_arrays = (points.numbers, points.signs, points.prices, points.squared)
    mean = sums_of(points.numbers, left) / len(left)
    return _one_by_one(partial(from_centre, *point_arrays, mean, sign_counts / len(left)), left, pool)


def _one_by_one(
    measured: Callable[[NDArray[np.int64]], Floats], left: NDArray[np.int64], pool: ThreadPoolExecutor | None
) -> Floats:
    """Measure each record of ``left`` by itself, half of them on the other core if they are many."""
    if pool is None or len(left) < MIN_THREADED:
        return np.asarray(measured(left))
    return np.concatenate(done_in_parts(measured, np.array_split(left, 2), pool))


def _sign_counts(points: Points, records: NDArray[np.int64]) -> Floats:
    """Return how many of the records have each sign."""
    return np.bincount(points.signs[records].ravel(), minlength=points.n_signs).astype(np.float64)
