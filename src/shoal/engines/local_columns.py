"""A table in memory, and queries about its columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.engines.base import Groups, Rows
from shoal.engines.dependence import (
    Dependence,
    Numbers,
    SmallClasses,
    Spread,
    TellingPair,
    dependence_of,
    numbered,
    small_classes_of,
    spread_of,
    tallied_with_nulls,
)
from shoal.engines.sql import unused
from shoal.errors import DataError, MissingValueError
from shoal.notation import codec
from shoal.policy import Policy
from shoal.tables.frequency import Counts, packed


class LocalColumns:
    """Rows, each of which may represent several records."""

    def __init__(self, table: pa.Table, weights: Counts | None = None) -> None:
        require_names_apart(table.column_names)
        self.table = table
        self.weights = weights  # the number of records of each row, if an engine has counted them already
        self._remember()

    def _remember(self) -> None:
        self.coded = cache(self._coded)
        self.numbered = cache(self._numbers)  # cheaper than coded, if texts do not matter
        self._coded_columns: dict[str, codec.Coded] = {}  # columns that are coded already

    def __getstate__(self) -> dict[str, Any]:
        computed = ("coded", "numbered", "_coded_columns")
        return {name: value for name, value in vars(self).items() if name not in computed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._remember()

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.table.column_names)

    @property
    def text_columns(self) -> list[str]:
        """The columns that contain texts."""
        return [field.name for field in self.table.schema if is_text(field.type)]

    @property
    def n_records(self) -> int:
        """The number of records of the table."""
        return self.table.num_rows if self.weights is None else int(self.weights.sum())

    def _records(self, rows: NDArray[np.bool_]) -> int:
        return int(rows.sum() if self.weights is None else self.weights[rows].sum())

    def _coded(self, column: str) -> codec.Coded:
        coded = self._coded_columns[column] = codec.encode_texts(column, self.table[column])
        return coded

    def _numbers(self, column: str) -> Numbers:
        kind = self.table.schema.field(column).type
        if column in self._coded_columns and is_text(kind):  # each text has its own code
            return self.coded(column).codes
        return numbered(self.table[column])

    def persons(self, policy: Policy) -> NDArray[np.int32] | None:
        """Return the person of each record if the policy names an entity column."""
        if policy.release.entity is None:
            return None
        codes = self.coded(policy.release.entity).codes
        if missing := self._records(codes < 0):
            raise MissingValueError(
                f"column {policy.release.entity!r}: {missing} of {self.n_records} records have no value",
                "fill the entity column, or remove these records",
            )
        return codes

    def weighed(self, person: str | None = None) -> Groups:
        """Return the rows with their numbers of records; ``person`` is the column that identifies people."""
        weights = np.ones(self.table.num_rows, np.int64) if self.weights is None else self.weights
        weight = unused("n", self.columns)
        return Groups(self.table.append_column(weight, pa.array(weights)), weight, person)

    def countable(self, policy: Policy | None = None) -> Rows | Groups:
        """Return the input of a second count: the rows, or the tuples with their counts."""
        if self.weights is None:
            return Rows(self.table, None if policy is None else self.persons(policy))
        return self.weighed(None if policy is None else policy.release.entity)

    def groups(self, names: Sequence[str]) -> Groups:
        """Return the distinct tuples of some columns, and the number of records of each."""
        weighed = self.weighed()
        grouped = weighed.table.group_by(list(names)).aggregate([(weighed.weight, "sum")])
        return Groups(grouped.rename_columns([*names, weighed.weight]), weighed.weight)

    def n_tuples(self, names: Sequence[str]) -> int:
        """Count the distinct tuples of some columns."""
        return int(self.groups(names).table.num_rows)

    def n_distinct(self, names: Sequence[str]) -> dict[str, int]:
        """Count the distinct values of each of some columns, without nulls."""
        return {name: len(self.coded(name).texts) for name in names}

    def some_values(self, name: str, n: int) -> tuple[pa.ChunkedArray, int, int]:
        """Return at most ``n`` values of a column, always the same; the number of non-null and of all records."""
        coded = self.coded(name)
        return pa.chunked_array([coded.values[:n]]), self._records(coded.codes >= 0), self.n_records

    def crowds(self, names: Sequence[str]) -> tuple[int, int, int, int]:
        """Count records, tuples of some columns, records with a unique tuple, and pairs with equal tuples."""
        groups = self.groups(names)
        n = np.asarray(groups.table[groups.weight]).astype(np.int64)
        return int(n.sum()), len(n), int((n == 1).sum()), int((n * (n - 1) // 2).sum())

    def spreads(self, names: Sequence[str]) -> dict[str, Spread]:
        """Count how well each of some columns distinguishes the records."""
        return {name: spread_of(self.numbered(name), self.weights) for name in names}

    def dependences(self, pairs: Sequence[TellingPair]) -> dict[TellingPair, Dependence]:
        """Count how far the first column of each pair determines the second."""
        return {
            (first, second): dependence_of(self.numbered(first), self.numbered(second), self.weights)
            for first, second in pairs
        }

    def frequencies(self, name: str) -> Counts:
        """Count how often each value of a column occurs, most frequent first; null is a value."""
        counts = tallied_with_nulls(self.numbered(name), self.weights)
        return np.sort(counts[counts > 0])[::-1]

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the distinct values of a column as text."""
        return self.coded(name).texts

    def small_classes(self, names: Sequence[str], person: str | None, k: int) -> SmallClasses:
        """Count the persons in classes with fewer than ``k``: those with equal values, or nulls, in some columns."""
        codes = np.stack([self.numbered(name).astype(np.int32) + 1 for name in names]).T
        class_of, _ = group(packed(codes))
        return small_classes_of(class_of, None if person is None else self.numbered(person), self.weights, k)


def is_text(kind: pa.DataType) -> bool:
    """Return whether the values of a column are texts, in any storage type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def require_names_apart(names: list[str]) -> None:
    """Reject names that differ only in case: SQL, which recounts the release, treats ``id`` and ``ID`` as equal."""
    spelling_of: dict[str, str] = {}
    for name in names:
        if (other := spelling_of.setdefault(name.lower(), name)) != name:
            raise DataError(f"columns {other!r} and {name!r} differ only in case", "rename one of them")


def repeated_rows(rows: pa.Table, weights: Counts) -> pa.Table:
    """Return a tally with as many rows as there are records."""
    return rows.take(pa.array(np.repeat(np.arange(len(rows)), weights)))
