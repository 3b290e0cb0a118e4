"""Cuts: each column's values are divided into pieces, the same for all records; shared by searches that choose pieces.

A piece is a set of leaves that become one released value: an interval of an ordered domain, or the leaves under a label
of a tree. Records that agree on all pieces form an equivalence class; failing classes are suppressed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.recoding import Cuts
from shoal.search.cells.classes import passing
from shoal.search.problem import Problem
from shoal.table.frequency import ClassOf, Codes, FrequencyTable, packed
from shoal.table.kernels import group
from shoal.table.values import Ids, Values, Vocabulary

Pieces = NDArray[np.int32]  # (leaves)  the piece of each leaf; any numbers that are not negative


@dataclass(frozen=True, eq=False)
class Judged:
    """The result of judging one choice of pieces."""

    codes: Codes  # (classes, columns)  pieces
    classes: FrequencyTable
    class_of: ClassOf  # (rows of the table)
    failing: NDArray[np.bool_]  # (classes)
    n_suppressed: int
    feasible: bool


def judged_classes(problem: Problem, pieces: Sequence[Pieces]) -> Judged:
    """Group the table by pieces and judge the equivalence classes."""
    codes = np.column_stack([of[problem.table.codes[:, j]] for j, of in enumerate(pieces)]).astype(np.int32)
    class_of, firsts = group(packed(codes))
    classes = problem.table.merged(class_of, len(firsts), codes[firsts])
    failing = ~passing(problem, classes)
    n_suppressed = int(classes.counts[failing].sum())
    feasible = n_suppressed <= problem.limit and not failing.all()
    if feasible and n_suppressed and problem.keep_suppressed:
        stars = classes.taken(np.flatnonzero(failing))
        stars = stars.merged(np.zeros(stars.n_classes, np.int64), 1, stars.codes[:1])
        feasible = bool(passing(problem, stars).all())
    return Judged(codes[firsts], classes, class_of, failing, n_suppressed, feasible)


def released_values(problem: Problem, pieces: Sequence[Pieces]) -> tuple[tuple[Values, ...], tuple[Ids, ...]]:
    """Return how the pieces are released: the values of each column, and the value of each leaf."""
    values, of_leaf = [], []
    for hierarchy, cells, of in zip(problem.table.hierarchies, problem.cells, pieces, strict=True):
        vocabulary = Vocabulary(hierarchy, cells)
        ids = np.empty(len(of), np.int32)
        for piece in np.unique(of):
            leaves = np.flatnonzero(of == piece).astype(np.int32)
            ids[leaves] = vocabulary.of(leaves)
        values.append(vocabulary.values)
        of_leaf.append(ids)
    return tuple(values), tuple(of_leaf)


def recoding_of_cuts(
    problem: Problem,
    pieces: Sequence[Pieces],
    algorithm: str,
    *,
    proved: bool = False,
    claim: str = "",
    bound: float | None = None,
    n_evaluated: int = 0,
) -> Cuts:
    """Return the solution as a recoding; failing classes are suppressed. ``bound`` is in the published unit."""
    seen = judged_classes(problem, pieces)
    values, of_leaf = released_values(problem, pieces)
    codes = np.column_stack([of[problem.table.codes[:, j]] for j, of in enumerate(of_leaf)]).astype(np.int32)
    gone = np.unique(codes[seen.failing[seen.class_of]], axis=0)
    return Cuts(
        hierarchies=problem.table.hierarchies,
        values=values,
        of_leaf=of_leaf,
        suppressed=gone,
        algorithm=algorithm,
        proved=proved,
        claim=claim,
        bound=bound,
        n_evaluated=n_evaluated,
    )
