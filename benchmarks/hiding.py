"""What does hiding forbidden results cost, beside the release without them?

    python benchmarks/hiding.py [--rows N]

Invented people; one, two and three results are enforced, with two searches. CPU seconds, as a ratio to `anonymize`
without forbidden results in the same run.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import pyarrow as pa

import shoal

ENFORCED: dict[str, Any] = {"doubt": "accept", "enforce": True}


def people(n: int) -> pa.Table:
    """Invent a table."""
    rng = np.random.default_rng(0)
    return pa.table(
        {
            "age": rng.integers(18, 90, n),
            "zip": rng.integers(10_000, 10_100, n).astype(str),
            "sex": rng.choice(["f", "m"], n),
            "education": rng.choice([f"level {i}" for i in range(12)], n),
            "disease": rng.choice(["hiv", "flu", "cold", "cancer", "asthma", "none"], n),
        }
    )


def results(n: int) -> list[dict[str, Any]]:
    """Return results that come out of these people."""
    rules = [("f", "hiv", 0.01, 0.1), ("m", "flu", 0.02, 0.15)]
    return [
        *(
            {"result": "rule", "when": {"sex": sex}, "then": {"disease": disease}, "support": s, "confidence": c}
            | ENFORCED
            for sex, disease, s, c in rules
        ),
        {"result": "count", "where": {"sex": "m", "disease": "cold"}, "min": n // 300} | ENFORCED,
    ]


def main() -> None:
    """Print a line per search and number of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=30_000)
    n = parser.parse_args().rows
    table = people(n)
    columns = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
        "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
        "sex": {"role": "quasi"},
        "education": {"role": "quasi"},
        "disease": {"role": "sensitive"},
    }
    print(f"{'search':<10} {'results':>7} {'classes':>8} {'CPU s':>7} {'ratio':>6}  what was hidden")
    for algorithm in ("optimal", "mondrian"):
        policy: dict[str, Any] = {
            "columns": columns,
            "require": [{"model": "k-anonymity", "k": 5}],
            "release": {"algorithm": algorithm, "max_suppression": 0.02},
        }
        shoal.anonymize(table, policy)  # compiled
        plain = 0.0
        for n_results in range(4):
            start = time.process_time()
            release = shoal.anonymize(table, policy | {"forbid": results(n)[:n_results]})
            seconds = time.process_time() - start
            plain = plain or seconds
            hiding = release.recoding.hiding
            sentence = "" if hiding is None else hiding.sentence
            ratio = seconds / plain
            print(f"{algorithm:<10} {n_results:>7} {release.classes:>8} {seconds:>7.2f} {ratio:>6.1f}  {sentence}")


if __name__ == "__main__":
    main()
