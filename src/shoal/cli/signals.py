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

received: list[int] = []  # the signal that stopped the program
postponing: list[None] = []  # what must not be interrupted: running imports, and everything but the command itself

whole: set[CodeType] = set()  # functions that are never interrupted
AGAIN = 0.05  # seconds until a signal that came at a bad moment is handled again


def listen() -> list[int]:
    """Install handlers for the stop signals and for the reminder signal; return their numbers."""
    postponing.append(None)  # until a command begins, a signal is remembered: the parser would exit silently
    # The last one is the reminder; Windows has neither it nor the signal for a closed terminal.
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
        numbers.remove(signal.SIGHUP)  # nohup: continue
    for number in numbers:
        signal.signal(number, stop)
    sys.unraisablehook = unraisable
    return numbers


def ignore(numbers: Sequence[int]) -> None:
    """Ignore the signals from now on."""
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def stop(signum: int, frame: FrameType | None) -> None:
    """Clean up as for Ctrl-C, now or as soon as it is safe: the partial file is removed."""
    received.append(signum)
    if postponing:
        return
    if _at_a_bad_moment(frame) and hasattr(signal, "setitimer"):
        # Libraries also import on first use, some from native code, which no exception may pass through.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        return
    raise interrupted()


def interrupted() -> KeyboardInterrupt:
    """Raise the exception once: a reminder during cleanup would leave the partial file in place."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, 0)
    return KeyboardInterrupt()


def unraisable(lost: sys.UnraisableHookArgs) -> None:
    """Repeat a signal whose exception cannot propagate, as in a destructor, instead of reporting it."""
    if not (received and issubclass(lost.exc_type, KeyboardInterrupt)):
        sys.__unraisablehook__(lost)
    elif not postponing and hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, AGAIN)


def _at_a_bad_moment(frame: FrameType | None) -> bool:
    """Return whether the program is loading a module, or in a function that must not be interrupted."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code in whole:
            return True
        frame = frame.f_back
    return False


@contextmanager
def loading() -> Iterator[None]:
    """Run imports uninterrupted: an extension module that is stopped halfway crashes the process."""
    postponing.append(None)
    try:
        yield
    finally:
        postponing.pop()
    if not gc.isenabled():
        gc.freeze()  # loaded code is never freed: the collector need not scan it
        gc.enable()
    if "pyarrow" in sys.modules:
        # Its own handlers, set while it reads a file, lose a signal that comes when the file is almost read.
        sys.modules["pyarrow"].enable_signal_handlers(False)
    if received:
        raise interrupted()


def heeding(progress: Progress) -> Progress:
    """Wrap a progress callback to stop the work once a signal has come, whose exception may have been lost."""

    def heed(step: str, share: float) -> None:
        if received:
            raise interrupted()
        progress(step, share)

    return heed


def exit_at_once(code: int) -> None:
    """Exit before Python's shutdown: a library thread still reading an abandoned file would crash the process."""
    atexit._run_exitfuncs()
    gc.collect()  # closes connections
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)
