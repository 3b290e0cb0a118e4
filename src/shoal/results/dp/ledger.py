"""The ledger: a file that adds up what all queries about a table have spent, and refuses what exceeds the budget.

A cost is written and flushed to the disk before any noise is drawn. A process that dies in between has spent
without an answer, which is safe; the other order could give an answer without charge. A lock serializes processes, and
the file is replaced atomically.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from shoal.errors import DataError, OutputError
from shoal.results.dp.budget import Budget, BudgetError
from shoal.text.bounded import read_bounded
from shoal.text.jsonable import read_json

FORMAT = "shoal privacy ledger"
VERSION = 1


@dataclass(frozen=True)
class Expense:
    """One entry of a ledger: the statistics, the data and the privacy cost."""

    cost: Budget
    statistics: tuple[str, ...]
    data: str  # hash of the file or frame; empty for a table in a database
    time: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"time": self.time, "cost": self.cost.as_dict(), "asked": list(self.statistics), "data": self.data}


@dataclass(frozen=True)
class Account:
    """The contents of a ledger."""

    total: Budget
    unit: str  # whose privacy is accounted for: the column that identifies people, or 'record'
    expenses: tuple[Expense, ...] = ()

    @property
    def spent(self) -> Budget:
        """What all expenses add up to."""
        return sum((expense.cost for expense in self.expenses), self.total - self.total)

    @property
    def left(self) -> Budget:
        """What can still be spent."""
        return self.total - self.spent

    def charged(self, expense: Expense, unit: str) -> Account:
        """Return the account after an expense; raise an error, without values of the data, if it does not fit."""
        if unit != self.unit:
            raise BudgetError(
                f"the ledger protects each {_named(self.unit)}, this query each {_named(unit)}",
                "their budgets do not add up: use the same entity column for all queries",
                option="--entity",
            )
        if not self.left.covers(expense.cost):
            raise BudgetError(
                f"the budget does not suffice: {self.left} is left of {self.total}, and this costs {expense.cost}",
                "ask with a smaller budget; a larger total would weaken what was promised to the people in the table",
            )
        return Account(self.total, self.unit, (*self.expenses, expense))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "total": self.total.as_dict(),
            "unit": self.unit,
            "spent": self.spent.as_dict(),
            "expenses": [expense.as_dict() for expense in self.expenses],
        }


class Ledger:
    """A ledger file; ``total`` is needed to create it, and must agree with it afterwards.

    >>> import pathlib, tempfile, pyarrow as pa, shoal
    >>> ledger = shoal.Ledger(pathlib.Path(tempfile.mkdtemp()) / "ledger.json", "epsilon=1")
    >>> answers = shoal.query(pa.table({"age": [31, 34]}), budget="epsilon=0.4", ledger=ledger, count=True)
    >>> str(ledger.read().left)
    'ε = 0.6'
    """

    def __init__(self, path: str | Path, total: Budget | Mapping[str, Any] | str | None = None) -> None:
        self.path = Path(path)
        self.total = None if total is None else Budget.of(total)

    def read(self) -> Account:
        """Return the account; a ledger that cannot be read is an error, never an empty one."""
        try:
            text = read_bounded(self.path).decode()
        except FileNotFoundError:
            if self.total is None:
                raise BudgetError(
                    f"{self.path} does not exist: what is the total budget of this table?",
                    "give the total once, when the ledger is created: Ledger(path, total)",
                    option="--total epsilon=1",
                ) from None
            return Account(self.total, "")
        except (OSError, UnicodeDecodeError):
            raise DataError(f"{self.path} cannot be read as a ledger; nothing was answered") from None
        account = _parsed(self.path, text)
        if self.total is not None and self.total != account.total:
            raise BudgetError(
                f"{self.path} has a total of {account.total}, not {self.total}",
                "leave the total out: it is fixed when the ledger is created",
                option="--total",
            )
        return account

    def check(self, cost: Budget, *, unit: str) -> Account:
        """Return the account as it would be after spending, without spending; raise an error if it cannot be spent."""
        account = self.read()
        return Account(account.total, account.unit or unit, account.expenses).charged(Expense(cost, (), "", ""), unit)

    def charge(self, cost: Budget, statistics: list[str], *, unit: str, data: str = "") -> None:
        """Spend: when this returns, the cost is on the disk. Raise an error, with nothing spent, if it does not fit."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        with self._alone():
            account = self.read()
            account = Account(account.total, account.unit or unit, account.expenses)
            self._write(account.charged(Expense(cost, tuple(statistics), data, now), unit))

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other processes; a ledger without a lock could be overspent, so there is no way round it."""
        try:
            import fcntl
        except ImportError:
            raise OutputError(
                "ledgers need file locks, which this system does not have", "use Linux or macOS"
            ) from None
        path = self.path.resolve()
        try:
            file = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise OutputError(f"{self.path}: the ledger cannot be locked ({error.strerror})") from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        except OSError as error:
            raise OutputError(
                f"{self.path}: the ledger cannot be written ({error.strerror}); nothing was answered"
            ) from None
        finally:
            os.close(file)

    def _write(self, account: Account) -> None:
        """Replace the file by a new one that is already on the disk."""
        path = self.path.resolve()
        aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(json.dumps(account.as_dict(), indent=1, ensure_ascii=False).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)  # the new name, too
        finally:
            os.close(folder)


def _named(unit: str) -> str:
    return "record" if unit == "record" else f"person by {unit.partition(':')[2]!r}"


def _parsed(path: Path, text: str) -> Account:
    try:
        document = read_json(text)
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise ValueError
        expenses = tuple(
            Expense(Budget.of(entry["cost"]), tuple(map(str, entry["asked"])), str(entry["data"]), str(entry["time"]))
            for entry in document["expenses"]
        )
        account = Account(Budget.of(document["total"]), str(document["unit"]), expenses)
        if account.spent.as_dict() != document["spent"]:
            raise ValueError
    except (ValueError, KeyError, TypeError, AttributeError, BudgetError):
        raise DataError(
            f"{path} is not a ledger, or was changed by hand; nothing was answered", "restore it from a backup"
        ) from None
    return account
