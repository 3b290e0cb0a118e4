"""The text of a CSV file: its encoding, separator, column names and records.

Both readers, in memory and out of core, use this module, so they read the same table or reject the file with the same
message. Messages give lines and counts, never a cell.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path

import pyarrow as pa

from shoal.engines.formats.grammar import FoundGrammar, Scan
from shoal.engines.formats.header import numbered_names, require_header
from shoal.engines.frames import require_names
from shoal.errors import DataError, EmptyTableError

TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")  # suffixes of files
SEPARATORS = (",", ";", "\t", "|")

BOMS = (  # UTF-32 before UTF-16, whose little-endian mark is its prefix
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip

CHUNK = 2**20  # bytes decoded at a time
SAMPLE_BYTES, SAMPLE_RECORDS = 2**20, 500  # the sample from which separator and header are guessed
LONGEST_FIELD = 2**31 - 1
NAME_LINES = 3  # the longest column name
INDEX = "Unnamed: 0"  # what pandas calls a first column without a name

Raw = Callable[
    [], Generator[bytes, None, None]
]  # returns the bytes of a file from the start, and can be called repeatedly
Write = Callable[[bytes], object]


@dataclass(frozen=True)
class Dialect:
    """The encoding and separator of a CSV file."""

    separator: str
    encoding: str
    byte_order_mark: bool = False  # whether it begins with one


@dataclass(frozen=True)
class Layout:
    """The layout of a CSV file that follows the grammar, and what a reader must find in it."""

    dialect: Dialect
    names: tuple[str, ...]
    records: int
    longest: int  # bytes of its longest record
    ends: tuple[str, ...]  # how its lines end: LF, CRLF, CR
    plain: bool  # UTF-8, and interpreted alike by all readers without rewriting
    breaks: bool  # whether quoted values contain line breaks
    notes: tuple[str, ...]  # assumptions made
    header: bool = True  # whether its first record has the names


def separator_of(path: Path, dialect: Dialect | None) -> str:
    """Return the field separator of a file that ``write_table_file`` makes."""
    if path.suffix.lower() == ".tsv":
        return "\t"
    return dialect.separator if dialect else ","


def decompressed_chunks(path: Path) -> Generator[bytes, None, None]:
    """Return the bytes of a file, decompressed if its name says so."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory", "name one CSV or Parquet file")
        if path.is_char_device():
            raise DataError(f"{path} is a device, which has no end", "name one CSV or Parquet file")
        with path.open("rb") as file:
            opened = gzip.GzipFile(fileobj=file) if path.suffix.lower() == ".gz" else file
            while piece := opened.read(CHUNK):
                yield piece
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise DataError(f"{path.name} is not a complete gzip file") from None
    except FileNotFoundError:
        raise DataError(f"{path} does not exist") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None


def layout_of(
    raw: Raw, name: str, *, separator: str | None = None, encoding: str | None = None, header: bool | None = True
) -> Layout:
    """Scan a CSV file once from the first byte to the last; raise an error if it violates the grammar.

    ``header``: whether the first line has the column names; None raises an error if it looks like a record.
    """
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise DataError("the separator must be one ASCII character, neither a quote nor a line break")
    mark, marked = _mark(raw)
    stated_encoding = marked if encoding is None else _known_encoding(encoding)
    notes = (_read_as(name, marked.upper()),) if encoding is None and marked not in (None, "utf-8") else ()
    try:
        layout = _scanned(raw, name, separator, stated_encoding or "utf-8", notes, header, plain=not mark)
        return replace(layout, dialect=replace(layout.dialect, byte_order_mark=bool(mark)))
    except _UndecodableError as failure:
        if stated_encoding is not None:
            raise _undecodable(name, f"not {stated_encoding}", failure.line) from None
        first = failure.line
    notes = (f"{name} is not UTF-8 (line {first}). " + _read_as(name, "Windows-1252"),)
    try:
        return _scanned(raw, name, separator, "cp1252", notes, header, plain=False)
    except _UndecodableError as failure:
        raise _undecodable(name, "neither UTF-8 nor Windows-1252", failure.line) from None


def rewritten(raw: Raw, name: str, layout: Layout, write: Write) -> None:
    """Rewrite the records as UTF-8 in a form that all readers interpret alike: LF, no BOM, no blank lines."""
    scan = Scan(name, layout.dialect.separator)
    with closing(_utf8(raw(), layout.dialect.encoding)) as stream:
        for piece in stream:
            write(scan.feed(piece, writing=True))
    write(scan.end(writing=True))


def _read_as(name: str, encoding: str) -> str:
    return f"{name} was read as {encoding}"


def _undecodable(name: str, tried: str, line: int) -> DataError:
    return DataError(
        f"{name} is {tried}: undecodable bytes in line {line}", "name the encoding the file was written in"
    )


def _scanned(
    raw: Raw,
    name: str,
    separator: str | None,
    encoding: str,
    notes: tuple[str, ...],
    header: bool | None,
    *,
    plain: bool,
) -> Layout:
    """Return the layout in a given encoding; raise _UndecodableError with a line if the file has another one."""
    with closing(_utf8(raw(), encoding)) as stream:
        sample = bytearray()
        undecodable = False
        try:
            for piece in stream:
                sample += piece
                if len(sample) >= SAMPLE_BYTES:
                    break
        except _UndecodableError:
            undecodable = True  # the text before it is scanned first, which counts its line
        if not undecodable and len(sample) < SAMPLE_BYTES and not re.search(rb"\S", sample):
            raise DataError(f"{name} is empty", "expected a line of column names, then one line per record")
        if separator is None:
            separator, guess_notes = _guess_separator(sample[:SAMPLE_BYTES], tabbed=".tsv" in name.lower())
            notes += guess_notes
        scan, head = Scan(name, separator), bytearray()
        try:
            for piece in chain([bytes(sample)], () if undecodable else stream):
                if not scan.header_read:
                    head += piece
                scan.feed(piece)
        except _UndecodableError:
            undecodable = True
        if undecodable:
            raise _UndecodableError(scan.line)
        scan.end()
    grammar = scan.found
    first, last = grammar.header
    line = bytes(head[first:last]).decode()
    if header is False:
        names, guess_notes = tuple(numbered_names(len(_fields(line, separator)))), ()
    else:
        if header is None:
            require_header(name, *_first_records(line, sample[:SAMPLE_BYTES], separator))
        names, guess_notes = _names(line, separator)
    n_records = grammar.records + (header is False)
    if not n_records:
        columns = pa.table({column: pa.array([], pa.string()) for column in names})
        raise EmptyTableError(f"{name} has a header and no rows", columns=columns)
    return Layout(
        Dialect(separator, encoding),
        names,
        n_records,
        grammar.longest,
        grammar.ends,
        plain and grammar.plain and encoding == "utf-8",
        grammar.breaks,
        notes + guess_notes + _grammar_notes(name, grammar),
        header is not False,
    )


def _fields(line: str, separator: str) -> list[str]:
    """Return the fields of one record."""
    with _long_fields():
        return next(csv.reader(io.StringIO(line, newline=""), delimiter=separator, strict=True), [])


def _first_records(line: str, sample: bytearray, separator: str) -> tuple[list[str], list[list[str]]]:
    """Return the fields of the first line, and the records of the sample below it."""
    text = io.StringIO(sample.decode(errors="replace"), newline="")
    with _long_fields():
        records = [record for record in islice(csv.reader(text, delimiter=separator), SAMPLE_RECORDS) if record]
    if len(sample) == SAMPLE_BYTES and len(records) > 2:
        records.pop()  # the sample may end inside it
    return _fields(line, separator), records[1:]


def _names(header: str, separator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the column names. A first column without a name is the index that pandas and R write."""
    names = _fields(header, separator)
    for position, name in enumerate(names, 1):
        lines = len(name.splitlines())
        if lines > NAME_LINES or (lines > 1 and separator in name):
            raise DataError(
                f"the name of column {position} of {len(names)} spans {lines} lines",
                "is a quote in the header a stray one? Rows must not be taken for names; else shorten the name",
            )
    notes: tuple[str, ...] = ()
    if len(names) > 1 and not names[0].strip():
        names[0] = INDEX
        notes = (f"the first column has no name, as the row index that pandas or R write: it is called {INDEX!r}",)
    require_names(names)
    return tuple(names), notes


def _grammar_notes(name: str, grammar: FoundGrammar) -> tuple[str, ...]:
    notes = []
    if len(grammar.ends) > 1:
        notes.append(f"{name}: lines end in different ways ({', '.join(grammar.ends)}); each ends a record")
    lines, first = grammar.swallowed
    if lines:
        notes.append(
            f"{name}: {lines} lines within quoted values look like records of their own (first in line {first}); "
            "check the quotes around them, as they were read as one value"
        )
    return tuple(notes)


# ── encodings ────────────────────────────────────────────────────────────────────────────────────────────


class _UndecodableError(Exception):
    """Bytes that cannot be decoded in this encoding; the caller, which counts lines, knows the line."""

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line


def _mark(raw: Raw) -> tuple[bytes, str | None]:
    """Return the byte order mark at the start of a file, and its encoding."""
    start = b""
    with closing(raw()) as stream:
        while len(start) < 4 and (piece := next(stream, b"")):
            start += piece
    return next(((mark, encoding) for mark, encoding in BOMS if start.startswith(mark)), (b"", None))


def _known_encoding(encoding: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # also rejects codecs that are not for text
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise DataError(f"unknown encoding {encoding!r}", "for example utf-8, utf-16, cp1252 or latin-1") from None


def _utf8(raw: Iterator[bytes], encoding: str) -> Generator[bytes, None, None]:
    """Yield the text as UTF-8 without BOMs; raise _UndecodableError at the first invalid byte."""
    start: bytes | None = b""
    for piece in _valid(raw) if encoding == "utf-8" else _decoded(raw, encoding):
        if start is None:
            yield piece
            continue
        start += piece
        while start.startswith(codecs.BOM_UTF8):
            start = start[len(codecs.BOM_UTF8) :]
        if not codecs.BOM_UTF8.startswith(start):
            yield start
            start = None
    if start:
        yield start


def _valid(raw: Iterator[bytes]) -> Generator[bytes, None, None]:
    """Yield UTF-8 unchanged; a character split between two pieces goes with the second."""
    rest = b""
    for piece in raw:
        text = rest + piece if rest else piece
        rest = b""
        if not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as error:
                yield text[: error.start]
                if error.reason != "unexpected end of data":
                    raise _UndecodableError from None
                rest = text[error.start :]
                continue
        yield text
    if rest:
        raise _UndecodableError


def _decoded(raw: Iterator[bytes], encoding: str) -> Generator[bytes, None, None]:
    decoder = codecs.getincrementaldecoder(encoding)()
    for piece, final in chain(((piece, False) for piece in raw), [(b"", True)]):
        try:
            yield decoder.decode(piece, final).encode()
        except UnicodeDecodeError as error:
            yield error.object[: error.start].decode(error.encoding, "replace").encode(errors="replace")
            raise _UndecodableError from None
        except UnicodeError:  # UTF-16 without its mark, lone surrogates of UTF-7
            raise _UndecodableError from None


# ── separators ───────────────────────────────────────────────────────────────────────────────────────────


def _guess_separator(sample: bytearray, tabbed: bool) -> tuple[str, tuple[str, ...]]:
    """Guess the separator: it gives most of the first records as many fields as the header; ties: more fields.

    A file named as tab-separated is read so if tabs fit well.
    """
    fits = {candidate: _fit(sample, candidate) for candidate in SEPARATORS}
    best = max(SEPARATORS, key=lambda mark: (fits[mark][0], tabbed and mark == "\t", fits[mark][1]))
    if not any(n_fields for _, n_fields in fits.values()):
        return "\t" if tabbed else ",", ()
    rivals = [mark for mark in SEPARATORS if mark != best and fits[mark][0] == 1.0]
    note = f"the separator could also be {' or '.join(map(repr, rivals))}; {best!r} was assumed"
    return best, (note,) if rivals else ()


def _fit(sample: bytearray, separator: str) -> tuple[float, int]:
    """Return the share of the first records with as many fields as the header, and that number; 0 if it is 1."""
    text = io.StringIO(sample.decode(errors="replace"), newline="")
    with _long_fields():
        records = (record for record in csv.reader(text, delimiter=separator) if record)
        counts = [len(record) for record in islice(records, SAMPLE_RECORDS)]
    if len(sample) == SAMPLE_BYTES and 1 < len(counts) < SAMPLE_RECORDS:
        counts.pop()  # the sample ends inside it
    if not counts or counts[0] < 2:
        return 0.0, 0
    return counts.count(counts[0]) / len(counts), counts[0]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Let Python's parser accept fields of any length in the meantime."""
    limit = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
