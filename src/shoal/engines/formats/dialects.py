"""The dialect in which a CSV file is written: that of the file that was read, unless the policy wants a plain one.

Separator, encoding, byte order mark and decimal mark come back as they came. A release is first written and verified in
plain form: UTF-8 without a mark, numbers with points. The file that is published is written beside it, and read back in
its own dialect: it is renamed into place only if it contains the same, byte by byte, or cell by cell in SQL where
decimal marks differ. Bounds of ranges and members of sets keep their points, because commas stand between them.
"""

from __future__ import annotations

import codecs
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc

from shoal.engines import scratch
from shoal.engines.formats.layout import CHUNK, Dialect
from shoal.engines.formats.sql_files import sql_source
from shoal.engines.sql import quoted
from shoal.errors import OutputError, VerificationError
from shoal.hierarchies.bounds import bound_names

if TYPE_CHECKING:
    from shoal.policy import Policy

NUMBER = r"^-?[0-9]+\.[0-9]+(?:[eE][-+]?[0-9]+)?$"
NUMBER_WITH_COMMA = r"^-?[0-9]+,[0-9]+(?:[eE][-+]?[0-9]+)?$"
PLAIN_HINT = 'set csv_dialect = "plain" under [release], which writes UTF-8 and decimal points'


def dialect_for(policy: Policy, dialect: Dialect | None) -> Dialect | None:
    """Return the dialect of the file that was read, or the same separator in UTF-8 if the policy wants it plain."""
    if dialect is None or policy.release.csv_dialect == "input":
        return dialect
    return replace(dialect, encoding="utf-8", byte_order_mark=False)


def comma_columns(policy: Policy, dialect: Dialect | None, names: Sequence[str]) -> tuple[str, ...]:
    """Return the columns whose numbers are written with a decimal comma, as they were read, with their bounds."""
    if dialect is None or policy.release.csv_dialect != "input":
        return ()
    with_commas = {name for name, column in policy.columns.items() if column.decimal == ","}
    with_commas.update(bound for name, bounds in bound_names(policy).items() if name in with_commas for bound in bounds)
    return tuple(name for name in names if name in with_commas)


class DialectFile:
    """A file to which lines in UTF-8 are written in another encoding."""

    def __init__(self, file: BinaryIO, dialect: Dialect) -> None:
        self._file = file
        self._encoding = dialect.encoding
        self._encoder = codecs.getincrementalencoder(encoding_of(dialect))()

    def write(self, lines: bytes) -> None:
        """Write whole lines; raise OutputError if the encoding lacks a character."""
        try:
            self._file.write(self._encoder.encode(lines.decode()))
        except UnicodeEncodeError as error:
            raise OutputError(
                f"the release has characters that {self._encoding}, the encoding of the input, lacks: the first is "
                f"{error.start + 1} characters after the start of a block of lines",
                PLAIN_HINT,
            ) from None


def encoding_of(dialect: Dialect) -> str:
    """Return the codec that writes a dialect."""
    return "utf-8-sig" if dialect.encoding == "utf-8" and dialect.byte_order_mark else dialect.encoding


def is_plain(dialect: Dialect | None) -> bool:
    """Return whether a file of this dialect is UTF-8 without a mark."""
    return dialect is None or encoding_of(dialect) == "utf-8"


def with_commas(batch: pa.RecordBatch, columns: Sequence[str], texts_of: Sequence[pa.Array]) -> pa.RecordBatch:
    """Return the rows as texts, with decimal commas in some columns; ``texts_of`` are all columns as written."""
    changed = [
        pc.if_else(
            pc.match_substring_regex(text, NUMBER), pc.replace_substring(text, ".", ",", max_replacements=1), text
        )
        if name in columns
        else text
        for name, text in zip(batch.schema.names, texts_of, strict=True)
    ]
    return pa.RecordBatch.from_arrays(changed, batch.schema.names)


# ── read back ────────────────────────────────────────────────────────────────────────────────────────────────


def require_same(plain: Path, published: Path, dialect: Dialect, columns: Sequence[str], names: Sequence[str]) -> None:
    """Read the published file in its dialect; raise an error unless it contains what the verified file contains."""
    if columns:
        with tempfile.TemporaryDirectory(prefix="shoal-") as folder:
            decoded = published
            if not is_plain(dialect):
                decoded = Path(folder) / f"decoded{published.suffix}"
                with decoded.open("wb") as file:
                    file.writelines(_decoded(published, dialect))
            is_same = _same_cells(plain, decoded, dialect, columns, names)
    else:
        is_same = _same_bytes(plain, published, dialect)
    if not is_same:
        raise VerificationError(
            "the file in the dialect of the input differs from the release; nothing was published", PLAIN_HINT
        )
    if dialect.encoding == "cp1252" and _reads_as_utf8(published):
        raise VerificationError(
            "the release in Windows-1252 would be read as UTF-8, with other characters; nothing was published",
            PLAIN_HINT,
        )


def _decoded(path: Path, dialect: Dialect) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding_of(dialect))()
    with path.open("rb") as file:
        while piece := file.read(CHUNK):
            yield decoder.decode(piece).encode()
        yield decoder.decode(b"", final=True).encode()


def _same_bytes(plain: Path, published: Path, dialect: Dialect) -> bool:
    """Compare a file, decoded, with the verified one, some bytes at a time."""
    rest = b""
    with plain.open("rb") as file:
        for piece in _decoded(published, dialect):
            if file.read(len(piece)) != piece:
                return False
        rest = file.read(1)
    return not rest


def _same_cells(plain: Path, decoded: Path, dialect: Dialect, columns: Sequence[str], names: Sequence[str]) -> bool:
    """Compare two files row by row in SQL; numbers of some columns have a comma in the second one."""
    numbers = [f"c{i}" for i in range(len(names))]
    aliased = ", ".join(f"{quoted(name)} AS {alias}" for name, alias in zip(names, numbers, strict=True))
    other = [
        f"CASE WHEN regexp_matches({alias}, '{NUMBER_WITH_COMMA}') THEN replace({alias}, ',', '.') ELSE {alias} END"
        if name in columns
        else alias
        for name, alias in zip(names, numbers, strict=True)
    ]
    judged = f"SELECT true AS there, {aliased} FROM {sql_source(plain, dialect, names)}"
    published = f"SELECT {aliased} FROM {sql_source(decoded, dialect, names)}"
    restored = ", ".join(f"{value} AS d{i}" for i, value in enumerate(other))
    differs = " OR ".join(f"c{i} IS DISTINCT FROM d{i}" for i in range(len(names)))
    query = (
        f"SELECT count(*) FROM ({judged}) POSITIONAL JOIN (SELECT true AS also, {restored} FROM ({published})) "
        f"WHERE there IS DISTINCT FROM also OR {differs}"
    )
    with scratch.connect() as connection:
        row = connection.execute(query).fetchone()
    return row is not None and row[0] == 0


def _reads_as_utf8(path: Path) -> bool:
    """Return whether a file with characters beyond ASCII is also valid UTF-8."""
    decoder, beyond = codecs.getincrementaldecoder("utf-8")(), False
    try:
        with path.open("rb") as file:
            for piece in iter(lambda: file.read(CHUNK), b""):
                beyond = beyond or not piece.isascii()
                decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return beyond
