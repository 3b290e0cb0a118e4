"""A table in a database, a cluster or files, and queries about its columns through Ibis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import Backend
from shoal.engines.base import Groups
from shoal.engines.dependence import (
    Dependence,
    SmallClasses,
    Spread,
    TellingPair,
    dependence_query,
    small_classes_query,
    spread_query,
)
from shoal.engines.frames import with_plain_types
from shoal.engines.ibis_order import md5
from shoal.engines.local import LocalEngine
from shoal.engines.local_columns import require_names_apart
from shoal.engines.sql import unused
from shoal.tables.frequency import Counts

TOGETHER = 16  # columns or pairs that are counted in one statement


class IbisColumns:
    """Rows that stay in their engine."""

    def __init__(self, table: ir.Table, backend: Backend, stand_ins: Mapping[str, ir.Table] | None = None) -> None:
        require_names_apart(list(table.columns))
        self.expression = table
        self.backend = backend
        self.stand_ins = stand_ins or {}  # if a budget raises columns, one value for all with the same label

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.expression.columns)

    @property
    def text_columns(self) -> list[str]:
        """The columns that contain texts."""
        return [name for name, kind in self.expression.schema().items() if kind.is_string()]

    def groups(self, names: Sequence[str], table: ir.Table | None = None) -> Groups:
        """Return the distinct tuples of some columns, and the number of records of each."""
        weight = unused("n", names)
        rows = self.normalized(names) if table is None else table
        counted = self.backend.fetch(rows.group_by(list(names)).agg(**{weight: rows.count()}))
        return Groups(with_plain_types(counted), weight)

    def normalized(self, keys: Sequence[str]) -> ir.Table:
        """Return the rows with values compared as in memory: no NaN, no -0.0, and ``keys`` of types that round-trip."""
        rows = self.expression.select(
            **{name: self.backend.plain(self.expression[name], key=name in keys) for name in self.columns}
        )
        inside = Inside(self.columns)
        for raised, values in self.stand_ins.items():
            joined = rows.join(values, self.backend.is_same(rows[raised], values[inside.key(0)]))
            label = values.columns[1]
            rows = joined.select(**{name: joined[label if name == raised else name] for name in self.columns})
        return rows

    def n_tuples(self, names: Sequence[str]) -> int:
        """Count the distinct tuples of some columns."""
        rows = self.normalized(names).select(*names).distinct()
        return int(self.backend.fetch(rows.aggregate(n=rows.count()))["n"][0].as_py())

    def n_distinct(self, names: Sequence[str]) -> dict[str, int]:
        """Count the distinct values of each of some columns."""
        rows = self.normalized(names)
        counts = self.backend.fetch(rows.aggregate(**{name: rows[name].nunique() for name in names}))
        return {name: int(counts[name][0].as_py()) for name in names}

    def some_values(self, name: str, n: int) -> tuple[pa.ChunkedArray, int, int]:
        """Return at most ``n`` values of a column, always the same; the number of non-null and of all records."""
        rows = self.normalized([name])
        value = rows.filter(rows[name].notnull()).select(name).distinct()
        sample = value.order_by(md5(value[name].cast(str))).limit(n)
        filled, records = unused("filled", [name]), unused("records", [name])
        counts = self.backend.fetch(rows.aggregate(**{filled: rows[name].count(), records: rows.count()}))
        return (
            with_plain_types(self.backend.fetch(sample))[name],
            int(counts[filled][0].as_py()),
            int(counts[records][0].as_py()),
        )

    def crowds(self, names: Sequence[str]) -> tuple[int, int, int, int]:
        """Count records, tuples of some columns, records with a unique tuple, and pairs with equal tuples."""
        rows = self.normalized(names)
        n = unused("n", names)
        tuples = rows.group_by(list(names)).agg(**{n: rows.count()})
        size = tuples[n]
        alone, pairs = ibis.ifelse(size == 1, 1, 0), (size * (size - 1)).cast("int64") // 2
        figures = self.backend.fetch(
            tuples.aggregate(
                records=size.sum().cast("int64"),
                tuples=tuples.count(),
                alone=alone.sum().cast("int64"),
                pairs=pairs.cast("int64").sum().cast("int64"),
            )
        )
        records, n_tuples, n_alone, n_pairs = (int(column[0].as_py()) for column in figures.columns)
        return records, n_tuples, n_alone, n_pairs

    def spreads(self, names: Sequence[str]) -> dict[str, Spread]:
        """Count how well each of some columns distinguishes the records."""
        spreads: dict[str, Spread] = {}
        for i in range(0, len(names), TOGETHER):
            batch = names[i : i + TOGETHER]
            rows = self._figures(spread_query(self._columns_sql(batch), len(batch)))
            spreads |= {name: Spread(*row) for name, row in zip(batch, rows, strict=True)}
        return spreads

    def dependences(self, pairs: Sequence[TellingPair]) -> dict[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""
        measured: dict[TellingPair, Dependence] = {}
        for i in range(0, len(pairs), TOGETHER):
            batch = pairs[i : i + TOGETHER]
            names = list(dict.fromkeys(name for pair in batch for name in pair))
            places = [(names.index(first), names.index(second)) for first, second in batch]
            rows = self._figures(dependence_query(self._columns_sql(names), places))
            measured |= {pair: Dependence(*row) for pair, row in zip(batch, rows, strict=True)}
        return measured

    def frequencies(self, name: str) -> Counts:
        """Count how often each value of a column occurs, most frequent first; null is a value."""
        groups = self.groups([name])
        return np.sort(np.asarray(groups.table[groups.weight]).astype(np.int64))[::-1]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the distinct values of a column as text."""
        return LocalEngine(self.groups([name]).table).texts(name)

    def small_classes(self, names: Sequence[str], person: str | None, k: int) -> SmallClasses:
        """Count the persons in classes with fewer than ``k``: those with equal values, or nulls, in some columns."""
        columns_sql = self._columns_sql([*names, *([] if person is None else [person])])
        (figures,) = self._figures(small_classes_query(columns_sql, len(names), k, persons=person is not None))
        return SmallClasses(*figures)

    def _columns_sql(self, names: Sequence[str]) -> str:
        """Return the query for some columns, called c0, c1, …, in the dialect of the place."""
        rows = self.normalized(names)
        return str(ibis.to_sql(rows.select(**{f"c{j}": rows[name] for j, name in enumerate(names)}), pretty=False))

    def _figures(self, query: str) -> list[tuple[int, ...]]:
        """Run a query that returns a row of integers for each thing asked, its index first; return them in order."""
        return [row[1:] for row in sorted(self.backend.integers(query))]


class Partly:
    """Columns, some of which are counted already: questions about these are not asked again."""

    def __init__(self, columns: IbisColumns, rows: LocalEngine) -> None:
        self._remote = columns
        self._local = rows
        self._spreads: dict[str, Spread] = {}

    def _is_local(self, *names: str) -> bool:
        return set(names) <= set(self._local.columns)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._remote.columns

    def spreads(self, names: Sequence[str]) -> dict[str, Spread]:
        """Count how well each of some columns distinguishes the records."""
        new = [name for name in names if name not in self._spreads]
        far = [name for name in new if not self._is_local(name)]
        self._spreads |= self._local.spreads([name for name in new if name not in far]) | self._remote.spreads(far)
        return {name: self._spreads[name] for name in names}

    def dependences(self, pairs: Sequence[TellingPair]) -> dict[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""
        far = [pair for pair in pairs if not self._is_local(*pair)]
        measured = self._local.dependences([pair for pair in pairs if pair not in far]) | self._remote.dependences(far)
        return {pair: measured[pair] for pair in pairs}

    def frequencies(self, name: str) -> Counts:
        """Count how often each value of a column occurs, most frequent first; null is a value."""
        return (self._local if self._is_local(name) else self._remote).frequencies(name)

    def small_classes(self, names: Sequence[str], person: str | None, k: int) -> SmallClasses:
        """Count the persons in classes with fewer than ``k``: those with equal values, or nulls, in some columns."""
        columns = self._local if self._is_local(*names, *([] if person is None else [person])) else self._remote
        return columns.small_classes(names, person, k)

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the distinct values of a column as text."""
        return (self._local if self._is_local(name) else self._remote).texts(name)


class Inside:
    """Names of auxiliary columns that are used inside a query and never returned."""

    def __init__(self, names_in_use: Sequence[str]) -> None:
        self._names_in_use = list(names_in_use)
        self._labels: dict[str, str] = {}
        names = ("shoal_row", "shoal_position", "shoal_part", "shoal_first", "shoal_last")
        self.row, self.position, self.part, self.first, self.last = (unused(name, names_in_use) for name in names)

    def key(self, j: int) -> str:
        """Return the name of a key column that tuples are matched by."""
        return unused(f"shoal_key_{j}", self._names_in_use)

    def label(self, column: str) -> str:
        """Return the name of the column that holds recoded values."""
        return self._labels.setdefault(column, unused(f"shoal_label_{len(self._labels)}", self._names_in_use))
