"""An order of rows that every engine can compute: that of a keyed hash of what they say.

It depends on the values and on the seed, not on where a row stood, so it gives nothing away, and where records with
equal tuples part ways it deals them out alike everywhere. Texts, whole numbers, dates and booleans are written alike by
all engines. Floats are not, but they are calculated with alike: what is hashed of one is its whole part below 2^53 and
40 bits behind the point, and those that still agree follow each other by size.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines import scratch
from shoal.engines.sql import quoted, unused

# What is left of a float when it is hashed: its whole part below 2^53, and 40 bits behind the point.
WHOLE, FRACTION = 2.0**53, 2.0**40


def hash_order(table: pa.Table, seed: int) -> NDArray[np.int64]:
    """An order that depends on what the rows say and on the seed, not on where they stood.

    Equal rows stand in any order but the original one: knowing whose they are reveals nothing about their positions.
    """
    place = unused("place", table.column_names)
    rows = table.append_column(place, pa.array(np.arange(len(table))))
    names = [quoted(name) for name in table.column_names]
    texts = ", ".join(f"coalesce({_hashed(quoted(field.name), field.type)}, chr(30))" for field in table.schema)
    with scratch.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")  # instants are hashed as they are there, wherever this runs
        connection.register("rows", rows)
        ordered = connection.sql(
            f"SELECT {quoted(place)} FROM rows "
            f"ORDER BY md5(concat_ws(chr(31), '{seed}', {texts})), {', '.join(names)}, hash({quoted(place)}, '{seed}')"
        )
        return np.asarray(ordered.fetchnumpy()[place], np.int64)


def _hashed(name: str, kind: pa.DataType) -> str:
    """The text of a column that enters the hash, the same as in every engine."""
    if pa.types.is_floating(kind):  # engines write floats each in their own way, but calculate alike
        x = f"CASE WHEN abs({name}) < {WHOLE} THEN CAST({name} AS DOUBLE) ELSE 0 END"
        whole, fraction = f"floor({x})", f"floor((({x}) - floor({x})) * {FRACTION})"
        return f"CASE WHEN {name} IS NOT NULL THEN {_int(whole)} || '/' || {_int(fraction)} END"
    text = f"CAST({name} AS VARCHAR)"
    return f"replace({text}, '+00', '')" if pa.types.is_timestamp(kind) and kind.tz else text


def _int(number: str) -> str:
    return f"CAST(CAST({number} AS BIGINT) AS VARCHAR)"
