"""The ledger: never overspent, by several processes at once or after a kill."""

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.dp.budget import Budget, BudgetError
from shoal.dp.ledger import Ledger

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
    from shoal.dp.noise import Noise

    Noise.draw = lambda self, values: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[assignment,method-assign,return-value]
    shoal.query(pa.table({"x": [1, 2]}), budget="epsilon=0.4", ledger=Ledger(path, "epsilon=1"), count=True)


def test_processes_at_once_never_spend_more_than_the_total(tmp_path: Path) -> None:
    path, queue = str(tmp_path / "ledger.json"), SPAWN.Queue()
    workers = [SPAWN.Process(target=spender, args=(path, queue)) for _ in range(3)]
    for worker in workers:
        worker.start()
    done = sum(queue.get(timeout=120) for _ in workers)
    for worker in workers:
        worker.join()
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
    assert [entry.asked for entry in Ledger(path).read().expenses] == [("count",), ("count",)]
