"""Files that nobody should have written, read by both readers and by Python's strict ``csv``: the same rows, or none.

    python tests/fuzz/files.py --cases 100000 --seed 0

Each case is a CSV file made from a seed: quotes, separators, line ends, NULs, encodings, ragged records, byte order
marks, nothing at all, huge fields. The reader in memory (Arrow) and the one out of core (DuckDB) must give the same
names, the same rows and the same notes, or refuse with the same words; they accept what Python's parser accepts, unless
the grammar says otherwise; and no message holds anything of a row. Nothing may end in another error than ours.
"""

from __future__ import annotations

import argparse
import codecs
import csv
import gzip
import io
import random
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import duckdb

from shoal.engines import connect, scratch
from shoal.engines.formats import formulas, table_files
from shoal.engines.formats.layout import INDEX, NAME_LINES, decompressed_chunks, layout_of
from shoal.engines.local_columns import require_names_apart
from shoal.errors import DataError

SECRET = "Qzx"  # in many cells: no message may hold it
LETTERS = ["a", "b", "1", ",", ";", '"', '""', "\n", "\r", "\r\n", " ", "\t", "'", "=", "|", "é", "\\", SECRET]
RARE = ["\0", "\ufeff", "€", "𝄞", "\x0b", "\x85", "\u2028", "x" * 300, "#", "-", "\x1a"]
ENCODINGS = ["utf-8"] * 14 + ["utf-8-sig", "utf-16", "utf-16-le", "cp1252", "latin-1", "utf-32"]

Rows = list[tuple[str | None, ...]]


@dataclass(frozen=True)
class Case:
    """A file, and the options that it is read with."""

    content: bytes
    suffix: str = ".csv"
    separator: str | None = None
    encoding: str | None = None
    buffer: int = 2**25


@dataclass(frozen=True)
class Outcome:
    """What a reader made of it: names, rows and notes, or the words it was refused with."""

    names: tuple[str, ...] = ()
    rows: tuple[tuple[str | None, ...], ...] = ()
    notes: tuple[str, ...] = ()
    refused: str = ""


class MismatchError(AssertionError):
    """Two readers of one file disagree."""


# ── making files ────────────────────────────────────────────────────────────────────────────────────────────


def case(seed: int) -> Case:
    """The file of a seed."""
    draw = random.Random(seed)
    text = draw.choice([_noise, _noise, _table, _table, _table, _mutated, _mutated, _mutated, _huge])(draw)
    encoding = draw.choice(ENCODINGS)
    content = text.encode(encoding, errors="replace")
    if draw.random() < 0.05:
        content = codecs.BOM_UTF8 * draw.randint(1, 2) + content
    if draw.random() < 0.04:
        at = draw.randint(0, len(content))
        content = (
            content[:at] + bytes([draw.choice([0xFF, 0x81, 0xE9, 0xC3, 0x00])]) + content[at + draw.randint(0, 1) :]
        )
    named = draw.choice([None] * 6 + [",", ",", ",", ",", ";", "\t", "|", " ", "a"])
    said = encoding if encoding == "utf-16-le" or draw.random() < 0.05 else None
    buffer = draw.choice([2**25, 1, 1])  # 1: as small as the longest record allows, so that records lie across two
    if draw.random() < 0.02:
        packed = gzip.compress(content, 1)
        return Case(packed[: draw.choice([len(packed), len(packed), len(packed) // 2])], ".csv.gz", named, said, buffer)
    return Case(content, draw.choice([".csv"] * 9 + [".tsv"]), named, said, buffer)


def _letters(draw: random.Random, most: int) -> str:
    return "".join(draw.choice(RARE if draw.random() < 0.04 else LETTERS) for _ in range(draw.randint(0, most)))


def _noise(draw: random.Random) -> str:
    return draw.choice(["", "h,k\n", "h;k\r\n", "h\n", "h,k\r", '"h","k"\n']) + _letters(draw, 40)


def _table(draw: random.Random, n_rows: int | None = None) -> str:
    width = draw.choice([1, 2, 2, 3, 3, 5])
    separator, end = draw.choice([",", ",", ",", ",", ";", "\t", "|"]), draw.choice(["\n", "\n", "\r\n", "\r"])
    names = [draw.choice(["name", "zip", "age", "n"]) + str(j) for j in range(width)]
    if draw.random() < 0.05:
        names[draw.randrange(width)] = draw.choice(["", " ", names[0], names[0].upper()])
    always = draw.random() < 0.3
    lines = [separator.join(_field(draw, name, separator, always) for name in names)]
    for _ in range(draw.randint(0, 8) if n_rows is None else n_rows):
        n_fields = width if draw.random() < 0.995 else max(1, width + draw.choice([-1, 1]))
        lines.append(separator.join(_field(draw, _cell(draw), separator, always) for _ in range(n_fields)))
        if draw.random() < 0.02:
            lines.append("")
    mixed = draw.random() < 0.1
    text = "".join(line + (draw.choice(["\n", "\r\n", "\r"]) if mixed else end) for line in lines)
    return text if draw.random() < 0.7 else text.rstrip("\r\n")


def _cell(draw: random.Random) -> str:
    plain = draw.choice(["", "02138", SECRET, "x y", " lead", "5'11\"", "=1+1", "'=1+1", "NA", "-", "1,5", "a\nb", "é"])
    return plain if draw.random() < 0.85 else _letters(draw, 6)


def _field(draw: random.Random, value: str, separator: str, always: bool) -> str:
    if always or draw.random() < 0.1 or any(mark in value for mark in (separator, "\n", "\r")) or value[:1] == '"':
        return '"' + value.replace('"', '""') + '"'
    return value


def _mutated(draw: random.Random) -> str:
    text = _table(draw)
    for _ in range(draw.randint(1, 3)):
        at = draw.randint(0, len(text))
        text = (
            text[:at]
            + draw.choice(['"', '"', "\n", "\r", ",", " ", " ", "", "\0", '""'])
            + text[at + draw.randint(0, 1) :]
        )
    return text


def _huge(draw: random.Random) -> str:
    if draw.random() < 0.9:
        return _table(draw, draw.randint(20, 200))
    long = draw.choice(["x", "é", '""', "\n", "a,", " "]) * draw.randint(10_000, 200_000)
    return f'h,k\n1,"{long}"\n{SECRET},2\n' + "3,4\n" * draw.randint(0, 3_000)


# ── reading them ────────────────────────────────────────────────────────────────────────────────────────────


def in_memory(path: Path, made: Case) -> Outcome:
    """By Arrow."""
    try:
        found = table_files.read_table_file(path, separator=made.separator, encoding=made.encoding)
        table, more = formulas.unescaped(found.table)
        require_names_apart(table.column_names)
    except DataError as error:
        return Outcome(refused=str(error))
    rows = tuple(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return Outcome(tuple(table.column_names), rows, found.notes + more)


def out_of_core(path: Path, made: Case, connection: Any) -> Outcome:
    """By DuckDB."""
    table_files.BUFFER = made.buffer
    try:
        found = layout_of(
            partial(decompressed_chunks, path), path.name, separator=made.separator, encoding=made.encoding
        )
        require_names_apart(list(found.names))
        source, notes = connect.text_source(connection, path, found)
        answer = connection.execute(f"SELECT * FROM {source}")
        names = tuple(column[0] for column in answer.description)
        return Outcome(names, tuple(answer.fetchall()), notes)
    except DataError as error:
        return Outcome(refused=str(error))
    finally:
        table_files.BUFFER = 2**25
        for copy in Path(scratch.spilling()["temp_directory"]).glob("*.csv"):
            copy.unlink()


def by_python(made: Case) -> Rows | None:
    """The records by Python's strict parser; None where it, or the grammar, refuses them."""
    content = made.content
    if made.suffix.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError):
            return None
    text = _decoded(content, made.encoding)
    if text is None or "\0" in text or made.separator is None or not text.strip():
        return None
    try:
        lines = csv.reader(io.StringIO(text.lstrip("\ufeff"), newline=""), delimiter=made.separator, strict=True)
        records = list(lines)
    except csv.Error:
        return None
    while records and not records[0]:
        records.pop(0)
    if not records:
        return None
    header, *body = records
    body = [record or [""] for record in body] if len(header) == 1 else [record for record in body if record]
    if len(header) > 1 and not header[0].strip():
        header[0] = INDEX
    folded = [name.lower() for name in header]
    broken = [name for name in header if len(name.splitlines()) > 1]
    if any(made.separator in name or len(name.splitlines()) > NAME_LINES for name in broken):
        return None
    if not body or any(len(record) != len(header) for record in body):
        return None
    if len(set(folded)) < len(folded) or not all(name.strip() for name in header):
        return None
    return [tuple(header), *(tuple(record) for record in body)]


def _header(made: Case) -> str:
    """All that may be a name: the first record, however its quotes are taken."""
    content = gzip.decompress(made.content) if made.suffix.endswith(".gz") else made.content
    text = (_decoded(content, made.encoding) or "").lstrip("\ufeff\r\n")
    return ",".join(next(csv.reader(io.StringIO(text, newline="")), []))


def _decoded(content: bytes, encoding: str | None) -> str | None:
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF32_LE: "utf-32", codecs.BOM_UTF16_LE: "utf-16"}
    marked = next((name for mark, name in marks.items() if content.startswith(mark)), None)
    for tried in (encoding,) if encoding else (marked,) if marked else ("utf-8", "cp1252"):
        try:  # piece by piece, as a stream is: UTF-16 and UTF-32 must then begin with their mark
            return codecs.getincrementaldecoder(tried)().decode(content, final=True)
        except UnicodeError:
            continue
    return None


# ── comparing ───────────────────────────────────────────────────────────────────────────────────────────────


def compare(seed: int, folder: Path, connection: Any) -> str:
    """Read the file of a seed in all ways; what became of it, or MismatchError."""
    made = case(seed)
    path = folder / f"case{made.suffix}"
    path.write_bytes(made.content)
    left, right = in_memory(path, made), out_of_core(path, made, connection)
    if left != right:
        raise MismatchError(f"seed {seed}: the readers disagree\n{left}\n{right}")
    told = " ".join((left.refused, *left.notes))
    if SECRET in told and SECRET not in _header(made):  # names are told, and these are the names
        raise MismatchError(f"seed {seed}: a message holds a value: {left.refused} {left.notes}")
    if made.separator is not None:
        expected = by_python(made)
        found = None
        if not left.refused:
            plain = table_files.read_table_file(path, separator=made.separator, encoding=made.encoding).table
            body = zip(*(column.to_pylist() for column in plain.columns), strict=True)
            found = [tuple(plain.column_names), *(tuple(cell or "" for cell in row) for row in body)]
        if found != expected:
            raise MismatchError(f"seed {seed}: Python's csv disagrees\n{found}\n{expected}\n{left.refused}")
    return "refused" if left.refused else "read"


def run(cases: int, seed: int) -> Counter[str]:
    """Compare so many files, from a seed on."""
    outcomes: Counter[str] = Counter()
    csv.field_size_limit(2**31 - 1)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for i in range(seed, seed + cases):
            outcomes[compare(i, Path(folder), connection)] += 1
    return outcomes


def main() -> int:
    """Run as a program: counts on success, the first disagreements otherwise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the others follow it")
    parser.add_argument("--show", type=int, default=5, help="disagreements to show before giving up")
    asked = parser.parse_args()
    outcomes: Counter[str] = Counter()
    csv.field_size_limit(2**31 - 1)
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        for seed in range(asked.seed, asked.seed + asked.cases):
            try:
                outcomes[compare(seed, Path(folder), connection)] += 1
            except Exception as error:  # a traceback of any other kind is a finding too
                outcomes["wrong"] += 1
                print(f"{type(error).__name__}: {error}"[:600], file=sys.stderr)
                print(f"  seed {seed}: {case(seed)!r}"[:600], file=sys.stderr)
                if outcomes["wrong"] >= asked.show:
                    break
    print(f"{sum(outcomes.values())} files: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())))
    return 1 if outcomes["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
