"""A backend is one class and one line: SQLite, as a contributor would add it."""

import contextlib
import hashlib
import secrets
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.engines import backends
from shoal.engines.backends.base import Backend
from shoal.engines.opening import opened
from shoal.engines.sql import quoted
from shoal.errors import DataError, OutputError

LARGEST = 150  # lines of a backend

# Ibis reads SQLite through pandas, which announces what its next version will change.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


class SQLite(Backend):
    """Tables of a file, without a server."""

    name = "SQLite"

    def __init__(self, backend: Any) -> None:
        super().__init__(backend)
        backend.con.isolation_level = None  # transactions begin where we say so
        backend.con.create_function("md5", 1, lambda text: hashlib.md5(text.encode()).hexdigest(), deterministic=True)

    def upload(self, table: pa.Table, types: Mapping[str, Any]) -> Any:
        """Row by row, as Ibis cannot give Arrow tables to SQLite."""
        name = f"shoal_{secrets.token_hex(8)}"
        with self.failing("take the mapping"):
            insert(self.ibis.con, f"TEMP TABLE {name}", name, table)
            return self.ibis.table(name)

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Callable[[str], Any]]:
        """Ibis ends a transaction of SQLite with each question that it asks: what was made is dropped instead."""
        before = set(self.tables(None))
        try:
            yield self.ibis.con.execute
        except BaseException:
            for name in set(self.tables(None)) - before:
                self.ibis.con.execute(f"DROP TABLE {quoted(name)}")
            raise


def insert(con: Any, what: str, name: str, table: pa.Table) -> None:
    kinds = ["INTEGER" if pa.types.is_integer(field.type) else "TEXT" for field in table.schema]
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in zip(table.column_names, kinds, strict=True))
    con.execute(f"CREATE {what} ({columns})")
    rows = (tuple(row.values()) for row in table.to_pylist())
    con.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(kinds))})", rows)


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(backends.BACKENDS, "sqlite", (f"{__name__}:SQLite", ("sqlite",)))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])


def people(n: int = 240) -> pa.Table:
    return pa.table({
        "name": [f"person {i}" for i in range(n)],
        "age": pa.array([20 + i * 7 % 50 for i in range(n)], pa.int64()),
        "zip": [f"02{130 + i % 9}" for i in range(n)],
        "disease": [("flu", "gout", "cold", None)[i % 4] for i in range(n)],
    })  # fmt: skip


def policy(algorithm: str) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"algorithm": algorithm, "max_suppression": 0.05},
    })  # fmt: skip


def loaded(folder: Path) -> str:
    with contextlib.closing(sqlite3.connect(folder / "people.db")) as con:
        insert(con, "TABLE people", "people", people())
        con.commit()
    return f"sqlite://{folder / 'people.db'}"


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian_relaxed", "suppress_cells"])
def test_a_database_that_shoal_never_saw_makes_the_release_of_memory(tmp_path: Path, algorithm: str) -> None:
    engine = opened(loaded(tmp_path), table="people")
    there, here = shoal.anonymize(engine, policy(algorithm)), shoal.anonymize(people(), policy(algorithm))
    there.save("table:released")
    written = engine.backend.ibis.table("released").to_pyarrow()
    assert sorted(map(repr, written.to_pylist())) == sorted(map(repr, here.rows.table.to_pylist()))
    assert there.verdicts.same(here.verdicts)
    with pytest.raises(OutputError, match="exists"):
        there.save("table:released")


def test_a_uri_and_an_ibis_table_find_it(tmp_path: Path) -> None:
    uri = loaded(tmp_path)
    assert (
        shoal.measure(f"{uri}#people", quasi=["age", "zip"])["k"] == shoal.measure(people(), quasi=["age", "zip"])["k"]
    )
    with pytest.raises(DataError, match="has no table 'nobody'"):
        opened(uri, table="nobody")


def test_every_backend_is_short() -> None:
    for module, _ in (value[0].split(":") for name, value in backends.BACKENDS.items() if name != "sqlite"):
        path = Path(shoal.__file__).parent.joinpath(*module.split(".")[1:]).with_suffix(".py")
        assert len(path.read_text(encoding="utf-8").splitlines()) < LARGEST, path.name
