"""One in-memory DuckDB per process, for counting and sorting data that Python already holds."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from typing import Any

import duckdb


def connect() -> duckdb.DuckDBPyConnection:
    """Open a separate session: its registered tables and settings are not visible to others.

    Opening a database takes about 20 ms and a session on an open one 1 ms; a release is counted several times.
    """
    return _database(os.getpid()).cursor()


@cache
def _database(_process: int) -> duckdb.DuckDBPyConnection:
    """Return the database of this process: a child after a fork must not use its parent's threads."""
    return duckdb.connect()


@cache
def spilling() -> dict[str, Any]:
    """Return a private folder for data that do not fit in memory, because spilled data are rows of the table.

    It is shared by all connections: a database cannot be opened twice with different settings.
    """
    folder = tempfile.mkdtemp(prefix="shoal-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # A thread gives memory that queries no longer need back to the system: --memory applies to the whole process.
    return {"temp_directory": folder, "preserve_insertion_order": False, "allocator_background_threads": True}
