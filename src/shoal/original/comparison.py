"""Comparing a release with its original: (1,k), (k,1), (k,k)-anonymity, k-concealment and k-confusion.

A. Gionis, A. Mazza, T. Tassa, "k-Anonymization revisited", ICDE 2008; T. Tassa, A. Mazza, A. Gionis,
"k-Concealment: an alternative model of k-type anonymity", Transactions on Data Privacy 5(1), 2012;
K. Stokes, V. Torra, "n-confusion: a generalization of k-anonymity", PAIS 2012.

An original and a released record are *consistent* if every released cell covers the original's value. Cells
may be generalized each to a level of its own, so one text is read on every level of its column's hierarchy, and as a
range or a set where it is no label.
Needs  the original: its values make the hierarchies, and nothing else knows what a label covers.
Costs  columns × kinds of original × distinct released tuples; memory grows with the consistent pairs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.data import Data
from shoal.engines.opening import original_of, rows_of
from shoal.errors import DataError, PolicyError
from shoal.hierarchies.hierarchy import TOP, Hierarchy
from shoal.hierarchies.reader import LeavesBehind
from shoal.notation.codec import Coded
from shoal.notation.forms import DecimalMark
from shoal.policy import Policy, PolicySource, policy_of
from shoal.tables.frequency import Codes, Counts, FrequencyTable, count_records, packed

if TYPE_CHECKING:
    from scipy.sparse import csr_array

BLOCK = 2**24  # pairs prepared together: one byte each per column
CHUNK = 2**18  # pairs scored together: they fit in the processor's cache
Marks = Mapping[str, DecimalMark]
LARGEST = 2**29  # pairs that can be matched: SciPy numbers the edges of a graph, in both directions, with int32


@dataclass(frozen=True, eq=False)
class Consistency:
    """How many records each record could be confused with, as one array per figure.

    Originals that no released text distinguishes form one *kind*; so do released records with the same tuple.
    """

    originals: Counts  # (kinds)   original records of the kind
    released: Counts  # (tuples)  released records with the tuple
    candidates: Counts  # (kinds)   released records consistent with an original of the kind
    sources: Counts  # (tuples)  originals consistent with a released record with the tuple
    concealing: Counts  # (kinds)   candidates that leave every other original a candidate of its own
    ties: Counts  # (kinds)   released records that are the best match of an original of the kind
    dropped: int  # original records that are not in the release
    unknown: Mapping[str, int]  # per column, released cells that cover no value of the original

    @property
    def one_k(self) -> int:
        """The k of (1,k)-anonymity: every original is consistent with at least k released records."""
        return int(self.candidates.min())

    @property
    def k_one(self) -> int:
        """The k of (k,1)-anonymity: every released record is consistent with at least k originals."""
        return int(self.sources.min())

    @property
    def k_k(self) -> int:
        """The k of (k,k)-anonymity: the smaller of ``one_k`` and ``k_one``."""
        return min(self.one_k, self.k_one)

    @property
    def concealment(self) -> int:
        """The k of k-concealment; 0 if the release is not a generalization of the original."""
        return int(self.concealing.min())

    @property
    def confusion(self) -> int:
        """The k of k-confusion, against an intruder who picks the records with the most consistent columns."""
        return int(self.ties.min())

    def below(self, k: int) -> dict[str, int]:
        """Return how many records have less than ``k``: originals, and for ``k_one`` released records."""
        return {
            "one_k": int(self.originals[self.candidates < k].sum()),
            "k_one": int(self.released[self.sources < k].sum()),
            "concealment": int(self.originals[self.concealing < k].sum()),
            "confusion": int(self.originals[self.ties < k].sum()),
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "one_k": self.one_k,
            "k_one": self.k_one,
            "k_k": self.k_k,
            "concealment": self.concealment,
            "confusion": self.confusion,
            "originals": int(self.originals.sum()),
            "released": int(self.released.sum()),
            "dropped": self.dropped,
            "unknown": dict(self.unknown),
        }


def compare_with_original(original: Data, release: Data, policy: PolicySource) -> Consistency:
    """Compare a release with its original, record by record.

    A ``*`` covers everything. So does a released null with ``nulls = "wildcard"``; otherwise it covers a null. If the
    release has fewer records, the dropped ones count as records of stars for k-concealment, and are ignored for the
    other figures.

    Parameters
    ----------
    original
        The table that the release was made from: a path or a frame, its rows in any order.
    release
        The released table: a path or a frame, its rows in any order.
    policy
        A ``Policy``, the path of a TOML file, or a dict.

    Returns
    -------
    Consistency
        How many records of one table are consistent with each of the other: (1,k), (k,1) and k-concealment.

    Raises
    ------
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> release = shoal.anonymize(people, policy)
    >>> found = shoal.compare_with_original(people, release.table, policy)
    >>> found.one_k, found.k_one, found.concealment
    (4, 4, 4)
    """
    policy = policy_of(policy)
    if policy.release.entity is not None:
        raise PolicyError(
            f"column {policy.release.entity!r} identifies people, but this comparison counts records, and k "
            "records may belong to one person",
            "remove entity from the policy, and read the figures as counts of records",
        )
    table = original_of(original, policy).count(policy).table
    engine = rows_of(release, policy)
    if absent := [name for name in policy.quasi if name not in engine.columns]:
        raise PolicyError(f"the release has no column {', '.join(map(repr, absent))}")
    dropped = table.n_records - engine.table.num_rows
    if dropped < 0:
        raise DataError(
            f"the release has {engine.table.num_rows} records, but the original has {table.n_records}",
            "pass the table that the release was made from",
        )
    from shoal.original.concealment import concealing

    columns = read_columns(table.hierarchies, [engine.coded(h.column) for h in table.hierarchies], policy)
    tuples, _ = count_records(policy.quasi, np.column_stack([column.texts for column in columns]), {})
    kinds, originals = _kinds(table.codes, table.counts, columns)
    matches, consistent = best_matches(kinds, tuples.codes, columns)
    edges = _rows_where(consistent, matches)
    return Consistency(
        originals,
        tuples.counts,
        edges @ tuples.counts,
        edges.T @ originals,
        concealing(edges, originals, tuples.counts, dropped),
        matches @ tuples.counts,
        dropped,
        {column.name: column.n_unknown for column in columns if column.n_unknown},
    )


def people_like(
    population: FrequencyTable,
    tuples: Codes,
    released: Sequence[Coded],
    marks: Marks | None = None,
    *,
    wildcard: bool = False,
) -> tuple[Counts, int]:
    """Count the people of a population who match each released tuple, and the kinds of people who match none.

    ``tuples`` are numbers of texts as in ``released``, with the null after all others. ``marks``: the decimal marks of
    columns for which a policy names one.
    """
    columns = [
        _ReleasedTexts.of(h, coded, wildcard=wildcard, mark=(marks or {}).get(h.column))
        for h, coded in zip(population.hierarchies, released, strict=True)
    ]
    kinds, people = _kinds(population.codes, population.counts, columns)
    matches, consistent = best_matches(kinds, tuples, columns)
    return _rows_where(consistent, matches).T @ people, int((~consistent).sum())


def read_columns(hierarchies: Sequence[Hierarchy], released: Sequence[Coded], policy: Policy) -> list[_ReleasedTexts]:
    """Read released columns using the hierarchies of the original and the number format of the policy."""
    wildcard = policy.release.nulls == "wildcard"
    return [
        _ReleasedTexts.of(h, coded, wildcard=wildcard, mark=policy.marks.get(h.column))
        for h, coded in zip(hierarchies, released, strict=True)
    ]


# ── What a released text stands for ─────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, eq=False)
class _ReleasedTexts:
    """The released texts of a column, by number, and the values that each of them covers.

    Leaves that are covered by the same texts are of one kind: no reading of the release distinguishes them.
    """

    name: str
    texts: Codes  # (released records)  the null has the last number
    kind_of: Codes  # (leaves)
    labels: NDArray[np.int64]  # (kinds, most)  the texts that cover a kind; padded with n_texts
    everything: NDArray[np.int64]  # the texts that cover every value
    n_texts: int
    n_unknown: int  # released cells whose text covers nothing

    @classmethod
    def of(cls, hierarchy: Hierarchy, coded: Coded, *, wildcard: bool, mark: DecimalMark | None) -> _ReleasedTexts:
        """Read ``coded``, a released column, using the hierarchy of the original one."""
        null = len(coded.texts)
        n_texts = null + 1
        number = {text: i for i, text in enumerate((*coded.texts, None))}
        labels = np.empty((len(hierarchy.leaves), hierarchy.n_levels), np.int64)
        for level, of_level in enumerate(hierarchy.labels):
            numbers = np.array([number.get(label, n_texts) for label in of_level], np.int64)
            labels[:, level] = numbers[hierarchy.table[level]]
        unlisted, silent = _others(hierarchy, coded.texts, labels, n_texts, mark)
        labels = np.column_stack([labels, unlisted])
        kinds, kind_of = np.unique(labels, axis=0, return_inverse=True)
        everything = [number[text] for text in (TOP,) if text in number] + silent + [null] * wildcard
        number_of = np.zeros(n_texts + 1, np.bool_)
        number_of[kinds] = True
        number_of[everything] = True
        texts = np.where(coded.codes < 0, null, coded.codes).astype(np.int32)
        return cls(
            hierarchy.column,
            texts,
            kind_of.ravel().astype(np.int32),
            kinds,
            np.array(everything, np.int64),
            n_texts,
            int((~number_of[texts]).sum()),
        )

    def stand_for(self, kinds: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which texts cover each of some kinds."""
        out = np.zeros((len(kinds), self.n_texts + 1), np.bool_)
        out[np.arange(len(kinds))[:, None], self.labels[kinds]] = True
        out[:, self.everything] = True
        return out


def _others(
    hierarchy: Hierarchy, texts: Sequence[str], labels: NDArray[np.int64], n_texts: int, mark: DecimalMark | None
) -> tuple[NDArray[np.int64], list[int]]:
    """(leaves, most)  The texts that are not labels but still cover a leaf, and the texts that cover nothing."""
    covered = np.zeros(n_texts + 1, np.bool_)
    covered[labels] = True
    strange = [i for i, text in enumerate(texts) if not covered[i] and text != TOP]
    if not strange:
        return np.empty((len(labels), 0), np.int64), []
    read = LeavesBehind.read(hierarchy, [texts[i] for i in strange], freely=False, mark=mark)
    text_of = np.repeat(np.array(strange, np.int64), [len(values) for values in read.behind])
    leaf_of = np.fromiter((leaf for values in read.behind for leaf in values), np.int64, len(text_of))
    order = np.lexsort((text_of, leaf_of))
    counts = np.bincount(leaf_of, minlength=len(labels))
    position = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    out = np.full((len(labels), int(counts.max(initial=0))), n_texts, np.int64)
    out[leaf_of[order], position] = text_of[order]
    return out, [strange[i] for i in read.everything]


def _kinds(codes: Codes, counts: Counts, columns: Sequence[_ReleasedTexts]) -> tuple[Codes, Counts]:
    """Return the distinct kinds of original tuples and the number of records of each.

    After full-domain generalization there are about as many kinds as classes, far fewer than tuples.
    """
    kinds = np.column_stack([column.kind_of[codes[:, j]] for j, column in enumerate(columns)])
    class_of, firsts = group(packed(kinds))
    return kinds[firsts], sum_by_class(counts, class_of, len(firsts))


# ── Consistent pairs ────────────────────────────────────────────────────────────────────────────────────────


def consistent_pairs(kinds: Codes, tuples: Codes, columns: Sequence[_ReleasedTexts]) -> csr_array:
    """(kinds, tuples)  The released tuples that each kind is consistent with."""
    matches, consistent = best_matches(kinds, tuples, columns)
    return _rows_where(consistent, matches)


def best_matches(kinds: Codes, tuples: Codes, columns: Sequence[_ReleasedTexts]) -> tuple[csr_array, NDArray[np.bool_]]:
    """For each kind, the released tuples with the most consistent columns, and whether these are all columns."""
    matches, lengths, consistent = [], [], []
    n_found = 0
    for scores in _scores(kinds, tuples, columns):
        best = scores.max(axis=1)
        row, column = np.divmod(np.flatnonzero(scores == best[:, None]), len(tuples))
        matches.append(column.astype(np.int32))
        lengths.append(np.bincount(row, minlength=len(best)))
        consistent.append(best == len(columns))
        n_found += len(row)
        if n_found > LARGEST:
            raise DataError(
                f"more than {LARGEST} pairs of distinct original and released tuples match: too many to compare",
                "too many different released tuples match almost every record; generalize more evenly",
            )
    from scipy.sparse import csr_array

    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths))]).astype(np.int32)
    indices = np.concatenate(matches)
    shape = (len(kinds), len(tuples))
    return csr_array((np.ones(len(indices), np.int8), indices, starts), shape=shape), np.concatenate(consistent)


def _scores(
    kinds: Codes, tuples: Codes, columns: Sequence[_ReleasedTexts]
) -> Iterator[NDArray[np.unsignedinteger[Any]]]:
    """Count in how many columns each kind is consistent with each released tuple, a block of kinds at a time."""
    number = np.min_scalar_type(len(columns))  # a byte; casting while adding would cost more than the sum
    dense, sparse = (max(1, pairs // len(tuples)) for pairs in (BLOCK, CHUNK))
    for block in _slices(kinds, dense):
        # The texts that cover a value are expanded to tuples once for all kinds of the block that share it.
        spread = []
        for j, column in enumerate(columns):
            present, row = np.unique(block[:, j], return_inverse=True)
            spread.append((column.stand_for(present).astype(number)[:, tuples[:, j]], row))
        for chunk in _slices(np.arange(len(block)), sparse):
            scores = np.zeros((len(chunk), len(tuples)), number)
            for stands, row in spread:
                scores += stands[row[chunk]]
            yield scores


def _slices(rows: NDArray[Any], step: int) -> Iterator[NDArray[Any]]:
    return (rows[first : first + step] for first in range(0, len(rows), step))


def _rows_where(wanted: NDArray[np.bool_], matrix: csr_array) -> csr_array:
    """Return the matrix with all other rows emptied."""
    from scipy.sparse import csr_array

    lengths = np.diff(matrix.indptr)
    starts = np.concatenate([[0], np.cumsum(lengths * wanted)]).astype(np.int32)
    entries = np.repeat(wanted, lengths)
    return csr_array((matrix.data[entries], matrix.indices[entries], starts), shape=matrix.shape)
