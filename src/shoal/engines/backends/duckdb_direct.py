"""DuckDB asked directly: Ibis's backend and its SQL dialects take a sixth of a second to load, and many runs need none.

Files are opened and counted here, and what was written is counted here, if all columns have common types: with the
results and types that Ibis returns. Everything else is asked through Ibis, which is loaded then.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from shoal.engines.formats.read_back import plain_schema
from shoal.engines.scratch import spilling
from shoal.engines.sql import quoted

if TYPE_CHECKING:
    from ibis.expr import types as ir

    from shoal.engines.backends.duckdb import DuckDB

FLOATS = ("FLOAT", "DOUBLE")
# Types whose results DuckDB and Ibis return alike, and whose values compare as they are.
COMMON = re.compile(r"VARCHAR|BOOLEAN|U?(TINYINT|SMALLINT|INTEGER|BIGINT)|DATE|TIMESTAMP|DECIMAL\(\d+,\d+\)")


class LaterBackend:
    """Ibis's backend for a database in memory, loaded as soon as anything but its connection is asked for."""

    def __init__(self) -> None:
        self.con = duckdb.connect(config=spilling())
        self.con.execute("SET TimeZone = 'UTC'; SET python_enable_replacements = false")  # as Ibis does

    @cached_property
    def _loaded(self) -> Any:
        import ibis

        return ibis.duckdb.from_connection(self.con)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loaded, name)


class View:
    """A view in DuckDB."""

    def __init__(self, backend: DuckDB, name: str) -> None:
        self.name = name
        self._backend = backend
        described = backend.ibis.con.execute(f"DESCRIBE {name}").fetchall()
        self.types = {str(column): str(kind) for column, kind, *_ in described}

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    @cached_property
    def table(self) -> ir.Table:
        """The view as an Ibis table."""
        return self._backend.ibis.table(self.name)

    def grouped(self, names: Sequence[str], weight: str) -> pa.Table | None:
        """Return the distinct tuples of some columns and their counts; None if Ibis may treat a column specially."""
        if (rows := self.normalized(names)) is None:
            return None
        by = ", ".join(map(quoted, names))
        with self._backend.reading():
            return self._fetched(f"SELECT {by}, count(*) AS {quoted(weight)} FROM ({rows}) GROUP BY {by}")

    def arrow_types(self, names: Sequence[str]) -> pa.Schema | None:
        """Return the types of some columns in results; None if Ibis may treat one of them specially."""
        if (rows := self.normalized(names)) is None:
            return None
        with self._backend.failing("read"):
            return plain_schema(self._fetched(f"{rows} LIMIT 0").schema)

    def normalized(self, names: Sequence[str]) -> str | None:
        """Return a query for some columns, without NaN and -0.0, as ``without_nan`` replaces them."""
        columns = []
        for name in names:
            kind, column = self.types[name], quoted(name)
            if kind in FLOATS:
                number = f"{column} + CAST(0 AS {kind})"
                normalized = f"CASE WHEN isfinite({column}) THEN {number} WHEN isinf({column}) THEN {number} END"
                columns.append(f"{normalized} AS {column}")
            elif COMMON.fullmatch(kind):
                columns.append(column)
            else:
                return None
        return f"SELECT {', '.join(columns)} FROM {self.name}"

    def register(self, name: str, table: pa.Table) -> None:
        """Show a table in memory to queries."""
        self._backend.ibis.con.register(name, table)

    def in_pieces(self, query: str, size: int) -> Generator[pa.Table, None, None]:
        """Yield the rows of a query that are to be written, in tables of some size."""
        with self._backend.failing("write the release"), closing(self._reader(query, size)) as reader:
            for batch in reader:
                yield pa.Table.from_batches([batch])

    def _reader(self, query: str, size: int) -> Any:
        return self._backend.ibis.con.sql(query).to_arrow_reader(size)

    def _fetched(self, query: str) -> pa.Table:
        return self._backend.ibis.con.sql(query).to_arrow_table()
