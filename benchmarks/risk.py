"""How fast are the risks measured?

On census-like tables of invented people, CPU seconds, the best of three, from a table in memory; beside them the same
divided by one GROUP BY of the columns by DuckDB with one thread, what counting the table costs at the least.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from census import COLUMNS, codes

from shoal.engines.local import LocalEngine
from shoal.risk import (
    beliefs,
    frequencies,
    identity_risk,
    individual_risk,
    interval_disclosure,
    log_linear_risk,
    population_uniqueness,
    suda,
)

# Eight keys; salary is sensitive.
KEYS = [column.name for column in COLUMNS if column.name not in ("zip", "salary")]


def people(n: int) -> pa.Table:
    """Invented records with a sampling weight, a household of about three, an income and a masked one."""
    rng = np.random.default_rng(1)
    columns = [np.concatenate(parts) for parts in zip(*codes(n), strict=True)]
    table = {
        column.name: pa.DictionaryArray.from_arrays(pa.array(code), pa.array(column.values)).cast(pa.string())
        for column, code in zip(COLUMNS, columns, strict=True)
    }
    income = rng.lognormal(10, 1, n)
    other_columns = {"weight": rng.uniform(50, 150, n), "home": np.arange(n) // 3, "income": income}
    return pa.table({**table, **other_columns, "masked": income * rng.normal(1, 0.05, n)})


def best_of_three(measure: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        measure()
        seconds.append(time.process_time() - start)
    return min(seconds)


def figures(table: pa.Table) -> dict[str, Callable[[], Any]]:
    engine = LocalEngine.of(table)
    masked = LocalEngine.of(table.drop_columns(["income"]).rename_columns({"masked": "income"}))
    pairs = [("age", "education"), ("education", "job")]
    return {
        "identity": lambda: identity_risk(engine, KEYS),
        "frequencies, nulls match anything": lambda: frequencies(engine, KEYS, weight="weight"),
        "individual, with households": lambda: individual_risk(engine, KEYS, weight="weight", household="home"),
        "population uniqueness, estimated": lambda: population_uniqueness(engine, KEYS, sampling_fraction=0.01),
        "log-linear, main effects": lambda: log_linear_risk(engine, KEYS, sampling_fraction=0.01),
        "log-linear, two interactions": lambda: log_linear_risk(
            engine, KEYS, interactions=pairs, sampling_fraction=0.01
        ),
        "SUDA, sets of up to three columns": lambda: suda(engine, KEYS, max_size=3),
        "SUDA, all sets of six columns": lambda: suda(engine, KEYS[:6]),
        "SUDA, all sets of eight columns": lambda: suda(engine, KEYS),
        "beliefs": lambda: beliefs(engine, KEYS, "salary"),
        "interval disclosure": lambda: interval_disclosure(engine, masked, ["income"]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, nargs="*", default=[30_000, 300_000])
    listed = ", ".join(f'"{name}"' for name in KEYS)
    for n in parser.parse_args().rows:
        table = people(n)
        with duckdb.connect(config={"threads": 1}) as connection:
            connection.register("people", table)
            grouped = connection.sql(f"SELECT {listed}, count(*) AS n FROM people GROUP BY ALL")
            group_by = best_of_three(grouped.fetchnumpy)
        risk = identity_risk(table, KEYS)
        print(f"{n:,} records, {risk.classes:,} classes of {len(KEYS)} columns, {risk.uniques:,} uniques")
        print(f"{'':<36} {'CPU s':>8} {'× group-by':>11}")
        print(f"{'GROUP BY':<36} {group_by:>8.3f} {1:>11.1f}")
        for figure_name, measure in figures(table).items():
            seconds = best_of_three(measure)
            print(f"{figure_name:<36} {seconds:>8.3f} {seconds / group_by:>11.1f}")
        print()


if __name__ == "__main__":
    main()
