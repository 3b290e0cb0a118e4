"""Confidence: how far a success rate may lie from the one observed, where people of one class succeed together.

C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26, 1934, at an effective number of attempts as in E. L. Korn, B. I. Graubard, "Confidence intervals for
proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.
The rate is that of the people whom the attacked ones are drawn from, by the same recoding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

LEVEL = 0.95


def effective_attempts(credits: NDArray[np.float64], classes: NDArray[np.int64], level: float = LEVEL) -> float:
    """As many independent attempts would leave the rate as uncertain as these, of which those of a class go together.

    The variance between the sums of classes decides, with Student's quantile for few classes. Where everybody or
    nobody succeeds it shows nothing: then a class counts as one attempt.
    """
    n = len(credits)
    if not n:
        return 0.0
    _, class_of = np.unique(classes, return_inverse=True)
    sizes = np.bincount(class_of).astype(np.float64)
    n_classes = len(sizes)
    if n_classes == n:
        return float(n)
    rate = float(credits.mean())
    together = n * n / float((sizes**2).sum())
    if n_classes < 2 or min(rate, 1 - rate) * n < 1e-9:
        return together
    off = np.bincount(class_of, credits - rate)
    variance = n_classes / (n_classes - 1) * float((off**2).sum()) / n**2
    quantile = (1 + level) / 2
    few = float(stdtrit(1e9, quantile) / stdtrit(n_classes - 1, quantile)) ** 2
    found = few * rate * (1 - rate) / variance if variance > 0 else float(n)
    return max(1.0, min(found, float(n)))


def interval(share: float, effective: float, level: float = LEVEL) -> tuple[float, float]:
    """Clopper and Pearson's interval of a share of ``effective`` attempts; [0, 1] where nothing was attempted."""
    if effective <= 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    successes = min(max(share, 0.0), 1.0) * effective
    failures = effective - successes
    low = 0.0 if successes <= 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures <= 0 else float(betaincinv(successes + 1, failures, 1 - tail))
    return min(low, share), max(high, share)
