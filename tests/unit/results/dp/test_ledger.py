"""The ledger: never overspent, by several processes at once or after a kill."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.results.dp.budget import Budget, BudgetError
from shoal.results.dp.ledger import Ledger

SPAWN = multiprocessing.get_context("spawn")


def spender(path: str, queue: Any) -> None:
    """Charge as often as it goes."""
    done = 0
    for _ in range(20):
        try:
            Ledger(path, "epsilon=1").charge(Budget.of("epsilon=0.03"), ["count"], unit="record")
            done += 1
        except BudgetError:
            break
    queue.put(done)


def killed(path: str) -> None:
    """Answer a query, and die when the noise is to be drawn."""
    from shoal.results.dp.noise import Noise

    Noise.draw = lambda self, values: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,method-assign,return-value]
    shoal.query(pa.table({"x": [1, 2]}), budget="epsilon=0.4", ledger=Ledger(path, "epsilon=1"), count=True)


def test_processes_at_once_never_spend_more_than_the_total(tmp_path: Path) -> None:
    path, queue = str(tmp_path / "ledger.json"), SPAWN.Queue()
    workers = [SPAWN.Process(target=spender, args=(path, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    done = sum(queue.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join(120)
    account = Ledger(path).read()
    assert done == len(account.expenses) == 33  # 33 · 0.03 = 0.99
    assert str(account.spent) == "ε = 0.99"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".ledger.json.lock", "ledger.json"]


def test_a_kill_between_ledger_and_answer_has_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    worker = SPAWN.Process(target=killed, args=(str(path),))
    worker.start()
    worker.join(120)
    assert worker.exitcode == -signal.SIGKILL
    assert str(Ledger(path).read().left) == "ε = 0.6"


DYING = """
import os, signal, sys
from pathlib import Path
from shoal.results.dp.budget import Budget
from shoal.results.dp.ledger import Ledger

def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)

path, where, n = sys.argv[1:]
wait = [die] if n == "1" else [os.fsync, die]
if where == "fsync":
    os.fsync = lambda file: wait.pop(0)(file)
else:
    Path.replace = die
Ledger(path).charge(Budget.of("epsilon=0.3"), [], unit="record")
"""


@pytest.mark.parametrize(
    ("where", "n", "spent"), [("fsync", 1, "0.5"), ("replace", 1, "0.5"), ("fsync", 2, "0.8")], ids=str
)
def test_a_kill_while_the_ledger_is_written_leaves_the_old_one_or_the_new_one(
    tmp_path: Path, where: str, n: int, spent: str
) -> None:
    path = tmp_path / "ledger.json"
    Ledger(path, "epsilon=1").charge(Budget.of("epsilon=0.5"), [], unit="record")
    dead = subprocess.run([sys.executable, "-c", DYING, str(path), where, str(n)], timeout=120, check=False)
    assert dead.returncode == -signal.SIGKILL
    assert str(Ledger(path).read().spent) == f"ε = {spent}"
    Ledger(path).charge(Budget.of("epsilon=0.1"), [], unit="record")  # the lock died with its holder


def test_every_truncated_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    ledger = Ledger(path, "epsilon=1")
    for _ in range(2):
        ledger.charge(Budget.of("epsilon=0.25"), ["count", "by ward"], unit="entity:who")
    whole = path.read_bytes().rstrip()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(shoal.DataError, match="ledger"):
            ledger.check(Budget.of("epsilon=0.1"), unit="entity:who")
        with pytest.raises(shoal.DataError, match="ledger"):
            ledger.charge(Budget.of("epsilon=0.1"), [], unit="entity:who")
        assert path.read_bytes() == whole[:end]  # nothing is repaired, and nothing starts anew


def test_a_failed_write_spends_and_answers_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.json"
    Ledger(path, "epsilon=1").charge(Budget.of("epsilon=0.5"), [], unit="record")
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(shoal.OutputError, match="nothing was answered"):
        shoal.query(pa.table({"x": [1]}), budget="epsilon=0.1", ledger=path, count=True)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("change", ["", "{}", "[]", '{"format": 1}', "spent", "cost"])
def test_a_ledger_that_was_changed_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "ledger.json"
    Ledger(path, "epsilon=1").charge(Budget.of("epsilon=0.5"), [], unit="record")
    found = json.loads(path.read_text())
    if change == "spent":
        found["spent"] = {"epsilon": "0.1"}
    elif change == "cost":
        found["expenses"][0]["cost"] = {"epsilon": "-5"}
    path.write_text(json.dumps(found) if change in ("spent", "cost") else change)
    with pytest.raises(shoal.DataError, match="not a ledger"):
        shoal.query(pa.table({"x": [1]}), budget="epsilon=0.1", ledger=path, count=True)


def test_units_losses_and_totals_must_agree(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    rows = pa.table({"who": ["a", "b"]})
    shoal.query(rows, budget="epsilon=0.1", ledger=Ledger(path, "epsilon=1"), count=True)
    before = path.read_bytes()
    for budget, ledger, more in (
        ("epsilon=0.1", Ledger(path), {"entity": "who"}),
        ("rho=0.1", Ledger(path), {}),
        ("epsilon=0.1", Ledger(path, "epsilon=2"), {}),
        ("epsilon=0.91", Ledger(path), {}),
    ):
        with pytest.raises(BudgetError):
            shoal.query(rows, budget=budget, ledger=ledger, count=True, **more)
    assert path.read_bytes() == before
    shoal.query(rows, budget="epsilon=0.9", ledger=path, count=True)
    assert [entry.statistics for entry in Ledger(path).read().expenses] == [("count",), ("count",)]
