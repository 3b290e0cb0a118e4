"""Nearest records of one file in the other, exactly, on distinct tuples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from shoal.compiled.grouping import group
from shoal.linkage.kernels import EQUAL, SPAN, TABLE, Half, nearest_tuples
from shoal.linkage.measure import DistanceTerm, Equal, Spans, Table
from shoal.tables.frequency import Codes, Floats, RowNumbers, packed

# Squared distances this close, relative to 1 + the distance, are one: sums in another order differ in the last bits.
TIE = 1e-9
TREE = 6  # columns of numbers up to which a tree looks at few records; in more dimensions it looks at most of them


@dataclass(frozen=True, eq=False)
class Nearest:
    """The nearest records per record of the left file."""

    squared: Floats  # distance of the nearest records
    ties: NDArray[np.int64]  # how many records are as near
    rows: RowNumbers  # the first of them

    def holds_at(self, records: RowNumbers, squared: Floats) -> NDArray[np.bool_]:
        """Return whether records at these squared distances are among the nearest."""
        best_squared = self.squared[records]
        return squared <= best_squared + TIE * (1 + best_squared)


@dataclass(frozen=True, eq=False)
class Distinct:
    """The distinct tuples of a file."""

    codes: Codes  # (tuples, columns)
    class_of: RowNumbers  # of each record
    counts: NDArray[np.int64]
    rows: RowNumbers  # the first with the tuple

    @classmethod
    def from_codes(cls, codes: Codes) -> Distinct:
        """Count equal rows together."""
        class_of, firsts = group(packed(codes))
        return cls(codes[firsts], class_of, np.bincount(class_of, minlength=len(firsts)), firsts)


def nearest(left: Distinct, right: Distinct, terms: Sequence[DistanceTerm]) -> Nearest:
    """Return the nearest records on the right of each record on the left."""
    points = [term for term in terms if isinstance(term, Spans) and _is_plain(term, left, right)]
    tuple_matches = (
        _by_tree(left, right, points) if len(points) == len(terms) <= TREE else _by_blocks(left, right, terms)
    )
    return Nearest(
        tuple_matches.squared[left.class_of], tuple_matches.ties[left.class_of], tuple_matches.rows[left.class_of]
    )


def squared_between(terms: Sequence[DistanceTerm], left: Codes, right: Codes) -> Floats:
    """Return the squared distances of pairs of records, given row by row."""
    total = np.zeros(len(left))
    for term in terms:
        total += term.between(left[:, term.column], right[:, term.column])
    return total


def _is_plain(term: Spans, left: Distinct, right: Distinct) -> bool:
    sides = (term.left[:, left.codes[:, term.column]], term.right[:, right.codes[:, term.column]])
    return all(bool((side[0] == side[1]).all()) for side in sides)


def _by_tree(left: Distinct, right: Distinct, terms: Sequence[Spans]) -> Nearest:
    mine = np.column_stack([term.left[0, left.codes[:, term.column]] for term in terms])
    theirs = np.column_stack([term.right[0, right.codes[:, term.column]] for term in terms])
    tree = cKDTree(theirs)
    squared = tree.query(mine)[0] ** 2
    around = tree.query_ball_point(mine, np.sqrt(squared + TIE * (1 + squared)))
    ties = np.array([right.counts[near].sum() for near in around])
    return Nearest(squared, ties, np.array([right.rows[near].min() for near in around]))


def _by_blocks(left: Distinct, right: Distinct, terms: Sequence[DistanceTerm]) -> Nearest:
    ones, twos = _halves(right.codes, terms)
    first_half, second_half = (Distinct.from_codes(_own_codes(half, right.codes)) for half in (ones, twos))
    members = np.argsort(first_half.class_of, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(first_half.class_of, minlength=len(first_half.codes)))])
    left_class = Distinct.from_codes(_own_codes(ones, left.codes)).class_of
    n = len(left.codes)
    matches = Nearest(np.empty(n), np.empty(n, np.int64), np.empty(n, np.int64))
    nearest_tuples(
        np.argsort(left_class, kind="stable"),
        left_class,
        _half(ones, left.codes, right.codes[first_half.rows]),
        _half(twos, left.codes, right.codes[second_half.rows]),
        starts,
        members,
        second_half.class_of,
        len(second_half.codes),
        right.counts,
        right.rows,
        TIE,
        matches.squared,
        matches.ties,
        matches.rows,
    )
    return matches


def _own_codes(terms: Sequence[DistanceTerm], codes: Codes) -> Codes:
    """Return only the columns of these measures."""
    return np.ascontiguousarray(codes[:, sorted({term.column for term in terms})])


def _halves(codes: Codes, terms: Sequence[DistanceTerm]) -> tuple[list[DistanceTerm], list[DistanceTerm]]:
    """Split the columns into two groups with as few distinct tuples in each as possible."""
    columns = sorted({term.column for term in terms}, key=lambda j: (-len(np.unique(codes[:, j])), j))

    def n_tuples(chosen: Sequence[int]) -> int:
        return len(Distinct.from_codes(codes[:, list(chosen)]).codes)

    splits = range(1, len(columns) + 1)
    cut = min(splits, key=lambda at: n_tuples(columns[:at]) + n_tuples(columns[at:]))
    first = set(columns[:cut])
    return [term for term in terms if term.column in first], [term for term in terms if term.column not in first]


def _half(terms: Sequence[DistanceTerm], left: Codes, right: Codes) -> Half:
    """Return some columns in the layout of the kernel."""
    q = len(terms)
    kinds = np.zeros(q, np.int64)
    ends = [np.zeros((q, 2, len(side))) for side in (left, right)]
    codes = [np.zeros((q, len(side)), np.int32) for side in (left, right)]
    weights = np.zeros(q)
    offsets, widths = np.zeros(q, np.int64), np.zeros(q, np.int64)
    tables = [np.zeros(0)]
    end = 0
    for j, term in enumerate(terms):
        mine, theirs = left[:, term.column], right[:, term.column]
        if isinstance(term, Spans):
            kinds[j] = SPAN
            ends[0][j], ends[1][j] = term.left[:, mine], term.right[:, theirs]
        elif isinstance(term, Equal):
            kinds[j], weights[j] = EQUAL, term.weight
            codes[0][j], codes[1][j] = term.left[mine], term.right[theirs]
        elif isinstance(term, Table):
            kinds[j], offsets[j], widths[j] = TABLE, end, term.table.shape[1]
            codes[0][j], codes[1][j] = mine, theirs
            tables.append(term.table.ravel())
            end += term.table.size
    return (kinds, *ends, *codes, weights, offsets, widths, np.concatenate(tables))
