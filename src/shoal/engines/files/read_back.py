"""Read back a written file: convert its texts to the types of the rows that were written."""

from __future__ import annotations

import pyarrow as pa

from shoal.engines.files import formats
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
                column = formats.typed(groups[name], schema.field(name).type)
            except pa.ArrowException:
                raise VerificationError(f"column {name!r} cannot be read back; nothing was written") from None
            groups = groups.set_column(j, name, column)
    return groups
