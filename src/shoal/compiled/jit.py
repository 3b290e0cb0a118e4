"""Compile a loop when it is first called, and cache it for the next run.

Numba, which takes a quarter of a second and 90 MB, is imported when the first loop is compiled or loaded. A loop that
has little to do is interpreted by Python, which takes less time: a small table needs no compiler. Where Numba is loaded
already, cached code of an earlier process is loaded instead. Both ways run the same source with the same results, to
the last bit: the loops are written so that Python's numbers and the machine's agree, and tests run them both ways.

Numba's cache does not expect several processes: it gives each machine code the next free file name, so two processes
that compile one function for different types at the same time may overwrite each other's code, and run it. Here a file
lock makes them take turns. Nor does it notice that a loop of another file has changed that is compiled into a cached
one. Here the names of the cached files contain a hash of all these files and constants, so stale code is never loaded.

Two settings shorten what compiling takes. A loop that makes no arrays is compiled without a memory manager
(``_nrt = False``). And loops that call each other pass plain types: Numba would compile the callee once more for each
constant, and for integers of 32 and of 64 bits. The first run with a proposed policy takes 25 s without any compiled
code; without the first setting 34 s, and 2 s more in every later process; without the second 31 s (CPU time on a
loaded machine with two cores; 3 s once all is cached).
"""

from __future__ import annotations

import hashlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import update_wrapper
from pathlib import Path
from threading import Lock, Thread
from typing import IO, Any, TypeVar, cast

import numpy as np

Loop = TypeVar("Loop", bound=Callable[..., Any])

WAIT = 30.0  # seconds for another process to compile the same loop
SHORT = 1 << 16  # steps of a loop that Python takes in some 30 ms

# Without wrappers for callers in C: each would be compiled too.
CALLED_FROM_PYTHON = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
CALLED_FROM_LOOPS = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}

# The functions of NumPy in our loops that allocate an array, and return types that are no array.
ALLOCATE = {"argsort", "array", "cumsum", "empty", "full", "ones", "zeros"}
NUMBERS = {"None", "bool", "float", "int", "Int", "tuple"}


def compiled(loop: Loop) -> Loop:
    """Compile a function; it runs without Python's lock, so that threads can share the work."""
    return cast("Loop", CompiledLoop(loop, CALLED_FROM_PYTHON, None))


def compiled_when_long(steps: Callable[..., int]) -> Callable[[Loop], Loop]:
    """Compile a function as ``compiled`` does, once it has taken more than a few steps in this process.

    ``steps`` estimates from its arguments how many steps a call takes.
    """

    def decorate(loop: Loop) -> Loop:
        return cast("Loop", CompiledLoop(loop, CALLED_FROM_PYTHON, steps))

    return decorate


def compiled_within(loop: Loop) -> Loop:
    """Compile a function that only other loops call, and with them: it is not cached, and from Python interpreted."""
    return cast("Loop", CompiledLoop(loop, CALLED_FROM_LOOPS, lambda *_: 0))


@contextmanager
def loading_meanwhile(*, worthwhile: bool) -> Iterator[None]:
    """Load Numba in another thread meanwhile, if it is ``worthwhile``: an engine that counts rows needs no Python."""
    thread = Thread(target=_load_numba, daemon=True) if worthwhile and "numba" not in sys.modules else None
    if thread is not None:
        thread.start()
    try:
        yield
    finally:
        if thread is not None:
            thread.join()


def _load_numba() -> None:
    with suppress(Exception):  # the thread that needs it raises the error
        import numba
        import numba.np.arrayobj  # noqa: F401  which every loop needs


@contextmanager
def announcing(announce: Callable[[], None]) -> Iterator[None]:
    """Call ``announce`` meanwhile whenever a loop is about to be compiled for the first time, which takes seconds."""
    global _announce
    before, _announce = _announce, announce
    try:
        yield
    finally:
        _announce = before


_announce: Callable[[], None] | None = None


class CompiledLoop:
    """A function that is compiled, or loaded from the cache, as soon as it is called with enough to do."""

    def __init__(self, loop: Callable[..., Any], options: dict[str, bool], steps: Callable[..., int] | None) -> None:
        update_wrapper(self, loop)
        self.py_func, self._options = loop, options
        self._steps, self._steps_left = steps or (lambda *_: 0), SHORT
        self._dispatcher: Any = None
        self._lock = Lock()
        self._cache_was_checked = False
        self.may_be_interpreted = steps is not None
        self._run: Callable[..., Any] = self._interpreted if self.may_be_interpreted else self._compiled

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop, compiled or interpreted."""
        return self._run(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.dispatcher(), name)  # what Numba knows of it

    def dispatcher(self) -> Any:
        """Return Numba's function, which compiles or loads the loop for the types it is called with."""
        with self._lock:
            if self._dispatcher is None:
                import numba

                _register_loops()
                jit: Any = numba.njit  # whose annotations lack some options
                dispatcher = jit(**self._options, _nrt=_allocates(self.py_func))(self.py_func)
                _pass_plain_types(dispatcher)
                if self._options.get("cache"):
                    _share_cache(dispatcher)
                self._dispatcher = dispatcher
            return self._dispatcher

    def _compiled(self, *arguments: Any) -> Any:
        self._run = self.dispatcher()
        return self._run(*arguments)

    def _interpreted(self, *arguments: Any) -> Any:
        self._steps_left -= self._steps(*arguments)
        if self._steps_left < 0 or (_registered and self._is_cached()):
            return self._compiled(*arguments)
        with np.errstate(over="ignore"):  # numbers of 64 bits wrap around, as the machine's do
            return self.py_func(*arguments)

    def _is_cached(self) -> bool:
        """Whether the cache has code of this loop, which loads in less time than most loops are interpreted in."""
        if self._cache_was_checked or not self._options.get("cache"):
            return False
        self._cache_was_checked = True
        return _has_code(self.dispatcher())


_registered = False


def _register_loops() -> None:
    """Let loops that are compiled call others."""
    global _registered
    if not _registered:
        from numba.extending import typeof_impl

        typeof_impl.register(CompiledLoop)(lambda loop, context: typeof_impl(loop.dispatcher(), context))
        _registered = True


def _pass_plain_types(dispatcher: Any) -> None:
    """Make the other loops that call a loop share its code: constants and integers become numbers of 64 bits."""
    from numba.core import types as kinds

    types: Any = kinds  # whose annotations lack some attributes
    template = dispatcher.get_call_template

    def plain(kind: Any) -> Any:
        kind = types.unliteral(kind)
        return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind

    dispatcher.get_call_template = lambda kinds, named: template([plain(kind) for kind in kinds], named)


def _share_cache(dispatcher: Any) -> None:
    """Make the cache of a function safe for several processes, and for changes of what is compiled into it."""
    from numba.core.compiler_lock import global_compiler_lock

    cache: Any = dispatcher._cache
    file = getattr(cache, "_cache_file", None)
    if file is None:  # Numba found no folder that it can write to
        return
    name = file._index_name.removesuffix(".nbi")
    stamp = hashlib.sha256(repr(_compiled_from(dispatcher.py_func)).encode()).hexdigest()[:16]
    cache._cache_file = type(file)(file._cache_path, f"{name}.{stamp}", file._source_stamp)
    compile_or_load = dispatcher.compile

    def compile_in_turn(signature: Any) -> Any:
        # Numba looks into the cache first, so a process that waited for its turn loads what the other has compiled.
        with global_compiler_lock, _turn(cache) as granted:
            if not granted:
                cache.disable()
            if _announce is not None and not _has_code(dispatcher):
                _announce()
            return compile_or_load(signature)

    dispatcher.compile = compile_in_turn


def _has_code(dispatcher: Any) -> bool:
    file = getattr(dispatcher._cache, "_cache_file", None)
    return file is not None and bool(file._load_index())


def _compiled_from(loop: Callable[..., Any]) -> list[tuple[str, object]]:
    """Return what is compiled into a loop: the files of the loops that it calls, with their times, and constants."""
    parts: dict[str, object] = {}
    for function in _compiled_together(loop):
        file = function.__code__.co_filename
        with suppress(OSError):  # a file in an archive
            status = Path(file).stat()
            parts[file] = status.st_mtime_ns, status.st_size
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, bool | int | float | str | tuple | np.generic):
                parts[f"{file} {name}"] = repr(value)
    return sorted(parts.items())


def _allocates(loop: Callable[..., Any]) -> bool:
    """Return whether a loop makes arrays, or may return one: then Numba has to count the references to them."""
    returned = set(re.findall(r"\w+", str(loop.__annotations__.get("return", "anything"))))
    names = (name for part in _compiled_together(loop) for name in part.__code__.co_names)
    return not returned <= NUMBERS or not ALLOCATE.isdisjoint(names)


def _compiled_together(loop: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return a loop and the loops that it calls."""
    loops = [loop]
    for function in loops:
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        loops += [other.py_func for other in called if isinstance(other, CompiledLoop) and other.py_func not in loops]
    return loops


@contextmanager
def _turn(cache: Any) -> Iterator[bool]:
    """Hold the lock of a function's cache; yield False if another process does not release it in time.

    The lock ends with its process.
    """
    file = _lock_file(cache)
    if file is None:
        yield True
        return
    with file:
        yield _locked(file)


def _lock_file(cache: Any) -> IO[str] | None:
    """Open the file to lock; None on Windows, which has no such lock, and where nothing can be written."""
    try:
        import fcntl  # noqa: F401

        cache._impl.locator.ensure_cache_path()
        return Path(f"{cache._cache_file._index_path}.lock").open("a", encoding="utf-8")
    except (ImportError, OSError):
        return None


def _locked(file: IO[str]) -> bool:
    import fcntl

    end = time.monotonic() + WAIT
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        except OSError:  # some network disks have no such lock
            return True
        else:
            return True
