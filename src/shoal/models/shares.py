"""Models that bound the share of every sensitive value in a class: their base, and limited gain.

(α,k)-anonymity is in ``size.py``, β-likeness in ``closeness.py``.

M. Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023 (the gain of an
attack over a guess that knows only the whole table; ``LimitedGain`` bounds it for every class).

Every bound is a cap on a share, and the union of two classes has shares between theirs: the models are convex.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.models.base import TOLERANCE, Merging, Passing, Scores, SensitiveModel
from shoal.models.diversity import shares
from shoal.models.kernels import within_caps
from shoal.models.parts import most_under_caps
from shoal.notation.same_values import plain_value
from shoal.tables.frequency import Domain, Histogram, RowNumbers

Shares = NDArray[np.float64]


class ShareBound(SensitiveModel):
    """A cap on the share of every sensitive value in a class, except for values that may be known.

    ``exempt`` lists values that nobody minds, such as ``no`` or ``negative``, in any spelling: their share is not
    bounded. An empty text stands for a missing value. ``common`` exempts values by their share in the whole table.
    """

    exempt: tuple[str, ...] = Field(
        default=(), strict=False, description="Values that nobody minds, whose share is not bounded: `no`, `negative`."
    )
    common: float | None = Field(
        default=None,
        gt=0,
        le=1,
        strict=False,
        description="Values that at least this share of all records have are exempt: everybody would guess them.",
    )
    merging: ClassVar[Merging] = "convex"
    lowest_is_worst: ClassVar[bool] = False

    def cap(self, q: Shares) -> Shares:
        """Return the largest allowed share of values whose share in the whole table is q."""
        raise NotImplementedError

    def caps(self, domain: Domain) -> Shares:
        """Return the largest allowed share of each value; an exempt value has none."""
        return np.where(self.exempted(domain), np.inf, self.cap(domain.shares))

    def exempted(self, domain: Domain) -> Passing:
        """Return which values are exempt."""
        common = np.zeros(len(domain.texts), np.bool_)
        if self.common is not None:
            common = np.asarray(domain.shares >= self.common - TOLERANCE)
        if not self.exempt:
            return common
        exempt = set(map(plain_value, self.exempt))
        return np.array([plain_value(text) in exempt for text in domain.texts], np.bool_) | common

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether no share in a class exceeds its cap; what is met exactly counts as met."""
        caps = self.caps(domain_of_values(histogram)) + TOLERANCE
        return within_caps(histogram.starts, histogram.values, histogram.counts, caps)

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return the size of the largest part in which no share exceeds its cap."""
        caps = self.caps(domain_of_values(histogram)) + TOLERANCE
        return most_under_caps(histogram.starts, histogram.values, histogram.counts, rows, caps, 1.0)

    def score(self, histogram: Histogram) -> Scores:
        """Return the largest excess of each class, 0 if it has only exempt values."""
        if not len(histogram.values):
            return np.zeros(histogram.n_classes)
        domain = domain_of_values(histogram)
        excess = self.excess(shares(histogram), domain.shares[histogram.values])
        excess = np.where(self.exempted(domain)[histogram.values], 0.0, excess)
        return np.asarray(np.maximum.reduceat(np.maximum(0.0, excess), histogram.starts[:-1]))

    def excess(self, p: Shares, q: Shares) -> Shares:
        """Return the figure of each value, given its share p in the class and q in the whole table."""
        raise NotImplementedError

    @property
    def exempt_words(self) -> str:
        """The number of exempt values, as ``summary`` shows it: the values are in the policy, not in messages."""
        listed = f", {len(self.exempt)} exempt" if self.exempt else ""
        return listed if self.common is None else f"{listed}, common from {self.common:g}"


class LimitedGain(ShareBound):
    """No value's share in a class exceeds its share in the whole table by more than ``gain`` of what is then missing.

    (p − q) / (1 − q) ≤ gain for every value. An intruder who bets on a value is right with probability p, and with q
    from the whole table alone: ``gain`` is the measured success above the control that attacks on a sensitive column
    report, for a single class. No bet on values reaches more over the release, whichever classes it is made on.
    """

    model: Literal["limited-gain"] = "limited-gain"
    gain: float = Field(gt=0, le=1, allow_inf_nan=False, strict=False)
    figure: ClassVar[str] = "gain"
    formula: ClassVar[str] = "(p_s − q_s)/(1 − q_s) ≤ gain for every value"

    def cap(self, q: Shares) -> Shares:
        """Return q + gain · (1 − q)."""
        return np.asarray(q + self.gain * (1 - q))

    def excess(self, p: Shares, q: Shares) -> Shares:
        """Return (p − q) / (1 − q); nothing is left to gain where all records have one value."""
        return np.asarray(np.divide(p - q, 1 - q, out=np.zeros_like(p), where=q < 1))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"gain at most {self.gain:g}{self.where}{self.exempt_words}"


def domain_of_values(histogram: Histogram) -> Domain:
    """Return the domain of a sensitive column; persons have none."""
    if histogram.domain is None:
        raise TypeError("the values of this histogram are persons, not sensitive values")
    return histogram.domain
