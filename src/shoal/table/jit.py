"""Compile a loop when it is first called, and cache it for the next run.

Numba caches compiled code in files, and gives each the next free name without checking for other processes: two
processes that cache one function for different types at the same time may find each other's code under their name, and
run it. Here a lock makes them take turns. Code cached by an earlier version of shoal may refer to classes that no
longer exist: then it is compiled again.

Before loading code from its cache, Numba prepares to compile: it imports what it knows of NumPy's functions, and
SciPy's linear algebra, a third of a second in every process. Machine code needs only Numba's memory manager; the
compiler prepares itself where something is really compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

from numba import njit
from numba.core.runtime.nrt import rtsys

Loop = TypeVar("Loop", bound=Callable[..., Any])


def compiled(loop: Loop) -> Loop:
    """Compile a function; it runs without Python's lock, so that threads can share the work."""
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
        _load_without_compiler(found._cache)
    return cast("Loop", found)


def _load_without_compiler(cache: Any) -> None:
    """Make a cache load compiled code without preparing the compiler, if this Numba loads code as the known ones do."""
    if not hasattr(cache, "_load_overload"):
        return

    def load_overload(signature: Any, target: Any) -> Any:
        rtsys.initialize(target)
        with cache._guard_against_spurious_io_errors():
            return cache._load_overload(signature, target)

    cache.load_overload = load_overload


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold a lock that excludes other processes using the same file."""
    with path.open("a", encoding="utf-8") as file:
        with suppress(ImportError, OSError):  # Windows and some network disks have no such lock
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield
