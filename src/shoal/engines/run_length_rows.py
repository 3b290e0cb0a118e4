"""Released rows made from their counts alone: each distinct row as often as it was counted, in hash order.

Equal rows have equal hashes and are therefore next to each other in a release. If the counts cover every released
column, sorting the distinct rows gives the same release as sorting all of them, and the rows need not be read again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.base import Groups
from shoal.engines.coded_rows import CodedColumn
from shoal.engines.row_order import order_of_distinct
from shoal.engines.sql import quoted
from shoal.hierarchies.pieces import copies_in_pieces
from shoal.tables.frequency import Codes, Counts, packed

DICTIONARY = 2**19  # bytes of texts; beyond 2^20, a Parquet writer gives up its dictionary at a point of its own
TUPLE = 400  # bytes of a distinct row in memory on its way to a file, with eight columns
PAGE = 20_000  # rows; the first page of a Parquet column has no fewer, unless it is the only one


def few_distinct(connection: Any, query: str, n_rows: int, memory: int | None) -> bool:
    """Estimate from hashes whether at most half of the rows of a DuckDB query are distinct, and fit in memory."""
    rows = connection.sql(query)
    hashes = f"hash({', '.join(map(quoted, rows.columns))})"
    ((n,),) = connection.sql(f"SELECT approx_count_distinct({hashes}) FROM ({query})").fetchall()
    return bool(2 * n <= n_rows and (memory is None or n * TUPLE <= memory // 2))


@dataclass(frozen=True, eq=False)
class RunLengthRows:
    """Distinct rows in the order of a release, and how often each occurs."""

    names: tuple[str, ...]
    codes: Codes  # (distinct rows, columns)  the place of a value in ``values``; 0 is null
    values: tuple[pa.Array, ...]  # per column: null, then the distinct values
    counts: Counts

    @property
    def schema(self) -> pa.Schema:
        """The types of the rows."""
        return pa.schema([(name, values.type) for name, values in zip(self.names, self.values, strict=True)])

    @property
    def distinct(self) -> pa.Table:
        """The distinct rows, each of them once."""
        return pa.table(
            [values.take(codes) for values, codes in zip(self.values, self.codes.T, strict=True)], self.schema
        )

    def pieces(self, size: int, *, as_codes: bool = False) -> Iterator[pa.Table]:
        """Yield the rows in tables of ``size`` rows.

        ``as_codes``: texts come as dictionaries of the values in that table, in the order of their first appearance, if
        a Parquet writer makes the same bytes of them as of the texts.
        """
        coded = [as_codes and self._is_written_alike(j, size) for j in range(len(self.names))]
        with ThreadPoolExecutor(1) as pool:  # the next table is made while one is written
            coming: Future[pa.Table] | None = None
            for first, copies in copies_in_pieces(self.counts, size):
                before, coming = coming, pool.submit(self._piece, first, copies, coded)
                if before is not None:
                    yield before.result()
            if coming is not None:
                yield coming.result()

    def _piece(self, first: int, copies: Counts, coded: Sequence[bool]) -> pa.Table:
        columns = []
        for j, values in enumerate(self.values):
            codes = self.codes[first : first + len(copies), j]
            columns.append(dictionary_of(values, codes, copies) if coded[j] else values.take(np.repeat(codes, copies)))
        return pa.table(columns, names=list(self.names))

    def _is_written_alike(self, j: int, size: int) -> bool:
        """Return whether a Parquet file has the same bytes if a column of texts is written as dictionaries.

        A writer stores codes with as many bits as it needs for the values seen so far, but for the whole dictionary if
        it is given one: that must not matter after the first page.
        """
        values = self.values[j]
        if not pa.types.is_string(values.type) or values.nbytes >= DICTIONARY or not self.codes[:, j].all():
            return False  # a writer takes nulls in dictionaries for values when it looks for the smallest one
        for first, copies in copies_in_pieces(self.counts, size):
            codes = self.codes[first : first + len(copies), j]
            n_early = int(np.searchsorted(np.cumsum(copies), PAGE)) + 1
            if code_bits(codes[:n_early], len(values)) != code_bits(codes, len(values)):
                return False
        return True


def code_bits(codes: NDArray[np.int32], n_values: int) -> int:
    """Return how many bits number the distinct values; 0 for one value."""
    return int(np.count_nonzero(np.bincount(codes, minlength=n_values)) - 1).bit_length()


def dictionary_of(values: pa.Array, codes: NDArray[np.int32], copies: Counts | None = None) -> pa.DictionaryArray:
    """Return repeated values, none of them null, as a dictionary of those that occur, by first appearance."""
    firsts = np.full(len(values), len(codes))
    firsts[codes[::-1]] = np.arange(len(codes))[::-1]  # the last assignment is that of the first appearance
    present = np.argsort(firsts, kind="stable")[: np.count_nonzero(firsts < len(codes))]
    renumbered = np.zeros(len(values), np.int32)
    renumbered[present] = np.arange(len(present), dtype=np.int32)
    numbers = renumbered[codes] if copies is None else np.repeat(renumbered[codes], copies)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), values.take(present))


def rows_from_counts(groups: Groups, names: Sequence[str], seed: int) -> RunLengthRows:
    """Return the rows that were counted, in hash order; ``groups`` may list equal rows several times."""
    columns = [CodedColumn.of(groups.table[name]) for name in names]
    codes = np.stack([column.codes for column in columns]).T
    class_of, firsts = group(packed(codes))
    counts = sum_by_class(np.asarray(groups.table[groups.weight]).astype(np.int64), class_of, len(firsts))
    unordered = RunLengthRows(tuple(names), codes[firsts], tuple(column.values for column in columns), counts)
    order = order_of_distinct(unordered.distinct, seed)
    return RunLengthRows(unordered.names, unordered.codes[order], unordered.values, counts[order])
