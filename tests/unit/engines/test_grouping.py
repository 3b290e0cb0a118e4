"""Rows of anything a user names, as one Ibis table."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import shoal
from shoal.engines.grouping import Groupable, groupable
from shoal.engines.opening import engine_of, opened

ROWS = pa.table(
    {"town": ["A", "B", "A", None], "age": ["31", "n/a", " 3.4e1 ", "7"], "paid": ["1.000,5", "-", "2", "3"]}
)
POLICY = shoal.Policy.of(
    {
        "columns": {
            "town": {"role": "quasi"},
            "age": {"role": "sensitive"},
            "paid": {"role": "plain", "decimal": ",", "thousands": "."},
        },
        "missing": ["-", "7"],
        "require": [{"model": "k-anonymity", "k": 2}],
    }
)


def by_town(rows: Groupable) -> dict[str | None, tuple[int, float | None, float | None]]:
    table = rows.table
    query = table.group_by("town").agg(n=table.count(), age=rows.number("age").sum(), paid=rows.number("paid").sum())
    return {row["town"]: (row["n"], row["age"], row["paid"]) for row in rows.fetch(query).to_pylist()}


def places(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "towns.csv"
    path.write_text('town;age;paid\nA;31;"1.000,5"\nB;n/a;-\nA; 3.4e1 ;2\n;7;3\n', encoding="utf-8")
    with duckdb.connect(tmp_path / "towns.db") as con:
        con.register("rows", ROWS)
        con.execute("CREATE TABLE towns AS FROM rows")
    return {
        "frame": ROWS,
        "pandas": ROWS.to_pandas(),
        "path": path,
        "engine": engine_of(ROWS),
        "duckdb": opened(str(path), engine="duckdb"),
        "database": f"duckdb://{tmp_path / 'towns.db'}#towns",
        "tally": opened(str(path), engine="duckdb").tally(["town", "age", "paid"]),
    }


def test_every_source_gives_the_same_groups(tmp_path: Path) -> None:
    expected = {"A": (2, 65.0, 1002.5), "B": (1, None, None), None: (1, None, 3.0)}
    for name, data in places(tmp_path).items():
        assert by_town(groupable(data, POLICY)) == expected, name


def test_without_a_policy_cells_are_read_as_they_are() -> None:
    found = by_town(groupable(ROWS))
    assert found == {"A": (2, 65.0, 2.0), "B": (1, None, None), None: (1, 7.0, 3.0)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-.5", -0.5),
        ("+2.", 2),
        ("1e2", 100),
        ("\t7\n", 7),
        ("1e999", None),
        ("inf", None),
        ("nan", None),
        ("0x1f", None),
        ("1_000", None),
        ("", None),
        ("1 2", None),
        ("٣", None),
        ("9" * 200, None),
        ("1\n2", None),
    ],
)
def test_texts_are_numbers_only_in_plain_notation(text: str, value: float | None) -> None:
    rows = groupable(pa.table({"x": [text]}))
    assert rows.fetch(rows.table.select(x=rows.number("x")))["x"].to_pylist() == [value]


def test_numbers_of_every_type() -> None:
    from datetime import date
    from decimal import Decimal

    rows = groupable(
        pa.table(
            {
                "whole": pa.array([2**60 + 1, None], pa.int64()),
                "float": [float("nan"), 0.5],
                "exact": [Decimal("0.10"), None],
                "flag": [True, None],
                "day": [date(2020, 1, 1), None],
            }
        )
    )
    found = rows.fetch(rows.table.select(**{name: rows.number(name) for name in rows.columns})).to_pylist()
    assert found == [
        {"whole": 2**60 + 1, "float": None, "exact": Decimal("0.10"), "flag": 1, "day": None},
        {"whole": None, "float": 0.5, "exact": None, "flag": None, "day": None},
    ]


def test_an_unknown_column_is_named_and_no_value_is_shown() -> None:
    with pytest.raises(shoal.DataError, match="no column 'wage'") as raised:
        groupable(ROWS).require(["age", "wage"])
    assert "31" not in str(raised.value)


def test_a_query_may_return_no_rows() -> None:
    rows = groupable(ROWS)
    assert rows.fetch(rows.table.filter(rows.table.town == "C").select("town")).num_rows == 0


def test_the_fingerprint_is_that_of_the_file_or_frame(tmp_path: Path) -> None:
    found = {name: groupable(data).fingerprint for name, data in places(tmp_path).items()}
    assert found["path"] == found["duckdb"] == found["tally"] != found["frame"]
    assert found["frame"] == found["engine"]
    assert found["database"] == ""
