"""How long does a report take, and how large is it?

    python benchmarks/report.py [--data ADULT_FOLDER] [--rows 1000000]

Adult with occupation sensitive, then census-like tables of invented people with the salary sensitive; a release of each
by `optimal` and by `mondrian`. Seconds of the report alone, the better of two: the release is made before.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from census import policy, write
from optimal import census

import shoal
from shoal.policy import Policy

ALGORITHMS = ("optimal", "mondrian")


def adult(folder: Path | None, scratch: Path, algorithm: str) -> shoal.Release:
    """Eight columns along their hierarchies."""
    data = census(folder, scratch)
    columns = {
        name: {"role": "sensitive" if name == "occupation" else "quasi", "hierarchy": str(path.resolve())}
        for name, path in data.hierarchies.items()
    }
    fields = {
        "columns": columns,
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"algorithm": algorithm, "max_suppression": 0.02},
    }
    return shoal.anonymize(data.table, Policy.of(fields))


def people(n: int, scratch: Path, algorithm: str) -> shoal.Release:
    """Nine columns, nearly every record unique."""
    path = scratch / f"people_{n}.parquet"
    if not path.exists():
        write(path, n)
    fields = Policy.parse(policy(5, 0.02)).model_dump(mode="json", exclude_none=True)
    fields["columns"]["salary"] = {"role": "sensitive"}
    fields["release"]["algorithm"] = algorithm
    return shoal.anonymize(path, Policy.of(fields))


def timed(release: shoal.Release, path: Path) -> tuple[float, float, int]:
    """CPU and wall seconds, and bytes."""
    best = (float("inf"), float("inf"))
    for _ in range(2):
        cpu, wall = time.process_time(), time.perf_counter()
        release.report(path, force=True)
        best = min(best, (time.process_time() - cpu, time.perf_counter() - wall))
    return *best, path.stat().st_size


def main() -> None:
    """Print a line per release."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        tables: dict[str, Callable[[str], shoal.Release]] = {
            "Adult": lambda algorithm: adult(arguments.data, scratch, algorithm),
            "invented people": lambda algorithm: people(arguments.rows, scratch, algorithm),
        }
        print(f"{'table':16} {'records':>10} {'algorithm':10} {'CPU s':>7} {'wall s':>7} {'kB':>6}")
        for name, table in tables.items():
            for algorithm in ALGORITHMS:
                release = table(algorithm)
                cpu, wall, size = timed(release, scratch / "report.html")
                n = release.counted.n_records
                print(f"{name:16} {n:10,} {algorithm:10} {cpu:7.2f} {wall:7.2f} {size / 1000:6.0f}", flush=True)


if __name__ == "__main__":
    main()
