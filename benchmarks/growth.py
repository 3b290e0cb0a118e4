"""How do seconds and memory grow with rows, columns and distinct tuples, where a sensitive column is protected too?

    python benchmarks/growth.py [--largest ROWS] [--page]

The census-like table of ``census.py``, with its jobs as sensitive values: k = 5 alone and with one more model, at most
2 % suppressed, arx-loss, the best node by `optimal`. Every search runs in a process of its own that reads the counted
table and does nothing else, so that its peak of memory is that of the interpreter, the table and the search. ``--page``
writes the tables and the plot into docs/performance_sensitive.md.
"""

from __future__ import annotations

import argparse
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import census
import numpy as np

from shoal.hierarchies import builders
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.base import PrivacyModel
from shoal.models.closeness import TCloseness
from shoal.models.diversity import EntropyDiversity
from shoal.models.size import KAnonymity
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.search import SEARCHES, Problem
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, FrequencyTable, count_records

if TYPE_CHECKING:  # what draws and writes is not loaded where memory is measured
    from shoal.report.svg import Plot

SHARE = 0.02
SENSITIVE = next(j for j, column in enumerate(census.COLUMNS) if column.name == "job")
GROWING = {
    "rows": "With more and more rows",
    "columns": "With more and more columns",
    "distinct": "With more and more distinct tuples, a million records",
}
MODELS: dict[str, tuple[PrivacyModel, ...]] = {
    "k alone": (),
    "entropy 5-diversity": (EntropyDiversity(l=5),),
    "0.2-closeness, equal": (TCloseness(t=0.2),),
    "0.1-closeness, ordered": (TCloseness(t=0.1, distance="ordered"),),
}
LARGEST = 1_000_000
ROWS = 100_000  # where the columns grow
LOADING = 20_000  # tuples of a first search, which is not measured


def tables(largest: int) -> Iterator[tuple[str, int, int, int | None]]:
    """What grows, and the rows, columns and distinct tuples of each table; None for as many as there are."""
    sizes = [10**e for e in range(3, 9) if 10**e <= largest]
    yield from (("rows", n, len(census.COLUMNS) - 1, None) for n in sizes)
    yield from (("columns", min(ROWS, largest), q, None) for q in range(2, len(census.COLUMNS)))
    yield from (("distinct", largest, len(census.COLUMNS) - 1, n) for n in sizes)


def counted(rows: int, columns: int, distinct: int | None, *, apart: bool = False) -> FrequencyTable:
    """The counted table; with ``distinct``, tuples are drawn from so many, and jobs from all."""
    policy = Policy.parse(census.policy(5, SHARE))
    drawn = [np.concatenate(batches) for batches in zip(*census.codes(rows), strict=True)]
    rng = np.random.default_rng(1)
    again = np.arange(rows) if distinct is None else rng.integers(0, distinct, rows)
    hierarchies: list[Hierarchy] = []
    codes = []
    for j, column in enumerate(census.COLUMNS):
        if j != SENSITIVE and len(hierarchies) < columns:
            column_hierarchy = policy.columns[column.name].hierarchy
            built = builders.build(
                column.name, column_hierarchy, column.values, nulls=False, uncovered="error", folder=Path()
            )
            hierarchies.append(built)
            codes.append(built.encode(column.values)[drawn[j][again]])
    jobs = census.COLUMNS[SENSITIVE]
    values = drawn[SENSITIVE].astype(np.int32)
    domain = Domain(jobs.name, jobs.values, np.bincount(values, minlength=len(jobs.values)))
    names = tuple(hierarchy.column for hierarchy in hierarchies)
    all_codes = np.column_stack(codes).astype(np.int32)
    return count_records(names, all_codes, {domain: values}, None, tuple(hierarchies), separately=apart)[0]


def solved(table: FrequencyTable, model_name: str) -> Recoding:
    """The best node under k = 5 and a model."""
    terms = Terms(limit=int(SHARE * table.n_records), objective="arx-loss")
    return SEARCHES["optimal"](Problem(table, (KAnonymity(k=5), *MODELS[model_name]), terms))


def searched(path: Path, model_name: str) -> dict[str, Any]:
    """Read a table, search, and tell what it took."""
    table: FrequencyTable = pickle.loads(path.read_bytes())
    if not MODELS[model_name]:
        table = replace(table, sensitive={})  # nothing asks for the jobs
    solved(table.selected(np.arange(min(LOADING, table.n_classes))), model_name)  # loads the compiled loops
    start, cpu = time.perf_counter(), time.process_time()
    recoding = solved(table, model_name)
    return {
        "what": model_name,
        "rows": table.n_records,
        "columns": len(table.columns),
        "distinct": table.n_classes,
        "seen": recoding.n_evaluated,
        "proved": recoding.proved,
        "wall": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "peak": peak(),
    }


def peak() -> float:
    """The most memory of this process in MB; what rusage tells counts its parent's at the moment of the fork."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measured(path: Path, model_name: str) -> dict[str, Any]:
    """The same in a process of its own."""
    call = [sys.executable, __file__, "--one", str(path), model_name]
    finished = subprocess.run(call, check=True, capture_output=True, text=True)
    return dict(json.loads(finished.stdout.splitlines()[-1]))


def written_table(runs: list[dict[str, Any]]) -> str:
    """A line per table, with seconds and memory of every model."""
    from page import table as written

    head = [
        "rows",
        "columns",
        "distinct",
        *(f"{model_name}: {unit}" for model_name in MODELS for unit in ("CPU s", "MB")),
    ]
    sizes = list(dict.fromkeys((row["rows"], row["columns"], row["distinct"]) for row in runs))
    lines = []
    for size in sizes:
        run_of_model = {row["what"]: row for row in runs if (row["rows"], row["columns"], row["distinct"]) == size}
        if not all(row["proved"] for row in run_of_model.values()):
            raise SystemExit("a search ended without a proof")
        figures = [
            text
            for model_name in MODELS
            for text in (f"{run_of_model[model_name]['cpu']:.2f}", f"{run_of_model[model_name]['peak']:.0f}")
        ]
        lines.append([*(f"{number:,}" for number in size), *figures])
    return written(head, lines)


def drawn(parts: dict[str, list[dict[str, Any]]]) -> list[list[Plot]]:
    """Seconds and memory by what grows, a line per model."""
    from charts import lines

    return [
        [
            lines(
                {
                    model_name: [(row[part], row[key]) for row in runs if row["what"] == model_name]
                    for model_name in MODELS
                },
                (part, title),
                logs=(part != "columns", True),
            )
            for part, runs in parts.items()
        ]
        for key, title in (("cpu", "CPU seconds"), ("peak", "peak MB"))
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--largest", type=int, default=LARGEST, help="rows of the largest table")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/performance_sensitive.md")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)  # a table and a model, in a process of its own
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(searched(Path(arguments.one[0]), arguments.one[1])))
        return
    parts: dict[str, list[dict[str, Any]]] = {"rows": [], "columns": [], "distinct": []}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table"
        path.write_bytes(pickle.dumps(counted(30_000, 4, None)))
        for model_name in MODELS:
            measured(path, model_name)  # compiles
        for part, rows, columns, distinct in tables(arguments.largest):
            path.write_bytes(pickle.dumps(counted(rows, columns, distinct)))
            parts[part] += [measured(path, model_name) for model_name in MODELS]
            print(f"{part}: {rows:,} rows, {columns} columns", file=sys.stderr)
    for part, runs in parts.items():
        print(f"{part}\n\n{written_table(runs)}\n")
    if arguments.page:
        from charts import save_panels
        from page import DOCS, between, folded

        for part, runs in parts.items():
            text = folded(GROWING[part], written_table(runs))
            between(DOCS / "performance_sensitive.md", f"growth.py, {part},", text)
        save_panels(drawn(parts), DOCS / "growth.svg", "CPU seconds and memory by rows, columns and distinct tuples")


if __name__ == "__main__":
    main()
