"""Signal handling: Ctrl-C and SIGTERM leave no partial file.

A signal raises an exception wherever the program is, so the usual cleanup runs. It is held back where an exception
would do harm: before a command begins, after it has ended, and while modules are loaded.
"""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import CodeType, FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.search.problem import Progress

received: list[int] = []  # that told us to stop
held: list[None] = []  # what must not be interrupted: imports under way, and all but the command itself

whole: set[CodeType] = set()  # functions that are never left halfway
AGAIN = 0.05  # seconds until a signal that came at a bad moment is looked at again


def listen() -> list[int]:
    """Take the signals that tell us to stop, and by which we remind ourselves; their numbers."""
    held.append(None)  # until a command begins a signal is remembered: whoever reads the flags would exit in silence
    # By the last we remind ourselves; Windows does not know it, nor that a terminal was closed.
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)  # nohup: the work goes on
    for number in numbers:
        signal.signal(number, stop)
    sys.unraisablehook = unraisable
    return numbers


def ignore(numbers: Sequence[int]) -> None:
    """No longer heed them."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def stop(signum: int, frame: FrameType | None) -> None:
    """Clean up as Ctrl-C does, now or as soon as that does no harm: the half-written file goes."""
    received.append(signum)
    if held:
        return
    if _at_a_bad_moment(frame) and hasattr(signal, "setitimer"):
        # Libraries import on first use too, some from their native code, which no exception may pass.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        return
    raise interrupted()


def interrupted() -> KeyboardInterrupt:
    """Raised once: a reminder that came while we clear up would leave the half-written file where it is."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    return KeyboardInterrupt()


def unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a signal whose exception cannot propagate, as in a destructor, instead of reporting it."""
    if not (received and issubclass(lost.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(lost)
    elif not held and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def _at_a_bad_moment(frame: FrameType | None) -> bool:
    """Whether the program is loading a module, or in a function that must not be left halfway."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code in whole:
            return True
        frame = frame.f_back
    return False


@contextmanager
def loading() -> Iterator[None]:
    """Imports go uninterrupted: an extension module that is stopped halfway takes the process down."""
    held.append(None)
    try:
        yield
    finally:
        held.pop()
    if "pyarrow" in sys.modules:
        # Its own handlers, set while it reads a file, forget a signal that comes when the file is almost read.
        sys.modules["pyarrow"].enable_signal_handlers(False)
    if received:
        raise interrupted()


def heeding(progress: Progress) -> Progress:
    """The same, but work goes no further once a signal has come: where it came its exception may have been lost."""

    def heed(what: str, share: float) -> None:
        if received:
            raise interrupted()
        progress(what, share)

    return heed


def leave(code: int) -> None:
    """End before Python takes itself apart: a thread of a library that is still at a file whose reading was given up
    would come back to find it half gone, and abort the process."""
    atexit._run_exitfuncs()
    gc.collect()  # connections are closed
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
