"""What does record linkage cost, by distances and by probabilities?

    python benchmarks/linkage.py [--rows 1000000] [--data ADULT_FOLDER]

Adult against itself with ages moved by up to three years and a tenth of the other cells drawn again, shuffled: the
nearest of 30,162 records for each of 30,162. Then a million census-like records against themselves with a twentieth of
the cells drawn again: agreement patterns of 10^12 pairs over eight columns, and the links they lead to.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from census import COLUMNS, codes
from numpy.typing import NDArray
from optimal import census

from shoal.engines.local import LocalEngine
from shoal.linkage import distance_linkage, pattern_counts, probabilistic_linkage


def timed(title: str, work: Callable[[], Any]) -> Any:
    """The result, after printing what it cost; the first call pays for compilation and is not counted."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{title:<52} {cpu:8.2f} CPU s {wall:8.2f} s {peak:6.2f} GB peak")
    return result


def masked(table: pa.Table, rng: np.random.Generator) -> tuple[pa.Table, NDArray[np.int64]]:
    """A shuffled copy with noise, and where each record went."""
    columns = {}
    for name in table.column_names:
        column = np.array(table[name].to_pylist(), object)
        if name == "age":
            columns[name] = np.array(column, np.int64) + rng.integers(-3, 4, len(column))
        else:
            redrawn = rng.random(len(column)) < 0.1
            columns[name] = np.where(redrawn, rng.permutation(column), column)
    order = rng.permutation(table.num_rows)
    return pa.table({name: column[order] for name, column in columns.items()}), np.argsort(order)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        data = census(arguments.data, Path(name))
        known_table = LocalEngine.of(data.table).table
    ages = pa.array([int(text.split()[-1]) for text in known_table["age"].to_pylist()])  # invented ones are "age 41"
    known_table = known_table.set_column(known_table.column_names.index("age"), "age", ages)
    release, truth = masked(known_table, rng)
    distance_linkage(known_table.slice(0, 50), release.slice(0, 50))
    linkage = timed(
        f"nearest of {len(release):,} for each of {len(known_table):,}",
        lambda: distance_linkage(known_table, release, truth=truth),
    )
    print(f"{data.name}: {linkage.risk:.1%} found again, {linkage.singled_out:,} without a tie")

    n = arguments.rows
    chosen = [j for j, column in enumerate(COLUMNS) if column.name not in ("race", "sex")]
    mine = np.column_stack([np.concatenate(parts) for parts in zip(*codes(n), strict=True)])[:, chosen]
    again = np.column_stack([rng.permutation(column) for column in mine.T])
    order = rng.permutation(n)
    theirs = np.where(rng.random(mine.shape) < 0.05, again, mine)[order]
    everywhere = [str(j) for j in range(len(chosen))]
    pattern_counts(mine[:1000], theirs[:1000], numeric=[])
    counts = timed(
        f"patterns of {n:,} × {n:,} pairs, {len(everywhere)} columns", lambda: pattern_counts(mine, theirs, numeric=[])
    )
    assert counts.counts.sum() == n * n
    assert counts.counts.min() >= 0
    linked = timed(
        "patterns, EM, thresholds and links",
        lambda: probabilistic_linkage(mine, theirs, numeric=[], truth=np.argsort(order)),
    )
    print(
        f"{linked.risk:.1%} found again, {linked.correct_links / n:.1%} as links; {linked.model.iterations} iterations"
    )


if __name__ == "__main__":
    main()
