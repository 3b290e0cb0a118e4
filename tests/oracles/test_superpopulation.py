"""Models of the population against direct sums, and against populations that are known."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, hypergeom, nbinom

from shoal.risk.superpopulation import (
    SizeCounts,
    _alpha_slope,
    _theta,
    pitman,
    shlosser,
    slide_negative_binomial,
    snb_parameters,
    zayatz,
)
from shoal.risk.uniqueness import estimated_uniqueness


def chinese_restaurant(rng, theta, alpha, n):
    """Class of each of n people: Pitman's model, person by person."""
    label, size, k = np.empty(n, np.int64), np.zeros(n), 0
    for i, chance in enumerate(rng.random(n)):
        if chance * (theta + i) < theta + alpha * k:
            label[i], k = k, k + 1
        else:
            while True:
                j = label[rng.integers(i)]
                if rng.random() * size[j] >= alpha:
                    break
            label[i] = j
        size[label[i]] += 1
    return label


def sampled(rng, label, fraction):
    counts = np.bincount(rng.choice(label, int(len(label) * fraction), replace=False))
    return SizeCounts.from_counts(counts[counts > 0], fraction)


def log_likelihood(sample, theta, alpha):
    """Of Pitman's sampling formula, term by term."""
    found = np.log(theta + alpha * np.arange(1, sample.u)).sum()
    drawn = np.log(theta + np.arange(1, sample.n)).sum()
    grown = sum(s * np.log(np.arange(1, j) - alpha).sum() for j, s in zip(sample.sizes, sample.classes, strict=True))
    return found - drawn + grown


@pytest.fixture(scope="module")
def pitman_people():
    return chinese_restaurant(np.random.default_rng(3), 100, 0.5, 20_000)


@pytest.mark.parametrize("fraction", [0.02, 0.1, 0.5])
def test_pitmans_parameters_have_the_greatest_likelihood(pitman_people, fraction):
    sample = sampled(np.random.default_rng(0), pitman_people, fraction)
    best = minimize(
        lambda x: -log_likelihood(sample, np.exp(x[0]), 1 / (1 + np.exp(-x[1]))), [3, 0], method="Nelder-Mead"
    )
    alpha = float(1 / (1 + np.exp(-best.x[1])))
    assert _theta(sample, alpha) == pytest.approx(float(np.exp(best.x[0])), rel=0.01)
    assert _alpha_slope(sample, alpha * 0.97) > 0 > _alpha_slope(sample, alpha * 1.03)


def test_the_slopes_are_those_of_the_likelihood():
    sample = SizeCounts.from_counts(np.array([1] * 30 + [2] * 9 + [3] * 4 + [17]), 0.1)
    for alpha in (0.05, 0.4, 0.8):
        theta, h = _theta(sample, alpha), 1e-5
        up, down = log_likelihood(sample, theta, alpha + h), log_likelihood(sample, theta, alpha - h)
        assert (up - down) / (2 * h) == pytest.approx(_alpha_slope(sample, alpha), abs=1e-4)
        up, down = log_likelihood(sample, theta + h, alpha), log_likelihood(sample, theta - h, alpha)
        assert (up - down) / (2 * h) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("fraction", [0.05, 0.1])
def test_pitmans_model_finds_the_uniques_of_its_own_population(pitman_people, fraction):
    truth = (np.bincount(pitman_people) == 1).sum()
    rng = np.random.default_rng(1)
    estimates = [pitman(sampled(rng, pitman_people, fraction)) for _ in range(20)]
    assert np.median(estimates) == pytest.approx(truth, rel=0.1)


def test_zayatz_is_bayes_rule_with_the_hypergeometric():
    sample = SizeCounts.from_counts(np.array([1] * 12 + [2] * 5 + [3, 3, 8, 25]), 0.2)
    population, n = round(sample.population), round(sample.n)
    once = sum(s * hypergeom(population, int(j), n).pmf(1) for j, s in zip(sample.sizes, sample.classes, strict=True))
    assert zayatz(sample) == pytest.approx(12 * (12 * 0.2 / once) / 0.2, rel=1e-9)


@pytest.mark.parametrize(("alpha", "beta"), [(0.5, 0.05), (1.0, 0.1), (2.0, 0.3)])
def test_the_slide_negative_binomial_finds_the_uniques_of_its_own_population(alpha, beta):
    rng = np.random.default_rng(7)
    sizes = 1 + rng.negative_binomial(alpha, beta, 20_000)
    label = np.repeat(np.arange(len(sizes)), sizes)
    sample = sampled(rng, label, 0.6)
    assert shlosser(sample) == pytest.approx(20_000, rel=0.02)
    assert slide_negative_binomial(sample) == pytest.approx((sizes == 1).sum(), rel=0.08)


@pytest.mark.parametrize(("alpha", "beta", "fraction"), [(0.8, 0.2, 0.7), (0.3, 0.05, 0.3), (3.0, 0.5, 0.15)])
def test_the_slide_negative_binomial_has_the_parameters_that_made_the_sample(alpha, beta, fraction):
    # Expected classes of each size in the sample, summed over their sizes in the population.
    F = np.arange(1, 600)
    shares = nbinom.pmf(F - 1, alpha, beta)
    assert shares.sum() == pytest.approx(1)
    sizes = np.arange(1, 120)
    expected = np.array([5_000 * (shares * binom.pmf(f, F, fraction)).sum() for f in sizes])
    sample = SizeCounts(sizes.astype(float), expected, fraction)
    assert snb_parameters(sample, 5_000) == pytest.approx((alpha, beta), rel=1e-5)
    # Shlosser's number of classes is an estimate itself, and the uniques follow it.
    if fraction > 0.5:
        assert slide_negative_binomial(sample) == pytest.approx(5_000 * beta**alpha, rel=0.02)


def test_dankars_rule_is_near_the_truth_from_small_and_from_large_samples(pitman_people):
    truth = (np.bincount(pitman_people) == 1).sum()
    rng = np.random.default_rng(9)
    for fraction, model in ((0.05, {"pitman"}), (0.5, {"zayatz", "snb"})):
        found = []
        for _ in range(15):
            counts = np.bincount(rng.choice(pitman_people, int(len(pitman_people) * fraction), replace=False))
            found.append(estimated_uniqueness(counts[counts > 0], fraction))
        assert {each.model for each in found} <= model
        assert np.median([each.uniques for each in found]) == pytest.approx(truth, rel=0.12)
