"""PostgreSQL: the rows stay in the database, and the release becomes one of its tables."""

from __future__ import annotations

import atexit
import contextlib
import decimal
import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import Backend
from shoal.engines.formats import csv_text
from shoal.engines.frames import with_plain_types
from shoal.engines.sql import quoted

PIECE = 2**17  # rows sent at a time


@ibis.udf.scalar.builtin
def trim_scale(number: decimal.Decimal) -> decimal.Decimal:  # type: ignore[empty-body]
    """PostgreSQL's ``trim_scale``: a numeric without trailing zeros."""


class PostgreSQL(Backend):
    """A PostgreSQL server; the release is written and verified in one transaction."""

    name = "PostgreSQL"

    @classmethod
    def reached(cls, uri: str, memory: str | None, read_only: bool) -> PostgreSQL:
        """Open a connection that is closed at the end; both spellings of the scheme are accepted."""
        backend = ibis.connect(uri.replace("postgres://", "postgresql://", 1))
        atexit.register(backend.disconnect)
        return cls(backend)

    def folded(self, name: str) -> str:
        """Return the name unchanged: quoted names are case-sensitive."""
        return name

    def plain(self, column: Any, *, key: bool) -> Any:
        """Convert numbers without a fixed scale, which Arrow has no type for, to text when they are keys."""
        kind = column.type()
        if kind.is_string():
            return column + ""  # char(n), padded with blanks, becomes text
        if key and kind.is_decimal() and kind.precision is None:
            return trim_scale(column).cast(str)
        return super().plain(column, key=key)

    def is_same(self, left: Any, right: Any) -> Any:
        """Avoid IS NOT DISTINCT FROM, which PostgreSQL cannot hash: it would compare every row with every tuple."""
        return _marked(left) == _marked(right)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """Upload with COPY into a temporary table."""
        name = f"shoal_{secrets.token_hex(8)}"
        arrow = ibis.Schema.from_pyarrow(table.schema)
        schema = ibis.schema({column: types.get(column, kind) for column, kind in arrow.items()})
        with self.failing("take the mapping"):
            uploaded = self.ibis.create_table(name, schema=schema, temp=True)
            names = ", ".join(map(quoted, table.column_names))
            with (
                self.ibis.con.cursor() as cursor,
                cursor.copy(f"COPY {quoted(name)} ({names}) FROM STDIN (FORMAT csv)") as copy,
            ):
                for batch in with_plain_types(table).to_batches(max_chunksize=PIECE) if len(table) else ():
                    copy.write(csv_text.csv_lines(batch, ","))
            with self.ibis.con.cursor() as cursor:
                cursor.execute(f"ANALYZE {quoted(name)}")
        return uploaded

    def integers(self, query: str) -> list[tuple[int, ...]]:
        """Ask within a transaction, which the driver would leave open otherwise."""
        with self.reading(), self.transaction() as run:
            return list(run(query).fetchall())

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[[str], Any]]:
        """Return a transaction of the driver."""
        con = self.ibis.con
        with con.transaction(), con.cursor() as cursor:
            yield cursor.execute


def _marked(value: Any) -> Any:
    return ibis.ifelse(value.isnull(), "", ibis.literal("=") + value.cast(str))
