"""An order of rows that every engine can compute: by a keyed hash of their values.

It depends on the values and the seed, not on the original position of a row, so it reveals nothing, and it splits
records with equal tuples in the same way on every engine. Texts, integers, dates and booleans have the same text on all
engines. Floats do not, but arithmetic on them is the same: the hash uses the whole part below 2^53 and 40 binary
places, and floats that agree in these are sorted by size.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import scratch
from shoal.engines.sql import quoted, unused

# The part of a float that is hashed: the whole part below 2^53, and 40 binary places.
WHOLE, FRACTION = 2.0**53, 2.0**40


def hash_order(table: pa.Table, seed: int) -> NDArray[np.int64]:
    """Return an order that depends on the values of the rows and on the seed, not on their positions.

    Equal rows come in any order but the original one: knowing whose they are reveals nothing about their positions.
    """
    position = unused("place", table.column_names)
    rows = table.append_column(position, pa.array(np.arange(len(table))))
    names = [quoted(name) for name in table.column_names]
    with scratch.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")  # instants are hashed in UTC, as in engines, wherever this runs
        connection.register("rows", rows)
        ordered = connection.sql(
            f"SELECT {quoted(position)} FROM rows "
            f"ORDER BY md5({hashed_text(table.schema, seed)}), {', '.join(names)}, hash({quoted(position)}, '{seed}')"
        )
        return np.asarray(ordered.fetchnumpy()[position], np.int64)


def order_of_distinct(table: pa.Table, seed: int) -> NDArray[np.int64]:
    """Return the order of ``hash_order`` for rows that are all different, with less memory: rows are not sorted by SQL.

    The first half of the hashes decides, unless two of them are equal.
    """
    with scratch.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("rows", table)
        # md5_number_upper is the same, and takes three times as long.
        first = f"CAST(md5_number({hashed_text(table.schema, seed)}) & CAST({2**64 - 1} AS UHUGEINT) AS UBIGINT)"
        hashes = connection.sql(f"SELECT {first} AS hashed FROM rows").fetchnumpy()
    hashed = np.asarray(hashes["hashed"], np.uint64).byteswap()  # DuckDB reads the bytes of the hash from the last one
    order = np.argsort(hashed)
    hashed = hashed[order]
    return hash_order(table, seed) if (hashed[1:] == hashed[:-1]).any() else order


def hashed_text(schema: pa.Schema, seed: int) -> str:
    """Return the text of a row that is hashed, in SQL."""
    texts = ", ".join(f"coalesce({_hashed(quoted(field.name), field.type)}, chr(30))" for field in schema)
    return f"concat_ws(chr(31), '{seed}', {texts})"


def place_hashes(n: int, seed: int) -> NDArray[np.uint64]:
    """Return the hashes of ``n`` positions, which order equal rows."""
    with scratch.connect() as connection:
        hashes = connection.sql(f"SELECT hash(range, '{seed}') AS hashed FROM range({n})").fetchnumpy()
    return np.asarray(hashes["hashed"], np.uint64)


def _hashed(name: str, kind: pa.DataType) -> str:
    """Return the text of a column that is hashed, the same as on every engine."""
    if pa.types.is_floating(kind):  # engines format floats differently, but calculate alike
        x = f"CASE WHEN abs({name}) < {WHOLE} THEN CAST({name} AS DOUBLE) ELSE 0 END"
        whole, fraction = f"floor({x})", f"floor((({x}) - floor({x})) * {FRACTION})"
        return f"CASE WHEN {name} IS NOT NULL THEN {_int(whole)} || '/' || {_int(fraction)} END"
    text = f"CAST({name} AS VARCHAR)"
    return f"replace({text}, '+00', '')" if pa.types.is_timestamp(kind) and kind.tz else text


def _int(number: str) -> str:
    return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
