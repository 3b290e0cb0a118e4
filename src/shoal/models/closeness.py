"""Models of the distance to the overall distribution: t-closeness, β-likeness, δ-disclosure privacy.

N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and ℓ-diversity", ICDE 2007.
J. Cao, P. Karras, "Publishing microdata with a robust privacy guarantee", VLDB 2012 (β-likeness).
J. Brickell, V. Shmatikov, "The cost of privacy", KDD 2008 (δ-disclosure).
The overall distribution q is that of the table before suppression; only values that occur in it count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.errors import PolicyError
from shoal.models.base import TOLERANCE, Merging, Passing, Scores, SensitiveModel
from shoal.models.diversity import shares
from shoal.models.largest_part import Shares, by_blocks, under_caps, with_mean_within
from shoal.table.frequency import Domain, Histogram


def equal(p: Shares, domain: Domain) -> Scores:
    """Return ½ Σ |p − q|: all values are equally far apart."""
    return np.asarray(np.abs(p - domain.shares).sum(axis=1) / 2)


def ordered(p: Shares, domain: Domain) -> Scores:
    """Return 1/(m−1) Σ_i |Σ_{j≤i} (p_j − q_j)|: neighbours in the order are close."""
    m = len(domain.shares)
    if m == 1:
        return np.zeros(len(p))
    return np.asarray(np.abs(np.cumsum(p - domain.shares, axis=1)).sum(axis=1) / (m - 1))


def numeric(p: Shares, domain: Domain) -> Scores:
    """Return ∫ |F_p − F_q| dx / (max − min): values are as far apart as their difference."""
    if domain.places is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'numeric' needs numbers, but some of its values are not numbers",
            "choose distance 'equal', 'ordered' or 'hierarchical'",
        )
    order = np.argsort(domain.places, kind="stable")  # a tree or file may list them in another order
    gaps = np.diff(domain.places[order])
    if not len(gaps) or gaps.sum() == 0:
        return np.zeros(len(p))
    apart = np.abs(np.cumsum((p - domain.shares)[:, order], axis=1))[:, :-1]
    return np.asarray(apart @ gaps / gaps.sum())


def hierarchical(p: Shares, domain: Domain) -> Scores:
    """Return the cost of moving mass through nearest common ancestors, priced by height (Li 2007, section 4.3).

    Within every subtree, the amount moved is the smaller of its children's total surplus and total deficit.
    """
    if domain.hierarchy is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'hierarchical' needs a hierarchy",
            "add one to the sensitive column in the policy",
        )
    height = len(domain.hierarchy) - 1
    child_of = np.arange(p.shape[1])
    extra = p - domain.shares
    total = np.zeros(len(p))
    for level in range(height + 1):
        # Level 0 may already join leaves; moving mass there is free because its height is 0.
        parent = np.zeros(extra.shape[1], np.int64)
        parent[child_of] = domain.hierarchy[level]
        n_parents = int(domain.hierarchy[level].max()) + 1
        onto = np.zeros((extra.shape[1], n_parents))
        onto[np.arange(extra.shape[1]), parent] = 1
        moved = np.minimum(np.maximum(extra, 0) @ onto, np.maximum(-extra, 0) @ onto)
        total += level / height * moved.sum(axis=1) if height else 0
        extra = extra @ onto
        child_of = domain.hierarchy[level]
    return total


def kullback_leibler(p: Shares, domain: Domain) -> Scores:
    """Return Σ p ln(p/q), in nats; q is never 0 where p is not, because the class is part of the table."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(p > 0, p * np.log(p / domain.shares), 0.0).sum(axis=1))


def jensen_shannon(p: Shares, domain: Domain) -> Scores:
    """Return ½ KL(p ‖ m) + ½ KL(q ‖ m), where m is the mean of p and q; at most ln 2."""
    q = np.broadcast_to(domain.shares, p.shape)
    m = (p + q) / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        from_p = np.where(p > 0, p * np.log(p / m), 0.0).sum(axis=1)
        from_q = np.where(q > 0, q * np.log(q / m), 0.0).sum(axis=1)
    return np.asarray((from_p + from_q) / 2)


Distance = Literal["equal", "ordered", "numeric", "hierarchical", "kl", "js"]
DISTANCES: dict[str, Callable[[Shares, Domain], Scores]] = {
    "equal": equal,
    "ordered": ordered,
    "numeric": numeric,
    "hierarchical": hierarchical,
    "kl": kullback_leibler,
    "js": jensen_shannon,
}


def distance(histogram: Histogram, name: str) -> Scores:
    """Return the distance of each class from the overall distribution."""
    domain = _domain(histogram)
    return by_blocks(histogram, lambda counts: DISTANCES[name](counts / counts.sum(axis=1, keepdims=True), domain))


def nearest_part(histogram: Histogram, name: str, t: float) -> Scores:
    """Return an upper bound on the number of records of each class in a part within ``t`` of the overall distribution.

    Exact for the equal distance. The other distances are bounded by a consequence: the mean place is within t (moving
    mass by x moves the mean by at most x); the shares of the subtrees of a level differ by at most t·H/(level + 1) in
    total; or, for divergences, Pinsker's inequality bounds the equal distance by √(KL/2) or √(2 JS).
    """
    domain = _domain(histogram)
    q = domain.shares

    def part(counts: Shares) -> Scores:
        if name in ("equal", "kl", "js"):
            within = {"equal": t, "kl": (t / 2) ** 0.5, "js": (2 * t) ** 0.5}[name]
            return under_caps(counts, q, 1 - within) if within < 1 else np.asarray(counts.sum(axis=1))
        if name == "hierarchical" and domain.hierarchy is not None:
            return _subtree_part(counts, domain.hierarchy, q, t)
        places = np.arange(len(q), dtype=np.float64) if name == "ordered" else domain.places
        if places is None or len(places) < 2 or np.ptp(places) == 0:
            return np.asarray(counts.sum(axis=1))
        order = np.argsort(places, kind="stable")  # a tree or file may list numbers in another order
        places = (places[order] - places.min()) / np.ptp(places)
        mean = float(q[order] @ places)
        return with_mean_within(counts[:, order], places, mean - t, mean + t)

    return by_blocks(histogram, part)


def _subtree_part(counts: Shares, hierarchy: NDArray[np.int32], q: Shares, t: float) -> Scores:
    height = len(hierarchy) - 1
    least = counts.sum(axis=1)
    for level in range(height):
        onto = np.zeros((counts.shape[1], int(hierarchy[level].max()) + 1))
        onto[np.arange(counts.shape[1]), hierarchy[level]] = 1
        if (within := t * height / (level + 1)) < 1:
            least = np.minimum(least, under_caps(counts @ onto, q @ onto, 1 - within))
    return np.asarray(least)


def _domain(histogram: Histogram) -> Domain:
    if histogram.domain is None:
        raise TypeError("distances are between sensitive values")
    return histogram.domain


def _gains(histogram: Histogram) -> tuple[Shares, Shares]:
    """Return p and q for every entry."""
    return shares(histogram), _domain(histogram).shares[histogram.values]


def likeness(histogram: Histogram) -> Scores:
    """Return the β of basic β-likeness: the largest (p_s − q_s)/q_s of each class, 0 if no value gains."""
    p, q = _gains(histogram)
    return np.asarray(np.maximum.reduceat(np.maximum(0, (p - q) / q), histogram.starts[:-1]))


def enhanced_likeness(histogram: Histogram) -> Scores:
    """Return the β of enhanced β-likeness; no β suffices if a value gains more than −ln q_s."""
    p, q = _gains(histogram)
    gain = np.maximum(0, (p - q) / q)
    capped = np.where(gain <= -np.log(q) + TOLERANCE, gain, np.inf)
    return np.asarray(np.maximum.reduceat(capped, histogram.starts[:-1]))


def largest_log_ratio(histogram: Histogram, *, absent: Literal["fail", "ignore"] = "fail") -> Scores:
    """Return the δ of δ-disclosure privacy, the largest |ln(p_s/q_s)|; as published, an absent value fails."""
    p, q = _gains(histogram)
    ratio = np.maximum.reduceat(np.abs(np.log(p / q)), histogram.starts[:-1])
    return ratio if absent == "ignore" else np.where(np.diff(histogram.starts) < histogram.n_values, np.inf, ratio)


class TCloseness(SensitiveModel):
    """The distribution of the sensitive column in every class is within distance ``t`` of the whole table's."""

    model: Literal["t-closeness"] = "t-closeness"
    t: float = Field(ge=0, allow_inf_nan=False, strict=False)
    distance: Distance = "equal"
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "t"
    least: ClassVar[bool] = False

    @model_validator(mode="after")
    def _within_range(self) -> Self:
        if self.t > 1 and self.distance != "kl":
            raise ValueError(f"t must be at most 1: no two distributions are farther apart by {self.distance!r}")
        return self

    def score(self, histogram: Histogram) -> Scores:
        """Return the distance D(p, q) of each class."""
        return distance(histogram, self.distance)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether D(p, q) ≤ t for each class."""
        return np.asarray(self.score(histogram) <= self.t + TOLERANCE)

    def most(self, histogram: Histogram) -> Scores:
        """Return an upper bound on the largest part within t."""
        return nearest_part(histogram, self.distance, self.t + TOLERANCE)

    @property
    def asked(self) -> str:
        """The requirement as one readable line."""
        return f"{self.t:g}-closeness ({self.distance}){self.where}"


class BasicLikeness(SensitiveModel):
    """No value's share in a class exceeds its share in the whole table by more than ``beta`` times the latter."""

    model: Literal["basic-beta-likeness"] = "basic-beta-likeness"
    beta: float = Field(gt=0, allow_inf_nan=False, strict=False)
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "beta"
    least: ClassVar[bool] = False

    def score(self, histogram: Histogram) -> Scores:
        """Return max (p − q)/q for each class."""
        return likeness(histogram)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether (p − q)/q ≤ β for every value that gains."""
        p, q = _gains(histogram)
        return _all(histogram, p <= q * (1 + self.gain(q)) + TOLERANCE)

    def gain(self, q: Shares) -> Shares:
        """Return the largest allowed relative gain of each share."""
        return np.full_like(q, self.beta)

    def most(self, histogram: Histogram) -> Scores:
        """Return the size of the largest part in which no share exceeds its cap."""
        q = _domain(histogram).shares
        return by_blocks(histogram, lambda counts: under_caps(counts, q * (1 + self.gain(q)) + TOLERANCE))

    @property
    def asked(self) -> str:
        """The requirement as one readable line."""
        return f"basic {self.beta:g}-likeness{self.where}"


class EnhancedLikeness(BasicLikeness):
    """β-likeness with min(β, −ln q) as the bound, so that frequent values may gain less."""

    # A separate name, so that a policy can never be read as the other model.
    model: Literal["enhanced-beta-likeness"] = "enhanced-beta-likeness"  # type: ignore[assignment]
    figure: ClassVar[str] = "enhanced_beta"

    def score(self, histogram: Histogram) -> Scores:
        """Return the smallest β that suffices for each class."""
        return enhanced_likeness(histogram)

    def gain(self, q: Shares) -> Shares:
        """Return the largest allowed relative gain, min(β, −ln q)."""
        return np.minimum(self.beta, -np.log(q))

    @property
    def asked(self) -> str:
        """The requirement as one readable line."""
        return f"enhanced {self.beta:g}-likeness{self.where}"


class DeltaDisclosure(SensitiveModel):
    """Every value's share in a class is within a factor e^±``delta`` of its share in the whole table.

    As published, a class fails if a value is absent from it. ARX (in log2) and pycanon (in ln) ignore absent values;
    ``absent = "ignore"`` does the same.
    """

    model: Literal["delta-disclosure"] = "delta-disclosure"
    delta: float = Field(gt=0, allow_inf_nan=False, strict=False)
    absent: Literal["fail", "ignore"] = "fail"
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "delta"
    least: ClassVar[bool] = False

    def score(self, histogram: Histogram) -> Scores:
        """Return the largest log ratio, max |ln(p/q)|, of each class."""
        return largest_log_ratio(histogram, absent=self.absent)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether |ln(p/q)| < δ, strictly: rounding never turns an equality into a pass."""
        return np.asarray(self.score(histogram) < self.delta - TOLERANCE)

    @property
    def unions_pass(self) -> bool:
        """False if absence is ignored: a value absent from one class and rare in another may be too rare in both."""
        return self.absent == "fail"

    def most(self, histogram: Histogram) -> Scores:
        """Return an upper bound on the part with every share below its cap and, if absence fails, above its floor."""
        q = _domain(histogram).shares
        factor = np.exp(self.delta)

        def part(counts: Shares) -> Scores:
            capped = under_caps(counts, q * factor)
            if self.absent == "ignore":
                return capped
            return np.asarray(np.minimum(capped, (counts * (factor / q)).min(axis=1)))

        return by_blocks(histogram, part)

    @property
    def asked(self) -> str:
        """The requirement as one readable line."""
        return f"{self.delta:g}-disclosure privacy{self.where}"


def _all(histogram: Histogram, entries: NDArray[np.bool_]) -> Passing:
    """Return whether all entries of each class are true."""
    return np.logical_and.reduceat(entries, histogram.starts[:-1]) if len(entries) else np.zeros(0, np.bool_)
