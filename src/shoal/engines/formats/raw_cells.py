"""Cells as a file stores them, where reading makes different ones equal.

A table is judged by its values: NaN is a null, -0.0 is 0, an instant has microseconds, 1 and the text "1" of a sheet
are one value, the missing values of SPSS are one null. Whoever reads the published bytes can tell them apart, so a
check of a file counts them apart too. The texts made here only tell cells apart; they are never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.formats import office_files
from shoal.engines.formats.table_files import PARQUET
from shoal.errors import DataError


def raw_columns(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    """Return those of some columns that are read with fewer distinct values than the file may have."""
    suffix = path.suffix.lower()
    if suffix in PARQUET:
        return _of_parquet(path, names)
    if suffix in office_files.SHEETS:
        return office_files.raw_sheet(path, names)
    if suffix in office_files.STATISTICS:
        return office_files.raw_statistics(path, names)
    return {}


def _of_parquet(path: Path, names: Sequence[str]) -> dict[str, pa.ChunkedArray]:
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            merging = [field.name for field in file.schema_arrow if field.name in names and _merges(field.type)]
            table = file.read(columns=merging) if merging else None
    except MemoryError:
        raise
    except (OSError, pa.ArrowException):
        raise DataError(f"{path.name} cannot be read a second time", "did it change during the check?") from None
    return {} if table is None else {name: _bits(table[name]) for name in merging}


def _merges(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _merges(kind.value_type)
    return bool(pa.types.is_floating(kind) or (pa.types.is_timestamp(kind) and kind.unit == "ns"))


def _bits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers and instants as the integers that they are stored as: every NaN is one of its own."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
    return pa.chunked_array([chunk.view(whole) for chunk in column.chunks], whole)


def n_distinct(column: pa.ChunkedArray) -> int:
    """Count the distinct cells of a column; null is one."""
    return len(pc.unique(column))
