"""How well a column distinguishes records, and how far it determines another column, from counts alone.

A column in which nearly every record has its own value identifies people; a column that determines another one
discloses it. Both are counts of groups: one or two GROUP BYs in an engine, sorted codes in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.tables.frequency import Counts

Numbers = NDArray[np.integer]
TellingPair = tuple[str, str]  # the determining column, and the determined one


@dataclass(frozen=True)
class Spread:
    """How the values of a column are distributed over records; nulls are not counted as values."""

    records: int  # with a value
    distinct: int
    alone: int  # records with a unique value


@dataclass(frozen=True)
class Dependence:
    """How far one column determines another, over the records with a value in the first.

    Records with the same value in the first column form a group; ``first`` and ``second`` count the records with the
    most frequent and second most frequent value of the other column in their group. In the other column, null counts as
    a value.
    """

    records: int
    groups: int
    first: int
    second: int
    beyond: int  # records beyond the first two of their group

    def errors(self, guesses: int) -> int:
        """Count the wrong guesses if the one or two most frequent values of each group are guessed."""
        return self.records - self.first - (self.second if guesses == 2 else 0)

    def told(self, guesses: int) -> int:
        """Count the records that could be guessed wrong: the first one or two of a group are always guessed right."""
        return self.records - self.groups if guesses == 1 else self.beyond


@dataclass(frozen=True)
class SmallClasses:
    """How many persons are in classes with few persons; records, if no column identifies people."""

    people: int  # in all classes
    alone: int  # in a class without anybody else
    few: int  # in a class with fewer persons than were asked for
    classes: int  # with fewer persons than were asked for


class Countable(Protocol):
    """Rows that are counted by their engine."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def spreads(self, names: Sequence[str], /) -> Mapping[str, Spread]:
        """Count how well each of some columns distinguishes the records."""

    def dependences(self, pairs: Sequence[TellingPair], /) -> Mapping[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""

    def frequencies(self, name: str, /) -> Counts:
        """Count how often each value of a column occurs, most frequent first; null is a value."""

    def texts(self, name: str, /) -> tuple[str, ...]:
        """Return the distinct values of a column as text."""

    def small_classes(self, names: Sequence[str], person: str | None, k: int, /) -> SmallClasses:
        """Count the persons in classes with fewer than ``k``: those with equal values, or nulls, in some columns."""


# ── in memory ───────────────────────────────────────────────────────────────────────────────────────────────


DENSE = 2**23  # cells counted without sorting: 64 MB
PIECE, FEW_VALUES = (
    2**16,
    2**12,
)  # records counted at a time, if they have few values: they stay in the processor's cache


def numbered(column: pa.ChunkedArray) -> Numbers:
    """Number equal values alike, from 0 in any order; null is -1. Faster than codes, which are sorted texts."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    if pa.types.is_floating(column.type):
        column = pc.add(
            pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column), pa.scalar(0.0, column.type)
        )
    indices = column.dictionary_encode().combine_chunks()
    if isinstance(indices, pa.ChunkedArray):  # what combine_chunks returns has changed between releases
        indices = pa.concat_arrays(indices.chunks) if indices.num_chunks != 1 else indices.chunk(0)
    return np.asarray(indices.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def spread_of(values: Numbers, weights: Counts | None = None) -> Spread:
    """Compute the spread of numbered values, each of which may represent several records."""
    counts = tallied_with_nulls(values, weights)[1:]
    counts = counts[counts > 0]
    return Spread(int(counts.sum()), len(counts), int((counts == 1).sum()))


def dependence_of(first: Numbers, second: Numbers, weights: Counts | None = None) -> Dependence:
    """Compute the dependence of the numbered values of two columns, row by row."""
    is_coded = first >= 0
    if not is_coded.all():
        first, second, weights = first[is_coded], second[is_coded], None if weights is None else weights[is_coded]
    if not len(first):
        return Dependence(0, 0, 0, 0, 0)
    width = int(second.max()) + 2  # a null of the second, -1, is a value
    cells = first.astype(np.int64) * width + second + 1
    if (int(first.max()) + 1) * width <= max(4 * len(cells), DENSE):
        counts = tallied(cells, weights)
        cell = np.flatnonzero(counts)
        n = counts[cell]
    else:
        cell, cell_of = np.unique(cells, return_inverse=True)
        n = tallied(cell_of, weights)
    group = cell // width
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    largest = np.maximum.reduceat(n, starts)
    sizes = np.add.reduceat(n, starts)
    # Without one cell of the most frequent value, the next most frequent is the second.
    greatest = np.flatnonzero(n == np.repeat(largest, np.diff(starts, append=len(n))))
    group_of = group[greatest]
    rest = n.copy()
    rest[greatest[np.concatenate([[True], group_of[1:] != group_of[:-1]])]] = 0
    return Dependence(
        int(n.sum()),
        len(starts),
        int(largest.sum()),
        int(np.maximum.reduceat(rest, starts).sum()),
        int(np.maximum(sizes - 2, 0).sum()),
    )


def small_classes_of(class_of: Numbers, persons: Numbers | None, weights: Counts | None, k: int) -> SmallClasses:
    """Compute the small classes of numbered rows; a row without a person belongs to a class, but to nobody known."""
    if persons is None:
        sizes = tallied(class_of, weights)
        small_sizes = sizes[(sizes > 0) & (sizes < k)]
        return SmallClasses(int(sizes.sum()), int((sizes == 1).sum()), int(small_sizes.sum()), len(small_sizes))
    width = int(persons.max(initial=-1)) + 2  # -1, of nobody known, is one more
    present = np.unique(class_of.astype(np.int64) * width + persons + 1)
    class_of, person = present // width, present % width - 1
    sizes = tallied(class_of, None)
    size = sizes[class_of]
    is_known = person >= 0

    def distinct(rows: NDArray[np.bool_]) -> int:
        return len(np.unique(person[rows & is_known]))

    small = int(((sizes > 0) & (sizes < k)).sum())
    return SmallClasses(distinct(size > 0), distinct(size == 1), distinct(size < k), small)


def tallied(numbers: Numbers, weights: Counts | None) -> Counts:
    """Count the records with each number."""
    if weights is None:
        return np.bincount(numbers).astype(np.int64)
    totals = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)  # bincount would sum weights as floats
    np.add.at(totals, numbers, weights)
    return totals


def tallied_with_nulls(values: Numbers, weights: Counts | None) -> Counts:
    """Count the records with each number, those with a null, -1, first."""
    n_values = int(values.max(initial=-1)) + 2
    if weights is not None or n_values > FEW_VALUES:
        return tallied(values + 1, weights)
    counts = np.zeros(n_values, np.int64)
    for first in range(0, len(values), PIECE):
        counts += np.bincount(values[first : first + PIECE] + 1, minlength=n_values)
    return counts


# ── in an engine ────────────────────────────────────────────────────────────────────────────────────────────


# As text: building and compiling the same queries with Ibis takes ten times as long as DuckDB needs for a small table.
# The rows are a query whose columns are called c0, c1, …, so that nothing has to be quoted.


def spread_query(rows: str, n_columns: int) -> str:
    """Return a query with a row per column: its index and the fields of its ``Spread``."""
    groups = (f"SELECT c{j}, count(*) AS n FROM seen WHERE c{j} IS NOT NULL GROUP BY c{j}" for j in range(n_columns))
    return _combined(rows, groups, ["sum(n)", "count(*)", "sum(CASE WHEN n = 1 THEN 1 ELSE 0 END)"])


def dependence_query(rows: str, pairs: Iterable[tuple[int, int]]) -> str:
    """Return a query with a row per pair of columns: its index and the fields of its ``Dependence``."""
    groups = (
        "SELECT tells, sum(n) AS n_all, max(n) AS n_first, max(CASE WHEN nth = 2 THEN n ELSE 0 END) AS n_second FROM ("
        "SELECT tells, n, row_number() OVER (PARTITION BY tells ORDER BY n DESC) AS nth FROM ("
        f"SELECT c{i} AS tells, c{j} AS told, count(*) AS n FROM seen WHERE c{i} IS NOT NULL GROUP BY c{i}, c{j}"
        ") AS cells) AS ranked GROUP BY tells"
        for i, j in pairs
    )
    beyond = "sum(CASE WHEN n_all > 2 THEN n_all - 2 ELSE 0 END)"
    return _combined(rows, groups, ["sum(n_all)", "count(*)", "sum(n_first)", "sum(n_second)", beyond])


def small_classes_query(rows: str, n_columns: int, k: int, *, persons: bool) -> str:
    """Return a query with one row: an index and the fields of ``SmallClasses``; the last column is the person."""
    keys = ", ".join(f"c{j}" for j in range(n_columns))
    if not persons:
        groups = f"SELECT count(*) AS n FROM seen GROUP BY {keys}"
        alone, n_small = "sum(CASE WHEN n = 1 THEN 1 ELSE 0 END)", f"sum(CASE WHEN n < {k} THEN n ELSE 0 END)"
        return _combined(rows, [groups], ["sum(n)", alone, n_small, f"sum(CASE WHEN n < {k} THEN 1 ELSE 0 END)"])
    person = f"c{n_columns}"
    sized = (
        f"SELECT {person} AS p, count(*) OVER (PARTITION BY {keys}) AS n, "
        f"row_number() OVER (PARTITION BY {keys} ORDER BY {person}) AS nth "
        f"FROM (SELECT DISTINCT {keys}, {person} FROM seen) AS pairs"
    )
    figures = [f"count(DISTINCT CASE WHEN {test} THEN p END)" for test in ("n > 0", "n = 1", f"n < {k}")]
    return _combined(rows, [sized], [*figures, f"sum(CASE WHEN n < {k} AND nth = 1 THEN 1 ELSE 0 END)"])


def _combined(rows: str, queries: Iterable[str], figures: Sequence[str]) -> str:
    """Aggregate each query to a row of integers; an empty sum is 0."""
    columns = ", ".join(f"CAST(coalesce({figure}, 0) AS BIGINT) AS f{i}" for i, figure in enumerate(figures, 1))
    parts = (
        f"SELECT CAST({k} AS BIGINT) AS f0, {columns} FROM ({query}) AS counted" for k, query in enumerate(queries)
    )
    return f"WITH seen AS ({rows}) " + " UNION ALL ".join(parts)
