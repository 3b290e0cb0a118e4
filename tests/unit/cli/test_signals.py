"""Being told to stop: at any moment, in any way, nothing is left half-written and nothing is torn apart."""

from __future__ import annotations

import gc
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

import pytest

import processes
from people import Place
from shoal.cli import exits, signals

# Runs the program, and once it comes to a function says so and stays there. How the signal fares there is up to it:
# the exception may pass, be turned into another one (as a query that is interrupted does), or be lost.
LINGER = """
import pkgutil, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may have been told to ignore it
stage, how = sys.argv.pop(1), sys.argv.pop(1)
from shoal.cli import commands as cli
if stage != "start":
    module, path = stage.split(":")
    outer, _, name = path.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{outer}" if outer else module)
    inner = getattr(owner, name)

    def linger(*arguments, **options):
        result = inner(*arguments, **options) if how == "after" else None
        print("here", flush=True)
        try:
            for _ in range(6000):  # one long sleep would miss a signal that comes just before it
                time.sleep(0.01)
        except KeyboardInterrupt:
            if how == "turned":
                raise RuntimeError("Query interrupted") from None
            if how != "lost":
                raise
        return inner(*arguments, **options)

    setattr(owner, name, linger)
else:
    program = cli.run_command
    cli.run_command = lambda: (print("here", flush=True), program())
cli.main()
"""
STAGES = [
    ("shoal.engines.local:LocalEngine.count", "before"),
    ("shoal.pipeline:recounted", "turned"),
    ("shoal.pipeline:recounted", "lost"),
    ("shoal.engines.formats.table_files:_write_csv", "after"),
    ("shoal.release.release:Release._verify", "turned"),
    ("shoal.engines.formats.atomic_files:publish", "before"),
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def stopped(place: Place, stage: str, how: str, number: signal.Signals, wait: float = 0.0) -> tuple[int, str, str]:
    arguments = [sys.executable, "-c", LINGER, stage, how, *place.anonymize("--force")]
    with processes.Forked(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        time.sleep(wait)
        process.send_signal(number)
        try:
            out, err = process.communicate(timeout=120)
        finally:
            process.kill()  # one that goes on must not be waited for
        return process.returncode, out, err


@pytest.mark.parametrize("i", range(len(STAGES)), ids=[f"{stage} {how}" for stage, how in STAGES])
def test_told_to_stop_it_leaves_everything_as_it_was(place: Place, i: int) -> None:
    if i % 2:
        place.output.write_text("mine", encoding="utf-8")
    before = {name: (place.folder / name).read_bytes() for name in place.names()}
    code, out, err = stopped(place, *STAGES[i], signal.SIGTERM if i % 2 else signal.SIGINT)
    assert (code, out) == (130, "")
    assert err.strip() == "interrupted; no partial file was left behind"
    assert {name: (place.folder / name).read_bytes() for name in place.names()} == before


def test_an_import_is_not_torn_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some extension modules abort the process when an exception comes while they are loaded.
    monkeypatch.setattr(signals, "received", [])
    monkeypatch.setattr(signals, "postponing", [])
    loaded = []

    def load() -> None:
        with signals.loading():
            signals.stop(signal.SIGTERM, None)
            loaded.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        load()
    assert loaded == ["all of it"]
    with pytest.raises(KeyboardInterrupt):
        signals.stop(signal.SIGTERM, None)


def test_what_a_command_has_loaded_is_not_searched_for_cycles() -> None:
    before = gc.get_freeze_count()
    with signals.loading():  # called from Python, all is as it was; what was frozen before may be gone
        pass
    assert gc.get_freeze_count() <= before
    assert gc.isenabled()
    gc.disable()  # as the program begins
    try:
        with signals.loading():
            pass
        assert gc.isenabled()
        frozen = gc.get_freeze_count()
        later: list[object] = []
        with signals.loading():  # what is made later, such as a connection, is found
            pass
        assert before < frozen
        assert gc.get_freeze_count() <= frozen
        assert any(found is later for found in gc.get_objects())  # which leaves out what is frozen
    finally:
        gc.unfreeze()
        gc.enable()


LATE = """
import sys, time
from shoal.cli import commands as cli
from shoal.cli import signals

def program():
    signals.postponing.clear()
    try:
        import late
        time.sleep(60)
    except KeyboardInterrupt:  # at once or a little later: only what was loaded by then tells anything
        print("stopped after", getattr(sys.modules.get("late"), "whole", "half of it"))

cli.run_command = program
cli.main()
"""


def test_nor_is_one_that_a_library_begins_on_its_own(tmp_path: Path) -> None:
    told = "import os, signal, time\nos.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(0.2)\nwhole = 'all of it'\n"
    (tmp_path / "late.py").write_text(told, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run([sys.executable, "-c", LATE], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout == "stopped after all of it\n"


LOST = """
import os, signal, time
from shoal.cli import commands as cli
from shoal.cli import signals

class Hidden:
    def __del__(self):  # no exception passes from here
        os.kill(os.getpid(), signal.SIGTERM)

def program():
    signals.postponing.clear()
    try:
        Hidden()
        time.sleep(60)
        print("slept on")
    except KeyboardInterrupt:
        print("stopped")

cli.run_command = program
cli.main()
"""


def test_a_signal_that_comes_where_no_exception_passes_is_heeded_later() -> None:
    done = subprocess.run([sys.executable, "-c", LOST], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("stopped\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_told_to_stop_before_it_has_begun(place: Place, number: signal.Signals) -> None:
    code, out, err = stopped(place, "start", "", number)
    assert (code, out, err) == (130, "", "interrupted; no partial file was left behind\n")
    assert place.names() == place.inputs


@pytest.mark.parametrize(
    ("number", "wait"), [(signal.SIGINT, 1.2), pytest.param(signal.SIGTERM, 2.4, marks=pytest.mark.long)]
)
def test_told_to_stop_in_the_middle_of_real_work(place: Place, number: signal.Signals, wait: float) -> None:
    draw = random.Random(3)
    names = [f"q{i}" for i in range(7)]
    rows = [",".join(f"{draw.randrange(10**6):06}" for _ in names) for _ in range(20_000)]
    place.data.write_text(",".join(names) + "\n" + "\n".join(rows) + "\n", encoding="utf-8")
    columns = "\n".join(f'{name} = {{ role = "quasi", hierarchy = {{ mask = "right" }} }}' for name in names)
    place.policy.write_text(
        f"[columns]\n{columns}\n[[require]]\nmodel = 'k-anonymity'\nk = 2\n[release]\nalgorithm = 'exhaustive'\n",
        encoding="utf-8",
    )
    code, out, err = stopped(place, "start", "", number, wait)
    assert (code, out) == (130, "")
    assert err.strip().splitlines()[-1] == "interrupted; no partial file was left behind"
    assert "Traceback" not in err
    assert place.names() == place.inputs


NOHUP = """
import os, signal
from shoal.cli import commands as cli
signal.signal(signal.SIGHUP, signal.SIG_IGN)
program = cli.run_command
cli.run_command = lambda: (os.kill(os.getpid(), signal.SIGHUP), program())
cli.main()
"""


def test_a_terminal_that_is_closed_is_ignored_where_that_was_asked_for(place: Place) -> None:
    arguments = [sys.executable, "-c", NOHUP, *place.anonymize("-q")]
    assert processes.run(arguments, capture_output=True, check=True).stderr == b""
    assert place.output.exists()


def test_a_stream_is_not_left_between_writing_and_saying_so(tmp_path: Path) -> None:
    """The buffer before it would write the same again when the program ends."""
    moments = []

    def watch(frame: FrameType, _event: str, _argument: object) -> None:
        if frame.f_code is exits.Output.write.__code__:
            moments.append(signals._at_a_bad_moment(frame))

    with exits.Output(tmp_path / "out", "w") as stream:
        sys.setprofile(watch)
        try:
            stream.write(b"here")
        finally:
            sys.setprofile(None)
    assert len(moments) >= 2
    assert all(moments)
    assert not signals._at_a_bad_moment(sys._getframe())
