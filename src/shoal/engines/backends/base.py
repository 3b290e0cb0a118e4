"""Where an Ibis table lives, and what differs between engines: fetching, uploading, joining and writing.

A release is written aside, counted there, and only then renamed into place: in PostgreSQL and DuckDB tables in one
transaction, files and folders by rename. Drivers quote values and connection strings in their messages, so none of
them is passed on: what is told is what failed, and the code that the engine gave it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Protocol

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.files import formats
from shoal.errors import DataError, OutputError, ShoalError, already_there

Judge = Callable[..., None]  # (table as it was written, how to give text its types back)

TABLE = "table:"


class Place(Protocol):
    """What an engine must be able to do besides running an Ibis expression."""

    name: str
    backend: Any

    def plain(self, column: Any, *, key: bool) -> Any:
        """A column as it is told apart; a ``key`` must come back equal after it was here."""

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a query into memory."""

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """A small table to join with, gone with the connection."""

    def same(self, left: Any, right: Any) -> Any:
        """Whether two values are equal, or both null; a condition that the engine can hash."""

    def is_table(self, target: str, name: str, schema: str | None) -> bool:
        """Whether a target is the table of that name."""

    def resolved(self, path: str) -> PurePath:
        """A path that is the same however it was written."""

    def check_target(self, target: str, force: bool) -> None:
        """Raise what ``write`` would raise about its target, before the long work."""

    def write(self, expression: ir.Table, target: str, *, force: bool, judge: Judge) -> str:
        """Write, let ``judge`` count it, give it its name; the hash of a file, or nothing."""


class IbisPlace:
    """What most engines share."""

    name = ""

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def plain(self, column: Any, *, key: bool) -> Any:
        """No NaN, no -0.0; what has no type in Arrow is text."""
        kind = column.type()
        if kind.is_floating():
            return ibis.ifelse(column.isnan(), ibis.null(kind), column + 0.0).cast(kind)
        if kind.is_uuid() or kind.is_inet() or kind.is_macaddr() or kind.is_unknown():
            return column.cast(str)
        if kind.is_nested() or kind.is_binary() or kind.is_json() or kind.is_interval() or kind.is_geospatial():
            raise DataError(
                f"column {column.get_name()!r} of type {kind} does not hold one plain value per cell",
                "turn the column into text, numbers or dates first, or leave it out of the table",
            )
        return column

    def same(self, left: Any, right: Any) -> Any:
        """IS NOT DISTINCT FROM."""
        return left.identical_to(right)

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a query through Ibis."""
        with self.failing("read"):
            return expression.to_pyarrow()

    @contextlib.contextmanager
    def failing(self, what: str) -> Iterator[None]:
        """Turn the errors of a driver into ours, without their texts."""
        try:
            yield
        except (ShoalError, KeyboardInterrupt):
            raise
        except Exception as error:
            raise failure(self.name, what, error) from None

    def require_free(self, target: str, force: bool) -> None:
        """Raise where the table exists already, unless it may be replaced."""
        schema, name = self.table_named(target)
        with self.failing("look for the table to write"):
            if not force and self.folded(name) in map(self.folded, self.tables(schema)):
                raise already_there(target)

    def tables(self, schema: str | None) -> list[str]:
        """The names that are taken."""
        return list(self.backend.list_tables(database=schema))

    def folded(self, name: str) -> str:
        """What names of tables are told apart by."""
        return name.lower()

    def is_table(self, target: str, name: str, schema: str | None) -> bool:
        """Whether a target is the table of that name; without a schema it is in the one that is searched first."""
        if not target.startswith(TABLE):
            return False
        there, target_name = self.table_named(target)
        if self.folded(name) != self.folded(target_name):
            return False
        with self.failing("look for the table to write"):
            first = str(self.backend.current_database)
        return self.folded(schema or first) == self.folded(there or first)

    def resolved(self, path: str) -> PurePath:
        """Absolute, and without links."""
        with formats.output_errors(Path(path)):
            return Path(path).resolve()

    def table_named(self, target: str) -> tuple[str | None, str]:
        """Schema and name of ``table:schema.name``."""
        if not target.startswith(TABLE):
            raise OutputError(f"{self.name} writes tables, not {target}", "name one, such as table:patients_release")
        schema, name = named(target.removeprefix(TABLE))
        if not name:
            raise OutputError("no name after 'table:'", "name the table, such as table:patients_release")
        return schema, name


def failure(engine: str, what: str, error: Exception) -> ShoalError:
    """An error of a driver in our words: its class and code, never its text, which may quote a cell or a password."""
    code = getattr(error, "sqlstate", None) or getattr(error, "getErrorClass", lambda: None)()
    kind = f"{type(error).__name__} {code}" if code else type(error).__name__
    output = what.startswith(("writ", "look for"))
    hints = _HINTS | (_WRITING if output else _OPENING if what == "be opened" else _READING)
    if what == "be reached":
        text = str(error).lower()
        hint = next((told for part, told in _UNREACHED.items() if part in text), None)
    else:
        hint = next((hints[kind.__name__] for kind in type(error).__mro__ if kind.__name__ in hints), None)
    option = "--memory" if hint == _HINTS["OutOfMemoryException"] else None
    return (OutputError if output else DataError)(f"{engine} could not {what} ({kind})", hint, option=option)


_HINTS = {
    "OutOfMemoryException": "raise its limit of memory, or give it room to spill in the folder for temporary files",
    "IOException": "is the disk full, or the folder read-only?",
    "TransactionException": "is the disk full, or does another program write there? Nothing was kept",
    "ReadOnlySqlTransaction": "the server is read-only, a replica perhaps: connect to the primary",
    "DiskFull": "the server's disk is full: nothing was kept",
    "OperationalError": "the connection was lost, or the server went away: nothing was kept",
    "AdminShutdown": "the server ended the connection: nothing was kept",
}
_READING = {"InsufficientPrivilege": "ask for the right to read it"}
_OPENING = {"IOException": "is it a DuckDB database, and in no other program's hands?"}
_WRITING = {
    "InsufficientPrivilege": "ask for the right to do so, or write to another schema",
    "InvalidSchemaName": "there is no such schema: create it first, or name another",
    "DependentObjectsStillExist": "views depend on the table that is there: choose another name",
    "CatalogException": "is there such a schema, and no view of that name?",
    "WrongObjectType": "what has the name is no table, a view perhaps: choose another name",
}
_UNREACHED = {  # by a part of what the driver says
    "password authentication failed": "the server refused the user or the password",
    "no password supplied": "the server asks for a password: set PGPASSWORD, or use ~/.pgpass",
    "no pg_hba.conf entry": "the server lets this user in from elsewhere only",
    'role "': "the server does not know the user",
    'database "': "the server has no such database",
    "translate host": "there is no such host",
    "resolve": "there is no such host",
    "refused": "no server listens there: are host and port right?",
    "no such file": "no server listens there: are host and port right?",
    "timeout": "the server did not answer in time: are host and port right?",
    "timed out": "the server did not answer in time: are host and port right?",
    "invalid literal": "is the URI right? In a password : / @ # and ? are written %3A %2F %40 %23 and %3F",
    "port": "is the URI right? In a password : / @ # and ? are written %3A %2F %40 %23 and %3F",
    "": "are host, port, database, user and password right?",
}


def named(table: str) -> tuple[str | None, str]:
    """Schema and name of ``schema.name``; a part with a point in it is written in double quotes, as in SQL."""
    part = r'"(?:[^"]|"")+"'
    if found := re.fullmatch(rf"(?:({part}|[^\".]+)\.)?({part})", table):
        schema, name = found.groups()
        return _unquoted(schema) if schema else None, _unquoted(name)
    schema, _, name = table.rpartition(".")
    return _unquoted(schema) if schema else None, name


def _unquoted(part: str) -> str:
    return part[1:-1].replace('""', '"') if len(part) > 2 and part[0] == part[-1] == '"' else part


def safe_uri(uri: str) -> str:
    """A connection string that may be shown: without its password, and without the options that may hold one."""
    return re.sub(r"//([^:/@]*)(:.*)?@", r"//\1@", uri, flags=re.S).partition("?")[0]
