"""Open an engine for what a user names: a URI, files, a folder, or an Ibis table."""

from __future__ import annotations

import hashlib
import os
import secrets
from functools import partial
from pathlib import Path
from typing import Any

import ibis
import pyarrow.parquet as pq

from shoal.engines.backends import BACKENDS, backend_class, schemes
from shoal.engines.backends.duckdb import DuckDB
from shoal.engines.base import Engine
from shoal.engines.formats import sql_files, table_files
from shoal.engines.formats.formulas import unescaped_source
from shoal.engines.formats.layout import Layout, Raw, decompressed_chunks, layout_of, rewritten
from shoal.engines.formats.parquet_parts import parquet_parts, require_equal_schemas
from shoal.engines.ibis import IbisEngine
from shoal.engines.local_columns import require_names_apart
from shoal.engines.memory import parse_size
from shoal.engines.scratch import spilling
from shoal.engines.sql import quoted
from shoal.errors import DataError


def engine_of_expression(table: Any) -> IbisEngine:
    """Return the engine of an Ibis table, found by the connection of the table."""
    if isinstance(table, IbisEngine):
        return table
    if not isinstance(table, ibis.expr.types.Table):
        raise DataError("an Ibis expression that is no table", "pass the table, not a column of it")
    try:
        connection = table.get_backend()
    except ibis.common.exceptions.IbisError:
        raise DataError(
            "the Ibis table has no connection", "make it with con.table(…) or con.read_parquet(…)"
        ) from None
    if connection.name not in BACKENDS:
        raise DataError(
            f"no engine for the Ibis backend {connection.name!r}", f"backends: {', '.join(sorted(BACKENDS))}"
        )
    return IbisEngine(table, backend_class(connection.name)(connection))


def connected(
    uri: str,
    *,
    table: str | None = None,
    parquet: str | None = None,
    memory: str | None = None,
    read_only: bool = False,
) -> IbisEngine:
    """Return the engine for a URI: postgresql://…, duckdb://file, spark://host:port or spark://local[2].

    A file that is opened ``read_only`` can be read by other processes meanwhile.
    """
    name = schemes()[uri.partition("://")[0]]  # urllib rejects local[2] as an address
    backend, rows, source = backend_class(name).connected(
        uri, table=table, parquet=parquet, memory=memory, read_only=read_only
    )
    return IbisEngine(rows, backend, source=source)


def neighbour(engine: Engine, table: str) -> IbisEngine:
    """Open another table of the same database."""
    if not isinstance(engine, IbisEngine):
        raise TypeError("no other table is beside rows in memory")
    return IbisEngine(engine.backend.opened(table), engine.backend)


# ── files, out of core ──────────────────────────────────────────────────────────────────────────────────────


def from_files(
    path: Path,
    *,
    memory: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> IbisEngine:
    """Open a CSV or Parquet file, or a folder of Parquet files, with DuckDB; ``memory`` is a size such as 4GB."""
    budget = _bytes(memory)
    database = ibis.duckdb.connect(**spilling())
    layout: Layout | None = None
    notes: tuple[str, ...] = ()
    if path.is_dir() or path.suffix.lower() in table_files.PARQUET:
        source, notes = _parquet_source(path)
    else:
        raw = partial(decompressed_chunks, path)
        layout = layout_of(raw, path.name, separator=separator, encoding=encoding, header=header)
        require_names_apart(list(layout.names))
    backend = DuckDB(database, None if layout is None else layout.dialect, budget)
    with backend.failing(f"read {path.name}"):
        if layout is not None:
            source, notes = text_source(database.con, path, layout)
        table = backend.view(source)
    return IbisEngine(
        table,
        backend,
        notes=notes,
        source=path,
        fingerprint=_hashed(path),
        records=None if layout is None else layout.records,
    )


def text_source(connection: Any, path: Path, layout: Layout) -> tuple[str, tuple[str, ...]]:
    """Return a DuckDB table expression for a scanned CSV file, with notes; it must return every scanned record."""
    raw = partial(decompressed_chunks, path)
    plain = layout.plain and path.suffix.lower() != ".gz"
    source = sql_files.sql_source(path if plain else _copied(raw, path.name, layout), None, layout.names, layout=layout)
    source, unescape_notes, n = unescaped_source(
        lambda query: connection.execute(query).fetchall()[0], source, layout.names
    )
    table_files.require_records(path.name, n, layout.records)
    return source, layout.notes + unescape_notes


def _parquet_source(path: Path) -> tuple[str, tuple[str, ...]]:
    """Return a DuckDB table expression for Parquet files, with notes; reject columns that the local engine rejects."""
    paths = parquet_parts(path) if path.is_dir() else [path]
    if not paths:
        raise DataError(f"{path} is a directory without .parquet files")
    notes: dict[str, None] = {}
    finer: dict[str, None] = {}
    schemas = []
    for part in paths:
        try:
            schema = pq.read_schema(part)
        except Exception:
            message = f"{part.name} is not a complete Parquet file"
            raise DataError(message, "write it again, or rename it if it is CSV") from None
        notes |= dict.fromkeys(table_files.parquet_notes(schema))
        finer |= dict.fromkeys(table_files.nanoseconds(schema))
        schemas.append((part.name, schema))
    require_equal_schemas(schemas)
    source = sql_files.parquet_files(paths) if path.is_dir() else sql_files.sql_source(path, None, [])
    if finer:
        coarse = ", ".join(f"CAST({quoted(name)} AS TIMESTAMPTZ) AS {quoted(name)}" for name in finer)
        source = f"(SELECT * REPLACE ({coarse}) FROM {source})"
    return source, tuple(notes)


def _copied(raw: Raw, name: str, layout: Layout) -> Path:
    """Copy the file in a form that DuckDB can read, next to its spill files: private, and deleted with the process."""
    path = Path(spilling()["temp_directory"]) / f"{secrets.token_hex(8)}.csv"
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            rewritten(raw, name, layout, file.write)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise DataError(
            f"{name} must be copied to be read, and cannot be: {error.strerror}",
            "make room in the folder for temporary files, or convert it to UTF-8 with one kind of line end",
        ) from None
    return path


def _hashed(path: Path) -> str:
    """Return the hash of a file, the same as if it were read into memory; a folder has none."""
    if path.is_dir():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bytes(memory: str | None) -> int | None:
    return None if memory is None else parse_size(memory)
