"""Adult, 30,162 records: what joining nearest records loses there, far less than any full-domain generalization."""

import pytest

import shoal
from adult import N, adult_policy

LONG = [pytest.param(*each, marks=pytest.mark.long) for each in (("forest_generalize", 0.0963), ("cover", 0.2951))]


@pytest.mark.parametrize(("algorithm", "loss"), [("forest", 0.2108), *LONG])
def test_adult_loses_what_was_measured(shared, algorithm, loss):
    folder = shared / "data" / "adult"
    release = shoal.anonymize(folder / "adult.csv", adult_policy(folder, algorithm=algorithm))
    assert release.measured["k"] >= 5
    assert release.suppressed == 0
    assert release.table.num_rows == N
    assert round(release.loss["loss"], 4) == loss
