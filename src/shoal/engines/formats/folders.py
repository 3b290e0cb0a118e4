"""Folders of Parquet files: written under a temporary name, judged there, then renamed into place."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa

from shoal.engines.formats import atomic_files, office_files, table_files
from shoal.errors import OutputError, already_there

FILE_ROWS = 32 * table_files.ROW_GROUP


def write_folder(pieces: Iterator[pa.Table], path: Path, force: bool, verify: Callable[[Path], None]) -> None:
    """Write files of a fixed number of rows, in the order of ``pieces``; ``verify`` judges them before renaming."""
    aside = aside_of(path, force)
    try:
        with atomic_files.output_errors(path):
            aside.mkdir(mode=0o700)
        n_files = 0
        for n_files, piece in enumerate(_folded(pieces), 1):
            table_files.write_table_file(piece, aside / f"part-{n_files - 1:05}.parquet", verify=lambda _: None)
        if not n_files:
            raise OutputError("the release has no rows", "every record was suppressed: relax the requirements")
        verify(aside)
        _publish(aside, path, force)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _folded(pieces: Iterator[pa.Table]) -> Iterator[Iterator[pa.Table]]:
    """Yield the pieces of one file after another."""
    waiting: list[pa.Table] = []

    def one_file() -> Iterator[pa.Table]:
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
        yield one_file()


def check_file_or_folder(path: Path, force: bool) -> None:
    """Raise the errors of writing a file or folder with this name in pieces, before the long computation."""
    if office_files.is_foreign(path):
        raise OutputError(
            f"DuckDB writes no {path.suffix} files",
            "write .parquet or .csv, or read the table into memory",
            option="--engine local",
        )
    if path.suffix.lower() in table_files.TEXT + table_files.PARQUET:
        table_files.check_target(path, force)
    else:
        aside_of(path, force)


def aside_of(path: Path, force: bool) -> Path:
    """Return the temporary path of a folder; raise an error if it could never be renamed into place."""
    if path.exists() and not force:
        raise already_there(path)
    if path.exists() and not path.is_dir():
        raise OutputError(f"{path} is a file", "name a folder, or a file by its extension")
    if not path.parent.is_dir():
        raise OutputError(f"the folder {path.parent} does not exist", "create it first")
    return path.with_name(f".shoal-{secrets.token_hex(8)}")


def _publish(aside: Path, path: Path, force: bool) -> None:
    """Rename a finished folder into place; an existing one is removed only then."""
    with atomic_files.output_errors(path):
        atomic_files.open_up(aside)
        if not (force and path.exists()):
            aside.rename(path)
        elif _exchanged(aside, path):
            shutil.rmtree(aside, ignore_errors=True)
        else:
            _replace(aside, path)


_CURRENT_FOLDER, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux


def _exchanged(aside: Path, path: Path) -> bool:
    """Swap two folders in one step, if the system can: no moment without one of them at ``path``."""
    try:
        exchange = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an older C library
        return False
    return bool(exchange(_CURRENT_FOLDER, os.fsencode(aside), _CURRENT_FOLDER, os.fsencode(path), _EXCHANGE) == 0)


def _replace(aside: Path, path: Path) -> None:
    """Move the existing folder away and the finished one into place, with a moment between the two."""
    old = path.with_name(f".shoal-{secrets.token_hex(8)}")
    path.rename(old)
    try:
        aside.rename(path)
    except OSError:
        old.rename(path)
        raise
    shutil.rmtree(old, ignore_errors=True)
