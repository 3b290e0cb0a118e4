"""Individual risk: the probability that a survey record is re-identified, from its sampling weight.

R. Benedetti, L. Franconi, "Statistical and technological solutions for controlled data dissemination", 1998;
L. Franconi, S. Polettini, "Individual risk estimation in μ-Argus: a review", PSD 2004.
Given f records with a key in the sample, the F people with it are negative binomial with success p = f / Σ weights,
and the risk is the expectation of 1/F:  r = (p/f) ₂F₁(1, 1; f+1; q) = p ∫₀¹ u^(f−1) / (p + q u) du,  q = 1 − p.

Library functions for ₂F₁, and the alternating sum that is often printed, return NaN or noise from f = 161 on. Here
each of three regions has a way that loses no digits; all of them hold for f that is not whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.risk.keys import frequencies_of, groups, keys_of
from shoal.tables.frequency import Floats
from shoal.tables.wildcard import Nulls

LARGE = 64  # from here on the series needs fewer than LARGE terms whatever q is: the n-th is below 1/C(f+n, n)


@dataclass(frozen=True, eq=False)
class IndividualRisk:
    """The risk of every record, in the order of the rows."""

    risks: Floats  # (records)
    sample: Floats  # (records)  f
    population: Floats  # (records)  F, estimated by the weights
    household: Floats | None = None  # (records)  that some member of the household is re-identified

    @property
    def expected(self) -> float:
        """Global risk: the expected number of re-identifications."""
        return float(self.risks.sum())

    @property
    def rate(self) -> float:
        """Global risk as a share of the records."""
        return float(self.risks.mean())

    @property
    def household_expected(self) -> float | None:
        """Expected re-identifications if one member of a household identifies all of them."""
        return None if self.household is None else float(self.household.sum())

    def at_risk(self, threshold: float) -> int:
        """Return the number of records with a risk above ``threshold``."""
        return int((self.risks > threshold).sum())

    def threshold(self, rate: float) -> float:
        """Return the limit for single records that brings the file to a rate; see ``threshold``."""
        return threshold(self.risks, rate)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "records": len(self.risks),
            "max": float(self.risks.max()),
            "expected": self.expected,
            "rate": self.rate,
            "household_expected": self.household_expected,
        }


def individual_risk(
    data: Data,
    quasi: Sequence[str],
    *,
    weight: str | None = None,
    household: str | None = None,
    nulls: Nulls = "category",
    alpha: float = 1.0,
) -> IndividualRisk:
    """Estimate the risk from the sampling weights in column ``weight``; without one, the sample is the population.

    ``household`` names the column of household ids; ``nulls`` and ``alpha`` are those of ``frequencies``.
    """
    keys = keys_of(data, quasi)
    shared = frequencies_of(keys, keys.weights(weight), nulls=nulls, alpha=alpha)
    risks = risk_of(shared.sample, shared.population)
    of_household = None if household is None else household_risk(risks, groups(keys.engine, household))
    return IndividualRisk(risks, shared.sample, shared.population, of_household)


def risk_of(f: Floats, F: Floats) -> Floats:
    """E(1/F | f) for every pair; 1/f if the weights imply fewer people than records with a key."""
    pairs, pair_of = np.unique(f + 1j * F, return_inverse=True)  # complex numbers sort as pairs do, and fast
    f, F = pairs.real, pairs.imag
    p = np.minimum(1.0, f / F)
    q = np.maximum(0.0, (F - f) / F)
    out = np.empty(len(f))
    series = (f >= LARGE) | (p >= 0.5)
    whole = ~series & (f == np.floor(f))
    other = ~series & ~whole
    out[series] = _by_series(f[series], p[series], q[series])
    out[whole] = _by_recurrence(f[whole], p[whole], q[whole])
    out[other] = _by_quadrature(f[other], p[other], q[other])
    return out[pair_of.ravel()]


def _by_series(f: Floats, p: Floats, q: Floats) -> Floats:
    """Σ t_n with t_{n+1} = t_n (n+1) q / (f+n+1); quick where q is at most ½ or f is large."""
    term = np.ones(len(f))
    total = np.ones(len(f))
    n = 0
    while term.max(initial=0.0) > 1e-18:
        term = term * ((n + 1) * q / (f + n + 1))
        total += term
        n += 1
    return np.asarray(p / f * total)


def _by_recurrence(f: Floats, p: Floats, q: Floats) -> Floats:
    """h(f+1) = (1/f − p h(f)) / q from h(1) = −ln(p)/q, where h is the integral.

    An error shrinks by p/q at each step, so this is for p below ½ only.
    """
    h = -np.log(p) / q
    for step in range(1, int(f.max(initial=1.0))):
        h = np.where(f > step, (1 / step - p * h) / q, h)
    return np.asarray(p * h)


def _by_quadrature(f: Floats, p: Floats, q: Floats) -> Floats:
    """The integral with u = exp(−s), s = exp(x − exp(−x)), by the trapezoidal rule.

    Its error is exp(−2π d / step) with d = π / ln(1/p), the distance of the nearest pole: below 1e-14 for p > 1e-12.
    """
    step = 1 / 48
    total = np.zeros(len(f))
    for x in np.arange(-4.5, 7.0, step):
        s = np.exp(x - np.exp(-x))
        total += np.exp(-f * s) / (p + q * np.exp(-s)) * (s * (1 + np.exp(-x)))
    return np.asarray(p * total * step)


def household_risk(risks: Floats, household: NDArray[np.integer[Any]]) -> Floats:
    """Return 1 − Π (1 − r) over the members of each record's household."""
    _, household_of = np.unique(household, return_inverse=True)
    with np.errstate(divide="ignore"):  # a certain re-identification: ln 0, and the household's risk is 1
        safe = np.bincount(household_of, np.log1p(-np.minimum(risks, 1.0)))
    return np.asarray(-np.expm1(safe)[household_of])


def threshold(risks: Floats, rate: float) -> float:
    """The greatest limit such that a file whose risks above it are brought down to it has at most this global rate.

    With every risk over the limit lowered to the limit the rate is the mean of min(r, limit); it is solved exactly.
    """
    if not 0 < rate <= 1:
        raise PolicyError("rate: must be above 0 and at most 1")
    if risks.mean() <= rate:
        return 1.0
    ranked = np.sort(risks)
    below = np.concatenate([[0.0], np.cumsum(ranked)[:-1]])
    n_above = len(ranked) - np.arange(len(ranked))  # this one and all above it
    limit = (rate * len(ranked) - below) / n_above
    return float(limit[np.argmax(limit <= ranked)])
