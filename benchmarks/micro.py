"""How fast is microaggregation, and how much of the variance does it lose?

    python benchmarks/micro.py [--data TARRAGONA.csv] [--rows N ...]

Invented numbers, three columns, k = 3, by every method; beside them MDAV as a short script in NumPy writes it. With a
table of numbers, its 100 · SSE/SST at k = 3, 5 and 10.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.masking import microaggregate
from shoal.masking.groups import GroupOf, improve_groups, mdav_groups, univariate, v_mdav
from shoal.masking.points import Points

ROWS = (1_000, 10_000)
PLAIN_MOST = 10_000
LARGE = 30_000  # rows from which on improving is left out: it looks at every pair of near groups


def plain(numbers: NDArray[np.float64], k: int) -> GroupOf:
    """MDAV as a short script writes it."""
    group = np.full(len(numbers), -1)
    left, n_groups = np.arange(len(numbers)), 0
    while len(left) >= 2 * k:
        remaining_numbers = numbers[left]
        start = remaining_numbers[((remaining_numbers - remaining_numbers.mean(axis=0)) ** 2).sum(axis=1).argmax()]
        for _ in range(1 + (len(left) >= 3 * k)):
            away = ((numbers[left] - start) ** 2).sum(axis=1)
            members = left[np.argsort(away, kind="stable")[:k]]
            group[members] = n_groups
            n_groups += 1
            rest = ~np.isin(left, members)
            start = numbers[left[rest][away[rest].argmax()]]
            left = left[rest]
    group[left] = n_groups
    return group


def lost(points: Points, group: GroupOf) -> float:
    """100 · SSE/SST."""
    sizes = np.bincount(group)
    means = np.column_stack([np.bincount(group, column) for column in points.numbers.T]) / sizes[:, None]
    return float(100 * ((points.numbers - means[group]) ** 2).sum() / (points.numbers**2).sum())


def best(run: Callable[[], GroupOf]) -> tuple[float, GroupOf]:
    """CPU seconds, the least of three."""
    seconds = []
    for _ in range(3):
        start = time.process_time()
        group = run()
        seconds.append(time.process_time() - start)
    return min(seconds), group


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    arguments = parser.parse_args()
    print(f"{'rows':>8} {'method':>16} {'CPU s':>9} {'100 SSE/SST':>12}")
    for n in arguments.rows:
        numbers = np.random.default_rng(0).normal(size=(n, 3))
        points = Points.from_columns(list(numbers.T), n=n)
        runs: dict[str, Callable[[], GroupOf]] = {
            "mdav": lambda points=points: mdav_groups(points, 3),
            "v-mdav": lambda points=points: v_mdav(points, 3),
            "univariate, one": lambda points=points: univariate(points.numbers[:, 0], 3),
        }
        if n <= LARGE:
            runs["mdav, improved"] = lambda points=points: improve_groups(points, mdav_groups(points, 3), 3)
        if n <= PLAIN_MOST:
            runs["plain NumPy"] = lambda points=points: plain(points.numbers, 3)
        for name, run in runs.items():
            seconds, group = best(run)
            masked_points = (
                Points(points.numbers[:, :1], points.signs, points.prices, True) if "one" in name else points
            )
            print(f"{n:>8,} {name:>16} {seconds:9.3f} {lost(masked_points, group):12.3f}")
    if arguments.data is not None:
        with arguments.data.open(encoding="utf-8") as lines:
            columns = next(lines).strip().split(",")
        print(f"\n{'k':>8} {'mdav':>8} {'v-mdav':>8} {'improved':>9} {'univariate':>11}")
        for k in (3, 5, 10):
            figures = [
                100 * microaggregate(arguments.data, columns, k=k, **options).loss
                for options in ({}, {"method": "v-mdav"}, {"improve": True}, {"method": "univariate"})
            ]
            print(f"{k:>8} {figures[0]:8.2f} {figures[1]:8.2f} {figures[2]:9.2f} {figures[3]:11.2f}")


if __name__ == "__main__":
    main()
