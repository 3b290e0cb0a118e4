"""The log-linear model on tables small enough to fit by hand."""

import json
from math import exp

import numpy as np
import pandas as pd
import pytest

from shoal.errors import DataError, PolicyError
from shoal.risk import log_linear_risk, loglinear

approx = pytest.approx

FRAME = pd.DataFrame({"a": list("xxxxyy"), "b": list("ppqppp"), "c": list("111112")})


def test_main_effects_are_products_of_shares():
    found = log_linear_risk(FRAME, ["a", "b"], sampling_fraction=0.1)
    # Unique is (x,q): λ = 6 · 4/6 · 1/6.
    rate = 4 / 6
    assert found.rates[found.class_of][2] == approx(rate)
    others = rate * 0.9 / 0.1
    assert found.sample_uniques == 1
    assert found.population_uniques == approx(exp(-others))
    assert found.matches == approx((1 - exp(-others)) / others)
    assert found.share == approx(exp(-others))
    assert found.risks[found.class_of].tolist() == approx([0, 0, found.matches, 0, 0, 0])


def test_the_rate_of_the_population_is_that_of_the_sample_by_the_fraction():
    few = log_linear_risk(FRAME, ["a", "b"], sampling_fraction=0.01)
    many = log_linear_risk(FRAME, ["a", "b"], sampling_fraction=0.9)
    assert few.matches < 0.02
    assert many.matches > 0.95
    assert log_linear_risk(FRAME, ["a", "b"], sampling_fraction=1).matches == 1


def test_an_interaction_of_all_columns_fits_the_table_itself():
    found = log_linear_risk(FRAME, ["a", "b"], interactions="all", sampling_fraction=0.1)
    assert found.rates[found.class_of].tolist() == approx([3, 3, 1, 3, 2, 2])
    assert found.converged


def test_columns_that_no_pair_connects_are_independent():
    found = log_linear_risk(FRAME, ["a", "c", "b"], interactions=[("b", "a")], sampling_fraction=0.1)
    assert found.rates[found.class_of].tolist() == approx([3 * 5 / 6, 3 * 5 / 6, 5 / 6, 3 * 5 / 6, 2 * 5 / 6, 2 / 6])


def test_a_frame_of_weights_tells_the_fraction():
    frame = FRAME.assign(w=10)
    by_weight = log_linear_risk(frame, ["a", "b"], weight="w")
    assert by_weight.matches == log_linear_risk(FRAME, ["a", "b"], sampling_fraction=0.1).matches
    assert by_weight.matches == log_linear_risk(FRAME, ["a", "b"], population_size=60).matches


def test_no_uniques():
    found = log_linear_risk(pd.DataFrame({"a": list("xxyy")}), ["a"], sampling_fraction=0.1)
    assert (found.population_uniques, found.matches, found.share) == (0, 0, 0)


def test_a_cross_table_too_large_is_refused_with_its_columns():
    frame = pd.DataFrame({name: np.arange(300) for name in "abc"})
    with pytest.raises(DataError, match=r"'a', 'b', 'c' has 27000000 cells"):
        log_linear_risk(frame, ["a", "b", "c"], interactions=[("a", "b"), ("b", "c")], sampling_fraction=0.1)
    assert log_linear_risk(frame, ["a", "b", "c"], sampling_fraction=0.1).sample_uniques == 300


def test_a_fit_that_was_cut_short_says_so(monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 4, 40) for name in "abc"})
    monkeypatch.setattr(loglinear, "ROUNDS", 1)
    assert not log_linear_risk(frame, list("abc"), interactions="all", sampling_fraction=0.1).converged


def test_plain_values_for_json():
    figures = json.loads(json.dumps(log_linear_risk(FRAME, ["a", "b"], sampling_fraction=0.1).as_dict()))
    assert figures["sample_uniques"] == 1


@pytest.mark.parametrize("pairs", [[("a", "a")], [("a", "z")], "some"])
def test_interactions_are_pairs_of_quasi_columns(pairs):
    with pytest.raises(PolicyError, match="interactions"):
        log_linear_risk(FRAME, ["a", "b"], interactions=pairs, sampling_fraction=0.1)
