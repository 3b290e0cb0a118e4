"""How well a column tells records apart, and how far it tells another column: counted, without a value leaving.

A column that nearly every record has a value of its own in identifies; one that settles the value of another gives that
one away. Both are counts of groups, by one or two GROUP BYs in an engine, by sorting codes in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from shoal.table.frequency import Counts

if TYPE_CHECKING:
    from ibis.expr import types as ir

Numbers = NDArray[np.int64]
TellingPair = tuple[str, str]  # the column that tells, and the one that is told


@dataclass(frozen=True)
class Spread:
    """How the values of a column are spread over records; a null is no value."""

    records: int  # with a value
    distinct: int
    alone: int  # records whose value no other has


@dataclass(frozen=True)
class Dependence:
    """How far one column tells another, over the records with a value in the first.

    Records that share it form a group; ``first`` and ``second`` count those that have the most frequent and the second
    most frequent value of the other column in their group. A null of the other column is a value like any other.
    """

    records: int
    groups: int
    first: int
    second: int
    beyond: int  # records beyond the first two of their group

    def errors(self, guesses: int) -> int:
        """Records that are missed by whoever guesses the one or two most frequent values of each group."""
        return self.records - self.first - (self.second if guesses == 2 else 0)

    def told(self, guesses: int) -> int:
        """Records that could be missed: the first one or two of a group tell nothing, as they are always guessed."""
        return self.records - self.groups if guesses == 1 else self.beyond


class Countable(Protocol):
    """Rows that stay where they are, as an engine counts them."""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""

    def spreads(self, names: Sequence[str], /) -> Mapping[str, Spread]:
        """How well each of some columns tells the records apart."""

    def dependences(self, pairs: Sequence[TellingPair], /) -> Mapping[TellingPair, Dependence]:
        """How far the first column of each pair tells the second."""

    def frequencies(self, name: str, /) -> Counts:
        """How often each value of a column occurs, the most frequent first; a null is a value."""

    def texts(self, name: str, /) -> tuple[str, ...]:
        """The distinct values of a column, as text."""


# ── in memory ───────────────────────────────────────────────────────────────────────────────────────────────


DENSE = 2**23  # cells that are counted without sorting: 64 MB


def numbered(column: pa.ChunkedArray) -> Numbers:
    """Equal values get equal numbers, from 0 in any order; a null is -1. Quicker than codes, which are sorted texts."""
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, np.int64)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.add(
            pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column), pa.scalar(0.0, column.type)
        )
    indices = column.dictionary_encode().combine_chunks()
    if isinstance(indices, pa.ChunkedArray):  # what combine_chunks returns has changed between releases
        indices = pa.concat_arrays(indices.chunks) if indices.num_chunks != 1 else indices.chunk(0)
    return np.asarray(indices.indices.fill_null(-1).to_numpy(zero_copy_only=False), np.int64)


def spread_of(values: Numbers, weights: Counts | None = None) -> Spread:
    """Of numbered values, each of which may stand for several records."""
    counts = tallied(values[values >= 0], None if weights is None else weights[values >= 0])
    counts = counts[counts > 0]
    return Spread(int(counts.sum()), len(counts), int((counts == 1).sum()))


def dependence_of(first: Numbers, second: Numbers, weights: Counts | None = None) -> Dependence:
    """Of numbered values of two columns, row by row."""
    there = first >= 0
    if not there.all():
        first, second, weights = first[there], second[there], None if weights is None else weights[there]
    if not len(first):
        return Dependence(0, 0, 0, 0, 0)
    width = int(second.max()) + 2  # a null of the second, -1, is a value
    cells = first.astype(np.int64) * width + second + 1
    if (int(first.max()) + 1) * width <= max(4 * len(cells), DENSE):
        counts = tallied(cells, weights)
        cell = np.flatnonzero(counts)
        n = counts[cell]
    else:
        cell, place = np.unique(cells, return_inverse=True)
        n = tallied(place, weights)
    group = cell // width
    starts = np.flatnonzero(np.concatenate([[True], group[1:] != group[:-1]]))
    most = np.maximum.reduceat(n, starts)
    sizes = np.add.reduceat(n, starts)
    # Without one cell of the most frequent value, the next is the second.
    greatest = np.flatnonzero(n == np.repeat(most, np.diff(starts, append=len(n))))
    of = group[greatest]
    rest = n.copy()
    rest[greatest[np.concatenate([[True], of[1:] != of[:-1]])]] = 0
    return Dependence(
        int(n.sum()),
        len(starts),
        int(most.sum()),
        int(np.maximum.reduceat(rest, starts).sum()),
        int(np.maximum(sizes - 2, 0).sum()),
    )


def tallied(numbers: Numbers, weights: Counts | None) -> Counts:
    """How many records have each number."""
    if weights is None:
        return np.bincount(numbers).astype(np.int64)
    totals = np.zeros(int(numbers.max(initial=-1)) + 1, np.int64)  # bincount would add weights up as floats
    np.add.at(totals, numbers, weights)
    return totals


# ── in an engine ────────────────────────────────────────────────────────────────────────────────────────────


def spread_queries(rows: ir.Table, names: Sequence[str]) -> list[ir.Table]:
    """Per column a query of one row: its place in ``names``, and the fields of its ``Spread``."""
    import ibis

    queries = []
    for i, name in enumerate(names):
        values = rows.filter(rows[name].notnull()).select(value=rows[name])
        groups = values.group_by("value").agg(n=values.count())
        alone = ibis.ifelse(groups.n == 1, 1, 0)
        queries.append(_one_row(groups, i, records=groups.n.sum(), groups=groups.count(), alone=alone.sum()))
    return queries


def dependence_queries(rows: ir.Table, pairs: Iterable[TellingPair]) -> list[ir.Table]:
    """Per pair a query of one row: its place in ``pairs``, and the fields of its ``Dependence``."""
    import ibis

    queries = []
    for i, (first, second) in enumerate(pairs):
        both = rows.filter(rows[first].notnull()).select(tells=rows[first], told=rows[second])
        cells = both.group_by(["tells", "told"]).agg(n=both.count())
        ranked = cells.mutate(rank=ibis.row_number().over(group_by="tells", order_by=cells.n.desc()))
        groups = ranked.group_by("tells").agg(
            size=ranked.n.sum(),
            most=ranked.n.max(),
            next=ibis.ifelse(ranked["rank"] == 1, ranked.n, 0).max(),  # ranks start with 0
        )
        beyond = ibis.ifelse(groups["size"] > 2, groups["size"] - 2, 0)
        queries.append(
            _one_row(
                groups,
                i,
                records=groups["size"].sum(),
                groups=groups.count(),
                first=groups.most.sum(),
                second=groups.next.sum(),
                beyond=beyond.sum(),
            )
        )
    return queries


def _one_row(rows: ir.Table, place: int, **figures: Any) -> ir.Table:
    """Sums as whole numbers, 0 where there is nothing to add."""
    import ibis

    found = rows.aggregate(**{name: ibis.coalesce(figure.cast("int64"), 0) for name, figure in figures.items()})
    return found.mutate(place=ibis.literal(place, "int64"))
