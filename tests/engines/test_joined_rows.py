"""Rows that DuckDB joins and sorts with numbers in place of their tuples: the bytes of a release in memory."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.engines import connect, joined_rows, run_length_rows
from shoal.engines.backends import duckdb_files
from shoal.engines.backends.duckdb import DuckDB
from shoal.engines.coded_rows import CodedColumn
from shoal.engines.formats import table_files

N = 30_000
ODD = ["=1+1", "'", 'a"b', "a,b", "a\nb", "é", "e\u0301", "", "\x1f", "NULL", " ", None]


def many(seed: int = 3) -> pa.Table:
    """Two pages, with values that engines tend to confuse, and a plain column in which nearly every row differs."""
    rng = np.random.default_rng(seed)

    def drawn(values: list, kind: pa.DataType) -> pa.Array:
        return pa.array([values[i] for i in rng.integers(0, len(values), N)], kind)

    return pa.table(
        {
            "age": pa.array(rng.integers(20, 60, N), pa.int16()),
            "town": drawn([*"ABCDE", None], pa.string()),
            "odd": drawn(ODD, pa.string()),
            "day": drawn([dt.date(1999, 1, 1), dt.date(2001, 2, 3), None], pa.date32()),
            "price": drawn([Decimal("1.50"), Decimal("-0.10"), None], pa.decimal128(9, 2)),
            "x": drawn([0.1, 1e300, -0.0, 0.0, float("nan"), float("inf"), None], pa.float64()),
            "disease": drawn(["flu", "hiv", "=x", None], pa.string()),
            "note": pa.array([f"n{i}" for i in rng.integers(0, 10**6, N)]),
        }
    )


def asked(*quasi: str, **release) -> shoal.Policy:
    columns = {name: {"role": "plain"} for name in ("town", "odd", "day", "price", "x", "disease", "note")}
    columns |= {name: {"role": "quasi", "hierarchy": {"flat": True}} for name in quasi}
    columns["age"] = {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}
    columns["disease"] = {"role": "sensitive"}
    require = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}]
    return shoal.Policy.of({"columns": columns, "require": require, "release": {"max_suppression": 0.1, **release}})


def bytes_of(release: shoal.Release, target: Path) -> bytes:
    release.save(target, force=True)
    return target.read_bytes()


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> list[joined_rows.JoinedRows]:
    """The queries whose rows were written: plain columns are never counted again."""
    monkeypatch.setattr(DuckDB, "repeats", lambda *_: False)
    found: list[joined_rows.JoinedRows] = []
    inner = duckdb_files.write_in_order

    def write(backend, rows, *given):
        found.append(rows)
        return inner(backend, rows, *given)

    monkeypatch.setattr("shoal.engines.backends.duckdb.write_in_order", write)
    return found


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize(
    "policy",
    [
        asked("town"),
        asked("town", "odd"),
        asked("town", "day", "price", seed=7),
        asked("town", "x"),
        asked("town", suppressed="keep"),
        asked("town", "odd", algorithm="mondrian"),
        asked("town", "odd", algorithm="top_down"),
        asked("day", "price", "x", algorithm="mondrian"),
    ],
    ids=["texts", "odd", "types", "floats", "stars", "cells", "cuts", "typed-cells"],
)
def test_the_bytes_are_those_of_memory(policy: shoal.Policy, suffix: str, tmp_path: Path, joined: list) -> None:
    pq.write_table(many(), source := tmp_path / "people.parquet")
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / f"there.{suffix}")
    assert [type(rows) for rows in joined] == [joined_rows.JoinedRows]
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / f"here.{suffix}")


def test_a_csv_file_is_joined_in_the_same_way(tmp_path: Path, joined: list) -> None:
    table = many().drop_columns(["x", "price"]).slice(0, 3000)
    arrow_csv.write_csv(table, source := tmp_path / "people.csv")
    policy = asked("town", "day")
    kept = {name: column for name, column in policy.columns.items() if name not in ("x", "price")}
    policy = policy.model_copy(update={"columns": kept})
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.csv")
    assert joined
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / "here.csv")


def test_several_row_groups_and_a_folder(tmp_path: Path, joined: list, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "ROW_GROUP", 7_000)
    monkeypatch.setattr(table_files.row_groups, "__defaults__", (7_000,))
    monkeypatch.setattr(joined_rows, "PIECE", 3_000)
    pq.write_table(many(), source := tmp_path / "people.parquet")
    policy = asked("town", "odd")
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.parquet")
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")
    assert pq.read_metadata(tmp_path / "there.parquet").num_row_groups == 5
    shoal.anonymize(connect.from_files(source), policy).save(tmp_path / "folder")
    assert pq.read_table(tmp_path / "folder").equals(pq.read_table(tmp_path / "here.parquet"))


def test_texts_are_written_if_codes_would_give_other_bytes(
    tmp_path: Path, joined: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A label that comes late in a row group makes the ninth: it takes a bit more, which earlier pages do not have."""
    n = 70_000
    rng = np.random.default_rng(1)
    labels = [f"t{i}" for i in rng.integers(0, 8, n)]
    labels[:3] = ["rare"] * 3
    table = pa.table({"town": labels, "note": [f"n{i}" for i in range(n)]})
    pq.write_table(table, source := tmp_path / "people.parquet")
    columns = {"town": {"role": "quasi"}, "note": {"role": "plain"}}
    tried = []
    inner = joined_rows.dictionary_of
    monkeypatch.setattr(joined_rows, "dictionary_of", lambda *given: tried.append(1) or inner(*given))
    for seed in range(12):
        require = [{"model": "k-anonymity", "k": 3}]
        policy = shoal.Policy.of({"columns": columns, "require": require, "release": {"seed": seed}})
        here = bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")
        for sure in (30, 0):  # at 0, codes are tried at any rate
            monkeypatch.setattr(joined_rows, "SURE", sure)
            tried.clear()
            assert here == bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.parquet")
            if sure:
                assert not tried
        if not tried:  # a late one was found, and texts were written instead
            return
    pytest.fail("no order has the rare label late")


def test_texts_are_written_although_most_rows_were_not_fetched_yet(
    tmp_path: Path, joined: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB answers no other query as long as it has rows to return."""
    rng = np.random.default_rng(2)
    n = 400_000
    table = pa.table({"town": [f"t{i}" for i in rng.integers(0, 8, n)], "note": [f"n{i}" for i in range(n)]})
    pq.write_table(table, source := tmp_path / "people.parquet")
    columns = {"town": {"role": "quasi"}, "note": {"role": "plain"}}
    policy = shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 3}]})
    inner, refused = joined_rows.JoinedRows._decoded, []

    def decoded(self, rows, coded):
        if coded and not refused:
            refused.append(len(rows))
            raise run_length_rows.WrittenDifferentlyError
        return inner(self, rows, coded)

    monkeypatch.setattr(joined_rows.JoinedRows, "_decoded", decoded)
    there = bytes_of(shoal.anonymize(connect.from_files(source), policy), tmp_path / "there.parquet")
    assert refused == [table_files.ROW_GROUP]
    assert there == bytes_of(shoal.anonymize(source, policy), tmp_path / "here.parquet")


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "", None]), st.integers(0, 3), st.sampled_from(ODD), st.integers(0, 5)),
        min_size=4,
        max_size=40,
    ),
    st.integers(0, 3),
)
@settings(max_examples=25, deadline=None)
def test_random_tables(tmp_path_factory: pytest.TempPathFactory, rows: list, seed: int) -> None:
    folder = tmp_path_factory.mktemp("random")
    kinds = [pa.string(), pa.int8(), pa.string(), pa.int64()]
    names = ["town", "floor", "note", "n"]
    table = pa.table(
        [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)], names
    )
    pq.write_table(table, source := folder / "people.parquet")
    columns = {name: {"role": "quasi", "hierarchy": {"flat": True}} for name in ("town", "floor")}
    columns |= {"note": {"role": "plain"}, "n": {"role": "plain"}}
    require = [{"model": "k-anonymity", "k": 2}]
    given = {"columns": columns, "require": require, "release": {"max_suppression": 0.3, "seed": seed}}
    policy = shoal.Policy.of(given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DuckDB, "repeats", lambda *_: False)
        there = bytes_of(shoal.anonymize(connect.from_files(source), policy), folder / "there.parquet")
    assert there == bytes_of(shoal.anonymize(source, policy), folder / "here.parquet")


def test_a_file_that_changed_is_not_released(tmp_path: Path, joined: list) -> None:
    pq.write_table(many(), source := tmp_path / "people.parquet")
    release = shoal.anonymize(connect.from_files(source), asked("town"))
    pq.write_table(many().slice(0, N - 9), source)
    with pytest.raises(shoal.VerificationError, match="does not match the expected counts"):
        release.save(tmp_path / "there.parquet")
    assert not (tmp_path / "there.parquet").exists()


@pytest.mark.parametrize(
    ("counts", "alike"),
    [([5000] * 8, True), ([5000] * 9, True), ([5000] * 8 + [1], False), ([5000] * 9 + [1], True), ([9], True)],
)
def test_codes_are_tried_if_rare_values_take_no_further_bit(counts: list, alike: bool) -> None:
    values = pa.array([None, *(f"v{i}" for i in range(len(counts)))])
    column = CodedColumn(values, np.arange(1, len(counts) + 1, dtype=np.int32))
    rows = joined_rows.JoinedRows(None, "", "n", pa.schema([]), {"town": column}, np.array(counts))
    assert rows._is_surely_written_alike("town") == alike
    assert run_length_rows.PAGE == 20_000


def test_rows_that_repeat_are_fewer_draws() -> None:
    drawn = joined_rows._drawn_in_a_page
    assert drawn(np.arange(50_000)) == run_length_rows.PAGE
    assert drawn(np.repeat(np.arange(500), 100)) == run_length_rows.PAGE / 100
    assert drawn(np.repeat(np.arange(10), 4)) == run_length_rows.PAGE / 4


def test_nulls_and_numbers_are_not_written_as_codes() -> None:
    null = CodedColumn(pa.array([None, "a"]), np.array([0, 1], np.int32))
    number = CodedColumn(pa.array([None, 7]), np.array([1, 1], np.int32))
    rows = joined_rows.JoinedRows(None, "", "n", pa.schema([]), {"a": null, "b": number}, np.array([50, 50]))
    assert not rows._is_surely_written_alike("a")
    assert not rows._is_surely_written_alike("b")
