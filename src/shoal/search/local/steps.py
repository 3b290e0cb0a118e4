"""The main loop of ``local``: a step dissolves some classes and rebuilds them from their records."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import (
    FAR,
    LOCKED,
    MAX_LOOSE,
    NOBODY,
    STARS,
    Atoms,
    Boxes,
    Ints,
    LinkedClasses,
    Log,
    Words,
    attach,
    cost_more,
    leave_class,
    random,
    rebox,
    touch,
    undo,
    widen,
    wider,
)
from shoal.search.local.scratch import Run, Scratch, scratch_of
from shoal.search.local.wishes import make_room, wished

CLOSE = 32  # tuples next to a record whose classes are dissolved together with its own


class StepPlan(NamedTuple):
    """The decisions of a step before its loose atoms are reassigned."""

    n_loose: int
    n_log: Int  # atoms in the log before the step
    n_touched: Int  # classes in the log before the step
    trust: float  # the weight of an atom's previous cost
    push: float  # the penalty on a kind that the class already contains
    max_increase: float  # the cost increase that is accepted


@compiled_within
def _dissolve_around(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, run: Run, seed: Int, n_classes: int, loose: Ints,
    state: Words,
) -> int:  # fmt: skip
    """Dissolve small classes around ``seed``; take a record from large ones. Returns the number of ``loose`` atoms."""
    n = 0
    a = seed
    # Twenty draws: the seed's own class first, then that of a record near the seed.
    for _ in range(20):
        c = classes.class_of[a]
        if c >= 0 and classes.side[c] == run.side:
            if c != STARS and classes.n_records[c] < 2 * run.k and (n == 0 or n + classes.n_atoms[c] <= MAX_LOOSE):
                m = classes.first[c]
                while m >= 0:
                    after = classes.after[m]
                    leave_class(boxes, atoms, classes, log, m, False)
                    loose[n] = m
                    n += 1
                    m = after
                n_classes -= 1
            elif c == STARS or classes.n_records[c] - atoms.weights[a] >= run.k:
                leave_class(boxes, atoms, classes, log, a, True)
                loose[n] = a
                n += 1
                n_classes -= 1
        if n_classes <= 0 or n >= MAX_LOOSE:
            break
        # The square prefers near tuples: they come first in the list.
        x = random(state)
        u = atoms.near[atoms.tuple_of[seed], int(x * x * min(CLOSE, atoms.near.shape[1]))]
        if u < 0:
            u = atoms.tuple_of[seed]
        a = atoms.members[atoms.starts[u] + int(random(state) * (atoms.starts[u + 1] - atoms.starts[u]))]
    return n


@compiled_within
def _options(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, run: Run, scratch: Scratch, f: Int, n: int, max_cost: float
) -> tuple[int, int, float]:
    """Find the options of a loose atom: the class that is cheapest to join, and the atoms for a new class with it.

    The latter come from nearby classes with more than k records and are added, with their current cost, to the ``n``
    atoms of the crowd. A class is no option if joining it costs ``max_cost`` or more. Returns the size of the crowd,
    the class (or -1) and the cost of joining it (or ``max_cost``).
    """
    k, side, examined_by, crowd, gains = run.k, run.side, scratch.examined_by, scratch.crowd, scratch.gains
    scratch.mark[0] += 1
    mark = scratch.mark[0]
    tuple_of, weights, starts, members, near, _, _ = atoms
    class_of, side_of, n_records, cost = classes.class_of, classes.side, classes.n_records, classes.cost
    box = classes.box
    t, weight = tuple_of[f], weights[f]
    # To be suppressed is an option, too, as long as the limit allows it.
    best, best_cost = NOBODY, max_cost
    if side_of[STARS] == side and n_records[STARS] + weight <= run.limit and weight * cost[STARS] < max_cost:
        best, best_cost = STARS, weight * cost[STARS]
    for e in range(-1, near.shape[1]):
        u = t if e < 0 else near[t, e]
        if u < 0:
            break
        n_lent = n_looked = 0
        for i in range(starts[u], starts[u + 1]):
            a = members[i]
            c = class_of[a]
            if c < 0 or side_of[c] != side:
                continue
            n_looked += 1
            if n_looked > 24:  # equal tuples are mostly in the same classes
                break
            # Records that their class can spare may found a class with this one.
            spare = c == STARS or n_records[c] - weights[a] >= k
            if spare and n_lent < k and n < crowd.shape[0]:
                crowd[n], gains[n] = a, cost[c] * weights[a]
                n += 1
                n_lent += 1
            # Joining costs n_after · new_cost − now; what is worse than the best so far is not priced to the end.
            if examined_by[c] != mark and c != STARS:
                examined_by[c] = mark
                now, n_after = n_records[c] * cost[c], n_records[c] + weight
                bound = (best_cost + now) / n_after
                new_cost = wider(boxes, box, c, t, bound)
                if new_cost < bound:
                    best, best_cost = c, n_after * new_cost - now
    return n, best, best_cost


@compiled_within
def _founded(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, k: int, scratch: Scratch, f: Int, n: int, push: float
) -> tuple[int, float]:
    """Gather k records around a loose atom: each time the one with the smallest added cost minus its previous cost.

    Kinds that the class already contains get the penalty ``push``. Returns how many of the ``n`` atoms of the crowd are
    chosen, and the total cost; ``FAR`` if there are too few.
    """
    crowd, gains, bounds, handicap = scratch.crowd, scratch.gains, scratch.bounds, scratch.handicap
    chosen, box = scratch.chosen, scratch.box
    tuple_of, weights, class_of, in_class = atoms.tuple_of, atoms.weights, classes.class_of, classes.n_records
    widen(boxes, box, 0, tuple_of[f], True)
    n_records = weights[f]
    cost = wider(boxes, box, 0, tuple_of[f], FAR)
    total = 0.0
    kinds = atoms.kinds
    for i in range(n):
        bounds[i] = 0.0
        handicap[i] = push if push > 0 and kinds[crowd[i]] == kinds[f] else 0.0
    n_chosen = 0
    # Greedy: the companion with the smallest k · (cost of the grown box) − saving − penalty, until there are k records.
    while n_records < k:
        best, best_cost = NOBODY, FAR
        for i in range(n):
            # A box only grows, so what it cost with this one before is a bound.
            if bounds[i] == FAR or k * bounds[i] - gains[i] + handicap[i] >= best_cost:
                continue
            a = crowd[i]
            c = class_of[a]
            if c > STARS and in_class[c] - weights[a] < k:
                continue
            max_cost = (best_cost + gains[i] - handicap[i]) / k
            bounds[i] = wider(boxes, box, 0, tuple_of[a], max_cost)
            if bounds[i] < max_cost:
                best, best_cost = i, k * bounds[i] - gains[i] + handicap[i]
        if best < 0:
            break
        a = crowd[best]
        cost = bounds[best]
        bounds[best] = FAR
        total -= gains[best]
        n_records += weights[a]
        widen(boxes, box, 0, tuple_of[a], False)
        if class_of[a] >= 0:
            in_class[class_of[a]] -= weights[a]  # reserved
        chosen[n_chosen] = best
        n_chosen += 1
        if push > 0:
            for i in range(n):
                if kinds[crowd[i]] == kinds[a]:
                    handicap[i] += push
    for i in range(n_chosen):
        a = crowd[chosen[i]]
        if class_of[a] >= 0:
            in_class[class_of[a]] += weights[a]
    return n_chosen, total + n_records * cost if n_records >= k else FAR


@compiled_within
def _create_class(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, scratch: Scratch, f: Int, n_chosen: int, rest: float
) -> float:
    """Make a class of a loose atom and those chosen; return a lower bound on the cost of the remaining loose atoms."""
    log.n[3] -= 1
    c = log.free[log.n[3]]
    touch(classes, log, c)
    for i in range(n_chosen):
        member = scratch.crowd[scratch.chosen[i]]
        if classes.class_of[member] >= 0:
            leave_class(boxes, atoms, classes, log, member, True)
        else:
            rest -= atoms.floors[atoms.tuple_of[member]] * atoms.weights[member]
        attach(atoms, classes, member, c)
    attach(atoms, classes, f, c)
    rebox(boxes, atoms, classes, c)
    return rest


@compiled_within
def _join(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, f: Int, c: Int) -> None:
    """Put a loose atom into a class and extend its box."""
    touch(classes, log, c)
    attach(atoms, classes, f, c)
    if c != STARS:
        widen(boxes, classes.box, c, atoms.tuple_of[f], False)
        classes.cost[c] = wider(boxes, classes.box, c, atoms.tuple_of[f], FAR)


@compiled_within
def _rebuilt(
    boxes: Boxes,
    atoms: Atoms,
    classes: LinkedClasses,
    log: Log,
    run: Run,
    scratch: Scratch,
    plan: StepPlan,
    state: Words,
) -> bool:
    """Give every loose atom a class, in the order of the keys; False if the step can no longer succeed."""
    loose, paid, keys, n = scratch.loose, scratch.paid, scratch.keys, plan.n_loose
    rest = 0.0  # a lower bound on the cost of the loose atoms
    for i in range(n):
        if classes.class_of[loose[i]] < 0:
            rest += atoms.floors[atoms.tuple_of[loose[i]]] * atoms.weights[loose[i]]
    for _ in range(n):
        above = cost_more(classes, log, plan.n_touched) + rest
        if above > plan.max_increase:
            return False
        first = NOBODY
        for i in range(n):
            if classes.class_of[loose[i]] < 0 and (first < 0 or keys[i] < keys[first]):
                first = i
        if first < 0:
            return True
        f = loose[first]
        n_crowd = 0
        for i in range(n):
            if i != first and classes.class_of[loose[i]] < 0:
                scratch.crowd[n_crowd] = loose[i]
                scratch.gains[n_crowd] = plan.trust * paid[i] * atoms.weights[loose[i]]
                n_crowd += 1
        floor = atoms.floors[atoms.tuple_of[f]] * atoms.weights[f]
        max_cost = FAR if run.verify else plan.max_increase - above + floor + 2e-9  # whatever costs more ends the step
        n_crowd, joined, joining_cost = _options(boxes, atoms, classes, run, scratch, f, n_crowd, max_cost)
        n_chosen, cost = 0, FAR
        if joining_cost > floor + 1e-9 and log.n[3] > 0 and log.n[0] + run.k <= log.atoms.shape[0]:
            n_chosen, cost = _founded(boxes, atoms, classes, run.k, scratch, f, n_crowd, plan.push)
        may_go = classes.side[STARS] == run.side and classes.n_records[STARS] + atoms.weights[f] <= run.limit
        if run.verify and may_go and random(state) < 0.05:  # it may be the reason why its class fails
            joined, cost = STARS, FAR
        if cost < joining_cost:
            rest = _create_class(boxes, atoms, classes, log, scratch, f, n_chosen, rest - floor)
        elif joined >= 0:
            rest -= floor
            _join(boxes, atoms, classes, log, f, joined)
        else:
            return False
    return True


@compiled_within
def _most_to_gain(atoms: Atoms, classes: LinkedClasses, side: int, state: Words) -> int:
    """Return the atom that could gain most among a few drawn at random; -1 if none could."""
    a, regret = NOBODY, 1e-9
    for _ in range(3):
        other = int(random(state) * atoms.tuple_of.shape[0])
        c = classes.class_of[other]
        if c >= 0 and classes.side[c] == side:
            could = classes.cost[c] - atoms.floors[atoms.tuple_of[other]]
            if could > regret:
                a, regret = other, could
    return a


@compiled_within
def _planned(
    atoms: Atoms, log: Log, run: Run, scratch: Scratch, n: int, n_log: Int, n_touched: Int, elapsed: float, state: Words
) -> StepPlan:
    """Draw the plan of a step: what each loose atom paid decides the order, and how others rely on it."""
    trust = 0.7 + 0.5 * random(state)
    by_cost = random(state) < 0.6
    push = 0.0
    if run.verify and random(state) < 0.7:
        push = random(state) * 3 * run.cold
        trust += 2 * random(state) * random(state)
    paid = scratch.paid
    for i in range(n):
        paid[i] = log.cost[n_touched]
        for t in range(n_touched, log.n[1]):
            if log.touched[t] == log.left[n_log + i]:
                paid[i] = log.cost[t]
        scratch.keys[i] = -paid[i] * (0.7 + 0.6 * random(state)) if by_cost else random(state)
    temperature = run.hot * (run.cold / run.hot) ** elapsed if run.hot > 0 else 0.0
    max_increase = -1e-9 if run.verify else max(-1e-9, -temperature * np.log(1 - random(state)))
    return StepPlan(n, n_log, n_touched, trust, push, max_increase)


@compiled_within
def _free_touched(classes: LinkedClasses, log: Log, n_touched: Int) -> None:
    """List the classes that a step left empty."""
    for t in range(n_touched, log.n[1]):
        if classes.n_atoms[log.touched[t]] == 0 and log.touched[t] != STARS:
            log.free[log.n[3]] = log.touched[t]
            log.n[3] += 1


@compiled
def improve(boxes: Boxes, atoms: Atoms, classes: LinkedClasses, log: Log, run: Run, seed: int) -> tuple[int, int]:
    """Dissolve and rebuild classes for a number of steps; keep changes that cost less.

    Changes that cost more may be kept too, more often at a higher temperature. If proposals are verified, none that
    costs more is kept, and changed classes are locked until they are judged. Returns the number of steps and of
    proposals; ends early if there is no room for more proposals.
    """
    state = np.array([seed], np.uint64)
    scratch = scratch_of(boxes, classes, run.k)
    log.n[0] = log.n[1] = log.n[3] = 0
    for c in range(classes.first.shape[0] - 1, STARS, -1):
        if classes.n_atoms[c] == 0 and classes.side[c] == run.side:
            log.free[log.n[3]] = c
            log.n[3] += 1
    n_proposals, n_steps = 0, 0
    while n_steps < run.n_steps:
        n_log, n_touched = log.n[0], log.n[1]
        if n_log + scratch.loose.shape[0] > log.atoms.shape[0] or n_proposals == log.ends.shape[0]:
            break
        n_steps += 1
        log.n[2] += 1
        # Start from a record that costs much more than it could.
        a = _most_to_gain(atoms, classes, run.side, state)
        if a < 0:
            continue
        # Take classes apart: those that stand in the way of a wish, or those around the record.
        n_chosen = 0
        if run.wishes > 0 and log.n[3] > 0 and random(state) < run.wishes:
            n_chosen = wished(boxes, atoms, classes, run, scratch, a, state)
        if n_chosen > 0:
            n = make_room(boxes, atoms, classes, log, run, scratch, a, n_chosen)
        else:
            n = _dissolve_around(
                boxes, atoms, classes, log, run, a, 1 + int(random(state) * run.n_ruined), scratch.loose, state
            )
        if n == 0:
            continue
        # Rebuild: the wished class first, then every loose atom joins or founds one.
        plan = _planned(atoms, log, run, scratch, n, n_log, n_touched, n_steps / run.n_steps, state)
        if n_chosen > 0:
            _create_class(boxes, atoms, classes, log, scratch, a, n_chosen, 0.0)
        whole = _rebuilt(boxes, atoms, classes, log, run, scratch, plan, state)
        # Keep what costs less, or little enough more at this temperature; otherwise restore the log.
        delta = cost_more(classes, log, n_touched) if whole else FAR
        if delta < plan.max_increase or delta < -1e-9:
            if run.verify:
                for t in range(n_touched, log.n[1]):
                    classes.side[log.touched[t]] = LOCKED
                log.ends[n_proposals, 0], log.ends[n_proposals, 1] = log.n[0], log.n[1]
                n_proposals += 1
                continue
        else:
            undo(atoms, classes, log, n_log, n_touched, log.n[0], log.n[1])
        _free_touched(classes, log, n_touched)
        log.n[0], log.n[1] = n_log, n_touched
    return n_steps, n_proposals
