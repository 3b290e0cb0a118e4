"""Reading Feather files (Arrow's IPC format) and files with one JSON object a line.

Text stays text: a JSON string is not read as a number or a date. A column of numbers and texts becomes text; a column
of lists or objects can only be removed. Messages give line numbers and counts, never a cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.engines.frames import with_nested_types
from shoal.errors import DataError, EmptyTableError

FEATHER, JSON_LINES = (".feather", ".arrow", ".ipc"), (".jsonl", ".ndjson")


def is_arrow_or_json(path: Path) -> bool:
    """Return whether a file has one of these formats, judging by its name."""
    return path.suffix.lower() in FEATHER + JSON_LINES


def read_arrow_or_json(raw: bytearray | memoryview, path: Path) -> pa.Table:
    """Read the table in the bytes of such a file."""
    if path.suffix.lower() in FEATHER:
        return with_nested_types(_feather(raw, path.name))
    return with_nested_types(_json_lines(raw, path.name))


def _feather(raw: bytearray | memoryview, name: str) -> pa.Table:
    from pyarrow import feather

    try:
        return feather.read_table(pa.BufferReader(pa.py_buffer(raw)))
    except MemoryError:
        raise
    except Exception:
        raise DataError(f"{name} is not a complete Feather file", "write it again, as Parquet or CSV") from None


def _json_lines(raw: bytearray | memoryview, name: str) -> pa.Table:
    columns: dict[str, list[object]] = {}
    n = 0
    for n, record in enumerate(_records(raw, name), 1):
        for column, value in record.items():
            cells = columns.setdefault(column, [])
            cells += [None] * (n - 1 - len(cells))
            cells.append(value)
    if not n:
        raise EmptyTableError(f"{name} has no records")
    for cells in columns.values():
        cells += [None] * (n - len(cells))
    return pa.table({column: _column(cells) for column, cells in columns.items()})


def _records(raw: bytearray | memoryview, name: str) -> Iterator[dict[str, Any]]:
    try:
        lines = bytes(raw).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise DataError(f"{name} is not UTF-8", "JSON is written in UTF-8: convert the file") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            raise DataError(f"{name}: line {number} is not a JSON object with different names") from None
        if not isinstance(record, dict):
            raise DataError(f"{name}: line {number} is not a JSON object", "write one object a line, a record each")
        yield record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError
    return members


def _column(cells: list[object]) -> pa.Array:
    """Return the cells with the type that they share; lists and objects as lists, which have no plain form."""
    kinds = {type(cell) for cell in cells if cell is not None}
    if kinds & {list, dict}:
        return pa.array([None if cell is None else [json.dumps(cell)] for cell in cells], pa.list_(pa.string()))
    try:
        if len(kinds) == 1:
            return pa.array(cells)
        if kinds == {int, float} and all(cell is None or abs(cell) < 2**53 for cell in cells):  # type: ignore[arg-type]
            return pa.array(cells, pa.float64())
    except (pa.ArrowException, OverflowError):
        pass
    texts = [cell if cell is None or isinstance(cell, str) else json.dumps(cell) for cell in cells]
    return pa.array(texts, pa.string())
