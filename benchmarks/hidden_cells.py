"""How many cells does suppress_cells hide, and how many does sdcMicro?

    python benchmarks/hidden_cells.py [--data FOLDER] [--page]

k-anonymity alone, nulls match anything, for both meanings of a match; beside it what sdcMicro's localSuppression hides
by its rule, which a test compares with sdcMicro itself. FOLDER holds in_testdata.csv, a test table of statistical
offices (4,580 records); without it, only a table is used that is generated here, in which nearly every record is alone.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from page import between
from page import table as written

import shoal

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from sdcmicro import coded, nulls_of_sdcmicro  # noqa: E402

SHARED = ROOT.parent / "shared" / "data" / "sdc"
SEVEN = ("urbrur", "roof", "walls", "water", "electcon", "relat", "sex")
KEYS = {"seven keys": SEVEN, "nine keys": (*SEVEN, "hhcivil", "age"), "age": ("urbrur", "sex", "age", "relat")}
KS = (2, 3, 5, 10)


def tables(folder: Path) -> Iterator[tuple[str, pa.Table]]:
    """The tables to hide cells of, by name."""
    file = folder / "in_testdata.csv"
    if file.is_file():
        with file.open(encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
        for name, keys in KEYS.items():
            yield f"testdata, {name}", pa.table({key: [row[key] or None for row in rows] for key in keys})
    draw = np.random.default_rng(0).random((4000, 5)) ** 1.5
    columns = {f"c{j}": [str(int(n * x)) for x in draw[:, j]] for j, n in enumerate((180, 2, 60, 4, 8))}
    yield "generated, five keys", pa.table(columns)


def hidden(data: pa.Table, k: int, matches: str) -> tuple[int, float]:
    """Count the hidden cells, and the CPU seconds of the whole run."""
    policy = {
        "columns": {name: {"role": "quasi"} for name in data.column_names},
        "require": [{"model": "k-anonymity", "k": k}],
        "release": {"algorithm": "suppress_cells", "nulls": "wildcard", "matches": matches},
    }
    start = time.process_time()
    release = shoal.anonymize(data, policy)
    cpu = time.process_time() - start
    return sum(release.table[name].null_count - data[name].null_count for name in data.column_names), cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=SHARED, help="folder with in_testdata.csv")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/algorithms.md")
    arguments = parser.parse_args()
    lines = []
    for name, data in tables(arguments.data):
        hidden(data, KS[0], "released")  # the first time, loops are compiled or loaded
        for k in KS:
            guarded, slow = hidden(data, k, "original")
            released, cpu = hidden(data, k, "released")
            theirs = nulls_of_sdcmicro(coded(data), k)
            ratio = "-" if not theirs else f"{released / theirs:.2f}"
            lines.append(
                (name, str(k), f"{guarded:,}", f"{released:,}", f"{theirs or 0:,}", ratio, f"{max(slow, cpu):.1f}")
            )
    head = ("table", "k", "original", "released", "sdcMicro's rule", "released / rule", "CPU s")
    text = written(head, lines)
    print(text)
    if arguments.page:
        between(ROOT / "docs" / "algorithms.md", Path(__file__).name, text)


if __name__ == "__main__":
    main()
