"""Files and folders that DuckDB writes in pieces, and reads back after that."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import Judge
from shoal.engines.formats import sql_files, table_files
from shoal.engines.formats.folders import write_folder
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.parquet_parts import parquet_parts
from shoal.engines.formats.read_back import plain_schema, typed_as
from shoal.engines.run_length_rows import RunLengthRows

if TYPE_CHECKING:
    from shoal.engines.backends.duckdb import DuckDB

PIECE = 2**17  # rows of a result held in memory at a time


def write_in_order(
    backend: DuckDB, rows: RunLengthRows, path: Path, force: bool, judge: Judge, formulas: Formulas | None
) -> str:
    """Write rows in pieces; a Parquet file gets its texts as codes, if that makes the same bytes."""
    is_parquet = path.suffix.lower() in table_files.PARQUET
    pieces = rows.pieces(table_files.ROW_GROUP, as_codes=is_parquet)
    return write_pieces(backend, pieces, rows.schema, path, force, judge, formulas, in_row_groups=is_parquet)


def write_pieces(
    backend: DuckDB,
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


def in_pieces(backend: DuckDB, expression: ir.Table) -> Iterator[pa.Table]:
    """Yield the rows of a query that are to be written, in tables of some size."""
    with backend.failing("write the release"):
        query = str(ibis.to_sql(expression, dialect="duckdb"))
        with closing(backend.ibis.con.sql(query).to_arrow_reader(PIECE)) as reader:  # else no other query is answered
            for batch in reader:
                yield pa.Table.from_batches([batch])
