"""An order of rows that every engine can compute: that of a keyed hash of what they say.

It depends on the values and on the seed, not on where a row stood, so it gives nothing away, and where records with
equal tuples part ways it deals them out alike everywhere. Texts, whole numbers, dates and booleans are written alike by
all engines. Floats are not, but they are calculated with alike: what is hashed of one is its whole part below 2^53 and
40 bits behind the point, and those that still agree follow each other by size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
from ibis.expr import types as ir

from shoal.engines.local import FRACTION, WHOLE

SEPARATOR, NULL = "\x1f", "\x1e"


@ibis.udf.scalar.builtin
def md5(text: str) -> str:  # type: ignore[empty-body]
    """The hexadecimal MD5 of a text, as DuckDB, PostgreSQL and Spark name it."""


def hash_order(rows: ir.Table, seed: int, *, of: ir.Table | None = None) -> list[Any]:
    """What to sort by; ``of`` is the table to sort, where it has more columns than take part."""
    table = rows if of is None else of
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
