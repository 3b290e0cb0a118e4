"""Confidence: how far a success rate may lie from the one observed, where people of one class succeed together.

C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26, 1934, at an effective number of attempts as in E. L. Korn, B. I. Graubard, "Confidence intervals for
proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.
The rate is that of the people whom the attacked ones are drawn from, by the same recoding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

LEVEL = 0.95
LARGE = 20  # people: a larger class is no single throw, what it shows hardly changes from draw to draw


def effective_attempts(
    credits: NDArray[np.float64], classes: NDArray[np.int64], level: float = LEVEL, *, failing: int = 1
) -> float:
    """As many independent attempts would leave the rate as uncertain as these, of which those of a class go together.

    The variance between the sums of classes decides, with Student's quantile for few classes. Where everybody or
    nobody succeeds it shows nothing: then a class counts as one attempt, or as several if it is large. ``failing``:
    how many people fail together at least. Who is not singled out looks like somebody else, who is not either: that
    everybody was shows that there was no such pair, and there are fewer pairs than people.
    """
    n = len(credits)
    if not n:
        return 0.0
    _, class_of = np.unique(classes, return_inverse=True)
    n_classes = int(class_of.max()) + 1
    rate = float(credits.mean())
    if n_classes < 2 or min(rate, 1 - rate) * n < 1e-9:
        return _throws(class_of, failing if rate > 0.5 else 1)
    if n_classes == n:
        return float(n)
    variance = _variance(credits - rate, class_of)
    few = (_quantile(level) / _quantile(level, n_classes - 1)) ** 2
    found = few * rate * (1 - rate) / variance if variance > 0 else float(n)
    return max(1.0, min(found, float(n)))


def spread_above(
    credits: NDArray[np.float64], blind: NDArray[np.float64], classes: NDArray[np.int64], level: float = LEVEL
) -> float:
    """Half the width of the interval of (success − control) / (1 − control), where both are those of the same people.

    Linearized: whoever bets on a frequent value succeeds more often, and so does the control, which cancels. Where
    the two hardly differ it is not taken to be surer than as many coins.
    """
    n = len(credits)
    fails = float(1 - blind.mean()) if n else 0.0
    if fails <= 0:
        return 1.0
    _, class_of = np.unique(classes, return_inverse=True)
    n_classes = int(class_of.max()) + 1
    above = float(credits.mean() - blind.mean()) / fails
    variance = _variance((credits - blind - above * (1 - blind)) / fails, class_of) if n_classes > 1 else 0.0
    throws = _throws(class_of)
    near = (max(0.0, above) * throws + 1) / (throws + 2)
    least = min(near, 0.5) * (1 - min(near, 0.5)) / (throws + 2)
    between = _quantile(level, max(1, n_classes - 1)) * math.sqrt(variance)
    return max(between, _quantile(level) * math.sqrt(least))


def _variance(off: NDArray[np.float64], class_of: NDArray[np.int64]) -> float:
    """Of the mean, where the deviations of a class go together."""
    sums = np.bincount(class_of, off)
    return len(sums) / (len(sums) - 1) * float((sums**2).sum()) / len(off) ** 2


def _throws(class_of: NDArray[np.int64], together: int = 1) -> float:
    sizes = np.bincount(class_of).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes * np.clip(sizes, together, LARGE)).sum())


def _quantile(level: float, freedom: float = 1e9) -> float:
    return float(stdtrit(freedom, (1 + level) / 2))


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
