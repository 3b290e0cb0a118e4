"""DuckDB: files read out of core, and tables of a DuckDB database."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines import memory as limits
from shoal.engines.backends.base import TABLE, Backend, Context, Judge
from shoal.engines.backends.connection_errors import driver_errors
from shoal.engines.backends.duckdb_files import in_pieces, types_of, write_in_order, write_pieces
from shoal.engines.backends.duckdb_functions import maxima, shoal_bits, without_nan
from shoal.engines.formats.dialects import comma_columns, dialect_for
from shoal.engines.formats.folders import check_file_or_folder
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.layout import Dialect
from shoal.engines.formats.read_back import plain_schema
from shoal.engines.run_length_rows import RunLengthRows, few_distinct
from shoal.engines.scratch import confine, spilling
from shoal.engines.sql import quoted
from shoal.errors import DataError
from shoal.policy import Policy

TABLES_OF_FILE = """
    SELECT schema_name, table_name FROM duckdb_tables() WHERE NOT internal
    UNION ALL SELECT schema_name, view_name FROM duckdb_views() WHERE NOT internal
"""


class DuckDB(Backend):
    """Files and tables of DuckDB, processed out of core."""

    name = "DuckDB"
    keeps_order = True
    writes_files = True

    @classmethod
    def connected(
        cls, uri: str, *, table: str | None, parquet: str | None, memory: str | None, read_only: bool
    ) -> tuple[Backend, ir.Table, str | None]:
        """Resolve a URI; a file with one table needs no name for it."""
        if table is None:
            backend = cls.reached(uri, memory, read_only=True)
            with driver_errors(uri, "list its tables"):
                tables = backend.ibis.con.execute(TABLES_OF_FILE).fetchall()
            backend.ibis.disconnect()
            if len(tables) != 1:
                raise DataError(
                    f"{uri} has {len(tables)} tables: which one?",
                    "name it: patients, or schema.patients",
                    option="--table",
                )
            table = ".".join(map(quoted, tables[0]))
        return super().connected(uri, table=table, parquet=parquet, memory=memory, read_only=read_only)

    @classmethod
    def reached(cls, uri: str, memory: str | None, read_only: bool) -> DuckDB:
        """Open a database file; others can open it at the same time only if nobody writes to it."""
        path = uri.removeprefix("duckdb://")
        if not Path(path).is_file():
            raise DataError(f"{path} does not exist")
        with driver_errors(uri, "be opened"):
            try:
                backend = ibis.duckdb.connect(path, read_only=read_only, **spilling())
            except duckdb.ConnectionException:  # this process has it open the other way
                backend = ibis.duckdb.connect(path, read_only=not read_only, **spilling())
            confine(backend.con)  # before any view is looked at
            return cls(backend, memory=None if memory is None else limits.parse_size(memory))

    def __init__(self, backend: Any, dialect: Dialect | None = None, memory: int | None = None) -> None:
        super().__init__(backend)
        self.dialect = dialect
        self.dialect_written = dialect
        self.commas: tuple[str, ...] = ()  # columns whose numbers a CSV file has with decimal commas
        self.memory = memory  # bytes, for DuckDB and for data held in Python, such as the counted tuples

    def largest(self, column: Any, n: int) -> Any:
        """Return the ``n`` largest values of a group as an array, without sorting the rows."""
        return maxima(column.cast("float64"), n)

    def reading(self) -> Context:
        """Return the context of a query, for which there is room now."""
        self._make_room()
        return super().reading()

    def in_order(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows in the order of the file; by default, DuckDB's threads return them in any order."""
        self.ibis.con.execute("SET preserve_insertion_order = true")
        try:
            return self.fetch(expression)
        finally:
            self.ibis.con.execute("SET preserve_insertion_order = false")

    def _make_room(self) -> None:
        """Limit DuckDB to the memory that the tuples and the mapping leave free."""
        if self.memory is None:
            return
        with self.failing("share the memory"):
            ((used_bytes,),) = self.ibis.con.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
            limit = max(limits.duckdb_share(self.memory, limits.resident() - used_bytes), used_bytes)
            self.ibis.con.execute(f"SET memory_limit = '{limit}B'")

    @property
    def shortage(self) -> str:
        """Return a note if too much memory is in use already to meet the limit, otherwise an empty text."""
        return "" if self.memory is None else limits.shortage(self.memory)

    def plain(self, column: Any, *, key: bool) -> Any:
        """Normalize as the other backends do, but without ``isnan``."""
        return without_nan(column) if column.type().is_floating() else super().plain(column, key=key)

    def as_stored(self, column: Any) -> Any:
        """Return the bits of floats: as texts, all NaN look alike, and R marks its missing values by one of them."""
        if not column.type().is_floating():
            return super().as_stored(column)
        self.ibis.con.execute(
            "CREATE TEMP MACRO IF NOT EXISTS shoal_bits(number) AS CAST(CAST(number AS BIT) AS VARCHAR)"
        )
        return shoal_bits(column)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """Register an Arrow table, which DuckDB reads in place."""
        self.ibis.con.register(name := f"shoal_{secrets.token_hex(8)}", table)
        with self.failing("take the mapping"):
            return self.ibis.table(name).cast(dict(types)) if types else self.ibis.table(name)

    def check_target(self, target: str, force: bool) -> None:
        """Raise an error if the target exists, unless overwriting is forced."""
        self.require_free(target, force) if target.startswith(TABLE) else check_file_or_folder(Path(target), force)

    def write_as(self, policy: Policy, names: Sequence[str]) -> None:
        """Decide in which dialect a CSV file is written."""
        self.dialect_written = dialect_for(policy, self.dialect)
        self.commas = comma_columns(policy, self.dialect, names)

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write a table, a file, or a folder of Parquet files; ``formulas`` escapes formulas in a CSV file."""
        self.check_target(target, force)
        self._make_room()
        if target.startswith(TABLE):
            return super().write(expression, target, force=force, judge=judge)
        schema = plain_schema(expression.schema().to_pyarrow())
        return write_pieces(self, in_pieces(self, expression), schema, Path(target), force, judge, formulas)

    def write_rows(
        self, rows: RunLengthRows, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write a file or a folder of Parquet files."""
        self.check_target(target, force)
        self._make_room()
        return write_in_order(self, rows, Path(target), force, judge, formulas)

    def arrow_types(self, expression: ir.Table) -> pa.Schema:
        """Return the types of DuckDB's results, which name the time zone of the session."""
        with self.failing("read"):
            return types_of(self.ibis, expression)

    def repeats(self, expression: ir.Table, n_rows: int) -> bool:
        """Estimate from hashes of the rows whether few of them are distinct, and fit in half of the memory."""
        with self.reading():
            return few_distinct(self.ibis.con, str(ibis.to_sql(expression, dialect="duckdb")), n_rows, self.memory)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of the existing tables; the query that Ibis 12 uses does not work with DuckDB 2."""
        where = "current_schema()" if schema is None else "?"
        query = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {where}"
        return [name for (name,) in self.ibis.con.execute(query, [] if schema is None else [schema]).fetchall()]

    def view(self, source: str) -> ir.Table:
        """Give a table expression of DuckDB a name."""
        name = f"shoal_{secrets.token_hex(8)}"
        self.ibis.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {source}")
        return self.ibis.table(name)
