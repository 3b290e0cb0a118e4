"""Compile a loop when it is first called, and keep it for the next run.

Numba keeps what it compiled in files, and gives each the next free name without looking whether another process is at
it: two that keep one function for different types at the same moment may find the code of the other under their name,
and run it. Here they keep their code one after the other. What an earlier version of shoal has kept may name classes
that are gone: then it is compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

from numba import njit

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """The same, compiled; it runs without Python's lock, so that threads share the work."""
    found: Any = njit(cache=True, nogil=True)(loop)
    kept = getattr(getattr(found, "_cache", None), "_cache_file", None)
    if kept is not None:
        save, load, path = kept.save, kept._load_index, Path(f"{kept._index_path}.lock")

        def save_alone(key: Any, data: Any) -> None:
            with _alone(path):
                save(key, data)

        def load_what_can_be_read() -> Any:
            try:
                return load()
            except (AttributeError, ImportError, EOFError, UnpicklingError):
                return {}

        kept.save, kept._load_index = save_alone, load_what_can_be_read
    return cast("Loop", found)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """While no other process is in here with the same file."""
    with path.open("a", encoding="utf-8") as file:
        with suppress(ImportError, OSError):  # Windows has no such lock, and some network disks have none
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
