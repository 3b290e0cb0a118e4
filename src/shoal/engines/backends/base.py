"""Where an Ibis table lives, and what differs between engines: fetching, uploading, joining and writing.

A release is written aside, counted there, and only then given its name: in PostgreSQL and DuckDB tables in one
transaction, files and folders by rename. Drivers quote values and connection strings in their messages, so none of
them is passed on: what is told is what failed, and the code that the engine gave it.
"""

from __future__ import annotations

import contextlib
import decimal
import re
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, Protocol

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines import memory
from shoal.engines.files import formats, office_files
from shoal.engines.files.formulas import Formulas
from shoal.engines.files.layout import Dialect
from shoal.engines.frames import plain
from shoal.errors import DataError, OutputError, ShoalError, VerificationError, already_there

Judge = Callable[..., None]  # (table as it was written, how to give text its types back)

TABLE = "table:"
PIECE = 2**17  # rows of a result in memory at a time


class Place(Protocol):
    """What an engine must be able to do besides running an Ibis expression."""

    name: str
    backend: Any

    def plain(self, column: Any, *, key: bool) -> Any:
        """A column as it is told apart; a ``key`` must come back equal after it was here."""

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Rows, in memory."""

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
        """Through Ibis."""
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


# ── DuckDB ──────────────────────────────────────────────────────────────────────────────────────────────────


@ibis.udf.scalar.builtin
def isfinite(number: float) -> bool:  # type: ignore[empty-body]
    """DuckDB's: neither infinite nor NaN."""


class DuckDB(IbisPlace):
    """Files and DuckDB's own tables, out of core."""

    name = "DuckDB"

    def __init__(self, backend: Any, dialect: Dialect | None = None, memory: int | None = None) -> None:
        super().__init__(backend)
        self.dialect = dialect
        self.memory = memory  # bytes, for DuckDB and what is held here, such as the tuples that were counted

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Through Ibis."""
        self._make_room()
        return super().fetch(expression)

    def in_order(self, expression: ir.Table) -> pa.Table:
        """The rows of a file as they stand in it; otherwise DuckDB gives them as its threads come to them."""
        self.backend.con.execute("SET preserve_insertion_order = true")
        try:
            return self.fetch(expression)
        finally:
            self.backend.con.execute("SET preserve_insertion_order = false")

    def _make_room(self) -> None:
        """DuckDB may use what the tuples and the mapping leave of the memory."""
        if self.memory is None:
            return
        with self.failing("share the memory"):
            ((own,),) = self.backend.con.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
            limit = max(memory.share(self.memory, memory.resident() - own), own)
            self.backend.con.execute(f"SET memory_limit = '{limit}B'")

    @property
    def shortage(self) -> str:
        """A note where the memory that was given cannot be kept, as too much of it is held here; else nothing."""
        if self.memory is None or memory.resident() + memory.WRITING + memory.LEAST <= self.memory:
            return ""
        return (
            f"more than {self.memory / 10**9:.1f} GB of memory will be used: the distinct tuples are held in it "
            "(max_tuples in [release] limits them)"
        )

    def plain(self, column: Any, *, key: bool) -> Any:
        """The least and the greatest value that Parquet tells of leave NaN out, and by these DuckDB takes isnan, which
        it asks no row, for false."""
        kind = column.type()
        if kind.is_floating():
            return ibis.ifelse(isfinite(column) | column.isinf(), column + 0.0, ibis.null(kind)).cast(kind)
        return super().plain(column, key=key)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """Arrow tables are read where they lie."""
        name = f"shoal_{secrets.token_hex(8)}"
        self.backend.con.register(name, table)
        with self.failing("take the mapping"):
            return self.backend.table(name).cast(dict(types)) if types else self.backend.table(name)

    def check_target(self, target: str, force: bool) -> None:
        """Nothing is overwritten unless forced."""
        path = Path(target)
        if target.startswith(TABLE):
            self.require_free(target, force)
        elif office_files.is_foreign(path):
            raise OutputError(
                f"DuckDB writes no {path.suffix} files",
                "write .parquet or .csv, or read the table into memory",
                option="--engine local",
            )
        elif path.suffix.lower() in formats.TEXT + formats.PARQUET:
            formats.check_target(path, force)
        else:
            aside_of(path, force)

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """A table, a file, or a folder of Parquet files; ``formulas`` makes those of a CSV file inert."""
        self.check_target(target, force)
        self._make_room()
        if target.startswith(TABLE):
            self._write_table(expression, target, force, judge)
            return ""
        path = Path(target)
        if path.suffix.lower() in formats.TEXT + formats.PARQUET:
            return self._write_file(expression, path, force, judge, formulas)
        self._write_folder(expression, path, force, judge)
        return ""

    def tables(self, schema: str | None) -> list[str]:
        """The names that are taken; Ibis 12 asks DuckDB 2 for them in a way that it no longer has."""
        where = "current_schema()" if schema is None else "?"
        query = f"SELECT table_name FROM information_schema.tables WHERE table_schema = {where}"
        return [name for (name,) in self.backend.con.execute(query, [] if schema is None else [schema]).fetchall()]

    def view(self, source: str) -> ir.Table:
        """A table expression of DuckDB's own as an Ibis table."""
        name = f"shoal_{secrets.token_hex(8)}"
        self.backend.con.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM {source}")
        return self.backend.table(name)

    def _pieces(self, expression: ir.Table) -> Iterator[pa.Table]:
        with self.failing("write the release"):
            for batch in self.backend.con.sql(str(ibis.to_sql(expression, dialect="duckdb"))).to_arrow_reader(PIECE):
                yield pa.Table.from_batches([batch])

    def _write_file(
        self, expression: ir.Table, path: Path, force: bool, judge: Judge, formulas: Formulas | None
    ) -> str:
        schema, names = plain_schema(expression), list(expression.columns)

        def verify(written: Path) -> None:
            with self.failing("read the written file back"):
                source = formats.sql_source(written, self.dialect, names if formulas is None else formulas.names(names))
                plain = source if formulas is None else formulas.undone(source, names)
                judge(self.view(plain), lambda groups: _typed(groups, schema))

        pieces = self._pieces(expression)
        tables = pieces if formulas is None else map(formulas.escaped, pieces)
        return formats.write(tables, path, dialect=self.dialect, force=force, verify=verify)

    def _write_folder(self, expression: ir.Table, path: Path, force: bool, judge: Judge) -> None:
        """Files of a fixed number of rows, in the order of the release."""
        aside = aside_of(path, force)
        try:
            with formats.output_errors(path):
                aside.mkdir(mode=0o700)
            n_files = 0
            for n_files, piece in enumerate(_folded(self._pieces(expression)), 1):
                name = aside / f"part-{n_files - 1:05}.parquet"
                formats.write(piece, name, verify=lambda _: None)
            if not n_files:
                raise OutputError("the release has no rows", "every record was suppressed: ask for less, or allow more")
            with self.failing("read the written files back"):
                judge(self.view(formats.parquet_folder(aside)))
            publish_folder(aside, path, force)
        finally:
            shutil.rmtree(aside, ignore_errors=True)

    def _write_table(self, expression: ir.Table, target: str, force: bool, judge: Judge) -> None:
        schema, name = self.table_named(target)
        quoted = ".".join(_quoted(part) for part in (schema, name) if part)
        con = self.backend.con
        with self.failing("write the release"):
            con.execute("BEGIN")
            try:
                if force:
                    con.execute(f"DROP TABLE IF EXISTS {quoted}")
                con.execute(f"CREATE TABLE {quoted} AS {ibis.to_sql(expression, dialect='duckdb')}")
                judge(self.backend.table(name, database=schema))
                con.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):
                    con.execute("ROLLBACK")
                raise


# ── PostgreSQL ──────────────────────────────────────────────────────────────────────────────────────────────


@ibis.udf.scalar.builtin
def trim_scale(number: decimal.Decimal) -> decimal.Decimal:  # type: ignore[empty-body]
    """PostgreSQL's: a numeric without the zeros that end it."""


class PostgreSQL(IbisPlace):
    """A server; the release and its proof are one transaction."""

    name = "PostgreSQL"

    def folded(self, name: str) -> str:
        """Capitals count, as all names are quoted."""
        return name

    def plain(self, column: Any, *, key: bool) -> Any:
        """Numbers without a fixed scale have no type in Arrow: as keys they are text."""
        kind = column.type()
        if kind.is_string():
            return column + ""  # char(n), padded with blanks, becomes text
        if key and kind.is_decimal() and kind.precision is None:
            return trim_scale(column).cast(str)
        return super().plain(column, key=key)

    def same(self, left: Any, right: Any) -> Any:
        """PostgreSQL cannot hash IS NOT DISTINCT FROM: it would compare every row with every tuple."""
        return _marked(left) == _marked(right)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """COPY into a temporary table."""
        name = f"shoal_{secrets.token_hex(8)}"
        arrow = ibis.Schema.from_pyarrow(table.schema)
        schema = ibis.schema({column: types.get(column, kind) for column, kind in arrow.items()})
        with self.failing("take the mapping"):
            made = self.backend.create_table(name, schema=schema, temp=True)
            names = ", ".join(map(_quoted, table.column_names))
            with (
                self.backend.con.cursor() as cursor,
                cursor.copy(f"COPY {_quoted(name)} ({names}) FROM STDIN (FORMAT csv)") as copy,
            ):
                for batch in plain(table).to_batches(max_chunksize=PIECE) if len(table) else ():
                    copy.write(formats.csv_lines(batch, ","))
            with self.backend.con.cursor() as cursor:
                cursor.execute(f"ANALYZE {_quoted(name)}")
        return made

    def check_target(self, target: str, force: bool) -> None:
        """Nothing is overwritten unless forced."""
        self.require_free(target, force)

    def write(self, expression: ir.Table, target: str, *, force: bool, judge: Judge) -> str:
        """CREATE TABLE AS, counted within its transaction."""
        self.check_target(target, force)
        schema, name = self.table_named(target)
        quoted = ".".join(_quoted(part) for part in (schema, name) if part)
        con = self.backend.con
        with self.failing("write the release"), con.transaction(), con.cursor() as cursor:
            if force:
                cursor.execute(f"DROP TABLE IF EXISTS {quoted}")
            cursor.execute(f"CREATE TABLE {quoted} AS {ibis.to_sql(expression, dialect='postgres')}")
            judge(self.backend.table(name, database=schema))
        return ""


def _marked(value: Any) -> Any:
    return ibis.ifelse(value.isnull(), "", ibis.literal("=") + value.cast(str))


# ── what they share ─────────────────────────────────────────────────────────────────────────────────────────


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plain_schema(expression: ir.Table) -> pa.Schema:
    """The types that the rows of an expression are written in."""
    return plain(pa.Table.from_pylist([{}], schema=expression.schema().to_pyarrow())).schema


def _typed(groups: pa.Table, schema: pa.Schema) -> pa.Table:
    """Groups of a CSV file, which holds texts only, in the types of the release."""
    for j, name in enumerate(groups.column_names):
        if name in schema.names:
            try:
                column = formats.typed(groups[name], schema.field(name).type)
            except pa.ArrowException:
                raise VerificationError(f"column {name!r} cannot be read back; nothing was written") from None
            groups = groups.set_column(j, name, column)
    return groups


FILE_ROWS = 32 * formats.ROW_GROUP


def _folded(pieces: Iterator[pa.Table]) -> Iterator[Iterator[pa.Table]]:
    """The pieces of one file after another."""
    waiting: list[pa.Table] = []

    def one() -> Iterator[pa.Table]:
        n = 0
        while n < FILE_ROWS:
            piece = waiting.pop() if waiting else next(pieces, None)
            if piece is None:
                return
            if n + len(piece) > FILE_ROWS:
                waiting.append(piece.slice(FILE_ROWS - n))
                piece = piece.slice(0, FILE_ROWS - n)
            n += len(piece)
            yield piece

    while True:
        if not waiting:
            piece = next(pieces, None)
            if piece is None:
                return
            waiting.append(piece)
        yield one()


def aside_of(path: Path, force: bool) -> Path:
    """Where a folder is written before it has its name; raises where it could never get it."""
    if path.exists() and not force:
        raise already_there(path)
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file", "name a folder, or a file by its extension")
    if not path.parent.is_dir():
        raise OutputError(f"the folder {path.parent} does not exist", "create it first")
    return path.with_name(f".shoal-{secrets.token_hex(8)}")


def publish_folder(aside: Path, path: Path, force: bool) -> None:
    """Give a finished folder its name; what had it before goes only then."""
    with formats.output_errors(path):
        old = path.with_name(f".shoal-{secrets.token_hex(8)}")
        if force and path.exists():
            path.rename(old)
        try:
            formats.open_up(aside)
            aside.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)


def safe_uri(uri: str) -> str:
    """A connection string that may be shown: without its password, and without the options that may hold one."""
    return re.sub(r"//([^:/@]*)(:.*)?@", r"//\1@", uri, flags=re.S).partition("?")[0]
