"""Individual risk against the sum it abbreviates, and against the integral."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammaln

from shoal.risk.individual import risk_of


def by_summing(f, p):
    """Σ_h (1/h) P(F = h | f), F negative binomial."""
    h = np.arange(f, f + int(60 * f / p) + 2_000, dtype=float)
    logs = gammaln(h) - gammaln(f) - gammaln(h - f + 1) + f * np.log(p) + (h - f) * np.log1p(-p)
    return float((np.exp(logs) / h).sum())


def by_integral(f, p):
    """P ∫ u^(f−1)/(p+qu) du with u = exp(−s), in pieces around where the integrand turns."""
    ends = sorted({0, 1 / f, 5 / f, 20 / f, max(0, -np.log(p) - 2), -np.log(p) + 2, -np.log(p) + 60 / f, 60})
    pieces = [
        quad(lambda s: np.exp(-f * s) / (p + (1 - p) * np.exp(-s)), low, high, epsabs=1e-18, epsrel=1e-11, limit=200)[0]
        for low, high in pairwise(ends)
        if high > low
    ]
    return p * sum(pieces)


@pytest.mark.parametrize("p", [0.02, 0.3, 0.49, 0.51, 0.8, 0.99])
def test_the_risk_is_the_mean_of_one_over_the_population(p):
    f = np.array([1.0, 2, 3, 5, 10, 40, 63, 64, 65, 150, 161, 300])
    expected = [by_summing(int(each), p) for each in f]
    assert risk_of(f, f / p) == pytest.approx(np.array(expected), rel=1e-9)


def test_fractional_frequencies_and_tiny_shares():
    rng = np.random.default_rng(4)
    f = np.concatenate([1 + rng.exponential(3, 60), rng.uniform(1, 90, 40), rng.integers(1, 90, 40)])
    p = 10 ** rng.uniform(-6, -0.01, len(f))
    expected = [by_integral(*each) for each in zip(f, p, strict=True)]
    assert risk_of(f, f / p) == pytest.approx(np.array(expected), rel=1e-9)
