"""Noise, by OpenDP only: discrete Laplace for ε, discrete Gaussian for ρ, added to vectors of integers.

All statistics are integers before noise is added, and OpenDP draws from exact discrete distributions with a secure
generator. So the answer does not depend on floating-point rounding, by which I. Mironov ("On significance of the least
significant bits for differential privacy", CCS 2012) recovered data from textbook Laplace noise.
C. Canonne, G. Kamath, T. Steinke, "The Discrete Gaussian for Differential Privacy", NeurIPS 2020.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any, Literal

from shoal.errors import ShoalError
from shoal.results.dp.budget import BudgetError, LossKind

LARGEST_SUM = 100_000  # scales up to which OpenDP adds up the tail of the discrete Gaussian in little time
LARGEST_SCALE = 1e17  # noise beyond would not fit into 64 bits

NoiseLaw = Literal["laplace", "gaussian"]


@cache
def opendp() -> Any:
    """Return OpenDP's core; it takes a second to load, and may be absent."""
    try:
        import opendp.prelude as prelude
    except ImportError:
        raise ShoalError("OpenDP is not installed", "python -m pip install 'shoal[dp]'") from None
    prelude.enable_features("contrib")
    return prelude


@dataclass(frozen=True)
class ChangeBound:
    """How much one person can change a vector of integers, added or removed."""

    l1: int  # the sum of absolute changes
    l2_squared: int  # the sum of squared changes
    largest: int = 0  # the largest change of one entry; needed where keys are unknown
    entries: int = 0  # how many entries change at most; likewise

    @property
    def l2(self) -> float:
        """The Euclidean length of the change, rounded up."""
        root = math.sqrt(self.l2_squared)
        return root if Fraction(root) ** 2 >= self.l2_squared else math.nextafter(root, math.inf)


@dataclass(frozen=True)
class Noise:
    """The distribution of the noise on each entry of a vector."""

    law: NoiseLaw
    scale: float  # of the discrete Laplace distribution; standard deviation of the discrete Gaussian

    def __str__(self) -> str:
        return f"discrete {'Laplace' if self.law == 'laplace' else 'Gaussian'}, scale {self.scale:.6g}"

    def half_width(self, confidence: float) -> int:
        """Return the smallest known whole number that the noise exceeds with probability 1 - ``confidence`` at most."""
        return _half_width(self.law, self.scale, 1 - confidence)

    def log_mgf(self, at: float) -> float:
        """Return a bound of the logarithm of E exp(at · noise), from which Chernoff's bound follows."""
        if self.law == "gaussian":  # Canonne et al.: the discrete Gaussian is sub-Gaussian
            return (at * self.scale) ** 2 / 2
        p = -1 / self.scale
        if abs(at) >= -p:
            return math.inf
        return 2 * math.log(-math.expm1(p)) - math.log(-math.expm1(p + at)) - math.log(-math.expm1(p - at))

    def draw(self, values: Sequence[int]) -> list[int]:
        """Return the values with noise from OpenDP's secure generator."""
        return list(_measurement(self.law, self.scale)(list(values))) if values else []


@cache  # every group has the same
def _half_width(law: NoiseLaw, scale: float, alpha: float) -> int:
    if law == "laplace":
        # P(|X| > a) = 2 p^(a + 1) / (1 + p) with p = exp(-1 / scale).
        log_p = -1 / scale
        log_tail = math.log(alpha) + math.log1p(math.exp(log_p)) - math.log(2)
        return max(0, math.ceil(log_tail / log_p - 1 + 1e-9))
    if scale <= LARGEST_SUM:
        return math.ceil(float(opendp().discrete_gaussian_scale_to_accuracy(float(scale), alpha)))
    return math.ceil(float(opendp().gaussian_scale_to_accuracy(float(scale), alpha))) + 1


def calibrated(loss: LossKind, cost: Decimal, sensitivity: ChangeBound) -> Noise:
    """Return the least noise whose privacy loss, by OpenDP's map, is at most ``cost`` for one person."""
    law: NoiseLaw = "laplace" if loss == "epsilon" else "gaussian"
    spend = float(cost)
    min_scale = sensitivity.l1 / spend if law == "laplace" else sensitivity.l2 / math.sqrt(2 * spend)
    for step in range(64):
        scale = min_scale * (1 + math.ldexp(1, step - 52))
        if scale > LARGEST_SCALE:
            break
        if Fraction(privacy_loss(Noise(law, scale), sensitivity)) <= Fraction(cost):
            return Noise(law, scale)
    raise BudgetError("the share of the budget for one answer is too small", "ask for less, or spend more")


def privacy_loss(noise: Noise, sensitivity: ChangeBound) -> float:
    """Return ε or ρ of a vector with this noise, computed by OpenDP and rounded up."""
    distance = sensitivity.l1 if noise.law == "laplace" else sensitivity.l2
    return float(_measurement(noise.law, noise.scale).map(distance))


@cache
def _measurement(law: NoiseLaw, scale: float) -> Any:
    dp = opendp()
    integers = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "laplace":
        return dp.m.make_laplace(integers, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(integers, dp.l2_distance(T=float), scale=scale)


# ── unknown keys ────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Threshold:
    """Noise on the number of people behind each key, and the noisy number from which a key is shown.

    R. Rogers, "A Unifying Privacy Analysis Framework for Unknown Domain Algorithms in Differential Privacy", 2023: a
    key that only one person has is shown with a probability that δ bounds.
    """

    noise: Noise
    at_least: int

    def revealed_counts(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the keys that reach the threshold, with their noisy counts."""
        return dict(_thresholded(self.noise, self.at_least)(dict(counts))) if counts else {}


def thresholded(loss: LossKind, cost: Decimal, delta: Decimal, sensitivity: ChangeBound) -> Threshold:
    """Return the noise that costs at most ``cost``, and the lowest threshold that costs at most ``delta``."""
    noise = calibrated(loss, cost, sensitivity)
    low, high = 0, 1

    def fits(threshold: int) -> bool:
        distance = sensitivity.l1 if loss == "epsilon" else sensitivity.l2
        largest = sensitivity.largest if loss == "epsilon" else float(sensitivity.largest)
        try:
            spent, lost = _thresholded(noise, threshold).map((sensitivity.entries, distance, largest))
        except Exception:  # OpenDP refuses thresholds below the sensitivity
            return False
        return Fraction(spent) <= Fraction(cost) and Fraction(lost) <= Fraction(delta)

    while not fits(high):
        low, high = high, 2 * high
        if high > 2**60:
            raise BudgetError("delta is too small for unknown keys", "list the keys (categories), or raise delta")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    # OpenDP 0.16 shows counts that equal the threshold, but its map covers only those above it: with Laplace noise of
    # scale 1 and threshold 7, a single person's key is shown with probability 0.0018, and the map says 0.0007.
    return Threshold(noise, high + 1)


def _thresholded(noise: Noise, threshold: int) -> Any:
    dp = opendp()
    domain = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="i64"))
    if noise.law == "laplace":
        metric = dp.l01inf_distance(dp.absolute_distance(T="i64"))
        return dp.m.make_laplace_threshold(domain, metric, scale=noise.scale, threshold=threshold)
    metric = dp.l02inf_distance(dp.absolute_distance(T=float))
    return dp.m.make_gaussian_threshold(domain, metric, scale=noise.scale, threshold=threshold)


# ── choosing ────────────────────────────────────────────────────────────────────────────────────────────────


def chosen(loss: LossKind, cost: Decimal, scores: Sequence[int], sensitivity: int) -> int:
    """Return the place of a high score; one person changes any score by ``sensitivity`` at most."""
    return int(_choice(loss, cost, sensitivity)(list(scores)))


@cache
def _choice(loss: LossKind, cost: Decimal, sensitivity: int) -> Any:
    """Return OpenDP's noisy maximum with the least noise that costs at most ``cost``.

    For ε, its noise is exponential: permute-and-flip, never worse than the exponential mechanism (R. McKenna,
    D. Sheldon, NeurIPS 2020). For ρ, it is Gumbel's: the exponential mechanism (F. McSherry, K. Talwar, FOCS 2007).
    """
    dp = opendp()
    domain, metric = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    measure = dp.max_divergence() if loss == "epsilon" else dp.zero_concentrated_divergence()
    min_scale = 2 * sensitivity / (float(cost) if loss == "epsilon" else math.sqrt(8 * float(cost)))
    for step in range(64):
        mechanism = dp.m.make_noisy_max(domain, metric, measure, scale=min_scale * (1 + math.ldexp(1, step - 52)))
        if Fraction(mechanism.map(sensitivity)) <= Fraction(cost):
            return mechanism
    raise BudgetError("the share of the budget for one choice is too small", "spend more")


def epsilon_of(rho: Decimal, delta: Decimal) -> float:
    """Return the ε that ρ-zCDP gives for a δ, by OpenDP's conversion."""
    dp = opendp()
    mechanism = dp.m.make_gaussian(dp.atom_domain(T="i64"), dp.absolute_distance(T=float), scale=1 / math.sqrt(2 * rho))
    return float(dp.c.make_zCDP_to_approxDP(mechanism).map(1.0).epsilon(float(delta)))
