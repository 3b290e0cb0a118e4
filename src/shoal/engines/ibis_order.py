"""The order of ``row_order``, computed in the engine: DuckDB, PostgreSQL or Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
from ibis.expr import types as ir

from shoal.engines.row_order import FRACTION, WHOLE

SEPARATOR, NULL = "\x1f", "\x1e"


@ibis.udf.scalar.builtin
def md5(text: str) -> str:  # type: ignore[empty-body]
    """Return the hexadecimal MD5 of a text, under the name that DuckDB, PostgreSQL and Spark share."""


def order_keys(rows: ir.Table, seed: int, *, columns_of: ir.Table | None = None) -> list[Any]:
    """Return the sort keys; ``of`` is the table to sort if it has more columns than are hashed."""
    table = rows if columns_of is None else columns_of
    texts = [ibis.literal(str(seed)), *(_hashed(table[name]).fill_null(NULL) for name in rows.columns)]
    return [md5(ibis.literal(SEPARATOR).join(texts)), *_floats(table, rows.columns)]


def _hashed(column: Any) -> Any:
    kind = column.type()
    if kind.is_floating():
        x = ibis.ifelse(column.abs() < WHOLE, column.cast("float64"), 0.0)
        whole = x.floor()
        fraction = ((x - whole.cast("float64")) * FRACTION).floor()
        return ibis.ifelse(column.isnull(), ibis.null(str), whole.cast(str) + "/" + fraction.cast(str))
    if kind.is_timestamp() and kind.timezone is not None:
        return column.cast(str).replace("+00", "")
    return column.cast(str)


def _floats(table: ir.Table, names: Sequence[str]) -> list[Any]:
    return [table[name] for name in names if table[name].type().is_floating()]
