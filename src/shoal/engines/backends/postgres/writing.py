"""Tables that PostgreSQL writes within a transaction, and rows that are uploaded with COPY."""

from __future__ import annotations

import contextlib
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


class PostgreSQLWriter(Backend):
    """Uploads with COPY, and tables of releases that appear whole."""

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

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[[str], Any]]:
        """Return a transaction of the driver."""
        con = self.ibis.con
        with con.transaction(), con.cursor() as cursor:
            yield cursor.execute
