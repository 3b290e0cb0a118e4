"""Texts of Parquet files as they are stored: a number for each cell, and each distinct text once.

Counting needs the numbers alone. Reading the texts of all cells takes four times as long, and numbering them again as
long again; they are made where they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.frames import PIECE_BYTES, plain_column

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MIN_ROWS = 2**16  # rows of a file from which on numbers pay
MIN_GROUP_ROWS = 2**12  # rows of its row groups, each of which has dictionaries of its own
TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
LENGTH = 4  # bytes that Parquet puts before each text that has no number


def numbered_columns(file: pq.ParquetFile) -> list[str]:
    """Return the columns of texts that a file stores as numbers: a text takes less than its length alone would."""
    metadata, schema = file.metadata, file.schema_arrow
    nested = metadata.num_columns != len(schema)
    if nested or metadata.num_rows < max(MIN_ROWS, MIN_GROUP_ROWS * metadata.num_row_groups):
        return []
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    names = []
    for j, field in enumerate(schema):
        if any(is_text(field.type) for is_text in TEXTS):
            stored = [group.column(j) for group in groups]
            n_bytes = sum(chunk.total_uncompressed_size for chunk in stored)
            if n_bytes < LENGTH * metadata.num_rows and all(chunk.has_dictionary_page for chunk in stored):
                names.append(field.name)
    return names


def numbered_texts(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column that was read as dictionaries with one for all of its chunks; it may list texts of no row."""
    chunks = column.unify_dictionaries().chunks
    texts = pa.concat_arrays(plain_column(name, pa.chunked_array([chunks[0].dictionary])).chunks)
    return pa.chunked_array([pa.DictionaryArray.from_arrays(chunk.indices, texts) for chunk in chunks])


def with_texts(table: pa.Table) -> pa.Table:
    """Return the table with texts in place of numbers; the table itself if there are none."""
    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(j, field.name, column_of_texts(table.column(j)))
    return table


def column_of_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the texts of a column, in chunks that Arrow's 32-bit offsets can address."""
    kind = column.type
    if not pa.types.is_dictionary(kind) or not pa.types.is_string(kind.value_type):
        return column
    chunks = []
    for chunk in column.chunks:
        longest = pc.max(pc.binary_length(chunk.dictionary)).as_py() or 1
        size = max(1, PIECE_BYTES // longest)
        chunks += [chunk.slice(first, size).dictionary_decode() for first in range(0, len(chunk), size)]
    return pa.chunked_array(chunks, kind.value_type)
