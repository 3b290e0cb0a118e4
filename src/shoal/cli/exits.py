"""How the program ends: exit codes, error messages, and output that cannot be written.

Exit codes 0 and 1 are verdicts, so only a command that reached a verdict and could report it returns them. Messages of
exceptions from other packages may quote the data: only their type and the place in shoal are reported.
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

BAD_INPUT = 2  # also what cannot be determined
BUG = 70  # EX_SOFTWARE
NOT_PRINTED = 74  # EX_IOERR
INTERRUPTED = 130  # 128 + SIGINT
PIPE_CLOSED = 141  # 128 + SIGPIPE, as a shell reports a program whose reader went away
OUTCOMES = {"holds": 0, "fails": 1, "unknown": BAD_INPUT}  # verdicts

debug: list[None] = []  # set on request; SHOAL_DEBUG=1 sets it too
written: list[str] = []  # finished files, whatever happens next

# Errors of a machine that runs out of some resource, which are not bugs.
_SHORT_OF = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.EFBIG}


_OUT_OF_MEMORY = (
    "Cannot allocate memory",
    "failed to map segment",
    "can't start new thread",
    "error return without exception set",  # Python's own, where it had no memory left for the exception
)


# ── failures ────────────────────────────────────────────────────────────────────────────────────────────────


def failed(error: BaseException) -> int:
    """Report an exception on standard error, and the files written before it; return the exit code."""
    if debug or os.environ.get("SHOAL_DEBUG", "0") not in ("", "0"):
        _print_message("".join(traceback.format_exception(error)).rstrip())
    code, message = _code_and_message(error)
    _print_message(message)
    if written:
        _print_message(f"Written before that: {', '.join(written)}")
    return code


def last_resort(_: object, error: BaseException, __: object) -> None:
    """Report an exception that nothing caught, as Python may lose one where memory is short; its text may be data."""
    failed(error)


def _code_and_message(error: BaseException) -> tuple[int, str]:
    kind = type(error).__name__
    # An interrupted query or compiler may raise an error of its own.
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
        return BAD_INPUT, f"{kind}: {os.strerror(error.errno)} (at {code_location(error)})"
    bug = f"InternalError: {kind} at {code_location(error)}, a bug in shoal {__version__}; this is not a verdict"
    return BUG, f"{bug}; --debug prints the traceback, which may quote the data"


def _is_memory(error: BaseException) -> bool:
    """Return whether memory ran out; DuckDB and the loader of shared libraries have their own errors for that."""
    return any(
        isinstance(linked, MemoryError)
        or type(linked).__name__ == "OutOfMemoryException"
        or (isinstance(linked, OSError) and linked.errno == errno.ENOMEM)
        or any(phrase in str(linked) for phrase in _OUT_OF_MEMORY)
        for linked in _chain(error)
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def code_location(error: BaseException) -> str:
    """Return the innermost line of shoal that an exception passed through."""
    innermost = "shoal"
    step = error.__traceback__
    while step is not None:
        module = str(step.tb_frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] == "shoal":
            innermost = f"{module}:{step.tb_lineno}"
        step = step.tb_next
    return innermost


def _print_message(message: str) -> None:
    if sys.stderr is not None:  # print would use standard output
        print(message, file=sys.stderr)


# ── output ──────────────────────────────────────────────────────────────────────────────────────────────────


class Output(io.FileIO):
    """A stream that records a failure instead of raising it: libraries would exit at once, with code 1."""

    failure: OSError | None = None

    def write(self, data: Any) -> int:
        """Return the number of written bytes; after a failure, all output is discarded."""
        try:
            while self.failure is None:
                if (n := super().write(data)) is not None:
                    return n
                select.select([], [self], [])  # a full non-blocking pipe
        except OSError as error:
            self.failure = error
        return memoryview(data).nbytes


signals.whole.add(Output.write.__code__)  # if interrupted after writing, it would be asked to write the same again


def guard_exit() -> None:
    """Prevent libraries from ending the process with their own code: OpenBLAS exits with 1 if memory runs out.

    shoal exits with ``os._exit``, which calls no handlers; a library that calls C's ``exit`` triggers this handler, and
    so a code that is not a verdict. If the C library cannot be reached, nothing is done.
    """
    with contextlib.suppress(Exception):
        import ctypes

        library = ctypes.CDLL(None)
        leave = ctypes.cast(library._exit, ctypes.c_void_p)
        register = library.__cxa_atexit
        register.argtypes = [ctypes.c_void_p] * 3
        register(leave, BUG, None)


def guard() -> Output | None:
    """Keep both streams from raising, and replace closed ones; return standard output, which records failures.

    The next file to be opened would get the number of a closed stream, and receive the printed output.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # Standard output is opened for reading, so that writing fails and is noticed.
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
            return None, stream  # a Windows console, or a substitute in tests
        stream.flush()
    output = Output(number, "w", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(output),
        encoding="utf-8" if stream is None else stream.encoding,
        errors="backslashreplace",  # a name that the terminal cannot encode is no reason to fail
        line_buffering=number == 2 or (stream is not None and stream.line_buffering),
        write_through=stream is not None and stream.write_through,
    )
    return output, text


def final_exit_code(code: Any, output: Output | None) -> int:
    """Return the exit code: a verdict that could not be printed does not count."""
    left = 0 if code is None else int(code) if isinstance(code, int) else BUG
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    if left not in (0, 1) or output is None or output.failure is None:
        return left
    if output.failure.errno == errno.EPIPE:
        return PIPE_CLOSED
    _print_message(f"OutputError: the results could not be printed ({os.strerror(output.failure.errno or errno.EIO)})")
    if written:
        _print_message(f"Written before that: {', '.join(written)}")
    return NOT_PRINTED
