"""The join of people and records: column by column, extending only prefixes that match.

So pairs of people and records are never listed, only pairs of distinct known values and distinct released values.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.column_matching import KnownColumn
from shoal.errors import DataError
from shoal.tables.frequency import RowNumbers

BLOCK = 2**22  # pairs of beginnings extended together
LARGEST = 2**28  # pairs of kinds and tuples that fit in memory


@dataclass(frozen=True, eq=False)
class _Children:
    """The extensions of prefixes of one length: sorted by prefix, then by the next value, one entry for each."""

    starts: RowNumbers  # (beginnings + 1)
    value: RowNumbers  # (children)
    child_of: RowNumbers  # (rows)  the child that each row begins with
    keys: RowNumbers  # (children)  beginning · width + value
    width: int

    @classmethod
    def of(cls, beginning_of: RowNumbers, n_beginnings: int, values: RowNumbers, width: int) -> _Children:
        keys, child_of = np.unique(beginning_of * width + values, return_inverse=True)
        starts = np.searchsorted(keys // width, np.arange(n_beginnings + 1))
        return cls(starts, keys % width, child_of, keys, width)

    @property
    def lengths(self) -> RowNumbers:
        return np.diff(self.starts)


def fitting(kinds: RowNumbers, tuples: RowNumbers, columns: Sequence[KnownColumn]) -> tuple[RowNumbers, RowNumbers]:
    """Return all pairs of a kind and a tuple that match in every column."""
    left, right = np.zeros(len(kinds), np.int64), np.zeros(len(tuples), np.int64)
    pairs = np.zeros(1, np.int64), np.zeros(1, np.int64)
    n_left = n_right = 1
    if not len(kinds):
        return left, left
    for j in _most_selective_first(kinds, tuples, columns):
        mine = _Children.of(left, n_left, kinds[:, j], columns[j].n_kinds)
        theirs = _Children.of(right, n_right, tuples[:, j], columns[j].n_texts)
        pairs = _extended(*pairs, mine, theirs, columns[j])
        left, right, n_left, n_right = mine.child_of, theirs.child_of, len(mine.value), len(theirs.value)
    # Kinds and tuples are distinct, so the whole of each is a beginning of its own.
    return np.argsort(left)[pairs[0]], np.argsort(right)[pairs[1]]


def _most_selective_first(kinds: RowNumbers, tuples: RowNumbers, columns: Sequence[KnownColumn]) -> list[int]:
    fitting = []
    for j, column in enumerate(columns):
        mine = np.bincount(kinds[:, j], minlength=column.n_kinds)
        theirs = np.bincount(tuples[:, j], minlength=column.n_texts)
        fitting.append(float((mine[column.kinds].astype(np.float64) * theirs[column.texts]).sum()))
    return sorted(range(len(columns)), key=fitting.__getitem__)


def _extended(
    left: RowNumbers, right: RowNumbers, mine: _Children, theirs: _Children, column: KnownColumn
) -> tuple[RowNumbers, RowNumbers]:
    """Return the extensions of matching prefixes that match themselves.

    For each pair either all children of both sides are compared, or the texts that stand for a child are looked up on
    the other side, whichever is less work.
    """
    n_texts = np.bincount(column.kinds, minlength=column.n_kinds)[mine.value]
    to_look_up = np.concatenate([[0], np.cumsum(n_texts)])
    n_lookups = to_look_up[mine.starts[left + 1]] - to_look_up[mine.starts[left]]
    all_pairs = mine.lengths[left] * theirs.lengths[right]
    extended = []
    n_extended = 0
    for chosen, work, children in (
        (n_lookups < all_pairs, n_lookups, _looked_up),
        (n_lookups >= all_pairs, all_pairs, _compared),
    ):
        for rows in _pieces(np.flatnonzero(chosen), work):
            extended.append(children(left[rows], right[rows], mine, theirs, column))
            n_extended += len(extended[-1][0])
            if n_extended > LARGEST:
                raise DataError(
                    f"more than {LARGEST} pairs of different people and records match: too many to attack at once",
                    "attack with a sample of the people",
                )
    nobody = np.zeros(0, np.int64)
    return np.concatenate([nobody, *(a for a, _ in extended)]), np.concatenate([nobody, *(b for _, b in extended)])


def _pieces(rows: RowNumbers, work: RowNumbers) -> Iterator[RowNumbers]:
    """Split the rows into pieces with little work."""
    piece = np.cumsum(work[rows]) // BLOCK
    return iter(np.split(rows, np.flatnonzero(np.diff(piece)) + 1)) if len(rows) else iter(())


def _compared(
    left: RowNumbers, right: RowNumbers, mine: _Children, theirs: _Children, column: KnownColumn
) -> tuple[RowNumbers, RowNumbers]:
    n_theirs = theirs.lengths[right]
    pair, offset = _counted_out(mine.lengths[left] * n_theirs)
    a = mine.starts[left[pair]] + offset // n_theirs[pair]
    b = theirs.starts[right[pair]] + offset % n_theirs[pair]
    fits = column.stand(mine.value[a], theirs.value[b])
    return a[fits], b[fits]


def _looked_up(
    left: RowNumbers, right: RowNumbers, mine: _Children, theirs: _Children, column: KnownColumn
) -> tuple[RowNumbers, RowNumbers]:
    pair, offset = _counted_out(mine.lengths[left])
    child, other = mine.starts[left[pair]] + offset, right[pair]
    starts = np.searchsorted(column.kinds, np.arange(column.n_kinds + 1))
    row, offset = _counted_out(np.diff(starts)[mine.value[child]])
    wanted = other[row] * theirs.width + column.texts[starts[mine.value[child[row]]] + offset]
    position = np.minimum(np.searchsorted(theirs.keys, wanted), len(theirs.keys) - 1)
    fits = theirs.keys[position] == wanted
    return child[row][fits], position[fits]


def _counted_out(lengths: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
    """For runs of the given lengths, return the run of each entry and its position in the run."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
