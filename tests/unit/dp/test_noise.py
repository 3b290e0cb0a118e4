"""Noise follows its law, and costs what OpenDP says it costs."""

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from shoal.dp.budget import Budget, BudgetError
from shoal.dp.noise import ChangeBound, Noise, calibrated, chosen, epsilon_of, privacy_loss, thresholded

N = 100_000
FALSE_ALARM = 1e-9  # per test: the generator is secure and has no seed


def law(noise: Noise, x: np.ndarray) -> np.ndarray:
    weights = np.exp(-np.abs(x) / noise.scale if noise.law == "laplace" else -(x**2) / (2 * noise.scale**2))
    return weights / weights.sum()


@pytest.mark.parametrize("noise", [Noise("laplace", 2.5), Noise("gaussian", 3.0)], ids=str)
def test_a_hundred_thousand_draws_follow_the_law(noise: Noise) -> None:
    drawn = Counter(noise.draw([0] * N))
    x = np.arange(-200, 201)
    expected = N * law(noise, x)
    inner = expected >= 10
    seen = np.array([drawn[i] for i in x[inner].tolist()])
    tails = N - seen.sum(), N - expected[inner].sum()
    assert chisquare([*seen, tails[0]], [*expected[inner], tails[1]]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    "noise", [Noise("laplace", s) for s in (0.3, 1, 7.5)] + [Noise("gaussian", s) for s in (0.3, 2, 50)]
)
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_the_half_width_covers_and_is_the_smallest(noise: Noise, confidence: float) -> None:
    x = np.arange(-2000, 2001)
    p = law(noise, x)
    width = noise.half_width(confidence)
    assert p[np.abs(x) <= width].sum() >= confidence - 1e-12
    if noise.law == "laplace" and width:
        assert p[np.abs(x) < width].sum() < confidence


def test_the_bound_of_the_moment_generating_function_holds() -> None:
    x = np.arange(-2000, 2001)
    for noise in (Noise("laplace", 3.0), Noise("gaussian", 0.4), Noise("gaussian", 4.0)):
        for at in (-0.3, 0.01, 0.2, 0.32):
            assert math.log((law(noise, x) * np.exp(at * x)).sum()) <= noise.log_mgf(at) + 1e-9


@pytest.mark.parametrize("loss", ["epsilon", "rho"])
@pytest.mark.parametrize("cost", ["0.1", "1", "0.333333333333", "7"])
@pytest.mark.parametrize("l1", [1, 3, 1_200_000])
def test_the_noise_costs_no_more_than_its_share(loss: str, cost: str, l1: int) -> None:
    sensitivity = ChangeBound(l1, l1 * l1)
    noise = calibrated(loss, Decimal(cost), sensitivity)  # type: ignore[arg-type]
    assert Fraction(privacy_loss(noise, sensitivity)) <= Fraction(cost)
    least = l1 / float(cost) if loss == "epsilon" else l1 / math.sqrt(2 * float(cost))
    assert noise.scale == pytest.approx(least, rel=1e-9)


def test_dwork_and_roth_a_count_has_laplace_noise_of_scale_one_over_epsilon() -> None:
    assert calibrated("epsilon", Decimal("0.1"), ChangeBound(1, 1)).scale == pytest.approx(10)
    p = math.exp(-0.1)  # the ratio of probabilities for counts that differ by one is exp(ε)
    x = np.arange(-500, 501)
    ratio = law(Noise("laplace", 10), x)[1:] / law(Noise("laplace", 10), x)[:-1]
    assert max(ratio.max(), (1 / ratio).max()) == pytest.approx(1 / p)


@pytest.mark.parametrize("loss", ["epsilon", "rho"])
def test_a_key_of_one_person_is_shown_with_probability_delta_at_most(loss: str) -> None:
    delta = 1e-3
    found = thresholded(loss, Decimal(1), Decimal(str(delta)), ChangeBound(1, 1, 1, 1))  # type: ignore[arg-type]
    x = np.arange(-300, 301)
    p = law(found.noise, x)
    assert p[1 + x >= found.at_least].sum() <= delta
    shown = [found.shown({"one": 1, "many": 1000}) for _ in range(300)]
    assert all("many" in keys for keys in shown)
    assert sum("one" in keys for keys in shown) <= 10


def test_the_exponential_mechanism_prefers_high_scores() -> None:
    picks = Counter(chosen("epsilon", Decimal(2), [0, 0, 4], 1) for _ in range(3000))
    share = math.exp(2 * 4 / 2) / (math.exp(2 * 4 / 2) + 2)  # exp(ε · score / 2)
    assert picks[2] / 3000 == pytest.approx(share, abs=0.03)


def test_rho_converts_to_epsilon_within_the_bound_of_bun_and_steinke() -> None:
    rho, delta = Decimal("0.5"), 1e-6
    assert 0.5 < epsilon_of(rho, delta) <= 0.5 + 2 * math.sqrt(0.5 * math.log(1 / delta))


@pytest.mark.parametrize(
    "given",
    [
        "epsilon=0",
        "epsilon=-1",
        "rho=nan",
        "epsilon=1,rho=1",
        "delta=1e-8",
        "1",
        "epsilon=1,epsilon=2",
        "epsilon=1,delta=1",
        "epsilon=1e9",
        "gamma=1",
        "",
    ],
)
def test_budgets_that_are_none(given: str) -> None:
    with pytest.raises(BudgetError):
        Budget.of(given)


def test_delta_must_be_small_for_the_stated_number_of_people() -> None:
    with pytest.raises(BudgetError, match="too large"):
        Budget.of("epsilon=1,delta=0.01").require_small_delta(100)
    with pytest.raises(BudgetError, match="too large"):
        Budget.of("epsilon=1,delta=1e-5").require_small_delta(None)
    Budget.of("epsilon=1,delta=1e-5").require_small_delta(1000)


def test_shares_never_exceed_the_whole_and_decimals_add_up() -> None:
    whole = Budget.of({"epsilon": 1})
    assert sum(whole.shares([1] * 7)) <= 1
    tenth = Budget.of({"epsilon": 0.1})
    total = tenth
    for _ in range(9):
        total = total + tenth
    assert whole.covers(total)
    assert not whole.covers(total + Budget.of("epsilon=1e-30"))
