"""Told to stop, at rest or in the middle of its work, the server ends: no process and no file is left."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import processes
import shoal
from examples import some
from serving import PATIENCE, user_at
from shoal.web.screens.publish import CHECKS

TABLE = "age,zip,disease\n" + "".join(
    f"{20 + i % 40},{35100 + i % 12},{['flu', 'cold', 'asthma'][i % 3]}\n" for i in range(240)
)
# The command, in which one function tells that it was called and then works without end.
HELD = """
import importlib, pathlib, sys
told, module, name = sys.argv[1:4]
def held(*_, **__):
    pathlib.Path(told).touch()
    while True:
        sum(range(1000))
if module:
    setattr(importlib.import_module(module), name, held)
from shoal.cli import app
app(sys.argv[4:])
"""


@contextmanager
def started(
    tmp_path: Path, module: str = "", name: str = "", *, temporary: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`shoal web` in a process group of its own, and its first address."""
    (tmp_path / "tables").mkdir(parents=True)
    temporary = temporary or tmp_path / "temporary"
    temporary.mkdir(exist_ok=True)
    (tmp_path / "tables" / "people.csv").write_text(TABLE)
    command = [sys.executable, "-c", HELD, str(tmp_path / "told"), module, name]
    command += ["web", "--no-browser", str(tmp_path / "tables")]
    environment = {
        **os.environ,
        "TMPDIR": str(temporary),
        "PYTHONPATH": str(Path(shoal.__file__).parents[1]),
    }
    process = processes.Forked(command, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stderr is not None
    try:
        address = re.findall(r"http://127\.0\.0\.1:\S+", process.stderr.readline())[0]
        yield process, address
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


def require_end(process: subprocess.Popen[str], number: signal.Signals, tmp_path: Path) -> None:
    """The signal ends the process as it should, and nothing of it is left."""
    process.send_signal(number)
    assert process.wait(PATIENCE) == 0
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    assert not list((tmp_path / "temporary").iterdir())
    assert [path.name for path in (tmp_path / "tables").iterdir()] == ["people.csv"]
    with pytest.raises(ProcessLookupError):  # nobody is left in its group
        os.killpg(process.pid, 0)


@pytest.mark.parametrize("number", some([signal.SIGTERM, signal.SIGINT], always=1))
def test_a_signal_stops_the_server_and_leaves_no_child(tmp_path: Path, number: signal.Signals) -> None:
    with started(tmp_path) as (process, _):
        assert [path.name.startswith("shoal-web-") for path in (tmp_path / "temporary").iterdir()] == [True]
        require_end(process, number, tmp_path)


def test_a_killed_server_leaves_an_upload_only_until_the_next_start(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    with started(tmp_path / "first", temporary=temporary) as (process, address):
        user = user_at(address)
        user.finished(user.upload("people.csv", TABLE.encode()))
        process.kill()
        process.wait()
    assert [path.read_text() for path in temporary.rglob("upload.csv")] == [TABLE]
    with started(tmp_path / "second", temporary=temporary) as (process, address):
        assert not list(temporary.rglob("upload.csv"))
        first = user_at(address)
        first.finished(first.upload("people.csv", TABLE.encode()))
        with started(tmp_path / "third", temporary=temporary):  # what a living server has stays
            assert len(list(temporary.rglob("upload.csv"))) == 1
            assert first.get("/").status == 200


SEARCH, WRITE = ("shoal.pipeline", "anonymize"), ("shoal.engines.formats.atomic_files", "publish")


@pytest.mark.parametrize(
    ("held", "number"),
    [
        (SEARCH, signal.SIGINT),
        pytest.param(WRITE, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(SEARCH, signal.SIGTERM, marks=pytest.mark.long),
        pytest.param(WRITE, signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_a_signal_in_the_middle_of_a_search_or_a_write_leaves_nothing(
    tmp_path: Path, held: tuple[str, str], number: signal.Signals
) -> None:
    """A release is written under a hidden name, and gets its own when it was verified: between the two it is told."""
    with started(tmp_path, *held) as (process, address):
        user = user_at(address)
        found = user.finished(user.post("/open", data="people.csv"))
        draft = re.findall(r"/d/(\d+)/", found.path)[0]
        found = user.post(f"/d/{draft}/run", action="purpose", purpose="tables")
        draft = re.findall(r"/d/(\d+)/", found.path)[0]
        found = user.post(f"/d/{draft}/run", action="start")
        if held is WRITE:
            run = re.findall(r"/runs/(\d+)/", user.finished(found).path)[0]
            found = user.post(f"/runs/{run}/publish", **{f"check-{name}": "on" for name in CHECKS})
        end = time.monotonic() + PATIENCE
        while not (tmp_path / "told").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        half = [path.name for path in (tmp_path / "temporary").rglob(".shoal-*.csv")]
        assert len(half) == (held is WRITE)
        assert 'id="job"' in user.get(found.path.removeprefix(user.room)).text
        require_end(process, number, tmp_path)
