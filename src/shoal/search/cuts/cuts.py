"""Cuts: each column's values are divided into pieces, the same for all records; shared by searches that choose pieces.

A piece is a set of leaves that become one released value: an interval of an ordered domain, or the leaves under a label
of a tree. Records that agree on all pieces form an equivalence class; failing classes are suppressed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.recoding import Cuts
from shoal.search.cells.classes import passing
from shoal.search.problem import Problem
from shoal.table.frequency import ClassOf, Codes, FrequencyTable, packed
from shoal.table.kernels import derive, group, unpack
from shoal.table.values import Ids, Values, Vocabulary

Pieces = NDArray[np.int32]  # (leaves)  the piece of each leaf; any numbers that are not negative


@dataclass(frozen=True, eq=False)
class Judged:
    """The result of judging one choice of pieces."""

    codes: Codes  # (classes, columns)  pieces
    classes: FrequencyTable
    class_of: ClassOf  # (rows of the table)  or empty, if nobody asked for it
    failing: NDArray[np.bool_]  # (classes)
    n_suppressed: int
    feasible: bool


def judged_classes(problem: Problem, pieces: Sequence[Pieces]) -> Judged:
    """Group the table by pieces and judge the equivalence classes."""
    codes = np.column_stack([of[problem.table.codes[:, j]] for j, of in enumerate(pieces)]).astype(np.int32)
    class_of, firsts = group(packed(codes))
    return _judged(problem, problem.table.merged(class_of, len(firsts), codes[firsts]), class_of)


def _judged(problem: Problem, classes: FrequencyTable, class_of: ClassOf) -> Judged:
    failing = ~passing(problem, classes)
    n_suppressed = int(classes.counts[failing].sum())
    feasible = n_suppressed <= problem.limit and not failing.all()
    if feasible and n_suppressed and problem.keep_suppressed:
        stars = classes.taken(np.flatnonzero(failing))
        stars = stars.merged(np.zeros(stars.n_classes, np.int64), 1, stars.codes[:1])
        feasible = bool(passing(problem, stars).all())
    return Judged(classes.codes, classes, class_of, failing, n_suppressed, feasible)


class RowsToGroup:
    """The rows of a table as one word each, to be grouped by many choices of pieces with numbers below ``n_pieces``.

    Rows are recoded and counted in one compiled loop, without a look at what the models do not ask for.
    """

    def __init__(self, problem: Problem, n_pieces: Sequence[int]) -> None:
        self.problem = problem
        table = problem.table
        numbers = [max(n, len(h.leaves)) for n, h in zip(n_pieces, table.hierarchies, strict=True)]
        bits = [(n - 1).bit_length() for n in numbers]
        self._fits = sum(bits) <= 64
        self._bare = not table.sensitive and table.entities is None and table.population is None
        if self._fits:
            self._shifts = (np.cumsum(bits) - bits).astype(np.uint64)
            self._masks = np.array([(1 << n) - 1 for n in bits], np.uint64)
            self._starts = np.cumsum([0, *(len(h.leaves) for h in table.hierarchies)])[:-1]
            self._keys = np.zeros(table.n_classes, np.uint64)
            for codes, shift in zip(table.codes.T, self._shifts, strict=True):
                self._keys |= codes.astype(np.uint64) << shift

    def judged(self, pieces: Sequence[Pieces]) -> Judged:
        """Return the same as ``judged_classes``; without the class of each row if nothing is counted but records."""
        if not self._fits:
            return judged_classes(self.problem, pieces)
        table = self.problem.table
        most = min(table.n_classes, math.prod(int(np.count_nonzero(np.bincount(of))) for of in pieces))
        keys, counts, class_of = derive(
            *(self._keys, table.counts, self._shifts, self._masks, self._starts),
            *(np.concatenate(pieces).astype(np.uint64), most, not self._bare),
        )
        codes = unpack(keys[:, None], np.zeros(len(pieces), np.int64), self._shifts, self._masks)
        if self._bare:
            return _judged(self.problem, replace(table, codes=codes, counts=counts), class_of)
        return _judged(self.problem, table.merged(class_of, len(counts), codes), class_of)


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
