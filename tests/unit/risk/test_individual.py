"""Individual risk: closed forms, limits, households, the global rate."""

import json
from math import log

import numpy as np
import pandas as pd
import pytest

from shoal.errors import MissingValueError, PolicyError
from shoal.risk import individual_risk
from shoal.risk.individual import LARGE, household_risk, risk_of, threshold

approx = pytest.approx


def one(f, F):
    return float(risk_of(np.array([float(f)]), np.array([float(F)]))[0])


@pytest.mark.parametrize("p", [1e-9, 1e-4, 0.1, 0.3, 0.499, 0.5, 0.501, 0.9, 0.999])
def test_closed_forms_for_one_and_two_records(p):
    q = 1 - p
    assert one(1, 1 / p) == approx(-p / q * log(p), rel=1e-12)
    assert one(2, 2 / p) == approx(p / q**2 * (p * log(p) + q), rel=1e-9 if p > 0.9 else 1e-12)


@pytest.mark.parametrize("f", [1, 2, 2.5, 3, 100, 161, 10**6])
def test_where_the_sample_is_the_population_one_in_f(f):
    assert one(f, f) == 1 / f
    assert one(f, f / 2) == 1 / f  # weights below 1 say that fewer people than records have the key


@pytest.mark.parametrize("f", [160, 161, 170, 171, 1_000, 10**6, 10**9])
def test_large_classes_have_a_risk_and_it_is_near_one_in_the_population(f):
    assert one(f, 100 * f) == approx(1 / (100 * (f - 1) + 1), rel=2e-2 / f)


def test_the_ways_to_compute_it_meet():
    for p in (0.01, 0.4999, 0.5):
        at = [one(f, f / p) for f in (LARGE - 1, LARGE - 1e-9, LARGE, LARGE + 1e-9)]
        assert at[1] == approx(at[2], rel=1e-9)
        assert at[3] == approx(at[2], rel=1e-9)
        assert at[0] > at[2]
        assert one(7, 7 / p) == approx(one(7 + 1e-9, (7 + 1e-9) / p), rel=1e-8)
        assert one(1, 1 / p) == approx(one(1 + 1e-9, (1 + 1e-9) / p), rel=1e-7)


def test_records_weights_and_households_of_a_frame():
    frame = pd.DataFrame({"q": list("aabc"), "w": [10, 20, 5, 1], "home": ["h", "i", "h", "j"]})
    risk = individual_risk(frame, ["q"], weight="w", household="home")
    a, b = one(2, 30), one(1, 5)
    assert risk.risks == approx(np.array([a, a, b, 1]))
    assert risk.household == approx(np.array([1 - (1 - a) * (1 - b), a, 1 - (1 - a) * (1 - b), 1]))
    assert risk.expected == approx(2 * a + b + 1)
    assert risk.rate == approx((2 * a + b + 1) / 4)
    assert risk.household_expected == approx(risk.household.sum())
    assert risk.at_risk(b) == 1
    figures = json.loads(json.dumps(risk.as_dict()))
    assert (figures["records"], figures["max"]) == (4, 1.0)


def test_without_weights_one_in_f():
    risk = individual_risk(pd.DataFrame({"q": list("aab")}), ["q"])
    assert risk.risks.tolist() == [0.5, 0.5, 1]
    assert risk.household is None
    assert risk.as_dict()["household_expected"] is None


def test_nulls_that_match_anything_lower_the_risk():
    frame = pd.DataFrame({"a": ["x", "x", None], "b": ["1", "2", "1"], "w": [10, 10, 10]})
    as_value = individual_risk(frame, ["a", "b"], weight="w").risks
    half = individual_risk(frame, ["a", "b"], weight="w", nulls="wildcard", alpha=0.5).risks
    full = individual_risk(frame, ["a", "b"], weight="w", nulls="wildcard").risks
    assert as_value[0] > half[0] > full[0] == approx(one(2, 20))
    assert half[0] == approx(one(1.5, 15))
    assert as_value[1] == half[1] == full[1]


def test_a_household_of_many_small_risks_keeps_their_digits():
    risks = np.full(3, 1e-14)
    assert household_risk(risks, np.zeros(3, np.int32)) == approx(np.full(3, 3e-14), rel=1e-12)


def test_the_threshold_reaches_the_rate():
    risks = np.array([0.01, 0.02, 0.1, 0.5, 1.0])
    for rate in (0.001, 0.01, 0.018, 0.1, 0.3, 0.3259):
        limit = threshold(risks, rate)
        assert np.minimum(risks, limit).mean() == approx(rate, rel=1e-12)
    assert threshold(risks, 0.326) == 1
    assert threshold(risks, 1) == 1
    with pytest.raises(PolicyError, match="rate"):
        threshold(risks, 0)


def test_records_without_a_household_are_counted_not_shown():
    frame = pd.DataFrame({"q": list("ab"), "home": ["h", None]})
    with pytest.raises(MissingValueError, match=r"column 'home': 1 of 2 records"):
        individual_risk(frame, ["q"], household="home")
