"""Tables, files and folders that DuckDB writes; files and folders in pieces, which it reads back after that."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines import memory as limits
from shoal.engines.backends.base import TABLE, Backend, Judge
from shoal.engines.formats import sql_files, table_files
from shoal.engines.formats.dialects import comma_columns, dialect_for
from shoal.engines.formats.folders import check_file_or_folder, write_folder
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.layout import Dialect
from shoal.engines.formats.parquet_parts import parquet_parts
from shoal.engines.formats.read_back import plain_schema, typed_as
from shoal.engines.run_length_rows import RunLengthRows
from shoal.policy import Policy

PIECE = 2**17  # rows of a result held in memory at a time


class DuckDBWriter(Backend):
    """A DuckDB database within a limit of memory, and what it writes."""

    writes_files = True

    def __init__(self, backend: Any, dialect: Dialect | None = None, memory: int | None = None) -> None:
        super().__init__(backend)
        self.dialect = dialect
        self.dialect_written = dialect
        self.commas: tuple[str, ...] = ()  # columns whose numbers a CSV file has with decimal commas
        self.memory = memory  # bytes, for DuckDB and for data held in Python, such as the counted tuples

    def _make_room(self) -> None:
        """Limit DuckDB to the memory that the tuples and the mapping leave free."""
        if self.memory is None:
            return
        with self.failing("share the memory"):
            ((used_bytes,),) = self.ibis.con.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
            limit = max(limits.duckdb_share(self.memory, limits.resident() - used_bytes), used_bytes)
            self.ibis.con.execute(f"SET memory_limit = '{limit}B'")

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

    def view(self, source: str) -> ir.Table:
        """Give a table expression of DuckDB a name."""
        name = f"shoal_{secrets.token_hex(8)}"
        self.ibis.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {source}")
        return self.ibis.table(name)


def write_in_order(
    backend: DuckDBWriter, rows: RunLengthRows, path: Path, force: bool, judge: Judge, formulas: Formulas | None
) -> str:
    """Write rows in pieces; a Parquet file gets its texts as codes, if that makes the same bytes."""
    is_parquet = path.suffix.lower() in table_files.PARQUET
    pieces = rows.pieces(table_files.ROW_GROUP, as_codes=is_parquet)
    return write_pieces(backend, pieces, rows.schema, path, force, judge, formulas, in_row_groups=is_parquet)


def write_pieces(
    backend: DuckDBWriter,
    pieces: Iterator[pa.Table],
    schema: pa.Schema,
    path: Path,
    force: bool,
    judge: Judge,
    formulas: Formulas | None,
    *,
    in_row_groups: bool = False,
) -> str:
    """Write rows to a file or a folder of Parquet files, judge what was written, then rename it into place."""
    if path.suffix.lower() not in table_files.TEXT + table_files.PARQUET:

        def verify_folder(aside: Path) -> None:
            with backend.failing("read the written files back"):
                judge(backend.view(sql_files.parquet_files(parquet_parts(aside))))

        write_folder(pieces, path, force, verify_folder)
        return ""
    names = schema.names

    def verify(written: Path) -> None:
        with backend.failing("read the written file back"):
            source = sql_files.sql_source(
                written, backend.dialect, names if formulas is None else formulas.names(names)
            )
            plain = source if formulas is None else formulas.undone(source, names)
            judge(backend.view(plain), lambda groups: typed_as(groups, schema))

    tables = pieces if formulas is None else map(formulas.escaped, pieces)
    return table_files.write_table_file(
        tables,
        path,
        dialect=backend.dialect_written,
        force=force,
        verify=verify,
        in_row_groups=in_row_groups,
        commas=backend.commas,
    )


def types_of(backend: Any, expression: ir.Table) -> pa.Schema:
    """Return the types of DuckDB's results, which name the time zone of the session."""
    query = backend.con.sql(str(ibis.to_sql(expression.limit(0), dialect="duckdb")))
    return plain_schema(query.to_arrow_table().schema)


def in_pieces(backend: DuckDBWriter, expression: ir.Table) -> Iterator[pa.Table]:
    """Yield the rows of a query that are to be written, in tables of some size."""
    with backend.failing("write the release"):
        query = str(ibis.to_sql(expression, dialect="duckdb"))
        with closing(backend.ibis.con.sql(query).to_arrow_reader(PIECE)) as reader:  # else no other query is answered
            for batch in reader:
                yield pa.Table.from_batches([batch])
