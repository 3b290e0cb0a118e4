"""Confidence intervals of success rates if people of one class succeed or fail together.

C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
Biometrika 26, 1934, at an effective number of attempts as in E. L. Korn, B. I. Graubard, "Confidence intervals for
proportions with small expected number of positive counts estimated from survey data", Survey Methodology 24, 1998.
A person's own record may be in another class than the records that match the person, and there it affects what others
are taken for. Such people belong to two classes, like the pairs in M. Fafchamps, F. Gubert, "The formation of risk
sharing networks", Journal of Development Economics 83, 2007: two people are correlated if they have a class in common.
If the values of both classes matter, so are two people who each have a class in common with a third (``reaching``).
The interval is for the success rate in the population from which the attacked people are drawn, under the same
recoding.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
BLOCK = 2**12  # classes whose pairs are counted together
LARGE = 20  # people: a larger class is more than one attempt, because its outcome hardly varies between samples


def effective_attempts(
    credits: NDArray[np.float64],
    classes: NDArray[np.int64],
    level: float = LEVEL,
    *,
    failing: int = 1,
    succeeding: int = 1,
    reaching: bool = False,
) -> float:
    """Return the number of independent attempts that would be as uncertain as these clustered ones.

    ``classes`` has the class of each person, or two columns: that class, and the class of the person's own record. The
    variance between the sums of classes decides, with Student's quantile if there are few classes. If everybody or
    nobody succeeds, the variance is 0 and tells nothing; then a class counts as one attempt, or as several if it is
    large. ``failing`` is the least number of people who fail together: a person who is not singled out looks like
    somebody else, who is not singled out either, so a failure always concerns a pair, and there are fewer pairs than
    people. ``succeeding`` is the same for those who succeed. ``reaching``: the values in both classes decide whether a
    person succeeds.
    """
    n = len(credits)
    if not n:
        return 0.0
    class_of, own_class = _numbered(classes)
    n_classes = int(class_of.max()) + 1
    rate = float(credits.mean())
    together = failing if rate > 0.5 else succeeding
    if n_classes < 2 or min(rate, 1 - rate) * n < 1e-9:
        return _throws(class_of, together)
    if n_classes == n:
        return float(n) / together
    variance, freedom = _variance(credits - rate, class_of, own_class, reaching=reaching)
    correction = (_quantile(level) / _quantile(level, freedom)) ** 2
    effective = correction * rate * (1 - rate) / variance if variance > 0 else float(n)
    return max(1.0, min(effective, n / together))


def spread_above(
    credits: NDArray[np.float64],
    blind: NDArray[np.float64],
    classes: NDArray[np.int64],
    level: float = LEVEL,
    *,
    succeeding: int = 1,
    reaching: bool = False,
) -> float:
    """Return half the width of the interval of (success − control) / (1 − control) for the same people.

    Linearized: a guess of a frequent value succeeds more often, but so does the control, and the two cancel out. If
    they hardly differ, the result is not considered more certain than the same number of coin tosses. ``succeeding``
    and ``reaching`` are as in ``effective_attempts``.
    """
    n = len(credits)
    fails = float(1 - blind.mean()) if n else 0.0
    if fails <= 0:
        return 1.0
    class_of, own_class = _numbered(classes)
    n_classes = int(class_of.max()) + 1
    above = float(credits.mean() - blind.mean()) / fails
    off = (credits - blind - above * (1 - blind)) / fails
    variance, freedom = _variance(off, class_of, own_class, reaching=reaching) if n_classes > 1 else (0.0, 1.0)
    # If everybody whom the control guesses is also guessed by the attack, it is a share of the others.
    undecided = (blind < 1) | ((blind % 1 > 0) | (credits < blind)).any()
    throws = _throws(class_of[undecided])
    near = (max(0.0, above) * throws + 1) / (throws + 2)
    min_variance = min(near, 0.5) * (1 - min(near, 0.5)) / (throws + 2)
    between = max(_quantile(level, freedom) * math.sqrt(variance), _quantile(level) * math.sqrt(min_variance))
    if succeeding > 1:  # few but large successes: none at all tells less than a normal distribution assumes
        base = max(0.0, above)
        between = max(between, confidence_interval(base, _throws(class_of[undecided], succeeding), level)[1] - base)
    return between


def _numbered(classes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the class of each person, and that of the person's record, without gaps, in order of appearance."""
    sought, own_class = classes.T if classes.ndim == 2 else (classes, classes)
    n = int(classes.max()) + 1
    first, second = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    first[sought], second[own_class] = True, True
    second &= ~first
    number = np.where(first, np.cumsum(first), first.sum() + np.cumsum(second)) - 1
    return number[sought], number[own_class]


def _variance(
    off: NDArray[np.float64], class_of: NDArray[np.int64], own_class: NDArray[np.int64], *, reaching: bool
) -> tuple[float, float]:
    """Return the variance of a mean with deviations correlated within classes, and its degrees of freedom.

    Deviations are taken from the estimated mean, which reduces the variance by the share of correlated pairs: one in
    the number of classes if all have the same size, and more if people belong to two classes. The variance is at least
    that from the classes of matching records alone.
    """
    n, sums = len(off), np.bincount(class_of, off)
    freedom = len(sums) - 1.0
    variance = len(sums) / freedom * float((sums**2).sum()) / n**2
    differs = class_of != own_class
    if differs.any():
        pairs = _within_two if reaching else _together
        together = pairs(np.ones(n), class_of, own_class) / n**2
        tied = pairs(off, class_of, own_class) / n**2 / max(1 - together, 1 / n)
        return max(variance, tied), max(1.0, min(freedom, 1 / together - 1))
    return variance, freedom


def _together(weights: NDArray[np.float64], class_of: NDArray[np.int64], own_class: NDArray[np.int64]) -> float:
    """Sum the products over all pairs of people who share a class."""
    differs = class_of != own_class
    n = int(max(class_of.max(), own_class.max())) + 1
    sums = np.bincount(class_of, weights, n) + np.bincount(own_class[differs], weights[differs], n)
    pair = np.minimum(class_of, own_class)[differs] * n + np.maximum(class_of, own_class)[differs]
    twice = np.bincount(np.unique(pair, return_inverse=True)[1].ravel(), weights[differs])  # who have both in common
    return float((sums**2).sum() - (twice**2).sum())


def _within_two(weights: NDArray[np.float64], class_of: NDArray[np.int64], own_class: NDArray[np.int64]) -> float:
    """Return the same over all pairs with a class in common, or who each have one in common with a third person.

    For people in the classes (a, b) and (c, d), where the two kinds of classes share no numbers, this is the case if
    there is somebody in (a, d) or in (c, b); two people who share a class are such a pair themselves.
    """
    from scipy.sparse import csr_array

    n = int(max(class_of.max(), own_class.max())) + 1
    sums = csr_array((weights, (class_of, own_class)), shape=(n, n))
    occupied = (
        csr_array((np.ones(len(weights)), (class_of, own_class)), shape=(n, n)).astype(np.bool_).astype(np.float64)
    )
    either = float(
        np.bincount(class_of, weights, n) @ (occupied @ np.bincount(own_class, weights, n))
    )  # somebody in (a, d), and as often in (c, b)
    linked = 0.0
    for first in range(0, n, BLOCK):
        block = slice(first, first + BLOCK)
        linked += float((sums[block] @ occupied.T).multiply(occupied[block] @ sums.T).sum())
    return 2 * either - linked


def _throws(class_of: NDArray[np.int64], together: int = 1) -> float:
    sizes = np.bincount(class_of).astype(np.float64)
    return float(sizes.sum() ** 2 / (sizes * np.clip(sizes, together, LARGE)).sum())


def _quantile(level: float, freedom: float = 1e9) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def confidence_interval(share: float, effective: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the Clopper–Pearson interval of a share of ``effective`` attempts; [0, 1] without attempts."""
    from scipy.special import betaincinv

    if effective <= 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    successes = min(max(share, 0.0), 1.0) * effective
    failures = effective - successes
    low = 0.0 if successes <= 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures <= 0 else float(betaincinv(successes + 1, failures, 1 - tail))
    return min(low, share), max(high, share)
