"""The rows of whatever a user names as an Ibis table, so that one GROUP BY runs where they are.

Rows in memory are shown to DuckDB in place, without a copy; rows in files, databases and clusters stay there. Values
compare as everywhere in shoal: NaN is null, -0.0 is 0.0, cells are parsed as the policy spells them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir

from shoal.engines.backends.base import Backend
from shoal.engines.backends.duckdb import DuckDB
from shoal.engines.base import Engine, Released
from shoal.engines.data import Data
from shoal.engines.ibis import IbisEngine
from shoal.engines.opening import engine_of
from shoal.engines.scratch import spilling
from shoal.errors import DataError, EmptyTableError, no_column
from shoal.policy import Policy

# A number within a text, in the notation of ``intervals.NUMBER`` and valid in all engines. Its length is limited:
# PostgreSQL raises an error where a number is too large or too small for a double, and one cell must not end a query.
NUMERAL = "^[+-]?([0-9]{1,99}[.]?[0-9]{0,99}|[.][0-9]{1,99})([eE][+-]?[0-9]{1,2})?$"


@dataclass(frozen=True, eq=False)
class Groupable:
    """Rows as an Ibis table, and the place that runs queries on it.

    >>> import pyarrow as pa
    >>> rows = groupable(pa.table({"town": ["A", "B", "A"], "age": ["31", "n/a", "34"]}))
    >>> by_town = rows.table.group_by("town").agg(n=rows.table.count(), years=rows.number("age").sum())
    >>> rows.fetch(by_town.order_by("town")).to_pylist()
    [{'town': 'A', 'n': 2, 'years': 65.0}, {'town': 'B', 'n': 1, 'years': None}]
    """

    engine: IbisEngine
    source: Engine  # what was opened, before rows in memory were shown to DuckDB

    @property
    def fingerprint(self) -> str:
        """The hash of a file or a frame; empty for a table in a database and for a folder."""
        return self.source.fingerprint

    @property
    def backend(self) -> Backend:
        """The backend that runs the queries."""
        return self.engine.backend

    @cached_property
    def table(self) -> ir.Table:
        """The rows; all columns may be grouped by."""
        return self.engine.normalized(self.engine.columns)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self.engine.columns

    def require(self, names: Sequence[str]) -> None:
        """Raise an error that lists the columns that are not in the table."""
        if absent := [name for name in dict.fromkeys(names) if name not in self.columns]:
            raise no_column(
                "the table", absent, self.columns, f"its columns: {', '.join(self.columns)}", error=DataError
            )

    def only(self, names: Sequence[str]) -> Groupable:
        """Return the rows with some of the columns; the others are not even looked at."""
        columns = list(dict.fromkeys(names)) or self.columns[:1]
        return Groupable(IbisEngine(self.engine.expression.select(*columns), self.backend), self.source)

    def require_numbers(self, names: Sequence[str]) -> None:
        """Raise an error that names a column whose type holds no numbers; texts may, and are never looked at here."""
        for name in names:
            kind = self.engine.expression[name].type()
            if not (kind.is_numeric() or kind.is_boolean() or kind.is_null() or self.table[name].type().is_string()):
                raise DataError(
                    f"column {name!r} is of type {kind}, which is not a number",
                    "choose a column of numbers, or convert this one, such as a date to an age",
                )

    def number(self, name: str, table: ir.Table | None = None) -> Any:
        """Return a column of numbers; a text that is no number is null, and so are NaN and values of other types.

        ``table`` is what was made of ``self.table`` by filtering, if the query goes on from there.
        """
        kind = self.engine.expression[name].type()
        column = (self.table if table is None else table)[name]
        if kind.is_integer() or kind.is_floating():
            return column
        if kind.is_boolean():
            return column.cast("int64")
        if kind.is_decimal() and column.type().is_decimal():
            return column
        if not column.type().is_string():  # dates and times
            return column.isnull().cast("float64") + ibis.null("float64")
        text = column.strip()
        return ibis.ifelse(text.re_search(NUMERAL), text, ibis.null("string")).cast("float64")

    def select(self, names: Sequence[str]) -> tuple[pa.Table, bool]:
        """Fetch some columns of all rows, and whether these are in the order of a file or frame."""
        if not self.source.in_memory:
            return self.fetch(self.table.select(*names)), False
        return self.source.every_row().table.select(list(names)), True

    def fetch(self, expression: ir.Table) -> pa.Table:
        """Run a query over ``table`` where the rows are, and fetch its result, which may have no rows."""
        return self.backend.fetch(expression)


def groupable(
    data: Data | Released | Engine,
    policy: Policy | None = None,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    even_empty: bool = False,
) -> Groupable:
    """Open a path, a URI, a frame, an Ibis table, a release or an engine for queries on its rows.

    Cells are parsed as the policy says, if one is given: missing values, decimal and thousands marks. A file or frame
    without rows is an error, unless ``even_empty``: it is then counted like any other.
    """
    try:
        engine = engine_of(data, policy, separator=separator, encoding=encoding)
    except EmptyTableError as error:
        if not even_empty:
            raise
        nowhere = DuckDB(ibis.duckdb.connect())
        bare = IbisEngine(nowhere.upload(error.columns, {}), nowhere)
        engine = bare if policy is None else bare.reading(policy)
    if isinstance(engine, IbisEngine):
        return Groupable(engine, engine)
    backend = DuckDB(ibis.duckdb.connect(**spilling()))
    return Groupable(IbisEngine(backend.upload(engine.every_row().table, {}), backend), engine)
