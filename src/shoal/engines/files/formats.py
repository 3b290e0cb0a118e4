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
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from shoal.engines.codebook import NO_LABELS, Codebook
from shoal.engines.files import layout, office_files
from shoal.engines.files.layout import Dialect, Layout
from shoal.engines.files.lines import DistinctLines, few_lines
from shoal.engines.files.numbered import numbered_columns, numbered_texts
from shoal.engines.frames import require_names, small_slices, string_bytes, with_plain_types
from shoal.errors import DataError, OutputError, VerificationError, already_there
from shoal.table.frequency import Counts
from shoal.table.pieces import copies_in_pieces

FileBytes = bytearray | memoryview
TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")

BLOCKS = (2**22, 2**26, 2**30)  # Arrow needs every record within two blocks; larger blocks only if needed
ROW_GROUP = 2**18  # rows; the writer holds about three times as many
WRITTEN = 2**20  # bytes of a CSV file written at a time, where lines are repeated
BUFFER = 2**25  # bytes of a CSV file that DuckDB processes at a time; at least one record
DIGITS = 38  # of a decimal, in SQL
PARQUET_OPTIONS = "binary_as_string = true, hive_partitioning = false, union_by_name = false, filename = false"


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
    path: Path, *, separator: str | None = None, encoding: str | None = None, numbered: bool = False
) -> Source:
    """Read the table in a CSV or Parquet file; a file that is not named as Parquet is read as CSV.

    ``numbered``: texts that a Parquet file stores as numbers may come as dictionaries.
    """
    raw = _file_bytes(path)
    with ThreadPoolExecutor(1) as pool:
        hashed = pool.submit(hashlib.sha256, raw)  # while the table is read
        if path.suffix.lower() in PARQUET:
            table, notes = _read_parquet(raw, path.name, numbered)
            return Source(table, None, hashed.result().hexdigest(), notes)
        if office_files.is_foreign(path):
            table, notes, codebook = office_files.read_office_file(path)
            return Source(table, None, hashed.result().hexdigest(), notes, codebook)
        if path.suffix.lower() == ".gz":
            raw = _gunzip(raw, path.name)
        found = layout.layout_of(partial(_pieces, raw), path.name, separator=separator, encoding=encoding)
        if not found.plain:
            spelled = bytearray()
            layout.rewritten(partial(_pieces, raw), path.name, found, spelled.extend)
            raw = spelled
        table = _parsed(raw, path.name, found)
        return Source(table, found.dialect, hashed.result().hexdigest(), found.notes)


def _file_bytes(path: Path) -> FileBytes:
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory", "name one CSV or Parquet file")
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
    try:
        return bytearray(gzip.decompress(raw))
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name} is not a complete gzip file") from None


def _parsed(plain: FileBytes, name: str, found: Layout) -> pa.Table:
    """Parse the records of a UTF-8 text that the scan accepted, and check their number."""
    names = list(found.names)
    if plain[-1] not in b"\r\n":  # Arrow would read an empty field at the very end as a quoted one
        plain = bytearray(plain) + b"\n"
    parse = arrow_csv.ParseOptions(
        delimiter=found.dialect.separator,
        newlines_in_values=found.breaks,
        ignore_empty_lines=len(names) > 1,  # in a table with one column, a blank line is a null
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    block = next(block for block in BLOCKS if block > 2 * found.longest + 64)
    options = arrow_csv.ReadOptions(column_names=names, block_size=block)
    try:
        table = arrow_csv.read_csv(pa.BufferReader(pa.py_buffer(plain)), options, parse, convert)
    except pa.ArrowInvalid:
        raise DataError(f"{name} cannot be parsed as CSV", "check its quotes") from None
    require_records(name, len(table) - 1, found.records)
    return table.slice(1)  # without the header


def require_records(name: str, read: int, counted: int) -> None:
    """Require that a reader returns all records that the scan counted, neither fewer nor more."""
    if read != counted:
        raise DataError(
            f"{name}: {counted} records were counted but {read} were read; processing stopped",
            "this is a fault of the reader: please report it, and try the other one, local or duckdb",
            option="--engine",
        )


def _read_parquet(raw: FileBytes, name: str, numbered: bool) -> tuple[pa.Table, tuple[str, ...]]:
    import pyarrow.parquet as pq  # also loads Arrow's file systems, and SSL

    try:
        source = pa.py_buffer(raw)
        file = pq.ParquetFile(pa.BufferReader(source))
        notes = parquet_notes(file.schema_arrow)
        numbers = numbered_columns(file) if numbered else []
        table = pq.ParquetFile(pa.BufferReader(source), read_dictionary=numbers).read() if numbers else file.read()
    except DataError:
        raise
    except Exception:
        raise DataError(f"{name} is not a complete Parquet file", "write it again, or rename it if it is CSV") from None
    for j, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type) and field.type.tz:  # instants as in SQL: in UTC, without nanoseconds
            unit = "us" if field.type.unit == "ns" else field.type.unit
            table = table.set_column(j, field.name, table.column(j).cast(pa.timestamp(unit, "UTC"), safe=False))
        elif field.name in numbers:
            table = table.set_column(j, field.name, numbered_texts(field.name, table.column(j)))
    return with_plain_types(table, numbers), notes


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
        known = " ".join(TEXT + PARQUET + office_files.WRITTEN)
        raise OutputError(f"unknown extension: {path.name}", f"use one of {known}")
    check_place(path, force)


def check_place(path: Path, force: bool = False) -> None:
    """Raise an error if no file can be written at this path."""
    with output_errors(path):
        if "\0" in str(path):
            raise OutputError(f"{str(path)!r}: not a valid file name")
        if not path.is_absolute() and _is_nowhere():
            raise OutputError(f"{path} cannot be written: the current folder was deleted", "change to another folder")
        if not path.parent.is_dir():
            raise OutputError(f"the folder {path.parent} does not exist", "create it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"the folder {path.parent} is not writable", "name a file elsewhere")
        if path.is_dir():
            raise OutputError(f"{path} is a directory", "name a file")
        if path.exists() and not path.is_file():  # renaming onto a device or a pipe would replace it by a file
            raise OutputError(f"{path} is not a regular file", "name another one", option="with -q nothing is printed")
        if not force and (path.exists() or path.is_symlink()):
            raise already_there(path)


def _is_nowhere() -> bool:
    """Return whether the current folder was deleted."""
    try:
        Path.cwd()
    except FileNotFoundError:
        return True
    return False


def write_text(path: Path, text: str, *, force: bool = False, private: bool = False) -> None:
    """Write a file that accompanies a release, such as its policy or certificate, completely or not at all.

    ``private``: only the owner may read it, regardless of the umask; for files that contain originals or keys.
    """
    write_bytes(path, text.encode(), force=force, private=private)


def write_bytes(path: Path, content: bytes, *, force: bool = False, private: bool = False) -> None:
    """Write binary content, such as an image, in the same way."""
    check_place(path, force)
    hidden = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    try:
        with output_errors(path):
            with _private(hidden) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _publish(hidden, path, force, private=private)
    finally:
        with contextlib.suppress(OSError, ValueError):  # on a disk that became read-only it stays, as was reported
            hidden.unlink(missing_ok=True)


def write_table_file(
    table: pa.Table | Iterable[pa.Table],
    path: Path,
    *,
    dialect: Dialect | None = None,
    codebook: Codebook | None = None,
    force: bool = False,
    verify: Callable[[Path], None],
    verify_lines: Callable[[DistinctLines], None] | None = None,
    in_row_groups: bool = False,
    counts: Counts | None = None,
) -> str:
    """Write under a hidden name, let ``verify`` judge that file, then rename it into place; return its SHA-256.

    The table may come in pieces, only one of which is in memory at a time. ``in_row_groups``: each piece is one row
    group of a Parquet file. ``verify_lines`` judges a CSV file by its distinct lines instead, if these are few. The
    labels of a ``codebook`` are written to formats that have labels. ``counts``: how often each row occurs in a CSV
    file.
    """
    check_target(path, force)
    pieces = [table] if isinstance(table, pa.Table) else table
    tables = iter(pieces) if in_row_groups else row_groups(pieces)
    first = next(tables, None)
    if first is None:
        raise OutputError("the release has no rows", "every record was suppressed: relax the requirements")
    hidden = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    n_rows = 0

    def counted() -> Iterator[pa.Table]:
        nonlocal n_rows
        for table in chain([first], tables):
            n_rows += len(table)
            yield table

    try:
        with output_errors(path), _private(hidden) as file:
            if path.suffix.lower() in office_files.WRITTEN:
                office_files.write_office_file(pa.concat_tables(counted()), hidden, codebook or NO_LABELS)
            elif path.suffix.lower() in PARQUET:
                _write_parquet(counted(), file)
            else:
                _write_csv(counted(), file, separator_of(path, dialect), *([] if counts is None else [counts]))
            file.flush()
            os.fsync(file.fileno())
        lines = None
        if path.suffix.lower() in TEXT:
            with output_errors(path):
                lines = few_lines(hidden, separator_of(path, dialect))
        if lines is None or verify_lines is None:
            verify(hidden)
        else:
            verify_lines(lines)
        if path.suffix.lower() in TEXT:
            n_records = n_rows if counts is None else int(counts.sum())
            _require_readable(hidden, lines, separator_of(path, dialect), first.column_names, n_records)
        with output_errors(path):
            digest = _sha256(hidden) if lines is None else lines.sha256
            _publish(hidden, path, force)
    finally:
        with contextlib.suppress(OSError, ValueError):  # on a disk that became read-only it stays, as was reported
            hidden.unlink(missing_ok=True)
    return digest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def parsed_lines(lines: DistinctLines) -> pa.Table:
    """Return the records of distinct lines, as texts."""
    return _parsed(lines.text, "what was written", lines.layout)


def _require_readable(
    written: Path, lines: DistinctLines | None, separator: str, names: Sequence[str], n_rows: int
) -> None:
    """Reject a file that shoal's own readers would reject or read as different rows; its ``lines`` were scanned."""
    raw = partial(layout.decompressed_chunks, written)
    try:
        found = layout.layout_of(raw, "what was written", separator=separator) if lines is None else lines.layout
    except DataError as error:
        raise VerificationError(f"{error.message}; nothing was released", "write Parquet instead") from None
    n_found = found.records if lines is None else lines.n_records
    if found.names != tuple(names) or n_found != n_rows:
        raise VerificationError(
            "the columns or rows of the written file differ from those of the release; nothing was released"
        )


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """Convert system errors about a path that cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"{path} cannot be written: {reason}") from None
    except UnicodeEncodeError:  # a lone surrogate, which no file system accepts
        raise OutputError(f"{str(path)!r}: not a valid file name") from None


def _private(path: Path) -> BinaryIO:
    """Create a file that only its owner can read and write from the start, regardless of the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb")


def open_up(path: Path) -> None:
    """Give a finished file or folder the mode that the umask grants to new ones."""
    # The mask can only be read by setting it; a strict one for a moment harms no other thread.
    mask = os.umask(0o077)
    os.umask(mask)
    with contextlib.suppress(OSError):  # not every file system has modes
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def _publish(hidden: Path, path: Path, force: bool, *, private: bool = False) -> None:
    """Rename the finished file into place atomically; unless forced, a file that exists by then stays."""
    if not private:
        open_up(hidden)
    if force:
        hidden.replace(path)
    else:
        try:
            path.hardlink_to(hidden)
        except FileExistsError:
            raise already_there(path) from None
        except OSError:  # on a file system without links: reserve the name, then fill the file
            _claim(path)
            try:
                hidden.replace(path)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
    with contextlib.suppress(OSError):  # not every system can sync a folder
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _claim(path: Path) -> None:
    try:
        _private(path).close()
    except FileExistsError:
        raise already_there(path) from None


def separator_of(path: Path, dialect: Dialect | None) -> str:
    """Return the field separator of a file that ``write_table_file`` makes."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return dialect.separator if dialect else ","


def row_groups(tables: Iterable[pa.Table], size: int = ROW_GROUP) -> Iterator[pa.Table]:
    """Split the rows into tables of a fixed size with one chunk per column, so that equal rows give equal bytes."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        while sum(map(len, held)) >= size:
            whole = pa.concat_tables(held)
            yield with_plain_types(whole.slice(0, size)).combine_chunks()
            held = [whole.slice(size)]
    if sum(map(len, held)):
        yield with_plain_types(pa.concat_tables(held)).combine_chunks()


def _write_csv(tables: Iterable[pa.Table], file: BinaryIO, separator: str, counts: Counts | None = None) -> None:
    """Write UTF-8 with LF, quotes only where needed, null as an empty field and '' as two quotes."""
    n_rows = 0
    for i, table in enumerate(tables):
        if i == 0:
            names = [pa.array([name]) for name in table.column_names]
            file.write(csv_lines(pa.RecordBatch.from_arrays(names, table.column_names), separator))
        for batch in table.to_batches(max_chunksize=2**16):
            for piece in small_slices(batch):
                if not piece.num_rows:
                    continue
                if counts is None:
                    file.write(csv_lines(piece, separator))
                else:
                    own = counts[n_rows : n_rows + len(piece)]
                    file.writelines(_repeated_lines(_line_texts(piece, separator), own))
                n_rows += len(piece)


def _repeated_lines(lines: pa.StringArray, counts: Counts) -> Iterator[bytes]:
    """Yield each line as often as it occurs, some megabytes at a time."""
    longest = int(pc.max(pc.binary_length(lines)).as_py() or 1)
    size = max(1, WRITTEN // longest)
    for first, copies in copies_in_pieces(counts, size):
        places = np.repeat(np.arange(first, first + len(copies)), copies)
        yield string_bytes(lines.take(pa.array(places)))


def csv_lines(batch: pa.RecordBatch, separator: str) -> bytes:
    """Join the values of a string array, each with its LF, into the bytes of the file: they are contiguous."""
    return string_bytes(_line_texts(batch, separator))


def _line_texts(batch: pa.RecordBatch, separator: str) -> pa.StringArray:
    """Return the lines of some rows, each with its LF."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    fields = [_fields(name, column, separator) for name, column in columns]
    fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
    return pc.binary_join_element_wise(*fields, separator) if len(fields) > 1 else fields[0]


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


def typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Convert a column read back as text to the type that was written."""
    if column.type == kind:
        return column
    if pa.types.is_time(kind) and pa.types.is_string(column.type):  # Arrow reads times only as parts of a date
        column = pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(kind.unit))
    return column.cast(kind)


# ── the second path ──────────────────────────────────────────────────────────────────────────────────────


def sql_source(path: Path, dialect: Dialect | None, columns: Sequence[str], *, found: Layout | None = None) -> str:
    """Return a DuckDB table expression for a file made by ``write_table_file``: CSV as VARCHAR, types not detected.

    ``found``: the scan of a file from another source, whose lines may end in LF or all in CRLF. DuckDB's messages quote
    the line that they reject: the caller must not pass them on.
    """
    lowered = [name.encode().lower() for name in columns]  # bytes: DuckDB folds ASCII letters only
    clashing = [name for name, low in zip(columns, lowered, strict=True) if lowered.count(low) > 1]
    if clashing:
        named = ", ".join(map(repr, clashing[:10]))
        raise DataError(f"column names differ only in case: {named}", "rename them: SQL cannot distinguish them")
    # Absolute, so that `~` is not expanded; every glob character of DuckDB is put in brackets.
    location = _literal(re.sub(r"([\[*?])", r"[\1]", str(path.absolute())))
    if path.suffix.lower() in PARQUET:
        return f"read_parquet({location}, {PARQUET_OPTIONS})"
    if found is None:
        longest = min(max(path.stat().st_size, 2**21), 2**28) if path.exists() else 2**28
        separator = separator_of(path, dialect)
    else:
        # Twice: a copy in plain spelling has more quotes than the file.
        longest, separator = max(2 * found.longest + 64, BUFFER), found.dialect.separator
    options: dict[str, str] = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in columns) + "}",
        "header": "true",
        "skip": "0",
        "delim": _literal(separator),
        "quote": _literal('"'),
        "escape": _literal('"'),
        "comment": "''",
        "new_line": r"'\n'",
        "nullstr": "''",
        "allow_quoted_nulls": "false",
        "null_padding": "false",
        "ignore_errors": "false",
        "strict_mode": "true",
        "encoding": "'utf-8'",
        "compression": "'none'",
        "hive_partitioning": "false",
        "union_by_name": "false",
        "filename": "false",
        "parallel": "false",  # a quoted field may hold any number of line breaks
        "max_line_size": str(longest),
        "buffer_size": str(longest),
    }
    if found is not None and found.plain and found.ends == ("CRLF",):
        del options["new_line"]  # otherwise DuckDB would find no lines
    return f"read_csv({location}, {', '.join(f'{name} = {value}' for name, value in options.items())})"


def parquet_folder(path: Path) -> str:
    """Return a DuckDB table expression for the Parquet files of a folder."""
    location = _literal(re.sub(r"([\[*?])", r"[\1]", str(path.absolute())) + "/**/*.parquet")
    return f"read_parquet({location}, {PARQUET_OPTIONS})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
