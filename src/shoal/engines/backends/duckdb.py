"""DuckDB: files out of core, and tables of a database."""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines import memory
from shoal.engines.backends.base import TABLE, IbisPlace, Judge
from shoal.engines.files import formats, office_files
from shoal.engines.files.formulas import Formulas
from shoal.engines.files.layout import Dialect
from shoal.engines.frames import plain
from shoal.engines.sql import quoted
from shoal.errors import OutputError, VerificationError, already_there

PIECE = 2**17  # rows of a result in memory at a time


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
        """Fetch the rows of a query through Ibis."""
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
        target_name = ".".join(quoted(part) for part in (schema, name) if part)
        con = self.backend.con
        with self.failing("write the release"):
            con.execute("BEGIN")
            try:
                if force:
                    con.execute(f"DROP TABLE IF EXISTS {target_name}")
                con.execute(f"CREATE TABLE {target_name} AS {ibis.to_sql(expression, dialect='duckdb')}")
                judge(self.backend.table(name, database=schema))
                con.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(Exception):
                    con.execute("ROLLBACK")
                raise


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
