"""What a file holds beside the table that is read from it: it is published with the table, and no count sees it."""

from __future__ import annotations

import base64
import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines.formats import office_files
from shoal.engines.formats.parquet_parts import named_parts, other_files, parquet_parts
from shoal.engines.formats.table_files import PARQUET, nanoseconds
from shoal.engines.formats.workbook_parts import unread_parts
from shoal.errors import DataError
from shoal.text.figures import format_count

# Keys of the metadata that programs write about the types of a Parquet file; each is checked for what else it holds.
OF_TYPES = ("ARROW:schema", "pandas", "org.apache.spark.version", "org.apache.spark.sql.parquet.row.metadata")
OF_PANDAS = {"index_columns", "column_indexes", "columns", "creator", "pandas_version", "partition_columns"}
GZIP_HEADER, GZIP_CHUNK = 266, 2**20  # bytes
OF_FIELDS = (b"PARQUET:field_id",)
WRITE_AGAIN = "Write the table again with shoal, or as .csv, and publish only that file"


@dataclass(frozen=True)
class UnreadContent:
    """Content of a file that is published and not counted; a message about it never quotes it."""

    fact: str
    remedy: str = WRITE_AGAIN
    columns: tuple[str, ...] = ()
    about_people: bool = True  # whether it may hold values of records, or only what a program or its user wrote


def unread_content(source: Any) -> tuple[UnreadContent, ...]:
    """Return what a file or folder holds beside its table; nothing for anything else."""
    if not isinstance(source, str | Path):
        return ()
    path = Path(source)
    try:
        if path.is_dir():
            return tuple(_of_folder(path))
        if not path.is_file():
            return ()
        suffix = path.suffix.lower()
        if suffix in PARQUET:
            return tuple(_of_parquet(path))
        if suffix in office_files.SHEETS:
            return tuple(_of_workbook(path))
        if suffix in office_files.STATISTICS:
            return tuple(_of_statistics(path))
        return tuple(_of_gzip(path)) if suffix == ".gz" else ()
    except MemoryError:
        raise
    except (OSError, zipfile.BadZipFile, zlib.error, pa.ArrowException):
        raise DataError(f"{path.name} cannot be read a second time", "did it change during the check?") from None


# ── folders and Parquet ──────────────────────────────────────────────────────────────────────────────────────────


def _of_folder(folder: Path) -> Iterator[UnreadContent]:
    if unread_files := other_files(folder):
        count = format_count(len(unread_files), "file")
        yield UnreadContent(f"Beside the table, the folder has {count}", "Remove what is not part of the table")
    if named := named_parts(folder):
        yield UnreadContent(
            f"The names of {format_count(len(named), 'file')} in the folder may tell something about the rows in them",
            "Rename them part-00000.parquet, part-00001.parquet and so on, with the rows in random order",
        )
    facts: dict[UnreadContent, None] = {}
    for part in parquet_parts(folder):
        facts |= dict.fromkeys(_of_parquet(part))
    yield from facts


def _of_parquet(path: Path) -> Iterator[UnreadContent]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        metadata = dict(file.metadata.metadata or {})
        names = file.schema_arrow.names
        if n := sum(_holds_more(key, value, names) for key, value in metadata.items()):
            yield UnreadContent(f"The Parquet file has metadata that does not describe its columns ({n} keys)")
        if described := [field.name for field in file.schema_arrow if set(field.metadata or {}) - set(OF_FIELDS)]:
            yield UnreadContent("Columns have metadata of their own", columns=tuple(described))
        for name in nanoseconds(file.schema_arrow):
            if n := _finer_than_microseconds(file.read(columns=[name])[name]):
                instants = format_count(n, "instant")
                yield UnreadContent(f"Column {name!r}: {instants} have digits beyond the microsecond", columns=(name,))
        texts = [field.name for field in file.schema_arrow if _is_text(field.type)]
        unused = _unused_texts(path, file, texts) if texts else {}
        for name, n in unused.items():
            listed = format_count(n, "text")
            yield UnreadContent(f"Column {name!r}: the file lists {listed} that no row has", columns=(name,))


def _finer_than_microseconds(column: pa.ChunkedArray) -> int:
    coarse = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(column.type)
    return int(pc.sum(pc.not_equal(coarse, column)).as_py() or 0)


def _holds_more(key: bytes, value: bytes, names: list[str]) -> bool:
    """Return whether an entry of the metadata says anything but the types of the columns."""
    name = key.decode("utf-8", "replace")
    if name not in OF_TYPES:
        return True
    if name == "ARROW:schema":
        schema = pa.ipc.read_schema(pa.BufferReader(base64.b64decode(value)))
        return bool({key.decode("utf-8", "replace") for key in schema.metadata or {}} - set(OF_TYPES))
    if name == "org.apache.spark.version":
        return len(value) > 40
    try:
        entry = json.loads(value)
    except ValueError:
        return True
    return _more_than_pandas(entry, names) if name == "pandas" else _more_than_spark(entry, names)


def _more_than_pandas(entry: Any, names: list[str]) -> bool:
    """Return whether pandas' entry names columns that are not there, or holds anything but types."""
    if not isinstance(entry, Mapping) or set(entry) - OF_PANDAS - {"attributes"} or entry.get("attributes"):
        return True
    described = [column for column in entry.get("columns", []) if isinstance(column, Mapping)]
    fields = {column.get("field_name") for column in described} - {None}
    indexes = [index for index in entry.get("index_columns", []) if not isinstance(index, Mapping)]
    return bool((fields | set(indexes)) - set(names)) or any(
        set(column.get("metadata") or {})
        - {"num_categories", "ordered", "encoding", "timezone", "unit", "precision", "scale"}
        for column in [*described, *entry.get("column_indexes", [])]
    )


def _more_than_spark(entry: Any, names: list[str]) -> bool:
    fields = entry.get("fields", []) if isinstance(entry, Mapping) else []
    return any(field.get("name") not in names or field.get("metadata") for field in fields)


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return _is_text(kind.value_type)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _unused_texts(path: Path, file: Any, names: list[str]) -> dict[str, int]:
    """Count the texts in the dictionaries of each column that occur in no row of the file."""
    import pyarrow.parquet as pq

    unused = {}
    for name in names:
        listed: set[Any] = set()
        texts_of_rows: set[Any] = set()
        with pq.ParquetFile(path, read_dictionary=[name]) as again:
            for i in range(again.metadata.num_row_groups):
                for chunk in again.read_row_group(i, columns=[name])[name].chunks:
                    if pa.types.is_dictionary(chunk.type):
                        texts = chunk.dictionary.to_pylist()
                        listed.update(texts)
                        texts_of_rows.update(texts[j] for j in chunk.indices.unique().to_pylist() if j is not None)
        if n := len(listed - texts_of_rows - {None}):
            unused[name] = n
    return unused


# ── workbooks, files of statistical packages, gzip ──────────────────────────────────────────────────────────────────


def _of_workbook(path: Path) -> Iterator[UnreadContent]:
    for may_be_data, content, n in unread_parts(path):
        if n:
            remedy = "Copy the table alone into a new workbook, or publish it as .csv"
            yield UnreadContent(f"The workbook has {n} {content}", remedy, about_people=may_be_data)


def _of_statistics(path: Path) -> Iterator[UnreadContent]:
    table, _, codebook = office_files.read_office_file(path)
    for name, labels in codebook.values.items():
        if name in table.column_names:
            texts = set(office_files.coded_texts(name, table[name]))
            if n := len(set(labels) - texts):
                values = format_count(n, "value")
                yield UnreadContent(f"Column {name!r} has labels for {values} that do not occur", columns=(name,))
    if office_files.n_notes(path):
        yield UnreadContent("The file has notes or a title of its own")


def _of_gzip(path: Path) -> Iterator[UnreadContent]:
    """Return the name, comment or extra field that a gzip header has beside the name of the file, in any member."""
    with path.open("rb") as file:
        piece, n_told = file.read(GZIP_CHUNK), 0
        while piece:
            n_told += _tells_more(piece, path)
            member = zlib.decompressobj(zlib.MAX_WBITS | 16)
            while piece and not member.eof:
                member.decompress(piece, GZIP_CHUNK)
                piece = member.unconsumed_tail or member.unused_data or file.read(GZIP_CHUNK)
            piece = piece.lstrip(b"\0")
            if piece and len(piece) < GZIP_HEADER:
                piece += file.read(GZIP_HEADER)
    if n_told:
        yield UnreadContent(
            "The gzip header has a file name or a comment", "Pack it again: gzip -n", about_people=False
        )


def _tells_more(header: bytes, path: Path) -> bool:
    if len(header) < 10 or not header[3] & 0b11100:
        return False
    name = header[10:GZIP_HEADER].partition(b"\0")[0].decode("latin-1")
    return bool(header[3] & 0b10100) or name not in (path.stem, path.with_suffix("").name, "")
