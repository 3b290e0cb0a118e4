"""How fast is Mondrian, and what does it lose?

    python benchmarks/mondrian.py [--data ADULT_FOLDER] [--rows N ...]
    python benchmarks/mondrian.py --continuous [--rows N ...] [--before OTHER_SRC] [--page]

Adult, and Adult drawn a million times with a fifth of the cells redrawn, nine columns, k = 5 and 10, from the frequency
table to the recoding. Beside it a plain recursion over the rows in NumPy, which is what a short script would do, and
anonypy, a package of pandas, where it is installed.

``--continuous``: an invented table of 13 columns, five of them with nearly as many decimal values as records, from the
table to the release; `mondrian` beside `local` with time budgets of 5 and 20 seconds, both with ranges as cells.
``--before`` runs each of them with another version of shoal too, right before this one; ``--page`` writes the figures
into docs/local.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from models import redrawn
from numpy.typing import NDArray
from optimal import COLUMNS, census
from page import between
from page import table as written

import shoal
from shoal.engines.local import LocalEngine
from shoal.models.size import KAnonymity
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import losses
from shoal.search.problem import Terms
from shoal.tables.frequency import FrequencyTable

KS = (5, 10)
ROWS = (30_162, 1_000_000)
CONTINUOUS_ROWS = (11_136, 22_272, 44_544)
BUDGETS = (None, 5, 20)  # seconds: none for mondrian, the others for local
DOCS = Path(__file__).resolve().parents[1] / "docs"
PLAIN_MOST = 30_162  # rows that the slow ones are run on, in less than a minute each


def timed(table: FrequencyTable, algorithm: str, k: int, cells: str, dimension: str) -> str:
    """One line of figures, the best of three where that takes no minutes."""
    problem = Problem(table, (KAnonymity(k=k),), Terms(cells=(cells,) * len(table.columns), dimension=dimension))
    seconds = []
    for _ in range(3 if table.n_records < 100_000 else 1):
        start = time.process_time()
        answer = SEARCHES[algorithm](problem)
        seconds.append(time.process_time() - start)
    lost = losses(problem, answer)
    speed = table.n_records / min(seconds)
    return (
        f"{min(seconds):9.3f} {speed:12,.0f} {lost['loss']:9.4f} {lost['arx-loss']:9.4f} {lost['average-class']:9.1f}"
    )


def plain(rows: NDArray[np.int32], k: int) -> int:
    """Strict Mondrian as a short script writes it: the number of classes."""
    widths = np.maximum(1, rows.max(axis=0) - rows.min(axis=0))
    n_classes, left = 0, [rows]
    while left:
        mine = left.pop()
        spans = (mine.max(axis=0) - mine.min(axis=0)) / widths
        for j in np.argsort(-spans):
            lower = mine[:, j] <= np.median(mine[:, j])
            if k <= lower.sum() <= len(mine) - k:
                left += [mine[lower], mine[~lower]]
                break
        else:
            n_classes += 1
    return n_classes


def print_peers(table: FrequencyTable, k: int) -> None:
    """The plain recursion, and anonypy, on rows of the same table."""
    rows = np.repeat(table.codes, table.counts, axis=0)
    if len(rows) > PLAIN_MOST:
        rows = rows[np.random.default_rng(0).permutation(len(rows))[:PLAIN_MOST]]
    start = time.process_time()
    plain(rows, k)
    report("plain NumPy", len(rows), time.process_time() - start)
    if importlib.util.find_spec("anonypy"):
        import anonypy  # type: ignore[import-not-found]
        import pandas as pd

        frame = pd.DataFrame(rows, columns=list(COLUMNS)).assign(serial=range(len(rows)))
        start = time.process_time()
        anonypy.Preserver(frame, list(COLUMNS), "serial").anonymize_k_anonymity(k=k)
        report("anonypy", len(rows), time.process_time() - start)


def measurements(n: int) -> pa.Table:
    """Five columns of decimals, two of whole numbers, six of categories."""
    rng = np.random.default_rng(19)
    columns = {}
    for j in range(5):
        drawn = np.round(rng.normal(500, 120 + 20 * j, n) * (1 + 0.2 * j), 2 if j < 3 else 3)
        columns[f"x{j}"] = [repr(float(value)) for value in drawn]
    columns["age"] = [str(value) for value in rng.integers(17, 90, n)]
    columns["hours"] = [str(value) for value in np.clip(rng.normal(40, 9, n).astype(int), 1, 99)]
    for j, size in enumerate((2, 5, 7, 9, 16, 41)):
        columns[f"c{j}"] = [f"v{value}" for value in rng.integers(0, size, n)]
    return pa.table(columns)


def continuous(n_rows: int, budget: int | None) -> dict[str, float]:
    """Time a whole run on columns of decimals: `local` if there is a budget, `mondrian` if there is none."""
    table = measurements(n_rows)
    columns: dict[str, object] = {name: {"role": "quasi"} for name in table.column_names}
    for name in table.column_names[:7]:
        widths = [50, 100, 200, 400] if name.startswith("x") else [5, 10, 20]
        columns[name] = {"role": "quasi", "hierarchy": {"intervals": widths}, "cells": "range"}
    release = {"algorithm": "mondrian" if budget is None else "local", "max_suppression": 0.0}
    if budget is not None:
        release["time_budget"] = budget
    policy = {"columns": columns, "require": [{"model": "k-anonymity", "k": 5}], "release": release}
    shoal.anonymize(table.slice(0, 300), policy)  # compiles
    start, wall = time.process_time(), time.perf_counter()
    released = shoal.anonymize(table, policy)
    cpu, wall = time.process_time() - start, time.perf_counter() - wall
    return {"cpu": cpu, "wall": wall, "loss": released.loss["loss"]}


def runs_before_and_now(n_rows: int, budget: int | None, before: Path | None) -> list[tuple[str, dict[str, float]]]:
    """The same run with another version, if one is given, and with this one; a process each."""
    runs = []
    for version, source in (("before", before), ("now", Path(shoal.__file__).parents[1])):
        if source is not None:
            call = [sys.executable, __file__, "--continuous", "--one", str(n_rows), str(budget or 0)]
            run = subprocess.run(
                call, env=os.environ | {"PYTHONPATH": str(source)}, check=True, capture_output=True, text=True
            )
            runs.append((version, json.loads(run.stdout.splitlines()[-1])))
    return runs


def side_by_side(rows: list[int], before: Path | None) -> str:
    """The figures as a table of the page, printed as they come."""
    lines: list[tuple[str, ...]] = []
    for n_rows in rows:
        for budget in BUDGETS:
            title = "mondrian" if budget is None else f"local, {budget} s given"
            runs: list[tuple[str, dict[str, Any]]] = runs_before_and_now(n_rows, budget, before)
            for version, run_figures in runs:
                figures = (f"{run_figures['cpu']:.1f}", f"{run_figures['wall']:.1f}", f"{run_figures['loss']:.4f}")
                lines.append((f"{n_rows:,} rows, {title}" + f", {version}" * (len(runs) > 1), *figures))
                print(*lines[-1], flush=True)
    return written(("", "CPU s", "wall s", "loss"), lines)


def report(program: str, n_rows: int, seconds: float) -> None:
    print(f"{program:<45} {seconds:9.3f} {n_rows / seconds:12,.0f}   on {n_rows:,} rows")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--rows", type=int, nargs="*")
    parser.add_argument("--continuous", action="store_true", help="an invented table with columns of decimals instead")
    parser.add_argument("--before", type=Path, help="the sources of another version, to be measured beside this one")
    parser.add_argument("--page", action="store_true", help="write the table of --continuous into docs/local.md")
    parser.add_argument("--one", type=int, nargs=2, help=argparse.SUPPRESS)  # what each process of --continuous runs
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(continuous(arguments.one[0], arguments.one[1] or None)))
        return
    if arguments.continuous:
        text = side_by_side(arguments.rows or list(CONTINUOUS_ROWS), arguments.before)
        if arguments.page:
            between(DOCS / "local.md", "mondrian.py", text)
        return
    with tempfile.TemporaryDirectory() as name:
        data = census(arguments.data, Path(name))
        adult = LocalEngine.of(data.table).count(Policy.parse(data.policy(5, 0.0))).table
        for n_rows in arguments.rows or ROWS:
            table = adult if n_rows == adult.n_records else redrawn(adult, n_rows, 0.2)
            print(f"\n{data.name}, {n_rows:,} rows, {table.n_classes:,} distinct tuples")
            print(f"{'':<45} {'CPU s':>9} {'rows per s':>12} {'loss':>9} {'arx-loss':>9} {'per class':>9}")
            for k in KS:
                for algorithm in ("mondrian", "mondrian_relaxed"):
                    for cells in ("hierarchy", "range", "set"):
                        for dimension in ("range", "entropy", "gain"):
                            title = f"k = {k:<3} {algorithm:<17} {cells:<10} {dimension}"
                            print(f"{title:<45} {timed(table, algorithm, k, cells, dimension)}")
                print_peers(table, k)


if __name__ == "__main__":
    main()
