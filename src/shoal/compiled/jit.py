"""Compile a loop when it is first called, and cache it for the next run.

Numba caches compiled code in files, and gives each the next free name without checking for other processes: two
processes that cache one function for different types at the same time may find each other's code under their name, and
run it. Here a lock makes them take turns, and one that waited for its turn looks whether the other has compiled the
same: several processes that start together compile a loop once. The lock ends with its process, and nobody waits for it
longer than for a compilation. Code cached by an earlier version of shoal may refer to classes that no longer exist:
then it is compiled again, and also if a file has changed from which the loop takes other loops or constants.

Before loading code from its cache, Numba prepares to compile: it imports what it knows of NumPy's functions, and
SciPy's linear algebra, a third of a second in every process. Machine code needs only Numba's memory manager; the
compiler prepares itself where something is really compiled.

Numba itself is imported when the first loop is compiled or loaded: with LLVM, that takes a quarter of a second and 90
MB. A loop that has little to do is interpreted by Python, which is over sooner: a small table needs no compiler. Where
Numba is there already, a loop that an earlier process compiled is loaded instead, which is sooner still. The source is
the same, and so are the results, to the last bit: these loops are written so that Python's numbers and the machine's
are the same, and tests run them both ways.

Compiling takes as long as Numba makes it, so it is spared what these loops do not need. One that only fills arrays that
it is given counts no references to them, and needs no memory manager, which is compiled in every process. One that only
other loops call becomes machine code as a part of them, and not for itself too; and it is compiled once, whether they
pass constants, numbers of 32 bits or of 64.
"""

from __future__ import annotations

import gc
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, update_wrapper
from pathlib import Path
from pickle import UnpicklingError
from threading import Lock, Thread
from typing import IO, Any, TypeVar, cast

import numpy as np

Loop = TypeVar("Loop", bound=Callable[..., Any])

WAIT = 30.0  # seconds for another process to compile the same loop
SHORT = 1 << 16  # steps of a loop that Python takes in some 30 ms

# Nobody calls a loop from C, and each would be compiled a second time for that.
_CALLABLE = {"cache": True, "nogil": True, "no_cfunc_wrapper": True}
_WITHIN = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}

# What loops are spared depends on how Numba works inside: in a version that nobody tried, they are compiled as usual.
NEWEST_TRIED = (0, 68)

# NumPy's functions that make an array. Without a memory manager, Numba refuses to compile any other too.
_MAKE_ARRAYS = {"argsort", "array", "cumsum", "empty", "full", "ones", "zeros"}
_NUMBERS = {"None", "bool", "float", "int", "Int", "tuple"}


def compiled(loop: Loop) -> Loop:
    """Compile a function; it runs without Python's lock, so that threads can share the work."""
    return cast("Loop", CompiledLoop(loop, _CALLABLE, None))


def compiled_when_long(steps: Callable[..., int]) -> Callable[[Loop], Loop]:
    """Compile a function as ``compiled`` does, once it has taken more than a few steps in this process.

    ``steps`` estimates from its arguments how many steps a call takes.
    """

    def decorate(loop: Loop) -> Loop:
        return cast("Loop", CompiledLoop(loop, _CALLABLE, steps))

    return decorate


def compiled_within(loop: Loop) -> Loop:
    """Compile a function that only other loops call, and with them: it is not cached, and from Python interpreted."""
    return cast("Loop", CompiledLoop(loop, _WITHIN, lambda *_: 0))


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


@contextmanager
def announcing(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` meanwhile whenever a loop is about to be compiled, which takes seconds, but only the first time."""
    global _tell
    before, _tell = _tell, tell
    try:
        yield
    finally:
        _tell = before


_tell: Callable[[], None] | None = None


def _load_numba() -> None:
    collecting = gc.isenabled()
    gc.disable()  # its many objects make Python look through all of them for cycles, a tenth of a second for nothing
    try:
        with suppress(Exception):  # whoever needs it will be told
            import numba
            import numba.np.arrayobj  # noqa: F401  which every loop needs
    finally:
        if collecting:
            gc.enable()


class CompiledLoop:
    """A function that is compiled, or loaded from the cache, as soon as it is called with enough to do."""

    def __init__(self, loop: Callable[..., Any], options: dict[str, bool], steps: Callable[..., int] | None) -> None:
        update_wrapper(self, loop)
        self.py_func, self._options = loop, options
        self._steps, self._left = steps or (lambda *_: 0), SHORT
        self._made: Any = None
        self._making = Lock()
        self._looked = False
        self.may_be_interpreted = steps is not None
        self._run: Callable[..., Any] = self._interpreted if self.may_be_interpreted else self._first

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop, compiled or interpreted."""
        return self._run(*arguments)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.made(), name)  # what Numba knows of it

    def made(self) -> Any:
        """Return Numba's function, which compiles or loads the loop for the types it is called with."""
        with self._making:
            if self._made is None:
                import numba

                _tell_numba()
                jit: Any = numba.njit  # whose annotations lack some options
                spared = numba.version_info.short <= NEWEST_TRIED
                options: dict[str, Any] = {**self._options, "_nrt": not spared or _makes_arrays(self.py_func)}
                if self._options.get("cache"):
                    self._made = _cached(jit(**options)(self.py_func), options)
                else:
                    self._made = jit(**options, **({"pipeline_class": _linked()} if spared else {}))(self.py_func)
                if spared:
                    _called_with_plain_types(self._made)
            return self._made

    def _kept(self) -> bool:
        """Whether the cache has code of this loop, which is then loaded sooner than anything is interpreted."""
        if self._looked:
            return False
        self._looked = True
        file = getattr(getattr(self.made(), "_cache", None), "_cache_file", None)
        return file is not None and bool(file._load_index())

    def _first(self, *arguments: Any) -> Any:
        self._run = self.made()
        return self._run(*arguments)

    def _interpreted(self, *arguments: Any) -> Any:
        self._left -= self._steps(*arguments)
        if self._left < 0 or (_told and self._kept()):
            return self._first(*arguments)
        with np.errstate(over="ignore"):  # numbers of 64 bits wrap around, as the machine's do
            return self.py_func(*arguments)


_told = False


def _tell_numba() -> None:
    """Let loops that are compiled call others."""
    global _told
    if not _told:
        from numba.extending import typeof_impl

        typeof_impl.register(CompiledLoop)(lambda loop, context: typeof_impl(loop.made(), context))
        _told = True


def _called_with_plain_types(made: Any) -> None:
    """Make the other loops that call a loop share its code.

    Numba would compile it once for the constant 0, once for 1, once for a number of 32 bits and once for one of 64; in
    all of them it computes with 64 bits.
    """
    from numba.core import types as kinds

    types: Any = kinds  # whose annotations lack some attributes
    usual = made.get_call_template

    def plain(kind: Any) -> Any:
        kind = types.unliteral(kind)
        return types.int64 if isinstance(kind, types.Integer) and kind.signed else kind

    made.get_call_template = lambda given, named: usual([plain(kind) for kind in given], named)


@cache
def _linked() -> Any:
    """Return a compiler for loops that only others call, whose code is linked into theirs as it is.

    Numba would optimize such a loop and make machine code of it, which nobody runs: with each of its callers it is
    optimized again.
    """
    from numba.core import codegen, compiler

    library: Any = codegen.JITCodeLibrary
    usual: Any = compiler.Compiler

    class Part(library):  # type: ignore[misc]
        codegen = property(lambda self: self)

        def set_env(self, *_: Any) -> None:
            """Tell nobody where the objects are that a function of Python refers to: a part has no place of its own."""

        def _optimize_final_module(self) -> None: ...

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._finalized = True

    class Linked(usual):  # type: ignore[misc]
        def __init__(self, typing: Any, target: Any, _: None, *more: Any) -> None:
            super().__init__(typing, target, Part(target.codegen(), "part"), *more)

    return Linked


def _cached(found: Any, options: dict[str, Any]) -> Any:
    """Make the cache of a function safe for several processes."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.runtime.nrt import rtsys

    cache: Any = getattr(found, "_cache", None)
    kept = getattr(cache, "_cache_file", None)
    if kept is not None:
        kept._source_stamp = getattr(kept, "_source_stamp", None), _compiled_with(found.py_func), options
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
            if options["_nrt"]:
                rtsys.initialize(target)
            with cache._guard_against_spurious_io_errors():
                there = cache._load_overload(signature, target)
                if there is None and turn.take():  # which may have taken a while
                    there = cache._load_overload(signature, target)
                if there is None and _tell is not None:
                    _tell()
                return there

        def compile_in_turn(signature: Any) -> Any:
            with global_compiler_lock:  # so that no other thread ends this turn
                collecting = gc.isenabled()
                gc.disable()  # the compiler makes so many objects that looking for cycles takes an eighth of its time
                try:
                    return compile_loop(signature)
                finally:
                    if collecting:
                        gc.enable()
                    turn.end()

        kept.save, kept._load_index = save_in_turn, load_what_can_be_read
        found.compile = compile_in_turn
        if hasattr(cache, "_load_overload"):  # if this Numba loads code as the known ones do
            cache.load_overload = load_overload
    return found


def _compiled_with(loop: Callable[..., Any]) -> list[tuple[str, object]]:
    """Return what is compiled into a loop from other places: the files of loops that it calls, and constants.

    Numba compares the loop's own file alone, and would run old code after a change of another.
    """
    found: dict[str, object] = {}
    for function in _compiled_together(loop):
        file = function.__code__.co_filename
        with suppress(OSError):  # a file in an archive
            now = Path(file).stat()
            found[file] = now.st_mtime_ns, now.st_size
        for name in function.__code__.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, bool | int | float | str | tuple | np.generic):
                found[f"{file} {name}"] = repr(value)
    return sorted(found.items())


def _makes_arrays(loop: Callable[..., Any]) -> bool:
    """Return whether a loop makes arrays, or may return one: then Numba has to count the references to them."""
    returned = set(re.findall(r"\w+", str(loop.__annotations__.get("return", "anything"))))
    names = (name for part in _compiled_together(loop) for name in part.__code__.co_names)
    return not returned <= _NUMBERS or not _MAKE_ARRAYS.isdisjoint(names)


def _compiled_together(loop: Callable[..., Any]) -> list[Callable[..., Any]]:
    """Return a loop and the loops that it calls."""
    found = [loop]
    for function in found:
        called = (function.__globals__.get(name) for name in function.__code__.co_names)
        found += [each.py_func for each in called if isinstance(each, CompiledLoop) and each.py_func not in found]
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
