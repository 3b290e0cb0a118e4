"""The kernel of ``local`` that moves several records at once, guided by what each record is worth.

Prices of records that no class overpays (``prices.py``) tell where a solution can still gain: a class costs at
least what its records are worth, and only those that cost more can be improved on. A repair begins with such a class: a
record leaves it, or it is dissolved. Each loose record then joins a class nearby, or takes the place of one of its
records, which becomes loose in turn, or founds a class with other loose ones and with records that large classes can
spare. A repair ends when no record is loose (ejection chains: F. Glover, Discrete Applied Mathematics 65, 1996; cyclic
exchange: R. K. Ahuja, J. B. Orlin, D. Sharma, "Very large-scale neighborhood search", ITOR 7, 2000).

Continuations are tried from the cheapest on, back and forth. One that already costs more above the records' worth than
the classes did that it changes cannot save anything, since whatever follows costs at least what the loose records are
worth, unless it repairs another class; so it is not followed. With prices of 0, all of this is only a weaker guide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import (
    APART,
    FAR,
    NOBODY,
    Atoms,
    BoxCodes,
    Boxes,
    Ints,
    LinkedClasses,
    attach,
    detach,
    rebox,
    widen,
    wider,
)
from shoal.tables.frequency import Floats

LARGEST = 40  # atoms of a class that takes part
DEEPEST = 14  # moves, one after the other
BROAD = 6  # continuations after each
LOOKED = 24  # tuples next to a record whose classes it may join
EACH = 4  # records of each
FOUNDED = 20  # the largest k with which classes are founded: all companions are weighed for each place
LEAST = 1e-7  # that a repair has to save
JOIN, REPLACE, FOUND = 0, 1, 2  # what a loose record can do


class Repair(NamedTuple):
    """Working memory: by depth, the loose records and their continuations; the last loose one is about to move."""

    loose: Ints  # (depth + 1, loose)
    n_loose: Ints  # (depth + 1)
    left: Floats  # (depth + 1)  what the repair would save if the loose ones cost what they are worth
    n_next: Ints  # (depth)
    at: Ints  # (depth)  the next continuation
    made: Ints  # (depth)  the continuation that is made, or -1
    what: Ints  # (depth, continuations)
    into: Ints  # (depth, continuations)  the class
    gone: Ints  # (depth, continuations)  who leaves it
    more: Floats  # (depth, continuations)  cost above the records' worth
    team: Ints  # (depth, k)  who founds a class with the moving one
    home: Ints  # (depth, k)  the class of each before
    n_team: Ints  # (depth)
    moved: Ints  # (atoms)  the repair in which it last moved
    seen: Ints  # (all classes)
    crowd: Ints  # companions for a new class
    worth: Floats  # of these
    room: Ints  # (atoms of a class)
    box: BoxCodes  # (members and more)
    free: Ints  # (all classes)  empty classes
    n: Ints  # the mark of seen, the repair, free classes, the class that lacks a record (or -1), the first depth


@compiled_within
def _memory(of: Boxes, atoms: Atoms, classes: LinkedClasses, k: int, side: int) -> Repair:
    """Return the working memory, with the empty classes of a side."""
    n_classes, wide = classes.first.shape[0], LARGEST + DEEPEST
    crowd = wide + 8 * k + 64
    d = DEEPEST
    repair = Repair(
        np.zeros((d + 1, wide), np.int64), np.zeros(d + 1, np.int64), np.zeros(d + 1), np.zeros(d, np.int64),
        np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros((d, BROAD), np.int64), np.zeros((d, BROAD), np.int64),
        np.zeros((d, BROAD), np.int64), np.zeros((d, BROAD)), np.zeros((d, k), np.int64), np.zeros((d, k), np.int64),
        np.zeros(d, np.int64), np.zeros(atoms.tuple_of.shape[0], np.int64), np.zeros(n_classes, np.int64),
        np.zeros(crowd, np.int64), np.zeros(crowd), np.zeros(LARGEST + 1, np.int64),
        np.zeros((2 * LARGEST + 2, of.codes.shape[1]), np.uint32), np.zeros(n_classes, np.int64), np.zeros(5, np.int64),
    )  # fmt: skip
    for c in range(n_classes - 1, APART, -1):
        if classes.n_atoms[c] == 0 and classes.side[c] == side:
            repair.free[repair.n[2]] = c
            repair.n[2] += 1
    return repair


@compiled_within
def _rests(of: Boxes, atoms: Atoms, classes: LinkedClasses, repair: Repair, c: Int) -> int:
    """List the members of a class, and for each the box of all others; returns how many."""
    n = 0
    a = classes.first[c]
    while a >= 0:
        repair.room[n] = a
        n += 1
        a = classes.after[a]
    room, box, tuple_of = repair.room, repair.box, atoms.tuple_of
    q, words = of.levels.shape[0], of.codes.shape[1]
    # Row i is for the members before the i-th; LARGEST + i for all but it; the last for those from the end on.
    for i in range(1, n):
        if i == 1:
            widen(of, box, 1, tuple_of[room[0]], True)
        else:
            for w in range(words):
                box[i, w] = box[i - 1, w]
            widen(of, box, i, tuple_of[room[i - 1]], False)
    last = 2 * LARGEST + 1
    for i in range(n - 1, -1, -1):
        if i == n - 1:
            if n > 1:
                for w in range(words):
                    box[LARGEST + i, w] = box[i, w]
            widen(of, box, last, tuple_of[room[i]], True)
        else:
            for w in range(words):
                box[LARGEST + i, w] = box[last, w]
            if i > 0:
                for j in range(q):
                    box[LARGEST + i, j] = min(box[LARGEST + i, j], box[i, j])
                    box[LARGEST + i, q + j] = max(box[LARGEST + i, q + j], box[i, q + j])
                for w in range(2 * q, words):
                    box[LARGEST + i, w] |= box[i, w]
            widen(of, box, last, tuple_of[room[i]], False)
    return n


@compiled_within
def cost_above_worth(atoms: Atoms, classes: LinkedClasses, prices: Floats, c: Int) -> float:
    """Return what a class costs above the prices of its records."""
    over = classes.n_records[c] * classes.cost[c]
    a = classes.first[c]
    while a >= 0:
        over -= atoms.weights[a] * prices[atoms.tuple_of[a]]
        a = classes.after[a]
    return float(over)


# --- continuations -----------------------------------------------------------------------------------------------


@compiled_within
def _noted(repair: Repair, d: Int, what: int, into: Int, gone: Int, more: float) -> None:
    """Add a continuation, if it is among the cheapest."""
    z = min(repair.n_next[d], BROAD - 1)
    if repair.n_next[d] == BROAD and repair.more[d, z] <= more:
        return
    while z > 0 and repair.more[d, z - 1] > more:
        repair.what[d, z], repair.into[d, z] = repair.what[d, z - 1], repair.into[d, z - 1]
        repair.gone[d, z], repair.more[d, z] = repair.gone[d, z - 1], repair.more[d, z - 1]
        z -= 1
    repair.what[d, z], repair.into[d, z], repair.gone[d, z], repair.more[d, z] = what, into, gone, more
    repair.n_next[d] = min(BROAD, repair.n_next[d] + 1)


@compiled_within
def _joining(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, d: Int, f: Int, c: Int
) -> None:  # fmt: skip
    """Note that a loose record joins a class, alone or in place of one of its records."""
    t = atoms.tuple_of[f]
    left, price = repair.left[d] - LEAST, prices[t]
    n, cost = classes.n_records[c], classes.cost[c]
    most = (n * cost + left + price) / (n + 1)
    then = wider(of, classes.box, c, t, most)
    if then < most:
        _noted(repair, d, JOIN, c, NOBODY, (n + 1) * then - n * cost - price)
    m = _rests(of, atoms, classes, repair, c)
    for y in range(m):
        a = repair.room[y]
        if atoms.weights[a] == 1 and m > 1 and atoms.tuple_of[a] != t and repair.moved[a] != repair.n[1]:
            its = prices[atoms.tuple_of[a]]
            most = cost + (left + price - its) / n
            then = wider(of, repair.box, LARGEST + y, t, most)
            if then < most:
                _noted(repair, d, REPLACE, c, a, n * (then - cost) - price + its)


@compiled_within
def _filling(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, d: Int, f: Int, c: Int
) -> None:  # fmt: skip
    """Note that a loose record joins the class that lacks one; that class has cost no more than its worth so far."""
    t = atoms.tuple_of[f]
    n = classes.n_records[c] + 1
    worth = n * classes.cost[c] - classes.cost[c] - cost_above_worth(atoms, classes, prices, c) + prices[t]
    most = (repair.left[d] - LEAST + worth) / n
    then = wider(of, classes.box, c, t, most)
    if then < most:
        _noted(repair, d, JOIN, c, NOBODY, n * then - worth)


@compiled_within
def _founding(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, repair: Repair, k: int, d: Int, f: Int, n: Int, price: float
) -> None:  # fmt: skip
    """Note that a loose record founds a class: each time with the one that adds the least cost above its worth."""
    box, crowd, worth = repair.box, repair.crowd, repair.worth
    t = atoms.tuple_of[f]
    widen(of, box, 0, t, True)
    n_team, total, complete = 0, -price, True
    while n_team + 1 < k and complete:
        best, least = NOBODY, FAR
        for i in range(n):
            c = classes.class_of[crowd[i]]
            if worth[i] >= 0 and (c < 0 or classes.n_records[c] > k):
                most = (least + worth[i]) / k
                then = wider(of, box, 0, atoms.tuple_of[crowd[i]], most)
                if then < most:
                    best, least = i, k * then - worth[i]
        complete = best >= 0
        if complete:
            a = crowd[best]
            c = classes.class_of[a]
            total -= worth[best]
            worth[best] = -1.0
            if c >= 0:
                classes.n_records[c] -= 1  # reserved
            widen(of, box, 0, atoms.tuple_of[a], False)
            repair.team[d, n_team], repair.home[d, n_team] = a, c
            n_team += 1
    for y in range(n_team):
        if repair.home[d, y] >= 0:
            classes.n_records[repair.home[d, y]] += 1
    repair.n_team[d] = n_team
    if complete:
        total += k * wider(of, box, 0, t, FAR)
        if total < repair.left[d] - LEAST:
            _noted(repair, d, FOUND, NOBODY, NOBODY, total)


@compiled_within
def _look_around(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, k: int, side: int, d: Int
) -> None:  # fmt: skip
    """Choose the dearest of the loose records, and find its continuations."""
    n_loose, loose = repair.n_loose[d], repair.loose
    repair.n_next[d] = repair.at[d] = 0
    repair.made[d] = NOBODY
    dearest = 0
    for i in range(1, n_loose):
        if prices[atoms.tuple_of[loose[d, i]]] > prices[atoms.tuple_of[loose[d, dearest]]]:
            dearest = i
    f = loose[d, dearest]
    loose[d, dearest], loose[d, n_loose - 1] = loose[d, n_loose - 1], f
    t = atoms.tuple_of[f]
    n = n_loose - 1
    for i in range(n):
        repair.crowd[i], repair.worth[i] = loose[d, i], prices[atoms.tuple_of[loose[d, i]]]
    repair.n[0] += 1
    lacking = repair.n[3]
    if lacking >= 0:
        _filling(of, atoms, classes, prices, repair, d, f, lacking)
    for e in range(-1, min(LOOKED, atoms.near.shape[1])):
        u = t if e < 0 else atoms.near[t, e]
        if u < 0:
            break
        n_each = 0
        for i in range(atoms.starts[u], atoms.starts[u + 1]):
            a = atoms.members[i]
            c = classes.class_of[a]
            # Those of the other thread may be on the move: whether they are must not count.
            if c < 0 or classes.side[c] != side or n_each == EACH:
                continue
            n_each += 1
            if c in (APART, lacking) or classes.n_atoms[c] > LARGEST:
                continue
            spare = classes.n_records[c] > k and atoms.weights[a] == 1 and repair.moved[a] != repair.n[1]
            if spare and n < repair.crowd.shape[0]:
                repair.crowd[n], repair.worth[n] = a, classes.cost[c]
                n += 1
            if repair.seen[c] != repair.n[0]:
                repair.seen[c] = repair.n[0]
                _joining(of, atoms, classes, prices, repair, d, f, c)
    if n + 1 >= k and k <= FOUNDED and repair.n[2] > 0:
        _founding(of, atoms, classes, repair, k, d, f, n, prices[t])


# --- moves -------------------------------------------------------------------------------------------------------


@compiled_within
def _moves(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, d: Int, i: Int
) -> None:  # fmt: skip
    """Make a continuation; the loose records after it are those of the next depth."""
    what, c, more = repair.what[d, i], repair.into[d, i], repair.more[d, i]
    f = repair.loose[d, repair.n_loose[d] - 1]
    founds = what == FOUND
    n = 0
    for y in range(repair.n_loose[d] - 1):
        stays = True
        for z in range(repair.n_team[d] if founds else 0):
            stays = stays and repair.team[d, z] != repair.loose[d, y]
        if stays:
            repair.loose[d + 1, n] = repair.loose[d, y]
            n += 1
    if founds:
        repair.n[2] -= 1
        c = repair.free[repair.n[2]]
        repair.into[d, i] = c
        more = 0.0
        for z in range(repair.n_team[d]):
            a, home = repair.team[d, z], repair.home[d, z]
            if home >= 0:
                more -= cost_above_worth(atoms, classes, prices, home)
                detach(atoms, classes, a)
                rebox(of, atoms, classes, home)
                more += cost_above_worth(atoms, classes, prices, home)
            attach(atoms, classes, a, c)
            repair.moved[a] = repair.n[1]
    elif what == REPLACE:
        repair.loose[d + 1, n] = repair.gone[d, i]
        n += 1
        detach(atoms, classes, repair.gone[d, i])
    attach(atoms, classes, f, c)
    rebox(of, atoms, classes, c)
    if founds:
        more += cost_above_worth(atoms, classes, prices, c)
    repair.moved[f] = repair.n[1]
    repair.made[d] = i
    if c == repair.n[3]:
        repair.n[3] = -2 - c  # it lacks nobody, unless this is taken back
    repair.n_loose[d + 1] = n
    repair.left[d + 1] = repair.left[d] - more


@compiled_within
def _takes_back(of: Boxes, atoms: Atoms, classes: LinkedClasses, repair: Repair, d: Int) -> None:
    """Take back the continuation that was made at a depth, if any."""
    i = repair.made[d]
    if i < 0:
        return
    repair.made[d] = NOBODY
    c = repair.into[d, i]
    f = repair.loose[d, repair.n_loose[d] - 1]
    detach(atoms, classes, f)
    repair.moved[f] = 0
    if repair.what[d, i] == FOUND:
        for z in range(repair.n_team[d] - 1, -1, -1):
            a, home = repair.team[d, z], repair.home[d, z]
            detach(atoms, classes, a)
            repair.moved[a] = 0
            if home >= 0:
                attach(atoms, classes, a, home)
                rebox(of, atoms, classes, home)
        repair.free[repair.n[2]] = c
        repair.n[2] += 1
        return
    if repair.what[d, i] == REPLACE:
        attach(atoms, classes, repair.gone[d, i], c)
    rebox(of, atoms, classes, c)
    if repair.n[3] == -2 - c:
        repair.n[3] = c


@compiled_within
def _placed(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, k: int, side: int, most: int
) -> float:  # fmt: skip
    """Find a place for all loose records that saves something; returns how much. If it is 0, all is as it was."""
    d = repair.n[4]  # a constant would be a type of its own, for which all would be compiled once more
    _look_around(of, atoms, classes, prices, repair, k, side, d)
    tried = 1
    while d >= 0:
        _takes_back(of, atoms, classes, repair, d)
        i = repair.at[d]
        repair.at[d] += 1
        if i >= repair.n_next[d] or tried > most:
            d -= 1
            continue
        _moves(of, atoms, classes, prices, repair, d, i)
        if repair.left[d + 1] > LEAST:
            if repair.n_loose[d + 1] == 0 and repair.n[3] < 0:
                return float(repair.left[d + 1])
            if repair.n_loose[d + 1] > 0 and d + 1 < DEEPEST:
                d += 1
                tried += 1
                _look_around(of, atoms, classes, prices, repair, k, side, d)
    return 0.0


@compiled_within
def _is_first(classes: LinkedClasses, a: Int) -> bool:
    """Return whether no atom of the same class comes before this one, so that what is done then is done once."""
    b = classes.first[classes.class_of[a]]
    while b >= a:
        b = classes.after[b]
    return bool(b == NOBODY)


@compiled_within
def _dissolved(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, repair: Repair, k: int, side: int, most: int,
    c: Int,
) -> float:  # fmt: skip
    """Dissolve a class of single records if places can be found for all of them; returns what that saves."""
    members = np.empty(classes.n_atoms[c], np.int64)
    repair.n[1] += 1
    repair.n[3] = NOBODY
    repair.left[0] = cost_above_worth(atoms, classes, prices, c)
    for y in range(members.shape[0]):
        members[y] = classes.first[c]
        repair.loose[0, y] = members[y]
        detach(atoms, classes, members[y])
    repair.n_loose[0] = members.shape[0]
    saved = _placed(of, atoms, classes, prices, repair, k, side, most)
    if saved > 0:
        repair.free[repair.n[2]] = c
        repair.n[2] += 1
        return saved
    for y in range(members.shape[0] - 1, -1, -1):
        attach(atoms, classes, members[y], c)
    rebox(of, atoms, classes, c)
    return saved


@compiled
def repair_classes(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, prices: Floats, k: int, side: int, first: int, last: int, most: int
) -> float:  # fmt: skip
    """Repair the classes of atoms from ``first`` to ``last`` that cost more than they are worth.

    Each repair tries at most ``most`` moves, and the first one that saves something is kept. Returns what all of them
    saved.
    """
    repair = _memory(of, atoms, classes, k, side)
    in_all = 0.0
    for a in range(first, last):
        c = classes.class_of[a]
        if c <= APART or classes.side[c] != side or atoms.weights[a] != 1:
            continue
        if classes.n_atoms[c] > LARGEST or classes.n_atoms[c] < 2:
            continue
        over = cost_above_worth(atoms, classes, prices, c)
        if over <= LEAST:
            continue
        once = _is_first(classes, a)
        repair.n[1] += 1
        detach(atoms, classes, a)
        rebox(of, atoms, classes, c)
        spare = classes.n_records[c] >= k  # otherwise somebody has to take its place
        repair.n[3] = NOBODY if spare else c
        repair.loose[0, 0], repair.n_loose[0] = a, 1
        repair.left[0] = over - cost_above_worth(atoms, classes, prices, c) if spare else over
        saved = 0.0
        if repair.left[0] > LEAST:
            saved = _placed(of, atoms, classes, prices, repair, k, side, most)
        if saved == 0:
            attach(atoms, classes, a, c)
            rebox(of, atoms, classes, c)
            if once and classes.n_atoms[c] == classes.n_records[c]:
                saved = _dissolved(of, atoms, classes, prices, repair, k, side, most, c)
        in_all += saved
    return in_all
