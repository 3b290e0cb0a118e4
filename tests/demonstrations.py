"""The demo from the command line, run once for all tests that look at what it says and leaves."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock


@dataclass(frozen=True)
class Demonstration:
    """A run of ``shoal demo``: its files, which no test may change, and what it printed."""

    folder: Path
    printed: str
    errors: str


def demonstrated_in(place: Path) -> Demonstration:
    """The demo that has run in this folder, or runs now; another worker that asks meanwhile waits for it."""
    with FileLock(f"{place}.lock"):
        if not (place / "done").exists():
            place.mkdir(exist_ok=True)
            command = [sys.executable, "-c", "from shoal.cli.commands import main; main()", "demo"]
            environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"}
            done = subprocess.run(command, cwd=place, capture_output=True, check=True, env=environment)
            (place / "printed.txt").write_bytes(done.stdout)
            (place / "errors.txt").write_bytes(done.stderr)
            (place / "done").touch()
    printed, errors = ((place / name).read_text(encoding="utf-8") for name in ("printed.txt", "errors.txt"))
    return Demonstration(place / "shoal-demo", printed, errors)
