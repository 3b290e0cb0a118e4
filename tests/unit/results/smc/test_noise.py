"""Noise in parts: the parts of enough parties have the discrete Laplace law, exactly and from secure bits."""

import math
import secrets
from collections import Counter
from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.results.smc import noise
from shoal.results.smc.noise import PolyaNoise


@pytest.mark.parametrize(
    "honest", [pytest.param(1, marks=pytest.mark.long), 2, pytest.param(3, marks=pytest.mark.long)]
)
def test_the_parts_of_the_honest_parties_are_discrete_laplace(honest: int) -> None:
    law = PolyaNoise(Fraction(1), 1, honest)
    bits = Random(honest).getrandbits
    n = 100_000
    drawn = Counter(sum(law.draw(bits) for _ in range(honest)) for _ in range(n))
    a = float(law.ratio)
    cells = range(-6, 7)
    expected = [n * (1 - a) / (1 + a) * a ** abs(x) for x in cells]
    rest = n - sum(expected)
    seen_rest = n - sum(drawn[x] for x in cells)
    chi = sum((drawn[x] - e) ** 2 / e for x, e in zip(cells, expected, strict=True)) + (seen_rest - rest) ** 2 / rest
    assert chi < 42  # 13 degrees of freedom: above with a probability of 1 in 15,000


@given(
    st.integers(1, 5), st.fractions(Fraction(1, 100), 5, max_denominator=100), st.integers(1, 200), st.integers(1, 4)
)
def test_parts_of_so_many_parties_convolve_to_the_discrete_laplace_law_exactly(
    honest: int, epsilon: Fraction, sensitivity: int, extent: int
) -> None:
    """The probabilities that are drawn from are rational, so their convolution can be compared without an error."""
    law = PolyaNoise(epsilon, sensitivity, honest)
    part = [law.root * _polya(law, k) for k in range(extent + 1)]
    together = [Fraction(1)] + [Fraction(0)] * extent
    for _ in range(honest):
        together = [sum(together[i] * part[k - i] for i in range(k + 1)) for k in range(extent + 1)]
    assert together == [(1 - law.ratio) * law.ratio**k for k in range(extent + 1)]  # geometric; Laplace is a difference


@pytest.mark.parametrize("honest", [1, 2, 5])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [("1", 1), ("0.1", 120), ("3", 7), ("1e-3", 1000)])
def test_the_noise_is_never_smaller_than_asked_for(epsilon: str, sensitivity: int, honest: int) -> None:
    law = PolyaNoise(Fraction(epsilon), sensitivity, honest)
    asked = math.exp(-float(Fraction(epsilon)) / sensitivity)
    assert float(law.ratio) == pytest.approx(asked, rel=1e-12)
    spent = -math.log1p(-float(1 - law.ratio)) * sensitivity
    assert spent <= float(Fraction(epsilon)) * (1 + 1e-9)


def test_the_standard_deviation_counts_the_surplus_of_all_parties() -> None:
    law = PolyaNoise(Fraction(1), 3, 2)
    bits = Random(3).getrandbits
    drawn = [sum(law.draw(bits) for _ in range(3)) for _ in range(20_000)]
    assert math.sqrt(sum(x * x for x in drawn) / len(drawn)) == pytest.approx(law.standard_deviation(3), rel=0.05)


def test_a_draw_that_the_first_bits_do_not_decide_takes_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise, "BITS", 2)
    law = PolyaNoise(Fraction(1), 1, 2)
    bits = Random(1).getrandbits
    drawn = Counter(law.draw(bits) for _ in range(20_000))
    coarse = drawn[0] / 20_000
    zero = float(law.root) ** 2 * sum(float(_polya(law, k)) ** 2 for k in range(60))  # P(X = Y)
    assert coarse == pytest.approx(zero, abs=0.015)


def _polya(law: PolyaNoise, k: int) -> Fraction:
    """P(X = k) / P(X = 0) of a Pólya variable."""
    found = Fraction(1)
    for i in range(1, k + 1):
        found *= law.ratio * ((i - 1) + Fraction(1, law.honest)) / i
    return found


def test_bits_come_from_the_operating_system() -> None:
    assert PolyaNoise.draw.__defaults__ == (secrets.randbits,)
