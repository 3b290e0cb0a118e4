"""Clusters: each record in turn gathers the cheapest records of the kinds for which its class still has room.

The start of ``local`` if closeness is required; otherwise the cover is better. A kind is a combination of sensitive
values. A class may exceed a kind's share in the table, at a price, but by no more than t of the class in total: then it
is within t of the table in total variation, and thus in every distance in which no two values are farther apart than 1.
A record without a class joins one that still passes with it, and the remaining records are merged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from shoal.compiled.grouping import group
from shoal.compiled.jit import compiled
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.models.closeness import TCloseness
from shoal.search.cells.classes import Partition, class_table, passing
from shoal.search.cells.merge import least_size, merged
from shoal.search.cells.nearest import Metric
from shoal.search.local.boxes import Space
from shoal.search.local.kernels import FAR, Boxes, Ints, widen, wider
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats, FrequencyTable, packed

ROOM = 0.75  # share of t that an ideal class of the smallest size may use
LARGEST = 1_000
SIZES = 4  # tried, if closeness is required
WINDOW = 4_000  # records that a class chooses from
WORK = 100_000_000  # boxes examined, approximately at most
CALL = 200  # classes between two checks of the time
LOOSE = -1
TRIES = 8  # classes that an unassigned record tries
AROUND = 300  # classes on either side among which it chooses them
PRICE = 0.03  # cost of exceeding the share of a kind, as a part of the cost of a suppressed record


def kinds_of(table: FrequencyTable) -> Ints:
    """Return the kind of each row, its sensitive values: exchanging rows of one kind changes no verdict."""
    if not table.sensitive:
        return np.zeros(table.n_classes, np.int64)
    values = [histogram.values[histogram.starts[:-1]] for histogram in table.sensitive.values()]
    return group(packed(np.column_stack(values).astype(np.int32)))[0].astype(np.int64)


def clusters(problem: Problem, space: Space) -> Iterator[Partition]:
    """Yield partitions into classes of about one size, for several sizes; none if no closeness is required."""
    table = problem.table
    limits = [model.t for model in problem.models if isinstance(model, TCloseness)]
    if not limits or table.entities is not None:
        return
    row = np.repeat(np.arange(table.n_classes), table.counts)
    kinds = kinds_of(table)[row]
    shares = np.bincount(kinds) / len(kinds)
    for size in _sizes(shares, least_size(problem), min(limits), len(row)):
        if problem.out_of_time:
            return
        try:
            yield _of_size(problem, space, row, kinds, shares, size, min(limits))
        except (InfeasibleError, OutOfTimeError):  # no merger helps the remaining records, or not in time
            continue


def _sizes(shares: Floats, min_size: int, t: float, n_records: int) -> list[int]:
    """Return the class sizes worth trying: each can be closer to the table than all smaller ones."""
    sizes: list[int] = []
    nearest = ROOM * t
    for size in range(min_size, min(LARGEST, n_records // 2) + 1):
        if sizes and size > 3 * sizes[0]:
            break
        if (near := least_variation(shares, size)) <= nearest:
            sizes.append(size)
            nearest = near
    return sizes[-SIZES:]


def least_variation(shares: Floats, size: int) -> float:
    """Return the smallest total variation of a class of this size: whole shares, then the largest remainders."""
    exact = shares * size
    whole = np.floor(exact)
    lacking = np.sort(whole + 1 - exact)
    return float(lacking[: size - int(whole.sum())].sum() / size)


def _of_size(problem: Problem, space: Space, row: Ints, kinds: Ints, shares: Floats, size: int, t: float) -> Partition:
    (places,) = space.orders(np.random.default_rng(problem.terms.seed), 1)
    position = np.empty(len(places), np.int64)
    position[places] = np.arange(len(places))
    tuple_of = space.tuple_of_row[row]
    order = np.argsort(position[tuple_of], kind="stable")
    boxes = space.boxes(space.weights(None))
    class_of = np.full(len(row), LOOSE, np.int64)
    left_at = np.zeros(len(row), np.int64)  # the number of classes when a record found none
    queue = _Queue(order, np.arange(1, len(row) + 1), tuple_of, kinds, class_of, left_at)
    fill = _Fill(shares * size, t * size, PRICE, size, max(8 * size, min(WINDOW, WORK // len(row))))
    first = n_classes = 0
    while first < len(row) and not problem.out_of_time:
        problem.progress(f"classes of {size}", first / len(row))
        first, n_classes = _gather(boxes, queue, fill, first, n_classes, n_classes + CALL)
    if n_classes:
        _join(problem, boxes, row, tuple_of, class_of, left_at, n_classes)
    class_of[class_of == LOOSE] = n_classes
    partition = Partition(row, np.ones(len(row), np.int64), np.unique(class_of, return_inverse=True)[1])
    return merged(Metric(problem), partition)


class _Queue(NamedTuple):
    """The records in the order in which they are processed, and their state."""

    order: Ints
    following: Ints  # links the places of records without a class
    tuple_of: Ints
    kinds: Ints
    class_of: Ints
    left_at: Ints  # the number of classes when a record found none


class _Fill(NamedTuple):
    """The target composition of a class."""

    room: Floats  # (kinds)  its share of a class
    over: float  # how much all kinds together may exceed theirs
    price: float  # of one record too many of a kind
    size: int
    window: int  # records that it may choose from


@compiled
def _gather(boxes: Boxes, queue: _Queue, fill: _Fill, first: int, n_classes: int, until: int) -> tuple[int, int]:
    """Fill classes from place ``first`` of the queue; return where the next one begins and the number of classes."""
    order, following, tuple_of, kinds, class_of, left_at = queue
    room, over, price, size, window = fill
    n = order.shape[0]
    box = np.empty((1, boxes.codes.shape[1]), np.uint32)
    crowd, cost_of = np.empty(window, np.int64), np.empty(window)
    n_of_kind, chosen = np.zeros(room.shape[0]), np.empty(size, np.int64)
    while first < n and n_classes < until:
        m, at = 0, first
        while at < n and m < window:
            crowd[m], cost_of[m] = order[at], 0.0
            m += 1
            at = following[at]
        n_of_kind[:] = 0.0
        budget_used, n_in, best = 0.0, 0, 0
        while best >= 0:
            a = crowd[best]
            cost_of[best] = FAR
            budget_used += min(1.0, max(0.0, n_of_kind[kinds[a]] + 1 - room[kinds[a]]))
            n_of_kind[kinds[a]] += 1
            widen(boxes, box, 0, tuple_of[a], n_in == 0)
            chosen[n_in] = a
            n_in += 1
            best, best_cost = -1, FAR
            if n_in == size:
                break
            for i in range(m):
                v = kinds[crowd[i]]
                added_excess = min(1.0, max(0.0, n_of_kind[v] + 1 - room[v]))
                # A box only grows: what it cost with this one before is a bound.
                if budget_used + added_excess > over + 1e-9 or cost_of[i] + price * added_excess >= best_cost:
                    continue
                max_cost = best_cost - price * added_excess
                cost_of[i] = wider(boxes, box, 0, tuple_of[crowd[i]], max_cost)
                if cost_of[i] < max_cost:
                    best, best_cost = i, cost_of[i] + price * added_excess
        if n_in == size:
            for i in range(size):
                class_of[chosen[i]] = n_classes
            n_classes += 1
        else:
            left_at[chosen[0]] = n_classes
        # Records with a class leave the links, and so does the first record, even if it found none.
        start, at, before, n_seen = first, first, -1, 0
        while at < n and n_seen < m:
            after = following[at]
            if class_of[order[at]] < 0 and at != start:
                if before < 0:
                    first = at
                else:
                    following[before] = at
                before = at
            n_seen += 1
            at = after
        if before < 0:
            first = at
        else:
            following[before] = at
    return first, n_classes


def _join(
    problem: Problem, boxes: Boxes, row: Ints, tuple_of: Ints, class_of: Ints, left_at: Ints, n_classes: int
) -> None:
    """Let records without a class join a class that still passes, cheapest first, one per class at a time."""
    loose = np.flatnonzero(class_of == LOOSE)
    assigned = np.flatnonzero(class_of != LOOSE)
    assigned = assigned[np.argsort(class_of[assigned], kind="stable")]
    candidates, costs = _cheapest(
        boxes, tuple_of[assigned], class_of[assigned], n_classes, tuple_of[loose], left_at[loose]
    )
    for i in range(TRIES):
        waiting = np.flatnonzero((class_of[loose] == LOOSE) & (candidates[:, i] >= 0))
        if not len(waiting) or problem.out_of_time:
            return
        waiting = waiting[np.argsort(costs[waiting, i], kind="stable")]
        target, firsts = np.unique(candidates[waiting, i], return_index=True)
        asking = loose[waiting[firsts]]
        class_of[asking] = target
        number = np.full(n_classes + 1, -1, np.int64)
        number[target] = np.arange(len(target))
        members = np.flatnonzero(number[class_of] >= 0)
        classes = class_table(
            problem.table, row[members], np.ones(len(members), np.int64), number[class_of[members]], len(target)
        )
        class_of[asking[~passing(problem, classes)]] = LOOSE


@compiled
def _cheapest(
    boxes: Boxes, tuples: Ints, class_of: Ints, n_classes: int, loose: Ints, left_at: Ints
) -> tuple[Ints, Floats]:
    """For each unassigned tuple, return the nearby classes cheapest to join and the cost of a record there."""
    box = np.zeros((n_classes, boxes.codes.shape[1]), np.uint32)
    for i in range(tuples.shape[0]):
        widen(boxes, box, class_of[i], tuples[i], i == 0 or class_of[i] != class_of[i - 1])
    candidates, costs = np.full((loose.shape[0], TRIES), -1, np.int64), np.full((loose.shape[0], TRIES), FAR)
    for i in range(loose.shape[0]):
        for c in range(max(0, left_at[i] - AROUND), min(n_classes, left_at[i] + AROUND)):
            d = wider(boxes, box, c, loose[i], costs[i, TRIES - 1])
            if d >= costs[i, TRIES - 1]:
                continue
            y = TRIES - 1
            while y > 0 and costs[i, y - 1] > d:
                costs[i, y], candidates[i, y] = costs[i, y - 1], candidates[i, y - 1]
                y -= 1
            costs[i, y], candidates[i, y] = d, c
    return candidates, costs
