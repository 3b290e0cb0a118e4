"""Files that appear whole or not at all: written under a hidden name beside the target, then renamed into place."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from shoal.errors import OutputError, already_there


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
    write_files([Content(path, content, private)], force=force)


@dataclass(frozen=True)
class Content:
    """What a file will hold; ``private``: only its owner may read it."""

    path: Path
    content: bytes
    private: bool = False


def write_files(files: Sequence[Content], *, force: bool = False) -> None:
    """Write several files that belong together, such as two keys: all of them, or none if one cannot be written."""
    for file in files:
        check_place(file.path, force)
    hidden = [file.path.with_name(f".shoal-{secrets.token_hex(8)}{file.path.suffix}") for file in files]
    published: list[Path] = []
    try:
        for file, aside in zip(files, hidden, strict=True):
            with output_errors(file.path), private_file(aside) as stream:
                stream.write(file.content)
                stream.flush()
                os.fsync(stream.fileno())
        for file, aside in zip(files, hidden, strict=True):
            with output_errors(file.path):
                publish(aside, file.path, force, private=file.private)
            published.append(file.path)
    finally:
        # On a disk that became read-only they stay, as was reported.
        with contextlib.suppress(OSError, ValueError):
            for aside in hidden:
                aside.unlink(missing_ok=True)
            if len(published) < len(files) and not force:
                for path in published:
                    path.unlink(missing_ok=True)


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


def private_file(path: Path) -> BinaryIO:
    """Create a file that only its owner can read and write from the start, regardless of the umask."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600), "wb")


def open_up(path: Path) -> None:
    """Give a finished file or folder the mode that the umask grants to new ones."""
    # The mask can only be read by setting it; a strict one for a moment harms no other thread.
    mask = os.umask(0o077)
    os.umask(mask)
    with contextlib.suppress(OSError):  # not every file system has modes
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def publish(hidden: Path, path: Path, force: bool, *, private: bool = False) -> None:
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
        private_file(path).close()
    except FileExistsError:
        raise already_there(path) from None
