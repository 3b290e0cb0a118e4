"""Files that DuckDB reads: if the counts cover all columns, the release is written from them, with the same bytes."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.engines import connect, ibis, run_length_rows
from shoal.engines.backends.duckdb import DuckDB
from shoal.errors import VerificationError

N = 240
RNG = np.random.default_rng(5)
ODD = ["=1+1", "'", 'a"b', "a,b", "a\nb", "é", "", "\x1f", None]


def drawn(values: list) -> list:
    return [values[i] for i in RNG.integers(0, len(values), N)]


PEOPLE = pa.table(
    {
        "age": pa.array(RNG.integers(20, 40, N)),
        "town": pa.array(drawn(["A", "B", "C", None]), pa.string()),
        "odd": pa.array(drawn(ODD), pa.string()),
        "who": pa.array([f"p{i // 2}" for i in range(N)], pa.string()),
        "disease": pa.array(drawn(["flu", "hiv", "=x", None]), pa.string()),
    }
)

TYPED = pa.table(
    {
        "age": pa.array(RNG.integers(20, 40, N)),
        "day": pa.array(drawn([dt.date(1999, 1, 1), dt.date(2001, 2, 3), None]), pa.date32()),
        "price": pa.array(drawn([Decimal("1.50"), Decimal("2.00"), None]), pa.decimal128(9, 2)),
        "x": pa.array(drawn([0.1, 0.2, -0.0, float("nan"), None]), pa.float64()),
        "yes": pa.array(drawn([True, False, None]), pa.bool_()),
        "at": pa.array(drawn([dt.datetime(2020, 1, 1, 5), None]), pa.timestamp("us", "UTC")),
        "clock": pa.array(drawn([dt.time(1, 2, 3), None]), pa.time64("us")),
    }
)


def asked(table: pa.Table, algorithm: str = "optimal", **release) -> dict:
    columns = {name: {"role": "sensitive"} for name in table.column_names}
    columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}
    if "town" in columns:
        columns["town"] = {"role": "quasi", "hierarchy": {"flat": True}}
    if "who" in columns:
        columns["who"] = {"role": "identifier"}
    require = [{"model": "k-anonymity", "k": 3}]
    return {
        "columns": columns,
        "require": require,
        "release": {
            "algorithm": algorithm,
            "max_suppression": 0.1,
            **release,
        },
    }


def bytes_of(release: shoal.Release, target: Path) -> bytes:
    release.save(target, force=True)
    return target.read_bytes()


def watched(monkeypatch: pytest.MonkeyPatch) -> list[type]:
    """The kinds of rows that are put in order here, in turn."""
    written: list[type] = []
    inner = DuckDB.write_rows

    def write_rows(backend: DuckDB, rows: run_length_rows.RunLengthRows, *given, **named) -> str:
        written.append(type(rows))
        return inner(backend, rows, *given, **named)

    monkeypatch.setattr(DuckDB, "write_rows", write_rows)
    return written


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(
    ("table", "algorithm", "release"),
    [
        (PEOPLE, "optimal", {}),
        (PEOPLE, "optimal", {"suppressed": "keep", "seed": 7}),
        (PEOPLE, "optimal", {"entity": "who"}),
        (PEOPLE, "mondrian_relaxed", {}),
        (PEOPLE, "optimal", {"ranges": "bounds"}),  # written by the query: bounds are joined there
        (TYPED.drop_columns(["clock"]), "optimal", {}),
        (TYPED, "optimal", {}),  # written by the query: times are counted in another unit
    ],
    ids=["plain", "stars", "persons", "parts", "bounds", "types", "times"],
)
def test_the_bytes_are_those_of_the_query_and_of_memory(
    table: pa.Table, algorithm: str, release: dict, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "people.parquet"
    pq.write_table(table, source)
    policy = shoal.Policy.of(asked(table, algorithm, **release))
    written = watched(monkeypatch)
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / f"there.{suffix}")
    assert written == [run_length_rows.RunLengthRows] * ("ranges" not in release and "clock" not in table.column_names)
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / f"here.{suffix}")
    monkeypatch.setattr(ibis.IbisEngine, "_repeated", lambda *_: None)
    assert there == bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / f"query.{suffix}")
    assert there == bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / f"ibis.{suffix}")


def test_a_folder_holds_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pq.write_table(PEOPLE, source := tmp_path / "people.parquet")
    policy = shoal.Policy.of(asked(PEOPLE))
    release = shoal.anonymize(connect.from_files(source), policy)
    release.save(tmp_path / "counts")
    monkeypatch.setattr(ibis.IbisEngine, "_repeated", lambda *_: None)
    shoal.anonymize(connect.from_files(source), policy).save(tmp_path / "query")
    part = "part-00000.parquet"
    assert (tmp_path / "counts" / part).read_bytes() == (tmp_path / "query" / part).read_bytes()


def test_rows_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people = PEOPLE.drop_columns(["who"])  # without a key by which findings would count persons
    pq.write_table(people, source := tmp_path / "people.parquet")
    policy = shoal.Policy.of(asked(people))
    expected = bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")

    def never(*_: object) -> None:
        raise AssertionError("the rows were joined")

    monkeypatch.setattr(ibis, "join_recoded", never)
    release = shoal.anonymize(connect.from_files(source), policy)
    pq.write_table(people.slice(0, 9), source)  # what is counted is released, whatever becomes of the file
    assert bytes_of(release, tmp_path / "there.parquet") == expected


def test_persons_are_counted_in_the_file_that_was_read(tmp_path: Path) -> None:
    pq.write_table(PEOPLE, source := tmp_path / "people.parquet")
    release = shoal.anonymize(connect.from_files(source), shoal.Policy.of(asked(PEOPLE, entity="who")))
    pq.write_table(PEOPLE.slice(0, N - 9), source)
    with pytest.raises(VerificationError, match="not those whose people were counted"):
        release.save(tmp_path / "there.parquet")
    assert not (tmp_path / "there.parquet").exists()


def test_a_column_that_is_not_counted_is_joined(tmp_path: Path) -> None:
    table = PEOPLE.append_column("note", pa.array([f"n{i % 50}" for i in range(N)]))
    pq.write_table(table, source := tmp_path / "people.parquet")
    given = asked(table)
    given["columns"]["note"] = {"role": "plain"}
    policy = shoal.Policy.of(given)
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.parquet")
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")


@pytest.mark.parametrize(
    ("kind", "algorithm", "release"),
    [
        ("odd", "optimal", {}),
        ("disease", "optimal", {"suppressed": "keep", "seed": 7}),
        ("disease", "optimal", {"entity": "who"}),
        ("disease", "mondrian_relaxed", {}),  # joined: equal tuples become different rows
        ("town", "optimal", {"max_tuples": 150}),
        ("day", "optimal", {}),
        ("price", "optimal", {}),
        ("x", "optimal", {}),
        ("yes", "optimal", {}),
        ("at", "optimal", {}),
        ("clock", "optimal", {}),  # joined: times are counted in another unit
    ],
)
def test_plain_columns_that_repeat_are_counted_again(
    kind: str, algorithm: str, release: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = PEOPLE if kind in PEOPLE.column_names else TYPED.select(["age", kind])
    pq.write_table(table, source := tmp_path / "people.parquet")
    given = asked(table, algorithm, **release)
    given["columns"][kind] = {"role": "plain"}
    policy = shoal.Policy.of(given)
    written = watched(monkeypatch)
    found = []
    for repeats in (True, False):
        monkeypatch.setattr(DuckDB, "repeats", lambda *_, few=repeats: few)
        found.append(bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.parquet"))
    counted = algorithm == "optimal" and kind != "clock"
    assert written == [run_length_rows.RunLengthRows] * counted  # others are joined
    assert found[0] == found[1]
    if "max_tuples" not in release:
        assert found[0] == bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")


@pytest.mark.parametrize(("n_values", "size", "repeats"), [(4, 800, True), (200, 800, False), (4, 2**40, False)])
def test_rows_that_repeat_are_found_by_their_hashes(
    n_values: int, size: int, repeats: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"a": pa.array([i % n_values for i in range(N)]), "b": pa.array(["x"] * N)})
    pq.write_table(table, source := tmp_path / "people.parquet")
    monkeypatch.setattr(run_length_rows, "TUPLE", size)
    engine = connect.from_files(source, memory="1GB")
    assert engine.backend.repeats(engine.normalized([]), N) == repeats
