"""Uniqueness in the population, counted and estimated."""

import json

import numpy as np
import pandas as pd
import pytest

from shoal.errors import PolicyError
from shoal.risk import population_uniqueness
from shoal.risk.superpopulation import SizeCounts, dankar, pitman, shlosser, slide_negative_binomial, zayatz
from shoal.risk.uniqueness import estimated_uniqueness

approx = pytest.approx

SAMPLE = pd.DataFrame({"q": list("abccd")})


def test_counted_in_the_population():
    people = pd.DataFrame({"q": list("abbccccd")})
    found = population_uniqueness(SAMPLE, ["q"], population=people)
    assert (found.sample_uniques, found.population_uniques, found.absent) == (3, 2, 0)
    assert found.share == 2 / 3
    assert found.risks[found.class_of].tolist() == [1, 1 / 2, 1 / 4, 1 / 4, 1]
    assert json.loads(json.dumps(found.as_dict()))["population_uniques"] == 2


def test_who_is_missing_in_the_population_counts_as_unique():
    found = population_uniqueness(SAMPLE, ["q"], population=pd.DataFrame({"q": list("bbcc")}))
    assert (found.population_uniques, found.absent) == (2, 2)
    assert found.risks[found.class_of].tolist() == [1, 1 / 2, 1 / 2, 1 / 2, 1]


def test_no_sample_uniques_no_share():
    found = population_uniqueness(pd.DataFrame({"q": list("aa")}), ["q"], population=pd.DataFrame({"q": list("aab")}))
    assert found.share == 0


def test_the_size_of_the_sample_can_be_told_in_three_ways():
    frame = pd.DataFrame({"q": list("abccddd"), "w": [10.0] * 7})
    ways = [
        population_uniqueness(frame, ["q"], sampling_fraction=0.1),
        population_uniqueness(frame, ["q"], population_size=70),
        population_uniqueness(frame, ["q"], weight="w"),
    ]
    assert ways[0] == ways[1] == ways[2]
    assert ways[0].population_size == approx(70)


def test_the_whole_population_needs_no_model():
    found = population_uniqueness(SAMPLE, ["q"], sampling_fraction=1)
    assert found.zayatz == found.pitman == found.snb == found.uniques == 3
    assert found.share == 3 / 5


def test_no_uniques_in_the_sample_none_estimated():
    found = population_uniqueness(pd.DataFrame({"q": list("aabb")}), ["q"], sampling_fraction=0.2)
    assert found.uniques == 0


def test_models_without_an_answer_say_so_and_the_rule_falls_to_the_next():
    alone = estimated_uniqueness(np.ones(50, np.int64), 0.05)  # all unique: no likelihood has a maximum
    assert alone.pitman is None
    assert alone.snb is None
    assert (alone.model, alone.uniques) == ("zayatz", approx(50 / 0.05))
    even = estimated_uniqueness(
        np.array([1, 9, 9, 9, 9, 9, 9, 10, 10, 10]), 0.05
    )  # as from a bounded number of classes
    assert even.pitman is None
    assert even.model == "zayatz"
    same = SizeCounts.from_counts(np.array([7]), 0.05)
    assert pitman(same) is None


def test_dankars_rule():
    assert dankar(0.1, 5.0, 9.0, 3.0) == ("pitman", 5.0)
    assert dankar(0.1, None, 9.0, 3.0) == ("zayatz", 9.0)
    assert dankar(0.11, 5.0, 9.0, 3.0) == ("snb", 3.0)
    assert dankar(0.11, 5.0, 2.0, 3.0) == ("zayatz", 2.0)
    assert dankar(0.11, 5.0, 2.0, None) == ("zayatz", 2.0)
    assert dankar(0.11, 5.0, 3.0, 0.0) == ("snb", 0.0)


def test_estimates_stay_within_the_population_whatever_the_sizes():
    rng = np.random.default_rng(5)
    for _ in range(150):
        counts = 1 + rng.negative_binomial(rng.uniform(0.05, 3), rng.uniform(0.002, 0.9), rng.integers(1, 300))
        fraction = float(rng.choice([1e-6, 0.001, 0.01, 0.1, 0.3, 0.9, 0.999]))
        found = estimated_uniqueness(counts, fraction)
        for estimate in (found.zayatz, found.pitman, found.snb):
            assert estimate is None or 0 <= estimate <= found.population_size * (1 + 1e-9)
        assert 0 <= found.share <= 1 + 1e-9


def test_huge_classes_and_populations_lose_no_digits():
    counts = np.array([1] * 40 + [2] * 15 + [3] * 8 + [1_000_000])
    small, large = (SizeCounts.from_counts(counts, 0.1), SizeCounts.from_counts(counts, 1e-5))
    for sample in (small, large):
        assert np.isfinite(zayatz(sample))
        assert np.isfinite(pitman(sample))
        assert np.isfinite(shlosser(sample))
        assert slide_negative_binomial(sample) is None or np.isfinite(slide_negative_binomial(sample))


def test_plain_values_for_json():
    figures = json.loads(json.dumps(estimated_uniqueness(np.array([1, 1, 1, 2, 3]), 0.05).as_dict()))
    assert figures["model"] in ("pitman", "zayatz")
    assert figures["share"] == approx(figures["uniques"] / figures["population_size"])


def test_a_sample_has_one_size_and_is_not_larger_than_the_population():
    with pytest.raises(PolicyError, match="one of"):
        population_uniqueness(SAMPLE, ["q"])
    with pytest.raises(PolicyError, match="one of"):
        population_uniqueness(SAMPLE, ["q"], sampling_fraction=0.1, population_size=50)
    with pytest.raises(PolicyError, match="at most 1"):
        population_uniqueness(SAMPLE, ["q"], population_size=4)
    with pytest.raises(PolicyError, match="above 0"):
        population_uniqueness(SAMPLE, ["q"], sampling_fraction=0)
    with pytest.raises(PolicyError, match="above 0"):
        population_uniqueness(SAMPLE, ["q"], population_size=0)
