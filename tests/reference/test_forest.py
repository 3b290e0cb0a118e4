"""Adult, 30,162 records: what joining nearest records loses there, far less than any full-domain generalization."""

import pytest

import shoal

COLUMNS = [
    "age",
    "education",
    "marital-status",
    "native-country",
    "occupation",
    "race",
    "salary-class",
    "sex",
    "workclass",
]


@pytest.mark.parametrize(("algorithm", "loss"), [("forest", 0.2108), ("forest_generalize", 0.0963), ("cover", 0.2951)])
def test_adult_loses_what_was_measured(shared, algorithm, loss):
    folder = shared / "data" / "adult"
    fields = {
        "columns": {name: {"role": "quasi", "hierarchy": f"adult_hierarchy_{name}.csv"} for name in COLUMNS},
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"algorithm": algorithm},
    }
    release = shoal.anonymize(folder / "adult.csv", shoal.Policy.of(fields, folder))
    assert release.measured["k"] >= 5
    assert release.suppressed == 0
    assert release.table.num_rows == 30_162
    assert round(release.loss["loss"], 4) == loss
