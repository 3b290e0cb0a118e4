"""How much longer than the plain GROUP BY of the same engine does a private query take?

    python benchmarks/dp.py [--rows N] [--groups N] [--times N] [--write]

Invented people in a table of DuckDB. Each pair is measured in turns, warm, and the best of several is taken: the plain
GROUP BY through Ibis, and ``shoal.query`` from the call to the noisy answers. ``--write`` puts the table into
docs/differential_privacy.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from page import between, table

import shoal

PAGE = Path(__file__).resolve().parents[1] / "docs" / "differential_privacy.md"


@dataclass(frozen=True)
class Pair:
    """A plain query, and the private one that answers the same."""

    name: str
    plain: Callable[[Any], dict[str, Any]]  # what it aggregates
    asked: dict[str, Any]
    budget: str = "epsilon=1"


def pairs(groups: int) -> list[Pair]:
    """What is compared."""
    categories = {"categories": {"town": [str(i) for i in range(groups)]}}
    incomes = {"mean": ["income"], "bounds": {"income": (0, 200_000)}}

    def count(rows: Any) -> dict[str, Any]:
        return {"n": rows.count()}

    def mean(rows: Any) -> dict[str, Any]:
        return {"n": rows.count(), "mean": rows.income.mean()}

    def persons(rows: Any) -> dict[str, Any]:
        return {"n": rows.count(), "persons": rows.person.nunique()}

    return [
        Pair("count", count, {"count": True} | categories),
        Pair("count, towns not listed", count, {"count": True}, "epsilon=1,delta=1e-8"),
        Pair("count and mean", mean, {"count": True} | incomes | categories),
        Pair("count and persons, 9 records of each at most (few have more)", persons, _limited(9) | categories),
        Pair("count and persons, 2 records of each at most (most have more)", persons, _limited(2) | categories),
    ]


def _limited(records: int) -> dict[str, Any]:
    return {"count": True, "persons": True, "entity": "person", "contributions": records}


def people(n: int, groups: int) -> pa.Table:
    """Invent records in towns, four of each person on average."""
    draw = np.random.default_rng(0)
    return pa.table(
        {
            "person": draw.integers(0, n // 4, n),
            "town": draw.integers(0, groups, n).astype(str),
            "income": np.exp(draw.normal(10, 0.7, n)).round(),
        }
    )


def seconds(run: Callable[[], object]) -> float:
    """CPU seconds of one run, in all threads."""
    start = time.process_time()
    run()
    return time.process_time() - start


def main() -> None:
    """Print a line per pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    connection = ibis.duckdb.connect()
    connection.con.register("invented", people(arguments.rows, arguments.groups))
    connection.con.execute("CREATE TABLE people AS FROM invented")
    rows = connection.table("people")
    lines = []
    for pair in pairs(arguments.groups):
        query = rows.group_by("town").agg(**pair.plain(rows))

        def private(pair: Pair = pair) -> object:
            return shoal.query(rows, budget=pair.budget, by=["town"], **pair.asked)

        private()  # OpenDP takes a second to load
        runs = [(seconds(query.to_pyarrow), seconds(private)) for _ in range(arguments.times)]
        plain, noisy = (min(seconds_of_kind) for seconds_of_kind in zip(*runs, strict=True))
        lines.append((pair.name, f"{plain:.3f}", f"{noisy:.3f}", f"{noisy / plain:.1f}"))
        print(f"{pair.name}: {noisy:.3f} s, {noisy / plain:.1f} times the GROUP BY ({plain:.3f} s)", flush=True)
    if arguments.write:
        head = (f"{arguments.rows:,} records, {arguments.groups} groups", "GROUP BY, CPU s", "private, CPU s", "ratio")
        between(PAGE, "dp.py", table(head, lines))


if __name__ == "__main__":
    main()
