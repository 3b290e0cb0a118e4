"""How fast is the optimal search, how much of a run is it, and what does the first run pay for compiling?

    python benchmarks/optimal.py [--data ADULT_FOLDER] [--json FILE]

Nothing heavy is imported before the processes have been measured: Linux counts the memory of the parent at the
moment of the fork towards the peak of the child.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

COLUMNS = (
    "age", "education", "marital-status", "native-country", "occupation", "race", "salary-class", "sex", "workclass",
)  # fmt: skip
KS = (2, 5, 10, 100)
SHARES = (0.0, 0.02, 0.05, 1.0)
RECORDS, SEED = 30_162, 0

# Leaves of each generated column, and how many of them share a label on the levels between ground and top:
# the same heights as Adult's, so the same 12,960 nodes.
GENERATED: dict[str, tuple[int, tuple[int, ...]]] = {
    "age": (74, (5, 10, 20)),
    "education": (16, (3, 6)),
    "marital-status": (7, (4,)),
    "native-country": (40, (10,)),
    "occupation": (14, (5,)),
    "race": (5, ()),
    "salary-class": (2, ()),
    "sex": (2, ()),
    "workclass": (8, (3,)),
}


# ── the table ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Census:
    """A table with nine quasi-identifiers and a hierarchy file for each."""

    name: str
    table: Path
    hierarchies: dict[str, Path]

    def policy(self, k: int, share: float) -> str:
        """k-anonymity with at most this share of the records suppressed, in TOML."""
        columns = [
            f'{column} = {{ role = "quasi", hierarchy = {json.dumps(str(path.resolve()))} }}'
            for column, path in self.hierarchies.items()
        ]
        return "\n".join(
            [
                "[columns]",
                *columns,
                "[[require]]",
                'model = "k-anonymity"',
                f"k = {k}",
                "[release]",
                'objective = "arx-loss"',
                f"max_suppression = {share}",
            ]
        )


def census(named_folder: Path | None, scratch: Path) -> Census:
    """Adult where it is found, else a generated table of the same size and lattice."""
    shared_folder = Path(__file__).resolve().parents[2] / "shared" / "data" / "adult"
    named = os.environ.get("SHOAL_ADULT")
    for folder in (named_folder, Path(named) if named else None, shared_folder):
        if folder is not None and (folder / "adult.csv").is_file():
            files = {column: folder / f"adult_hierarchy_{column}.csv" for column in COLUMNS}
            return Census("Adult", folder / "adult.csv", files)
        if folder is not None and folder != shared_folder:
            sys.exit(f"{folder}: no adult.csv in this folder")
    return generated(scratch)


def generated(folder: Path) -> Census:
    """Invented people: common values are common, rare ones rare, and age decides part of the rest."""
    rng = random.Random(SEED)
    hierarchies = {}
    for column, (n, widths) in GENERATED.items():
        hierarchies[column] = folder / f"{column}.csv"
        lines = [
            ";".join([f"{column} {i}", *(f"{column} {i // w * w} to {i // w * w + w - 1}" for w in widths), "*"])
            for i in range(n)
        ]
        hierarchies[column].write_text("\n".join(lines) + "\n")
    weights = {
        column: [(i + 1) ** -2 if column != "age" else 1 + max(0, 60 - i) for i in range(n)]
        for column, (n, _) in GENERATED.items()
    }
    people = [";".join(COLUMNS)]
    for _ in range(RECORDS):
        code = {column: rng.choices(range(len(w)), w)[0] for column, w in weights.items()}
        if code["age"] < 8:  # the youngest are alike in most respects
            code |= {"marital-status": 0, "salary-class": 0, "education": code["education"] % 4}
        people.append(";".join(f"{column} {code[column]}" for column in COLUMNS))
    table = folder / "census.csv"
    table.write_text("\n".join(people) + "\n")
    return Census(f"a generated table (seed {SEED}; Adult was not found)", table, hierarchies)


# ── whole processes ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Usage:
    """What one process took."""

    wall: float
    cpu: float
    peak: float  # MB


def process(arguments: Sequence[str], cache: Path) -> Usage:
    """Run shoal's command line in a process of its own, kernels cached in ``cache``."""
    command = [sys.executable, "-c", "from shoal.cli.commands import main; main()", *arguments]
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)})
    _, status, usage = os.wait4(child.pid, 0)  # the usage of this child alone, not of the largest so far
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"shoal {arguments[0]} ended with exit code {child.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * unit / 1e6)


def processes(data: Census, scratch: Path, repeats: int) -> Iterator[tuple[str, Usage]]:
    """Best of several, and the demo once with nothing compiled."""
    policy = scratch / "policy.toml"
    policy.write_text(data.policy(5, 0.02))
    release = ["anonymize", str(data.table), "-p", str(policy), "-o", str(scratch / "release.csv"), "-q", "--force"]
    demo = ["demo", str(scratch / "demo"), "-q"]
    yield "shoal demo, cold cache", process(demo, scratch / "first cache")
    warm = scratch / "warm cache"
    for command in (demo, release):
        process(command, warm)  # fills the cache
    yield "shoal demo, warm cache", best(lambda: process(demo, warm), repeats)
    yield "shoal anonymize, k = 5, 2 %, warm cache", best(lambda: process(release, warm), repeats)


def best(run: Callable[[], Usage], repeats: int) -> Usage:
    """The fastest run; the largest peak."""
    runs = [run() for _ in range(repeats)]
    return Usage(min(u.wall for u in runs), min(u.cpu for u in runs), max(u.peak for u in runs))


def first_use(data: Census, scratch: Path) -> dict[str, dict[str, float]]:
    """The first problem in a process with an empty cache, the same problem again, and the difference."""
    policy = scratch / "policy.toml"
    policy.write_text(data.policy(5, 0.02))
    command = [sys.executable, __file__, "--solve-twice", str(data.table), str(policy)]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(scratch / "empty cache")}
    finished = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    first, again = json.loads(finished.stdout)
    return {"first": first, "again": again, "compilation": {clock: first[clock] - again[clock] for clock in first}}


def solve_twice(table: Path, policy: Path) -> list[dict[str, float]]:
    """Count and search twice, each time from the table in memory."""
    from shoal.engines.local import LocalEngine
    from shoal.policy import Policy

    loaded_policy = Policy.load(policy)
    engines = LocalEngine.of(table), LocalEngine.of(table)
    return [vars(timed(partial(_solved, engine, loaded_policy), 1)[0]) for engine in engines]


def _solved(engine: Any, policy: Any) -> Any:
    from shoal.search import SEARCHES

    return SEARCHES["optimal"](_problem(engine.count(policy).table, policy))


def _problem(table: Any, policy: Any) -> Any:
    from shoal.search import Problem

    return Problem.of(table, policy)


# ── the search alone ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Timing:
    """The fastest of several runs."""

    wall: float
    cpu: float


def timed(run: Callable[[], Any], repeats: int) -> tuple[Timing, Any]:
    """Time a call, and hand back what it returned last."""
    walls, cpus, result = [], [], None
    for _ in range(repeats):
        wall, cpu = time.perf_counter(), time.process_time()
        result = run()
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    return Timing(min(walls), min(cpus)), result


def group_by(table: Any, repeats: int) -> tuple[Timing, int]:
    """One GROUP BY of the nine text columns over the rows in memory: DuckDB, one thread, as the search has one."""
    import duckdb

    names = ", ".join(f'"{column}"' for column in COLUMNS)
    with duckdb.connect(config={"threads": 1}) as connection:
        connection.register("rows", table)
        query = f"SELECT {names}, count(*) FROM rows GROUP BY ALL"
        timing, groups = timed(lambda: connection.sql(query).to_arrow_table(), repeats)
    return timing, groups.num_rows


def searches(data: Census, repeats: int) -> dict[str, Any]:
    """Every k with every share, on one frequency table, against one plain GROUP BY."""
    from shoal.engines.local import LocalEngine
    from shoal.policy import Policy

    engine = LocalEngine.of(data.table)
    _solved(engine, Policy.parse(data.policy(5, 0.02)))  # kernels are compiled or loaded before the clock runs
    grouped, distinct = group_by(engine.table, max(5, repeats))
    rows = []
    for k in KS:
        for share in SHARES:
            policy = Policy.parse(data.policy(k, share))
            row = _search(engine.count(policy).table, policy, repeats)
            # CPU to CPU: both have one thread, and what else runs on the machine disturbs the wall clock more.
            rows.append({"k": k, "max_suppression": share, **row, "ratio": row["cpu"] / grouped.cpu})
            _say(f"k = {k}, {share:.0%} done")
    return {
        "records": engine.table.num_rows,
        "distinct": distinct,
        "group_by": {"wall": grouped.wall, "cpu": grouped.cpu, "engine": "DuckDB, one thread"},
        "searches": rows,
    }


def _search(table: Any, policy: Any, repeats: int) -> dict[str, Any]:
    from shoal.search import SEARCHES
    from shoal.search.losses.cells import loss_of

    def run() -> tuple[Any, Any]:
        problem = _problem(table, policy)
        return problem, SEARCHES["optimal"](problem)

    timing, (problem, recoding) = timed(run, repeats)
    parts = recoding.parts(problem.table)
    return {
        "wall": timing.wall,
        "cpu": timing.cpu,
        "evaluated": recoding.n_evaluated,
        "nodes": recoding.n_nodes,
        "loss": loss_of(problem, recoding.released, parts, problem.objective_name),
        "suppressed": parts.n_suppressed,
    }


# ── ARX beside ours ──────────────────────────────────────────────────────────────────────────────────────


def arx(data: Census, repeats: int) -> list[float] | None:
    """CPU seconds of ARX's search for every problem, in the same order; None where no compiled ARX is named.

    Only the thread that searches is counted, and the best of several runs in one warm virtual machine.
    """
    classpath = os.environ.get("SHOAL_ARX_CLASSPATH")
    if not classpath or data.name != "Adult":
        return None
    driver = Path(__file__).parent / "arx" / "Adult.java"
    with tempfile.TemporaryDirectory() as classes:
        subprocess.run(["javac", "-d", classes, "-cp", classpath, str(driver)], check=True)
        problems = [part for k in KS for share in SHARES for part in (str(k), str(share), str(repeats))]
        command = ["java", "-cp", f"{classes}{os.pathsep}{classpath}", "Adult", str(data.table.parent), *problems]
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in finished.stdout.splitlines() if len(line.split()) == 4]
    return [float(seconds) for _, _, seconds, _ in lines]


# ── what is printed ──────────────────────────────────────────────────────────────────────────────────────


def show(results: dict[str, Any]) -> None:
    """Aligned text."""
    print(f"{results['date']}, {results['machine']['cpu']}, {results['machine']['cores']} cores")
    print(", ".join(f"{name} {number}" for name, number in results["machine"]["versions"].items()))
    print(f"Table: {results['data']}, {results['records']:,} records, {results['distinct']:,} distinct tuples\n")

    print(f"optimal, objective arx-loss; best of {results['repeats']} each")
    head = ("k", "may suppress", "wall s", "CPU s", "× group-by", "nodes seen", "of", "loss", "suppressed")
    has_arx = "arx" in results["searches"][0]
    if has_arx:
        head = (*head, "ARX CPU s", "× faster")
    _print_table(head, [_cells(row) for row in results["searches"]])
    if has_arx:
        faster = [row["arx"] / row["cpu"] for row in results["searches"]]
        print(f"Geometric mean of × faster: {math.exp(sum(map(math.log, faster)) / len(faster)):.1f}")
    group_by = results["group_by"]
    print(f"\nOne plain group-by of the 9 columns over the rows ({group_by['engine']}): {group_by['cpu']:.4f} s CPU\n")

    names = {"first": "first time, nothing compiled", "again": "again", "compilation": "compilation: the difference"}
    uses = [(names[use], f"{t['wall']:.2f}", f"{t['cpu']:.2f}") for use, t in results["first_use"].items()]
    _print_table(("counting and searching, k = 5, 2 %", "wall s", "CPU s"), uses)
    print()

    rows = [
        (name, f"{u['wall']:.2f}", f"{u['cpu']:.2f}", f"{u['peak']:.0f}") for name, u in results["processes"].items()
    ]
    _print_table(("whole process", "wall s", "CPU s", "peak MB"), rows)


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        str(row["k"]),
        f"{row['max_suppression']:.0%}",
        f"{row['wall']:.3f}",
        f"{row['cpu']:.3f}",
        f"{row['ratio']:.1f}",
        f"{row['evaluated']:,}",
        f"{row['nodes']:,}",
        f"{row['loss']:.7f}",
        f"{row['suppressed']:,}",
        *((f"{row['arx']:.3f}", f"{row['arx'] / row['cpu']:.1f}") if "arx" in row else ()),
    )


def _print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        first = row[0].ljust(widths[0])
        print("  ".join([first, *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]))


def _machine() -> dict[str, Any]:
    cpu = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        models = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        cpu = models[0] if models else cpu
    parts = {name: version(name) for name in ("shoal", "numpy", "numba", "pyarrow", "duckdb")}
    return {"cpu": cpu, "cores": os.cpu_count(), "versions": {"Python": platform.python_version(), **parts}}


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--repeats", type=int, default=5, help="runs of which the best counts (default 5)")
    parser.add_argument("--solve-twice", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.solve_twice:
        print(json.dumps(solve_twice(*arguments.solve_twice)))
        return
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        data = census(arguments.data, scratch)
        _say("whole processes")
        process_usage = {
            process_name: vars(usage) for process_name, usage in processes(data, scratch, arguments.repeats)
        }
        _say("first use")
        first = first_use(data, scratch)
        _say("searches")
        measured = searches(data, arguments.repeats)
        _say("ARX, where SHOAL_ARX_CLASSPATH names a compiled one")
        for row, seconds in zip(measured["searches"], arx(data, arguments.repeats) or (), strict=False):
            row["arx"] = seconds
        results = {
            "date": datetime.now(UTC).date().isoformat(),
            "machine": _machine(),
            "data": data.name,
            "repeats": arguments.repeats,
            **measured,
            "first_use": first,
            "processes": process_usage,
        }
    show(results)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
