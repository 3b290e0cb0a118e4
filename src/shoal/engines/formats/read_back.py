"""Read back a written file: convert its texts to the types of the rows that were written."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.frames import with_plain_types
from shoal.errors import VerificationError


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the types in which rows of these types are written."""
    return with_plain_types(pa.Table.from_pylist([{}], schema=schema)).schema


def typed_as(groups: pa.Table, schema: pa.Schema) -> pa.Table:
    """Convert groups of a CSV file, which contains only texts, to the types of the release."""
    for j, name in enumerate(groups.column_names):
        if name in schema.names:
            try:
                column = typed(groups[name], schema.field(name).type)
            except pa.ArrowException:
                raise VerificationError(f"column {name!r} cannot be read back; nothing was written") from None
            groups = groups.set_column(j, name, column)
    return groups


def typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert a column read back as text to the type that was written."""
    if column.type == kind:
        return column
    if pa.types.is_time(kind) and pa.types.is_string(column.type):  # Arrow reads times only as parts of a date
        column = pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(kind.unit))
    return column.cast(kind)
