"""What the tests of engines share."""

import datetime
import decimal
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa


@dataclass(frozen=True)
class Bench:
    """An engine under test: how a table gets in, and how one comes out."""

    name: str
    con: Any
    load: Callable[[pa.Table], Any]  # an Ibis table

    def read(self, table: str) -> pa.Table:
        if self.name == "spark":  # Ibis would take the way through pandas
            return self.con._session.table(table).toArrow()
        return self.con.table(table).to_pyarrow()

    def tables(self) -> set[str]:
        if self.name == "duckdb":
            return {name for (name,) in self.con.con.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        return set(self.con.list_tables())


@cache
def nasty(n: int = 160) -> pa.Table:
    """Values that engines like to take for others."""
    draw = np.random.default_rng(7)

    def some(*values: Any) -> list[Any]:
        return [values[i] for i in draw.integers(0, len(values), n)]

    day, moment = datetime.date(1999, 12, 30), datetime.datetime(2024, 2, 29, 23, 59, 59)
    return pa.table(
        {
            "who": [f"person {i // 2}" for i in range(n)],
            "zip": pa.array(some("02138", "02139", "0213", "", None, "é", "e\u0301", " 0213", "NULL", "\\N", '"')),
            "age": pa.array(some(17, 18, 34, 35, None, 2**53, 2**53 + 1), pa.int64()),
            "weight": pa.array(some(-0.0, 0.0, float("nan"), None, 1.5, 1 / 3, 1e300), pa.float64()),
            "birth": pa.array(some(*(day + datetime.timedelta(days=i) for i in range(4)), None), pa.date32()),
            "seen": pa.array(some(moment, moment + datetime.timedelta(microseconds=500_000), None), pa.timestamp("us")),
            "instant": pa.array(some(moment, moment + datetime.timedelta(hours=1)), pa.timestamp("us", "UTC")),
            "paid": pa.array(some(decimal.Decimal("1.50"), decimal.Decimal("-0.05"), None), pa.decimal128(10, 2)),
            "alive": pa.array(some(True, False, None), pa.bool_()),
            "disease": pa.array(some("flu", "", None, "gout", 'Grippe\n"ä"', "a,b;c\t")),
            "score": pa.array(some(-0.0, 0.0, float("nan"), None, 2.0, 1e-7), pa.float64()),
        }
    )
