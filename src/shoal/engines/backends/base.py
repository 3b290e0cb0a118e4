"""Where an Ibis table lives, and what differs between engines: fetching, uploading, joining and writing.

A release is written aside, counted there, and only then renamed into place: in PostgreSQL and DuckDB tables in one
transaction, files and folders by rename.
"""

from __future__ import annotations

import contextlib
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Protocol

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.reaching import failure, reaching, safe_uri
from shoal.engines.files import formats
from shoal.engines.files.formulas import Formulas
from shoal.engines.sql import quoted
from shoal.errors import DataError, OutputError, ShoalError, already_there

Judge = Callable[..., None]  # (table as it was written, how to give text its types back)

TABLE = "table:"


class Place(Protocol):
    """What an engine must be able to do besides running an Ibis expression."""

    name: str
    backend: Any
    keeps_order: bool  # whether the rows of a file can be had as they stand in it

    @property
    def shortage(self) -> str:
        """A note where the memory that was given cannot be kept; else nothing."""

    def opened(self, table: str) -> ir.Table:
        """A table of the same database by its name."""

    def plain(self, column: Any, *, key: bool) -> Any:
        """A column as it is told apart; a ``key`` must come back equal after it was here."""

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a query into memory."""

    def in_order(self, expression: ir.Table) -> pa.Table:
        """Rows of a file, in memory, as they stand in it."""

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

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write, let ``judge`` count it, give it its name; the hash of a file, or nothing.

        ``formulas`` makes those of a text file inert.
        """


class IbisPlace:
    """What databases share: tables in, tables out, in one transaction."""

    name = ""
    keeps_order = False

    @property
    def shortage(self) -> str:
        """Nothing: a server's memory is its own."""
        return ""

    @classmethod
    def connected(
        cls, uri: str, *, table: str | None, parquet: str | None, memory: str | None
    ) -> tuple[IbisPlace, ir.Table, str | None]:
        """What a URI names: the backend, its table, and the folder that is read, where it is one."""
        shown = safe_uri(uri)
        if table is None:
            raise DataError(f"{shown}: which table?", "name it: patients, or schema.patients", option="--table")
        with reaching(shown):
            place = cls.reached(uri, memory)
        return place, place.opened(table, shown), None

    @classmethod
    def reached(cls, uri: str, memory: str | None) -> IbisPlace:
        """A connection; ``memory`` is what a database in this process may use."""
        return cls(ibis.connect(uri))

    def opened(self, table: str, shown: str = "") -> ir.Table:
        """A table of the database by its name."""
        schema, name = named(table)
        try:
            return self.backend.table(name, database=schema)
        except ibis.common.exceptions.TableNotFound:
            raise DataError(
                f"{shown or self.name} has no table {table!r}",
                'write schema.name where it is not in the search path, "na.me" where it has a point in it; '
                "capitals count",
            ) from None
        except Exception as error:
            raise failure(shown or self.name, f"open the table {table!r}", error) from None

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
                "convert the column to text, numbers or dates first, or remove it",
            )
        return column

    def same(self, left: Any, right: Any) -> Any:
        """IS NOT DISTINCT FROM."""
        return left.identical_to(right)

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch the rows of a query through Ibis."""
        with self.failing("read"):
            return expression.to_pyarrow()

    def in_order(self, expression: ir.Table) -> pa.Table:
        """As ``fetch``: most have no order."""
        return self.fetch(expression)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """As a temporary table, gone with the connection."""
        with self.failing("take the mapping"):
            made = self.backend.create_table(f"shoal_{secrets.token_hex(8)}", table, temp=True)
            return made.cast(dict(types)) if types else made

    def check_target(self, target: str, force: bool) -> None:
        """Nothing is overwritten unless forced."""
        self.require_free(target, force)

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """CREATE TABLE AS, counted within its transaction."""
        self.check_target(target, force)
        schema, name = self.table_named(target)
        goal = ".".join(quoted(part) for part in (schema, name) if part)
        with self.failing("write the release"), self.transaction() as run:
            if force:
                run(f"DROP TABLE IF EXISTS {goal}")
            run(f"CREATE TABLE {goal} AS {ibis.to_sql(expression, dialect=self.backend.name)}")
            judge(self.backend.table(name, database=schema))
        return ""

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[[str], Any]]:
        """What runs statements that are undone together where one of them fails."""
        execute = self.backend.con.execute
        execute("BEGIN")
        try:
            yield execute
            execute("COMMIT")
        except BaseException:
            with contextlib.suppress(Exception):
                execute("ROLLBACK")
            raise

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
