"""The exit code is a verdict only where a command came to one, and could say so."""

from __future__ import annotations

import errno
import io
import os
import re
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from typer.testing import CliRunner

import processes
from people import SECRET, Place
from shoal import errors
from shoal.cli import commands, exits
from shoal.engines.formats import atomic_files, table_files
from shoal.judge import recount

MAIN = [sys.executable, "-m", "shoal"]
FULL = Path("/dev/full")


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with a release, its certificate and its recoding."""
    place = Place(tmp_path_factory.mktemp("finished"))
    beside = ["--certificate", str(place.folder / "c.json"), "--recoding", str(place.folder / "r.json")]
    done = CliRunner().invoke(commands.app, place.anonymize(*beside))
    assert done.exit_code == 0, done.output
    return place


# What each command is given, and its verdict.
COMMANDS: dict[str, tuple[list[str], int]] = {
    "help": (["--help"], 0),
    "version": (["--version"], 0),
    "demo": (["demo", "demo"], 0),
    "inspect": (["inspect", "people.csv"], 0),
    "anonymize": (["anonymize", "people.csv", "-p", "policy.toml", "-o", "again.csv", "--force"], 0),
    "frontier": (["anonymize", "people.csv", "-p", "policy.toml", "--frontier", "k=2", "--json"], 0),
    "apply": (["apply", "r.json", "people.csv", "-o", "applied.csv", "--force"], 0),
    "check holds": (["check", "release.csv", "-p", "policy.toml"], 0),
    "check fails": (["check", "people.csv", "-p", "policy.toml"], 1),
    "attack": (["attack", "release.csv", "-p", "policy.toml", "--original", "people.csv"], 0),
    "explore": (["explore", "people.csv", "-p", "policy.toml", "--sweep", "k=2"], 0),
    "verify": (["verify", "c.json", "release.csv"], 0),
    "verify fails": (["verify", "c.json", "people.csv"], 1),
    "compare": (["compare", "people.csv", "-p", "policy.toml", "--algorithms", "optimal"], 0),
}


def ended(place: Place, name: str, *more: str, **streams: Any) -> tuple[int, str]:
    started = subprocess.run if "preexec_fn" in streams else processes.run
    done = started(
        [*MAIN, *COMMANDS[name][0], *more],
        cwd=place.folder,
        timeout=processes.PATIENCE,
        **{"stderr": subprocess.PIPE, **streams},
    )
    return done.returncode, (done.stderr or b"").decode()


# Every command prints in one place: a text, a verdict and a release stand for all; the others are a long matrix.
PRINTING = ("version", "check fails", "anonymize")


@pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full on this system")
@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in PRINTING else [pytest.mark.long]) for n in COMMANDS])
def test_results_that_cannot_be_printed_are_no_verdict(finished: Place, name: str) -> None:
    with FULL.open("w") as full:
        code, told = ended(finished, name, stdout=full)
    assert code == exits.NOT_PRINTED == 74
    assert told.startswith("OutputError: the results could not be printed (No space left on device)\n")
    of_demo = "hospital.csv voters.csv policy.toml analysis.toml release.csv receipt.json certificate.json report.html"
    written = {
        "anonymize": "again.csv",
        "apply": "applied.csv",
        "demo": ", ".join(f"demo/{each}" for each in (*of_demo.split(), "analysis.csv")),
    }.get(name)
    assert told.splitlines()[1:] == ([f"Written before that: {written}"] if written else [])


@pytest.mark.skipif(os.name == "nt", reason="pipes break otherwise")
@pytest.mark.parametrize(
    "name",
    [
        "check fails",
        "anonymize",
        *(pytest.param(n, marks=pytest.mark.long) for n in ("version", "check holds", "verify")),
    ],
)
def test_a_reader_that_has_gone_away_ends_it_as_a_broken_pipe_does(finished: Place, name: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended(finished, name, stdout=writing) == (exits.PIPE_CLOSED, "")
    finally:
        os.close(writing)


def closing(*numbers: int) -> str:
    return "import os\n" + "\n".join(f"os.close({number})" for number in numbers)


@pytest.mark.skipif(os.name == "nt", reason="needs a child that closes its streams")
@pytest.mark.parametrize("name", [pytest.param("check holds", marks=pytest.mark.long), "check fails"])
def test_streams_that_are_closed(finished: Place, name: str) -> None:
    code, told = ended(finished, name, before=closing(0, 1))
    assert (code, told) == (74, "OutputError: the results could not be printed (Bad file descriptor)\n")
    # Where the results are told, or none were to be, it is the verdict.
    verdict = COMMANDS[name][1]
    assert ended(finished, name, stdout=subprocess.DEVNULL, stderr=None, before=closing(2))[0] == verdict
    assert ended(finished, name, "-q", before=closing(0, 1)) == (verdict, "")


@pytest.mark.skipif(os.name == "nt", reason="needs a child that closes its streams")
@pytest.mark.parametrize("streams", [(2,), (1, 2)])
def test_an_error_that_cannot_be_told_keeps_its_code(place: Place, streams: tuple[int, ...]) -> None:
    place.policy.write_text("nonsense", encoding="utf-8")
    open_output = {} if 1 in streams else {"stdout": subprocess.PIPE}
    done = processes.run([*MAIN, *place.anonymize()], before=closing(*streams), **open_output)
    assert (done.returncode, done.stdout or b"") == (2, b"")  # nor does the message go to standard output
    assert place.names() == place.inputs


def test_a_closed_output_does_not_end_up_in_the_release(place: Place) -> None:
    # The first file that is opened gets the lowest number that is free.
    processes.run([*MAIN, *place.anonymize()], before=closing(0, 1, 2))
    lines = place.output.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "age,zip,disease,note"
    assert len(lines) == 5


@pytest.mark.skipif(os.name == "nt", reason="pipes of Windows always wait")
def test_a_pipe_that_does_not_wait_gets_everything() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    printed = b"line\n" * 2**18  # many times what a pipe holds
    read: list[bytes] = []

    def reader() -> None:
        with os.fdopen(reading, "rb") as pipe:
            read.append(pipe.read())

    thread = threading.Thread(target=reader)
    with io.BufferedWriter(exits.Output(writing, "w")) as stream:
        thread.start()
        stream.write(printed)
    thread.join()
    assert read == [printed]


# ── what is not foreseen ────────────────────────────────────────────────────────────────────────────────────


def crash(monkeypatch: pytest.MonkeyPatch, place: Place, error: BaseException, *more: str) -> tuple[int, str]:
    def raised(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("shoal.verify.check.engine_of", raised)
    done = CliRunner().invoke(commands.app, place.check(place.data, *more))
    assert done.stdout == ""
    return done.exit_code, done.stderr


class Panic(BaseException):
    """As libraries in Rust raise: no Exception."""


@pytest.mark.parametrize("error", [KeyError(SECRET), RecursionError(SECRET), Panic(SECRET), SystemError(SECRET)])
def test_a_bug_is_no_verdict_and_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, place: Place, error: BaseException
) -> None:
    code, told = crash(monkeypatch, place, error)
    assert code == 70
    place = r"at shoal\.verify\.check:\d+"
    assert re.fullmatch(rf"InternalError: {type(error).__name__} {place}, a bug in shoal .*\n", told)
    assert SECRET not in told


@pytest.mark.parametrize("where", ["before", "behind", "environment"])
def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, place: Place, where: str) -> None:
    monkeypatch.setattr(exits, "debug", [])
    if where == "environment":
        monkeypatch.setenv("SHOAL_DEBUG", "1")
        code, told = crash(monkeypatch, place, KeyError("x"))
    elif where == "behind":
        code, told = crash(monkeypatch, place, KeyError("x"), "--debug")
    else:
        monkeypatch.setattr(place, "check", lambda data: ["--debug", *Place.check(place, data)])
        code, told = crash(monkeypatch, place, KeyError("x"))
    assert code == 70
    assert told.startswith("Traceback (most recent call last):\n")
    assert "\nKeyError: 'x'\nInternalError: KeyError at " in told


def test_debug_shows_where_a_foreseen_error_came_from(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(exits, "debug", [])
    code, told = crash(monkeypatch, place, errors.DataError("no"), "--debug")
    assert (code, told.splitlines()[0]) == (2, "Traceback (most recent call last):")
    assert told.endswith("\nDataError: no\n")


def test_debug_behind_two_dashes_is_a_file(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    monkeypatch.setattr(exits, "debug", [])
    done = CliRunner().invoke(commands.app, ["check", "-p", str(place.policy), "--", "--debug"])
    assert (done.exit_code, exits.debug) == (2, [])
    assert "--debug does not exist" in done.stderr


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(SECRET),
        duckdb.OutOfMemoryException(SECRET),
        OSError(errno.ENOMEM, SECRET),
        ImportError("x.so: failed to map segment from shared object: Cannot allocate memory"),
        RuntimeError("can't start new thread"),
        SystemError("error return without exception set"),
    ],
)
def test_memory_that_does_not_suffice_is_told(
    monkeypatch: pytest.MonkeyPatch, place: Place, error: BaseException
) -> None:
    code, told = crash(monkeypatch, place, error)
    assert code == 2
    assert told.startswith("MemoryError: not enough memory")
    assert SECRET not in told


def test_a_machine_that_is_short_of_something_is_no_bug(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    code, told = crash(monkeypatch, place, OSError(errno.ENOSPC, SECRET, SECRET))
    assert code == 2
    assert re.fullmatch(r"OSError: No space left on device \(at shoal\.verify\.check:\d+\)\n", told)


@pytest.mark.parametrize("module", ["shoal", "shoal.cli.commands"])
def test_it_runs_as_a_module(module: str) -> None:
    done = subprocess.run([sys.executable, "-m", module, "nothing"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "No such command" in done.stderr


# ── machines with too little of something ───────────────────────────────────────────────────────────────────

EXITS = """
import ctypes
from shoal.cli import commands
commands.run_command = lambda: ctypes.CDLL(None).exit(1)
commands.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_a_library_that_exits_on_its_own_gives_no_verdict() -> None:
    # OpenBLAS does, with 1, where there is no memory for its buffers.
    assert subprocess.run([sys.executable, "-c", EXITS], check=False).returncode == 70


LOSES = """
import sys
from shoal.cli import commands, signals

def lose(code):
    raise SystemError("a value of the data")

signals.exit_at_once = lose
sys.argv = ["shoal", "--version"]
commands.main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks the C library of Linux")
def test_an_exception_that_nothing_caught_shows_no_value_and_gives_no_verdict() -> None:
    done = subprocess.run([sys.executable, "-c", LOSES], check=False, capture_output=True, text=True)
    assert done.returncode == 70
    assert done.stderr.startswith("InternalError: SystemError at shoal.cli.commands:")
    assert "Traceback" not in done.stderr
    assert "a value" not in done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are heeded on Linux")
@pytest.mark.parametrize("megabytes", [300, 400])
def test_a_limit_of_memory_gives_no_verdict(finished: Place, megabytes: int) -> None:
    limit = megabytes * 2**20

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        # With no memory at all, CPython may look for an exception's handler for ever: that needs memory, too.
        resource.setrlimit(resource.RLIMIT_CPU, (30, 30))

    code, told = ended(finished, "check holds", stdout=subprocess.DEVNULL, preexec_fn=limited)
    assert code not in (0, 1)
    assert "Traceback" not in told


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps a folder that somebody is in")
@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_a_working_folder_that_was_deleted(finished: Place, tmp_path: Path, engine: str) -> None:
    gone = tmp_path / "gone"
    script = f"import os; os.mkdir({str(gone)!r}); os.chdir({str(gone)!r}); os.rmdir({str(gone)!r})\n"
    script += "from shoal.cli.commands import main; main()"
    base = ["anonymize", str(finished.data), "-p", str(finished.policy), "--engine", engine, "-q"]
    done = processes.run([sys.executable, "-c", script, *base, "-o", "release.csv"], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("OutputError: release.csv cannot be written: ")
    target = tmp_path / "release.csv"  # what needs no working folder goes on
    done = processes.run([sys.executable, "-c", script, *base, "-o", str(target)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert target.exists()


@pytest.mark.parametrize("option", ["--certificate", "--report", "--recoding"])
def test_where_a_later_file_fails_the_message_says_what_was_written(
    place: Place, monkeypatch: pytest.MonkeyPatch, option: str
) -> None:
    target = place.folder / "beside.x"
    publish = atomic_files.publish

    def read_only(hidden: Path, path: Path, *more: Any, **named: Any) -> None:
        if path == target:
            raise OSError(errno.EROFS, "Read-only file system")
        publish(hidden, path, *more, **named)

    monkeypatch.setattr(atomic_files, "publish", read_only)
    done = CliRunner().invoke(commands.app, place.anonymize(option, target))
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        f"OutputError: {target} cannot be written: Read-only file system",
        f"Written before that: {place.output}",
    ]
    assert place.names() == sorted([*place.inputs, place.output.name])


def test_a_demo_that_fails_says_what_it_has_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = atomic_files.publish

    def read_only(hidden: Path, path: Path, *more: Any, **named: Any) -> None:
        if path.name == "certificate.json":
            raise OSError(errno.EROFS, "Read-only file system")
        publish(hidden, path, *more, **named)

    monkeypatch.setattr(atomic_files, "publish", read_only)
    folder = tmp_path / "demo"
    done = CliRunner().invoke(commands.app, ["demo", str(folder)])
    assert done.exit_code == 2
    names = ("hospital.csv", "voters.csv", "policy.toml", "analysis.toml", "release.csv", "receipt.json")
    written = [folder / name for name in names]
    assert done.stderr.splitlines()[-1] == f"Written before that: {', '.join(map(str, written))}"
    assert sorted(folder.iterdir()) == sorted(written)


def test_a_folder_that_cannot_be_written_is_told_before_the_work(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.data.unlink()
    # As on a read-only disk, for whomever runs this.
    monkeypatch.setattr(table_files.os, "access", lambda _, mode, **__: not mode & os.W_OK)
    done = CliRunner().invoke(commands.app, place.anonymize("--certificate", place.folder / "c.json"))
    assert done.exit_code == 2
    assert "is not writable" in done.stderr


def test_a_count_that_memory_does_not_suffice_for_is_no_verdict(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    class Connection:
        def sql(self, _: str) -> None:
            raise duckdb.OutOfMemoryException(SECRET)

    with pytest.raises(MemoryError):
        recount._grouped(Connection(), "x", ["a"], pa.schema([]), None)
    monkeypatch.setattr(Connection, "sql", lambda *_: (_ for _ in ()).throw(duckdb.IOException(SECRET)))
    with pytest.raises(errors.UnreadableError) as raised:
        recount._grouped(Connection(), "x", ["a"], pa.schema([]), None)
    assert raised.value.exit_code == 2
