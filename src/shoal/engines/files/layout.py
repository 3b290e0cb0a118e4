"""The text of a CSV file: its encoding, its separator, its names, and its records as one grammar has them.

Both readers, the one in memory and the one out of core, come through here, so they see the same file or refuse it with
the same words. Messages give lines and counts, never a cell.
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
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path

from shoal.engines.files.grammar import Found, Scan
from shoal.engines.frames import require_names
from shoal.errors import DataError

SEPARATORS = (",", ";", "\t", "|")

BOMS = (  # UTF-32 before UTF-16, whose little-endian mark is its prefix
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip

CHUNK = 2**20  # bytes decoded at a time
SAMPLE_BYTES, SAMPLE_RECORDS = 2**20, 500  # what the separator is guessed from
LONGEST_FIELD = 2**31 - 1
NAME_LINES = 3  # of a column's name, at most
INDEX = "Unnamed: 0"  # what pandas calls a first column that has no name

Raw = Callable[
    [], Generator[bytes, None, None]
]  # the bytes of a file from its beginning, as often as they are asked for
Write = Callable[[bytes], object]


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is spelled."""

    separator: str
    encoding: str


@dataclass(frozen=True)
class Layout:
    """A CSV file that follows the grammar: how it is spelled, and what it must turn out to hold."""

    dialect: Dialect
    names: tuple[str, ...]
    records: int
    longest: int  # bytes of its longest record
    ends: tuple[str, ...]  # how its lines end: LF, CRLF, CR
    plain: bool  # UTF-8, and read alike by all as it stands
    notes: tuple[str, ...]  # what was assumed


def pieces(path: Path) -> Generator[bytes, None, None]:
    """The bytes of a file, unpacked where its name says so."""
    try:
        if path.is_dir():
            raise DataError(f"{path} is a directory", "name one CSV or Parquet file")
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


def layout_of(raw: Raw, name: str, *, separator: str | None = None, encoding: str | None = None) -> Layout:
    """Scan a CSV file once, from its first byte to its last; raise where it breaks the grammar."""
    if separator is not None and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise DataError("the separator must be one ASCII character, neither a quote nor a line break")
    mark, marked = _mark(raw)
    known = marked if encoding is None else _known_encoding(encoding)
    notes = (_read_as(name, marked.upper()),) if encoding is None and marked not in (None, "utf-8") else ()
    try:
        return _scanned(raw, name, separator, known or "utf-8", notes, plain=not mark)
    except _UndecodableError as failure:
        if known is not None:
            raise _undecodable(name, f"not {known}", failure.line) from None
        first = failure.line
    notes = (f"{name} is not UTF-8 (line {first}). " + _read_as(name, "Windows-1252"),)
    try:
        return _scanned(raw, name, separator, "cp1252", notes, plain=False)
    except _UndecodableError as failure:
        raise _undecodable(name, "neither UTF-8 nor Windows-1252", failure.line) from None


def rewritten(raw: Raw, name: str, found: Layout, write: Write) -> None:
    """Write the same records as UTF-8 in the spelling that all read alike: LF, no byte order mark, no blank lines."""
    scan = Scan(name, found.dialect.separator)
    with closing(_utf8(raw(), found.dialect.encoding)) as stream:
        for piece in stream:
            write(scan.feed(piece, writing=True))
    write(scan.end(writing=True))


def _read_as(name: str, encoding: str) -> str:
    return f"{name} was read as {encoding}; what is written is UTF-8"


def _undecodable(name: str, tried: str, line: int) -> DataError:
    return DataError(
        f"{name} is {tried}: undecodable bytes in line {line}", "name the encoding the file was written in"
    )


def _scanned(
    raw: Raw, name: str, separator: str | None, encoding: str, notes: tuple[str, ...], *, plain: bool
) -> Layout:
    """The layout of a file in a certain encoding; raises _UndecodableError with a line where it is in another."""
    with closing(_utf8(raw(), encoding)) as stream:
        sample = bytearray()
        undecodable = False
        try:
            for piece in stream:
                sample += piece
                if len(sample) >= SAMPLE_BYTES:
                    break
        except _UndecodableError:
            undecodable = True  # what comes before it is scanned first: its line is counted so
        if not undecodable and len(sample) < SAMPLE_BYTES and not re.search(rb"\S", sample):
            raise DataError(f"{name} is empty", "expected a line of column names, then one line per record")
        if separator is None:
            separator, more = _guess_separator(sample[:SAMPLE_BYTES], tabbed=".tsv" in name.lower())
            notes += more
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
    found = scan.found
    first, last = found.header
    names, more = _names(bytes(head[first:last]).decode(), separator)
    if not found.records:
        raise DataError(f"{name} has a header and no rows", "it contains no records to protect or release")
    return Layout(
        Dialect(separator, encoding),
        names,
        found.records,
        found.longest,
        found.ends,
        plain and found.plain and encoding == "utf-8",
        notes + more + _told(name, found),
    )


def _names(header: str, separator: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the columns. A first one without a name is the index that pandas and R write beside a table."""
    with _long_fields():
        names = next(csv.reader(io.StringIO(header, newline=""), delimiter=separator, strict=True), [])
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


def _told(name: str, found: Found) -> tuple[str, ...]:
    notes = []
    if len(found.ends) > 1:
        notes.append(f"{name}: lines end in different ways ({', '.join(found.ends)}); each ends a record")
    lines, first = found.swallowed
    if lines:
        notes.append(
            f"{name}: {lines} lines within quoted values look like records of their own (first in line {first}); "
            "check the quotes around them, as they were read as one value"
        )
    return tuple(notes)


# ── encodings ────────────────────────────────────────────────────────────────────────────────────────────


class _UndecodableError(Exception):
    """Bytes that are no text in this encoding; the line is known to whoever counts lines."""

    def __init__(self, line: int = 0) -> None:
        super().__init__()
        self.line = line


def _mark(raw: Raw) -> tuple[bytes, str | None]:
    """The byte order mark that a file begins with, and the encoding that it stands for."""
    start = b""
    with closing(raw()) as stream:
        while len(start) < 4 and (piece := next(stream, b"")):
            start += piece
    return next(((mark, found) for mark, found in BOMS if start.startswith(mark)), (b"", None))


def _known_encoding(encoding: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)  # refuses codecs that are not for text, too
        return codecs.lookup(encoding).name
    except (LookupError, ValueError):
        raise DataError(f"unknown encoding {encoding!r}", "for example utf-8, utf-16, cp1252 or latin-1") from None


def _utf8(raw: Iterator[bytes], encoding: str) -> Generator[bytes, None, None]:
    """The text as UTF-8 without byte order marks, up to the first byte that is none; there _UndecodableError."""
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
    """UTF-8 as it is; a character that two pieces share goes with the second."""
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
    """What cuts most of the first records into as many fields as the header; the most fields among equals.

    A file that is named as tab-separated is, if tabs cut it well.
    """
    fits = {candidate: _fit(sample, candidate) for candidate in SEPARATORS}
    best = max(SEPARATORS, key=lambda mark: (fits[mark][0], tabbed and mark == "\t", fits[mark][1]))
    if not any(n_fields for _, n_fields in fits.values()):
        return "\t" if tabbed else ",", ()
    rivals = [mark for mark in SEPARATORS if mark != best and fits[mark][0] == 1.0]
    note = f"the separator could also be {' or '.join(map(repr, rivals))}; {best!r} was assumed"
    return best, (note,) if rivals else ()


def _fit(sample: bytearray, separator: str) -> tuple[float, int]:
    """The share of the first records with as many fields as the header, and that number; 0 if it is 1."""
    text = io.StringIO(sample.decode(errors="replace"), newline="")
    with _long_fields():
        records = (record for record in csv.reader(text, delimiter=separator) if record)
        counts = [len(record) for record in islice(records, SAMPLE_RECORDS)]
    if len(sample) == SAMPLE_BYTES and 1 < len(counts) < SAMPLE_RECORDS:
        counts.pop()  # the sample ends within it
    if not counts or counts[0] < 2:
        return 0.0, 0
    return counts.count(counts[0]) / len(counts), counts[0]


@contextmanager
def _long_fields() -> Iterator[None]:
    """Python's parser takes fields of any length meanwhile."""
    limit = csv.field_size_limit(LONGEST_FIELD)
    try:
        yield
    finally:
        csv.field_size_limit(limit)
