"""What is written for those who stay does not tell of those who are suppressed."""

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
import pytest

import shoal
from examples import some
from shoal.engines.connect import from_files
from shoal.release.replay import described, replay

STAY = [
    {"age": age, "zip": zip_, "disease": disease}
    for age, zip_, disease in [
        ("31", "02138", "flu"), ("33", "02139", "gout"), ("35", "02138", "flu"), ("36", "02139", "gout"),
        ("41", "02141", "flu"), ("44", "02142", "gout"), ("45", "02141", "flu"), ("48", "02142", "gout"),
    ] * 3
]  # fmt: skip
ALONE = {
    "decimals": {"age": "39.5", "zip": "99999", "disease": "flu"},
    "a negative number": {"age": "-5", "zip": "99999", "disease": "flu"},
    "a longer code": {"age": "77", "zip": "02138-1234", "disease": "flu"},
    "a shorter code": {"age": "77", "zip": "02", "disease": "flu"},
}


def policy(algorithm="optimal", **columns):
    return shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "min_level": 1, "hierarchy": {"intervals": [10]}},
                "zip": {"role": "quasi", "min_level": 2, "hierarchy": {"mask": "right"}},
                "disease": {"role": "sensitive"},
            }
            | columns,
            "require": [{"model": "k-anonymity", "k": 3}],
            "release": {"algorithm": algorithm, "max_suppression": 0.1},
        }
    )


def released(rows, asked, engine, tmp_path):
    table = pa.Table.from_pylist(rows)
    if engine == "local":
        return shoal.anonymize(table, asked).table.to_pylist()
    arrow_csv.write_csv(table, tmp_path / "people.csv")
    made = shoal.anonymize(from_files(tmp_path / "people.csv"), asked)
    made.save(tmp_path / "release.parquet", force=True)
    return pq.read_table(tmp_path / "release.parquet").to_pylist()


@pytest.mark.parametrize("algorithm", ["optimal", "local", "top_down"])
@pytest.mark.parametrize("engine", ["local", "duckdb"])
@pytest.mark.parametrize("who", some(ALONE, always=2))
def test_a_suppressed_record_leaves_no_trace_in_the_labels(who, engine, algorithm, tmp_path):
    asked = policy(algorithm)
    without = released(STAY, asked, engine, tmp_path)
    beside = released([*STAY, ALONE[who]], asked, engine, tmp_path)
    assert len(without) == len(beside) == len(STAY)
    assert {row["zip"] for row in without} == {"021**"}
    assert {row["age"] for row in without} == {"30-39", "40-49"}
    assert beside == without


def test_decimals_that_are_released_lie_in_their_intervals():
    rows = [*STAY, {"age": "39.5", "zip": "02138", "disease": "flu"}]
    release = shoal.anonymize(pa.Table.from_pylist(rows), policy())
    assert release.suppressed == 0
    assert set(release.table["age"].to_pylist()) == {"[30, 40)", "[40, 50)"}


def test_a_policy_with_decimals_writes_half_open_intervals_whoever_is_suppressed():
    age = {"role": "quasi", "min_level": 1, "hierarchy": {"intervals": [10], "origin": 0.5}}
    for rows in (STAY, [*STAY, ALONE["decimals"]]):
        release = shoal.anonymize(pa.Table.from_pylist(rows), policy(age=age))
        assert set(release.table["age"].to_pylist()) == {"[30.5, 40.5)", "[40.5, 50.5)"}


def test_safe_harbor_ages_too():
    age = {"role": "quasi", "min_level": 2, "hierarchy": {"safe_harbor": "age"}}
    release = shoal.anonymize(pa.Table.from_pylist([*STAY, ALONE["decimals"]]), policy(age=age))
    assert release.suppressed == 1
    assert set(release.table["age"].to_pylist()) == {"30-39", "40-49"}


def test_a_recoding_does_not_put_decimals_into_whole_numbers():
    release = shoal.anonymize(pa.Table.from_pylist([*STAY, ALONE["decimals"]]), policy())
    kept = described(release)
    assert dict(kept["columns"]["age"]["values"])["36"] == "30-39"
    assert "39.5" not in dict(kept["columns"]["age"]["values"])
    new = replay(kept, pa.Table.from_pylist([*STAY, {"age": "39.5", "zip": "02138", "disease": "flu"}]))
    assert new.unknown == 1
    assert set(new.table["age"].to_pylist()) == {"30-39", "40-49"}


def test_the_one_label_of_a_capped_column_contains_its_values() -> None:
    """With max_level, the label of all is an interval like any other: 9.5 is not in 0-9."""
    rows = pa.table({"x": [9.5, 3, 3, 3, 2]})
    policy = shoal.Policy.parse("""
        columns.x = { role = "quasi", max_level = 1, hierarchy = { intervals = [10, 20] } }
        require   = [{ model = "k-anonymity", k = 5 }]
    """)
    assert set(shoal.anonymize(rows, policy).table["x"].to_pylist()) == {"[0, 10)"}
