"""What a party computes of its own rows before anything is shared: counts and sums, as whole numbers.

Sums over all rows are sums of the parties' sums. Sharing these instead of every row is sound: a party computes with
its own rows only, and what it sends is the sharing of a single number instead of many.
"""

from __future__ import annotations

import hashlib
import hmac
from bisect import bisect_right
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from shoal.engines.base import Engine
from shoal.engines.data import Data
from shoal.engines.grouping import groupable
from shoal.errors import DataError, EmptyTableError, MissingValueError
from shoal.results.grouping import figures_of_groups
from shoal.results.smc.plan import MAX_ROWS, SharePlan, short_fraction

_LARGEST = 2**100  # of a party's sum; the numbers in shares have room for more


@dataclass(frozen=True, eq=False)
class LocalRows:
    """The distinct rows of one party in the columns of a plan, with their counts; numbers in units of the plan."""

    plan: SharePlan
    values: dict[str, list[Any]]
    counts: list[int]
    _read_columns: dict[tuple[str, ...], tuple[list[tuple[int, ...]], list[int]]] = field(
        default_factory=dict, repr=False
    )

    @classmethod
    def counted(cls, data: Data | Engine | None, plan: SharePlan) -> LocalRows:
        """Count the rows where they are, and keep those that the plan is about.

        A table without rows, or none at all, takes part: otherwise the others would learn that it has none.
        """
        try:
            rows = groupable(data) if data is not None else None
        except EmptyTableError:
            rows = None
        if rows is None:
            return cls(plan, {name: [] for name in plan.columns}, [])
        rows.require(plan.columns)
        counted = figures_of_groups(rows, rows.table, plan.columns, {"__n": rows.table.count()})
        counts = [int(n) for n in counted["__n"].to_pylist()]
        values = {name: counted[name].to_pylist() for name in plan.columns}
        matching = [
            i
            for i in range(len(counts))
            if all(as_text(values[name][i]) == wanted for name, wanted in plan.where.items())
        ]
        counts = [counts[i] for i in matching]
        if sum(counts) * 2 > MAX_ROWS:
            raise DataError(f"{sum(counts)} rows are more than can be shared")
        return cls(plan, {name: [cells[i] for i in matching] for name, cells in values.items()}, counts)

    @property
    def n_rows(self) -> int:
        """The rows that the plan is about."""
        return sum(self.counts)

    def units(self, *names: str) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return the distinct values of some columns in units, and their counts, without missing values."""
        if names not in self._read_columns:
            self._read_columns[names] = self._read(names)
        return self._read_columns[names]

    def _read(self, names: tuple[str, ...]) -> tuple[list[tuple[int, ...]], list[int]]:
        columns = [[self._unit(name, value) for value in self.values[name]] for name in names]
        distinct = list(zip(*columns, strict=True))
        missing = sum(n for cells, n in zip(distinct, self.counts, strict=True) if None in cells)
        self._require_present(names, missing)
        complete = [i for i, cells in enumerate(distinct) if None not in cells]
        cells = [tuple(int(number) for number in distinct[i] if number is not None) for i in complete]
        return self._clamped(names, cells, [self.counts[i] for i in complete])

    def _require_present(self, names: tuple[str, ...], missing: int) -> None:
        if missing and not self.plan.skip_missing:
            raise MissingValueError(
                f"column {', '.join(map(repr, names))}: {missing} of {self.n_rows} rows have no value",
                "use skip_missing to leave them out; all parties must",
                option="--skip-missing",
            )

    def _unit(self, name: str, value: Any) -> int | None:
        if type(value) is int:
            return value * self.plan.scale(name)
        if (
            value is None
            or (isinstance(value, float) and value != value)
            or (isinstance(value, str) and not value.strip())
        ):
            return None
        try:
            number = exact_fraction(value) * self.plan.scale(name)
        except (ValueError, ArithmeticError):
            raise DataError(f"column {name!r} has values that are not numbers", "only numbers can be added") from None
        if number.denominator > 1:
            raise DataError(
                f"column {name!r} has values with more than {self.plan.decimals.get(name, 0)} decimals",
                "all parties agree on the decimals of a column",
                option=f"--decimals {name}=2",
            )
        return int(number)

    def _clamped(
        self, names: tuple[str, ...], cells: list[tuple[int, ...]], counts: list[int]
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Move values out of bounds to the bound under noise, as differential privacy does; refuse them else."""
        limits = [self.plan.limits(name) if name in self.plan.bounds else None for name in names]
        for j, limit in enumerate(limits):
            if limit is None:
                continue
            low, high = limit
            outside = sum(n for row, n in zip(cells, counts, strict=True) if not low <= row[j] <= high)
            if outside and self.plan.epsilon is None:
                raise DataError(
                    f"column {names[j]!r}: {outside} of {sum(counts)} rows are out of the bounds of the plan",
                    "correct them, or agree on wider bounds",
                )
            cells = [(*row[:j], min(max(row[j], low), high), *row[j + 1 :]) for row in cells]
        return cells, counts

    # ── figures that are added over the parties ──────────────────────────────────────────────────────────────

    def count(self, name: str) -> int:
        """The rows with a value in a column."""
        return sum(self.units(name)[1])

    def power(self, name: str, exponent: int) -> int:
        """The sum of the values of a column, or of their squares."""
        cells, counts = self.units(name)
        return self._small(name, sum(row[0] ** exponent * n for row, n in zip(cells, counts, strict=True)))

    def moments(self, names: tuple[str, ...]) -> list[int]:
        """The sums of products of a target and its predictors with an intercept: XᵀX by rows, then Xᵀy."""
        cells, counts = self.units(*names)
        rows = np.array([(1, *row[1:], row[0]) for row in cells], dtype=object).reshape(-1, len(names) + 1)
        weighted = rows * np.array(counts, dtype=object).reshape(-1, 1)
        products = rows.T.dot(weighted) if len(rows) else np.zeros((len(names) + 1,) * 2, dtype=object)
        k = len(names)
        return [self._small(names[0], int(x)) for x in (*products[:k, :k].ravel(), *products[:k, k])]

    def _small(self, name: str, total: int) -> int:
        if abs(total) >= _LARGEST:
            raise DataError(f"column {name!r}: its sum is too large to be shared", "agree on fewer decimals")
        return total

    def cells(self, name: str) -> list[int]:
        """The counts in the cells of a histogram."""
        cell_counts = [0] * len(self.plan.cells(name))
        cuts = self.plan.cuts(name)
        if cuts is None:
            index_of = {value: i for i, value in enumerate(self.plan.histogram[name])}
            texts = [as_text(value) for value in self.values[name]]
            self._require_present((name,), sum(n for text, n in zip(texts, self.counts, strict=True) if not text))
            for text, n in zip(texts, self.counts, strict=True):
                cell_counts[index_of.get(text, -1)] += n if text else 0
            return cell_counts
        cells, counts = self.units(name)
        for (number,), n in zip(cells, counts, strict=True):
            value = Fraction(number, self.plan.scale(name))
            i = len(cuts) - 2 if value == cuts[-1] else bisect_right(cuts, value) - 1
            cell_counts[i if 0 <= i < len(cuts) - 1 else -1] += n
        return cell_counts

    def below(self, name: str) -> tuple[list[int], list[int]]:
        """The sorted distinct values of a column, and how many rows are at or below each."""
        cells, counts = self.units(name)
        together: dict[int, int] = {}
        for (number,), n in zip(cells, counts, strict=True):
            together[number] = together.get(number, 0) + n
        numbers = sorted(together)
        return numbers, [int(n) for n in np.cumsum([together[number] for number in numbers])]

    @property
    def identifiers(self) -> list[str]:
        """Who is in the rows, each once and without missing ones; more than the plan allows are refused."""
        name = str(self.plan.intersection)
        texts = {as_text(value) for value in self.values[name]}
        if "" in texts and not self.plan.skip_missing:
            raise MissingValueError(f"column {name!r}: there are rows without an identifier", option="--skip-missing")
        texts.discard("")
        if len(texts) > self.plan.at_most:
            raise DataError(
                f"column {name!r}: more than {self.plan.at_most} distinct identifiers",
                "agree on a larger limit: tables are padded to it, so that nobody learns how many another party has",
                option="--at-most",
            )
        return sorted(texts)

    def digests(self, key: bytes) -> list[int]:
        """The identifiers as keyed digests of 128 bits; the key is made by all parties for one run."""
        return [
            int.from_bytes(hmac.digest(key, text.encode(), hashlib.sha256)[:16], "big") for text in self.identifiers
        ]

    def sizes(self) -> list[int]:
        """How many rows each figure is about, in the same order at every party."""
        plan = self.plan
        if not plan.skip_missing:
            return [self.n_rows]
        numbers = [*plan.sum, *plan.mean, *plan.variance, *plan.minimum, *plan.maximum, *(x for x, _ in plan.quantile)]
        sizes = [self.n_rows, *(self.count(name) for name in dict.fromkeys(numbers))]
        sizes += [sum(self.cells(name)) for name in plan.histogram]
        return sizes + [sum(self.units(*names)[1]) for names in plan.regression]


def as_text(value: Any) -> str:
    """Return a value as it is compared between parties: without spaces around it, whole numbers without a point."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if (isinstance(value, float) and value.is_integer()) or (
        isinstance(value, Decimal) and value.is_finite() and value == value.to_integral()
    ):
        return str(int(value))
    return str(value).strip()


def exact_fraction(value: Any) -> Fraction:
    """Return a number as it is written: 0.1 is one tenth, also as a float."""
    if isinstance(value, bool | np.bool_):
        return Fraction(int(value))
    return short_fraction(Decimal(repr(value) if isinstance(value, float) else str(value).strip()))
