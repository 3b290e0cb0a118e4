"""What differs between the engines behind Ibis tables: fetching, uploading, joining and writing.

A release is written under a temporary name, counted there, and only then renamed into place: tables in PostgreSQL and
DuckDB in one transaction, files and folders by renaming.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.connection_errors import driver_errors, failure, safe_uri
from shoal.engines.formats import atomic_files
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.read_back import plain_schema
from shoal.engines.run_length_rows import RunLengthRows
from shoal.engines.sql import quoted
from shoal.errors import DataError, OutputError, ShoalError, already_there
from shoal.policy import Policy

Context = contextlib.AbstractContextManager[None]
Judge = Callable[..., None]  # (table as written, function that restores the types of texts)

TABLE = "table:"


class Backend:
    """Tables that Ibis runs expressions on, and what databases have in common: they write in one transaction.

    A backend of its own overrides what its database does in another way.
    """

    name = ""
    keeps_order = False  # whether the rows of a file can be read in their order in the file
    writes_files = False  # whether ``write_rows`` writes rows that are put in order by this process

    @property
    def shortage(self) -> str:
        """Return a note if the memory limit cannot be met; a server has none that is set here."""
        return ""

    @classmethod
    def connected(
        cls, uri: str, *, table: str | None, parquet: str | None, memory: str | None, read_only: bool
    ) -> tuple[Backend, ir.Table, str | None]:
        """Resolve a URI to the backend, its table and, if it names a folder, the folder to read."""
        public_uri = safe_uri(uri)
        if table is None:
            raise DataError(f"{public_uri}: which table?", "name it: patients, or schema.patients", option="--table")
        with driver_errors(public_uri):
            backend = cls.reached(uri, memory, read_only)
        return backend, backend.opened(table, public_uri), None

    @classmethod
    def reached(cls, uri: str, memory: str | None, read_only: bool) -> Backend:
        """Connect to the database; ``memory`` limits a database in this process, ``read_only`` is for one in a file."""
        return cls(ibis.connect(uri))

    def opened(self, table: str, public_uri: str = "") -> ir.Table:
        """Open another table of the same database by name."""
        schema, name = schema_and_name(table)
        try:
            return self.ibis.table(name, database=schema)
        except ibis.common.exceptions.TableNotFound:
            raise DataError(
                f"{public_uri or self.name} has no table {table!r}",
                'write schema.name where it is not in the search path, "na.me" where it has a point in it; '
                "capitals count",
            ) from None
        except Exception as error:
            raise failure(public_uri or self.name, f"open the table {table!r}", error) from None

    def __init__(self, backend: Any) -> None:
        self.ibis = backend

    def plain(self, column: Any, *, key: bool) -> Any:
        """Normalize a column so that equal values compare equal: no NaN, no -0.0, and text where Arrow has no type.

        A ``key`` must also be equal after a round trip.
        """
        kind = column.type()
        if kind.is_floating():
            return ibis.ifelse(column.isnan(), ibis.null(kind), column + 0.0).cast(kind)
        if kind.is_uuid() or kind.is_inet() or kind.is_macaddr() or kind.is_unknown():
            return column.cast(str)
        if kind.is_nested() or kind.is_binary() or kind.is_json() or kind.is_interval() or kind.is_geospatial():
            raise DataError(
                f"column {column.get_name()!r} of type {kind} does not hold one plain value per cell",
                "convert the column to text, numbers or dates first, or remove it",
            )
        return column

    def as_stored(self, column: Any) -> Any:
        """Return texts that differ wherever the stored cells differ, also where ``plain`` makes them equal."""
        return column.cast(str)

    def is_same(self, left: Any, right: Any) -> Any:
        """Return whether two values are equal or both null, as a condition that the database can hash."""
        return left.identical_to(right)

    def largest(self, column: Any, n: int) -> Any:
        """Return the ``n`` largest values of a group as an array; None where the backend has no such aggregate."""
        return None

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a query into memory."""
        with self.reading():
            return expression.to_pyarrow()

    def repeats(self, expression: ir.Table, n_rows: int) -> bool:
        """Return whether a query seems to return few distinct rows that fit in memory; only where files are written."""
        return False

    def integers(self, query: str) -> list[tuple[int, ...]]:
        """Run a query in the dialect of the database, which returns a few rows of integers."""
        with self.reading():
            return list(self.ibis.con.execute(query).fetchall())

    def in_order(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a file in their order in the file, if the backend ``keeps_order``."""
        return self.fetch(expression)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """Upload a small table to join with, as a temporary one that disappears with the connection."""
        with self.failing("take the mapping"):
            uploaded = self.ibis.create_table(f"shoal_{secrets.token_hex(8)}", table, temp=True)
            return uploaded.cast(dict(types)) if types else uploaded

    def check_target(self, target: str, force: bool) -> None:
        """Raise the errors that ``write`` would raise about its target, before the long computation."""
        self.require_free(target, force)

    def write_as(self, policy: Policy, names: Sequence[str]) -> None:
        """Decide in which dialect a CSV file is written; databases have none."""

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write, let ``judge`` count the table within the same transaction, then commit; return the hash of a file.

        ``formulas`` escapes formulas in a text file.
        """
        self.check_target(target, force)
        schema, name = self.table_named(target)
        goal = ".".join(quoted(part) for part in (schema, name) if part)
        with self.failing("write the release"), self.transaction() as run:
            if force:
                run(f"DROP TABLE IF EXISTS {goal}")
            run(f"CREATE TABLE {goal} AS {ibis.to_sql(expression, dialect=self.ibis.name)}")
            judge(self.ibis.table(name, database=schema))
        return ""

    def write_rows(
        self, rows: RunLengthRows, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write rows that were made here to a file or folder, if the backend ``writes_files``."""
        raise NotImplementedError(f"{self.name} writes no files")

    def arrow_types(self, expression: ir.Table) -> pa.Schema:
        """Return the types in which the rows of a query are written to a file."""
        return plain_schema(expression.schema().to_pyarrow())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[[str], Any]]:
        """Return a context whose statements are all undone if one of them fails."""
        execute = self.ibis.con.execute
        execute("BEGIN")
        try:
            yield execute
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                execute("ROLLBACK")
            raise

    def reading(self) -> Context:
        """Return the context of a query."""
        return self.failing("read")

    @contextlib.contextmanager
    def failing(self, attempt: str) -> Iterator[None]:
        """Convert errors of the driver to errors of shoal, without their texts."""
        try:
            yield
        except (ShoalError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise failure(self.name, attempt, error) from None

    def require_free(self, target: str, force: bool) -> None:
        """Raise an error if the table exists and may not be replaced."""
        schema, name = self.table_named(target)
        with self.failing("look for the table to write"):
            if not force and self.folded(name) in map(self.folded, self.tables(schema)):
                raise already_there(target)

    def tables(self, schema: str | None) -> list[str]:
        """Return the names of the existing tables."""
        return list(self.ibis.list_tables(database=schema))

    def folded(self, name: str) -> str:
        """Normalize a table name for comparison."""
        return name.lower()

    def is_table(self, target: str, name: str, schema: str | None) -> bool:
        """Return whether a target is that table; without a schema, it is in the first one of the search path."""
        if not target.startswith(TABLE):
            return False
        target_schema, target_name = self.table_named(target)
        if self.folded(name) != self.folded(target_name):
            return False
        with self.failing("look for the table to write"):
            first = str(self.ibis.current_database)
        return self.folded(schema or first) == self.folded(target_schema or first)

    def resolved(self, path: str) -> PurePath:
        """Return a canonical path, the same for every spelling."""
        with atomic_files.output_errors(Path(path)):
            return Path(path).resolve()

    def table_named(self, target: str) -> tuple[str | None, str]:
        """Return the schema and name in ``table:schema.name``."""
        if not target.startswith(TABLE):
            raise OutputError(f"{self.name} writes tables, not {target}", "name one, such as table:patients_release")
        schema, name = schema_and_name(target.removeprefix(TABLE))
        if not name:
            raise OutputError("no name after 'table:'", "name the table, such as table:patients_release")
        return schema, name


def schema_and_name(table: str) -> tuple[str | None, str]:
    """Return the schema and name in ``schema.name``; a part that contains a point is in double quotes, as in SQL."""
    part = r'"(?:[^"]|"")+"'
    if parts := re.fullmatch(rf"(?:({part}|[^\".]+)\.)?({part})", table):
        schema, name = parts.groups()
        return _unquoted(schema) if schema else None, _unquoted(name)
    schema, _, name = table.rpartition(".")
    return _unquoted(schema) if schema else None, name


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 2 and part[0] == part[-1] == '"' else part
