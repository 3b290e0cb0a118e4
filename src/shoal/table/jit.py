"""Compile a loop when it is first called, and cache it for the next run.

Numba caches compiled code in files, and gives each the next free name without checking for other processes: two
processes that cache one function for different types at the same time may find each other's code under their name, and
run it. Here a lock makes them take turns, and one that waited for its turn looks whether the other has compiled the
same: several processes that start together compile a loop once. The lock ends with its process, and nobody waits for it
longer than for a compilation. Code cached by an earlier version of shoal may refer to classes that no longer exist:
then it is compiled again.

Before loading code from its cache, Numba prepares to compile: it imports what it knows of NumPy's functions, and
SciPy's linear algebra, a third of a second in every process. Machine code needs only Numba's memory manager; the
compiler prepares itself where something is really compiled.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from pickle import UnpicklingError
from typing import IO, Any, TypeVar, cast

from numba import njit
from numba.core.compiler_lock import global_compiler_lock
from numba.core.runtime.nrt import rtsys

Loop = TypeVar("Loop", bound=Callable[..., Any])

jit: Any = njit  # whose annotations lack some options

WAIT = 30.0  # seconds for another process to compile the same loop


def compiled(loop: Loop) -> Loop:
    """Compile a function; it runs without Python's lock, so that threads can share the work."""
    # Nobody calls a loop from C, and each would be compiled a second time for that.
    return cast("Loop", _cached(jit(cache=True, nogil=True, no_cfunc_wrapper=True)(loop)))


def compiled_within(loop: Loop) -> Loop:
    """Compile a function that only compiled ones call, and with them: it is not cached, nor callable from Python."""
    return cast("Loop", jit(no_cfunc_wrapper=True, no_cpython_wrapper=True)(loop))


def _cached(found: Any) -> Any:
    """Make the cache of a function safe for several processes."""
    cache: Any = getattr(found, "_cache", None)
    kept = getattr(cache, "_cache_file", None)
    if kept is not None:
        turn = _Turn(cache, Path(f"{kept._index_path}.lock"))
        save, load, compile_loop = kept.save, kept._load_index, found.compile

        def save_in_turn(key: Any, data: Any) -> None:
            if turn.take():
                save(key, data)

        def load_what_can_be_read() -> Any:
            try:
                return load()
            except (AttributeError, ImportError, EOFError, UnpicklingError):
                return {}

        def load_overload(signature: Any, target: Any) -> Any:
            rtsys.initialize(target)
            with cache._guard_against_spurious_io_errors():
                there = cache._load_overload(signature, target)
                if there is None and turn.take():  # which may have taken a while
                    there = cache._load_overload(signature, target)
                return there

        def compile_in_turn(signature: Any) -> Any:
            with global_compiler_lock:  # so that no other thread ends this turn
                try:
                    return compile_loop(signature)
                finally:
                    turn.end()

        kept.save, kept._load_index = save_in_turn, load_what_can_be_read
        found.compile = compile_in_turn
        if hasattr(cache, "_load_overload"):  # if this Numba loads code as the known ones do
            cache.load_overload = load_overload
    return found


class _Turn:
    """The right to compile and to cache a function, which one process at a time has."""

    def __init__(self, cache: Any, path: Path) -> None:
        self._cache, self._path = cache, path
        self._held: IO[str] | None = None
        self._wait = WAIT

    def take(self) -> bool:
        """Wait for the turn; return False if another process does not end its own."""
        if self._held is not None:
            return True
        try:
            import fcntl

            self._cache._impl.locator.ensure_cache_path()
            file = self._path.open("a", encoding="utf-8")
        except (ImportError, OSError):  # Windows has no such lock; nothing can be cached in a folder of others
            return True
        end = time.monotonic() + self._wait
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < end:
                    time.sleep(0.01)
                    continue
                self._wait = 0.0  # once is enough
                file.close()
                return False
            except OSError:  # some network disks have no such lock
                file.close()
                return True
            self._held = file
            return True

    def end(self) -> None:
        """Let the next process have its turn."""
        if self._held is not None:
            self._held.close()
            self._held = None
