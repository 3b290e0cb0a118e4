"""The kernel of ``local`` for requirements on one sensitive column: classes change, and are judged, within a step.

Exchanges of records with equal sensitive values (``exchange.py``) keep every class as large as it is, and as
diverse. Here a record may also move to another class, change places with a record of another value, or a class, alone
or with a neighbour, be divided into two with equal shares of every value (as J. Soria-Comas et al., "t-closeness
through microaggregation", TKDE 27, 2015, build classes). The values of every class are counted along, and a step whose
classes would fail is not made. Every class is judged again by the models before anything is released.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within
from shoal.models.base import SensitiveModel
from shoal.models.closeness import TCloseness, line_of_values
from shoal.models.diversity import DistinctDiversity, EntropyDiversity
from shoal.models.shares import ShareBound
from shoal.models.size import AlphaK, KAnonymity, PSensitive
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.exchange import CROWDED
from shoal.search.local.kernels import (
    FAR,
    NOBODY,
    STARS,
    Atoms,
    BoxCodes,
    Boxes,
    Ints,
    LinkedClasses,
    Words,
    attach,
    detach,
    random,
    rebox,
    widen,
    wider,
)
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats

DIVISIONS = 0.04  # share of the steps that divide classes
FAR_APART = 8  # records among which the one farthest from the first record of a division begins the other part
MAX_COUNTS = 20_000_000  # classes times values
EXACT = 5e-13  # less than the tolerance of the models, more than the rounding of their sums


class ClassLimits(NamedTuple):
    """What is required of a class: its size, and the shares of the values of one sensitive column."""

    values: Ints  # (atoms)  the value of each
    k: int
    distinct: int
    entropy: float
    caps: Floats  # (values)  the largest share of each
    t_equal: float  # all values are equally far apart
    shares: Floats  # (values)  in the whole table
    t_line: float  # values are in order
    order: Ints  # (values)  from the first to the last
    gaps: Floats  # (values − 1)  the distances between them


def limits_of(problem: Problem, row: NDArray[np.int64], n_classes: int) -> ClassLimits | None:
    """Return what the kernel must respect, for atoms of these rows; None if it cannot judge all that is required."""
    table = problem.table
    sensitive_models = [model for model in problem.models if isinstance(model, SensitiveModel)]
    judged = {
        name for model in sensitive_models for name in ([model.column] if model.column is not None else table.sensitive)
    }
    if table.entities is not None or len(judged) != 1:
        return None
    histogram = table.sensitive[judged.pop()]
    domain = histogram.domain
    varied = any(isinstance(model, DistinctDiversity | EntropyDiversity | PSensitive) for model in sensitive_models)
    if domain is not None and domain.informative is not None and varied:
        return None  # the kernel counts texts, not what they say
    if domain is None or n_classes * len(domain.shares) > MAX_COUNTS:
        return None
    k, l, h, t_equal, t_line = problem.least_class_size, 0, 0.0, math.inf, math.inf
    order, gaps = np.arange(len(domain.shares)), np.zeros(max(0, len(domain.shares) - 1))
    caps = np.full(len(domain.shares), np.inf)
    for model in problem.models:
        match model:
            case KAnonymity():
                k = max(k, model.k)
            case DistinctDiversity():
                l = max(l, model.l)
            case EntropyDiversity():
                h = max(h, math.log(model.l))
            case PSensitive():
                k, l = max(k, model.k), max(l, model.p)
            case ShareBound():
                k = max(k, model.k) if isinstance(model, AlphaK) else k
                caps = np.minimum(caps, model.caps(domain))
            case TCloseness(distance="equal"):
                t_equal = min(t_equal, model.t)
            case TCloseness(distance="ordered" | "numeric") if math.isinf(t_line):
                if (line := line_of_values(domain, model.distance)) is not None:
                    t_line, order, gaps = model.t, np.argsort(line.places), line.gaps
            case _:
                return None
    values = histogram.values[histogram.starts[:-1]].astype(np.int64)[row]  # a row has one
    return ClassLimits(values, k, l, h, caps, t_equal, domain.shares, t_line, order.astype(np.int64), gaps)


# --- verdicts ----------------------------------------------------------------------------------------------------


@compiled
def within_limits(limits: ClassLimits, tally: Ints, c: Int, n: Int) -> bool:
    """Return whether a class of ``n`` records with the counts ``tally[c]`` passes."""
    if n < limits.k:
        return False
    m = limits.shares.shape[0]
    present, entropy, over, along, ahead = 0, 0.0, 0.0, 0.0, 0.0
    for v in range(m):
        p = tally[c, v] / n
        if p > limits.caps[v] + EXACT:
            return False
        present += tally[c, v] > 0
        over += max(0.0, p - limits.shares[v])
        if limits.entropy > 0 and p > 0:
            entropy -= p * np.log(p)
    if limits.t_line < FAR:
        for i in range(m - 1):
            ahead += tally[c, limits.order[i]] / n - limits.shares[limits.order[i]]
            along += abs(ahead) * limits.gaps[i]
    enough = present >= limits.distinct and entropy >= limits.entropy - EXACT
    return enough and over <= limits.t_equal + EXACT and along <= limits.t_line + EXACT


@compiled_within
def _may_change(
    limits: ClassLimits, tally: Ints, c: Int, removed_value: Int, added_value: Int, weight: Int, n: Int
) -> bool:
    """Return whether class c passes with some records of one value less, and of another more; -1 is none."""
    if removed_value == added_value:
        return True
    if removed_value >= 0:
        tally[c, removed_value] -= weight
    if added_value >= 0:
        tally[c, added_value] += weight
    passes = within_limits(limits, tally, c, n)
    if removed_value >= 0:
        tally[c, removed_value] += weight
    if added_value >= 0:
        tally[c, added_value] -= weight
    return passes


# --- two classes and one record of each --------------------------------------------------------------------------

PREFIX, REST, REMAINDER, SUFFIXES = 0, 1, 2, 3  # rows of scratch boxes


@compiled_within
def _union(boxes: Boxes, scratch: BoxCodes, out: Int, first: Int, second: Int) -> None:
    """Make row ``out`` the box around the boxes of two other rows."""
    q = boxes.levels.shape[0]
    for j in range(q):
        scratch[out, j] = min(scratch[first, j], scratch[second, j])
        scratch[out, q + j] = max(scratch[first, q + j], scratch[second, q + j])
    for w in range(2 * q, scratch.shape[1]):
        scratch[out, w] = scratch[first, w] | scratch[second, w]


@compiled_within
def _left_by(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, scratch: BoxCodes, leaving: Int) -> int:
    """Put the box of an atom's class without it, of a large class with it, into row ``WITHOUT``.

    Returns a tuple in the box, -1 if the atom is alone.
    """
    c = classes.class_of[leaving]
    if classes.n_atoms[c] > CROWDED:
        for w in range(scratch.shape[1]):
            scratch[REMAINDER, w] = classes.box[c, w]
        return int(atoms.tuple_of[leaving])
    inside = NOBODY
    a = classes.first[c]
    while a >= 0:
        if a != leaving:
            widen(boxes, scratch, REMAINDER, atoms.tuple_of[a], inside < 0)
            inside = int(atoms.tuple_of[a])
        a = classes.after[a]
    return inside


@compiled_within
def _suffixes(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, scratch: BoxCodes, listed: Ints, c: Int) -> int:
    """List the atoms of a class, and put the box of all from the i-th on into row ``SUFFIXES`` + i."""
    n = 0
    a = classes.first[c]
    while a >= 0:
        listed[n] = a
        n += 1
        a = classes.after[a]
    for i in range(n - 1, -1, -1):
        row = SUFFIXES + i
        if i < n - 1:
            for w in range(scratch.shape[1]):
                scratch[row, w] = scratch[row + 1, w]
        widen(boxes, scratch, row, atoms.tuple_of[listed[i]], i == n - 1)
    return n


@compiled_within
def _traded(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, tally: Ints, scratch: BoxCodes,
    listed: Ints, mine: Int, other: Int, allowance: float,
) -> bool:  # fmt: skip
    """Let an atom of another class join that of ``mine``, perhaps in exchange for one of its atoms."""
    class_of, n_records, cost = classes.class_of, classes.n_records, classes.cost
    tuple_of, weights, values = atoms.tuple_of, atoms.weights, limits.values
    c, d, w, v = class_of[mine], class_of[other], weights[other], values[other]
    t = tuple_of[other]
    best_cost = n_records[c] * cost[c] + n_records[d] * cost[d] + allowance
    # First, the other atom moves over alone, if both classes pass without an exchange.
    moves, best = False, NOBODY
    n_c, n_d = n_records[c] + w, n_records[d] - w
    inside = _left_by(boxes, atoms, classes, scratch, other)
    if inside < 0:
        return False
    if _may_change(limits, tally, d, v, NOBODY, w, n_d) and _may_change(limits, tally, c, NOBODY, v, w, n_c):
        cost_here = n_c * wider(boxes, classes.box, c, t, best_cost / n_c)
        if cost_here < best_cost:
            total = cost_here + n_d * wider(boxes, scratch, REMAINDER, inside, (best_cost - cost_here) / n_d)
            if total < best_cost:
                moves, best_cost = True, total
    # Then, it replaces each atom of class c: prefix and suffix boxes give the box of the rest in one union.
    n = _suffixes(boxes, atoms, classes, scratch, listed, c)
    for i in range(n):
        a = listed[i]
        u = values[a]
        if a != mine and weights[a] == w and tuple_of[a] != t:
            row = SUFFIXES + i + 1
            if i > 0 and i < n - 1:
                _union(boxes, scratch, REST, PREFIX, SUFFIXES + i + 1)
                row = REST
            elif i > 0:
                row = PREFIX
            cost_here = n_records[c] * wider(boxes, scratch, row, t, best_cost / n_records[c])
            if cost_here < best_cost:
                max_cost = (best_cost - cost_here) / n_records[d]
                total = cost_here + n_records[d] * wider(boxes, scratch, REMAINDER, tuple_of[a], max_cost)
                fits = total < best_cost and _may_change(limits, tally, c, u, v, w, n_records[c])
                if fits and _may_change(limits, tally, d, v, u, w, n_records[d]):
                    moves, best, best_cost = True, a, total
        widen(boxes, scratch, PREFIX, tuple_of[a], i == 0)
    if not moves:
        return False
    _reassigned(atoms, classes, limits, tally, other, c)
    if best >= 0:
        _reassigned(atoms, classes, limits, tally, best, d)
    rebox(boxes, atoms, classes, c)
    rebox(boxes, atoms, classes, d)
    return True


@compiled_within
def _reassigned(atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, tally: Ints, a: Int, c: Int) -> None:
    """Put an atom into another class, and count its value there."""
    tally[classes.class_of[a], limits.values[a]] -= atoms.weights[a]
    tally[c, limits.values[a]] += atoms.weights[a]
    detach(atoms, classes, a)
    attach(atoms, classes, a, c)


# --- one or two classes, divided ---------------------------------------------------------------------------------


class Division(NamedTuple):
    """Working memory for dividing classes."""

    pool: Ints  # (atoms)
    keys: Floats  # (atoms)  how much closer to the first record than to the other
    first: NDArray[np.bool_]  # (atoms)  whether it goes to the first part
    quota: Ints  # (values)  records of each value in the first part


@compiled_within
def _sort(pool: Ints, keys: Floats, n: int) -> None:
    """Sort both by the keys (Shell's method)."""
    gap = 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            a, key = pool[i], keys[i]
            at = i
            while at >= gap and keys[at - gap] > key:
                pool[at], keys[at] = pool[at - gap], keys[at - gap]
                at -= gap
            pool[at], keys[at] = a, key
        gap //= 3


@compiled_within
def _poled(boxes: Boxes, atoms: Atoms, room: Division, n: int, mine: Int, state: Words) -> None:
    """Sort the pool from the record closest to ``mine`` to that closest to a record far from it."""
    tuple_of, pool, keys = atoms.tuple_of, room.pool, room.keys
    t = tuple_of[mine]
    pole, farthest = t, -1.0
    for _ in range(FAR_APART):
        u = tuple_of[pool[int(random(state) * n)]]
        away = wider(boxes, boxes.codes, t, u, FAR)
        if away > farthest:
            pole, farthest = u, away
    for i in range(n):
        u = tuple_of[pool[i]]
        keys[i] = wider(boxes, boxes.codes, t, u, FAR) - wider(boxes, boxes.codes, pole, u, FAR)
    _sort(pool, keys, n)


@compiled_within
def _parts(
    boxes: Boxes, atoms: Atoms, limits: ClassLimits, tally: Ints, room: Division, n: int, part: float,
    scratch: BoxCodes, start: Int,
) -> tuple[float, int]:  # fmt: skip
    """Assign the sorted pool to two parts with equal shares of each value, up to rounding.

    Returns the cost of both, ``FAR`` if one fails, and the records of the first. The last two rows of ``tally`` are the
    counts of the parts, of which the first has those of the whole pool before.
    """
    first_part, second_part = tally.shape[0] - 2, tally.shape[0] - 1
    m = limits.shares.shape[0]
    # The first part's quota of each value; rounding errors carry over to the next value, so the total is right.
    due, n_assigned = 0.0, 0
    for i in range(m):
        v = (start + i) % m
        due += part * tally[first_part, v]
        room.quota[v] = int(due + 0.5) - n_assigned
        n_assigned += room.quota[v]
    # Along the sorted pool, a record goes to the first part while its value's quota lasts.
    n_one = n_two = 0
    last_one = last_two = NOBODY
    for i in range(n):
        a = room.pool[i]
        v, w = limits.values[a], atoms.weights[a]
        room.first[i] = room.quota[v] >= w
        if room.first[i]:
            room.quota[v] -= w
            widen(boxes, scratch, 0, atoms.tuple_of[a], n_one == 0)
            n_one += w
            last_one = a
        else:
            widen(boxes, scratch, 1, atoms.tuple_of[a], n_two == 0)
            tally[first_part, v] -= w
            tally[second_part, v] += w
            n_two += w
            last_two = a
    if last_one < 0 or last_two < 0:
        return FAR, n_one
    if not (within_limits(limits, tally, first_part, n_one) and within_limits(limits, tally, second_part, n_two)):
        return FAR, n_one
    cost = n_one * wider(boxes, scratch, 0, atoms.tuple_of[last_one], FAR)
    return cost + n_two * wider(boxes, scratch, 1, atoms.tuple_of[last_two], FAR), n_one


@compiled_within
def _divided(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, tally: Ints, room: Division,
    scratch: BoxCodes, mine: Int, other: Int, allowance: float, state: Words,
) -> bool:  # fmt: skip
    """Divide the class of ``mine``, together with class ``other`` unless that is empty, into two."""
    c = classes.class_of[mine]
    total = classes.n_records[c] + classes.n_records[other]
    now = classes.n_records[c] * classes.cost[c]
    if classes.n_records[other] > 0:
        now += classes.n_records[other] * classes.cost[other]
    if total < 2 * limits.k:
        return False
    first_part, second_part = tally.shape[0] - 2, tally.shape[0] - 1
    for v in range(limits.shares.shape[0]):
        tally[first_part, v] = tally[c, v] + tally[other, v]
        tally[second_part, v] = 0
    n = 0
    for _ in range(2):
        a = classes.first[c]
        while a >= 0:
            room.pool[n] = a
            n += 1
            a = classes.after[a]
        c, other = other, c
    _poled(boxes, atoms, room, n, mine, state)
    part = 0.5 if random(state) < 0.5 else 0.25 + 0.5 * random(state)
    cost, _ = _parts(boxes, atoms, limits, tally, room, n, part, scratch, int(random(state) * limits.shares.shape[0]))
    if cost >= now + allowance:
        return False
    for i in range(n):
        target = c if room.first[i] else other
        if classes.class_of[room.pool[i]] != target:
            _reassigned(atoms, classes, limits, tally, room.pool[i], target)
    rebox(boxes, atoms, classes, c)
    rebox(boxes, atoms, classes, other)
    return True


# --- the loop ----------------------------------------------------------------------------------------------------


@compiled
def trade(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, side: int, n_steps: int, seed: int,
    temperature: float,
) -> int:  # fmt: skip
    """Change classes of a side ``n_steps`` times, each time by a record or a division; all of them keep passing.

    Changes that cost more are accepted with a probability that grows with the temperature. Returns their number.
    """
    state = np.array([seed], np.uint64)
    tuple_of, weights, starts, members, near, _floors, _kinds = atoms
    class_of = classes.class_of
    n_atoms, m = tuple_of.shape[0], limits.shares.shape[0]
    tally = np.zeros((classes.first.shape[0] + 2, m), np.int64)
    for a in range(n_atoms):
        if class_of[a] > STARS:
            tally[class_of[a], limits.values[a]] += weights[a]
    room = Division(
        np.empty(n_atoms, np.int64), np.empty(n_atoms), np.empty(n_atoms, np.bool_), np.empty(m, np.int64)
    )  # fmt: skip
    scratch = np.empty((SUFFIXES + CROWDED, boxes.codes.shape[1]), np.uint32)
    listed = np.empty(CROWDED, np.int64)
    free = STARS + 1
    n = 0
    for _ in range(n_steps):
        mine = int(random(state) * n_atoms)
        c = class_of[mine]
        if c <= STARS or classes.side[c] != side:
            continue
        u = near[tuple_of[mine], int(random(state) * near.shape[1])]
        other = NOBODY if u < 0 else members[starts[u] + int(random(state) * (starts[u + 1] - starts[u]))]
        d = NOBODY if other < 0 else class_of[other]
        usable = d > STARS and d != c and classes.side[d] == side
        allowance = max(-1e-9, -temperature * np.log(1 - random(state)))
        if random(state) < DIVISIONS:
            if not usable or random(state) < 0.5:  # alone: into an empty class
                while free < classes.first.shape[0] and (classes.n_atoms[free] > 0 or classes.side[free] != side):
                    free += 1
                if free == classes.first.shape[0]:
                    continue
                d = free
            n += _divided(boxes, atoms, classes, limits, tally, room, scratch, mine, d, allowance, state)
        elif usable and classes.n_atoms[c] <= CROWDED:
            n += _traded(boxes, atoms, classes, limits, tally, scratch, listed, mine, other, allowance)
    return n
