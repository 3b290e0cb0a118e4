"""The steps of ``local`` that begin with a class: a record gathers the companions it would like best.

Otherwise a step dissolves neighbouring classes, and only then looks what can be made of their records. Here the class
comes first, and the classes that lose a record to it are dissolved for its sake (ejection chains: F. Glover,
Discrete Applied Mathematics 65, 1996). A record is worth what its present class costs it: that much is saved if it
finds a place in the new one. What it is really worth depends on what becomes of the others, so it is drawn at random
around that, and another class is wished for each time.
"""

from __future__ import annotations

from shoal.compiled.jit import compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import (
    FAR,
    MAX_LOOSE,
    NOBODY,
    STARS,
    Atoms,
    Boxes,
    LinkedClasses,
    Log,
    Words,
    leave_class,
    random,
    undo,
    widen,
    wider,
)
from shoal.search.local.scratch import Run, Scratch

DOUBT = 0.4  # the share by which a record's worth, above what it costs alone, is drawn higher or lower
LOOKED = 24  # records of a tuple: equal ones are mostly in the same classes


@compiled_within
def _is_small(atoms: Atoms, classes: LinkedClasses, k: int, a: Int) -> bool:
    """Return whether the class of an atom is dissolved if it leaves, rather than left as it is."""
    c = classes.class_of[a]
    return bool(c != STARS and (classes.n_records[c] < 2 * k or classes.n_records[c] - atoms.weights[a] < k))


@compiled_within
def _invited(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, run: Run, scratch: Scratch, f: Int, state: Words
) -> int:  # fmt: skip
    """List the atoms near one, whatever their classes, with what they are worth; returns how many.

    The handicap tells whether the class of an atom would have to be dissolved, because it is small.
    """
    k, crowd = run.k, scratch.crowd
    t, home = atoms.tuple_of[f], classes.class_of[f]
    n = 0
    for e in range(-1, atoms.near.shape[1]):
        u = t if e < 0 else atoms.near[t, e]
        if u < 0:
            break
        alone = wider(boxes, boxes.codes, u, u, FAR)  # it costs that in any class
        n_each = 0
        for i in range(atoms.starts[u], min(atoms.starts[u + 1], atoms.starts[u] + LOOKED)):
            a = atoms.members[i]
            c = classes.class_of[a]
            if a == f or c < 0 or classes.side[c] != run.side or n_each == k or n == crowd.shape[0]:
                continue
            small = _is_small(atoms, classes, k, a)
            worth = classes.cost[c]
            if small:
                worth = alone + (worth - alone) * (1 - DOUBT + 2 * DOUBT * random(state))
            crowd[n], scratch.gains[n], scratch.bounds[n] = a, worth * atoms.weights[a], 0.0
            scratch.handicap[n] = 1.0 if small and c != home else 0.0
            n_each += 1
            n += 1
    return n


@compiled_within
def wished(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, run: Run, scratch: Scratch, f: Int, state: Words
) -> int:  # fmt: skip
    """Gather k records around an atom: each time the one with the smallest added cost minus its worth.

    They are from its own class, from large classes and from a few small ones. Returns how many atoms of the crowd are
    chosen; 0 if there are too few, or if it is the class as it is.
    """
    k, box, chosen = run.k, scratch.box, scratch.chosen
    crowd, gains, bounds, dissolved = scratch.crowd, scratch.gains, scratch.bounds, scratch.handicap
    tuple_of, class_of = atoms.tuple_of, classes.class_of
    n = _invited(boxes, atoms, classes, run, scratch, f, state)
    n_small = 1 + int(random(state) * run.n_ruined)
    n_loose = classes.n_atoms[class_of[f]] if _is_small(atoms, classes, k, f) else 1
    widen(boxes, box, 0, tuple_of[f], True)
    # As when a class is founded, but records of small classes may be taken too: of at most ``n_small`` such classes.
    n_records, n_chosen, n_others = atoms.weights[f], 0, 0
    while n_records < k:
        best, best_cost = NOBODY, FAR
        for i in range(n):
            # A box only grows, so what it cost with this one before is a bound.
            if bounds[i] == FAR or k * bounds[i] - gains[i] >= best_cost:
                continue
            if dissolved[i] > 0 and (n_small == 0 or n_loose + classes.n_atoms[class_of[crowd[i]]] > MAX_LOOSE):
                continue
            max_cost = (best_cost + gains[i]) / k
            bounds[i] = wider(boxes, box, 0, tuple_of[crowd[i]], max_cost)
            if bounds[i] < max_cost:
                best, best_cost = i, k * bounds[i] - gains[i]
        if best < 0:
            return 0
        a = crowd[best]
        c = class_of[a]
        bounds[best] = FAR
        if dissolved[best] > 0:
            n_small -= 1
            n_loose += classes.n_atoms[c]
            for i in range(n):
                if class_of[crowd[i]] == c:
                    dissolved[i] = 0.0
        if c != class_of[f]:
            n_others += 1
        n_records += atoms.weights[a]
        widen(boxes, box, 0, tuple_of[a], False)
        chosen[n_chosen] = best
        n_chosen += 1
    if n_others == 0 and classes.n_atoms[class_of[f]] == n_chosen + 1:
        return 0
    return n_chosen


@compiled_within
def make_room(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, run: Run, scratch: Scratch, f: Int, n_chosen: int
) -> int:  # fmt: skip
    """Take the atoms of a wished class out of theirs, and dissolve those that are small; returns how many are loose.

    If there is no room for so many, nothing changes, and none is.
    """
    k, loose = run.k, scratch.loose
    n_log, n_touched = log.n[0], log.n[1]
    n = 0
    for y in range(-1, n_chosen):
        a = f if y < 0 else scratch.crowd[scratch.chosen[y]]
        c = classes.class_of[a]
        if c < 0:
            continue
        small = _is_small(atoms, classes, k, a)
        if (small and y >= 0 and n + classes.n_atoms[c] > MAX_LOOSE) or n == loose.shape[0]:
            undo(atoms, classes, log, n_log, n_touched, log.n[0], log.n[1])
            log.n[0], log.n[1] = n_log, n_touched
            return 0
        b = classes.first[c] if small else a
        while b >= 0:
            after = classes.after[b] if small else NOBODY
            leave_class(boxes, atoms, classes, log, b, not small)
            loose[n] = b
            n += 1
            b = after
    return n
