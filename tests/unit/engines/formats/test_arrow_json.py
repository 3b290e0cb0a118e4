"""Feather files, JSON lines, and files of DuckDB."""

from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.engines.formats.table_files import read_table_file
from shoal.engines.frames import nested_columns
from shoal.engines.opening import opened
from shoal.errors import DataError

FRAME = pd.DataFrame({"zip": ["02138", None, "NO"], "age": [31, 34, 36], "bmi": [20.5, None, 23.0]})


def test_feather(tmp_path: Path) -> None:
    FRAME.to_feather(tmp_path / "people.feather")
    found = read_table_file(tmp_path / "people.feather").table.to_pydict()
    assert found == {"zip": ["02138", None, "NO"], "age": [31, 34, 36], "bmi": [20.5, None, 23.0]}
    (tmp_path / "cut.feather").write_bytes((tmp_path / "people.feather").read_bytes()[:200])
    with pytest.raises(DataError, match="not a complete Feather file"):
        opened(str(tmp_path / "cut.feather"))


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "people.jsonl"
    lines = (
        '{"zip": "02138", "day": "2024-02-29", "age": 31, "mixed": 1, "tags": ["a"]}',
        "",
        '{"age": 34.5, "mixed": "one", "later": true}',
    )
    path.write_text("\n".join(lines), encoding="utf-8")
    table = read_table_file(path).table
    assert nested_columns(table) == ["tags"]
    assert table.drop_columns(["tags"]).to_pydict() == {
        "zip": ["02138", None],
        "day": ["2024-02-29", None],
        "age": [31.0, 34.5],
        "mixed": ["1", "one"],
        "later": [None, True],
    }


@pytest.mark.parametrize("line", ["[1, 2]", "{", '{"a": 1, "a": 2}', "[" * 100_000])
def test_a_line_that_is_no_object_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "people.ndjson").write_text('{"a": 1}\n' + line)
    with pytest.raises(DataError, match="line 2 is not a JSON object"):
        opened(str(tmp_path / "people.ndjson"))


def test_a_file_of_duckdb_is_opened_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE people AS SELECT unnest([31, 34, 36]) AS age")
    assert opened(str(path)).columns == ["age"]
    assert shoal.measure(path, quasi=["age"])["k"] == 1
    with duckdb.connect(path) as connection:
        connection.execute("CREATE TABLE others AS SELECT 1 AS n")
    with pytest.raises(DataError, match="2 tables: which one"):
        opened(str(path))
    assert opened(str(path), table="others").columns == ["n"]


def test_lists_are_removed_and_nothing_else(tmp_path: Path) -> None:
    ages = [20 + i % 10 for i in range(60)]
    people = pa.table({"age": ages, "ill": list("abc") * 20, "tags": [["x"], ["y", "z"]] * 30})
    release = shoal.anonymize(people, k=3, quasi=["age"], sensitive=["ill"])
    assert release.table.column_names == ["age", "ill"]
    with pytest.raises(DataError, match="'tags' holds nested values"):
        shoal.anonymize(people, k=3, quasi=["age"], sensitive=["ill"], plain=["tags"])


def test_infinity_leaves_a_column_numeric() -> None:
    values = (60 + np.arange(200) % 37 / 2).tolist()
    values[3], values[9] = float("inf"), float("-inf")
    for column in (values, [str(value) for value in values]):
        found = shoal.inspect(pa.table({"weight": column, "sex": ["f", "m"] * 100}), known=["weight", "sex"])
        weight = found.policy.columns["weight"]
        assert weight.cells == "range"
        assert {"inf", "-inf"} <= set(found.policy.missing if weight.missing is None else weight.missing)
        release = shoal.anonymize(pa.table({"weight": column, "sex": ["f", "m"] * 100}), found.policy)
        assert not any("inf" in str(cell) for cell in release.table["weight"].to_pylist())


def test_numbers_of_numpy_are_numbers() -> None:
    people = pa.table({"age": [31, 34, 36, 38], "ill": ["flu", "flu", "hiv", "flu"]})
    policy = {
        "columns": {"age": {"role": "quasi"}, "ill": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": np.int64(2)}, {"model": "t-closeness", "t": np.float32(0.5)}],
    }
    assert shoal.anonymize(people, policy).measured["k"] >= 2
    assert shoal.anonymize(people, k=np.int64(2), quasi=["age"], sensitive=["ill"]).measured["k"] >= 2  # type: ignore[arg-type]
    with pytest.raises(shoal.PolicyError, match="k: expected a whole number, not bool"):
        shoal.anonymize(people, k=True, quasi=["age"])
