"""What the list of findings costs: its part of a whole run, in memory and in DuckDB."""

from __future__ import annotations

import argparse
import time
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

import shoal
from shoal import pipeline
from shoal.policy import Policy

PLAIN = ("born", "ward", "weight", "visit")


def people(n: int) -> pa.Table:
    """Invented patients: four plain columns, of which one tells the age and one is nearly unique."""
    draw = np.random.default_rng(0)
    age = draw.integers(18, 90, n)
    return pa.table(
        {
            "name": [f"name {i}" for i in range(n)],
            "age": age,
            "zip": [f"{z:05}" for z in draw.integers(1000, 1900, n)],
            "sex": draw.choice(["f", "m"], n),
            "race": draw.choice(list("abcde"), n),
            "education": draw.integers(0, 16, n),
            "born": 2024 - age,
            "ward": draw.integers(0, 300, n),
            "weight": draw.normal(70, 12, n),
            "visit": draw.integers(0, 100_000, n),
            "disease": draw.choice([f"disease {i}" for i in range(60)], n),
            "cost": draw.integers(0, 5_000, n),
        }
    )


def policy() -> Policy:
    """Five quasi and two sensitive columns."""
    hierarchies: dict[str, Any] = {
        "age": {"intervals": [5, 10, 20]},
        "zip": {"mask": "right"},
        "education": {"intervals": [4]},
    }
    columns: dict[str, Any] = {"name": {"role": "identifier"}}
    for name in ("age", "zip", "sex", "race", "education"):
        columns[name] = {"role": "quasi"} | ({"hierarchy": hierarchies[name]} if name in hierarchies else {})
    columns |= {name: {"role": "plain"} for name in PLAIN} | {n: {"role": "sensitive"} for n in ("disease", "cost")}
    diverse = {"model": "distinct-l-diversity", "l": 3, "column": "disease"}
    fields = {"columns": columns, "require": [{"model": "k-anonymity", "k": 5}, diverse]}
    return Policy.of(fields | {"release": {"max_suppression": 0.02}})


def measured(data: Any) -> tuple[float, float, int]:
    """CPU seconds of a run and of its list of findings, and how many there are."""
    spent = 0.0
    whole = pipeline.findings_of

    def timed(evidence: Any) -> Any:
        nonlocal spent
        start = time.process_time()
        findings = whole(evidence)
        spent = time.process_time() - start
        return findings

    pipeline.findings_of = timed
    try:
        start = time.process_time()
        release = shoal.anonymize(data, policy())
        return time.process_time() - start, spent, len(release.findings)
    finally:
        pipeline.findings_of = whole


def main() -> None:
    """Print a line per engine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    table = people(parser.parse_args().rows)
    shoal.anonymize(table.slice(0, 1000), policy())  # loops are compiled
    connection = ibis.duckdb.connect()
    connection.con.register("people", table)
    connection.con.execute("CREATE TABLE stored AS FROM people")
    print(f"{'engine':8} {'run, CPU s':>11} {'warnings, CPU s':>16} {'part':>6} {'warnings':>9}")
    for name, data in (("local", table), ("duckdb", connection.table("stored"))):
        run, spent, n = min(measured(data) for _ in range(2))
        print(f"{name:8} {run:11.1f} {spent:16.1f} {spent / run:6.0%} {n:9}")


if __name__ == "__main__":
    main()
