"""Beliefs before and after, on the lecture's twelve medical records."""

import json

import numpy as np
import pandas as pd
import pytest

from shoal.errors import PolicyError
from shoal.risk import beliefs

approx = pytest.approx

RECORDS = pd.DataFrame({
    "age": ["20-29"] * 4 + ["40-59"] * 4 + ["30-39"] * 4,
    "condition": ["heart", "heart", "viral", "viral", "cancer", "flu", "heart", "flu", *["cancer"] * 4],
})  # fmt: skip


def test_beliefs_in_what_each_record_has():
    found = beliefs(RECORDS, ["age"], "condition")
    beta = {"heart": 3 / 12, "viral": 2 / 12, "cancer": 5 / 12, "flu": 2 / 12}
    assert found.beta[found.entry_of].tolist() == approx([beta[value] for value in RECORDS["condition"]])
    assert found.gamma[found.entry_of].tolist() == approx([1 / 2] * 4 + [1 / 4, 1 / 2, 1 / 4, 1 / 2] + [1] * 4)
    assert found.alpha[found.entry_of].tolist() == [1 / 4] * 12
    assert found.certain == 4


def test_gains_at_most_and_on_average():
    found = beliefs(RECORDS, ["age"], "condition")
    gains = [1 / 4, 1 / 4, 1 / 3, 1 / 3, -1 / 6, 1 / 3, 0, 1 / 3, *[7 / 12] * 4]
    ratios = [2, 2, 3, 3, 3 / 5, 3, 1, 3, *[12 / 5] * 4]
    assert found.gain.max == approx(max(gains))
    assert found.gain.mean == approx(np.mean(gains))
    assert found.gain.max_ratio == approx(3)
    assert found.gain.mean_ratio == approx(np.mean(ratios))
    assert found.whole_gain.max == approx(3 / 4)
    assert found.whole_gain.max_ratio == approx(4)


def test_a_prior_of_ones_own():
    prior = {"heart": 0.5, "viral": 0.25, "cancer": 0.05, "flu": 0.1, "gout": 0.1}
    found = beliefs(RECORDS, ["age"], "condition", prior=prior)
    assert found.whole_gain.max == approx(0.95)
    assert found.whole_gain.max_ratio == approx(20)
    assert found.gain == beliefs(RECORDS, ["age"], "condition").gain


def test_in_one_class_nothing_is_gained_over_the_whole():
    found = beliefs(RECORDS.assign(age="*"), ["age"], "condition")
    assert (found.gain.max, found.gain.mean, found.gain.max_ratio, found.gain.mean_ratio) == approx((0, 0, 1, 1))


def test_a_null_is_a_value_that_can_be_believed_in():
    frame = pd.DataFrame({"q": ["a", "a", "b"], "s": [None, "x", None]})
    found = beliefs(frame, ["q"], "s")
    assert found.gamma[found.entry_of].tolist() == [0.5, 0.5, 1]
    assert found.beta[found.entry_of].tolist() == approx([2 / 3, 1 / 3, 2 / 3])


def test_plain_values_for_json_name_no_value_of_the_data():
    text = json.dumps(beliefs(RECORDS, ["age"], "condition").as_dict())
    assert "heart" not in text
    assert json.loads(text)["certain"] == 4


@pytest.mark.parametrize("prior", [{"heart": 1.0}, dict.fromkeys(["heart", "viral", "cancer", "flu"], 0.3)])
def test_a_prior_must_be_a_distribution_over_the_values(prior):
    with pytest.raises(PolicyError, match="prior") as caught:
        beliefs(RECORDS, ["age"], "condition", prior=prior)
    assert "heart" not in str(caught.value)


def test_a_prior_of_zero_would_make_a_ratio_without_bound():
    with pytest.raises(PolicyError, match="above 0"):
        beliefs(RECORDS, ["age"], "condition", prior={"heart": 0.0, "viral": 0.5, "cancer": 0.25, "flu": 0.25})
