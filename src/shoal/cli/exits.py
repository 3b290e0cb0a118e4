"""How the program ends: exit codes, the message of a failure, and output that cannot be written.

A code of 0 or 1 is a verdict, so it is only ever given by a command that came to one and could say so. Messages of
exceptions that are not ours may quote the data: what is told is their type and the place in shoal.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import sys
import traceback
from collections.abc import Iterator
from typing import Any, TextIO

from shoal import __version__
from shoal.cli import signals
from shoal.errors import ShoalError

BAD_INPUT = 2  # also what cannot be told
BUG = 70  # EX_SOFTWARE
NOT_PRINTED = 74  # EX_IOERR
INTERRUPTED = 130  # 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE, as a shell reports a program whose reader went away
OUTCOMES = {"holds": 0, "fails": 1, "unknown": BAD_INPUT}  # verdicts

debug: list[None] = []  # asked for; SHOAL_DEBUG=1 asks for it too
written: list[str] = []  # files that are finished, whatever happens next

# What a machine says when it is short of something, which is no bug.
_SHORT_OF = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG}


_OUT_OF_MEMORY = ("Cannot allocate memory", "failed to map segment", "can't start new thread")


# ── failures ────────────────────────────────────────────────────────────────────────────────────────────────


def failed(error: BaseException) -> int:
    """Tell of an exception on standard error, and what was written before it; the exit code."""
    if debug or os.environ.get("SHOAL_DEBUG", "0") not in ("", "0"):
        _tell("".join(traceback.format_exception(error)).rstrip())
    code, message = _told(error)
    _tell(message)
    if written:
        _tell(f"Written before that: {', '.join(written)}")
    return code


def _told(error: BaseException) -> tuple[int, str]:
    kind = type(error).__name__
    # A query or a compiler that is interrupted may say so by an error of its own.
    if signals.received or isinstance(error, KeyboardInterrupt):
        return INTERRUPTED, "interrupted; no partial file was left behind"
    if isinstance(error, ShoalError):
        return error.exit_code, f"{kind}: {error.on_command_line}"
    if _is_memory(error):
        message = "MemoryError: not enough memory for this table and policy; no result"
        hint = (
            "--engine duckdb --memory 2GB reads a file in pieces; fewer or coarser quasi-identifiers need less memory"
        )
        return BAD_INPUT, f"{message}\nHint: {hint}"
    if isinstance(error, OSError) and error.errno in _SHORT_OF:
        return BAD_INPUT, f"{kind}: {os.strerror(error.errno)} (at {place(error)})"
    bug = f"InternalError: {kind} at {place(error)}, a bug in shoal {__version__}; this is not a verdict"
    return BUG, f"{bug}; --debug prints the traceback, which may quote the data"


def _is_memory(error: BaseException) -> bool:
    """Whether memory ran out; DuckDB and the loader of shared libraries have errors of their own for that."""
    return any(
        isinstance(each, MemoryError)
        or type(each).__name__ == "OutOfMemoryException"
        or (isinstance(each, OSError) and each.errno == errno.ENOMEM)
        or any(told in str(each) for told in _OUT_OF_MEMORY)
        for each in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def place(error: BaseException) -> str:
    """The innermost line of shoal that an exception passed."""
    innermost = "shoal"
    step = error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "shoal":
            innermost = f"{module}:{step.tb_lineno}"
        step = step.tb_next
    return innermost


def _tell(message: str) -> None:
    if sys.stderr is not None:  # print would turn to standard output
        print(message, file=sys.stderr)


# ── output ──────────────────────────────────────────────────────────────────────────────────────────────────


class Output(io.FileIO):
    """A stream that remembers that it failed instead of raising: libraries would exit on the spot, with code 1."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """What was written; once it has failed, all that comes is lost."""
        try:
            while self.failure is None:
                if (n := super().write(data)) is not None:
                    return n
                select.select([], [self], [])  # a pipe that does not wait for its reader, and is full
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes


signals.whole.add(Output.write.__code__)  # interrupted after it has written, it would be asked to write the same again


def guard_exit() -> None:
    """Let no library end the process with a code of its own: OpenBLAS exits with 1 where memory does not suffice.

    We leave by ``os._exit``, which asks nobody; whoever calls C's ``exit`` meets this, and so a code that says no
    verdict. Where the C library cannot be reached nothing is done.
    """
    with contextlib.suppress(Exception):
        import ctypes

        library = ctypes.CDLL(None)
        leave = ctypes.cast(library._exit, ctypes.c_void_p)
        register = library.__cxa_atexit
        register.argtypes = [ctypes.c_void_p] * 3
        register(leave, BUG, None)


def guard() -> Output | None:
    """Let neither stream raise, and fill those that are closed; standard output, to be asked whether it failed.

    The next file to be opened would take the number of a closed one, and get what is printed.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened for reading, so that writing there fails and is noticed.
            opened = os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
    output, sys.stdout = _guarded(sys.stdout, 1)
    _, sys.stderr = _guarded(sys.stderr, 2)
    return output


def _guarded(stream: TextIO | None, number: int) -> tuple[Output | None, TextIO]:
    if stream is not None:
        below = getattr(stream, "buffer", None)
        if not isinstance(stream, io.TextIOWrapper) or type(getattr(below, "raw", below)) is not io.FileIO:
            return None, stream  # a console of Windows, or a stand-in of tests
        stream.flush()
    output = Output(number, "w", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",  # a name in no terminal's letters is no reason to fail
        line_buffering=number == 2 or (stream is not None and stream.line_buffering),
        write_through=stream is not None and stream.write_through,
    )
    return output, text


def settled(code: Any, output: Output | None) -> int:
    """The code to leave with: a verdict that could not be printed is none."""
    left = 0 if code is None else int(code) if isinstance(code, int) else BUG
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if left not in (0, 1) or output is None or output.failure is None:
        return left
    if output.failure.errno == errno.EPIPE:
        return PIPE_CLOSED
    _tell(f"OutputError: the results could not be printed ({os.strerror(output.failure.errno or errno.EIO)})")
    if written:
        _tell(f"Written before that: {', '.join(written)}")
    return NOT_PRINTED
