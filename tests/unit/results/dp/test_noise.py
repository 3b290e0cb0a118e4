"""Noise follows its law, and costs what OpenDP says it costs."""

import math
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2_contingency, chisquare, norm

from examples import THOROUGH
from shoal.results.dp.budget import Budget, BudgetError, LossKind
from shoal.results.dp.noise import ChangeBound, Noise, calibrated, chosen, epsilon_of, privacy_loss, thresholded

N = 100_000
FALSE_ALARM = 1e-9  # per test: the generator is secure and has no seed


def law(noise: Noise, x: np.ndarray) -> np.ndarray:
    weights = np.exp(-np.abs(x) / noise.scale if noise.law == "laplace" else -(x**2) / (2 * noise.scale**2))
    return weights / weights.sum()


def below(noise: Noise, k: np.ndarray) -> np.ndarray:
    """The probability of noise of at most k; a wide discrete Gaussian differs from the continuous one by 1e-13."""
    if noise.law == "laplace":
        p = np.exp(-1 / noise.scale)
        return np.where(k < 0, p ** np.maximum(-k, 0.0) / (1 + p), 1 - p ** np.maximum(k + 1.0, 0.0) / (1 + p))
    if noise.scale > 1000:
        return np.asarray(norm.cdf((k + 0.5) / noise.scale))
    return np.cumsum(law(noise, np.arange(-200, 201)))[k.astype(int) + 200]


@pytest.mark.parametrize(
    "noise", [Noise("laplace", 2.5), Noise("laplace", 1.2e6), Noise("gaussian", 3.0), Noise("gaussian", 1e6)], ids=str
)
def test_a_hundred_thousand_draws_follow_the_law_and_not_each_other(noise: Noise) -> None:
    drawn = np.array(noise.draw([0] * N), np.float64)
    ends = np.unique(np.round(noise.scale * np.linspace(-3, 3, 31)))
    seen = np.bincount(np.searchsorted(ends, drawn), minlength=len(ends) + 1)
    expected = N * np.diff(np.concatenate([[0.0], below(noise, ends), [1.0]]))
    assert expected.min() >= 10
    assert chisquare(seen, expected).pvalue > FALSE_ALARM
    # Each draw beside the next one: small or large, negative or not.
    kinds = np.searchsorted(np.round(noise.scale * np.array([-1, 0, 1])), drawn)
    beside = np.bincount(kinds[::2] * 4 + kinds[1::2], minlength=16).reshape(4, 4)
    assert chi2_contingency(beside).pvalue > FALSE_ALARM


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
@pytest.mark.parametrize("delta", ["1e-3", "1e-9"])
@pytest.mark.parametrize("c", [1, 2, 5])
def test_the_keys_of_one_person_are_shown_with_probability_delta_at_most(loss: LossKind, delta: str, c: int) -> None:
    found = thresholded(loss, Decimal(1), Decimal(delta), ChangeBound(c, c, 1, c))
    x = np.arange(-300, 301)
    shown = law(found.noise, x)[1 + x >= found.at_least].sum()
    assert 1 - (1 - shown) ** c <= float(delta)
    # OpenDP counts no δ for a count that equals its threshold; one lower, δ would be exceeded with Laplace noise.
    lower = law(found.noise, x)[2 + x >= found.at_least].sum()
    assert loss == "rho" or 1 - (1 - lower) ** c > float(delta)


@pytest.mark.parametrize("keys", [15_000, pytest.param(N, marks=pytest.mark.long)])
@pytest.mark.parametrize("loss", ["epsilon", "rho"])
def test_the_counts_of_keys_follow_the_law_above_the_threshold(loss: LossKind, keys: int) -> None:
    found = thresholded(loss, Decimal("0.1"), Decimal("1e-3"), ChangeBound(1, 1, 1, 1))
    count = found.at_least - 2  # such that many are shown, and many are not
    drawn = Counter(n - count for n in found.revealed_counts({str(i): count for i in range(keys)}).values())
    assert min(drawn) >= 2
    x = np.arange(-400, 401)
    p = law(found.noise, x)
    kept = (x >= 2) & (p * keys >= 10)
    seen = np.array([drawn[i] for i in x[kept].tolist()])
    rest = sum(n for i, n in drawn.items() if i > x[kept].max())
    expected = [*(p[kept] * keys), p[x > x[kept].max()].sum() * keys, p[x < 2].sum() * keys]
    assert chisquare([*seen, rest, keys - seen.sum() - rest], expected).pvalue > FALSE_ALARM


def permute_and_flip(scores: Sequence[int], scale: float) -> list[float]:
    """By brute force: in every order, the first that passes a coin flip is chosen; the best always passes."""
    passes = [math.exp((score - max(scores)) / scale) for score in scores]
    found = [0.0] * len(scores)
    orders = list(permutations(range(len(scores))))
    for order in orders:
        left = 1 / len(orders)
        for i in order:
            found[i] += left * passes[i]
            left *= 1 - passes[i]
    return found


def exponential_mechanism(scores: Sequence[int], scale: float) -> list[float]:
    weights = np.exp(np.array(scores) / scale)
    return list(weights / weights.sum())


@pytest.mark.parametrize("n", [8_000, pytest.param(N if THOROUGH else N // 4, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("loss", "cost", "scale", "law_of"),
    [("epsilon", "2", 1, permute_and_flip), ("rho", "0.5", 1, exponential_mechanism)],
)
def test_choices_follow_their_law(loss: LossKind, cost: str, scale: float, law_of: Any, n: int) -> None:
    # The scale is 2 / ε and 1 / √(2ρ): a person changes each of the scores by 1 at most, some up and some down.
    scores = [0, 1, 3, 2]
    picks = Counter(chosen(loss, Decimal(cost), scores, 1) for _ in range(n))
    expected = np.array(law_of(scores, scale))
    assert chisquare([picks[i] for i in range(4)], n * expected / expected.sum()).pvalue > FALSE_ALARM


def test_rho_converts_to_epsilon_within_the_bound_of_bun_and_steinke() -> None:
    rho, delta = Decimal("0.5"), Decimal("1e-6")
    assert 0.5 < epsilon_of(rho, delta) <= 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))


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
