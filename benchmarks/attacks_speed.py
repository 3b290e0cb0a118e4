"""How long do all attacks take, and how much memory?

    python benchmarks/attacks_speed.py [--rows 30000 1000000] [--data adult.csv --policy policy.toml]

A seeded census (census.py), or a table with its policy, is released with k = 5 and attacked with all that
``shoal.attack`` has; a second release of the same people is laid beside it. Printed are CPU seconds, what they are
beside those of counting the release once (``shoal.check``) in the same run, and how much the memory grew at its peak.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import census
import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from shoal.engines.formats.table_files import read_table_file

SENSITIVE = "job"


def generated(n: int) -> tuple[pa.Table, shoal.Policy]:
    """The census; the job is what must not be learned."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "census.parquet"
        census.write(path, n)
        table = pq.read_table(path)
    policy = shoal.Policy.parse(census.policy(5, 0.0))
    columns = {
        name: {"role": "sensitive"} if name == SENSITIVE else column.model_dump(exclude_unset=True)
        for name, column in policy.columns.items()
    }
    return table, shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 5}]})


def by(policy: shoal.Policy, algorithm: str) -> shoal.Policy:
    return policy.model_copy(update={"release": policy.release.model_copy(update={"algorithm": algorithm})})


def timed(run: Any) -> tuple[Any, float, float]:
    """What it returns, CPU seconds, and MB by which the memory grew at its peak."""
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    result = run()
    return result, time.process_time() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024


def measured(table: pa.Table, policy: shoal.Policy) -> None:
    for algorithm, other in (("mondrian", "top_down"), ("top_down", "mondrian")):
        release = shoal.anonymize(table, by(policy, algorithm))
        other_release = shoal.anonymize(table, by(policy, other)).table
        _, check, _ = timed(lambda release=release: shoal.check(release.table, policy))
        for sample in (10_000, None):
            attacks, cpu, grown = timed(
                lambda release=release, other_release=other_release, sample=sample: shoal.attack(
                    release.table,
                    original=table,
                    policy=policy,
                    intruder=shoal.Intruder(previous=other_release),
                    sample=sample,
                )
            )
            people = "all" if sample is None else f"{sample:,}"
            print(
                f"{table.num_rows:>10,} rows, {algorithm:9} {people:>7} people attacked: {len(attacks)} attacks, "
                f"{cpu:7.2f} s, {cpu / check:6.1f} × check, {grown:7.0f} MB more",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="*", default=[30_000, 1_000_000])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--policy", type=Path)
    arguments = parser.parse_args()
    small, small_policy = generated(1_000)
    shoal.attack(
        shoal.anonymize(small, by(small_policy, "mondrian"))
    )  # kernels are compiled or loaded before the clock runs
    if arguments.data is not None:
        policy = shoal.Policy.load(arguments.policy)
        measured(read_table_file(arguments.data).table, policy)
    for n in arguments.rows:
        measured(*generated(n))


if __name__ == "__main__":
    main()
