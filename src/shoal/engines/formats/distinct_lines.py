"""The distinct lines of a CSV file and how often each occurs: a release repeats few lines many times.

A scan that begins a record at the start of a line, and ends it at the end of that line, does so wherever the line
occurs. If each distinct line is one record, the file consists of these records, and whatever is counted in it can be
counted in its distinct lines. The file is read once, in pieces: for its hash, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from shoal.engines.formats.layout import CHUNK, Layout, layout_of
from shoal.errors import DataError
from shoal.tables.frequency import Counts

PIECE = 2**21  # bytes read at a time, and the longest line
MAX_BYTES = 2**29  # bytes of distinct lines


@dataclass(frozen=True, eq=False)
class DistinctLines:
    """Lines that are records of their own, and how often each occurs in a file."""

    path: Path
    text: bytearray  # the line of names, then the distinct lines
    layout: Layout
    counts: Counts
    sha256: str  # of the file's bytes

    @property
    def n_records(self) -> int:
        """The number of records of the file."""
        return int(self.counts.sum())


def few_lines(path: Path, separator: str) -> DistinctLines | None:
    """Return the distinct lines of a file; None if they are not few, or not all of them are records of their own."""
    digest = hashlib.sha256()
    header, lines, counts, n_bytes = b"", [], [], 0
    with ThreadPoolExecutor(1) as pool:
        for piece in _whole_lines(path):
            if piece is None:
                return None
            hashed = pool.submit(digest.update, piece)
            every = _lines_of(piece)
            if not header:
                header, every = every[0].as_py(), every[1:]
            value_counts = every.value_counts()
            if 2 * len(value_counts) > len(every):
                return None
            lines.append(value_counts.field("values"))
            counts.append(value_counts.field("counts"))
            n_bytes += lines[-1].nbytes
            if n_bytes > MAX_BYTES:
                return None
            hashed.result()  # before the next piece takes its place
    if not lines:
        return None
    distinct = pa.concat_arrays(lines).dictionary_encode()
    totals = np.zeros(len(distinct.dictionary), np.int64)
    np.add.at(totals, distinct.indices.to_numpy(), pa.concat_arrays(counts).to_numpy())
    text = bytearray(header + _bytes_of(distinct.dictionary))
    layout = _scanned_lines(text, separator)
    if layout is None or layout.records != len(totals):
        return None
    return DistinctLines(path, text, layout, totals, digest.hexdigest())


def _scanned_lines(text: bytearray, separator: str) -> Layout | None:
    """Return the layout of a text whose lines all end a record; None for any other."""
    try:
        layout = layout_of(partial(_chunks, text), "what was written", separator=separator)
    except DataError:
        return None
    return layout if layout.plain and layout.ends == ("LF",) else None


def _whole_lines(path: Path) -> Iterator[memoryview | None]:
    """Yield the bytes of a file in pieces that end where a line ends, each in the place of the one before.

    The last piece is None if a line is too long, or the last one does not end.
    """
    room = bytearray(PIECE)
    view, n_rest = memoryview(room), 0
    with path.open("rb") as file:
        while n_new := file.readinto(view[n_rest:]):
            n = n_rest + n_new
            end = room.rfind(b"\n", 0, n) + 1
            if end:
                yield view[:end]
            room[: n - end] = room[end:n]
            n_rest = n - end
    if n_rest:
        yield None


def _chunks(text: bytearray) -> Generator[bytes, None, None]:
    view = memoryview(text)
    for start in range(0, len(text), CHUNK):
        yield bytes(view[start : start + CHUNK])


def _lines_of(piece: memoryview) -> pa.BinaryArray:
    """Return the lines of a text, each with its line end."""
    ends = np.flatnonzero(np.frombuffer(piece, np.uint8) == 10)
    offsets = np.concatenate([[0], ends + 1]).astype(np.int32)
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), pa.py_buffer(piece)])


def _bytes_of(lines: pa.BinaryArray) -> bytes:
    """Return the lines of an array, which lie next to each other."""
    _, offsets, values = lines.buffers()
    ends = np.frombuffer(offsets, np.int32)
    first, last = int(ends[lines.offset]), int(ends[lines.offset + len(lines)])
    return bytes(values.slice(first, last - first).to_pybytes()) if values is not None else b""
