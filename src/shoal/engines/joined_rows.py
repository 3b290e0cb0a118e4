"""Rows of a file that DuckDB joins with their recoded tuples and sorts, with a number in place of each tuple.

The columns of a tuple are known here: in the query, one number stands for all of them, so there is less to sort and to
fetch, and a Parquet file gets its texts as codes. The rows, their order and the bytes of the file are those of the join
that returns all columns.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.engines.backends.duckdb_direct import View
from shoal.engines.coded_rows import CodedColumn
from shoal.engines.formats import table_files
from shoal.engines.local import LocalEngine
from shoal.engines.row_order import hashed_text
from shoal.engines.run_length_rows import DICTIONARY, PAGE, WrittenDifferentlyError, code_bits, dictionary_of
from shoal.engines.sql import quoted, unused
from shoal.tables.frequency import ClassOf, Counts, packed

SURE = 30  # expected copies of a value in a page, without one of which it is in a page once in 10^13 times
PIECE = 2**17  # rows fetched at a time


@dataclass(frozen=True, eq=False)
class JoinedRows:
    """A query that returns rows in the order of the release, and the values that its numbers stand for."""

    view: View
    query: str
    number: str  # the column with the number of the released tuple
    schema: pa.Schema  # the types of the released columns
    tuples: Mapping[str, CodedColumn]  # the columns that the number stands for, by number
    counts: Counts  # the expected number of records of each tuple

    def pieces(self, size: int, *, as_codes: bool = False) -> Iterator[pa.Table]:
        """Yield the rows in tables of ``size`` rows, the next of which is made while one is written."""
        coded: set[str] | None = None if as_codes else set()
        # Closed, also if not all rows are asked for: DuckDB answers no other query before.
        with closing(self.view.in_pieces(self.query, PIECE)) as fetched, ThreadPoolExecutor(1) as pool:
            groups = table_files.row_groups(fetched, size)

            def next_piece() -> pa.Table | None:
                nonlocal coded
                if (rows := next(groups, None)) is None:
                    return None
                if coded is None:
                    n_drawn = _drawn_in_a_page(np.asarray(rows[self.number]))
                    coded = {name for name in self.tuples if self._is_surely_written_alike(name, n_drawn)}
                return self._decoded(rows, coded)

            coming = pool.submit(next_piece)
            while (table := coming.result()) is not None:
                coming = pool.submit(next_piece)
                yield table

    def _decoded(self, rows: pa.Table, coded: set[str]) -> pa.Table:
        """Return rows with the values of their tuples."""
        number = np.asarray(rows[self.number])
        columns = []
        for name in self.schema.names:
            if name not in self.tuples:
                columns.append(rows[name])
                continue
            column = self.tuples[name]
            codes = column.codes[number]
            if name not in coded:
                columns.append(column.values.take(pa.array(codes)))
                continue
            n_values = len(column.values)
            if code_bits(codes[:PAGE], n_values) != code_bits(codes, n_values):
                raise WrittenDifferentlyError
            columns.append(dictionary_of(column.values, codes))
        return pa.table(columns, names=self.schema.names)

    def _is_surely_written_alike(self, name: str, n_drawn: float = PAGE) -> bool:
        """Return whether a Parquet file will most likely have the same bytes if a column of texts is written as codes.

        As in ``Repeated``, the first page of a row group must need as many bits for its codes as the others. Rows are
        in the order of a hash: a value that is frequent enough is in every page, of which ``n_drawn`` rows differ.
        """
        column = self.tuples[name]
        if not pa.types.is_string(column.values.type) or column.values.nbytes >= DICTIONARY or not column.codes.all():
            return False
        records = sum_by_class(self.counts, column.codes.astype(np.int64), len(column.values))
        frequent = records * n_drawn >= SURE * records.sum()
        return (int(frequent.sum()) - 1).bit_length() == (int((records > 0).sum()) - 1).bit_length() and frequent.any()


def _drawn_in_a_page(number: NDArray[np.int32]) -> float:
    """Return how many rows of a page differ, judging by the first rows: equal ones are next to each other."""
    first_page = number[:PAGE]
    return PAGE * (1 + int(np.count_nonzero(np.diff(first_page)))) / max(1, len(first_page))


def joined_rows(
    view: View,
    keys: Sequence[str],
    tuples: LocalEngine,
    part_of: ClassOf,
    changed: Mapping[str, pa.Array],
    is_kept: NDArray[np.bool_],
    names: Sequence[str],
    seed: int,
) -> JoinedRows | None:
    """Join the rows of a view with their recoded ``tuples``, which have equal ``keys``, and sort them.

    Return None if a column has a type that is left to Ibis.
    """
    types = view.arrow_types(names)
    source = view.normalized(list(dict.fromkeys((*keys, *names))))
    if types is None or source is None:
        return None
    firsts, part, counts = _distinct(tuples, keys, part_of, is_kept)
    columns = {
        name: CodedColumn.of(
            pa.chunked_array([changed[name].take(pa.array(part))])
            if name in changed
            else tuples.table[name].take(pa.array(firsts))
        )
        for name in keys
        if name in names
    }
    schema = pa.schema([(f.name, columns[f.name].values.type if f.name in columns else f.type) for f in types])
    if any(schema.field(name).type != types.field(name).type for name in columns if name not in changed):
        return None
    codes = np.stack([column.codes for column in columns.values()]).T
    class_of, first_of_class = group(packed(codes))
    number, mapping = unused("shoal_number", names), f"shoal_{secrets.token_hex(8)}"
    joined = {f"k{j}": tuples.table[name].take(pa.array(firsts)) for j, name in enumerate(keys)}
    joined |= {f"l{j}": columns[name].decoded() for j, name in enumerate(keys) if name in changed}
    view.register(mapping, pa.table(joined | {"n": pa.array(class_of.astype(np.int32))}))
    labels = {name: f"t.l{j}" for j, name in enumerate(keys) if name in changed}
    selected = ", ".join(f"{labels.get(name, f's.{quoted(name)}')} AS {quoted(name)}" for name in names)
    conditions = (
        f"s.{quoted(name)} IS NOT DISTINCT FROM CAST(t.k{j} AS {view.types[name]})" for j, name in enumerate(keys)
    )
    other_columns = [name for name in names if name not in columns]
    floats = [name for name in names if pa.types.is_floating(schema.field(name).type)]
    query = (
        f"SELECT {', '.join(map(quoted, [number, *other_columns]))} FROM ("
        f"SELECT {selected}, t.n AS {quoted(number)} FROM ({source}) AS s "
        f"JOIN {mapping} AS t ON {' AND '.join(conditions)}"
        f") ORDER BY {', '.join([f'md5({hashed_text(schema, seed)})', *map(quoted, floats)])}"
    )
    return JoinedRows(
        view,
        query,
        number,
        schema,
        {name: column.take(first_of_class) for name, column in columns.items()},
        sum_by_class(counts, class_of, len(first_of_class)),
    )


def _distinct(
    tuples: LocalEngine, keys: Sequence[str], part_of: ClassOf, is_kept: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Counts]:
    """Return one tuple for each combination of keys that is released, its part, and its number of records."""
    columns = [tuples.numbered(name) + 1 for name in keys]
    class_of, firsts = group(packed(np.stack([*columns, part_of]).T))
    weights = np.ones(len(part_of), np.int64) if tuples.weights is None else tuples.weights
    counts = sum_by_class(weights.astype(np.int64), class_of, len(firsts))
    part = part_of[firsts]
    chosen = is_kept[part]
    return firsts[chosen], part[chosen], counts[chosen]
