"""Uniqueness of sets of columns: how well they separate people, counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

KeyNumbers = NDArray[np.int64]

STRONGEST = 12  # columns of which all pairs and triples are counted: 298 sets


@dataclass(frozen=True)
class Separation:
    """How well a set of columns separates the records; a null counts as a value."""

    columns: tuple[str, ...]
    records: int
    distinct: int  # tuples
    unique: int  # records that share their tuple with nobody
    alike: int  # pairs of records with the same tuple

    @classmethod
    def of(cls, columns: tuple[str, ...], counts: KeyNumbers) -> Separation:
        """Build it from the number of records with each tuple."""
        alike = int((counts * (counts - 1) // 2).sum())  # below 2^63 for up to four billion records
        return cls(columns, int(counts.sum()), len(counts), int((counts == 1).sum()), alike)

    @property
    def distinct_ratio(self) -> float:
        """The number of distinct tuples per record."""
        return self.distinct / self.records if self.records else 0.0

    @property
    def unique_ratio(self) -> float:
        """The share of records with a unique tuple."""
        return self.unique / self.records if self.records else 0.0

    @property
    def separation_ratio(self) -> float:
        """The share of pairs of records that differ; 0 if there is no pair."""
        pairs = self.records * (self.records - 1) // 2
        return (pairs - self.alike) / pairs if pairs else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": list(self.columns),
            "distinct": self.distinct,
            "distinct_ratio": self.distinct_ratio,
            "separation_ratio": self.separation_ratio,
            "unique": self.unique,
            "unique_ratio": self.unique_ratio,
        }


def separations(codes: Mapping[str, KeyNumbers], records: int) -> tuple[Separation, ...]:
    """Count every column, and every pair and triple of the strongest columns; ``codes`` are not negative.

    Sets of one size are ranked by unique records, then by pairs told apart.
    """
    counted = Tuples(codes, None)
    return ranked([counted((name,)) for name in codes], records, counted)


def ranked(
    single: list[Separation], records: int, counted: Callable[[tuple[str, ...]], Separation]
) -> tuple[Separation, ...]:
    """Return the single columns, and pairs and triples of the strongest ones."""
    single.sort(key=separation_rank)
    strong = [s.columns[0] for s in single[:STRONGEST]]
    pairs = {pair: counted(pair) for pair in combinations(strong, 2)}
    triples = []
    for a, b, c in combinations(strong, 3):
        # A set that tells everybody apart still does with one more column.
        if any(pairs[pair].distinct == records for pair in ((a, b), (a, c), (b, c))):
            triples.append(Separation((a, b, c), records, records, records, 0))
        else:
            triples.append(counted((a, b, c)))
    return (*single, *sorted(pairs.values(), key=separation_rank), *sorted(triples, key=separation_rank))


def separation_rank(separation: Separation) -> tuple[int, int, int]:
    """Sort by how well the columns separate records, best first."""
    return -separation.unique, separation.alike, -separation.distinct


def _joined(left: KeyNumbers, n_left: int, right: KeyNumbers, n_right: int) -> tuple[KeyNumbers, int]:
    """Combine two keys into one, and return the number of possible values."""
    if n_left * n_right > 2**62:  # the product would overflow: number the keys that occur
        left = np.unique(left, return_inverse=True)[1]
        right = np.unique(right, return_inverse=True)[1]
        n_left, n_right = int(left.max()) + 1, int(right.max()) + 1
    return left * n_right + right, n_left * n_right


class Tuples:
    """Counts the tuples of columns from their codes; ``weights`` are the numbers of records per row."""

    def __init__(self, codes: Mapping[str, KeyNumbers], weights: KeyNumbers | None) -> None:
        self._codes = codes
        self._weights = weights
        self._sizes = {name: int(code.max(initial=-1)) + 1 for name, code in codes.items()}
        self._pair: tuple[tuple[str, ...], tuple[KeyNumbers, int]] | None = None  # the last, as triples begin with it

    def __call__(self, columns: tuple[str, ...]) -> Separation:
        """Return how well some columns separate the records."""
        *before, last = columns
        key, size = self._codes[last], self._sizes[last]
        if before:
            key, size = _joined(*self._first(tuple(before)), key, size)
        return Separation.of(columns, self._counts(key, size))

    def _first(self, columns: tuple[str, ...]) -> tuple[KeyNumbers, int]:
        if len(columns) == 1:
            return self._codes[columns[0]], self._sizes[columns[0]]
        if self._pair is None or self._pair[0] != columns:
            a, b = columns
            self._pair = columns, _joined(self._codes[a], self._sizes[a], self._codes[b], self._sizes[b])
        return self._pair[1]

    def _counts(self, key: KeyNumbers, size: int) -> KeyNumbers:
        if size <= 4 * len(key) + 2**16:
            # As floats weights add up exactly, below 2^53 records.
            counts = np.bincount(key, self._weights, minlength=1)
            return counts[counts > 0].astype(np.int64)
        key = key.astype(np.int32) if size < 2**31 else key
        if self._weights is None:
            key = np.sort(key)
            starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
            return np.diff(np.append(starts, len(key))).astype(np.int64)
        order = np.argsort(key)
        key = key[order]
        return np.add.reduceat(self._weights[order], np.flatnonzero(np.append(True, key[1:] != key[:-1])))
