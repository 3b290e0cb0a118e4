"""What Spark opens and fetches."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import unquote

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import Backend
from shoal.engines.backends.connection_errors import driver_errors
from shoal.engines.backends.spark.functions import session
from shoal.engines.backends.spark.writing import SparkWriter
from shoal.engines.formats.parquet_parts import require_no_partitions
from shoal.errors import DataError

PARTS_AT_ONCE = 8  # files whose schemas are read at the same time


class Spark(SparkWriter):
    """A Spark session, on a cluster or in this process."""

    name = "Spark"

    @classmethod
    def connected(
        cls, uri: str, *, table: str | None, parquet: str | None, memory: str | None, read_only: bool
    ) -> tuple[Backend, ir.Table, str | None]:
        """Open a table that the session knows, or a folder of Parquet files."""
        if (table is None) == (parquet is None):
            hint = "name a folder of Parquet files, or a table"
            raise DataError(f"{uri}: which rows?", hint, option="--parquet, --table")
        with driver_errors(uri):
            backend = cls(ibis.pyspark.connect(session(uri)))
        if table is not None:
            return backend, backend.opened(table, uri), None
        with driver_errors(uri, "read the folder"):
            backend._require_one_table(str(parquet))
            return backend, backend._view(backend._session.read.parquet(str(parquet))), parquet

    def _require_one_table(self, folder: str) -> None:
        """Require that all files have the same columns: Spark takes the schema of one and casts the others to it."""
        frame = self._session.read.parquet(folder)
        files = frame.inputFiles()
        root = self._path(folder)[1].toString()
        require_no_partitions(unquote(file).removeprefix(root).lstrip("/") for file in files)

        def schema_of(file: str) -> str:
            return str(self._session.read.parquet(file).schema.simpleString())

        with ThreadPoolExecutor(PARTS_AT_ONCE) as pool:
            distinct = set(pool.map(schema_of, map(unquote, files)))
        if len(distinct) > 1:
            raise DataError(
                f"the {len(files)} files of the folder have {len(distinct)} different lists of columns and types",
                "write all files with the same columns and types: read as one, values would change",
            )

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Fetch as Arrow: Ibis would go through pandas, which converts integers in columns with nulls to floats."""
        with self.reading():
            return self._frame(expression).toArrow()

    def integers(self, query: str) -> list[tuple[int, ...]]:
        """Run the query in Spark SQL and collect its rows."""
        with self.reading():
            return [tuple(row) for row in self._session.sql(query).collect()]

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> ir.Table:
        """Upload as a view of the session; Spark broadcasts it if it is small."""
        with self.failing("take the mapping"):
            view = self._view(self._session.createDataFrame(table))
            return view.cast(dict(types)) if types else view
