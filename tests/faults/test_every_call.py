"""A full disk or a kill at any change of a file: what would leave half a release or lose a ledger fails here."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from examples import THOROUGH
from faults.trials import COMMANDS

HERE = Path(__file__).parent
N_TRIALS = 1_000 if THOROUGH else 3  # of each kind: 1,000 is every call
PATIENCE = 600


@pytest.fixture(scope="session")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, HERE / "shim.c", "-ldl"], check=True)
    return library


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_files_are_whole_or_as_before_whatever_call_fails(name: str, shim: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "trials.py", shim, tmp_path / name, name, str(N_TRIALS)],
        env={"LD_PRELOAD": str(shim), "PATH": "/usr/bin:/bin", "HOME": str(Path.home())},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)
    assert {kind for _, kind, _ in trials} == {"fail", "kill", "memory"}
    assert [trial for trial in trials if trial[2]] == []
