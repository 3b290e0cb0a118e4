"""The answer of ``check_output``: the verdict, the safe table, and what an intruder can tell of each hidden cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.engines.formats.table_files import check_target
from shoal.errors import CannotTellError, InfeasibleError, PolicyError
from shoal.models.verdict import Answered, Outcome
from shoal.results.output.ledger import Earlier, enter
from shoal.results.output.request import Key, TableRequest
from shoal.results.output.rules import CellRule, OutputRules
from shoal.results.written import write_results
from shoal.text.figures import format_count, format_list

SUPPRESSED_COLUMN = "suppressed"


@dataclass(frozen=True)
class OutputCell:
    """One cell: its group, whether it is hidden and why, and what an intruder can tell of it if it is."""

    labels: Key  # None where the column is summed over, or the value is missing
    kept_columns: tuple[bool, ...]  # which columns it is grouped by
    hidden: bool
    figures: dict[str, float]  # the truth; of a hidden cell it is never shown
    failed_rules: tuple[CellRule, ...]  # the rules that it fails; none if it is hidden to protect others
    ranges: dict[str, tuple[float, float]]  # of a hidden cell: its least and largest possible count and sum

    def figure(self, name: str) -> float | None:
        """Return a figure; None for the mean or a quantile of nobody."""
        return None if math.isnan(self.figures[name]) else self.figures[name]

    def group(self, total: str) -> list[str | None]:
        """Return the labels as shown in the table."""
        return [
            label if kept_columns else total for label, kept_columns in zip(self.labels, self.kept_columns, strict=True)
        ]


@dataclass(frozen=True)
class OutputCheck(Answered):
    """The verdict on a table of results, and the table that can be published instead if some cells are unsafe."""

    request: TableRequest
    rules: OutputRules
    cells: tuple[OutputCell, ...]
    verdict: Outcome  # on the table as it was asked for, without hidden cells
    safe: bool  # whether the table with hidden cells can be published
    proved: bool  # whether no cheaper choice of hidden cells is safe
    missing: str  # why it cannot be determined
    reason: str  # why nothing can be published
    ledger: Path | None
    earlier: tuple[Earlier, ...]
    total: str

    def __repr__(self) -> str:
        return f"OutputCheck(outcome={self.outcome!r}, hidden={self.hidden}, cells={len(self.cells)})"

    @property
    def outcome(self) -> Outcome:
        """Whether the table can be published as it was asked for: holds, fails or unknown."""
        return self.verdict

    @property
    def hidden(self) -> int:
        """How many cells are hidden in the safe table."""
        return sum(cell.hidden for cell in self.cells)

    @property
    def unsafe(self) -> int:
        """How many cells fail a rule themselves; the other hidden cells protect these."""
        return sum(bool(cell.failed_rules) for cell in self.cells)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        if self.outcome == "holds":
            return f"The table can be published as it is: {format_count(len(self.cells), 'cell')}"
        if self.missing:
            start = (
                "The table must not be published" if self.outcome == "fails" else "Whether the table is safe is unknown"
            )
            return f"{start}: {self.missing}"
        if not self.safe:
            return f"The table must not be published: {self.reason or 'every cell would have to be hidden'}"
        return (
            f"The table must not be published as it is; it can be with {self.hidden} of "
            f"{format_count(len(self.cells), 'cell')} hidden"
        )

    @property
    def table(self) -> pa.Table:
        """The table that can be published: hidden figures are null, and all hidden cells are marked alike."""
        self._require_safe()
        columns: dict[str, Any] = {
            name: pa.array([cell.group(self.total)[j] for cell in self.cells], pa.string())
            for j, name in enumerate(self.request.names)
        }
        for name in self.request.statistics:
            if name in columns:
                raise PolicyError(f"a column to group by is called {name!r} like a statistic", "rename it")
            figures = [None if cell.hidden else cell.figure(name) for cell in self.cells]
            columns[name] = pa.array(
                [None if x is None else int(x) for x in figures] if name == "count" else figures,
                pa.int64() if name == "count" else pa.float64(),
            )
        columns[SUPPRESSED_COLUMN] = pa.array([cell.hidden for cell in self.cells])
        return pa.table(columns)

    def _require_safe(self) -> None:
        if self.missing:
            raise CannotTellError(f"{self.missing}; nothing is released")
        if not self.safe:
            raise InfeasibleError(
                self.reason or "every cell would have to be hidden; nothing is released", "group by fewer columns"
            )

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Enter the table into the ledger, if there is one, and write it as CSV or Parquet."""
        table = self.table
        check_target(Path(path), force)  # before anything is entered
        if self.ledger is not None:
            enter(self.ledger, list(self.earlier), self.entry)
        write_results(table, Path(path), force=force)

    @property
    def entry(self) -> Earlier:
        """What the ledger keeps: the figures that are published."""
        published = {
            (cell.labels, cell.kept_columns): {
                name: figure for name in cell.figures if (figure := cell.figure(name)) is not None
            }
            for cell in self.cells
            if not cell.hidden
        }
        return Earlier(self.request, published)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: no hidden figure, but which rules fail, which is not for publication."""
        return {
            "outcome": self.outcome,
            "holds": self.holds,
            "sentence": self.sentence,
            "safe": self.safe,
            "proved": self.proved,
            "missing": self.missing,
            "reason": self.reason,
            "table": self.request.as_dict(),
            "rules": self.rules.as_dict(),
            "released_before": len(self.earlier),
            "n_cells": len(self.cells),
            "n_unsafe": self.unsafe,
            "n_hidden": self.hidden,
            "hidden": [
                {
                    "group": dict(zip(self.request.names, cell.group(self.total), strict=True)),
                    "rules": list(cell.failed_rules),
                    "range": {name: list(ends) for name, ends in cell.ranges.items()},
                }
                for cell in self.cells
                if cell.hidden
            ],
        }

    def range_of(self, cell: OutputCell) -> str:
        """Return what an intruder can tell of a hidden cell, in words."""
        return format_list([f"{name} {_ends(*ends)}" for name, ends in cell.ranges.items()]) if cell.ranges else ""


def _ends(low: float, high: float) -> str:
    """Format a range to about a hundredth of its width, rounded outwards: it is never shown narrower than it is.

    >>> _ends(3, 12), _ends(0.337, 1.912), _ends(123_456.7, math.inf)
    ('3 to 12', '0.3 to 2.0', '123,456 to inf')
    """
    width = high - low
    digits = max(0, 1 - math.floor(math.log10(width))) if 0 < width < math.inf else 0 if width else 6
    if all(end == math.floor(end) for end in (low, high) if math.isfinite(end)):
        digits = 0
    step = 10.0**digits
    start = f"{math.floor(round(low * step, 6)) / step:,.{digits}f}" if math.isfinite(low) else f"{low}"
    stop = f"{math.ceil(round(high * step, 6)) / step:,.{digits}f}" if math.isfinite(high) else f"{high}"
    return f"{start} to {stop}"
