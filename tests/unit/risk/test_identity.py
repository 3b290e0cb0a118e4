"""Prosecutor, journalist and marketer risk, counted by hand."""

import json

import numpy as np
import pandas as pd
import pytest

from shoal.errors import DataError, PolicyError
from shoal.risk import identity_risk

approx = pytest.approx

# Classes of 4, 2, 1 and 1 records.
SAMPLE = pd.DataFrame({"sex": list("ffffmmfm"), "age": [20, 20, 20, 20, 20, 20, 30, 30]})
# 8 like the first class, 2 like the second, 5 like the third, 1 like the last, and somebody else.
PEOPLE = pd.DataFrame({"sex": list("f" * 8 + "mm" + "f" * 5 + "m" + "m"), "age": [20] * 10 + [30] * 6 + [40]})


def test_the_prosecutor_guesses_within_the_class():
    risk = identity_risk(SAMPLE, ["sex", "age"])
    assert (risk.records, risk.classes, risk.uniques) == (8, 4, 2)
    assert risk.prosecutor.max == 1
    assert risk.prosecutor.mean == approx((4 / 4 + 2 / 2 + 1 + 1) / 8)
    assert risk.marketer == 4 / 8
    assert risk.journalist is None
    assert risk.prosecutor_risks[risk.class_of].tolist() == [0.25] * 4 + [0.5] * 2 + [1, 1]


def test_the_journalist_guesses_within_the_population():
    risk = identity_risk(SAMPLE, ["sex", "age"], population=PEOPLE)
    assert risk.journalist_risks[risk.class_of] == approx(np.array([1 / 8] * 4 + [1 / 2] * 2 + [1 / 5, 1]))
    assert risk.journalist.max == 1
    assert risk.journalist.mean == approx((4 / 8 + 2 / 2 + 1 / 5 + 1) / 8)


def test_a_key_that_the_population_lacks_is_as_risky_as_can_be():
    risk = identity_risk(SAMPLE, ["sex", "age"], population=PEOPLE[PEOPLE["age"] < 30])
    assert risk.journalist_risks[risk.class_of][-2:].tolist() == [1, 1]


def test_bands_hold_every_record_once_and_their_upper_end():
    risk = identity_risk(SAMPLE, ["sex", "age"], thresholds=[0.25, 0.5])
    assert [(band.above, band.upto, band.records) for band in risk.prosecutor.bands] == [
        (0, 0.25, 4),
        (0.25, 0.5, 2),
        (0.5, 1, 2),
    ]
    assert sum(band.share for band in risk.prosecutor.bands) == 1


def test_at_risk_is_over_the_threshold_not_at_it():
    risk = identity_risk(SAMPLE, ["sex", "age"])
    assert risk.at_risk(0.25) == 4 / 8
    assert risk.at_risk(0.2) == 1
    assert risk.at_risk(1) == 0


@pytest.mark.parametrize("k", [3, 7, 9, 11, 20, 49, 100])
def test_a_class_of_k_is_not_over_one_in_k(k):
    frame = pd.DataFrame({"q": ["a"] * k})
    assert identity_risk(frame, ["q"]).at_risk(1 / k) == 0
    assert identity_risk(frame, ["q"]).at_risk(1 / (k + 1)) == 1


def test_many_records_of_one_person_are_one_person():
    frame = SAMPLE.assign(who=["p", "p", "p", "q", "r", "r", "s", "t"])
    risk = identity_risk(frame, ["sex", "age"], entity="who")
    assert risk.prosecutor_risks[risk.class_of].tolist() == [0.5] * 4 + [1] * 4
    assert risk.uniques == 4


def test_nulls_are_a_value_of_their_own():
    frame = pd.DataFrame({"q": ["a", None, None, "a", "a"]})
    assert identity_risk(frame, ["q"]).prosecutor.max == 0.5


def test_plain_values_for_json():
    figures = json.loads(json.dumps(identity_risk(SAMPLE, ["sex", "age"], population=PEOPLE).as_dict()))
    assert figures["journalist"]["max"] == 1
    assert figures["prosecutor"]["bands"][-1]["share"] == 0.25


def test_what_cannot_be_measured_is_said():
    with pytest.raises(PolicyError, match="the table has no column 'zip'"):
        identity_risk(SAMPLE, ["zip"])
    with pytest.raises(PolicyError, match="at least one"):
        identity_risk(SAMPLE, [])
    with pytest.raises(PolicyError, match="list"):
        identity_risk(SAMPLE, "sex")
    with pytest.raises(PolicyError, match="between 0 and 1"):
        identity_risk(SAMPLE, ["sex"], thresholds=[2])
    with pytest.raises(DataError):
        identity_risk(SAMPLE[:0], ["sex"])
