"""How long does a person wait for the process, and how much memory does it take?

    python benchmarks/startup.py [--data ADULT_FOLDER] [--beside CHECKOUT] [--repeats N] [--json FILE]

Nothing heavy is imported here: Linux counts the memory of the parent at the moment of the fork towards the peak of the
child.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from optimal import census

CHECKOUT = Path(__file__).resolve().parents[1]
CLI = ("-c", "from shoal.cli.commands import main; main()")
FOUR_ROWS = "age,disease\n31-34,flu\n31-34,flu\n36-38,hiv\n36-38,flu\n"
POLICY = """
[columns]
age = { role = "quasi" }
disease = { role = "sensitive" }
[[require]]
model = "k-anonymity"
k = 2
"""


@dataclass(frozen=True)
class Cost:
    """What a process took: the least time of its runs, the largest peak."""

    cpu: float
    wall: float
    peak: float  # MB

    def with_run(self, other: Cost) -> Cost:
        return Cost(min(self.cpu, other.cpu), min(self.wall, other.wall), max(self.peak, other.peak))


def run(arguments: Sequence[str], checkout: Path, cache: Path) -> Cost:
    """Run Python with a checkout's sources and kernels cached in ``cache``, and wait for its end."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "NUMBA_CACHE_DIR": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # nobody compiles every source in every process
    start = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, env=environment)
    _, status, usage = os.wait4(child.pid, 0)  # the usage of this child alone, not of the largest so far
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(arguments)} ended with exit code {child.returncode}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss * unit / 1e6)


def tasks(data: Path | None, scratch: Path) -> dict[str, tuple[str, ...]]:
    """What is run, by name."""
    table = census(data, scratch)
    rows, policy, census_policy = scratch / "rows.csv", scratch / "rows.toml", scratch / "census.toml"
    rows.write_text(FOUR_ROWS)
    policy.write_text(POLICY)
    census_policy.write_text(table.policy(5, 0.02))
    release = ("-o", str(scratch / "release.csv"), "-q", "--force")
    return {
        "shoal --help": (*CLI, "--help"),
        "import shoal; shoal.anonymize": ("-c", "import shoal; shoal.anonymize"),
        "shoal check, 4 rows": (*CLI, "check", str(rows), "-p", str(policy), "-q"),
        f"shoal anonymize, {table.name}": (*CLI, "anonymize", str(table.table), "-p", str(census_policy), *release),
        "shoal demo": (*CLI, "demo", str(scratch / "demo"), "-q"),
    }


def measured(commands: Mapping[str, tuple[str, ...]], checkouts: Sequence[Path], repeats: int) -> dict[str, list[Cost]]:
    """The costs of every task, a column per checkout; their runs take turns, so that both meet the same machine."""
    costs_by_task: dict[str, list[Cost]] = {}
    with tempfile.TemporaryDirectory() as name:
        caches = [Path(name) / str(i) for i in range(len(checkouts))]
        for task, arguments in commands.items():
            print(f"{task} …", file=sys.stderr)
            pairs = list(zip(checkouts, caches, strict=True))
            if task == "shoal demo":
                empty = [Path(name) / f"empty {i}" for i in range(len(checkouts))]
                costs_by_task["shoal demo, nothing compiled yet"] = [
                    run(arguments, *checkout_and_cache) for checkout_and_cache in zip(checkouts, empty, strict=True)
                ]
            for checkout_and_cache in pairs:
                run(arguments, *checkout_and_cache)  # compiles sources and kernels
            costs = [run(arguments, *checkout_and_cache) for checkout_and_cache in pairs]
            for _ in range(repeats - 1):
                costs = [
                    cost.with_run(run(arguments, *checkout_and_cache))
                    for cost, checkout_and_cache in zip(costs, pairs, strict=True)
                ]
            costs_by_task[task] = costs
    return costs_by_task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--beside", type=Path, help="another checkout of shoal, measured in the same run")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    checkouts = [CHECKOUT, *([arguments.beside.resolve()] if arguments.beside else [])]
    with tempfile.TemporaryDirectory() as name:
        costs_by_task = measured(tasks(arguments.data, Path(name)), checkouts, arguments.repeats)
    heads = ["CPU s", "wall s", "peak MB"]
    if arguments.beside:
        heads = [f"{head}{suffix}" for head in heads for suffix in ("", ", beside")]
    print("|  |", " | ".join(heads), "|")
    print("| --- |", " | ".join("--:" for _ in heads), "|")
    for task, costs in costs_by_task.items():
        columns = zip(*((f"{cost.cpu:.2f}", f"{cost.wall:.2f}", f"{cost.peak:.0f}") for cost in costs), strict=True)
        print(f"| {task} |", " | ".join(cell for column in columns for cell in column), "|")
    if arguments.json:
        arguments.json.write_text(
            json.dumps({task: [asdict(cost) for cost in costs] for task, costs in costs_by_task.items()})
        )


if __name__ == "__main__":
    main()
