"""Tables from CSV and Parquet files, and releases back into them.

Text stays text: every column of a CSV file is read as it is written, an unquoted empty field as null, a
quoted one as ''. A release is written beside its target, checked there, and appears under its name only when
the check has passed. Messages give line numbers and counts, never a cell; Arrow's own messages quote the row
and are not passed on.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import hashlib
import io
import os
import re
import secrets
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from shoal.engines import foreign
from shoal.engines.frames import pieces, plain, require_names, string_bytes
from shoal.errors import DataError, OutputError

SEPARATORS = (",", ";", "\t", "|")
TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")

# A last record that we add ourselves: a parser that does not meet it as a record is inside an open quote.
END = "end of table"

BOMS = (  # UTF-32 before UTF-16, whose little-endian mark is its prefix
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip

CHUNK = 2**20  # bytes decoded at a time
BLOCKS = (2**22, 2**26, 2**30)  # Arrow wants every record within two blocks; larger ones only where needed
SAMPLE_BYTES, SAMPLE_RECORDS = 2**20, 500  # what the separator is guessed from
LONGEST_FIELD = 2**31 - 1
ROW_GROUP = 2**18  # rows; the writer holds some three times as much


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is spelled."""

    separator: str
    encoding: str


@dataclass(frozen=True)
class Source:
    """A table and the file it came from."""

    table: pa.Table
    dialect: Dialect | None  # None for Parquet
    sha256: str  # of the file's bytes
    notes: tuple[str, ...]  # what was assumed


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────


def read(path: Path, *, separator: str | None = None, encoding: str | None = None) -> Source:
    """The table in a CSV or Parquet file; anything that is not Parquet by its name is tried as CSV."""
    raw = _file_bytes(path)
    digest = hashlib.sha256(raw).hexdigest()
    if path.suffix.lower() in PARQUET:
        table, notes = _read_parquet(raw, path.name)
        return Source(table, None, digest, notes)
    if foreign.is_foreign(path):
        table, notes = foreign.read(path)
        return Source(table, None, digest, notes)
    if path.suffix.lower() == ".gz":
        raw = _gunzip(raw, path.name)
    text, encoding, notes = _utf8(raw, path.name, encoding)
    del raw  # a transcoded file is in memory once, not twice, while it is parsed
    if not re.search(rb"\S", text):
        raise DataError(f"{path.name} is empty", "expected a line of column names, then one line per record")
    if separator is None:
        separator, more = _guess_separator(text, tabbed=".tsv" in path.name.lower())
        notes += more
    elif len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0':
        raise DataError("the separator must be one ASCII character, neither a quote nor a line break")
    return Source(_read_csv(text, path.name, separator), Dialect(separator, encoding), digest, notes)


def _file_bytes(path: Path) -> bytearray:
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory", "name one CSV or Parquet file")
        with path.open("rb") as file:
            raw = bytearray(file.read())
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    if not raw:
        raise DataError(f"{path.name} is empty", "expected a line of column names, then one line per record")
    return raw


def _gunzip(raw: bytearray, name: str) -> bytearray:
    try:
        return bytearray(gzip.decompress(raw))
    except (OSError, EOFError, zlib.error):
        raise DataError(f"{name} is not a complete gzip file") from None


def _read_parquet(raw: bytearray, name: str) -> tuple[pa.Table, tuple[str, ...]]:
    try:
        table = pq.ParquetFile(pa.BufferReader(pa.py_buffer(raw))).read()
    except Exception:
        raise DataError(f"{name} is not a complete Parquet file", "write it again, or rename it if it is CSV") from None
    indexes = [column for column in table.column_names if re.fullmatch(r"__index_level_\d+__", column)]
    notes = tuple(f"column {column!r} looks like a saved row index of pandas" for column in indexes)
    return plain(table), notes


def _utf8(raw: bytearray, name: str, encoding: str | None) -> tuple[bytearray, str, tuple[str, ...]]:
    """The text of a file as UTF-8 without byte order mark, the encoding it had, and what was assumed."""
    notes: tuple[str, ...] = ()
    if encoding is None:
        encoding = next((found for mark, found in BOMS if raw.startswith(mark)), None)
    else:
        encoding = _known_encoding(encoding)
    if encoding is None:
        _require_no_nul(raw, name)  # before guessing: binary files and unmarked UTF-16 are full of them
        failure = _decode(raw, "utf-8", None)
        if failure is None:
            return raw, "utf-8", notes
        encoding = "cp1252"
        notes = (f"{name} is not UTF-8 (line {failure}); it was read as Windows-1252",)
    if encoding == "utf-8":
        text, failure = raw, _decode(raw, encoding, None)
    else:
        text = bytearray()
        failure = _decode(raw, encoding, text)
    if failure is not None:
        tried = "neither UTF-8 nor Windows-1252" if notes else f"not {encoding}"
        raise DataError(
            f"{name} is {tried}: undecodable bytes in line {failure}",
            "name the encoding the file was written in",
        )
    while text.startswith(codecs.BOM_UTF8):
        del text[: len(codecs.BOM_UTF8)]
    _require_no_nul(text, name)
    return text, encoding, notes


def _known_encoding(encoding: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that are not for text, too
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise DataError(f"unknown encoding {encoding!r}", "for example utf-8, utf-16, cp1252 or latin-1") from None


def _decode(raw: bytearray, encoding: str, into: bytearray | None) -> int | None:
    """The line of the first undecodable byte, or None; the text is kept ``into`` as UTF-8 where given."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    for start in range(0, len(raw), CHUNK):
        try:
            text = decoder.decode(bytes(raw[start : start + CHUNK]), final=start + CHUNK >= len(raw))
            if into is not None:
                into += text.encode()
        except UnicodeDecodeError as error:
            return lines + error.object[: error.start].decode(error.encoding, "replace").count("\n")
        except UnicodeError:  # UTF-16 without its mark, lone surrogates of UTF-7
            return lines
        lines += text.count("\n")
    return None


def _require_no_nul(text: bytearray, name: str) -> None:
    position = text.find(0)
    if position >= 0:
        raise DataError(
            f"{name} contains a NUL byte (first in line {text.count(10, 0, position) + 1})",
            "is it a text file? UTF-16 without a byte order mark needs its encoding named",
        )


def _guess_separator(text: bytearray, tabbed: bool) -> tuple[str, tuple[str, ...]]:
    """What cuts most of the first records into as many fields as the header; the most fields among equals.

    A file that is named as tab-separated is, if tabs cut it well.
    """
    fits = {candidate: _fit(text, candidate) for candidate in SEPARATORS}
    best = max(SEPARATORS, key=lambda mark: (fits[mark][0], tabbed and mark == "\t", fits[mark][1]))
    if not any(n_fields for _, n_fields in fits.values()):
        return "\t" if tabbed else ",", ()
    rivals = [mark for mark in SEPARATORS if mark != best and fits[mark][0] == 1.0]
    note = f"the separator could also be {' or '.join(map(repr, rivals))}; {best!r} was assumed"
    return best, (note,) if rivals else ()


def _fit(text: bytearray, separator: str) -> tuple[float, int]:
    """The share of the first records with as many fields as the header, and that number; 0 if it is 1."""
    cut = len(text) > SAMPLE_BYTES
    counts = [len(record) for _, record in islice(_records(text[:SAMPLE_BYTES], separator), SAMPLE_RECORDS)]
    if cut and 1 < len(counts) < SAMPLE_RECORDS:
        counts.pop()  # the sample ends within it
    if not counts or counts[0] < 2:
        return 0.0, 0
    return counts.count(counts[0]) / len(counts), counts[0]


def _records(text: bytearray, separator: str) -> Generator[tuple[int, list[str]], None, None]:
    """The records that are not blank, each with the number of its first line, by Python's own parser."""
    file = pa.BufferReader(pa.py_buffer(text))  # no copy
    lines = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
    limit = csv.field_size_limit(LONGEST_FIELD)
    try:
        reader = csv.reader(lines, delimiter=separator)
        first = 1
        for record in reader:
            if record:
                yield first, record
            first = reader.line_num + 1
    finally:
        csv.field_size_limit(limit)


def _read_csv(text: bytearray, name: str, separator: str) -> pa.Table:
    if not text.endswith((b"\n", b"\r")):
        text += b"\n"
    text += END.encode()
    with contextlib.closing(_records(text, separator)) as records:
        first_line, names = next(records)
    if names[-1].endswith(("\n" + END, "\r" + END)):
        raise _unterminated(name, first_line)
    require_names(names)
    text += (separator * (len(names) - 1) + "\n").encode()

    table = _parse(text, names, separator)
    end = [END] + [None] * (len(names) - 1)
    if table is None or _row(table, 0) != names or _row(table, -1) != end:
        raise _diagnosis(text, name, names, separator)
    if table.num_rows == 2:
        raise DataError(f"{name} has a header and no rows", "nobody is in it: nothing to protect or release")
    return table.slice(1, table.num_rows - 2)


def _row(table: pa.Table, i: int) -> list[str | None]:
    return [column[i].as_py() for column in table.columns] if table.num_rows else []


def _parse(text: bytearray, names: list[str], separator: str) -> pa.Table | None:
    """Header, rows and end as one table of text; None where some record does not fit."""
    ragged = False

    def refuse(_: object) -> str:
        nonlocal ragged
        ragged = True
        return "error"

    blank = re.match(rb"[\r\n]*", text)
    buffer = pa.py_buffer(text).slice(blank.end() if blank else 0)
    parse = arrow_csv.ParseOptions(
        delimiter=separator,
        newlines_in_values=b'"' in text,
        ignore_empty_lines=len(names) > 1,  # in a table of one column a blank line is a null
        invalid_row_handler=refuse,
    )
    convert = arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        quoted_strings_can_be_null=False,
    )
    for block in BLOCKS:
        options = arrow_csv.ReadOptions(column_names=names, block_size=block)
        try:
            return arrow_csv.read_csv(pa.BufferReader(buffer), options, parse, convert)
        except pa.ArrowInvalid:
            if ragged or block >= len(text):
                break
    return None


def _diagnosis(text: bytearray, name: str, names: list[str], separator: str) -> DataError:
    """What is wrong with a file that did not parse: slower, and with line numbers."""
    ragged: list[tuple[int, int]] = []
    n_ragged, line, record = 0, 1, names
    for line, record in _records(text, separator):
        if len(record) != len(names):
            n_ragged += 1
            ragged = ragged or [(line, len(record))]
    if record != [END] + [""] * (len(names) - 1):
        return _unterminated(name, line)
    if not ragged:
        return DataError(f"{name} cannot be parsed as CSV", "check its quotes; a record may span 1 GiB at most")
    first, found = ragged[0]
    return DataError(
        f"{name}: {n_ragged} record(s) with another number of fields than the header "
        f"(first in line {first}: {found} found, {len(names)} expected)",
        f"quote fields that contain the separator {separator!r}, or name another separator",
    )


def _unterminated(name: str, line: int) -> DataError:
    message = f"{name}: a quote is never closed in the record that starts in line {line}"
    return DataError(message, "close it, or double it if it is part of a value")


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────


def check_target(path: Path, force: bool = False) -> None:
    """Raise what ``write`` would raise about its target, before the long work."""
    if path.suffix.lower() not in TEXT + PARQUET:
        raise OutputError(f"unknown extension: {path.name}", f"use one of {' '.join(TEXT + PARQUET)}")
    try:
        if not path.parent.is_dir():
            raise OutputError(f"the folder {path.parent} does not exist", "create it first")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            raise OutputError(f"the folder {path.parent} is not writable")
        if path.is_dir():
            raise OutputError(f"{path} is a directory", "name a file")
        if not force and (path.exists() or path.is_symlink()):
            raise _exists(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def write_text(path: Path, text: str, *, force: bool = False, private: bool = False) -> None:
    """Write what goes with a release, its policy or its certificate; whole, or not at all.

    ``private``: nobody but the owner may read it, whatever the umask; for what holds originals or keys.
    """
    write_bytes(path, text.encode(), force=force, private=private)


def write_bytes(path: Path, content: bytes, *, force: bool = False, private: bool = False) -> None:
    """The same for what is no text, such as a picture."""
    hidden = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    try:
        with output_errors(path):
            with _private(hidden) as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            _publish(hidden, path, force, private=private)
    finally:
        hidden.unlink(missing_ok=True)


def write(
    table: pa.Table | Iterable[pa.Table],
    path: Path,
    *,
    dialect: Dialect | None = None,
    force: bool = False,
    verify: Callable[[Path], None],
) -> str:
    """Write under a hidden name, let ``verify`` judge that file, then give it its name; its SHA-256.

    The table may come in pieces, of which only one is in memory at a time.
    """
    check_target(path, force)
    tables = _row_groups([table] if isinstance(table, pa.Table) else table)
    first = next(tables, None)
    if first is None:
        raise OutputError("the release has no rows", "every record was suppressed: ask for less, or allow more")
    hidden = path.with_name(f".shoal-{secrets.token_hex(8)}{path.suffix}")
    try:
        with output_errors(path), _private(hidden) as file:
            if path.suffix.lower() in PARQUET:
                _write_parquet(chain([first], tables), file)
            else:
                _write_csv(chain([first], tables), file, separator_of(path, dialect))
            file.flush()
            os.fsync(file.fileno())
        verify(hidden)
        with output_errors(path):
            with hidden.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            _publish(hidden, path, force)
    finally:
        hidden.unlink(missing_ok=True)
    return digest


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """What the system says about a path that cannot be written."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise OutputError(f"{path} cannot be written: {reason}") from None


def _private(path: Path) -> BinaryIO:
    """A new file that only its owner may read and write from the moment it is there, whatever the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb")


def open_up(path: Path) -> None:
    """Give a finished file or folder the mode that the umask grants to new ones."""
    # The mask can only be read by setting it; a strict one for a moment harms no other thread.
    mask = os.umask(0o077)
    os.umask(mask)
    with contextlib.suppress(OSError):  # not every file system has modes
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def _publish(hidden: Path, path: Path, force: bool, *, private: bool = False) -> None:
    """Give the finished file its name in one step; unless forced, a file that is there by then stays."""
    if not private:
        open_up(hidden)
    if force:
        hidden.replace(path)
    else:
        try:
            path.hardlink_to(hidden)
        except FileExistsError:
            raise _exists(path) from None
        except OSError:  # a file system without links: claim the name, then fill it
            _claim(path)
            try:
                hidden.replace(path)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
    with contextlib.suppress(OSError):  # not every system lets a folder be synced
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _claim(path: Path) -> None:
    try:
        _private(path).close()
    except FileExistsError:
        raise _exists(path) from None


def _exists(path: Path) -> OutputError:
    return OutputError(f"{path} exists and was not overwritten", "choose another name, or add --force")


def separator_of(path: Path, dialect: Dialect | None) -> str:
    """What separates the fields of a file that ``write`` makes."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return dialect.separator if dialect else ","


def _row_groups(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of a fixed size, each column in one chunk, so that equal rows give equal bytes."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        while sum(map(len, held)) >= ROW_GROUP:
            whole = pa.concat_tables(held)
            yield plain(whole.slice(0, ROW_GROUP)).combine_chunks()
            held = [whole.slice(ROW_GROUP)]
    if sum(map(len, held)):
        yield plain(pa.concat_tables(held)).combine_chunks()


def _write_csv(tables: Iterable[pa.Table], file: BinaryIO, separator: str) -> None:
    """UTF-8 with LF, quotes only where needed, null as nothing and '' as two quotes."""
    for i, table in enumerate(tables):
        if i == 0:
            names = [pa.array([name]) for name in table.column_names]
            file.write(csv_lines(pa.RecordBatch.from_arrays(names, table.column_names), separator))
        for batch in table.to_batches(max_chunksize=2**16):
            for piece in pieces(batch):
                if piece.num_rows:
                    file.write(csv_lines(piece, separator))


def csv_lines(batch: pa.RecordBatch, separator: str) -> bytes:
    """The values of a string array lie end to end in memory: joined, each with its LF, they are the file."""
    columns = zip(batch.schema.names, batch.columns, strict=True)
    fields = [_fields(name, column, separator) for name, column in columns]
    fields[-1] = pc.binary_join_element_wise(fields[-1], "\n", "")
    return string_bytes(pc.binary_join_element_wise(*fields, separator) if len(fields) > 1 else fields[0])


def _fields(name: str, column: pa.Array, separator: str) -> pa.Array:
    text = _spelled(column)
    content = string_bytes(text)
    if b"\0" in content:
        raise OutputError(f"column {name!r} holds NUL characters, CSV cannot", "write Parquet instead")
    if any(mark.encode() in content for mark in (separator, '"', "\r", "\n", "\ufeff")):
        # A byte order mark inside the first field of a file would otherwise be taken for the file's own.
        special = pc.match_substring_regex(text, f'[{re.escape(separator)}"\r\n\ufeff]')
        doubled = pc.replace_substring(text, '"', '""')
        text = pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)
    return pc.fill_null(pc.if_else(pc.equal(text, ""), '""', text), "")


def _spelled(column: pa.Array) -> pa.Array:
    """Values as text: shortest floats that read back equal, plain decimals, ISO dates, instants in UTC."""
    kind = column.type
    if pa.types.is_string(kind):
        return column
    if pa.types.is_decimal(kind):  # Arrow would write 1E-8
        distinct = column.dictionary_encode()
        spelled = pa.array([format(value, "f") for value in distinct.dictionary.to_pylist()], pa.string())
        return spelled.take(distinct.indices)
    if pa.types.is_timestamp(kind):
        # Shown without a zone an instant is its UTC wall time, so no time zone database is needed.
        text = column.cast(pa.timestamp(kind.unit)).cast(pa.string())
        text = pc.replace_substring(_without_zero_fraction(text), " ", "T")
        return pc.binary_join_element_wise(text, "Z", "") if kind.tz else text
    text = column.cast(pa.string())
    return _without_zero_fraction(text) if pa.types.is_time(kind) else text


def _without_zero_fraction(text: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(text, r"\.0+$", "")


def _write_parquet(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    """One row group per table."""
    writer: pq.ParquetWriter | None = None
    try:
        for table in tables:
            writer = writer or pq.ParquetWriter(file, table.schema, compression="zstd")
            writer.write_table(table, row_group_size=ROW_GROUP)
    finally:
        if writer is not None:
            writer.close()


def typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column that was read back as text, in the type that was written."""
    if column.type == kind:
        return column
    if pa.types.is_time(kind) and pa.types.is_string(column.type):  # Arrow reads times only as parts of a date
        column = pc.binary_join_element_wise("1970-01-01T", column, "").cast(pa.timestamp(kind.unit))
    return column.cast(kind)


# ── the second path ──────────────────────────────────────────────────────────────────────────────────────


def sniffed(
    path: Path, *, separator: str | None = None, encoding: str | None = None
) -> tuple[Dialect, list[str], tuple[str, ...]]:
    """How a CSV file is spelled and what its columns are called, from its beginning alone."""
    if path.suffix.lower() == ".gz":
        raise DataError(f"{path.name} is compressed, and too large to read at once", "unpack it first")
    if encoding is not None and _known_encoding(encoding) != "utf-8":
        raise DataError("DuckDB reads CSV as UTF-8 only", "convert the file first, as with iconv")
    with path.open("rb") as file:
        text = bytearray(file.read(SAMPLE_BYTES))
    if any(text.startswith(mark) for mark, found in BOMS if found != "utf-8"):
        raise DataError(f"{path.name} is not UTF-8", "convert the file first, as with iconv")
    while text.startswith(codecs.BOM_UTF8):
        del text[: len(codecs.BOM_UTF8)]
    notes: tuple[str, ...] = ()
    if separator is None:
        separator, notes = _guess_separator(text, tabbed=".tsv" in path.name.lower())
    with contextlib.closing(_records(text, separator)) as records:
        _, names = next(records, (1, []))
    require_names(names)
    return Dialect(separator, "utf-8"), names, notes


def sql_source(path: Path, dialect: Dialect | None, columns: Sequence[str], *, strange: bool = False) -> str:
    """A DuckDB table expression over a file that ``write`` made: CSV as VARCHAR only, nothing guessed.

    ``strange``: a file that somebody else made, with line ends of its own and the separator of the dialect.
    DuckDB's messages quote the line they stumble over: whoever runs the query must not pass them on.
    """
    lowered = [name.encode().lower() for name in columns]  # bytes: DuckDB folds ASCII letters only
    clashing = [name for name, low in zip(columns, lowered, strict=True) if lowered.count(low) > 1]
    if clashing:
        named = ", ".join(map(repr, clashing[:10]))
        raise DataError(f"column names differ only in case: {named}", "rename them: SQL cannot tell them apart")
    # Absolute, so that no `~` is expanded; each character that DuckDB would glob stands in brackets.
    location = _literal(re.sub(r"([\[*?])", r"[\1]", str(path.absolute())))
    if path.suffix.lower() in PARQUET:
        return f"read_parquet({location}, hive_partitioning = false, union_by_name = false, filename = false)"
    longest = min(max(path.stat().st_size, 2**21), 2**28) if path.exists() else 2**28
    options: dict[str, str] = {
        "auto_detect": "false",
        "columns": "{" + ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in columns) + "}",
        "header": "true",
        "skip": "0",
        "delim": _literal(dialect.separator if strange and dialect else separator_of(path, dialect)),
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
    if strange:
        del options["new_line"]
    return f"read_csv({location}, {', '.join(f'{name} = {value}' for name, value in options.items())})"


def parquet_folder(path: Path) -> str:
    """A DuckDB table expression over the Parquet files of a folder."""
    location = _literal(re.sub(r"([\[*?])", r"[\1]", str(path.absolute())) + "/**/*.parquet")
    return f"read_parquet({location}, hive_partitioning = false, union_by_name = false, filename = false)"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
