"""What is encrypted, and what is refused without a word about the values."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from shoal import he
from shoal.engines.opening import opened
from shoal.errors import CiphertextError, DataError, MissingValueError, PolicyError
from shoal.results.he.container import read_container, write_container

Pairs = dict[str, tuple[he.EncryptionKey, he.EncryptionKey]]

PATIENTS = pa.table(
    {"age": [31, 45, 28, 70], "cost": ["100.5", "2000", "33.25", ""], "ill": ["yes", "no", "yes", None]}
)


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        ({}, PolicyError, "no columns to encrypt"),
        ({"bounds": {"age": (0, 50)}}, DataError, "column 'age': 1 of 4 rows are out of its bounds"),
        ({"bounds": {"age": (50, 0)}}, PolicyError, "bounds or decimals of 'age' are not valid"),
        ({"bounds": {"age": ("a", 1)}}, PolicyError, "bounds of 'age' must be numbers"),
        ({"bounds": {"age": (0, 10**18)}}, PolicyError, "too wide"),
        ({"bounds": {"weight": (0, 50)}}, DataError, "no column 'weight'"),
        ({"bounds": {"cost": (0, 9999)}}, DataError, "column 'cost' has values with more than 0 decimals"),
        ({"bounds": {"cost": (0, 9999)}, "decimals": {"cost": 2}}, MissingValueError, "1 of 4 rows have no value"),
        ({"bounds": {"ill": (0, 1)}}, DataError, "column 'ill' has values that are not numbers"),
        ({"bounds": {"age": (0, 99)}, "decimals": {"cost": 2}}, PolicyError, "'cost', which has no bounds"),
        ({"indicators": [("ill", "yes"), ("ill", "yes")]}, PolicyError, "the same name"),
    ],
)
def test_bad_input_names_the_column_and_no_value(
    given: dict[str, Any], kind: type[Exception], told: str, pairs: Pairs
) -> None:
    with pytest.raises(kind, match=told) as error:
        he.encrypt(PATIENTS, pairs["bfv"][1], **given)
    assert "70" not in str(error.value)
    assert "33.25" not in str(error.value)


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
@pytest.mark.parametrize("huge", ["1e999999999", "1e350", "-1e-999999999", "inf", "nan"])
def test_numbers_without_end_are_refused(huge: str, scheme: str, pairs: Pairs) -> None:
    kind = DataError if huge != "nan" else (DataError, MissingValueError)
    with pytest.raises(kind, match=r"column 'age'|no value"):
        he.encrypt(pa.table({"age": ["31", huge]}), pairs[scheme][1], bounds={"age": (0, 120)})


def test_decimals_are_for_the_exact_scheme(pairs: Pairs) -> None:
    with pytest.raises(PolicyError, match="scheme bfv"):
        he.encrypt(PATIENTS, pairs["ckks"][1], bounds={"age": (0, 99)}, decimals={"age": 1})


def test_rows_without_a_value_are_left_out_on_request_and_the_others_counted(pairs: Pairs) -> None:
    secret, public = pairs["bfv"]
    bounds = {"age": (0, 120), "cost": (0, 9999)}
    made = he.encrypt(
        PATIENTS, public, bounds=bounds, decimals={"cost": 2}, indicators=[("ill", "yes")], skip_missing=True
    )
    assert made.n_rows == 3
    opened = he.decrypt(he.compute(made, public, sum=["cost", "ill=yes"], mean=["age"]), secret)
    assert opened.figures == {"sum of cost": 2133.75, "sum of ill=yes": 2, "mean of age": float(104 / 3)}
    nobody = pa.table({"age": pa.array([None], pa.int64())})
    with pytest.raises(DataError, match="no row has a value"):
        he.encrypt(nobody, public, bounds={"age": (0, 1)}, skip_missing=True)
    with pytest.raises(DataError, match="no rows"):
        he.encrypt(PATIENTS.slice(0, 0), public, bounds={"age": (0, 120)})


def test_the_same_rows_give_other_ciphertexts_each_time(pairs: Pairs) -> None:
    made = [he.encrypt(PATIENTS, pairs["bfv"][1], bounds={"age": (0, 120)}) for _ in range(2)]
    assert made[0].chunks["age"] != made[1].chunks["age"]


def test_a_saved_table_is_read_without_a_key(pairs: Pairs, tmp_path: Path) -> None:
    made = he.encrypt(PATIENTS, pairs["bfv"][1], bounds={"age": (0, 120)})
    read = he.EncryptedTable.load(made.save(tmp_path / "a.encrypted"))
    assert (read.key, read.columns, read.n_rows, read.chunks) == (made.key, made.columns, made.n_rows, made.chunks)
    header, parts = read_container(tmp_path / "a.encrypted", "table")
    for change in (
        {"rows": 10**6},
        {"rows": 0},
        {"rows": "x"},
        {"columns": []},
        {"columns": [{"name": "age", "low": "0", "high": "1e99999999", "decimals": 0}]},
        {"columns": [{"name": "age", "low": "0", "high": "1", "decimals": 10**9}]},
        {"parameters": header["parameters"] | {"degree": 4096}},
        {"parameters": None},
    ):
        path = write_container(tmp_path / "forged", {**header, **change}, parts, force=True)
        with pytest.raises(CiphertextError):
            he.EncryptedTable.load(path)


def test_rows_of_a_database_are_summed_and_get_no_scores(pairs: Pairs, tmp_path: Path) -> None:
    secret, public = pairs["bfv"]
    with duckdb.connect(str(tmp_path / "a.db")) as base:
        base.execute("create table patients as select unnest([31, 45, 28, 70]) as age")
    made = he.encrypt(opened(f"duckdb://{tmp_path}/a.db", table="patients"), public, bounds={"age": (0, 120)})
    assert he.decrypt(he.compute(made, public, sum=["age"]), secret).figures == {"sum of age": 174}
    with pytest.raises(PolicyError, match="known order"):
        he.compute(made, public, score={"s": {"age": 2}})
