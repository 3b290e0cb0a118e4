"""The kernel of ``local`` that preserves verdicts: records of one kind are exchanged between classes.

Both classes have as many records of each kind as before, so the verdicts on sensitive columns do not change.
"""

from __future__ import annotations

import numpy as np

from shoal.compiled.grouping import group
from shoal.compiled.jit import compiled, compiled_within
from shoal.search.cells.mondrian_kernels import Int
from shoal.search.local.kernels import (
    NOBODY,
    STARS,
    Atoms,
    BoxCodes,
    Boxes,
    Ints,
    LinkedClasses,
    attach,
    detach,
    random,
    rebox,
    widen,
    wider,
)
from shoal.tables.frequency import FrequencyTable, packed

CROWDED = 96  # atoms of a class above which it is left alone: each exchange looks at all


def kinds_of(table: FrequencyTable) -> Ints:
    """Return the kind of each row, its sensitive values: exchanging rows of one kind changes no verdict."""
    if not table.sensitive:
        return np.zeros(table.n_classes, np.int64)
    values = [histogram.values[histogram.starts[:-1]] for histogram in table.sensitive.values()]
    return group(packed(np.column_stack(values).astype(np.int32)))[0].astype(np.int64)


@compiled_within
def _replaced(
    boxes: Boxes, atoms: Atoms, classes: LinkedClasses, box: BoxCodes, c: Int, removed: Int, added: Int, max_cost: float
) -> float:
    """Return the cost per record of class c with one atom replaced; at least ``max_cost`` if it reaches that."""
    widen(boxes, box, 0, atoms.tuple_of[added], True)
    a = classes.first[c]
    while a >= 0:
        if a != removed:
            widen(boxes, box, 0, atoms.tuple_of[a], False)
        a = classes.after[a]
    return wider(boxes, box, 0, atoms.tuple_of[added], max_cost)


@compiled
def exchange(
    boxes: Boxes,
    atoms: Atoms,
    classes: LinkedClasses,
    alike: Ints,
    side: int,
    n_steps: int,
    seed: int,
    temperature: float,
) -> int:
    """Exchange a record of a class for a nearby record of the same kind in another class, ``n_steps`` times.

    ``alike`` is each atom's kind. Exchanges that cost more are accepted with a probability that grows with the
    temperature. Returns the number of exchanges.
    """
    state = np.array([seed], np.uint64)
    tuple_of, weights, starts, members, near, _floors, _kinds = atoms
    class_of, n_records, cost = classes.class_of, classes.n_records, classes.cost
    box = np.empty((1, boxes.codes.shape[1]), np.uint32)
    n = 0
    for _ in range(n_steps):
        mine = int(random(state) * tuple_of.shape[0])
        u = near[tuple_of[mine], int(random(state) * near.shape[1])]
        if u < 0:
            continue
        other = members[starts[u] + int(random(state) * (starts[u + 1] - starts[u]))]
        c, d = class_of[mine], class_of[other]
        if c == d or c <= STARS or d <= STARS or classes.side[c] != side or classes.side[d] != side:
            continue
        if classes.n_atoms[c] > CROWDED or classes.n_atoms[d] > CROWDED:
            continue
        now = n_records[c] * cost[c] + n_records[d] * cost[d]
        best_total = now + max(-1e-9, -temperature * np.log(1 - random(state)))
        best = NOBODY
        a = classes.first[c]
        while a >= 0:
            if alike[a] == alike[other] and a != mine and weights[a] == weights[other] and tuple_of[a] != u:
                cost_here = n_records[c] * _replaced(boxes, atoms, classes, box, c, a, other, best_total / n_records[c])
                if cost_here < best_total:
                    max_cost = (best_total - cost_here) / n_records[d]
                    total = cost_here + n_records[d] * _replaced(boxes, atoms, classes, box, d, other, a, max_cost)
                    if total < best_total:
                        best, best_total = a, total
            a = classes.after[a]
        if best >= 0:
            detach(atoms, classes, best)
            detach(atoms, classes, other)
            attach(atoms, classes, best, d)
            attach(atoms, classes, other, c)
            rebox(boxes, atoms, classes, c)
            rebox(boxes, atoms, classes, d)
            n += 1
    return n
