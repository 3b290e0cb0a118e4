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
    APART,
    FAR,
    NOBODY,
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
MOST_COUNTS = 20_000_000  # classes times values
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
    asked = [model for model in problem.models if isinstance(model, SensitiveModel)]
    judged = {name for model in asked for name in ([model.column] if model.column is not None else table.sensitive)}
    if table.entities is not None or len(judged) != 1:
        return None
    histogram = table.sensitive[judged.pop()]
    domain = histogram.domain
    varied = any(isinstance(model, DistinctDiversity | EntropyDiversity | PSensitive) for model in asked)
    if domain is not None and domain.informative is not None and varied:
        return None  # the kernel counts texts, not what they say
    if domain is None or n_classes * len(domain.shares) > MOST_COUNTS:
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
def within_limits(limits: ClassLimits, have: Ints, c: Int, n: Int) -> bool:
    """Return whether a class of ``n`` records with the counts ``have[c]`` passes."""
    if n < limits.k:
        return False
    m = limits.shares.shape[0]
    present, entropy, over, along, ahead = 0, 0.0, 0.0, 0.0, 0.0
    for v in range(m):
        p = have[c, v] / n
        if p > limits.caps[v] + EXACT:
            return False
        present += have[c, v] > 0
        over += max(0.0, p - limits.shares[v])
        if limits.entropy > 0 and p > 0:
            entropy -= p * np.log(p)
    if limits.t_line < FAR:
        for i in range(m - 1):
            ahead += have[c, limits.order[i]] / n - limits.shares[limits.order[i]]
            along += abs(ahead) * limits.gaps[i]
    enough = present >= limits.distinct and entropy >= limits.entropy - EXACT
    return enough and over <= limits.t_equal + EXACT and along <= limits.t_line + EXACT


@compiled_within
def _may_change(limits: ClassLimits, have: Ints, c: Int, gone: Int, came: Int, weight: Int, n: Int) -> bool:
    """Return whether class c passes with some records of one value less, and of another more; -1 is none."""
    if gone == came:
        return True
    if gone >= 0:
        have[c, gone] -= weight
    if came >= 0:
        have[c, came] += weight
    passes = within_limits(limits, have, c, n)
    if gone >= 0:
        have[c, gone] += weight
    if came >= 0:
        have[c, came] -= weight
    return passes


# --- two classes and one record of each --------------------------------------------------------------------------

PREFIX, REST, WITHOUT, SUFFIXES = 0, 1, 2, 3  # rows of scratch boxes


@compiled_within
def _union(of: Boxes, boxes: BoxCodes, out: Int, one: Int, other: Int) -> None:
    """Make row ``out`` the box around the boxes of two other rows."""
    q = of.levels.shape[0]
    for j in range(q):
        boxes[out, j] = min(boxes[one, j], boxes[other, j])
        boxes[out, q + j] = max(boxes[one, q + j], boxes[other, q + j])
    for w in range(2 * q, boxes.shape[1]):
        boxes[out, w] = boxes[one, w] | boxes[other, w]


@compiled_within
def _left_by(of: Boxes, atoms: Atoms, classes: LinkedClasses, boxes: BoxCodes, gone: Int) -> int:
    """Put the box of an atom's class without it, of a large class with it, into row ``WITHOUT``.

    Returns a tuple in the box, -1 if the atom is alone.
    """
    c = classes.class_of[gone]
    if classes.n_atoms[c] > CROWDED:
        for w in range(boxes.shape[1]):
            boxes[WITHOUT, w] = classes.box[c, w]
        return int(atoms.tuple_of[gone])
    inside = NOBODY
    a = classes.first[c]
    while a >= 0:
        if a != gone:
            widen(of, boxes, WITHOUT, atoms.tuple_of[a], inside < 0)
            inside = int(atoms.tuple_of[a])
        a = classes.after[a]
    return inside


@compiled_within
def _suffixes(of: Boxes, atoms: Atoms, classes: LinkedClasses, boxes: BoxCodes, listed: Ints, c: Int) -> int:
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
            for w in range(boxes.shape[1]):
                boxes[row, w] = boxes[row + 1, w]
        widen(of, boxes, row, atoms.tuple_of[listed[i]], i == n - 1)
    return n


@compiled_within
def _traded(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, have: Ints, boxes: BoxCodes, listed: Ints,
    mine: Int, other: Int, more: float,
) -> bool:  # fmt: skip
    """Let an atom of another class join that of ``mine``, perhaps in exchange for one of its atoms."""
    class_of, n_records, cost = classes.class_of, classes.n_records, classes.cost
    tuple_of, weights, values = atoms.tuple_of, atoms.weights, limits.values
    c, d, w, v = class_of[mine], class_of[other], weights[other], values[other]
    t = tuple_of[other]
    least = n_records[c] * cost[c] + n_records[d] * cost[d] + more
    moves, best = False, NOBODY
    n_c, n_d = n_records[c] + w, n_records[d] - w
    inside = _left_by(of, atoms, classes, boxes, other)
    if inside < 0:
        return False
    if _may_change(limits, have, d, v, NOBODY, w, n_d) and _may_change(limits, have, c, NOBODY, v, w, n_c):
        here = n_c * wider(of, classes.box, c, t, least / n_c)
        if here < least:
            total = here + n_d * wider(of, boxes, WITHOUT, inside, (least - here) / n_d)
            if total < least:
                moves, least = True, total
    n = _suffixes(of, atoms, classes, boxes, listed, c)
    for i in range(n):
        a = listed[i]
        u = values[a]
        if a != mine and weights[a] == w and tuple_of[a] != t:
            row = SUFFIXES + i + 1
            if i > 0 and i < n - 1:
                _union(of, boxes, REST, PREFIX, SUFFIXES + i + 1)
                row = REST
            elif i > 0:
                row = PREFIX
            here = n_records[c] * wider(of, boxes, row, t, least / n_records[c])
            if here < least:
                most = (least - here) / n_records[d]
                total = here + n_records[d] * wider(of, boxes, WITHOUT, tuple_of[a], most)
                fits = total < least and _may_change(limits, have, c, u, v, w, n_records[c])
                if fits and _may_change(limits, have, d, v, u, w, n_records[d]):
                    moves, best, least = True, a, total
        widen(of, boxes, PREFIX, tuple_of[a], i == 0)
    if not moves:
        return False
    _reassigned(atoms, classes, limits, have, other, c)
    if best >= 0:
        _reassigned(atoms, classes, limits, have, best, d)
    rebox(of, atoms, classes, c)
    rebox(of, atoms, classes, d)
    return True


@compiled_within
def _reassigned(atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, have: Ints, a: Int, c: Int) -> None:
    """Put an atom into another class, and count its value there."""
    have[classes.class_of[a], limits.values[a]] -= atoms.weights[a]
    have[c, limits.values[a]] += atoms.weights[a]
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
def _poled(of: Boxes, atoms: Atoms, room: Division, n: int, mine: Int, state: Words) -> None:
    """Sort the pool from the record closest to ``mine`` to that closest to a record far from it."""
    tuple_of, pool, keys = atoms.tuple_of, room.pool, room.keys
    t = tuple_of[mine]
    pole, farthest = t, -1.0
    for _ in range(FAR_APART):
        u = tuple_of[pool[int(random(state) * n)]]
        away = wider(of, of.codes, t, u, FAR)
        if away > farthest:
            pole, farthest = u, away
    for i in range(n):
        u = tuple_of[pool[i]]
        keys[i] = wider(of, of.codes, t, u, FAR) - wider(of, of.codes, pole, u, FAR)
    _sort(pool, keys, n)


@compiled_within
def _parts(
    of: Boxes, atoms: Atoms, limits: ClassLimits, have: Ints, room: Division, n: int, part: float, boxes: BoxCodes,
    start: Int,
) -> tuple[float, int]:  # fmt: skip
    """Assign the sorted pool to two parts with equal shares of each value, up to rounding.

    Returns the cost of both, ``FAR`` if one fails, and the records of the first. The last two rows of ``have`` are the
    counts of the parts, of which the first has those of the whole pool before.
    """
    one, two = have.shape[0] - 2, have.shape[0] - 1
    m = limits.shares.shape[0]
    due, given = 0.0, 0
    for i in range(m):  # rounded such that the sum is right
        v = (start + i) % m
        due += part * have[one, v]
        room.quota[v] = int(due + 0.5) - given
        given += room.quota[v]
    n_one = n_two = 0
    last_one = last_two = NOBODY
    for i in range(n):
        a = room.pool[i]
        v, w = limits.values[a], atoms.weights[a]
        room.first[i] = room.quota[v] >= w
        if room.first[i]:
            room.quota[v] -= w
            widen(of, boxes, 0, atoms.tuple_of[a], n_one == 0)
            n_one += w
            last_one = a
        else:
            widen(of, boxes, 1, atoms.tuple_of[a], n_two == 0)
            have[one, v] -= w
            have[two, v] += w
            n_two += w
            last_two = a
    if last_one < 0 or last_two < 0:
        return FAR, n_one
    if not (within_limits(limits, have, one, n_one) and within_limits(limits, have, two, n_two)):
        return FAR, n_one
    cost = n_one * wider(of, boxes, 0, atoms.tuple_of[last_one], FAR)
    return cost + n_two * wider(of, boxes, 1, atoms.tuple_of[last_two], FAR), n_one


@compiled_within
def _divided(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, have: Ints, room: Division, boxes: BoxCodes,
    mine: Int, other: Int, more: float, state: Words,
) -> bool:  # fmt: skip
    """Divide the class of ``mine``, together with class ``other`` unless that is empty, into two."""
    c = classes.class_of[mine]
    total = classes.n_records[c] + classes.n_records[other]
    now = classes.n_records[c] * classes.cost[c]
    if classes.n_records[other] > 0:
        now += classes.n_records[other] * classes.cost[other]
    if total < 2 * limits.k:
        return False
    one, two = have.shape[0] - 2, have.shape[0] - 1
    for v in range(limits.shares.shape[0]):
        have[one, v] = have[c, v] + have[other, v]
        have[two, v] = 0
    n = 0
    for _ in range(2):
        a = classes.first[c]
        while a >= 0:
            room.pool[n] = a
            n += 1
            a = classes.after[a]
        c, other = other, c
    _poled(of, atoms, room, n, mine, state)
    part = 0.5 if random(state) < 0.5 else 0.25 + 0.5 * random(state)
    cost, _ = _parts(of, atoms, limits, have, room, n, part, boxes, int(random(state) * limits.shares.shape[0]))
    if cost >= now + more:
        return False
    for i in range(n):
        target = c if room.first[i] else other
        if classes.class_of[room.pool[i]] != target:
            _reassigned(atoms, classes, limits, have, room.pool[i], target)
    rebox(of, atoms, classes, c)
    rebox(of, atoms, classes, other)
    return True


# --- the loop ----------------------------------------------------------------------------------------------------


@compiled
def trade(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, limits: ClassLimits, side: int, n_steps: int, seed: int,
    temperature: float,
) -> int:  # fmt: skip
    """Change classes of a side ``n_steps`` times, each time by a record or a division; all of them keep passing.

    Changes that cost more are accepted with a probability that grows with the temperature. Returns their number.
    """
    state = np.array([seed], np.uint64)
    tuple_of, weights, starts, members, near, _floors, _kinds = atoms
    class_of = classes.class_of
    n_atoms, m = tuple_of.shape[0], limits.shares.shape[0]
    have = np.zeros((classes.first.shape[0] + 2, m), np.int64)
    for a in range(n_atoms):
        if class_of[a] > APART:
            have[class_of[a], limits.values[a]] += weights[a]
    room = Division(
        np.empty(n_atoms, np.int64), np.empty(n_atoms), np.empty(n_atoms, np.bool_), np.empty(m, np.int64)
    )  # fmt: skip
    boxes = np.empty((SUFFIXES + CROWDED, of.codes.shape[1]), np.uint32)
    listed = np.empty(CROWDED, np.int64)
    free = APART + 1
    n = 0
    for _ in range(n_steps):
        mine = int(random(state) * n_atoms)
        c = class_of[mine]
        if c <= APART or classes.side[c] != side:
            continue
        u = near[tuple_of[mine], int(random(state) * near.shape[1])]
        other = NOBODY if u < 0 else members[starts[u] + int(random(state) * (starts[u + 1] - starts[u]))]
        d = NOBODY if other < 0 else class_of[other]
        usable = d > APART and d != c and classes.side[d] == side
        more = max(-1e-9, -temperature * np.log(1 - random(state)))
        if random(state) < DIVISIONS:
            if not usable or random(state) < 0.5:  # alone: into an empty class
                while free < classes.first.shape[0] and (classes.n_atoms[free] > 0 or classes.side[free] != side):
                    free += 1
                if free == classes.first.shape[0]:
                    continue
                d = free
            n += _divided(of, atoms, classes, limits, have, room, boxes, mine, d, more, state)
        elif usable and classes.n_atoms[c] <= CROWDED:
            n += _traded(of, atoms, classes, limits, have, boxes, listed, mine, other, more)
    return n
