"""If these fail, the bundled table differs from run to run, or its people are not plausible."""

import hashlib
import tomllib
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from shoal.demo.hospital import DISEASES, JOBS, MARITAL, POLICY, hospital, voters
from shoal.errors import DataError
from shoal.hierarchies.builders import build
from shoal.notation import codec
from shoal.policy import Policy


@pytest.fixture(scope="module")
def patients() -> pa.Table:
    return hospital()


def digest(table: pa.Table) -> str:
    rows = "\n".join("\t".join(row.values()) for row in table.to_pylist())
    return hashlib.sha256(rows.encode()).hexdigest()[:16]


def test_a_seed_is_a_table_down_to_the_byte(patients):
    assert digest(patients) == "0c25b5daefe4ffca"
    assert digest(voters(patients)) == "a4fbf153d41c8d60"
    assert digest(hospital(seed=1)) != digest(patients)


def test_everything_is_text_and_nothing_is_missing(patients):
    assert patients.num_rows == 10_000
    assert patients.column_names == ["name", "birth", "zip", "sex", "job", "marital", "disease", "cost"]
    assert all(column.type == pa.string() and column.null_count == 0 for column in patients.columns)


def test_zip_codes_keep_their_zero_share_prefixes_and_differ_in_size(patients):
    sizes = Counter(patients["zip"].to_pylist())
    assert all(len(code) == 5 and code.isdigit() for code in sizes)
    assert 55 <= len(sizes) <= 65
    assert len({code[:3] for code in sizes}) == 8
    assert any(code.startswith("0") for code in sizes)
    assert max(sizes.values()) > 10 * min(sizes.values())


def test_ages_span_a_century(patients):
    years = [int(date[:4]) for date in patients["birth"].to_pylist()]
    assert (min(years), max(years)) == (1925, 2024)
    assert 0.17 < sum(year > 2006 for year in years) / len(years) < 0.23


def test_people_are_plausible(patients):
    for row in patients.to_pylist():
        age = 2024 - int(row["birth"][:4])
        assert (row["job"] == "child") == (age < 6)
        assert row["job"] != "retired" or age >= 40
        assert row["marital"] == "never married" or age >= 18
        assert row["disease"] != "prostate cancer" or (row["sex"] == "male" and age >= 40)
        assert row["disease"] != "breast cancer" or row["sex"] == "female"
        assert row["disease"] != "dementia" or age >= 40
        assert int(row["cost"]) > 0


def test_every_listed_value_occurs(patients):
    for column, listed in (("job", JOBS), ("marital", MARITAL), ("disease", DISEASES)):
        assert set(patients[column].to_pylist()) == set(listed)


def test_costs_follow_the_disease(patients):
    costs = {disease: [] for disease in DISEASES}
    for row in patients.to_pylist():
        costs[row["disease"]].append(int(row["cost"]))
    for disease, (_, _, median) in DISEASES.items():
        middle = sorted(costs[disease])[len(costs[disease]) // 2]
        assert 0.75 * median < middle < 1.25 * median


def test_one_half_of_the_register_are_patients(patients):
    register = voters(patients)
    adults = sum(date < "2007" for date in patients["birth"].to_pylist())
    assert register.column_names == ["name", "birth", "zip", "sex"]
    assert register.num_rows == 2 * round(0.6 * adults)
    assert all(date < "2007" for date in register["birth"].to_pylist())
    known = {tuple(row.values()) for row in patients.select(register.column_names).to_pylist()}
    inside = [tuple(row.values()) in known for row in register.to_pylist()]
    assert sum(inside) == register.num_rows // 2
    assert 0.4 < sum(inside[: len(inside) // 2]) / (len(inside) // 2) < 0.6  # shuffled


def test_no_stranger_shares_name_and_birth_with_a_patient():
    few = hospital(300, seed=4)
    known = {(row["name"], row["birth"]) for row in few.to_pylist()}
    register = voters(few, n=101, seed=9)
    assert register.num_rows == 101
    assert sum((row["name"], row["birth"]) in known for row in register.to_pylist()) == 50
    assert set(register["zip"].to_pylist()) <= set(hospital()["zip"].to_pylist())


def test_a_register_cannot_hold_more_patients_than_there_are():
    with pytest.raises(DataError, match="needs 500 adult patients"):
        voters(hospital(50), n=1000)


def test_a_hospital_may_be_empty():
    assert hospital(0).num_rows == 0
    assert voters(hospital(0)).num_rows == 0


def test_the_policy_names_every_column_and_every_value(patients):
    policy = tomllib.loads(POLICY)
    assert set(policy["columns"]) == set(patients.column_names)
    for column, listed in (("job", JOBS), ("marital", MARITAL)):
        groups = policy["columns"][column]["hierarchy"]["tree"]["*"]
        assert sorted(value for group in groups.values() for value in group) == sorted(listed)
    assert policy["require"][0] == {"model": "k-anonymity", "k": 5}
    assert policy["require"][1] == {"model": "distinct-l-diversity", "column": "disease", "l": 3}


def test_the_hierarchies_of_the_policy_cover_the_patients(patients):
    policy = Policy.parse(POLICY)
    levels = {}
    for name in policy.quasi:
        values = codec.encode_texts(name, patients[name]).texts
        spec = policy.columns[name].hierarchy
        levels[name] = build(name, spec, values, nulls=False, uncovered="error", folder=Path()).n_levels
    assert levels == {"birth": 6, "zip": 6, "sex": 2, "job": 3, "marital": 3}
    assert policy.sensitive == ("disease", "cost")
    assert policy.identifiers == ("name",)
