"""How long does it take to find a result that recurs, and how often does one qualify?

    python benchmarks/integral.py [--rows N ...] [--subsets N]

Invented people with an income that depends on age and years of education; one in a thousand is very rich.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import pyarrow as pa

import shoal

ROWS = (1_000, 10_000, 100_000)


def people(n: int) -> pa.Table:
    """Invent a table."""
    rng = np.random.default_rng(0)
    age, years = rng.integers(20, 80, n), rng.integers(8, 20, n)
    income = 5_000 + 200 * age + 1_000 * years + rng.normal(0, 3_000, n)
    income[rng.random(n) < 0.001] *= 20
    ill = np.where(rng.random(n) < age / 120, "yes", "no")
    return pa.table({"age": age, "years": years, "income": income.round(), "ill": ill})


def main() -> None:
    """Print a line per table and kind of result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--subsets", type=int, default=1_000)
    arguments = parser.parse_args()
    print(f"{'rows':>8}  {'result':<28} {'seconds':>8}  {'different':>9}  {'generators':>10}  published")
    for n in arguments.rows:
        table = people(n)
        cases = (
            ("mean", "income", [], 1_000.0),
            ("median", "income", [], 1_000.0),
            ("regression", "income", ["age", "years"], [5_000.0, 100.0, 500.0]),
            ("tree", "ill", ["age", "years"], 10.0),
        )
        for statistic, column, on, step in cases:
            start = time.perf_counter()
            answer = shoal.integral_privacy(
                table, statistic, column, on=on, step=step, subsets=arguments.subsets, depth=2
            )[0]
            seconds = time.perf_counter() - start
            best = answer.recurrences[0].generators
            print(
                f"{n:>8}  {statistic + ' of ' + column:<28} {seconds:>8.2f}  {answer.different:>9}  {best:>10}  "
                f"{answer.published}"
            )


if __name__ == "__main__":
    main()
