"""Open an engine, in one way, for data in Python, a path or a URI.

Ibis is imported only when it is needed, because that takes a second.
"""

from __future__ import annotations

from pathlib import Path

from shoal.engines.backends import schemes
from shoal.engines.base import Engine, Groups, Query, Released, Rows
from shoal.engines.data import Data
from shoal.engines.formats.arrow_json import is_arrow_or_json
from shoal.engines.formats.office_files import is_foreign
from shoal.engines.formats.table_files import CELL_BYTES, PARQUET, cells_of, physical_memory
from shoal.engines.local import LocalEngine
from shoal.errors import DataError, no_column
from shoal.policy import Policy

DATABASES = (".duckdb", ".ddb")


def engine_of(
    data: Data | Released,
    policy: Policy | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
) -> Engine:
    """Return the engine for ``data``: a path or a URI, a frame, an Ibis table, a release, or an engine.

    Cells are parsed as the policy says, if one is given. A file is read into memory. ``header``: whether the first line
    of a CSV file has the column names; by default it must not look like a record.
    """
    if policy is not None:
        return engine_of(data, separator=separator, encoding=encoding, header=header).reading(policy)
    if isinstance(data, str | Path):
        return opened(str(data), engine="local", separator=separator, encoding=encoding, header=header)
    if isinstance(data, Released):
        return engine_of(data.table)
    if isinstance(data, LocalEngine):
        return data
    if type(data).__module__.partition(".")[0] == "ibis" or type(data).__name__ == "IbisEngine":
        from shoal.engines.connect import engine_of_expression  # takes a second to import

        return engine_of_expression(data)
    return LocalEngine.of(data)


def original_of(
    data: Data | Released, policy: Policy, *, separator: str | None = None, encoding: str | None = None
) -> Engine:
    """Return the engine for a table that is not released yet: its sensitive values as coarse as they will be."""
    return engine_of(data, policy, separator=separator, encoding=encoding).coarsened(policy)


def rows_of(data: Data | Released, policy: Policy | None = None) -> LocalEngine:
    """Open like ``engine_of``, for callers that need the rows: raise DataError if they stay in an engine."""
    return engine_of(data, policy).every_row()


def is_uri(data: str) -> bool:
    """Return whether a text is a URI and not a path."""
    scheme, mark, _ = data.partition("://")
    if not mark or not scheme.replace("+", "").isalnum():
        return False
    if scheme not in schemes():
        raise DataError(
            f"no engine for {scheme}://",
            f"known: {', '.join(f'{scheme_name}://' for scheme_name in schemes())}; Spark reads folders on hdfs:// and s3a://",
            option="--parquet",
        )
    return True


def is_database(data: str) -> bool:
    """Return whether a path names a database file of DuckDB."""
    return Path(data).suffix.lower() in DATABASES


def located(data: str, table: str | None, parquet: str | None) -> tuple[str, str | None, str | None]:
    """Split a URI at ``#``: what follows is a table, or a folder for Spark to read, which contains slashes."""
    uri, mark, named = data.rpartition("#")
    # A password stands before an @, although a # in it should be written as %23.
    if not mark or not is_uri(uri) or "@" in named or table is not None or parquet is not None:
        return data, table, parquet
    return (uri, None, named) if uri.startswith("spark:") and "/" in named else (uri, named, None)


def opened(
    data: str,
    *,
    table: str | None = None,
    parquet: str | None = None,
    engine: str = "auto",
    memory: str | None = None,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = None,
    read_only: bool = False,
) -> Engine:
    """Return the engine for a path or URI; folders, and files too large for memory, are read by DuckDB in pieces.

    A database file that is opened ``read_only`` can be read by other processes meanwhile; no table is written to it.
    """
    if is_uri(data):
        from shoal.engines.connect import connected

        uri, table, parquet = located(data, table, parquet)
        return connected(uri, table=table, parquet=parquet, memory=memory, read_only=read_only)
    if is_database(data):
        from shoal.engines.connect import connected

        return connected(f"duckdb://{data}", table=table, memory=memory, read_only=read_only)
    if table is not None or parquet is not None:
        raise DataError("table and parquet go with a URI, not with a file", "postgresql://…, duckdb://…, spark://…")
    if engine not in ("auto", "local", "duckdb"):
        raise DataError(f"unknown engine {engine!r}", "engines for files: auto, local, duckdb")
    path = Path(data)
    if not in_memory(data, engine, memory):
        if not _is_there(path):
            raise DataError(f"{path} does not exist")
        from shoal.engines.connect import from_files

        return from_files(path, memory=memory, separator=separator, encoding=encoding, header=header)
    return LocalEngine.of(path, separator=separator, encoding=encoding, header=header)


def open_second(
    data: str, rows: Engine, *, engine: str = "auto", memory: str | None = None, header: bool | None = None
) -> Engine:
    """Return the engine for a second table: like ``opened``, or ``table:name`` in the database of ``rows``."""
    if not data.startswith("table:"):
        return opened(data, engine=engine, memory=memory, header=header, read_only=True)
    if rows.in_memory:
        raise DataError(f"{data}: a file has no other tables", "name a file, or a URI: duckdb://file.db#name")
    from shoal.engines.connect import neighbour

    return neighbour(rows, data.removeprefix("table:"))


def in_memory(data: str, engine: str, memory: str | None) -> bool:
    """Return whether the rows are read into memory."""
    path = Path(data)
    if is_uri(data) or is_database(data):
        return False
    if is_foreign(path) or is_arrow_or_json(path):  # Excel and similar formats: DuckDB would read them as text
        return True
    if engine == "duckdb":
        return False
    return engine == "local" or not (_is_folder(path) or memory is not None or _large(path))


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that no file can have
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long, an unreadable folder: reading reports it
        return False


def _large(path: Path) -> bool:
    """Return whether a file may be too large: in memory a table takes several times its size, Parquet ten times."""
    memory, is_parquet = physical_memory(), path.suffix.lower() in PARQUET
    try:
        if memory is None or not path.is_file():
            return False
        if path.stat().st_size * (20 if is_parquet else 4) > memory:
            return True
        return is_parquet and _unpacked(path) > memory
    except (OSError, ValueError):
        return False


def _unpacked(path: Path) -> int:
    """Return the bytes that a Parquet file takes in memory, as far as its metadata tells: values may repeat."""
    import pyarrow.parquet as pq

    try:
        return CELL_BYTES * cells_of(pq.read_metadata(path))
    except Exception:  # reading says what is wrong with it
        return 0


def order_of(release: Engine, original: Engine | None) -> str:
    """Return what an attack on the row order lacks; a database table has no order that could reveal anything."""
    scattered = original is not None and (release.scattered or original.scattered)
    return "needs rows in one order: write the folder as one file" if scattered else ""


def order_of_release(engine: Engine, policy: Policy) -> str:
    """Return what is unknown about the order in which a release will be written."""
    if policy.release.shuffle or engine.in_memory:
        return ""
    return "the order of rows from an engine is unknown: set shuffle = true, or use the local engine"


def in_order(engine: Engine, rows: Rows | Groups, policy: Policy) -> Rows | Groups:
    """Return the rows to attack: for a file that an engine counted, in the order of the file."""
    if isinstance(rows, Rows) or not policy.limits or rows.person is not None:
        return rows
    table = engine.in_order([*policy.quasi, *policy.sensitive])
    return rows if table is None else Rows(table)


def sensitive_of(data: Data, policy: Policy) -> LocalEngine:
    """Return the sensitive columns of the original, as rows or as distinct rows with counts."""
    engine = original_of(data, policy)
    if absent := [name for name in policy.sensitive if name not in engine.columns]:
        raise no_column("the original table", absent, engine.columns)
    return engine.tally(policy.sensitive)


def population_of(policy: Policy) -> LocalEngine | None:
    """Return the population table that the policy names."""
    return None if policy.population is None else rows_of(policy.folder / policy.population, policy)


def tallied_release(rows: Rows | Query) -> LocalEngine | None:
    """Return the distinct released tuples, with their counts, of rows that stay in their engine; None for others."""
    if rows.in_memory:
        return None
    distinct, counts = rows.with_counts()
    return LocalEngine(distinct, weights=counts)
