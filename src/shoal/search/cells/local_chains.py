"""The kernel of ``local`` that moves several records at once: a record pushes another out of a class, and so on.

A chain begins with a record that leaves its class. It joins a class nearby, from which another record leaves for the
next, until the last one joins a class without replacing anybody, or the class that the first one left (cyclic exchange:
R. K. Ahuja, J. B. Orlin, D. Sharma, "Very large-scale neighborhood search", ITOR 7, 2000). Chains are built one record
at a time, and only those are continued that save more than they cost so far (S. Lin, B. W. Kernighan, "An effective
heuristic algorithm for the traveling-salesman problem", Operations Research 21, 1973).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.search.cells.local_kernels import (
    APART,
    FAR,
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
from shoal.search.cells.mondrian_kernels import Int
from shoal.table.frequency import Floats
from shoal.table.jit import compiled, compiled_within

LARGEST = 40  # atoms of a class that takes part
LONGEST = 6  # records that move
BROAD = 5  # continuations of a chain of one record, fewer of longer ones
LOOKED = 16  # tuples next to a record whose classes it may join
EACH = 3  # records of each
LEAST = 1e-9  # that a chain has to save


class Chain(NamedTuple):
    """Working memory: by depth, the record on the move and the possible continuations."""

    moving: Ints  # (depth)
    saved: Floats  # (depth)  so far, at best
    into: Ints  # (depth)  the class that it joins
    n_next: Ints  # (depth)
    at: Ints  # (depth)  the next continuation
    classes: Ints  # (depth, continuations)
    gone: Ints  # (depth, continuations)  who leaves
    gains: Floats  # (depth, continuations)
    best: Ints  # who moves: atom, class, atom, class, ...
    box: BoxCodes  # (members and more)
    seen: Ints  # (all classes)
    mark: Ints  # (1)
    room: Ints  # (atoms of a class)


@compiled_within
def _rests(of: Boxes, atoms: Atoms, classes: LinkedClasses, chain: Chain, c: Int) -> int:
    """List the members of a class, and for each the box of all others; returns how many."""
    n = 0
    a = classes.first[c]
    while a >= 0:
        chain.room[n] = a
        n += 1
        a = classes.after[a]
    box, tuple_of = chain.box, atoms.tuple_of
    q, words = of.levels.shape[0], of.codes.shape[1]
    # Row i is for the members before the i-th; LARGEST + i for all but it; the last for those from the end on.
    for i in range(1, n):
        if i == 1:
            widen(of, box, 1, tuple_of[chain.room[0]], True)
        else:
            for w in range(words):
                box[i, w] = box[i - 1, w]
            widen(of, box, i, tuple_of[chain.room[i - 1]], False)
    last = 2 * LARGEST + 1
    for i in range(n - 1, -1, -1):
        if i == n - 1:
            if n > 1:
                for w in range(words):
                    box[LARGEST + i, w] = box[i, w]
            widen(of, box, last, tuple_of[chain.room[i]], True)
        else:
            for w in range(words):
                box[LARGEST + i, w] = box[last, w]
            if i > 0:
                for j in range(q):
                    box[LARGEST + i, j] = min(box[LARGEST + i, j], box[i, j])
                    box[LARGEST + i, q + j] = max(box[LARGEST + i, q + j], box[i, q + j])
                for w in range(2 * q, words):
                    box[LARGEST + i, w] |= box[i, w]
            widen(of, box, last, tuple_of[chain.room[i]], False)
    return n


@compiled_within
def _ended(chain: Chain, d: int, c: Int) -> int:
    """Note that the best chain so far is the current one with its last record in a class; returns its moves."""
    for y in range(d):
        chain.best[2 * y], chain.best[2 * y + 1] = chain.moving[y], chain.into[y]
    chain.best[2 * d], chain.best[2 * d + 1] = chain.moving[d], c
    return d + 1


@compiled_within
def _continued(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, chain: Chain, side: int, d: int, start: Int, spare: bool,
    best: float, n_best: int,
) -> tuple[float, int]:  # fmt: skip
    """Find where the record on the move at depth d can go; returns the best end so far, and of how many moves."""
    x = chain.moving[d]
    t = atoms.tuple_of[x]
    saved = chain.saved[d]
    chain.mark[0] += 1
    mark = chain.mark[0]
    chain.seen[start] = mark
    chain.seen[classes.class_of[x]] = mark
    for e in range(d):
        chain.seen[chain.into[e]] = mark
    width = max(1, BROAD - 2 * d) if d > 0 else BROAD
    chain.n_next[d] = chain.at[d] = 0
    for e in range(-1, LOOKED):
        u = t if e < 0 else atoms.near[t, e]
        if u < 0:
            continue
        n_each = 0
        for i in range(atoms.starts[u], atoms.starts[u + 1]):
            c = classes.class_of[atoms.members[i]]
            n_each += 1
            if n_each > EACH:
                break
            if c <= APART or chain.seen[c] == mark or classes.side[c] != side or classes.n_atoms[c] > LARGEST:
                continue
            chain.seen[c] = mark
            n, cost = classes.n_records[c], classes.cost[c]
            if spare:
                now = n * cost
                most = (now + saved - best) / (n + 1)
                then = wider(of, classes.box, c, t, most)
                if then < most:
                    best, n_best = saved - ((n + 1) * then - now), _ended(chain, d, c)
            if d + 1 == LONGEST:
                continue
            m = _rests(of, atoms, classes, chain, c)
            for y in range(m):
                gone = chain.room[y]
                if atoms.weights[gone] != 1 or m == 1 or atoms.tuple_of[gone] == t:
                    continue
                worst = chain.gains[d, width - 1] if chain.n_next[d] == width else LEAST
                most = cost + (saved - worst) / n
                then = wider(of, chain.box, LARGEST + y, t, most)
                if then < most:
                    gain = saved - n * (then - cost)
                    z = min(chain.n_next[d], width - 1)
                    while z > 0 and chain.gains[d, z - 1] < gain:
                        chain.gains[d, z] = chain.gains[d, z - 1]
                        chain.classes[d, z] = chain.classes[d, z - 1]
                        chain.gone[d, z] = chain.gone[d, z - 1]
                        z -= 1
                    chain.gains[d, z], chain.classes[d, z], chain.gone[d, z] = gain, c, gone
                    chain.n_next[d] = min(width, chain.n_next[d] + 1)
    return best, n_best


@compiled_within
def _without(of: Boxes, atoms: Atoms, classes: LinkedClasses, home: BoxCodes, c: Int, a: Int) -> float:
    """Return the cost per record of a class without one of its atoms, and make its box."""
    begun = False
    other = a
    b = classes.first[c]
    while b >= 0:
        if b != a:
            widen(of, home, 0, atoms.tuple_of[b], not begun)
            begun = True
            other = b
        b = classes.after[b]
    return wider(of, home, 0, atoms.tuple_of[other], FAR)


@compiled_within
def _moved(of: Boxes, atoms: Atoms, classes: LinkedClasses, chain: Chain, c: Int, n: int) -> None:
    """Make the ``n`` moves of the best chain, which begins in class c."""
    for y in range(n):
        detach(atoms, classes, chain.best[2 * y])
    for y in range(n):
        attach(atoms, classes, chain.best[2 * y], chain.best[2 * y + 1])
    rebox(of, atoms, classes, c)
    for y in range(n):
        rebox(of, atoms, classes, chain.best[2 * y + 1])


@compiled
def move_chains(
    of: Boxes, atoms: Atoms, classes: LinkedClasses, k: int, side: int, first: int, last: int
) -> float:  # fmt: skip
    """Move the records of the best chain that begins with each atom in turn; returns what all of them saved."""
    chain = Chain(
        np.zeros(LONGEST, np.int64), np.zeros(LONGEST), np.zeros(LONGEST, np.int64), np.zeros(LONGEST, np.int64),
        np.zeros(LONGEST, np.int64), np.zeros((LONGEST, BROAD), np.int64), np.zeros((LONGEST, BROAD), np.int64),
        np.zeros((LONGEST, BROAD)), np.zeros(2 * LONGEST, np.int64),
        np.zeros((2 * LARGEST + 2, of.codes.shape[1]), np.uint32),
        np.zeros(classes.first.shape[0], np.int64), np.zeros(1, np.int64), np.zeros(LARGEST, np.int64),
    )  # fmt: skip
    home = np.zeros((1, of.codes.shape[1]), np.uint32)
    in_all = 0.0
    for a in range(first, last):
        c = classes.class_of[a]
        if c <= APART or classes.side[c] != side or atoms.weights[a] != 1:
            continue
        if classes.n_atoms[c] > LARGEST or classes.n_atoms[c] < 2 or classes.cost[c] <= LEAST:
            continue
        n = classes.n_records[c]
        spare = n > k  # otherwise the last one has to go where the first one was
        left = (n - 1 if spare else n) * _without(of, atoms, classes, home, c, a)
        saved = n * classes.cost[c] - left
        if saved <= LEAST:
            continue
        best, n_best, d = LEAST, 0, 0
        chain.moving[0], chain.saved[0] = a, saved
        best, n_best = _continued(of, atoms, classes, chain, side, 0, c, spare, best, n_best)
        while d >= 0:
            i = chain.at[d]
            chain.at[d] += 1
            if i >= chain.n_next[d]:
                d -= 1
            elif chain.gains[d, i] > best:
                chain.into[d] = chain.classes[d, i]
                chain.moving[d + 1], chain.saved[d + 1] = chain.gone[d, i], chain.gains[d, i]
                d += 1
                back = chain.saved[d] + left - n * wider(of, home, 0, atoms.tuple_of[chain.moving[d]], FAR)
                if back > best:
                    best, n_best = back, _ended(chain, d, c)
                best, n_best = _continued(of, atoms, classes, chain, side, d, c, spare, best, n_best)
        if n_best > 0:
            _moved(of, atoms, classes, chain, c, n_best)
            in_all += best
    return in_all
