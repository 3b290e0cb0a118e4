"""Formulas in CSV files: inert to a spreadsheet, and what they were when shoal reads them again."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.engines.connect import from_files
from shoal.engines.formats.formulas import Formulas, unescaped, unescaped_source
from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.release.replay import replay, save_recoding
from shoal.verify.certified import verify_certificate

LINK = '=HYPERLINK("http://example.org","x")'
DANGEROUS = [
    LINK, "=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1+1", "\rabc", " =1", "\u00a0=1", "\n=1", "＝1+1", "＠x", "-inf",
    "-2+3+cmd|' /C calc'!A0", "'=x", "''=x", "+1 call",
]  # fmt: skip
HARMLESS = [
    "-5", "+5", "-0.5", "-1e5", "-1E-5", "-10--5", "-12*", "+39 049 12", "-5 %", "-", "+", "=", "--", "", "plain",
    "a=b", "'quoted'", "'-5", "5", "[-5, 3)", "1-2", "#N/A",
]  # fmt: skip


def policy(**release: Any) -> Policy:
    return Policy.of({
        "columns": {
            "=name": {"role": "quasi"},
            "text": {"role": "sensitive"},
            "number": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": release,
    })  # fmt: skip


def people() -> pa.Table:
    texts = [*DANGEROUS, *HARMLESS, None]
    n = 2 * len(texts)
    return pa.table({"=name": [LINK, "b"] * len(texts), "text": texts * 2, "number": pa.array([-5] * n)})


def cells(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_which_texts_are_formulas() -> None:
    formulas = Formulas()
    written = formulas.escaped(pa.table({"x": DANGEROUS + HARMLESS}))["x"].to_pylist()
    assert written == [f"'{text}" for text in DANGEROUS] + HARMLESS
    assert formulas.cells == {"x": len(DANGEROUS)}
    assert formulas.notes[0].startswith(f"column 'x': {len(DANGEROUS)} cells begin like a formula")


def test_a_release_is_inert_and_read_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "release.csv"
    release = shoal.anonymize(people(), policy())
    certificate = release.save(path)
    rows = cells(path)
    assert rows[0] == ["'=name", "text", "number"]
    assert {row[0] for row in rows[1:]} == {"'" + LINK, "b"}
    assert {row[1] for row in rows[1:]} == {f"'{text}" for text in DANGEROUS} | set(HARMLESS)
    assert {row[2] for row in rows[1:]} == {"-5"}
    n = len(DANGEROUS) * 2
    assert any(f"column 'text': {n} cells begin like a formula" in note["fact"] for note in certificate["findings"])
    again = LocalEngine.of(path)
    assert again.table["text"].to_pylist() == release.table["text"].to_pylist()
    assert again.columns == release.table.column_names
    assert f"column 'text': {n} cells have an apostrophe before a formula, and were read without it" in again.notes
    assert verify_certificate(certificate, path).holds
    assert shoal.check(path, policy(), original=people()).holds


def test_formulas_may_stay_and_parquet_has_none(tmp_path: Path) -> None:
    kept = shoal.anonymize(people(), policy(csv_formulas="keep"))
    assert kept.save(tmp_path / "kept.csv")["findings"] == kept.certificate["findings"]
    assert {row[1] for row in cells(tmp_path / "kept.csv")[1:]} == {*DANGEROUS, *HARMLESS}
    # There are bare formulas in the column: the apostrophes of this file are the data's own.
    assert LocalEngine.of(tmp_path / "kept.csv").table["text"].to_pylist() == kept.table["text"].to_pylist()
    typed = shoal.anonymize(people(), policy())
    assert typed.save(tmp_path / "typed.parquet")["findings"] == typed.certificate["findings"]
    assert "=1+1" in LocalEngine.of(tmp_path / "typed.parquet").table["text"].to_pylist()


def test_new_rows_are_written_so_too(tmp_path: Path) -> None:
    release = shoal.anonymize(people(), policy())
    save_recoding(release, tmp_path / "recoding.json")
    done = replay(tmp_path / "recoding.json", people())
    done.save(tmp_path / "more.csv")
    assert {row[0] for row in cells(tmp_path / "more.csv")[1:]} == {"'" + LINK, "b"}


def test_an_engine_writes_so_too(tmp_path: Path) -> None:
    ibis = pytest.importorskip("ibis")
    release = shoal.anonymize(ibis.memtable(people()), policy())
    certificate = release.save(tmp_path / "release.csv")
    local = shoal.anonymize(people(), policy())
    local.save(tmp_path / "local.csv")
    assert sorted(cells(tmp_path / "release.csv")) == sorted(cells(tmp_path / "local.csv"))
    assert any("column 'text'" in note["fact"] for note in certificate["findings"])


alike = st.sampled_from(["=x", "'=x", "''=x", "-5", "'-5", "x"])
texts = st.lists(alike | st.none() | st.text("'=+-@\t\r a1.*", max_size=6), min_size=1, max_size=12)


@given(texts)
def test_what_was_escaped_can_be_undone_in_memory_and_in_sql(values: list[str | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.string())})
    formulas = Formulas()
    escaped = formulas.escaped(table)
    assert unescaped(escaped)[0].equals(table)
    assert len(set(escaped["x"].to_pylist())) == len(set(values))
    with duckdb.connect() as connection:
        connection.register("there", escaped)
        found = connection.sql(f"SELECT x FROM {formulas.undone('there', ['x'])}").to_arrow_table()
    assert found["x"].to_pylist() == values


@given(texts)
def test_reading_never_makes_two_texts_one(values: list[str | None]) -> None:
    read = unescaped(pa.table({"x": pa.array(values, pa.string())}))[0]["x"].to_pylist()
    assert len(set(read)) == len(set(values))


@given(texts, st.sampled_from(["x", "=x", "'=x", "'x"]), st.sampled_from(["y", "=y", "'=y"]))
def test_duckdb_reads_as_memory_does(values: list[str | None], first: str, second: str) -> None:
    table = pa.table({first: pa.array(values, pa.string()), second: pa.array(values[::-1], pa.string())})
    expected, notes = unescaped(table)
    with duckdb.connect() as connection:
        connection.register("there", table)
        source, said, n = unescaped_source(
            lambda query: connection.execute(query).fetchall()[0], "there", [first, second]
        )
        found = connection.sql(f"FROM {source}").to_arrow_table()
    assert found.to_pydict() == expected.to_pydict()
    assert said == notes
    assert n == len(values)


def test_a_file_read_in_pieces_gives_the_same_release(tmp_path: Path) -> None:
    shoal.anonymize(people(), policy()).save(tmp_path / "people.csv")
    shoal.anonymize(tmp_path / "people.csv", policy()).save(tmp_path / "local.csv")
    engine = from_files(tmp_path / "people.csv", memory="1GB")
    shoal.anonymize(engine, policy()).save(tmp_path / "pieces.csv")
    assert (tmp_path / "pieces.csv").read_bytes() == (tmp_path / "local.csv").read_bytes()


def test_names_of_columns_are_not_confused() -> None:
    table = pa.table({"'=a": [1], "=a": [2]})
    assert unescaped(table)[0].column_names == ["'=a", "=a"]
    assert unescaped(Formulas().escaped(table))[0].column_names == ["'=a", "=a"]
    assert Formulas().escaped(table).column_names == ["''=a", "'=a"]
