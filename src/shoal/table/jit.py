"""Compile a loop when it is first called, and keep it for the next run.

Numba keeps what it compiled in files, and gives each the next free name without looking whether another process is at
it: two that keep one function for different types at the same moment may find the code of the other under their name,
and run it. Here they keep their code one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The same, compiled; it runs without Python's lock, so that threads share the work."""
    found: Any = njit(cache=True, nogil=True)(loop)
    kept = getattr(getattr(found, "_cache", None), "_cache_file", None)
    if kept is not None:
        save, path = kept.save, Path(f"{kept._index_path}.lock")

        def save_alone(key: Any, data: Any) -> None:
            with _alone(path):
                save(key, data)

        kept.save = save_alone
    return cast("Loop", found)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no other process is in here with the same file."""
    with path.open("a", encoding="utf-8") as file:
        with suppress(ImportError, OSError):  # Windows has no such lock, and some network disks have none
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
