"""Processes that are forked from one that has loaded the package: each is a second of work less than a new Python.

They have their own streams, folder, environment, signals and exit code, as those of ``subprocess``. What Python itself
reads when it starts (the seed of its hashes, the encoding of its streams) and how long imports take is not tested so.
"""

from __future__ import annotations

import atexit
import contextlib
import inspect
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PATIENCE = 600.0  # seconds: longer than any machine takes
LOADED = (
    "hypothesis pytest "
    "shoal.alternatives.compare shoal.alternatives.frontier shoal.attacks.run shoal.cli.commands shoal.demo.run "
    "shoal.engines.connect shoal.judge.judge shoal.pipeline shoal.inspection.inspect shoal.release.replay "
    "shoal.report.html shoal.search.local.local shoal.utility.bundle shoal.verify.certified shoal.web.server"
)


class Forked(subprocess.Popen[Any]):
    """Like ``subprocess.Popen`` for ``[sys.executable, "-c" or "-m", …]``; ``before`` is run instead of a function."""

    def __init__(self, args: Sequence[str], *, before: str = "", **given: Any) -> None:
        self._before = before
        super().__init__(args, **given)

    def _execute_child(self, args: Any, *given: Any) -> None:
        asked = inspect.signature(subprocess.Popen._execute_child).bind(self, args, *given).arguments  # type: ignore[attr-defined]
        ends = [asked[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        streams = [number if end < 0 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        status, told = os.pipe()
        request = {
            "args": [str(each) for each in args[1:]],
            "cwd": str(Path.cwd() if asked["cwd"] is None else asked["cwd"]),
            "env": dict(os.environ if asked["env"] is None else asked["env"]),
            "before": self._before,
            "alone": asked["start_new_session"],
        }
        _ask(json.dumps(request).encode(), [*streams, told])
        os.close(told)
        self._status = status
        self._said = b""
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]
        while b"\n" not in self._said:
            self._hear(PATIENCE)
        self.pid = int(self._said.partition(b"\n")[0])
        self._child_created = True

    def _hear(self, seconds: float) -> bool:
        """Read what the watcher of the process said; whether it said anything."""
        if not select.select([self._status], [], [], seconds)[0]:
            return False
        piece = os.read(self._status, 100)
        assert piece, "the process that forks has ended"
        self._said += piece
        return True

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None:
            pid, status = self._try_wait(os.WNOHANG)
            if pid:
                self._handle_exitstatus(status)  # type: ignore[attr-defined]
        return self.returncode

    def _try_wait(self, flags: int) -> tuple[int, int]:
        end = time.monotonic() + (0 if flags & os.WNOHANG else PATIENCE)
        while self._said.count(b"\n") < 2:
            if not self._hear(max(0.0, end - time.monotonic())):
                return 0, 0
        os.close(self._status)
        return self.pid, int(self._said.split(b"\n")[1])


def run(args: Sequence[str], *, check: bool = False, timeout: float = PATIENCE, **given: Any) -> Any:
    """Like ``subprocess.run``."""
    if given.pop("capture_output", False):
        given |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(args, **given) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        finally:
            process.kill()
        if check and process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args, out, err)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


# ── the process that forks ──────────────────────────────────────────────────────────────────────────────────

_server: list[socket.socket] = []


def _ask(request: bytes, streams: list[int]) -> None:
    if not _server:
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"}
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment
        )
        theirs.close()
        _server.append(ours)

        @atexit.register
        def end() -> None:
            ours.close()
            process.wait()

    socket.send_fds(_server[0], [len(request).to_bytes(8, "big")], streams)
    _server[0].sendall(request)


def _serve(number: int) -> None:
    """Fork a process for each request, and one that waits for it; only in such a process does it return."""
    for name in LOADED.split():
        with contextlib.suppress(ModuleNotFoundError):  # of an extra that is not installed
            __import__(name)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the tests, and so this
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait
    with socket.socket(fileno=number) as asked:
        while True:
            head, streams, _, _ = socket.recv_fds(asked, 8, 4)
            if not head:
                sys.exit()
            request = b""
            while len(request) < int.from_bytes(head, "big"):
                request += asked.recv(2**16)
            if not os.fork():
                asked.close()
                return _watch(json.loads(request), streams)
            for stream in streams:
                os.close(stream)


def _watch(request: dict[str, Any], streams: list[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *own, told = streams
    child = os.fork()
    if child:
        for stream in (0, 1, *own):  # so that those who read what it prints see its end
            with contextlib.suppress(OSError):
                os.close(stream)
        os.write(told, f"{child}\n".encode())
        os.write(told, f"{os.waitpid(child, 0)[1]}\n".encode())
        os._exit(0)
    os.close(told)
    if request["alone"]:
        os.setsid()
    for number, stream in enumerate(own):
        os.dup2(stream, number)
    for stream in own:
        os.close(stream)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    signal.signal(signal.SIGINT, signal.default_int_handler)
    exec(request["before"], {})
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        setattr(sys, name, _stream(number))
    _asked.append(request["args"])


_asked: list[list[str]] = []


def _stream(number: int) -> io.TextIOWrapper | None:
    """As Python opens its streams; none where one is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    raw = io.FileIO(number, "w" if number else "r", closefd=False)
    buffer = io.BufferedWriter(raw) if number else io.BufferedReader(raw)
    encoding, _, errors = os.environ.get("PYTHONIOENCODING", "utf-8").partition(":")
    errors = errors or ("backslashreplace" if number == 2 else "strict")
    return io.TextIOWrapper(buffer, encoding, errors, line_buffering=number == 2 or os.isatty(number))


def _main(kind: str, what: str, *arguments: str) -> None:
    """What Python does with -c and -m."""
    if kind == "-m":
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
        return
    sys.argv = ["-c", *arguments]
    sys.modules["__main__"] = main = types.ModuleType("__main__")
    exec(compile(what, "<string>", "exec"), main.__dict__)


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
    _main(*_asked[0])
