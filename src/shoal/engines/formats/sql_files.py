"""Files as tables in DuckDB's SQL, with nothing left to detection: the second path by which a release is read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from shoal.engines.formats.layout import PARQUET, Dialect, Layout, separator_of
from shoal.errors import DataError

BUFFER = 2**25  # bytes of a CSV file that DuckDB processes at a time; at least one record
PARQUET_OPTIONS = "binary_as_string = true, hive_partitioning = false, union_by_name = false, filename = false"


def sql_source(path: Path, dialect: Dialect | None, columns: Sequence[str], *, layout: Layout | None = None) -> str:
    """Return a DuckDB table expression for a file made by ``write_table_file``: CSV as VARCHAR, types not detected.

    ``found``: the scan of a file from another source, whose lines may end in LF or all in CRLF. DuckDB's messages quote
    the line that they reject: the caller must not pass them on.
    """
    lowered = [name.encode().lower() for name in columns]  # bytes: DuckDB folds ASCII letters only
    clashing = [name for name, low in zip(columns, lowered, strict=True) if lowered.count(low) > 1]
    if clashing:
        named = ", ".join(map(repr, clashing[:10]))
        raise DataError(f"column names differ only in case: {named}", "rename them: SQL cannot distinguish them")
    location = _located(path)
    if path.suffix.lower() in PARQUET:
        return f"read_parquet({location}, {PARQUET_OPTIONS})"
    if layout is None:
        longest = min(max(path.stat().st_size, 2**21), 2**28) if path.exists() else 2**28
        separator = separator_of(path, dialect)
    else:
        # Twice: a copy in plain spelling has more quotes than the file.
        longest, separator = max(2 * layout.longest + 64, BUFFER), layout.dialect.separator
    options: dict[str, str] = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in columns) + "}",
        "header": "true" if layout is None or layout.header else "false",
        "skip": "0",
        "delim": _literal(separator),
        "quote": _literal('"'),
        "escape": _literal('"'),
        "comment": "''",
        "new_line": r"'\n'",
        "nullstr": "''",
        "allow_quoted_nulls": "false",
        "null_padding": "false",
        "ignore_errors": "false",
        "strict_mode": "true",
        "encoding": "'utf-8'",
        "compression": "'none'",
        "hive_partitioning": "false",
        "union_by_name": "false",
        "filename": "false",
        "parallel": "false",  # a quoted field may hold any number of line breaks
        "max_line_size": str(longest),
        "buffer_size": str(longest),
    }
    if layout is not None and layout.plain and layout.ends == ("CRLF",):
        del options["new_line"]  # otherwise DuckDB would find no lines
    return f"read_csv({location}, {', '.join(f'{name} = {value}' for name, value in options.items())})"


def parquet_files(paths: Sequence[Path]) -> str:
    """Return a DuckDB table expression for Parquet files with equal columns: these files, whatever else is there."""
    return f"read_parquet([{', '.join(map(_located, paths))}], {PARQUET_OPTIONS})"


def _located(path: Path) -> str:
    """Return an absolute path, so that `~` is not expanded; every glob character of DuckDB is put in brackets."""
    return _literal(re.sub(r"([\[*?])", r"[\1]", str(path.absolute())))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
