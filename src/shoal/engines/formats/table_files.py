"""Reading tables from CSV and Parquet files, and writing releases to them.

Text stays text: every column of a CSV file is read verbatim, an unquoted empty field as null, a quoted one as ''. A
release is written to a temporary file next to its target, checked there, and renamed into place only if the check
passes. Messages give line numbers and counts, never a cell; Arrow's own messages quote the row and are not passed on.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import hashlib
import io
import os
import re
import secrets
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv

from shoal.engines.codebook import NO_LABELS, Codebook
from shoal.engines.formats import arrow_json, atomic_files, csv_text, dialects, layout, office_files
from shoal.engines.formats.layout import PARQUET as PARQUET
from shoal.engines.formats.layout import TEXT as TEXT
from shoal.engines.formats.layout import Dialect, Layout
from shoal.engines.formats.layout import separator_of as separator_of
from shoal.engines.frames import require_names, small_slices, with_plain_types
from shoal.errors import DataError, OutputError, VerificationError
from shoal.tables.frequency import Counts

FileBytes = bytearray | memoryview

BLOCKS = (2**22, 2**26, 2**30)  # Arrow needs every record within two blocks; larger blocks only if needed
ROW_GROUP = 2**18  # rows; the writer holds about three times as many
DIGITS = 38  # of a decimal, in SQL
TEXT_TIMES = 4  # memory that a table takes, times the bytes of its text
CELL_BYTES = 24  # of a cell in memory, with its codes while it is counted


@dataclass(frozen=True)
class Source:
    """A table and the file it was read from."""

    table: pa.Table
    dialect: Dialect | None  # None for Parquet
    sha256: str  # of the file's bytes
    notes: tuple[str, ...]  # assumptions made
    codebook: Codebook = NO_LABELS


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────


def read_table_file(
    path: Path,
    *,
    separator: str | None = None,
    encoding: str | None = None,
    header: bool | None = True,
) -> Source:
    """Read the table in a CSV or Parquet file; a file that is not named as Parquet is read as CSV.

    ``header``: whether the first line of a CSV file or sheet has the names; None refuses one that looks like a record.
    """
    raw = _file_bytes(path)
    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(hashlib.sha256, raw)  # while the table is read
        if path.suffix.lower() in PARQUET:
            table, notes = _read_parquet(raw, path.name)
            return Source(table, None, hashed.result().hexdigest(), notes)
        if office_files.is_foreign(path):
            table, notes, codebook = office_files.read_office_file(path, header)
            return Source(table, None, hashed.result().hexdigest(), notes, codebook)
        if arrow_json.is_arrow_or_json(path):
            return Source(arrow_json.read_arrow_or_json(raw, path), None, hashed.result().hexdigest(), ())
        if path.suffix.lower() == ".gz":
            raw = _gunzip(raw, path.name)
        scan = layout.layout_of(partial(_pieces, raw), path.name, separator=separator, encoding=encoding, header=header)
        require_room_for_cells(path.name, scan.records, len(scan.names), len(raw))
        if not scan.plain:
            spelled = bytearray()
            layout.rewritten(partial(_pieces, raw), path.name, scan, spelled.extend)
            raw = spelled
        table = _parsed(raw, path.name, scan)
        return Source(table, scan.dialect, hashed.result().hexdigest(), scan.notes)


def _file_bytes(path: Path) -> FileBytes:
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory", "name one CSV or Parquet file")
        if path.is_char_device():
            raise DataError(f"{path} is a device, which has no end", "name one CSV or Parquet file")
        with path.open("rb") as file:
            room = np.empty(os.fstat(file.fileno()).st_size, np.uint8).data  # NumPy's memory has large pages
            raw: FileBytes = room[: file.readinto(room)]
            if rest := file.read():  # of a pipe, which has no size
                raw = bytearray(raw) + rest
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise DataError(f"{str(path)!r}: not a valid file name") from None
    if not raw:
        raise DataError(f"{path.name} is empty", "expected a line of column names, then one line per record")
    return raw


def _pieces(raw: FileBytes) -> Generator[bytes, None, None]:
    view = memoryview(raw)  # a slice of the array itself would be copied twice
    for start in range(0, len(raw), layout.CHUNK):
        yield bytes(view[start : start + layout.CHUNK])


def _gunzip(raw: FileBytes, name: str) -> bytearray:
    room, plain = physical_memory(), bytearray()
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as file:
            while piece := file.read(layout.CHUNK):
                plain += piece
                if room is not None and len(plain) * TEXT_TIMES > room:
                    raise DataError(
                        f"{name} unpacks to more than {len(plain) / 2**20:,.0f} MB, too much for memory",
                        "read it in pieces, with DuckDB",
                        option="--engine duckdb",
                    )
        return plain
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name} is not a complete gzip file") from None


def _parsed(plain: FileBytes, name: str, scan: Layout) -> pa.Table:
    """Parse the records of a UTF-8 text that the scan accepted, and check their number."""
    names = list(scan.names)
    if plain[-1] not in b"\r\n":  # Arrow would read an empty field at the very end as a quoted one
        plain = bytearray(plain) + b"\n"
    parse = arrow_csv.ParseOptions(
        delimiter=scan.dialect.separator,
        newlines_in_values=scan.breaks,
        ignore_empty_lines=len(names) > 1,  # in a table with one column, a blank line is a null
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    block = next(block for block in BLOCKS if block > 2 * scan.longest + 64)
    options = arrow_csv.ReadOptions(column_names=names, block_size=block)
    try:
        table = arrow_csv.read_csv(pa.BufferReader(pa.py_buffer(plain)), options, parse, convert)
    except pa.ArrowInvalid:
        raise DataError(f"{name} cannot be parsed as CSV", "check its quotes") from None
    table = table.slice(1) if scan.header else table
    require_records(name, len(table), scan.records)
    return table


def require_records(name: str, read: int, counted: int) -> None:
    """Require that a reader returns all records that the scan counted, neither fewer nor more."""
    if read != counted:
        raise DataError(
            f"{name}: {counted} records were counted but {read} were read; processing stopped",
            "this is a fault of the reader: please report it, and try the other one, local or duckdb",
            option="--engine",
        )


def _read_parquet(raw: FileBytes, name: str) -> tuple[pa.Table, tuple[str, ...]]:
    import pyarrow.parquet as pq  # also loads Arrow's file systems, and SSL

    try:
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(raw)))
        require_room_for_cells(name, file.metadata.num_rows, file.metadata.num_columns)
        notes = parquet_notes(file.schema_arrow)
        table = file.read()
    except (DataError, MemoryError):  # Arrow's own is one too
        raise
    except Exception:
        raise DataError(f"{name} is not a complete Parquet file", "write it again, or rename it if it is CSV") from None
    for j, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:  # instants as in SQL: in UTC, without nanoseconds
            unit = "us" if field.type.unit == "ns" else field.type.unit
            table = table.set_column(j, field.name, table.column(j).cast(pa.timestamp(unit, "UTC"), safe=False))
    return with_plain_types(table), notes


def cells_of(metadata: Any) -> int:
    """Return how many cells a Parquet file unpacks to: a file of a few bytes may hold a value a billion times."""
    return int(metadata.num_rows) * int(metadata.num_columns)


def require_room_for_cells(name: str, n_rows: int, n_columns: int, n_bytes: int = 0) -> None:
    """Reject a file whose cells cannot be in memory all at once, beside the bytes of its text."""
    room = physical_memory()
    if room is not None and n_rows * n_columns * CELL_BYTES + n_bytes > room:
        raise DataError(
            f"{name} unpacks to {n_rows:,} rows with {n_columns} columns, too many for memory",
            "read it in pieces, with DuckDB",
            option="--engine duckdb",
        )


def physical_memory() -> int | None:
    """Return the bytes of memory of this computer, if it tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (OSError, ValueError, AttributeError):
        return None


def parquet_notes(schema: pa.Schema) -> tuple[str, ...]:
    """Reject columns that readers of Parquet interpret differently; return notes about the others."""
    require_names(schema.names)
    for field in schema:
        if pa.types.is_decimal(field.type) and field.type.precision > DIGITS:
            raise DataError(
                f"column {field.name!r} of type {field.type} may have more than the {DIGITS} digits that SQL knows",
                f"cast it to decimal128({DIGITS}, …), or to text",
            )
        if getattr(field.type, "extension_name", "") == "arrow.json":
            raise DataError(
                f"column {field.name!r} contains JSON, not one plain value per cell", "split it into columns"
            )
    with_plain_types(pa.Table.from_pylist([{}], schema=schema))  # raises where a type has no plain form
    indexes = [name for name in schema.names if re.fullmatch(r"__index_level_\d+__", name)]
    return (
        *(f"column {name!r} looks like a saved row index of pandas" for name in indexes),
        *(f"column {name!r}: instants are read to the microsecond" for name in nanoseconds(schema)),
    )


def nanoseconds(schema: pa.Schema) -> list[str]:
    """Find the instants with more digits than SQL keeps."""
    kinds = {field.name: field.type for field in schema if pa.types.is_timestamp(field.type)}
    return [name for name, kind in kinds.items() if kind.tz and kind.unit == "ns"]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────


def check_target(path: Path, force: bool = False) -> None:
    """Raise the errors that ``write_table_file`` would raise about its target, before the long computation."""
    if path.suffix.lower() in office_files.WRITTEN:
        office_files.check_packages(path)
    elif path.suffix.lower() not in TEXT + PARQUET:
        extensions = " ".join(TEXT + PARQUET + office_files.WRITTEN)
        raise OutputError(f"unknown extension: {path.name}", f"use one of {extensions}")
    atomic_files.check_place(path, force)


def write_table_file(
    table: pa.Table | Iterable[pa.Table],
    path: Path,
    *,
    dialect: Dialect | None = None,
    codebook: Codebook | None = None,
    force: bool = False,
    verify: Callable[[Path], None],
    in_row_groups: bool = False,
    counts: Counts | None = None,
    commas: Sequence[str] = (),
) -> str:
    """Write under a hidden name, let ``verify`` judge that file, then rename it into place; return its SHA-256.

    The table may come in pieces, only one of which is in memory at a time. ``in_row_groups``: each piece is one row
    group of a Parquet file. The labels of a ``codebook`` are written to formats that have labels. ``counts``: how often
    each row occurs in a CSV file. ``commas``: columns whose numbers a CSV file has with a decimal comma. Where a CSV
    file is not plain UTF-8 with points, the plain one is judged, and the one in its ``dialect`` is compared with it.
    """
    check_target(path, force)
    pieces = [table] if isinstance(table, pa.Table) else table
    tables = iter(pieces) if in_row_groups else row_groups(pieces)
    first = next(tables, None)
    if first is None:
        raise OutputError("the release has no rows", "every record was suppressed: relax the requirements")
    hidden = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    published = hidden
    if path.suffix.lower() in TEXT and dialect is not None and (commas or not dialects.is_plain(dialect)):
        published = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    n_rows = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal n_rows
        for table in chain([first], tables):
            n_rows += len(table)
            yield table

    try:
        with atomic_files.output_errors(path), atomic_files.private_file(hidden) as file:
            if path.suffix.lower() in office_files.WRITTEN:
                office_files.write_office_file(pa.concat_tables(counted()), hidden, codebook or NO_LABELS)
            elif path.suffix.lower() in PARQUET:
                _write_parquet(counted(), file)
            elif published is hidden or dialect is None:
                _write_csv(counted(), file, separator_of(path, dialect), *([] if counts is None else [counts]))
            else:
                with atomic_files.private_file(published) as dialect_file:
                    in_dialect = dialects.DialectFile(dialect_file, dialect)
                    _write_csv(
                        counted(), file, separator_of(path, dialect), counts, in_dialect=in_dialect, commas=commas
                    )
                    dialect_file.flush()
                    os.fsync(dialect_file.fileno())
            file.flush()
            os.fsync(file.fileno())
        verify(hidden)
        if path.suffix.lower() in TEXT:
            n_records = n_rows if counts is None else int(counts.sum())
            _require_readable(hidden, separator_of(path, dialect), first.column_names, n_records)
        with atomic_files.output_errors(path):
            if published is not hidden and dialect is not None:
                dialects.require_same(hidden, published, dialect, commas, first.column_names)
            digest = _sha256(published)
            atomic_files.publish(published, path, force)
    finally:
        for aside in {hidden, published}:
            with contextlib.suppress(OSError, ValueError):  # on a disk that became read-only it stays, as was reported
                aside.unlink(missing_ok=True)
    return digest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _require_readable(written: Path, separator: str, names: Sequence[str], n_rows: int) -> None:
    """Reject a file that shoal's own readers would reject or read as different rows."""
    raw = partial(layout.decompressed_chunks, written)
    try:
        scan = layout.layout_of(raw, "what was written", separator=separator)
    except DataError as error:
        raise VerificationError(f"{error.message}; nothing was released", "write Parquet instead") from None
    if scan.names != tuple(names) or scan.records != n_rows:
        raise VerificationError(
            "the columns or rows of the written file differ from those of the release; nothing was released"
        )


def row_groups(tables: Iterable[pa.Table], size: int = ROW_GROUP) -> Iterator[pa.Table]:
    """Split the rows into tables of a fixed size with one chunk per column, so that equal rows give equal bytes."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        while sum(map(len, waiting)) >= size:
            whole = pa.concat_tables(waiting)
            yield with_plain_types(whole.slice(0, size)).combine_chunks()
            waiting = [whole.slice(size)]
    if sum(map(len, waiting)):
        yield with_plain_types(pa.concat_tables(waiting)).combine_chunks()


def _write_csv(
    tables: Iterable[pa.Table],
    file: BinaryIO,
    separator: str,
    counts: Counts | None = None,
    *,
    in_dialect: dialects.DialectFile | None = None,
    commas: Sequence[str] = (),
) -> None:
    """Write UTF-8 with LF, quotes only where needed, null as an empty field and '' as two quotes.

    The same lines are written ``beside`` in another dialect, with decimal commas in some columns.
    """
    n_rows = 0
    for i, table in enumerate(tables):
        if i == 0:
            names = [pa.array([name]) for name in table.column_names]
            header = csv_text.csv_lines(pa.RecordBatch.from_arrays(names, table.column_names), separator)
            file.write(header)
            if in_dialect is not None:
                in_dialect.write(header)
        for batch in table.to_batches(max_chunksize=2**16):
            for piece in small_slices(batch):
                if not piece.num_rows:
                    continue
                piece_counts = None if counts is None else counts[n_rows : n_rows + len(piece)]
                for block in _blocks(piece, separator, piece_counts):
                    file.write(block)
                if in_dialect is not None:
                    other = dialects.with_commas(piece, commas, csv_text.column_texts(piece)) if commas else piece
                    for block in _blocks(other, separator, piece_counts):
                        in_dialect.write(block)
                n_rows += len(piece)


def _blocks(piece: pa.RecordBatch, separator: str, counts: Counts | None) -> Iterable[bytes]:
    """Return the lines of some rows, each as often as it occurs."""
    if counts is None:
        return [csv_text.csv_lines(piece, separator)]
    return csv_text.repeated_lines(csv_text.line_texts(piece, separator), counts)


def _write_parquet(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write one row group per table; texts that come as codes are described as texts."""
    import pyarrow.parquet as pq

    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            if writer is None:
                writer = pq.ParquetWriter(file, table.schema, compression="zstd", store_schema=False)
                described = pa.schema([(field.name, _decoded_type(field.type)) for field in table.schema])
                writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(described.serialize())})
            writer.write_table(table, row_group_size=ROW_GROUP)
    finally:
        if writer is not None:
            writer.close()


def _decoded_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind
