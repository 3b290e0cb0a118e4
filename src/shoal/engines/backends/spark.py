"""Spark: rows stay on the cluster, which writes the release to a folder of Parquet files or to a table."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import PurePath, PurePosixPath
from typing import Any
from urllib.parse import unquote

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import TABLE, Backend, Judge
from shoal.engines.backends.connection_errors import driver_errors, require_master
from shoal.engines.formats.formulas import Formulas
from shoal.engines.formats.parquet_parts import require_no_partitions
from shoal.errors import DataError, OutputError, ShoalError, already_there

PARTS_AT_ONCE = 8  # files whose schemas are read at the same time


class Spark(Backend):
    """A Spark session, on a cluster or in this process."""

    name = "Spark"

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._session = backend._session

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

    def _view(self, frame: Any) -> ir.Table:
        name = f"shoal_{secrets.token_hex(8)}"
        frame.createOrReplaceTempView(name)
        return self.ibis.table(name)

    def _frame(self, expression: ir.Table) -> Any:
        return self._session.sql(str(ibis.to_sql(expression, dialect="pyspark")))

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

    def check_target(self, target: str, force: bool) -> None:
        """Raise an error if the target exists, unless overwriting is forced."""
        if target.startswith(TABLE):
            return self.require_free(target, force)
        if target.lower().endswith((".csv", ".tsv", ".txt")):
            raise OutputError("Spark writes a folder of Parquet files, not text", "name a folder, such as release/")
        with self.failing("look for the folder to write"):
            system, goal = self._path(target)
            if not system.exists(goal.getParent()):
                raise OutputError(f"the folder of {target} does not exist", "create it first")
            if system.exists(goal) and not force:
                raise already_there(target)

    def _path(self, target: str) -> tuple[Any, Any]:
        goal = self._session._jvm.org.apache.hadoop.fs.Path(target.rstrip("/"))
        system = goal.getFileSystem(self._session._jsc.hadoopConfiguration())
        return system, system.makeQualified(goal)

    def resolved(self, path: str) -> PurePath:
        """Return the path with its file system."""
        with self.failing("look for the folder to write"):
            return PurePosixPath(self._path(path)[1].toString())

    def write(
        self, expression: ir.Table, target: str, *, force: bool, judge: Judge, formulas: Formulas | None = None
    ) -> str:
        """Write under a temporary name, count there, then rename."""
        self.check_target(target, force)
        if target.startswith(TABLE):
            self._write_table(expression, target, force, judge)
        else:
            self._write_folder(expression, target, force, judge)
        return ""

    def _write_folder(self, expression: ir.Table, target: str, force: bool, judge: Judge) -> None:
        with self.failing("write the release"):
            system, goal = self._path(target)
            new = self._session._jvm.org.apache.hadoop.fs.Path
            aside, old = (new(goal.getParent(), f".shoal-{secrets.token_hex(8)}") for _ in range(2))
            try:
                self._frame(expression).write.parquet(aside.toString())
                judge(self._view(self._session.read.parquet(aside.toString())))
                if system.exists(goal):
                    system.rename(goal, old)
                if not system.rename(aside, goal):
                    if system.exists(old):
                        system.rename(old, goal)
                    raise OutputError(f"{target} could not be renamed into place", "is the folder writable?")
                system.delete(old, True)
            finally:
                with contextlib.suppress(Exception):
                    system.delete(aside, True)

    def _write_table(self, expression: ir.Table, target: str, force: bool, judge: Judge) -> None:
        schema, name = self.table_named(target)
        goal, aside = (
            ".".join("`" + part.replace("`", "``") + "`" for part in (schema, table) if part)
            for table in (name, f"shoal_{secrets.token_hex(8)}")
        )
        with self.failing("write the release"):
            try:
                self._frame(expression).write.format("parquet").saveAsTable(aside)
                judge(self.ibis.table(aside.rpartition(".")[2].strip("`"), database=schema))
                if force:
                    self._session.sql(f"DROP TABLE IF EXISTS {goal}")
                self._session.sql(f"ALTER TABLE {aside} RENAME TO {goal}")
            finally:
                with contextlib.suppress(Exception):
                    self._session.sql(f"DROP TABLE IF EXISTS {aside}")


def session(uri: str) -> Any:
    """Return a session on a cluster, or the existing session of this process."""
    named = uri.removeprefix("spark://")
    require_master(named)
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise ShoalError("PySpark is not installed", "python -m pip install 'shoal[spark]'; it needs Java 17") from None
    builder = SparkSession.builder.appName("shoal").master(named if named.startswith("local") else uri)
    return builder.config("spark.ui.showConsoleProgress", "false").getOrCreate()
