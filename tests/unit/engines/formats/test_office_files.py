"""Tables from Excel, SPSS, Stata and SAS."""

import datetime

import pandas as pd
import pyreadstat
import pytest

import shoal
from shoal.engines.formats import office_files
from shoal.engines.formats.table_files import read_table_file
from shoal.engines.opening import opened
from shoal.errors import DataError

FRAME = pd.DataFrame(
    {
        "zip": ["02138", "02139", None, "NO", "NA"],
        "age": [31, 34, 36, 38, 51],
        "weight": [60.5, None, 70.0, 80.25, 0.0],
        "seen": pd.to_datetime(["2024-02-29", "2024-03-01", None, "2024-03-02", "2024-03-02"]),
    }
)


def test_excel(tmp_path) -> None:
    path = tmp_path / "people.xlsx"
    with pd.ExcelWriter(path) as book:
        FRAME.to_excel(book, sheet_name="people", index=False)
        FRAME.to_excel(book, sheet_name="others", index=False)
    found = read_table_file(path)
    assert found.table["zip"].to_pylist() == ["02138", "02139", None, "NO", "NA"]
    assert found.table["age"].to_pylist() == [31, 34, 36, 38, 51]
    assert found.table["seen"].to_pylist()[:3] == [
        datetime.date(2024, 2, 29),
        datetime.date(2024, 3, 1),
        None,
    ]
    assert "2 sheets; the first was read" in found.notes[0]


@pytest.mark.parametrize(("suffix", "write"), [(".sav", pyreadstat.write_sav), (".dta", pyreadstat.write_dta)])
def test_spss_and_stata(tmp_path, suffix: str, write) -> None:
    path = tmp_path / f"people{suffix}"
    frame = FRAME.assign(zip=FRAME["zip"].fillna("x")).drop(columns="seen")
    write(frame, str(path))
    found = read_table_file(path).table
    assert found["zip"].to_pylist() == ["02138", "02139", "x", "NO", "NA"]
    assert found["age"].to_pylist() == [31, 34, 36, 38, 51]
    assert found["weight"].to_pylist() == [60.5, None, 70.0, 80.25, 0.0]
    policy = shoal.Policy.of(
        {
            "columns": {
                "zip": {"role": "identifier"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}},
                "weight": {"role": "plain"},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
            "release": {"max_suppression": 0.2},
        }
    )
    assert shoal.anonymize(path, policy).measured["k"] >= 2


def test_sas_transport(tmp_path) -> None:
    path = tmp_path / "people.xpt"
    pyreadstat.write_xport(FRAME[["age"]], str(path))
    assert read_table_file(path).table["age"].to_pylist() == [31, 34, 36, 38, 51]


@pytest.mark.parametrize("name", ["people.xlsx", "people.sav", "people.sas7bdat"])
def test_files_that_are_none_of_these(tmp_path, name: str) -> None:
    (tmp_path / name).write_bytes(b"not what it says: secret")
    with pytest.raises(DataError, match="not a complete") as caught:
        read_table_file(tmp_path / name)
    assert "secret" not in str(caught.value)


def test_a_package_that_is_not_there_is_named(tmp_path, monkeypatch) -> None:
    def none(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(office_files, "import_module", none)
    for name, extra in (("a.xlsx", "excel"), ("a.sav", "statistics")):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(DataError, match=rf"shoal\[{extra}\]"):
            read_table_file(tmp_path / name)


def test_these_are_read_into_memory_whatever_is_asked(tmp_path) -> None:
    path = tmp_path / "people.xlsx"
    FRAME.to_excel(path, index=False)
    for options in ({"memory": "1GB"}, {"engine": "duckdb"}):
        assert opened(str(path), **options).columns == list(FRAME.columns)
