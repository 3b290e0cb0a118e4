"""Folders of Parquet files and tables that a cluster writes."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import PurePath, PurePosixPath
from typing import Any

import ibis
from ibis.expr import types as ir

from shoal.engines.backends.base import TABLE, Backend, Judge
from shoal.engines.formats.formulas import Formulas
from shoal.errors import OutputError, already_there


class SparkWriter(Backend):
    """A Spark session, and what it writes."""

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        self._session = backend._session

    def _view(self, frame: Any) -> ir.Table:
        name = f"shoal_{secrets.token_hex(8)}"
        frame.createOrReplaceTempView(name)
        return self.ibis.table(name)

    def _frame(self, expression: ir.Table) -> Any:
        return self._session.sql(str(ibis.to_sql(expression, dialect="pyspark")))

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
