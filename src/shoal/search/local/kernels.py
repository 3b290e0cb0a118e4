"""The kernels of ``local``: nearest tuples, and dissolving and rebuilding classes.

An atom is a group of records of one tuple that stay together, usually a single record. A class is a list of atoms with
its box: per column, the lowest and highest rank or, if cells are sets, the leaves that occur. Every label of a tree is
a range of ranks, so the box determines the price of a class however its cells are written. All loops are plain: slices
and array functions would multiply the compile time.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.tables.frequency import Floats

Ints = NDArray[np.int64]
ShortInts = NDArray[np.int32]
# Unsigned: an index that may be negative costs a comparison each time, and most of the work is looking prices up.
BoxCodes = NDArray[np.uint32]
Prices = NDArray[np.float32]
Words = NDArray[np.uint64]

NOBODY = -1
STARS = 0  # the class of suppressed records
LOCKED = 2  # the side of classes that no thread may change; 0 and 1 are those of the threads
SHRINKS = 48  # atoms up to which the box of a class is recomputed when one leaves
MAX_LOOSE = 96  # atoms released at once, in addition to those of the last class
FAR = 1e300
LARGE = np.uint32(1 << 31)


class Boxes(NamedTuple):
    """The distinct tuples, and what a range of ranks, or a set, costs per record, column by column.

    ``pairs[row + high]`` is the price of a cell that covers all ranks from low to high, where ``row`` is the offset of
    low's prices and increases with low. A column with too many values for this has ``LARGE`` + low instead, and its
    levels are climbed until both ranks have the same node. Columns of sets come last, with one bit per leaf;
    ``set_prices[place + n]`` is the price of a set of n leaves.
    """

    codes: BoxCodes  # (tuples, words)  rows of the ranges, then their ranks, then the bits of the sets
    pairs: Prices
    levels: Ints  # (ranges, 2)  where its levels begin in nodes, and its ranks
    nodes: ShortInts
    node_prices: Prices
    sets: Ints  # (sets, 3)  its first word, the word after its last, and the place of its prices
    set_prices: Prices


class Atoms(NamedTuple):
    """The tuple, weight and kind of each atom, and the neighbours of each tuple."""

    tuple_of: Ints  # (atoms)
    weights: Ints  # (atoms)  records
    starts: Ints  # (tuples + 1)  tuple u has members[starts[u]:starts[u+1]]
    members: Ints
    near: ShortInts  # (tuples, neighbours)  nearest first
    floors: Floats  # (tuples)  approximate lower bound on the cost of a record
    kinds: Ints  # (atoms)  a class of many kinds is more likely to pass, where it is judged by more than its size


class LinkedClasses(NamedTuple):
    """The assignment to classes: doubly linked lists of atoms, and the box and the price of each class."""

    class_of: Ints  # (atoms)
    before: Ints
    after: Ints
    first: Ints  # (classes)
    n_atoms: Ints
    n_records: Ints
    box: BoxCodes  # (classes, words)  lowest rows, then highest ranks, then all bits
    cost: Floats  # (classes)  per record
    side: NDArray[np.int8]  # who may touch it


class Log(NamedTuple):
    """The changes to undo: atoms in the order in which they left, and the previous state of their classes."""

    atoms: Ints
    left: Ints  # the class that the atom was in
    touched: Ints  # classes
    cost: Floats
    records: Ints
    box: BoxCodes
    stamp: Ints  # (all classes)  the step that touched it last
    ends: Ints  # (proposals, 2)  in atoms and in touched
    n: Ints  # atoms, touched, the step, free classes
    free: Ints  # classes that are empty


# --- boxes -------------------------------------------------------------------------------------------------------


@compiled_within
def _climbed(levels: Ints, nodes: ShortInts, node_prices: Prices, j: Int, low: Int, high: Int) -> float:
    """Return the price of the lowest node that covers two ranks."""
    at = levels[j, 0]
    while nodes[at + low] != nodes[at + high]:
        at += levels[j, 1]
    return float(node_prices[at + low])


@compiled_within
def _ones(word: Int) -> Int:
    """Return the number of set bits; compilers turn this pattern into one instruction."""
    x = np.uint32(word)
    x -= (x >> np.uint32(1)) & np.uint32(0x55555555)
    x = (x & np.uint32(0x33333333)) + ((x >> np.uint32(2)) & np.uint32(0x33333333))
    x = (x + (x >> np.uint32(4))) & np.uint32(0x0F0F0F0F)
    return np.uint32(x * np.uint32(0x01010101)) >> np.uint32(24)


@compiled
def wider(boxes: Boxes, box: BoxCodes, c: Int, u: Int, max_cost: float) -> float:
    """Return the cost of box c with tuple u added; if it reaches ``max_cost``, any number of at least ``max_cost``."""
    codes, pairs, levels, nodes, node_prices, sets, set_prices = boxes
    q, n_sets = levels.shape[0], sets.shape[0]
    total = 0.0
    j = 0
    while j < q and total < max_cost:  # a break would make Numba count references, which both threads would wait for
        row, high = min(box[c, j], codes[u, j]), max(box[c, q + j], codes[u, q + j])
        if row < LARGE:
            total += pairs[row + high]
        else:
            total += _climbed(levels, nodes, node_prices, j, row - LARGE, high)
        j += 1
    j = 0
    while j < n_sets and total < max_cost:
        n = sets[j, 2]
        for w in range(sets[j, 0], sets[j, 1]):
            n += _ones(box[c, w] | codes[u, w])
        total += set_prices[n]
        j += 1
    return total


@compiled_within
def widen(boxes: Boxes, box: BoxCodes, c: Int, u: Int, alone: bool) -> None:
    """Extend box c to tuple u, or make it that tuple ``alone``."""
    codes, q = boxes.codes, boxes.levels.shape[0]
    if alone:
        for w in range(codes.shape[1]):
            box[c, w] = codes[u, w]
        return
    for j in range(q):
        box[c, j] = min(box[c, j], codes[u, j])
        box[c, q + j] = max(box[c, q + j], codes[u, q + j])
    for w in range(2 * q, codes.shape[1]):
        box[c, w] |= codes[u, w]


@compiled_within
def rebox(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, c: Int) -> None:
    """Recompute the smallest box of a class, and its price."""
    box, after, tuple_of = classes.box, classes.after, atoms.tuple_of
    a = classes.first[c]
    if c == STARS or a < 0:
        return
    u = tuple_of[a]
    widen(boxes, box, c, u, True)
    while after[a] >= 0:
        a = after[a]
        widen(boxes, box, c, tuple_of[a], False)
    classes.cost[c] = wider(boxes, box, c, u, FAR)


@compiled
def rebox_all(boxes: Boxes, atoms: Atoms, classes: LinkedClasses) -> float:
    """Recompute all boxes after prices have changed; return the cost of all records."""
    total = 0.0
    for c in range(classes.first.shape[0]):
        rebox(boxes, atoms, classes, c)
        total += classes.n_records[c] * classes.cost[c]
    return total


# --- neighbours --------------------------------------------------------------------------------------------------


@compiled_within
def _offered(near: ShortInts, away: Floats, u: Int, v: Int, d: float) -> None:
    """Add v to the nearest tuples of u if it is close enough."""
    n = near.shape[1]
    if d >= away[u, n - 1]:
        return
    for i in range(n):
        if near[u, i] == v:
            return
    i = n - 1
    while i > 0 and away[u, i - 1] > d:
        away[u, i], near[u, i] = away[u, i - 1], near[u, i - 1]
        i -= 1
    away[u, i], near[u, i] = d, v


@compiled
def meet_along(boxes: Boxes, order: Ints, width: int, near: ShortInts, away: Floats) -> None:
    """Compare each tuple with those up to ``width`` places further in an order that puts similar tuples together."""
    m, n = near.shape
    for p in range(m):
        u = order[p]
        for i in range(p + 1, min(m, p + 1 + width)):
            v = order[i]
            d = wider(boxes, boxes.codes, u, v, max(away[u, n - 1], away[v, n - 1]))
            _offered(near, away, u, v, d)
            _offered(near, away, v, u, d)


@compiled
def meet_friends(
    boxes: Boxes, candidates: ShortInts, near: ShortInts, away: Floats, first: int, last: int
) -> None:  # fmt: skip
    """Compare each tuple from ``first`` to ``last`` with the ``candidates`` of its candidates."""
    n = near.shape[1]
    met = np.full(near.shape[0], -1, np.int32)  # the last tuple that was compared with each
    for u in range(first, last):
        met[u] = u
        for i in range(n):
            if near[u, i] >= 0:
                met[near[u, i]] = u
        for i in range(n):
            v = candidates[u, i]
            if v < 0:
                break
            for o in range(-1, n):
                x = v if o < 0 else candidates[v, o]
                if x < 0:
                    break
                if met[x] != u:
                    met[x] = u
                    d = wider(boxes, boxes.codes, u, x, away[u, n - 1])
                    _offered(near, away, u, x, d)


# --- moving atoms ------------------------------------------------------------------------------------------------


@compiled_within
def attach(atoms: Atoms, classes: LinkedClasses, a: Int, c: Int) -> None:
    """Put an atom into a class without updating its box."""
    before, first = classes.before, classes.first
    other = first[c]
    classes.class_of[a] = c
    before[a] = NOBODY
    classes.after[a] = other
    if other >= 0:
        before[other] = a
    first[c] = a
    classes.n_atoms[c] += 1
    classes.n_records[c] += atoms.weights[a]


@compiled
def attach_all(atoms: Atoms, classes: LinkedClasses, class_of: Ints) -> None:
    """Put every atom into its class."""
    for a in range(class_of.shape[0]):
        attach(atoms, classes, a, class_of[a])


@compiled_within
def detach(atoms: Atoms, classes: LinkedClasses, a: Int) -> None:
    """Take an atom out of its class without updating its box."""
    before, after, c = classes.before, classes.after, classes.class_of[a]
    if before[a] >= 0:
        after[before[a]] = after[a]
    else:
        classes.first[c] = after[a]
    if after[a] >= 0:
        before[after[a]] = before[a]
    classes.n_atoms[c] -= 1
    classes.n_records[c] -= atoms.weights[a]
    classes.class_of[a] = NOBODY


@compiled_within
def touch(classes: LinkedClasses, log: Log, c: Int) -> None:
    """Save the state of a class before it changes."""
    if log.stamp[c] == log.n[2]:
        return
    log.stamp[c] = log.n[2]
    i = log.n[1]
    log.touched[i], log.cost[i], log.records[i] = c, classes.cost[c], classes.n_records[c]
    for j in range(classes.box.shape[1]):
        log.box[i, j] = classes.box[c, j]
    log.n[1] += 1


@compiled_within
def leave_class(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, a: Int, shrink: bool) -> None:
    """Take an atom out of its class and log where it was; with ``shrink``, the boxes of small classes shrink."""
    c = classes.class_of[a]
    touch(classes, log, c)
    log.atoms[log.n[0]], log.left[log.n[0]] = a, c
    log.n[0] += 1
    detach(atoms, classes, a)
    if shrink and classes.n_atoms[c] <= SHRINKS:
        rebox(boxes, atoms, classes, c)


@compiled_within
def undo(
    atoms: Atoms, classes: LinkedClasses, log: Log, n_atoms: Int, n_touched: Int, to_atoms: Int, to_touched: Int
) -> None:
    """Put back all atoms that left, from ``n_atoms`` to ``to_atoms`` in the log."""
    # Backwards, so that an atom that left twice ends where it was first.
    for i in range(to_atoms - 1, n_atoms - 1, -1):
        a = log.atoms[i]
        if classes.class_of[a] >= 0:
            detach(atoms, classes, a)
        attach(atoms, classes, a, log.left[i])
    for i in range(n_touched, to_touched):
        c = log.touched[i]
        classes.cost[c] = log.cost[i]
        for j in range(classes.box.shape[1]):
            classes.box[c, j] = log.box[i, j]


@compiled
def settle(atoms: Atoms, classes: LinkedClasses, log: Log, ends: Ints, failed: NDArray[np.bool_]) -> None:
    """Undo the proposals that failed; they touch different classes."""
    n_atoms = n_touched = 0
    for p in range(ends.shape[0]):
        if failed[p]:
            undo(atoms, classes, log, n_atoms, n_touched, ends[p, 0], ends[p, 1])
        n_atoms, n_touched = ends[p, 0], ends[p, 1]


@compiled_within
def cost_more(classes: LinkedClasses, log: Log, n_touched: Int) -> float:
    """Return the increase in cost of the classes touched from ``n_touched`` on."""
    increase = 0.0
    for i in range(n_touched, log.n[1]):
        c = log.touched[i]
        increase += classes.n_records[c] * classes.cost[c] - log.records[i] * log.cost[i]
    return increase


@compiled
def random(state: Words) -> float:
    """Return a random number from 0 to 1, 1 excluded (splitmix64); each thread has its own state."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return float((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / float(1 << 53)
