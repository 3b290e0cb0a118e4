"""Agreement patterns of all pairs of two files, counted without visiting the pairs.

For every set S of columns the pairs that agree on S number Σ n_A(v) · n_B(v) over the values v of these columns. The
2^q groupings are rolled up from one another, with the counts of both files in one word, and inclusion and exclusion
over supersets turn "at least S" into "exactly S". That needs agreement to be equality of codes, as after full-domain
generalization; where known values agree with several released ones, distinct tuples are compared pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.deriving import derive, derive_large
from shoal.compiled.grouping import group
from shoal.errors import DataError
from shoal.linkage.agreement import Agreement, agreement
from shoal.linkage.columns import Files, LinkedFile, On, side_by_side
from shoal.linkage.nearest import Distinct
from shoal.policy import PolicySource
from shoal.search.full_domain.rollup import KeyLayout
from shoal.tables.frequency import Codes, Counts, RowNumbers, packed

MAX_COLUMNS = 16  # columns: 65,536 patterns
LARGEST = 2**36  # pairs of distinct tuples compared one by one: some minutes
BLOCK = 2**22  # of them at once
HALF = 2**32  # the count of the known file is in the upper half of a word
CACHED = 2**17  # classes up to which a hash table fits the processor's cache


@dataclass(frozen=True, eq=False)
class PatternCounts:
    """The number of pairs of a known and a released record that agree on exactly each set of columns."""

    columns: tuple[str, ...]
    counts: Counts  # (2^q)  bit j of the index is set where the pair agrees on column j
    n_known: int
    n_released: int

    @property
    def pairs(self) -> int:
        """The total number of pairs."""
        return self.n_known * self.n_released

    @property
    def agrees(self) -> NDArray[np.bool_]:
        """(2^q, q): the columns on which each pattern agrees."""
        return pattern_bits(len(self.columns))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; a pattern is a string of 1 and 0 per column, omitted without pairs."""
        texts = ["".join("01"[int(bit)] for bit in row) for row in self.agrees]
        counts = self.counts.tolist()
        return {
            "columns": list(self.columns),
            "pairs": self.pairs,
            "patterns": {text: n for text, n in zip(texts, counts, strict=True) if n},
        }


def pattern_bits(q: int) -> NDArray[np.bool_]:
    """(2^q, q): the bits of each index."""
    return np.asarray((np.arange(1 << q)[:, None] >> np.arange(q)) & 1 == 1)


def pattern_counts(
    known: LinkedFile,
    release: LinkedFile,
    *,
    on: On = None,
    numeric: Sequence[str] | None = None,
    policy: PolicySource | None = None,
    original: LinkedFile | None = None,
) -> PatternCounts:
    """Count the agreement patterns of the full cross product of two files.

    A known value agrees with a released one that stands for it, on whatever level of its hierarchy; nulls and ``*``
    agree with nothing.
    """
    files = side_by_side(known, release, on=on, numeric=numeric, policy=policy, original=original)
    return counted_pairs(files, compared(files))


def counted_pairs(files: Files, pairs: ByCode | ByPair) -> PatternCounts:
    """Return the counts with their columns."""
    return PatternCounts(files.names, pairs.counts(), files.n_known, files.n_released)


def compared(files: Files) -> ByCode | ByPair:
    """Return the comparison method for these files."""
    if len(files.columns) > MAX_COLUMNS:
        raise DataError(
            f"{len(files.columns)} columns have too many agreement patterns", f"compare at most {MAX_COLUMNS}"
        )
    if max(files.n_known, files.n_released) >= HALF // 2:
        raise DataError(f"a file has more than {HALF // 2 - 1} records", "compare a sample of it")
    agreements = [agreement(column) for column in files.columns]
    known_codes, released = files.codes
    if all(column_agreement.is_function for column_agreement in agreements):
        codes = [column_agreement.codes for column_agreement in agreements]
        return ByCode(_mapped(known_codes, [k for k, _ in codes]), _mapped(released, [r for _, r in codes]))
    return ByPair(known_codes, released, agreements)


def _mapped(codes: Codes, maps: Sequence[Codes]) -> Codes:
    return np.column_stack([code_map[codes[:, j]] for j, code_map in enumerate(maps)])


@dataclass(frozen=True, eq=False)
class BestMatches:
    """Per known record: the index of its best level, how many released records reach it, and the first of them."""

    level: NDArray[np.int64]  # -1 where none is reached
    ties: Counts
    rows: RowNumbers


# ── Agreement is equality of codes ──────────────────────────────────────────────────────────────────────────


class ByCode:
    """Both files as codes that are equal exactly if values agree."""

    def __init__(self, known_codes: Codes, released: Codes) -> None:
        self.codes = known_codes, released
        self.q = known_codes.shape[1]

    @cached_property
    def distinct(self) -> tuple[Distinct, Distinct]:
        """The distinct tuples of both files."""
        return Distinct.from_codes(self.codes[0]), Distinct.from_codes(self.codes[1])

    def patterns(self, known_rows: RowNumbers, released: RowNumbers) -> RowNumbers:
        """Return the pattern of each pair of records."""
        equal = self.codes[0][known_rows] == self.codes[1][released]
        return np.asarray(equal @ (1 << np.arange(self.q)))

    def counts(self) -> Counts:
        """Return the number of pairs of each exact pattern."""
        known_codes, released = self.codes
        all_codes = np.concatenate([known_codes, released])
        sizes = [int(column.max()) + 1 for column in all_codes.T]
        # Columns with many values first: without them a table is small, and half of all tables are derived from it.
        order = sorted(range(self.q), key=lambda j: -sizes[j])
        layout = KeyLayout([sizes[j] for j in order])
        counts = np.repeat(np.array([HALF, 1], np.int64), [len(known_codes), len(released)])
        at_least = np.zeros(1 << self.q, np.int64)
        rollup = _PatternRollup(layout, [sizes[j] for j in order])
        for columns, sums in rollup.tables(layout.packed(all_codes[:, order]), counts):
            pattern = sum(1 << order[position] for position in columns)
            at_least[pattern] = int(((sums >> 32) * (sums & (HALF - 1))).sum())
        return exactly(at_least)

    def best(self, level_of: RowNumbers, informative: Sequence[int]) -> BestMatches:
        """Return the lowest level that a pair of each known record has.

        ``level_of`` gives the level of each pattern, -1 for one that does not count. It must fall with every
        informative column that agrees and not depend on others: then who is not linked on a larger set of columns
        agrees on no more than the smaller one, and a join suffices.
        """
        known_tuples, released = self.distinct
        n = len(known_tuples.codes)
        level, ties, rows = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
        inside = sum(1 << j for j in informative)
        left = np.arange(n)
        for now in range(int(level_of.max(initial=-1)) + 1):
            n_matches = np.zeros(len(left), np.int64)
            first = np.full(len(left), np.iinfo(np.int64).max)
            for pattern in sorted({int(p) & inside for p in np.flatnonzero(level_of == now)}):
                columns = [j for j in range(self.q) if pattern >> j & 1]
                n_here, row = _joined(known_tuples.codes[left][:, columns], released, columns)
                n_matches += n_here
                first = np.minimum(first, row)
            linked = n_matches > 0
            level[left[linked]], ties[left[linked]], rows[left[linked]] = now, n_matches[linked], first[linked]
            left = left[~linked]
            if not len(left):
                break
        return BestMatches(level[known_tuples.class_of], ties[known_tuples.class_of], rows[known_tuples.class_of])


def _joined(mine: Codes, released: Distinct, columns: Sequence[int]) -> tuple[Counts, RowNumbers]:
    """Return how many released records have the same codes in some columns, and the first of them."""
    theirs = released.codes[:, list(columns)]
    class_of, firsts = group(packed(np.concatenate([theirs, mine])))
    released_class = class_of[: len(theirs)]
    counts = np.bincount(released_class, weights=released.counts, minlength=len(firsts)).astype(np.int64)
    rows = np.full(len(firsts), np.iinfo(np.int64).max)
    np.minimum.at(rows, released_class, released.rows)
    return counts[class_of[len(theirs) :]], rows[class_of[len(theirs) :]]


def exactly(at_least: Counts) -> Counts:
    """Return the pairs that agree on exactly a set of columns, from those that agree on at least it."""
    counts = at_least.copy()
    for j in range(len(counts).bit_length() - 1):
        pairs = counts.reshape(-1, 2, 1 << j)
        pairs[:, 0] -= pairs[:, 1]
    return counts


class _PatternRollup:
    """Groupings by every set of columns, each from one with one more column; depth first, so that few are kept."""

    def __init__(self, layout: KeyLayout, sizes: Sequence[int]) -> None:
        self.layout = layout
        self.sizes = sizes
        self.zeros = np.zeros(int(layout.masks.max()) + 1, np.uint64)  # what every code of a dropped column becomes

    def tables(self, keys: NDArray[np.uint64], counts: Counts) -> Iterator[tuple[tuple[int, ...], Counts]]:
        """Yield every set of columns with the counts of its classes."""
        yield from self._below(tuple(range(len(self.sizes))), 0, *self._grouped(keys, counts, ()))

    def _below(
        self, columns: tuple[int, ...], start: int, keys: NDArray[np.uint64], counts: Counts
    ) -> Iterator[tuple[tuple[int, ...], Counts]]:
        yield columns, counts
        for j in columns:
            if j >= start:
                yield from self._below(tuple(c for c in columns if c != j), j + 1, *self._grouped(keys, counts, (j,)))

    def _grouped(
        self, keys: NDArray[np.uint64], counts: Counts, dropped: tuple[int, ...]
    ) -> tuple[NDArray[np.uint64], Counts]:
        dropped_columns = list(dropped)
        layout = self.layout
        offsets = np.zeros(len(dropped_columns), np.int64)
        words, shifts, masks = (
            layout.words[dropped_columns],
            layout.shifts[dropped_columns],
            layout.masks[dropped_columns],
        )
        if layout.n_words == 1 and len(counts) <= CACHED:
            narrow, sums, _ = derive(keys[:, 0], counts, shifts, masks, offsets, self.zeros, len(counts), False)
            return narrow[:, None], sums
        wide, sums, _ = derive_large(keys, counts, words, shifts, masks, offsets, self.zeros, False, 0, 0)
        return wide, sums


# ── Known values agree with several released ones ───────────────────────────────────────────────────────────


class ByPair:
    """Distinct tuples compared one by one; known tuples that agree with the same values are one kind."""

    def __init__(self, known_codes: Codes, released: Codes, agreements: Sequence[Agreement]) -> None:
        kinds = [column_agreement.kinds for column_agreement in agreements]
        self.q = len(agreements)
        self.agrees = [agrees for _, agrees in kinds]
        self.known_tuples = Distinct.from_codes(_mapped(known_codes, [kind_of for kind_of, _ in kinds]))
        classes = [
            np.where(column_agreement.released < 0, column_agreement.n_classes, column_agreement.released).astype(
                np.int32
            )
            for column_agreement in agreements
        ]
        self.released = Distinct.from_codes(_mapped(released, classes))
        n = len(self.known_tuples.codes) * len(self.released.codes)
        if n > LARGEST:
            raise DataError(
                f"{len(self.known_tuples.codes)} kinds of known records and {len(self.released.codes)} distinct "
                f"released tuples are too many to compare one by one (at most {LARGEST} pairs)",
                "compare fewer columns or a sample; a release with one level per column does not need pairs",
            )

    def patterns(self, known_rows: RowNumbers, released: RowNumbers) -> RowNumbers:
        """Return the pattern of each pair of records."""
        mine = self.known_tuples.codes[self.known_tuples.class_of[known_rows]]
        theirs = self.released.codes[self.released.class_of[released]]
        agreeing = np.column_stack([agrees[mine[:, j], theirs[:, j]] for j, agrees in enumerate(self.agrees)])
        return agreeing @ (1 << np.arange(self.q))

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Yield (kinds, released tuples) patterns, a block of kinds at a time."""
        step = max(1, BLOCK // len(self.released.codes))
        for first in range(0, len(self.known_tuples.codes), step):
            rows = slice(first, first + step)
            pattern = np.zeros((len(self.known_tuples.codes[rows]), len(self.released.codes)), np.int64)
            for j, agrees in enumerate(self.agrees):
                agreeing = agrees[self.known_tuples.codes[rows, j]][:, self.released.codes[:, j]]
                pattern |= agreeing.astype(np.int64) << j
            yield rows, pattern

    def counts(self) -> Counts:
        """Return the number of pairs of each exact pattern."""
        total = np.zeros(1 << self.q, np.int64)
        for rows, pattern in self._blocks():
            for row, n in zip(pattern, self.known_tuples.counts[rows], strict=True):
                # float64 is exact here: no count reaches 2^53.
                total += n * np.bincount(row, self.released.counts, 1 << self.q).astype(np.int64)
        return total

    def best(self, level_of: RowNumbers, informative: Sequence[int]) -> BestMatches:
        """Return the lowest level that a pair of each known record has; a pattern of level -1 does not count."""
        n = len(self.known_tuples.codes)
        level, ties, rows = np.full(n, -1, np.int64), np.zeros(n, np.int64), np.full(n, -1, np.int64)
        no_level = np.iinfo(np.int64).max
        levels = np.where(level_of < 0, no_level, level_of)
        for block, pattern in self._blocks():
            reached = levels[pattern]
            best_level = reached.min(axis=1)
            linked = best_level < no_level
            at_best = (reached == best_level[:, None]) & linked[:, None]
            level[block] = np.where(linked, best_level, -1)
            ties[block] = at_best @ self.released.counts
            rows[block] = np.where(linked, np.where(at_best, self.released.rows, no_level).min(axis=1), -1)
        tuple_of = self.known_tuples.class_of
        return BestMatches(level[tuple_of], ties[tuple_of], rows[tuple_of])
