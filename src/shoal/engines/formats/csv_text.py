"""Rows as lines of a CSV file: UTF-8 with LF, quotes only where needed, null as an empty field and '' as two quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.frames import string_bytes
from shoal.errors import OutputError
from shoal.hierarchies.pieces import copies_in_pieces
from shoal.tables.frequency import Counts

WRITTEN = 2**20  # bytes written at a time, where lines are repeated


def csv_lines(batch: pa.RecordBatch, separator: str) -> bytes:
    """Join the values of a string array, each with its LF, into the bytes of the file: they are contiguous."""
    return string_bytes(line_texts(batch, separator))


def line_texts(batch: pa.RecordBatch, separator: str) -> pa.StringArray:
    """Return the lines of some rows, each with its LF."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    fields = [_fields(name, column, separator) for name, column in columns]
    fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
    return pc.binary_join_element_wise(*fields, separator) if len(fields) > 1 else fields[0]


def column_texts(batch: pa.RecordBatch) -> list[pa.Array]:
    """Return every column as the texts that are written."""
    return [_spelled(column) for column in batch.columns]


def repeated_lines(lines: pa.StringArray, counts: Counts) -> Iterator[bytes]:
    """Yield each line as often as it occurs, some megabytes at a time."""
    longest = int(pc.max(pc.binary_length(lines)).as_py() or 1)
    size = max(1, WRITTEN // longest)
    for first, copies in copies_in_pieces(counts, size):
        places = np.repeat(np.arange(first, first + len(copies)), copies)
        yield string_bytes(lines.take(pa.array(places)))


def _fields(name: str, column: pa.Array, separator: str) -> pa.Array:
    text = _spelled(column)
    content = string_bytes(text)
    if b"\0" in content:
        raise OutputError(f"column {name!r} holds NUL characters, CSV cannot", "write Parquet instead")
    if any(mark.encode() in content for mark in (separator, '"', "\r", "\n", "\ufeff")):
        # A byte order mark at the start of the first field would otherwise be read as that of the file.
        special = pc.match_substring_regex(text, f'[{re.escape(separator)}"\r\n\ufeff]')
        doubled = pc.replace_substring(text, '"', '""')
        text = pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)
    return pc.fill_null(pc.if_else(pc.equal(text, ""), '""', text), "")


def _spelled(column: pa.Array) -> pa.Array:
    """Format values as text: shortest floats that round-trip, plain decimals, ISO dates, instants in UTC."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_decimal(kind):  # Arrow would write 1E-8
        distinct = column.dictionary_encode()
        spelled = pa.array([format(value, "f") for value in distinct.dictionary.to_pylist()], pa.string())
        return spelled.take(distinct.indices)
    if pa.types.is_timestamp(kind):
        # Without a zone, an instant is shown as its UTC wall time, so no time zone database is needed.
        text = column.cast(pa.timestamp(kind.unit)).cast(pa.string())
        text = pc.replace_substring(_without_zero_fraction(text), " ", "T")
        return pc.binary_join_element_wise(text, "Z", "") if kind.tz else text
    text = column.cast(pa.string())
    return _without_zero_fraction(text) if pa.types.is_time(kind) else text


def _without_zero_fraction(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"\.0+$", "")
