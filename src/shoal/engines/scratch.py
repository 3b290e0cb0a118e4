"""One in-memory DuckDB per process, for counting and sorting data that Python already holds."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from shoal.engines.temporary import private_folder


def connect() -> duckdb.DuckDBPyConnection:
    """Open a separate session: its registered tables and settings are not visible to others.

    Opening a database takes about 20 ms and a session on an open one 1 ms; a release is counted several times.
    """
    return _database(os.getpid()).cursor()


@cache
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    """Return the database of this process: a child after a fork must not use its parent's threads."""
    return duckdb.connect()


_READABLE_FOLDER: ContextVar[Path | None] = ContextVar("readable_folder", default=None)


@contextmanager
def confined_to(folder: Path) -> Iterator[None]:
    """Confine the databases that are opened meanwhile to their own tables and the files of a folder, for good.

    A view that is stored in a database file can read any file of this computer.
    """
    token = _READABLE_FOLDER.set(folder)
    try:
        yield
    finally:
        _READABLE_FOLDER.reset(token)


def confine(connection: duckdb.DuckDBPyConnection) -> None:
    """Apply ``confined_to``; DuckDB refuses to change either setting again while the database is open."""
    folder = _READABLE_FOLDER.get()
    if folder is None or connection.execute("SELECT NOT current_setting('enable_external_access')").fetchone() == (1,):
        return
    text = str(folder).replace("'", "''")
    connection.execute(f"SET allowed_directories = ['{text}']; SET enable_external_access = false")


@cache
def spilling() -> dict[str, Any]:
    """Return a private folder for data that do not fit in memory, because spilled data are rows of the table.

    It is shared by all connections: a database cannot be opened twice with different settings.
    """
    folder = private_folder()
    atexit.register(folder.remove)
    # A thread gives memory that queries no longer need back to the system: --memory applies to the whole process.
    return {"temp_directory": str(folder.path), "preserve_insertion_order": False, "allocator_background_threads": True}
