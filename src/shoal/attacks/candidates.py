"""Candidates: the people an intruder knows, the released records, and which record could belong to whom.

A person and a released record match if every shared column of the record covers the person's value. People who match
the same texts are one *kind*, released records with the same texts one *tuple*: only these are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from shoal.attacks.column_matching import KnownColumn, read_known_column
from shoal.attacks.intruders import Choice, choices, extents
from shoal.attacks.join import fitting
from shoal.attacks.read_cache import encoded_once
from shoal.attacks.values import values_of
from shoal.compiled.grouping import group
from shoal.errors import DataError
from shoal.hierarchies.hierarchy import Label
from shoal.notation import codec
from shoal.notation.forms import decimal_mark, read_number
from shoal.policy import Policy
from shoal.tables.frequency import RowNumbers, packed

if TYPE_CHECKING:
    from shoal.linkage.measure import ScaledBy

Score = TypeVar("Score")

BLOCK = 2**24  # records that fit, listed together


@dataclass(frozen=True, eq=False)
class CandidateView:
    """Which people match which records, as an intruder sees the release."""

    columns: tuple[KnownColumn, ...]  # that the intruder knows
    kinds: RowNumbers  # (kinds that are read, columns)
    kind_of: RowNumbers  # (people)  the last kind, which matches no record, if a value occurs in none
    tuples: RowNumbers  # (tuples, columns)  numbers of texts
    tuple_of: RowNumbers  # (records)
    fits: csr_array  # (all kinds, tuples)  first the kinds that are read, then those found by distance
    persons: RowNumbers | None = None  # (records)  the person, if one may have several records
    owner: RowNumbers | None = None  # (people)  their own record, -1 for none; None if unknown
    present: NDArray[np.bool_] | None = None  # (people)  whether they can be in the release; None: all
    domain: Callable[[], tuple[KnownColumn, ...]] | None = (
        None  # the columns read for all values; None: for those known
    )
    says: tuple[RowNumbers, RowNumbers] | None = (
        None  # (people), (records)  a number for the other shared columns; -1: none
    )
    absent: int = 0  # the number of people who cannot be in the release; 0 if the owners are known
    changed: bool = False  # whether values were changed, so that the own record may not match

    @property
    def n_people(self) -> int:
        """The number of people the intruder knows."""
        return len(self.kind_of)

    @property
    def n_records(self) -> int:
        """The number of released records."""
        return len(self.tuple_of)

    @cached_property
    def counts(self) -> RowNumbers:
        """The number of records of each tuple."""
        return np.bincount(self.tuple_of, minlength=len(self.tuples)).astype(np.int64)

    @cached_property
    def candidates(self) -> RowNumbers:
        """Per kind, the number of matching records."""
        return np.asarray(self.fits @ self.counts, np.int64)

    @cached_property
    def crowd(self) -> RowNumbers:
        """Per kind, the number of people whose records match: several records of one person count once."""
        if self.persons is None:
            return self.candidates
        return self._distinct(self.persons)

    @cached_property
    def k(self) -> int:
        """The number of records (people) in the smallest class over the columns that the intruder knows."""
        if self.persons is None:
            return int(self.counts.min())
        return int(np.bincount(_unique_pairs(self.tuple_of, self.persons)[0]).min())

    def _distinct(self, of_record: RowNumbers) -> RowNumbers:
        tuple_of, owner = _unique_pairs(self.tuple_of, of_record)
        shape = (len(self.tuples), int(of_record.max()) + 1)
        owners_of_kind = self.fits @ csr_array((np.ones(len(tuple_of), np.int64), (tuple_of, owner)), shape=shape)
        return np.asarray(np.diff(owners_of_kind.indptr), np.int64)

    @cached_property
    def extents(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Per tuple, the logarithms of the number of combinations it covers and of the share of people with one."""
        return extents(self.columns if self.domain is None else self.domain(), self.tuples, self.counts)

    @cached_property
    def choices(self) -> list[Choice]:
        """The strategies of different intruders for choosing among matching records; the first chooses at random."""
        if (np.diff(self.fits.indptr) <= 1).all():
            nothing = np.zeros(len(self.tuples))
            return choices(self.fits, self.counts, nothing, nothing)
        return choices(self.fits, self.counts, *self.extents)

    def by(self, choice: Choice) -> CandidateView:
        """Return the matching records that remain after an intruder's choice."""
        if choice.picks is self.fits:
            return self
        if choice.name not in self._chosen:
            self._chosen[choice.name] = replace(self, fits=choice.picks)
        return self._chosen[choice.name]

    @cached_property
    def _chosen(self) -> dict[str, CandidateView]:
        return {}

    @cached_property
    def class_of(self) -> RowNumbers:
        """Per person, the class of the first matching record: people of one class succeed or fail together."""
        first = np.full(self.fits.shape[0], -1, np.int64)
        matched = np.diff(self.fits.indptr) > 0
        first[matched] = self.fits.indices[self.fits.indptr[:-1][matched]]
        out = first[self.kind_of]
        return np.where(out >= 0, out, len(self.tuples) + np.arange(self.n_people))

    @cached_property
    def ties(self) -> RowNumbers:
        """Per person, that class and, if known, the class of the person's own record."""
        if self.owner is None:
            return self.class_of
        own_class = np.where(self.owner >= 0, self.tuple_of[self.owner], self.class_of)
        return np.column_stack([self.class_of, own_class])

    @cached_property
    def unmatched(self) -> int:
        """The number of people who match no record."""
        return int((self.candidates[self.kind_of] == 0).sum())

    def own_among(self, picks: CandidateView) -> OwnMatch:
        """Return whether a person's own record is among those picked: as far as known, and the possible range.

        If the owners are unknown, the own record is one that matches and agrees in the other columns, with the odds of
        the most likely intruder. It may be any of these, or none of them if values were changed.
        """
        if self.owner is not None:
            certain_match = picks.fits_own.astype(np.float64)
            return OwnMatch(certain_match, certain_match, certain_match)
        possible = np.ones(self.n_people, np.bool_) if self.present is None else self.present
        possible = possible & (picks.candidates[self.kind_of] > 0)
        lowest = np.zeros(self.n_people) if self.changed else possible.astype(np.float64)
        if picks is self:
            return OwnMatch(possible.astype(np.float64), lowest, possible.astype(np.float64))
        masses = self.extents[1]
        weight = np.exp(masses.min(initial=0.0) - masses)
        total, picked = self._own_weight(self.fits, weight), self._own_weight(picks.fits, weight)
        if self.says is not None and (total == 0).any():  # the other columns were changed, so they tell nothing
            silent = replace(self, says=None)
            picked = np.where(total > 0, picked, silent._own_weight(picks.fits, weight))
            total = np.where(total > 0, total, silent._own_weight(self.fits, weight))
        share = np.where(total > 0, picked / np.where(total > 0, total, 1.0), 0.0)
        certain = (total > 0) & (picked >= total * (1 - 1e-9))
        return OwnMatch(share * possible, np.where(certain, lowest, 0.0), np.where(picked > 0, possible, 0.0))

    def _own_weight(self, fits: csr_array, weight: NDArray[np.float64]) -> NDArray[np.float64]:
        """Per person, the weight of all matching records with the same sensitive values as the person."""
        if self.says is None:
            return np.asarray(fits @ (self.counts * weight))[self.kind_of]
        theirs, of_record = self.says
        shape = (len(self.tuples), int(of_record.max(initial=0)) + 1)
        saying = csr_array((weight[self.tuple_of], (self.tuple_of, of_record)), shape=shape)
        saying.sum_duplicates()
        out = np.zeros(self.n_people)
        # In blocks of kinds: their records have many different values.
        expanded = np.asarray(fits @ np.diff(saying.indptr))
        used_kinds = np.unique(self.kind_of)
        block_of = np.zeros(fits.shape[0], np.int64)
        block_of[used_kinds] = np.cumsum(expanded[used_kinds]) // BLOCK
        order = np.argsort(block_of[self.kind_of], kind="stable")
        for people in np.split(order, np.flatnonzero(np.diff(block_of[self.kind_of][order])) + 1):
            kinds, row = np.unique(self.kind_of[people], return_inverse=True)
            out[people] = entries((fits[kinds] @ saying).tocsr(), row, theirs[people])
        return out

    @cached_property
    def fits_own(self) -> NDArray[np.bool_]:
        """Per person, whether the person's own record may be among the matching ones, as far as is known."""
        out = np.ones(self.n_people, np.bool_) if self.present is None else self.present.copy()
        if self.owner is not None:
            out &= self.owner >= 0
            present = np.flatnonzero(out)
            out[present] = self.fit(present, self.owner[present])
        return out

    def fit(self, people: RowNumbers, records: RowNumbers) -> NDArray[np.bool_]:
        """Return whether each record could belong to the given person."""
        wanted = self.kind_of[people] * len(self.tuples) + self.tuple_of[records]
        keys = self._keys
        position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return keys[position] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)

    @cached_property
    def _keys(self) -> RowNumbers:
        """Return one number for each matching pair of a kind and a tuple, ascending."""
        kinds = np.repeat(np.arange(self.fits.shape[0]), np.diff(self.fits.indptr))
        return np.sort(kinds * len(self.tuples) + self.fits.indices)

    def with_nearest(
        self, people: pa.Table, release: pa.Table, policy: Policy | None, ground: pa.Table | None
    ) -> CandidateView:
        """Assign people who match no record to the nearest record and those equal to it.

        For releases whose values were perturbed instead of generalized.
        """
        lost = np.flatnonzero(self.candidates[self.kind_of] == 0)
        if not len(lost):
            return self
        from shoal.linkage.distance import distance_linkage  # SciPy's trees and solvers: a sixth of a second to import

        on = [column.name for column in self.columns]
        numeric = (
            [name for name in on if _numbers(people, name) and _numbers(release, name)] if policy is None else None
        )
        unmatched = people.take(pa.array(lost))
        # Slightly changed numbers are compared as they are; numbers in other units, on their own scale.
        scale: ScaledBy = "original" if all(_same_units(people, release, name) for name in on) else "own"
        linkage = distance_linkage(
            unmatched, release, on=on, numeric=numeric, scale=scale, policy=policy, original=ground
        )
        tuples, kinds = np.unique(self.tuple_of[linkage.rows], return_inverse=True)
        n_kinds, n_tuples = self.fits.shape
        nearest = csr_array(
            (np.ones(len(tuples), np.int64), (np.arange(len(tuples)), tuples)), shape=(len(tuples) + 1, n_tuples)
        )
        kind_of = self.kind_of.copy()
        kind_of[lost] = n_kinds - 1 + kinds
        fits = vstack([self.fits[: n_kinds - 1], nearest]).tocsr()
        return replace(self, fits=fits, kind_of=kind_of, changed=True)


class OwnMatch(NamedTuple):
    """Per person, whether the own record is among some records: estimated, at least and at most."""

    estimate: NDArray[np.float64]
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Secret:
    """A sensitive column as the intruder sees it, and the true values of the people."""

    view: CandidateView
    column: str
    values: tuple[Label, ...]  # of the release; a null is the last
    of_record: RowNumbers  # (records)
    of_tuple: csr_array  # (tuples, values)  records
    matching: csr_array  # (kinds + 1, values)  records that fit and have the value
    truth: RowNumbers  # (people)  -1 for a value that the release does not have
    unread_share: float = 0.0  # of the released cells, those that cannot be interpreted

    @cached_property
    def whole(self) -> RowNumbers:
        """The number of records with each value."""
        return np.bincount(self.of_record, minlength=len(self.values)).astype(np.int64)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The distribution in the whole release."""
        return np.asarray(self.whole / self.whole.sum())

    @cached_property
    def distinct(self) -> RowNumbers:
        """Per kind, the number of distinct values among its candidates."""
        return np.asarray(np.diff(self.matching.indptr), np.int64)

    @cached_property
    def diversity(self) -> int:
        """The distinct ℓ of the release over the columns that the intruder knows."""
        return int(np.diff(self.of_tuple.indptr).min())

    def by(self, choice: Choice, *, weighed: bool = False) -> Secret:
        """Return the values that remain after an intruder's choice; ``weighed`` weighs all matches by likelihood."""
        if choice.picks is self.view.fits:
            return self
        key = choice.name, weighed and choice.weights is not choice.picks
        if key not in self._chosen:
            chosen = choice.weights if weighed else choice.picks
            matching = (chosen @ self.of_tuple).tocsr().sorted_indices()
            self._chosen[key] = replace(self, view=self.view.by(choice), matching=matching)
        return self._chosen[key]

    def scored_by_choice(self, score: Callable[[Secret], Score]) -> dict[str, Score]:
        """Score the values that remain after each choice of an intruder, with all matches weighed by likelihood."""
        return {choice.name: score(self.by(choice, weighed=True)) for choice in self.view.choices}

    @cached_property
    def _chosen(self) -> dict[tuple[str, bool], Secret]:
        return {}

    def best(self, score: NDArray[np.float64], matrix: csr_array | None = None) -> RowNumbers:
        """Per kind, the value of ``shown`` with the highest score; -1 for a kind without candidates."""
        table = self.matching if matrix is None else matrix
        starts, ends = table.indptr[:-1], table.indptr[1:]
        out = np.full(len(starts), -1, np.int64)
        matched = ends > starts
        if matched.any():
            greatest = np.repeat(np.maximum.reduceat(score, starts[matched]), (ends - starts)[matched])
            values = np.where(score == greatest, table.indices, table.shape[1])
            out[matched] = np.minimum.reduceat(values, starts[matched])  # of equal ones the first
        return out

    def share_of_truth(self, of_kind: csr_array) -> NDArray[np.float64]:
        """Return the entry of a (kinds, values) matrix for each person's kind and true value."""
        return entries(of_kind, self.view.kind_of, self.truth)


def entries(matrix: csr_array, rows: RowNumbers, columns: RowNumbers) -> NDArray[np.float64]:
    """Return single entries of a sparse matrix; 0 if there is none or the column is -1."""
    n = matrix.shape[1]
    ordered = matrix if matrix.has_sorted_indices else matrix.sorted_indices()
    of_row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keys, wanted = of_row * n + ordered.indices, rows * n + columns
    if not len(keys):
        return np.zeros(len(wanted))
    position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((keys[position] == wanted) & (columns >= 0), ordered.data[position], 0).astype(np.float64)


def candidate_view(
    people: pa.Table,
    release: pa.Table,
    on: Sequence[str],
    *,
    ground: pa.Table | None = None,
    policy: Policy | None = None,
    persons: RowNumbers | None = None,
    owner: RowNumbers | None = None,
    present: NDArray[np.bool_] | None = None,
    says: tuple[RowNumbers, RowNumbers] | None = None,
    absent: int = 0,
) -> CandidateView:
    """Compare people with records in the columns ``on``; ``ground`` is the original, if there is one."""
    wildcard = policy is not None and policy.release.nulls == "wildcard"
    columns, kinds, texts, wider = [], [], [], []
    for name in on:
        of_people, released = encoded_once(name, people[name]), encoded_once(name, release[name])
        original = encoded_once(name, ground[name]) if ground is not None and name in ground.column_names else None
        column = read_known_column(name, of_people, released, original, policy, wildcard=wildcard)
        domain = partial(read_known_column, name, original or of_people, released, original, policy, wildcard=wildcard)
        wider.append(domain if original is not None and people is not ground else None)
        columns.append(column)
        kinds.append(column.kind_of[of_people.codes])  # a null, -1, takes the last place
        texts.append(np.where(released.codes < 0, column.n_texts - 1, released.codes).astype(np.int64))
    of_person, of_record = np.column_stack(kinds), np.column_stack(texts)
    possible = (of_person >= 0).all(axis=1)
    kind_of_possible, distinct_kinds = _distinct_rows(of_person[possible])
    kind_of = np.full(people.num_rows, len(distinct_kinds), np.int64)
    kind_of[possible] = kind_of_possible
    tuple_of, tuples = _distinct_rows(of_record)
    rows, places = fitting(distinct_kinds, tuples, columns)
    shape = (len(distinct_kinds) + 1, len(tuples))
    fits = csr_array((np.ones(len(rows), np.int64), (rows, places)), shape=shape)

    def whole() -> tuple[KnownColumn, ...]:
        return tuple(column if read is None else read() for column, read in zip(columns, wider, strict=True))

    view = CandidateView(tuple(columns), distinct_kinds, kind_of, tuples, tuple_of, fits, persons, owner, present)
    return replace(view, domain=whole, says=says, absent=absent)


def secret_of(
    view: CandidateView,
    name: str,
    release: pa.Table,
    truth: pa.Table,
    *,
    ground: pa.Table | None = None,
    policy: Policy | None = None,
) -> Secret:
    """Return the sensitive column ``name`` of a release, with the true values of the people.

    ``ground`` is the original; by default the table ``truth``.
    """
    real = encoded_once(name, truth[name])
    original = real if ground is None else encoded_once(name, ground[name])
    read = values_of(name, encoded_once(name, release[name]), real, original, policy)
    n_values = len(read.texts)
    if n_values and real.texts and (read.of_person[real.codes >= 0] < 0).all():
        raise DataError(
            f"column {name!r}: none of its {n_values} released values matches a value of the original",
            "use the same notation in both tables, or describe the notation in the policy",
        )
    shape = (len(view.tuples), n_values + 1)
    of_tuple = csr_array((np.ones(len(read.of_record), np.int64), (view.tuple_of, read.of_record)), shape=shape)
    of_tuple.sum_duplicates()
    matching = (view.fits @ of_tuple).tocsr().sorted_indices()
    values = (*read.texts, None)
    return Secret(view, name, values, read.of_record, of_tuple, matching, read.of_person, read.unread_share)


def _numbers(table: pa.Table, name: str) -> list[float]:
    """Return the numbers of a column in any notation; empty if it contains anything else."""
    texts = codec.encode_texts(name, table[name]).texts
    mark = decimal_mark(texts)
    read = [x for text in texts if (x := read_number(text, mark)) is not None]
    return [float(x) for x in read] if len(read) == len(texts) else []


def _same_units(people: pa.Table, release: pa.Table, name: str) -> bool:
    """Return whether released numbers have about the range of the people's; true for other values."""
    mine, theirs = _numbers(people, name), _numbers(release, name)
    if not mine or not theirs:
        return True
    width = max(mine) - min(mine)
    return (
        min(mine) - width <= min(theirs)
        and max(theirs) <= max(mine) + width
        and (max(theirs) - min(theirs) >= width / 4)
    )


def _distinct_rows(codes: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
    """Return the index of each row among the distinct rows, and the distinct rows."""
    if not len(codes):
        return np.zeros(0, np.int64), codes
    number, firsts = group(packed(codes.astype(np.int32)))
    return number.astype(np.int64), codes[firsts]


def _unique_pairs(left: RowNumbers, right: RowNumbers) -> tuple[RowNumbers, RowNumbers]:
    pairs = np.unique(np.column_stack([left, right]), axis=0)
    return pairs[:, 0], pairs[:, 1]
