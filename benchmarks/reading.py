"""What does the scan cost that accepts a CSV file before it is read?

    python benchmarks/reading.py --rows 2000000

Makes a file of six columns, one of them quoted, and times what both readers do with it: the scan alone, Arrow's and
DuckDB's parsing alone, and reading as shoal does, scan included. Times are of the processor, all threads together, so
that other programs on the machine change them little; the least of three runs counts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import duckdb
import numpy as np

from shoal.engines.connect import text_source
from shoal.engines.formats import sql_files, table_files
from shoal.engines.formats.layout import decompressed_chunks, layout_of, rewritten


def write_rows(path: Path, rows: int) -> None:
    """A table of people that nobody has seen."""
    draw = np.random.default_rng(0)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.write("id,born,zip,sex,disease,cost\n")
        for first in range(0, rows, 100_000):
            n = min(100_000, rows - first)
            years, zips, costs = draw.integers(1930, 2020, n), draw.integers(0, 99_999, n), draw.integers(0, 10**6, n)
            for i in range(n):
                disease = '"flu, severe"' if i % 3 else "cold"
                file.write(f"{first + i},{years[i]}-07-01,{zips[i]:05},F,{disease},{costs[i] / 100:.2f}\n")


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, at best."""
    measured_seconds = []
    for _ in range(3):
        begin = time.process_time()
        work()
        measured_seconds.append(time.process_time() - begin)
    return min(measured_seconds)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        path = Path(folder) / "people.csv"
        write_rows(path, rows)
        megabytes = path.stat().st_size / 10**6
        raw = partial(decompressed_chunks, path)
        layout = layout_of(raw, path.name)  # compiled by now
        source = sql_files.sql_source(path, None, layout.names, layout=layout)
        whole = bytearray(path.read_bytes())
        grouped = "SELECT zip, disease, count(*) FROM {} GROUP BY ALL"
        tasks: dict[str, Callable[[], object]] = {
            "scan alone": lambda: layout_of(raw, path.name),
            "scan and copy in plain spelling": lambda: rewritten(raw, path.name, layout, lambda text: len(text)),
            "Arrow's parsing alone": lambda: table_files._parsed(whole, path.name, layout),
            "read in memory, scan included": lambda: table_files.read_table_file(path),
            "DuckDB's grouping alone": lambda: connection.execute(grouped.format(source)).fetchall(),
            "DuckDB, scan, count and grouping": lambda: connection.execute(
                grouped.format(text_source(connection, path, layout_of(raw, path.name))[0])
            ).fetchall(),
        }
        print(f"{rows} records, {megabytes:.0f} MB")
        for task_name, work in tasks.items():
            task_seconds = seconds(work)
            print(f"{task_name:34} {task_seconds:7.2f} s {megabytes / task_seconds:7.0f} MB/s")


if __name__ == "__main__":
    main()
