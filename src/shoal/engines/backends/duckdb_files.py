"""Files and folders that DuckDB reads back after they were written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from shoal.engines.backends.base import Judge
from shoal.engines.files import formats, sql_files
from shoal.engines.files.folders import write_folder
from shoal.engines.files.formulas import Formulas
from shoal.engines.files.parquet_parts import parquet_parts
from shoal.engines.files.read_back import typed_as
from shoal.engines.repeated import RowsInOrder, WrittenDifferentlyError

if TYPE_CHECKING:
    from shoal.engines.backends.duckdb import DuckDB


def write_in_order(
    place: DuckDB, rows: RowsInOrder, path: Path, force: bool, judge: Judge, formulas: Formulas | None
) -> str:
    """Write rows in pieces; a Parquet file gets its texts as codes, if that makes the same bytes."""
    is_parquet = path.suffix.lower() in formats.PARQUET
    pieces = rows.pieces(formats.ROW_GROUP, as_codes=is_parquet)
    try:
        return write_pieces(place, pieces, rows.schema, path, force, judge, formulas, in_row_groups=is_parquet)
    except WrittenDifferentlyError:
        pieces = rows.pieces(formats.ROW_GROUP)
        return write_pieces(place, pieces, rows.schema, path, force, judge, formulas, in_row_groups=is_parquet)


def write_pieces(
    place: DuckDB,
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
    if path.suffix.lower() not in formats.TEXT + formats.PARQUET:

        def verify_folder(aside: Path) -> None:
            with place.failing("read the written files back"):
                judge(place.view(sql_files.parquet_files(parquet_parts(aside))))

        write_folder(pieces, path, force, verify_folder)
        return ""
    names = schema.names

    def verify(written: Path) -> None:
        with place.failing("read the written file back"):
            source = sql_files.sql_source(written, place.dialect, names if formulas is None else formulas.names(names))
            plain = source if formulas is None else formulas.undone(source, names)
            judge(place.view(plain), lambda groups: typed_as(groups, schema))

    tables = pieces if formulas is None else map(formulas.escaped, pieces)
    return formats.write_table_file(
        tables,
        path,
        dialect=place.dialect_written,
        force=force,
        verify=verify,
        in_row_groups=in_row_groups,
        commas=place.commas,
    )
