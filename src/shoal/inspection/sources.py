"""Where the inspected table is: in memory, or in an engine that keeps its rows and answers counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from shoal.compiled.grouping import group
from shoal.engines.base import Engine
from shoal.engines.cells import Spellings, read_table
from shoal.engines.codebook import Codebook
from shoal.engines.dependence import Dependence, TellingPair, dependence_of
from shoal.engines.local_columns import is_text
from shoal.errors import DataError
from shoal.inspection.roles import RawColumn, all_numbers
from shoal.inspection.uniqueness import STRONGEST, KeyNumbers, Separation, Tuples, ranked, separation_rank, separations
from shoal.notation import codec
from shoal.tables.frequency import packed

MANY = 2_000_000  # distinct values of a column that come from an engine; of more,
SOME = 1_000  # so many are looked at
TUPLES = 5_000_000  # distinct tuples of the strongest columns that come from it; more are counted there, set by set


class TableInMemory:
    """A table in memory."""

    def __init__(self, table: pa.Table, codebook: Codebook) -> None:
        self._codebook = codebook
        if len(set(table.column_names)) < table.num_columns:
            raise DataError("two columns of the table have the same name", "rename one of them")
        self._table = table
        self._coded = {name: codec.encode_texts(name, table[name]) for name in table.column_names}

    @property
    def text_columns(self) -> list[str]:
        """The columns of texts, which may spell numbers and missing values in several ways."""
        return [field.name for field in self._table.schema if is_text(field.type)]

    def spelled(self, spellings: Spellings) -> TableInMemory:
        """Return the table with cells parsed according to their spelling."""
        table = self._table
        for name in spellings:
            table = table.set_column(table.schema.get_field_index(name), name, table[name].cast(pa.string()))
        return TableInMemory(read_table(table, spellings), self._codebook)

    def columns(self, names: Sequence[str] | None = None) -> list[RawColumn]:
        """Return the columns, or some of them, with what the guesses need."""
        return [
            RawColumn(
                name,
                coded.texts,
                _counts(coded, None),
                len(coded.codes),
                len(coded.texts),
                _numbers_rows(coded),
                label=self._codebook.columns.get(name, ""),
                categories=self._codebook.values.get(name, {}),
            )
            for name, coded in self._coded.items()
            if names is None or name in names
        ]

    def n_tuples(self, *names: str) -> int:
        """Count the distinct tuples of some columns; a null counts as a value."""
        codes = {name: self._coded[name].codes.astype(np.int64) + 1 for name in names}
        return Tuples(codes, None)(names).distinct

    def n_unique(self, names: Sequence[str]) -> int:
        """Count the records with a unique tuple of some columns."""
        if not names:
            return 0
        codes = np.column_stack([self._coded[name].codes + 1 for name in names]).astype(np.int32)
        return int((np.bincount(group(packed(codes))[0]) == 1).sum())

    def dependences(self, pairs: Sequence[TellingPair]) -> Mapping[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""
        return {(a, b): dependence_of(self._coded[a].codes, self._coded[b].codes) for a, b in pairs}

    def separations(self, columns: Sequence[RawColumn]) -> tuple[Separation, ...]:
        """Count how well columns, and pairs and triples of the strongest ones, separate the records."""
        codes = {column.name: self._coded[column.name].codes.astype(np.int64) + 1 for column in columns}
        return separations(codes, columns[0].records if columns else 0)


class TableInEngine:
    """A table whose rows stay in their engine: only its values and the tuples of its strongest columns are fetched."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def text_columns(self) -> list[str]:
        """The columns of texts, which may spell numbers and missing values in several ways."""
        return self._engine.text_columns

    def spelled(self, spellings: Spellings) -> TableInEngine:
        """Return the table with cells parsed according to their spelling."""
        return TableInEngine(self._engine.spelled(spellings))

    def columns(self, names: Sequence[str] | None = None) -> list[RawColumn]:
        """Return the columns, or some of them, with what the guesses need."""
        distinct = self._engine.n_distinct(names or self._engine.columns)
        return [self._many(name, n) if n > MANY else self._few(name) for name, n in distinct.items()]

    def _few(self, name: str) -> RawColumn:
        groups = self._engine.groups([name])
        coded = codec.encode_texts(name, groups.table[name])
        n = groups.table[groups.weight].to_numpy().astype(np.int64)
        counts, records, distinct = _counts(coded, n), int(n.sum()), len(coded.texts)
        return RawColumn(name, coded.texts, counts, records, distinct, _may_number_rows(coded.texts, records))

    def _many(self, name: str, distinct: int) -> RawColumn:
        """Inspect a column with too many values to fetch: a sample is read, and all are counted."""
        values, filled, records = self._engine.some_values(name, SOME)
        texts = codec.encode_texts(name, values).texts
        return RawColumn(name, texts, np.array([filled], np.int64), records, distinct, False, all_there=False)

    def n_tuples(self, *names: str) -> int:
        """Count the distinct tuples of some columns; a null counts as a value."""
        return self._engine.n_tuples(names)

    def n_unique(self, names: Sequence[str]) -> int:
        """Count the records with a unique tuple of some columns."""
        return self._counted(tuple(names)).unique if names else 0

    def dependences(self, pairs: Sequence[TellingPair]) -> Mapping[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""
        return self._engine.dependences(pairs)

    def separations(self, columns: Sequence[RawColumn]) -> tuple[Separation, ...]:
        """Count how well columns, and pairs and triples of the strongest ones, separate the records."""
        if not columns:
            return ()
        single = [
            Separation.of((column.name,), np.append(column.counts, [column.nulls] if column.nulls else []))
            if column.all_there
            else self._counted((column.name,))
            for column in columns
        ]
        strong = [s.columns[0] for s in sorted(single, key=separation_rank)[:STRONGEST]]
        records = columns[0].records
        if self._engine.n_tuples(strong) > TUPLES:
            return ranked(single, records, self._counted)
        rows = self._engine.tally(strong)
        codes = {name: rows.coded(name).codes.astype(np.int64) + 1 for name in strong}
        return ranked(single, records, Tuples(codes, rows.weights))

    def _counted(self, columns: tuple[str, ...]) -> Separation:
        return Separation(columns, *self._engine.crowds(columns))


def _counts(coded: codec.Coded, weights: KeyNumbers | None) -> KeyNumbers:
    """Return the number of records with each text."""
    filled = coded.codes >= 0
    counts = np.bincount(coded.codes[filled], None if weights is None else weights[filled], len(coded.texts))
    return np.asarray(counts).astype(np.int64)


def _may_number_rows(texts: Sequence[str], records: int) -> bool:
    """Return whether the values are 1, 2, 3 … or 0, 1, 2 …, in any order: rows in an engine have none."""
    if records < 3 or len(texts) != records or not all_numbers(texts):
        return False
    numbers = np.sort(np.array(texts, dtype=np.float64))
    return numbers[0] in (0, 1) and bool((np.diff(numbers) == 1).all())


def _numbers_rows(coded: codec.Coded) -> bool:
    """Return whether the values number the rows in their order."""
    if len(coded.codes) < 3 or len(coded.texts) != len(coded.codes) or not all_numbers(coded.texts):
        return False
    rows = np.array(coded.texts, dtype=np.float64)[coded.codes]
    return rows[0] in (0, 1) and bool((np.diff(rows) == 1).all())
