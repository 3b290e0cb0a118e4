"""A seeded census-like table of any size: ten quasi-identifiers, a five-digit ZIP among them, with hierarchies.

Codes are drawn with NumPy and written to Parquet in batches, so that ten million rows need no more memory than a batch.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

BATCH = 1_000_000


@dataclass(frozen=True)
class Column:
    """How many values, how unevenly they occur, and how the policy generalizes them."""

    name: str
    values: tuple[str, ...]
    skew: float
    hierarchy: str


def _ages() -> tuple[str, ...]:
    return tuple(str(age) for age in range(17, 91))


def _zips(n: int = 8_000, seed: int = 5) -> tuple[str, ...]:
    rng = np.random.default_rng(seed)
    return tuple(f"{code:05}" for code in np.sort(rng.choice(100_000, n, replace=False)))


def _named(stem: str, n: int) -> tuple[str, ...]:
    return tuple(f"{stem}-{i:02}" for i in range(n))


def _tree(values: tuple[str, ...], group: int) -> str:
    groups = [values[i : i + group] for i in range(0, len(values), group)]
    inner = ", ".join(f'"{part[0]} ff." = [{", ".join(map(_quoted, part))}]' for part in groups)
    return f'{{ tree = {{ "*" = {{ {inner} }} }} }}'


def _quoted(text: str) -> str:
    return f'"{text}"'


_EDUCATION, _COUNTRY, _JOB, _WORK = _named("edu", 16), _named("country", 41), _named("job", 14), _named("work", 7)

COLUMNS = (
    Column("zip", _zips(), 0.7, '{ mask = "right" }'),
    Column("age", _ages(), 0.1, "{ intervals = [5, 10, 20] }"),
    Column("education", _EDUCATION, 0.8, _tree(_EDUCATION, 4)),
    Column("country", _COUNTRY, 2.5, _tree(_COUNTRY, 8)),
    Column("job", _JOB, 0.4, _tree(_JOB, 5)),
    Column("work", _WORK, 1.5, _tree(_WORK, 3)),
    Column("marital", _named("marital", 7), 1.0, "{ flat = true }"),
    Column("race", _named("race", 5), 2.0, "{ flat = true }"),
    Column("sex", ("female", "male"), 0.1, "{ flat = true }"),
    Column("salary", ("<=50K", ">50K"), 1.0, "{ flat = true }"),
)


def policy(k: int, share: float) -> str:
    """k-anonymity over all columns, in TOML."""
    lines = [f'{c.name} = {{ role = "quasi", hierarchy = {c.hierarchy} }}' for c in COLUMNS]
    lines = ["[columns]", *lines, "[[require]]", 'model = "k-anonymity"', f"k = {k}", "[release]"]
    return "\n".join([*lines, 'objective = "arx-loss"', f"max_suppression = {share}"])


def codes(n: int, seed: int = 0) -> Iterator[list[NDArray[np.int32]]]:
    """Codes of the columns, batch by batch; age, education, job and salary hang together."""
    rng = np.random.default_rng(seed)
    for first in range(0, n, BATCH):
        size = min(BATCH, n - first)
        common = rng.random(size)
        batch = []
        for column in COLUMNS:
            mixed = column.name in ("age", "education", "job", "salary")
            draw = (0.5 * common + 0.5 * rng.random(size)) if mixed else rng.random(size)
            weights = 1 / np.arange(1, len(column.values) + 1) ** column.skew
            ends = np.cumsum(np.random.default_rng(7).permutation(weights))
            batch.append(np.searchsorted(ends / ends[-1], draw).clip(0, len(ends) - 1).astype(np.int32))
        yield batch


def write(path: Path, n: int, seed: int = 0) -> None:
    """The table as Parquet."""
    schema = pa.schema([(column.name, pa.string()) for column in COLUMNS])
    with pq.ParquetWriter(path, schema) as writer:
        for batch in codes(n, seed):
            arrays = [
                pa.DictionaryArray.from_arrays(pa.array(code), pa.array(column.values)).cast(pa.string())
                for column, code in zip(COLUMNS, batch, strict=True)
            ]
            writer.write_table(pa.table(arrays, schema=schema))
