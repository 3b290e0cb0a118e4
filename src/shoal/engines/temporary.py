"""Private temporary folders: what a killed process could not remove, the next one removes."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

LOCK = ".lock"
LOCKED_PREFIX = "shoal-"


@dataclass(frozen=True)
class PrivateFolder:
    """A folder of this user alone; its lock is held until the process ends, however it ends."""

    path: Path
    lock: int | None  # a file descriptor; None where files cannot be locked

    def remove(self) -> None:
        """Remove the folder and what is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self.lock is not None:
            os.close(self.lock)


def private_folder(prefix: str = LOCKED_PREFIX) -> PrivateFolder:
    """Make a folder, after those that killed processes of this user left behind are removed: they contain tables."""
    _remove_abandoned()
    path = Path(tempfile.mkdtemp(prefix=prefix))  # 0700, as mkdtemp makes it
    making = path / f"{LOCK}-making"
    lock = _locked(making, os.O_CREAT)
    making.rename(path / LOCK)  # only now: nobody finds a lock that is not held yet
    return PrivateFolder(path, lock)


def _remove_abandoned() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{LOCKED_PREFIX}*"):
        try:
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or (hasattr(os, "getuid") and status.st_uid != os.getuid()):
                continue
            lock = _locked(folder / LOCK)
        except OSError:  # it has no lock, or somebody holds it
            continue
        if lock is not None:
            PrivateFolder(folder, lock).remove()


def _locked(path: Path, flags: int = 0) -> int | None:
    """Open a file and lock it; raise OSError if a living process has the lock."""
    descriptor = os.open(path, os.O_RDWR | flags, 0o600)
    try:
        import fcntl
    except ImportError:  # not on Windows, where no folder counts as abandoned
        os.close(descriptor)
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
