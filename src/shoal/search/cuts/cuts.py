"""Cuts: each column's values are divided into pieces, the same for all records; shared by searches that choose pieces.

A piece is a set of leaves that become one released value: an interval of an ordered domain, or the leaves under a label
of a tree. Records that agree on all pieces form an equivalence class; failing classes are suppressed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.deriving import derive, derive_in_halves, unpack
from shoal.compiled.grouping import group
from shoal.recoding import Cuts
from shoal.search.cells.classes import passing
from shoal.search.problem import Problem
from shoal.tables.frequency import Codes, FrequencyTable, packed
from shoal.tables.values import Ids, Values, Vocabulary

Pieces = NDArray[np.int32]  # (leaves)  the piece of each leaf; any numbers that are not negative

MIN_THREADED_ROWS = 1 << 18  # rows from which two threads are faster
MIN_ROWS_PER_CLASS = 16  # rows per class from which grouping the classes of two halves again costs little


@dataclass(frozen=True, eq=False)
class Judged:
    """The result of judging one choice of pieces."""

    classes: FrequencyTable  # its codes are pieces
    failing: NDArray[np.bool_]  # (classes)
    n_suppressed: int
    feasible: bool


def judged_classes(problem: Problem, pieces: Sequence[Pieces]) -> Judged:
    """Group the table by pieces and judge the equivalence classes."""
    return judged_table(problem, problem.table.recoded(_recoded(problem, pieces)))


def _recoded(problem: Problem, of_leaf: Sequence[NDArray[np.int32]]) -> Codes:
    """Return the cells of the table, given what becomes of each leaf."""
    columns = [column_values[codes] for column_values, codes in zip(of_leaf, problem.table.codes.T, strict=True)]
    return np.column_stack(columns).astype(np.int32)


def judged_table(problem: Problem, classes: FrequencyTable) -> Judged:
    """Judge equivalence classes whose codes are pieces."""
    failing = ~passing(problem, classes)
    n_suppressed = int(classes.counts[failing].sum())
    feasible = n_suppressed <= problem.limit and not failing.all()
    if feasible and n_suppressed and problem.keep_suppressed:
        stars = classes.selected(np.flatnonzero(failing))
        stars = stars.merged(np.zeros(stars.n_classes, np.int64), 1, stars.codes[:1])
        feasible = bool(passing(problem, stars).all())
    return Judged(classes, failing, n_suppressed, feasible)


class RowsToGroup:
    """The rows of a table as one word each, grouped by one choice of pieces after the other in a compiled loop.

    ``codes`` are the rows' values by any numbers, those of column j below ``sizes[j]``, as are the numbers of pieces.
    """

    def __init__(self, table: FrequencyTable, codes: NDArray[np.integer[Any]], sizes: Sequence[int]) -> None:
        self.table, self._codes = table, codes
        self._in_halves = False  # on both cores: if the last choice left few classes, the next is probably similar
        bits = [max(0, size - 1).bit_length() for size in sizes]
        self._fits = sum(bits) <= 64
        if self._fits:
            self._shifts = (np.cumsum(bits) - bits).astype(np.uint64)
            self._masks = np.array([(1 << n) - 1 for n in bits], np.uint64)
            self._keys = np.zeros(table.n_classes, np.uint64)
            for column, shift in zip(codes.T, self._shifts, strict=True):
                self._keys |= column.astype(np.uint64) << shift

    def classes(self, pieces: Sequence[Pieces]) -> FrequencyTable:
        """Return the classes of rows whose values are in the same pieces, by first appearance."""
        if not self._fits:
            codes = np.column_stack(
                [column_pieces[self._codes[:, j]] for j, column_pieces in enumerate(pieces)]
            ).astype(np.int32)
            return self.table.recoded(codes)
        table = self.table
        bare = not table.sensitive and table.entities is None and table.population is None
        starts = np.cumsum([0, *map(len, pieces)])[:-1]
        max_classes = min(
            table.n_classes, math.prod(int(np.count_nonzero(np.bincount(column_pieces))) for column_pieces in pieces)
        )
        keys, counts, class_of = (derive_in_halves if self._in_halves else derive)(
            *(self._keys, table.counts, self._shifts, self._masks, starts),
            *(np.concatenate(pieces).astype(np.uint64), max_classes, not bare),
        )
        self._in_halves = table.n_classes >= max(MIN_THREADED_ROWS, MIN_ROWS_PER_CLASS * len(counts))
        codes = unpack(keys[:, None], np.zeros(len(pieces), np.int64), self._shifts, self._masks)
        if bare:
            return replace(table, codes=codes, counts=counts)
        return table.merged(class_of, len(counts), codes)


def released_values(problem: Problem, pieces: Sequence[Pieces]) -> tuple[tuple[Values, ...], tuple[Ids, ...]]:
    """Return how the pieces are released: the values of each column, and the value of each leaf."""
    values, of_leaf = [], []
    for hierarchy, cells, column_pieces in zip(problem.table.hierarchies, problem.cells, pieces, strict=True):
        vocabulary = Vocabulary(hierarchy, cells)
        ids = np.empty(len(column_pieces), np.int32)
        for piece in np.unique(column_pieces):
            leaves = np.flatnonzero(column_pieces == piece).astype(np.int32)
            ids[leaves] = vocabulary.number_of(leaves)
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
    codes = _recoded(problem, pieces)
    class_of, firsts = group(packed(codes))
    judged_classes = judged_table(problem, problem.table.merged(class_of, len(firsts), codes[firsts]))
    values, of_leaf = released_values(problem, pieces)
    suppressed_codes = np.unique(_recoded(problem, of_leaf)[judged_classes.failing[class_of]], axis=0)
    return Cuts(
        hierarchies=problem.table.hierarchies,
        values=values,
        of_leaf=of_leaf,
        suppressed=suppressed_codes,
        algorithm=algorithm,
        proved=proved,
        claim=claim,
        bound=bound,
        n_evaluated=n_evaluated,
    )
