"""Agreement patterns, and the Fellegi–Sunter model fitted to them."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import DataError
from shoal.linkage import pattern_counts, patterns, probabilistic_linkage
from shoal.linkage.patterns import PatternCounts
from shoal.linkage.probabilistic import fit_mixture

M, U = np.array([0.95, 0.9, 0.85, 0.92]), np.array([1 / 200, 1 / 100, 1 / 50, 1 / 20])


def simulated(n, seed=0):
    """Pairs of one person agree with M, others by chance with U; a third of the people are not in the release."""
    rng = np.random.default_rng(seed)
    sizes = np.rint(1 / U).astype(int)
    known = rng.integers(0, sizes, (n, 4))
    other = rng.integers(1, sizes, (n, 4))
    release = np.where(rng.random((n, 4)) < M, known, (known + other) % sizes)
    strangers = rng.random(n) < 1 / 3
    release[strangers] = rng.integers(0, sizes, (int(strangers.sum()), 4))
    order = rng.permutation(n)
    truth = np.argsort(order)
    return known, release[order], np.where(strangers, -1, truth)


def test_em_recovers_m_and_u_from_simulated_links():
    known, release, truth = simulated(3000)
    found = probabilistic_linkage(known, release, numeric=[], truth=truth)
    model = found.model
    assert model.converged
    assert model.m == pytest.approx(M, abs=0.04)
    assert model.u == pytest.approx(U, rel=0.03)
    assert model.prevalence * 3000 == pytest.approx((truth >= 0).mean(), abs=0.1)
    assert model.agreement == pytest.approx(np.log2(model.m / model.u))
    assert found.of == (truth >= 0).sum()
    assert found.correct > 0.9 * found.of


def test_expected_errors_stay_within_the_rates_asked_for_and_about_right():
    known, release, truth = simulated(1000)
    found = probabilistic_linkage(known, release, numeric=[], truth=truth, false_link=2e-4, false_non_link=0.1)
    assert 0 < found.false_link <= 2e-4
    assert 0 < found.false_non_link <= 0.1
    false_links = found.pairs["link"] - found.true_pairs["link"]
    assert false_links / (1000 * 1000) == pytest.approx(found.false_link, rel=0.2)
    assert found.true_pairs["non_link"] / found.of == pytest.approx(found.false_non_link, abs=0.05)
    assert sum(found.pairs.values()) == 1000 * 1000
    assert sum(found.true_pairs.values()) == found.of
    linked = found.weights[found.decisions == 1]
    assert linked.min() == found.upper > found.lower == found.weights[found.decisions == -1].max()


def test_rates_that_allow_everything_leave_nothing_to_review():
    known, release, _ = simulated(200)
    found = probabilistic_linkage(known, release, numeric=[], false_link=1.0, false_non_link=1.0)
    assert found.pairs == {"link": 200 * 200, "clerical": 0, "non_link": 0}
    strict = probabilistic_linkage(known, release, numeric=[], false_link=0.0, false_non_link=0.0)
    assert strict.pairs == {"link": 0, "clerical": 200 * 200, "non_link": 0}
    assert (strict.upper, strict.lower) == (math.inf, -math.inf)
    assert not strict.linked.any()
    assert (strict.rows >= 0).any()  # a guess needs no link
    json.dumps(strict.as_dict(), allow_nan=False)


def test_matches_are_no_more_than_people_and_agree_at_least_as_often():
    rng = np.random.default_rng(3)
    for _ in range(10):
        counts = rng.integers(0, 1000, 16)
        n = int(counts.sum())
        model = fit_mixture(PatternCounts(("a", "b", "c", "d"), counts, 40, max(1, n // 40)), max_iterations=300)
        assert (model.m >= model.u).all()
        assert ((model.u > 0) & (model.m < 1)).all()
        assert 0 < model.prevalence <= min(40, max(1, n // 40)) / n * (1 + 1e-12)


def test_a_column_that_tells_nothing_has_no_weight():
    known, release, truth = simulated(500)
    blind = np.column_stack([known, np.ones(500, int)]), np.column_stack([release, np.ones(500, int)])
    with_it = probabilistic_linkage(*blind, numeric=[], truth=truth)
    assert with_it.model.agreement[4] == pytest.approx(0, abs=0.01)
    without = probabilistic_linkage(known, release, numeric=[], truth=truth)
    assert with_it.correct == pytest.approx(without.correct, rel=0.05)


def test_nulls_and_stars_agree_with_nothing():
    known = pd.DataFrame({"x": ["a", None, "*"]})
    release = pd.DataFrame({"x": ["a", None, "*", "***"]})
    assert pattern_counts(known, release).counts.tolist() == [11, 1]


def test_numbers_are_equal_as_numbers_and_text_as_text():
    known = pd.DataFrame({"x": ["39", "039"]})
    release = pd.DataFrame({"x": ["39.0", "039"]})
    # As texts 39.0 is 39 written otherwise, and 039 a code of its own.
    assert pattern_counts(known, release).counts.tolist() == [2, 2]
    assert pattern_counts(known, release, numeric=["x"]).counts.tolist() == [0, 4]


def test_full_agreement_is_consistency_with_the_original():
    policy = shoal.Policy.of(
        {
            "columns": {
                "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
        }
    )
    rng = np.random.default_rng(0)
    original = pd.DataFrame(
        {"age": rng.integers(18, 70, 60), "zip": rng.choice(["35138", "35142", "35199", "94138", "94139"], 60)}
    )
    release = shoal.anonymize(original, policy)
    assert "*" not in set(release.table["age"])
    beside = shoal.compare_with_original(original, release.table, policy)
    counts = pattern_counts(original, release.table, policy=policy)
    assert counts.counts[3] == (beside.originals * beside.candidates).sum()
    assert counts.as_dict()["patterns"]["11"] == counts.counts[3]


def test_a_release_of_mixed_levels_is_compared_pair_by_pair():
    known = pd.DataFrame({"age": [24, 31], "sex": ["F", "M"]})
    release = pd.DataFrame({"age": ["20-29", "20-39", "31"], "sex": ["F", "M", "M"]})
    counts = pattern_counts(known, release)
    pairs = [(24, "F"), (31, "M")]
    cells = [((20, 29), "F"), ((20, 39), "M"), ((31, 31), "M")]
    expected = [0] * 4
    for age, sex in pairs:
        for (first, last), other in cells:
            expected[(first <= age <= last) + 2 * (sex == other)] += 1
    assert counts.counts.tolist() == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"false_link": 1.5}, "false_link"),
        ({"false_non_link": -1}, "false_non_link"),
        ({"smoothing": 0}, "smoothing"),
        ({"max_iterations": 0}, "max_iterations"),
    ],
)
def test_mistakes_are_named(arguments, message):
    with pytest.raises(DataError, match=message):
        probabilistic_linkage(np.zeros((3, 2), int), np.zeros((3, 2), int), **arguments)


def test_what_is_too_large_is_refused(monkeypatch):
    with pytest.raises(DataError, match="17 columns"):
        pattern_counts(np.zeros((2, 17), int), np.zeros((2, 17), int))
    monkeypatch.setattr(patterns, "LARGEST", 3)
    with pytest.raises(DataError, match="one by one"):
        pattern_counts(pd.DataFrame({"x": [1, 2]}), pd.DataFrame({"x": ["1-2", "2-3"]}))


def test_one_pair_is_enough():
    found = probabilistic_linkage(np.array([[1, 2]]), np.array([[1, 2]]), truth="position")
    assert found.of == 1
    assert found.patterns.counts.tolist() == [0, 0, 0, 1]
