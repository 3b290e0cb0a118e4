"""Sight: the people an intruder knows beside a release, and which of its records could be whose.

A person and a released record fit where every shared column of the record stands for the person's value. People that
no text tells apart are one *kind*, released records with the same texts one *tuple*: only these are compared, column by
column, and only under beginnings that fit already, so no pair of people and records is ever listed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.attacks.standing import Column, Rows, column_of
from shoal.errors import DataError
from shoal.linkage.distance import distance_linkage
from shoal.policy import Policy
from shoal.table import codec
from shoal.table.frequency import packed
from shoal.table.hierarchy import Label
from shoal.table.kernels import group

BLOCK = 2**22  # pairs of beginnings extended together
LARGEST = 2**28  # pairs of kinds and tuples that fit in memory


@dataclass(frozen=True, eq=False)
class Sight:
    """Who could be behind what."""

    columns: tuple[Column, ...]  # that the intruder knows
    kinds: Rows  # (kinds that are read, columns)
    kind_of: Rows  # (people)  the last kind of all, which no record fits, for who has a value that no record can have
    tuples: Rows  # (tuples, columns)  numbers of texts
    tuple_of: Rows  # (records)
    fits: csr_array  # (all kinds, tuples)  after those that are read come those that were found by distance
    persons: Rows | None = None  # (records)  whose each record is, where a person may have several
    owner: Rows | None = None  # (people)  the record that is really theirs, -1 for none; None where nobody knows
    present: NDArray[np.bool_] | None = None  # (people)  who can be in the release at all; None for everybody

    @property
    def n_people(self) -> int:
        """How many the intruder knows."""
        return len(self.kind_of)

    @property
    def n_records(self) -> int:
        """How many were released."""
        return len(self.tuple_of)

    @cached_property
    def counts(self) -> Rows:
        """Records of each tuple."""
        return np.bincount(self.tuple_of, minlength=len(self.tuples)).astype(np.int64)

    @cached_property
    def candidates(self) -> Rows:
        """Per kind, the records that fit."""
        return np.asarray(self.fits @ self.counts, np.int64)

    @cached_property
    def crowd(self) -> Rows:
        """Per kind, the persons whose records fit: those of one person are no crowd."""
        if self.persons is None:
            return self.candidates
        return self._distinct(self.persons)

    @cached_property
    def k(self) -> int:
        """Records (persons) of the smallest class over the columns that the intruder knows."""
        if self.persons is None:
            return int(self.counts.min())
        return int(np.bincount(_unique_pairs(self.tuple_of, self.persons)[0]).min())

    def _distinct(self, of_record: Rows) -> Rows:
        within, whose = _unique_pairs(self.tuple_of, of_record)
        shape = (len(self.tuples), int(of_record.max()) + 1)
        found = self.fits @ csr_array((np.ones(len(within), np.int64), (within, whose)), shape=shape)
        return np.asarray(np.diff(found.indptr), np.int64)

    @cached_property
    def unmatched(self) -> int:
        """People whom no record fits."""
        return int((self.candidates[self.kind_of] == 0).sum())

    @cached_property
    def fits_own(self) -> NDArray[np.bool_]:
        """Per person, whether the record that is theirs may be among those that fit, as far as anybody knows."""
        out = np.ones(self.n_people, np.bool_) if self.present is None else self.present.copy()
        if self.owner is not None:
            out &= self.owner >= 0
            there = np.flatnonzero(out)
            out[there] = self.fit(there, self.owner[there])
        return out

    def fit(self, people: Rows, records: Rows) -> NDArray[np.bool_]:
        """Whether each record could be that of the person beside it."""
        asked = self.kind_of[people] * len(self.tuples) + self.tuple_of[records]
        keys = self._keys
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return keys[place] == asked if len(keys) else np.zeros(len(asked), np.bool_)

    @cached_property
    def _keys(self) -> Rows:
        """One number for each pair of a kind and a tuple that fit, ascending."""
        kinds = np.repeat(np.arange(self.fits.shape[0]), np.diff(self.fits.indptr))
        return np.sort(kinds * len(self.tuples) + self.fits.indices)

    def with_nearest(
        self, people: pa.Table, release: pa.Table, policy: Policy | None, ground: pa.Table | None
    ) -> Sight:
        """Whom no record fits is taken to be behind the nearest one, and those that look the same.

        That is how a release is attacked whose values were changed rather than made coarser.
        """
        lost = np.flatnonzero(self.candidates[self.kind_of] == 0)
        if not len(lost):
            return self
        on = [column.name for column in self.columns]
        found = distance_linkage(people.take(pa.array(lost)), release, on=on, policy=policy, original=ground)
        tuples, kinds = np.unique(self.tuple_of[found.rows], return_inverse=True)
        n_kinds, n_tuples = self.fits.shape
        more = csr_array(
            (np.ones(len(tuples), np.int64), (np.arange(len(tuples)), tuples)), shape=(len(tuples) + 1, n_tuples)
        )
        kind_of = self.kind_of.copy()
        kind_of[lost] = n_kinds - 1 + kinds
        return replace(self, fits=vstack([self.fits[: n_kinds - 1], more]).tocsr(), kind_of=kind_of)


@dataclass(frozen=True, eq=False)
class Secret:
    """A sensitive column as the intruder sees it, and what the people really have."""

    sight: Sight
    column: str
    values: tuple[Label, ...]  # of the release; a null is the last
    of_record: Rows  # (records)
    of_tuple: csr_array  # (tuples, values)  records
    shown: csr_array  # (kinds + 1, values)  records that fit and have the value
    truth: Rows  # (people)  -1 for a value that the release does not have

    @cached_property
    def whole(self) -> Rows:
        """Records with each value."""
        return np.bincount(self.of_record, minlength=len(self.values)).astype(np.int64)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The distribution in the whole release."""
        return np.asarray(self.whole / self.whole.sum())

    @cached_property
    def distinct(self) -> Rows:
        """Per kind, how many values its candidates have."""
        return np.asarray(np.diff(self.shown.indptr), np.int64)

    @cached_property
    def diversity(self) -> int:
        """The distinct ℓ of the release over the columns that the intruder knows."""
        return int(np.diff(self.of_tuple.indptr).min())

    def best(self, score: NDArray[np.float64], matrix: csr_array | None = None) -> Rows:
        """Per kind the value whose entry of ``shown`` has the greatest score; -1 for a kind without candidates."""
        table = self.shown if matrix is None else matrix
        starts, ends = table.indptr[:-1], table.indptr[1:]
        rows = np.repeat(np.arange(len(starts)), ends - starts)
        order = np.lexsort((table.indices, -score, rows))  # the first of a row: greatest score, then least value
        out = np.full(len(starts), -1, np.int64)
        there = ends > starts
        out[there] = table.indices[order][starts[there]]
        return out

    def share_of_truth(self, of_kind: csr_array) -> NDArray[np.float64]:
        """The entry of a (kinds, values) matrix for each person's kind and true value."""
        return entries(of_kind, self.sight.kind_of, self.truth)


def entries(matrix: csr_array, rows: Rows, columns: Rows) -> NDArray[np.float64]:
    """Single entries of a sparse matrix, 0 where it has none or the column is -1."""
    n = matrix.shape[1]
    of_row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    own, asked = of_row * n + matrix.indices, rows * n + columns
    if not len(own):
        return np.zeros(len(asked))
    order = np.argsort(own)
    place = np.minimum(np.searchsorted(own, asked, sorter=order), len(own) - 1)
    found = order[place]
    return np.where((own[found] == asked) & (columns >= 0), matrix.data[found], 0).astype(np.float64)


def sight(
    people: pa.Table,
    release: pa.Table,
    on: Sequence[str],
    *,
    ground: pa.Table | None = None,
    policy: Policy | None = None,
    persons: Rows | None = None,
    owner: Rows | None = None,
    present: NDArray[np.bool_] | None = None,
) -> Sight:
    """Lay people beside records, compared in the columns ``on``; ``ground`` is the original, if there is one."""
    wildcard = policy is not None and policy.release.nulls == "wildcard"
    columns, kinds, texts = [], [], []
    for name in on:
        known, released = codec.texts(name, people[name]), codec.texts(name, release[name])
        original = codec.texts(name, ground[name]) if ground is not None and name in ground.column_names else None
        column = column_of(name, known, released, original, policy, wildcard=wildcard)
        columns.append(column)
        kinds.append(column.kind_of[known.codes])  # a null, -1, takes the last place
        texts.append(np.where(released.codes < 0, column.n_texts - 1, released.codes).astype(np.int64))
    of_person, of_record = np.column_stack(kinds), np.column_stack(texts)
    possible = (of_person >= 0).all(axis=1)
    kind_of_possible, distinct_kinds = _distinct_rows(of_person[possible])
    kind_of = np.full(people.num_rows, len(distinct_kinds), np.int64)
    kind_of[possible] = kind_of_possible
    tuple_of, tuples = _distinct_rows(of_record)
    rows, places = _fitting(distinct_kinds, tuples, columns)
    shape = (len(distinct_kinds) + 1, len(tuples))
    fits = csr_array((np.ones(len(rows), np.int64), (rows, places)), shape=shape)
    return Sight(tuple(columns), distinct_kinds, kind_of, tuples, tuple_of, fits, persons, owner, present)


def secret(seen: Sight, name: str, release: pa.Table, truth: pa.Table) -> Secret:
    """The sensitive column ``name`` of a release, with its true values for the people in sight."""
    released, real = codec.texts(name, release[name]), codec.texts(name, truth[name])
    null = len(released.texts)
    place = {text: i for i, text in enumerate(released.texts)}
    if place and real.texts and not place.keys() & set(real.texts):
        raise DataError(
            f"column {name!r}: none of its {len(released.texts)} released values occurs in the original",
            "an attack compares values as texts: write them alike in both tables",
        )
    of_record = np.where(released.codes < 0, null, released.codes).astype(np.int64)
    numbers = np.array([*(place.get(text, -1) for text in real.texts), null], np.int64)
    shape = (len(seen.tuples), null + 1)
    of_tuple = csr_array((np.ones(len(of_record), np.int64), (seen.tuple_of, of_record)), shape=shape)
    of_tuple.sum_duplicates()
    shown = (seen.fits @ of_tuple).tocsr()
    return Secret(seen, name, (*released.texts, None), of_record, of_tuple, shown, numbers[real.codes])


def _distinct_rows(codes: Rows) -> tuple[Rows, Rows]:
    """The number of each row among the distinct ones, and these."""
    if not len(codes):
        return np.zeros(0, np.int64), codes
    number, firsts = group(packed(codes.astype(np.int32)))
    return number.astype(np.int64), codes[firsts]


def _unique_pairs(left: Rows, right: Rows) -> tuple[Rows, Rows]:
    found = np.unique(np.column_stack([left, right]), axis=0)
    return found[:, 0], found[:, 1]


# ── The join ────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _Children:
    """How beginnings of one length go on: sorted by beginning, then by the next value, one entry for each."""

    starts: Rows  # (beginnings + 1)
    value: Rows  # (children)
    child_of: Rows  # (rows)  the child that each row begins with
    keys: Rows  # (children)  beginning · width + value
    width: int

    @classmethod
    def of(cls, beginning_of: Rows, n_beginnings: int, values: Rows, width: int) -> _Children:
        keys, child_of = np.unique(beginning_of * width + values, return_inverse=True)
        starts = np.searchsorted(keys // width, np.arange(n_beginnings + 1))
        return cls(starts, keys % width, child_of, keys, width)

    @property
    def lengths(self) -> Rows:
        return np.diff(self.starts)


def _fitting(kinds: Rows, tuples: Rows, columns: Sequence[Column]) -> tuple[Rows, Rows]:
    """All pairs of a kind and a tuple that fit in every column."""
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


def _most_selective_first(kinds: Rows, tuples: Rows, columns: Sequence[Column]) -> list[int]:
    fitting = []
    for j, column in enumerate(columns):
        mine = np.bincount(kinds[:, j], minlength=column.n_kinds)
        theirs = np.bincount(tuples[:, j], minlength=column.n_texts)
        fitting.append(float((mine[column.kinds].astype(np.float64) * theirs[column.texts]).sum()))
    return sorted(range(len(columns)), key=fitting.__getitem__)


def _extended(left: Rows, right: Rows, mine: _Children, theirs: _Children, column: Column) -> tuple[Rows, Rows]:
    """The children of beginnings that fit which fit themselves.

    For each pair either all children of both sides are compared, or the texts that stand for a child are looked up on
    the other side, whichever is less work.
    """
    n_texts = np.bincount(column.kinds, minlength=column.n_kinds)[mine.value]
    to_look_up = np.concatenate([[0], np.cumsum(n_texts)])
    few = to_look_up[mine.starts[left + 1]] - to_look_up[mine.starts[left]]
    all_pairs = mine.lengths[left] * theirs.lengths[right]
    found = []
    n_found = 0
    for chosen, work, children in (
        (few < all_pairs, few, _looked_up),
        (few >= all_pairs, all_pairs, _compared),
    ):
        for rows in _pieces(np.flatnonzero(chosen), work):
            found.append(children(left[rows], right[rows], mine, theirs, column))
            n_found += len(found[-1][0])
            if n_found > LARGEST:
                raise DataError(
                    f"more than {LARGEST} pairs of different people and records fit: too many to attack at once",
                    "attack with a sample of the people",
                )
    nobody = np.zeros(0, np.int64)
    return np.concatenate([nobody, *(a for a, _ in found)]), np.concatenate([nobody, *(b for _, b in found)])


def _pieces(rows: Rows, work: Rows) -> Iterator[Rows]:
    """The rows in pieces of little work."""
    piece = np.cumsum(work[rows]) // BLOCK
    return iter(np.split(rows, np.flatnonzero(np.diff(piece)) + 1)) if len(rows) else iter(())


def _compared(left: Rows, right: Rows, mine: _Children, theirs: _Children, column: Column) -> tuple[Rows, Rows]:
    n_theirs = theirs.lengths[right]
    pair, within = _counted_out(mine.lengths[left] * n_theirs)
    a = mine.starts[left[pair]] + within // n_theirs[pair]
    b = theirs.starts[right[pair]] + within % n_theirs[pair]
    fits = column.stand(mine.value[a], theirs.value[b])
    return a[fits], b[fits]


def _looked_up(left: Rows, right: Rows, mine: _Children, theirs: _Children, column: Column) -> tuple[Rows, Rows]:
    pair, within = _counted_out(mine.lengths[left])
    child, other = mine.starts[left[pair]] + within, right[pair]
    starts = np.searchsorted(column.kinds, np.arange(column.n_kinds + 1))
    row, within = _counted_out(np.diff(starts)[mine.value[child]])
    asked = other[row] * theirs.width + column.texts[starts[mine.value[child[row]]] + within]
    place = np.minimum(np.searchsorted(theirs.keys, asked), len(theirs.keys) - 1)
    fits = theirs.keys[place] == asked
    return child[row][fits], place[fits]


def _counted_out(lengths: Rows) -> tuple[Rows, Rows]:
    """For runs of the given lengths, the run of each entry and its place in the run."""
    run = np.repeat(np.arange(len(lengths)), lengths)
    return run, np.arange(len(run)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
