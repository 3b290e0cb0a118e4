"""Folders of Parquet files: written aside, judged there, then renamed."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from shoal.engines.files import formats, office_files
from shoal.errors import OutputError, already_there

FILE_ROWS = 32 * formats.ROW_GROUP


def write_folder(pieces: Iterator[pa.Table], path: Path, force: bool, verify: Callable[[Path], None]) -> None:
    """Files of a fixed number of rows, in the order of ``pieces``; ``verify`` is given the folder without its name."""
    aside = aside_of(path, force)
    try:
        with formats.output_errors(path):
            aside.mkdir(mode=0o700)
        n_files = 0
        for n_files, piece in enumerate(_folded(pieces), 1):
            formats.write(piece, aside / f"part-{n_files - 1:05}.parquet", verify=lambda _: None)
        if not n_files:
            raise OutputError("the release has no rows", "every record was suppressed: relax the requirements")
        verify(aside)
        _publish(aside, path, force)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _folded(pieces: Iterator[pa.Table]) -> Iterator[Iterator[pa.Table]]:
    """The pieces of one file after another."""
    waiting: list[pa.Table] = []

    def one() -> Iterator[pa.Table]:
        n = 0
        while n < FILE_ROWS:
            piece = waiting.pop() if waiting else next(pieces, None)
            if piece is None:
                return
            if n + len(piece) > FILE_ROWS:
                waiting.append(piece.slice(FILE_ROWS - n))
                piece = piece.slice(0, FILE_ROWS - n)
            n += len(piece)
            yield piece

    while True:
        if not waiting:
            piece = next(pieces, None)
            if piece is None:
                return
            waiting.append(piece)
        yield one()


def check_file_or_folder(path: Path, force: bool) -> None:
    """Raise what writing a file or a folder of this name piece by piece would raise, before the long work."""
    if office_files.is_foreign(path):
        raise OutputError(
            f"DuckDB writes no {path.suffix} files",
            "write .parquet or .csv, or read the table into memory",
            option="--engine local",
        )
    if path.suffix.lower() in formats.TEXT + formats.PARQUET:
        formats.check_target(path, force)
    else:
        aside_of(path, force)


def aside_of(path: Path, force: bool) -> Path:
    """Where a folder is written before it has its name; raises where it could never get it."""
    if path.exists() and not force:
        raise already_there(path)
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file", "name a folder, or a file by its extension")
    if not path.parent.is_dir():
        raise OutputError(f"the folder {path.parent} does not exist", "create it first")
    return path.with_name(f".shoal-{secrets.token_hex(8)}")


def _publish(aside: Path, path: Path, force: bool) -> None:
    """Give a finished folder its name; what had it before goes only then."""
    with formats.output_errors(path):
        old = path.with_name(f".shoal-{secrets.token_hex(8)}")
        if force and path.exists():
            path.rename(old)
        try:
            formats.open_up(aside)
            aside.rename(path)
        except OSError:
            if old.exists():
                old.rename(path)
            raise
        shutil.rmtree(old, ignore_errors=True)
