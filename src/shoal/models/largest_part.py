"""Bounds on the largest part of a class that a model could still accept.

With suppression, a class that fails a convex model need not be lost: a lower node may split it and keep some of the
pieces. The records kept are a union of passing classes and therefore pass themselves, so at most the largest passing
part of the class can stay. These bounds let a search prune where verdicts alone prove nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shoal.models.base import Scores
from shoal.table.frequency import Histogram

Shares = NDArray[np.float64]
BLOCK = 1 << 21  # cells of a dense block of distributions: 16 MB


def by_blocks(histogram: Histogram, score: Callable[[Shares], Scores]) -> Scores:
    """Apply ``score`` to the dense counts, block by block to bound memory use."""
    out = np.empty(histogram.n_classes)
    step = max(1, BLOCK // max(1, histogram.n_values))
    for first in range(0, histogram.n_classes, step):
        last = min(first + step, histogram.n_classes)
        out[first:last] = score(histogram.dense(first, last))
    return out


def under_caps(counts: Shares, caps: Shares, share: float = 1.0) -> Scores:
    """Return the largest n with Σ_s min(r_s, n·caps_s) ≥ share·n, at most the whole class.

    With share 1, this is the largest part in which no value s exceeds the share caps_s. The sum is the minimum, over
    sets A of values, of Σ_A r + n Σ_not-A caps, so n is the minimum of Σ_A r / (share − Σ_not-A caps); the best sets
    are prefixes of the values ordered by r_s / caps_s.
    """
    caps = np.broadcast_to(np.minimum(caps, 1.0), counts.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        order = np.argsort(np.where(counts > 0, counts / caps, 0.0), axis=1)
    taken = np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)
    ranked = np.take_along_axis(caps, order, axis=1)
    free = share - (ranked.sum(axis=1, keepdims=True) - np.cumsum(ranked, axis=1))
    # A difference of sums that should be 0 must not become a tiny positive divisor: the bound would be too low.
    bounds = np.where(free > 1e-9, taken / np.where(free > 1e-9, free, 1.0), np.inf)
    none = share - ranked.sum(axis=1)
    least = np.where(none > 1e-9, 0.0, bounds.min(axis=1, initial=np.inf))
    return np.asarray(np.minimum(counts.sum(axis=1), least))


def with_mean_within(counts: Shares, places: Shares, low: float, high: float) -> Scores:
    """Return the largest part whose mean place lies between ``low`` and ``high``; ``places`` are ascending."""
    upper = _with_mean_at_most(counts, places - high)
    lower = _with_mean_at_most(counts[:, ::-1], low - places[::-1])
    return np.minimum(upper, lower)


def _with_mean_at_most(counts: Shares, excess: Shares) -> Scores:
    """Return the largest part with Σ excess ≤ 0 (``excess`` ascending): all negative ones, then as many as fit."""
    total = np.cumsum(counts * excess, axis=1)
    fits = total <= 1e-9
    whole = (counts * fits).sum(axis=1)
    n_fits = fits.sum(axis=1)  # a prefix, because the sums first fall and then rise
    over = n_fits < counts.shape[1]
    at = np.minimum(n_fits, counts.shape[1] - 1)
    slack = np.where(n_fits > 0, -np.take_along_axis(total, np.maximum(n_fits - 1, 0)[:, None], axis=1)[:, 0], 0.0)
    rate = excess[at]
    partial = np.where(over & (rate > 0), slack / np.where(rate > 0, rate, 1.0), 0.0)
    return np.asarray(np.minimum(counts.sum(axis=1), whole + np.maximum(partial, 0.0) + 1e-9))
