"""What the tests of engines share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
