"""Results of DuckDB's queries as Arrow tables: Ibis would load pandas for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import ibis
import pyarrow as pa
from ibis.expr import types as ir
from ibis.expr.operations import AggUDF, InMemoryTable, ScalarUDF
from ibis.expr.operations.udf import InputType

from shoal.engines.formats.read_back import plain_schema

if TYPE_CHECKING:
    from shoal.engines.backends.duckdb import DuckDB

PIECE = 2**17  # rows of a result held in memory at a time


def fetched(backend: Any, expression: ir.Table) -> pa.Table:
    """Return the rows of a query, in the types that Ibis knows."""
    if _needs_ibis(expression):
        return expression.to_pyarrow()
    return expression.__pyarrow_result__(backend.con.sql(backend.compile(expression)).to_arrow_table())


def _needs_ibis(expression: ir.Table) -> bool:
    """Return whether Ibis has something to prepare or to convert: what is in Python's memory, or has an odd type."""
    schema = expression.schema()
    if schema.geospatial or any(kind.is_null() for kind in schema.types):
        return True
    nodes = expression.op().find((InMemoryTable, ScalarUDF, AggUDF))
    return any(isinstance(node, InMemoryTable) or node.__input_type__ != InputType.BUILTIN for node in nodes)


def types_of(backend: Any, expression: ir.Table) -> pa.Schema:
    """Return the types of DuckDB's results, which name the time zone of the session."""
    query = backend.con.sql(str(ibis.to_sql(expression.limit(0), dialect="duckdb")))
    return plain_schema(query.to_arrow_table().schema)


def in_pieces(backend: DuckDB, expression: ir.Table) -> Iterator[pa.Table]:
    """Yield the rows of a query that are to be written, in tables of some size."""
    with backend.failing("write the release"):
        query = str(ibis.to_sql(expression, dialect="duckdb"))
        with closing(backend.ibis.con.sql(query).to_arrow_reader(PIECE)) as reader:  # else no other query is answered
            for batch in reader:
                yield pa.Table.from_batches([batch])
