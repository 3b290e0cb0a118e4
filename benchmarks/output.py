"""How much longer than a plain GROUP BY does it take to check a table of results, and how many cells are hidden?

    python benchmarks/output.py [--rows N] [--groups N ...] [--shape N ...]

Invented people; the second part hides cells of a table with all its totals, where the least pattern is not proved.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import shoal
from shoal.engines.grouping import groupable
from shoal.results.output.checked import OutputCheck


def people(n: int, groups: int) -> pa.Table:
    """Invent a table with one column to group by."""
    rng = np.random.default_rng(0)
    return pa.table({"group": rng.integers(0, groups, n).astype(str), "income": np.exp(rng.normal(10, 0.7, n)).round()})


def crossed(shape: list[int], mean: float) -> pa.Table:
    """Invent people in the cells of a table, with about as many in each."""
    rng = np.random.default_rng(1)
    counts = rng.poisson(mean, shape)
    places = np.repeat(np.arange(counts.size), counts.ravel())
    return pa.table({f"c{j}": part.astype(str) for j, part in enumerate(np.unravel_index(places, shape))})


def in_duckdb(rows: pa.Table) -> float:
    """Open the rows and group them as the check does, without judging anything; return the seconds."""
    start = time.perf_counter()
    opened = groupable(rows)
    table = opened.table
    opened.fetch(table.group_by("group").agg(n=table.count(), total=table.income.sum()))
    return time.perf_counter() - start


def checked(rows: pa.Table, **request: Any) -> tuple[float, OutputCheck]:
    """Check a table and return the seconds."""
    start = time.perf_counter()
    check = shoal.check_output(rows, **request)
    return time.perf_counter() - start, check


def main() -> None:
    """Print a line per table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--groups", type=int, nargs="+", default=[100, 1_000])
    parser.add_argument("--shape", type=int, nargs="+", default=[30, 30, 5])
    parser.add_argument("--mean", type=float, default=16.0, help="persons in a cell of the second part")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for the second part")
    arguments = parser.parse_args()
    checked(people(1_000, 5), by=["group"], value="income", statistics=["mean"])  # imports are not what is measured
    for groups in arguments.groups:
        rows = people(arguments.rows, groups)
        start = time.perf_counter()
        rows.group_by("group").aggregate([("income", "sum"), ("income", "count")])
        plain = time.perf_counter() - start
        database_rows = in_duckdb(rows)
        seconds, check = checked(rows, by=["group"], value="income", statistics=["count", "mean"])
        print(
            f"{arguments.rows} rows, {groups} groups: {seconds:.2f} s, {seconds / plain:.0f} times a GROUP BY in Arrow "
            f"({plain:.3f} s), {seconds / database_rows:.1f} times one through Ibis in DuckDB, "
            f"{check.hidden} cells hidden",
            flush=True,
        )
    rows = crossed(arguments.shape, arguments.mean)
    start = time.process_time()
    seconds, check = checked(rows, by=rows.column_names, time_limit=arguments.time_limit)
    spent = time.process_time() - start
    print(
        f"{' x '.join(map(str, arguments.shape))}: {seconds:.1f} s ({spent:.1f} s of CPU), "
        f"{len(check.cells)} cells, {check.unsafe} unsafe, "
        f"{check.hidden} hidden, proved: {check.proved}, {check.missing or 'safe'}"
    )


if __name__ == "__main__":
    main()
