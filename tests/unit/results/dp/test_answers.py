"""Intervals contain the figures without noise as often as they say: thousands of draws, and a binomial bound."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from shoal.results.dp.counting import counted_exactly
from shoal.results.dp.noise import Noise
from shoal.results.dp.query import Calibrated, _answered, _opened, _QueryRequest

N = 2000
CONFIDENCE = 0.9
FALSE_ALARM = 1e-9  # per figure: the noise is drawn from a secure source
AGES = np.random.default_rng(3).integers(18, 90, 400)
WARDS = ["A", "B", "B", "B"] * 100
COSTS = 20.0 * AGES + np.random.default_rng(4).integers(0, 200, 400)
ASKED: dict[str, Any] = {
    "bounds": {"age": (0, 100), "cost": (0, 3000)},
    "categories": {"ward": ["A", "B", "C"]},
    "by": [],
}


def asked(budget: str, **asks: Any) -> tuple[Calibrated, list[list[int]]]:
    """One query, and its exact statistics."""
    table = pa.table({"age": AGES, "ward": WARDS, "cost": COSTS})
    prepared = _opened(table, budget, None, _QueryRequest(**(ASKED | asks)))
    (one,) = prepared.calibrations
    return one, counted_exactly(prepared.rows, [one.statistic], (), prepared.unit).exact[0][()]


def misses(one: Calibrated, exact: list[list[int]], truth: dict[str, float], n: int) -> dict[str, int]:
    """How many of n answers have an interval without the figure that has no noise."""
    groups = [(str(i),) for i in range(n)]
    found = dict.fromkeys(truth, 0)
    for answer in _answered(one, groups, ["run"], dict.fromkeys(groups, exact), CONFIDENCE):
        figure = answer.figure
        found[figure.of] += not figure.low - 1e-9 <= truth[figure.of] <= figure.high + 1e-9
    return found


def tail(noise: Noise, width: int) -> float:
    """The probability of noise beyond a width, by its law."""
    x = np.arange(-(2**18), 2**18 + 1)
    weights = np.exp(-np.abs(x) / noise.scale if noise.law == "laplace" else -(x**2) / (2 * noise.scale**2))
    return float(weights[np.abs(x) > width].sum() / weights.sum())


@pytest.mark.parametrize("budget", ["epsilon=0.5", "rho=0.2"])
@pytest.mark.parametrize(
    ("asks", "truth"),
    [
        ({"count": True}, {"": 400}),
        ({"sum": ["age"], "granularity": {"age": 1}}, {"": AGES.sum()}),
        ({"histogram": ["ward"]}, {"A": 100, "B": 300, "C": 0}),
    ],
    ids=["count", "sum", "histogram"],
)
def test_intervals_of_counts_and_sums_miss_as_often_as_the_law_says(budget: str, asks: Any, truth: Any) -> None:
    one, exact = asked(budget, **asks)
    expected = tail(one.noises[0], one.noises[0].half_width(CONFIDENCE))
    assert expected <= 1 - CONFIDENCE
    for of, n in misses(one, exact, truth, N).items():
        low, high = binom.ppf(FALSE_ALARM, N, expected), binom.isf(FALSE_ALARM, N, expected)
        # That of an empty cell ends at 0, and so contains it whenever the noise is negative enough.
        assert (0 if truth[of] == 0 else low) <= n <= high, of


@pytest.mark.parametrize("budget", ["epsilon=6", "rho=6"])
@pytest.mark.parametrize("asks", [{"mean": ["age"]}, {"regression": {"cost": ["age"]}}], ids=["mean", "regression"])
def test_intervals_of_what_follows_from_several_counts_miss_no_more_often_than_they_say(budget: str, asks: Any) -> None:
    one, exact = asked(budget, **asks)
    truth = {figure.of: figure.value for figure in one.statistic.figures(exact, one.noises, CONFIDENCE)}
    widths = [figure.high - figure.low for figure in one.statistic.figures(exact, one.noises, CONFIDENCE)]
    assert np.isfinite(widths).all()
    assert max(misses(one, exact, truth, N).values()) <= binom.isf(FALSE_ALARM, N, 1 - CONFIDENCE)
    if "mean" in asks:
        assert truth[""] == pytest.approx(AGES.mean())
    else:
        assert [truth["age"], truth["intercept"]] == pytest.approx(np.polyfit(AGES, COSTS, 1), rel=0.01)


@pytest.mark.parametrize("budget", ["epsilon=2", "rho=1"])
def test_intervals_of_quantiles_miss_no_more_often_than_they_say(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A quantile needs a thousand draws: here they follow the same law, from a faster source.
    draw, n = np.random.default_rng(8), 400

    def fast(noise: Noise, values: Sequence[int]) -> list[int]:
        x = np.arange(-3000, 3001)
        weights = np.exp(-np.abs(x) / noise.scale if noise.law == "laplace" else -(x**2) / (2 * noise.scale**2))
        return [int(i) for i in np.array(values) + draw.choice(x, len(values), p=weights / weights.sum())]

    monkeypatch.setattr(Noise, "draw", fast)
    shares = (0.1, 0.5, 0.95)
    one, exact = asked(budget, quantile={"age": shares})
    ordered = np.sort(AGES)
    truth = {f"{share:g}": float(ordered[int(np.ceil(share * 400)) - 1]) for share in shares}
    assert max(misses(one, exact, truth, n).values()) <= binom.isf(FALSE_ALARM, n, 1 - CONFIDENCE)
