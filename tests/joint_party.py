"""Parties of joint computations, as processes: ``python joint_party.py`` reads a run per line and prints its results.

A line of the input is JSON: the folder with the tables and keys, and what each party does, null for one that stays
away. This process imports everything once and forks a process for each party, because importing takes longer than
most runs. The line that is printed tells for each party what it found, or how its process ended.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import shoal
from shoal import smc
from shoal.cli.commands import app
from shoal.engines.temporary import LOCK
from shoal.results.smc.links import load_mpyc

LIMIT = 100  # seconds for a run; whoever is not done then is ended and told as "hung"

# Where a party can be made to fail: the function of shoal.results.smc.share that it does not come back from.
STAGES = {"connected": "_agreed", "signed": "_computed", "shared": "_open"}


def taken_part(number: int, asked: dict[str, Any]) -> dict[str, Any]:
    """Take part once and return the result or the error."""
    if "command" in asked:
        shown = CliRunner().invoke(app, asked["command"], catch_exceptions=False)
        return {"exit": shown.exit_code, "shown": shown.output}
    time.sleep(asked.pop("late", 0))
    for signalled, stage in ((signal.SIGKILL, asked.pop("dies", None)), (signal.SIGSTOP, asked.pop("stops", None))):
        if stage is not None:
            setattr(
                importlib.import_module("shoal.results.smc.share"),
                STAGES[stage],
                lambda *_, chosen=signalled: os.kill(os.getpid(), chosen),
            )
    run = {"timeout": 60, "key": f"party{number}.key", "parties": "parties.toml", **asked.pop("run", {})}
    tuples = {name: tuple(map(tuple, value)) for name, value in asked.items() if name in ("quantile", "regression")}
    lists = {name: tuple(value) for name, value in asked.items() if isinstance(value, list) and name not in tuples}
    try:
        plan = smc.SharePlan(**(asked | tuples | lists))
        told = smc.share(f"{number}.csv", plan, party=number, **run)
    except shoal.ShoalError as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return told.as_dict()


def party(number: int, asked: dict[str, Any], target: Path) -> None:
    """Be one party, in its own process, with a folder of its own for temporary files."""
    said = io.StringIO()
    temporary = Path(tempfile.mkdtemp(dir=target.parent))
    tempfile.tempdir = str(temporary)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        told = taken_part(number, asked)
    gc.collect()
    told["said"] = said.getvalue()
    told["left"] = sorted({type(x).__name__ for x in gc.get_objects()} & {"Runtime", "Link", "Links", "LocalRows"})
    # Of DuckDB's folder there is only the lock, which is empty.
    told["files"] = sorted(path.name for path in temporary.rglob("*") if path.is_file() and path.name != LOCK)
    target.write_text(json.dumps(told), encoding="utf-8")


def run(folder: str, parties: list[dict[str, Any] | None]) -> list[Any]:
    """Fork the parties, wait for all, and return what each told."""
    os.chdir(folder)
    targets = [Path(folder, f"{number}.told") for number in range(1, len(parties) + 1)]
    children: dict[int, int] = {}
    for number, asked in enumerate(parties, 1):
        targets[number - 1].unlink(missing_ok=True)
        if asked is not None and not (child := os.fork()):
            try:
                party(number, asked, targets[number - 1])
            finally:
                sys.stderr.flush()
                os._exit(0)
        if asked is not None:
            children[child] = number
    ended: dict[int, str] = {}
    # A party that stopped itself ends with the run.
    stopping = {number for number, asked in enumerate(parties, 1) if asked is not None and "stops" in asked}
    end = time.monotonic() + LIMIT
    while {*children.values()} - {*ended} - stopping and time.monotonic() < end:
        for child, number in children.items():
            if number not in ended and os.waitpid(child, os.WNOHANG)[0]:
                ended[number] = "ended"
        time.sleep(0.01)
    for child, number in children.items():
        if number not in ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            ended[number] = "stopped" if number in stopping else "hung"
    return [
        json.loads(target.read_text(encoding="utf-8")) if target.exists() else {"ended": ended.get(number, "away")}
        for number, target in enumerate(targets, 1)
    ]


def main() -> None:
    """Serve runs until the input ends."""
    load_mpyc()
    for name in ("ibis.backends.duckdb.converter", "cryptography.x509", "cryptography.hazmat.primitives.serialization"):
        importlib.import_module(name)
    gc.freeze()
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(asked["folder"], asked["parties"])), flush=True)


if __name__ == "__main__":
    main()
