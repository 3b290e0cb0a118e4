"""Superpopulation models: the number of people unique in a population of which only a sample is known.

F. K. Dankar, K. El Emam, A. Neisa, T. Roffey, "Estimating the re-identification risk of clinical data sets", BMC
Medical Informatics and Decision Making 12:66, 2012, compares the three models here and gives the rule that chooses.
L. V. Zayatz, "Estimation of the percent of unique population elements on a microdata file using the sample", 1991;
N. Hoshino, "Applying Pitman's sampling formula to microdata disclosure risk assessment", JOS 17(4), 2001;
G. Chen, S. Keller-McNulty, "Estimation of identification disclosure risk in microdata", JOS 14(1), 1998 (SNB);
P. J. Haas, L. Stokes, "Estimating the number of classes in a finite population", JASA 93, 1998 (Shlosser).
A model whose equations have no solution for a sample says None.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import digamma, gammaln

from shoal.tables.frequency import Floats

LEAST_ALPHA = 1e-4  # below, Pitman's model is that of Ewens in all digits that matter


@dataclass(frozen=True, eq=False)
class SizeCounts:
    """The number of classes of each size in a sample, and the sampling fraction."""

    sizes: Floats  # ascending
    classes: Floats
    fraction: float  # π

    @classmethod
    def from_counts(cls, counts: NDArray[np.int64], fraction: float) -> SizeCounts:
        """Build it from the number of records of each class."""
        sizes, classes = np.unique(counts, return_counts=True)
        return cls(sizes.astype(float), classes.astype(float), fraction)

    @property
    def n(self) -> float:
        """The number of records of the sample."""
        return float(self.sizes @ self.classes)

    @property
    def population(self) -> float:
        """The number of people in the population."""
        return self.n / self.fraction

    @property
    def u(self) -> float:
        """The number of classes of the sample."""
        return float(self.classes.sum())

    def of_size(self, size: int) -> float:
        """Return the number of classes of this size."""
        return float(self.classes[self.sizes == size].sum())


def zayatz(sample: SizeCounts) -> float:
    """s₁ P(F=1 | f=1) / π by Bayes' rule, assuming the class sizes of the sample for the population.

    As they are larger, this says too much, the more the smaller the sample is.
    """
    likely = sample.classes * _one_drawn(sample.sizes, sample.population, sample.n)
    singles = likely[sample.sizes == 1].sum()
    return float(sample.of_size(1) * singles / likely.sum() / sample.fraction) if singles else 0.0


def _one_drawn(sizes: Floats, N: float, n: float) -> Floats:
    """The probability that a sample of n of N has exactly one of a class: j (n/N) Π_{t<j−1} (N−n−t)/(N−1−t).

    A product of ratios, since differences of the logarithms of factorials of N lose their digits.
    """
    t = np.arange(int(sizes.max()) - 1, dtype=float)
    with np.errstate(divide="ignore"):  # a class larger than the rest has probability 0
        logs = np.log(np.maximum(N - n - t, 0)) - np.log(N - 1 - t)
    missed = np.concatenate([[0.0], np.cumsum(logs)])
    return np.asarray(sizes * n / N * np.exp(missed[sizes.astype(np.int64) - 1]))


def pitman(sample: SizeCounts) -> float | None:
    """E(S₁) = N (θ+α)…(θ+α+N−2) / (θ+1)…(θ+N−1) at the maximum likelihood of Pitman's sampling formula.

    The expectation is exact, where Hoshino takes its limit for large N. None where every record is unique, where none
    is distinct, and where the likelihood is greatest for α ≤ 0, a population with a bounded number of classes.
    """
    if not 1 < sample.u < sample.n:
        return None
    slope = partial(_alpha_slope, sample)
    if slope(LEAST_ALPHA) <= 0:
        return None
    alpha = brentq(slope, LEAST_ALPHA, 1 - 1e-12, xtol=1e-12)  # at 1 the slope is −∞: some class has two records
    theta = _theta(sample, alpha)
    N = sample.population
    logs = gammaln(theta + alpha + N - 1) - gammaln(theta + N) + gammaln(theta + 1) - gammaln(theta + alpha)
    return float(min(N, N * np.exp(logs)))


def _alpha_slope(sample: SizeCounts, alpha: float) -> float:
    """Return the derivative of the log-likelihood with respect to α, at the best θ."""
    theta = _theta(sample, alpha)
    x = theta / alpha
    occupied_term = ((sample.u - 1) - x * (digamma(x + sample.u) - digamma(x + 1))) / alpha  # Σ_{i<u} i / (θ + iα)
    grown = sample.classes @ (digamma(sample.sizes - alpha) - digamma(1 - alpha))  # Σ_j s_j Σ_{i<j} 1 / (i − α)
    return float(occupied_term - grown)


def _theta(sample: SizeCounts, alpha: float) -> float:
    """Solve Σ_{i<u} 1/(θ + iα) = Σ_{i<n} 1/(θ + i): the maximum likelihood for this α."""

    def slope(shifted: float) -> float:
        theta = shifted - alpha
        x = theta / alpha
        occupied_term = (digamma(x + sample.u) - digamma(x + 1)) / alpha
        return float(occupied_term - (digamma(theta + sample.n) - digamma(theta + 1)))

    # θ > −α, where the slope is +∞; for large θ it goes as (u − n)/θ.
    low, high = 1e-9, 1.0
    while slope(high) > 0:
        low, high = high, high * 4
    return float(brentq(slope, low, high, xtol=1e-12, rtol=1e-14)) - alpha


def slide_negative_binomial(sample: SizeCounts) -> float | None:
    """K β^α: class sizes minus one are negative binomial, fitted to the numbers of classes of size 1 and 2.

    None where the sample has no class of two, or no parameters give what it has.
    """
    K = shlosser(sample)
    parameters = None if K is None else snb_parameters(sample, K)
    return None if K is None or parameters is None else float(K * parameters[1] ** parameters[0])


def snb_parameters(sample: SizeCounts, K: float) -> tuple[float, float] | None:
    """Return α and β if the population has ``K`` classes.

    With z = 1−π, c = (1−β)/(1−z(1−β)) and B = β/(1−z(1−β)) a sample is expected to have s₁ = K π B^α (1+αzc) and
    s₂ = K π²/2 α c B^α (2+(α+1)zc), from the generating function s (β/(1−(1−β)s))^α at z. For every β the second by
    the first is a quadratic in α with one positive root; what is left is one equation in β.
    """
    s1, s2, z = sample.of_size(1), sample.of_size(2), 1 - sample.fraction
    if not s1 or not s2:
        return None
    ratio = 2 * s2 / (sample.fraction * s1)

    def alpha(beta: float) -> float:
        c = (1 - beta) / (1 - z * (1 - beta))
        a, b = z * c * c, 2 * c + z * c * c - ratio * z * c
        root = (b * b + 4 * a * ratio) ** 0.5
        return float(2 * ratio / (b + root) if b > 0 else (root - b) / (2 * a))

    def excess(logit: float) -> float:
        beta = 1 / (1 + np.exp(-logit))
        a, shrunk = alpha(beta), 1 - z * (1 - beta)
        singles = K * sample.fraction * (beta / shrunk) ** a * (1 + a * z * (1 - beta) / shrunk)
        return float(singles - s1)

    grid = np.linspace(-25, 25, 401)
    values = [excess(x) for x in grid]
    roots = [
        float(1 / (1 + np.exp(-brentq(excess, low, high, xtol=1e-12))))
        for (low, high), (left, right) in zip(pairwise(grid), pairwise(values), strict=True)
        if left * right < 0
    ]
    # Where two populations explain the sample equally well, that of the size known.
    sized = {beta: K * (1 + alpha(beta) * (1 - beta) / beta) for beta in roots}
    best = min(roots, key=lambda beta: abs(np.log(sized[beta] / sample.population)), default=None)
    return None if best is None else (alpha(best), best)


def shlosser(sample: SizeCounts) -> float | None:
    """Estimate the classes of the population with the modified Shlosser estimator (Haas and Stokes, 1998)."""
    f, i, s = sample.fraction, sample.sizes, sample.classes
    modified_moment = s @ (i * f**2 * (1 - f**2) ** (i - 1))
    beyond = s @ ((1 - f**2) ** i - (1 - f) ** i)
    plain_moment = s @ (i * f * (1 - f) ** (i - 1))
    if not (beyond > 0 and plain_moment > 0):
        return None
    return float(sample.u + sample.of_size(1) * modified_moment / beyond * (s @ (1 - f) ** i / plain_moment) ** 2)


def dankar(fraction: float, pitman: float | None, zayatz: float, snb: float | None) -> tuple[str, float]:
    """Choose the model and return its estimate: Pitman's up to a tenth of the population, else the lower of the others.

    Zayatz's always has an answer and stands in for a model that has none.
    """
    if fraction <= 0.1:
        return ("zayatz", zayatz) if pitman is None else ("pitman", pitman)
    return ("zayatz", zayatz) if snb is None or zayatz < snb else ("snb", snb)
