"""How does the cost of an optimal release grow with rows, columns and distinct tuples?

    python benchmarks/scale.py [--largest ROWS] [--json FILE]

A census-like table is generated (seeded), counted and searched: k = 5, at most 2 % suppressed, arx-loss. Then a
lattice of more than a billion nodes with a time budget: the proof, or the gap that is left.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import census
import numpy as np

from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Terms
from shoal.tables.frequency import FrequencyTable, count_records

K, SHARE = 5, 0.02


def hierarchies() -> tuple[Hierarchy, ...]:
    """As the policy of the generated table describes them."""
    from shoal.policy import Policy

    policy = Policy.parse(census.policy(K, SHARE))
    return tuple(
        builders.build(
            c.name, policy.columns[c.name].hierarchy, c.values, nulls=False, uncovered="error", folder=Path()
        )
        for c in census.COLUMNS
    )


def table(n: int, columns: int) -> FrequencyTable:
    """The first columns of a generated table of ``n`` rows, counted."""
    built = hierarchies()[:columns]
    encoded_values = [h.encode(c.values) for h, c in zip(built, census.COLUMNS, strict=False)]
    codes = np.concatenate(
        [np.column_stack([p[code] for p, code in zip(encoded_values, b, strict=False)]) for b in census.codes(n)]
    )
    return count_records(tuple(h.column for h in built), codes.astype(np.int32), {}, None, built)[0]


def solved(counts: FrequencyTable, **terms: Any) -> dict[str, Any]:
    """Search, timed."""
    start, cpu = time.perf_counter(), time.process_time()
    limit = int(SHARE * counts.n_records)
    problem = Problem(counts, (KAnonymity(k=K),), Terms(limit=limit, objective="arx-loss", **terms))
    recoding = SEARCHES["optimal"](problem)
    parts = recoding.parts(problem.table)
    return {
        "rows": counts.n_records,
        "columns": len(counts.columns),
        "distinct": counts.n_classes,
        "nodes": recoding.n_nodes,
        "evaluated": recoding.n_evaluated,
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "loss": loss_of(problem, recoding.released, parts, problem.objective_name),
        "proved": recoding.proved,
        "bound": recoding.bound,
    }


def large_lattice(seconds: float) -> dict[str, Any]:
    """Fifteen columns of four levels, 100,000 rows: 4^15 nodes."""
    rng = np.random.default_rng(0)
    n, sizes = 100_000, (100, 60, 40, 30, 20, 16, 12, 10, 8, 8, 6, 6, 5, 5, 4)
    common, codes, built = rng.normal(size=n), [], []
    for j, size in enumerate(sizes):
        rank = (0.9 * common + math.sqrt(1 - 0.81) * rng.normal(size=n)).argsort().argsort() / n
        ends = np.cumsum(1 / np.arange(1, size + 1) ** 1.5)
        codes.append(np.searchsorted(ends / ends[-1], rank).clip(0, size - 1))
        width = max(2, math.ceil(size ** (1 / 3)))
        paths = [(str(i), f"a{i // width}", f"b{i // width**2}", "*") for i in range(size)]
        built.append(Hierarchy.from_paths(f"c{j}", paths))
    counts, _ = count_records(
        tuple(h.column for h in built), np.column_stack(codes).astype(np.int32), {}, None, tuple(built)
    )
    return solved(counts, time_budget=seconds)


def show(rows: Sequence[dict[str, Any]]) -> None:
    """Aligned text."""
    print(f"{'rows':>12}{'columns':>9}{'distinct':>12}{'nodes':>16}{'seen':>8}{'wall s':>9}{'CPU s':>9}  loss, proof")
    for row in rows:
        proof = "proved" if row["proved"] else f"none below {row['bound']:.4f}"
        print(
            f"{row['rows']:>12,}{row['columns']:>9}{row['distinct']:>12,}{row['nodes']:>16,}{row['evaluated']:>8,}"
            f"{row['wall']:>9.2f}{row['cpu']:>9.2f}  {row['loss']:.4f}, {proof}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=1_000_000, help="rows of the largest table")
    parser.add_argument("--budget", type=float, default=60, help="seconds for the large lattice")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    arguments = parser.parse_args()
    solved(table(1_000, 4))  # kernels are compiled or loaded before the clock runs
    sizes = [10**e for e in range(3, 9) if 10**e <= arguments.largest]
    rows = []
    for n in sizes:
        print(f"{n:,} rows", file=sys.stderr)
        rows.append(solved(table(n, 10)))
    columns = []
    for q in range(2, 11):
        print(f"{q} columns", file=sys.stderr)
        columns.append(solved(table(100_000, q)))
    print("a large lattice", file=sys.stderr)
    large = large_lattice(arguments.budget)
    show([*rows, *columns, large])
    if arguments.json:
        arguments.json.write_text(json.dumps({"rows": rows, "columns": columns, "large": large}, indent=2) + "\n")


if __name__ == "__main__":
    main()
