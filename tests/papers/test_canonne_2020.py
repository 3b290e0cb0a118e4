"""What Canonne, Kamath and Steinke prove of the discrete Gaussian: ρ = s² / 2σ², its variance and its tails."""

import math
from decimal import Decimal

import numpy as np
import pytest
from scipy.stats import norm

from shoal.results.dp.noise import ChangeBound, Noise, calibrated, privacy_loss

X = np.arange(-4000, 4001)


def log_law(sigma: float, shift: int = 0) -> np.ndarray:
    weights = -((X - shift) ** 2) / (2 * sigma**2)
    return weights - np.logaddexp.reduce(weights)


def renyi(order: float, sigma: float, shift: int) -> float:
    """The divergence of two discrete Gaussians, by its definition."""
    p, q = log_law(sigma), log_law(sigma, shift)
    return float(np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1))


@pytest.mark.parametrize("rho", ["0.005", "0.5", "2"])
@pytest.mark.parametrize("s", [1, 3])
def test_the_noise_of_a_change_by_s_costs_s_squared_over_2_sigma_squared(rho: str, s: int) -> None:
    noise = calibrated("rho", Decimal(rho), ChangeBound(s, s * s))
    assert noise.scale == pytest.approx(s / math.sqrt(2 * float(rho)))
    assert privacy_loss(noise, ChangeBound(s, s * s)) == pytest.approx(float(rho))
    for order in (1.1, 1.5, 2, 3, 7.3, 20):  # zero-concentrated: at most ρ times the order, and equal where it is whole
        divergence = renyi(order, noise.scale, s)
        assert divergence <= order * float(rho) * (1 + 1e-9)
        if order == int(order):
            assert divergence == pytest.approx(order * float(rho))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 4.0])
def test_its_variance_is_less_than_that_of_the_continuous_one(sigma: float) -> None:
    p = np.exp(log_law(sigma))
    variance = float((p * X**2).sum())
    assert variance <= sigma**2 * (1 + 1e-12)
    assert variance <= 3 * math.exp(-1 / (2 * sigma**2)) or sigma > 0.5  # with little noise, far less
    drawn = np.array(Noise("gaussian", sigma).draw([0] * 5000))
    spread = math.sqrt(float((p * X**4).sum()) - variance**2) if variance else 0.0
    assert abs((drawn**2).mean() - variance) <= norm.isf(1e-9) * spread / math.sqrt(5000) + 1e-3


@pytest.mark.parametrize("sigma", [0.7, 2.0, 9.0])
def test_its_tails_are_those_of_a_rounded_gaussian_at_most(sigma: float) -> None:
    p = np.exp(log_law(sigma))
    for m in range(1, 40):
        assert p[m <= X].sum() <= norm.sf((m - 1) / sigma) * (1 + 1e-9)
    width = Noise("gaussian", sigma).half_width(0.95)
    assert p[np.abs(X) > width].sum() <= 0.05
