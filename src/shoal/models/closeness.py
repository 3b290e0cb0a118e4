"""How far from the whole: t-closeness, and the figures of β-likeness and δ-disclosure.

N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and ℓ-diversity", ICDE 2007.
The whole is the table before anything was suppressed; the values are those that occur in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from shoal.errors import PolicyError
from shoal.models.base import TOLERANCE, Merging, Scores, SensitiveModel, Verdicts
from shoal.models.diversity import shares
from shoal.models.parts import by_blocks, under_caps, with_mean_within
from shoal.table.frequency import Domain, Histogram

Shares = NDArray[np.float64]


def equal(p: Shares, domain: Domain) -> Scores:
    """½ Σ |p − q|: every value is as far from every other."""
    return np.asarray(np.abs(p - domain.shares).sum(axis=1) / 2)


def ordered(p: Shares, domain: Domain) -> Scores:
    """1/(m−1) Σ_i |Σ_{j≤i} (p_j − q_j)|: neighbours in the order are near."""
    m = len(domain.shares)
    if m == 1:
        return np.zeros(len(p))
    return np.asarray(np.abs(np.cumsum(p - domain.shares, axis=1)).sum(axis=1) / (m - 1))


def numeric(p: Shares, domain: Domain) -> Scores:
    """∫ |F_p − F_q| dx / (max − min): values are as far as their difference."""
    if domain.numbers is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'numeric' needs numbers, and some of its values are none",
            "choose distance 'equal', 'ordered' or 'hierarchical'",
        )
    order = np.argsort(domain.numbers, kind="stable")  # a tree or file may list them otherwise
    gaps = np.diff(domain.numbers[order])
    if not len(gaps) or gaps.sum() == 0:
        return np.zeros(len(p))
    apart = np.abs(np.cumsum((p - domain.shares)[:, order], axis=1))[:, :-1]
    return np.asarray(apart @ gaps / gaps.sum())


def hierarchical(p: Shares, domain: Domain) -> Scores:
    """Mass moves through the nearest common ancestor at the cost of its height (Li 2007, section 4.3).

    In every subtree the smaller of what its children have too much and too little is moved there.
    """
    if domain.hierarchy is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'hierarchical' needs a hierarchy",
            "give the sensitive column one in the policy",
        )
    height = len(domain.hierarchy) - 1
    child_of = np.arange(p.shape[1])
    extra = p - domain.shares
    total = np.zeros(len(p))
    for level in range(height + 1):
        # Level 0 may already join leaves; joining there is free, as its height is 0.
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


Distance = Literal["equal", "ordered", "numeric", "hierarchical"]
DISTANCES: dict[str, Callable[[Shares, Domain], Scores]] = {
    "equal": equal,
    "ordered": ordered,
    "numeric": numeric,
    "hierarchical": hierarchical,
}


def distance(histogram: Histogram, name: str) -> Scores:
    """The distance of every class from the whole."""
    domain = _domain(histogram)
    return by_blocks(histogram, lambda counts: DISTANCES[name](counts / counts.sum(axis=1, keepdims=True), domain))


def nearest_part(histogram: Histogram, name: str, t: float) -> Scores:
    """At most so many records of each class form a part within ``t`` of the whole.

    Equal distance: exact. The others by what they imply: that the mean place is within t (moving mass by x moves the
    mean by at most x), or that the shares of the subtrees of a level differ by at most t·H/(level + 1) in all.
    """
    domain = _domain(histogram)
    q = domain.shares

    def part(counts: Shares) -> Scores:
        if name == "equal":
            return under_caps(counts, q, 1 - t)
        if name == "hierarchical" and domain.hierarchy is not None:
            return _subtree_part(counts, domain.hierarchy, q, t)
        places = np.arange(len(q), dtype=np.float64) if name == "ordered" else domain.numbers
        if places is None or len(places) < 2 or places[-1] == places[0]:
            return np.asarray(counts.sum(axis=1))
        places = (places - places[0]) / (places[-1] - places[0])
        return with_mean_within(counts, places, float(q @ places) - t, float(q @ places) + t)

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
    """p and q of every entry."""
    return shares(histogram), _domain(histogram).shares[histogram.values]


def likeness(histogram: Histogram) -> Scores:
    """The β of basic β-likeness: the greatest (p_s − q_s)/q_s of each class, 0 where no value gains."""
    p, q = _gains(histogram)
    return np.asarray(np.maximum.reduceat(np.maximum(0, (p - q) / q), histogram.starts[:-1]))


def enhanced_likeness(histogram: Histogram) -> Scores:
    """The β of enhanced β-likeness; no β suffices where a value gains more than −ln q_s."""
    p, q = _gains(histogram)
    gain = np.maximum(0, (p - q) / q)
    capped = np.where(gain <= -np.log(q) + TOLERANCE, gain, np.inf)
    return np.asarray(np.maximum.reduceat(capped, histogram.starts[:-1]))


def largest_log_ratio(histogram: Histogram) -> Scores:
    """The δ of δ-disclosure privacy: the greatest |ln(p_s/q_s)|; as published, a value absent from the class fails."""
    p, q = _gains(histogram)
    ratio = np.maximum.reduceat(np.abs(np.log(p / q)), histogram.starts[:-1])
    return np.where(np.diff(histogram.starts) < histogram.n_values, np.inf, ratio)


class TCloseness(SensitiveModel):
    """The distribution of the sensitive column in every class is within ``t`` of the whole table's."""

    model: Literal["t-closeness"] = "t-closeness"
    t: float = Field(ge=0, le=1, strict=False)
    distance: Distance = "equal"
    merging: ClassVar[Merging] = "convex"
    figure: ClassVar[str] = "t"
    least: ClassVar[bool] = False

    def score(self, histogram: Histogram) -> Scores:
        """D(p, q)."""
        return distance(histogram, self.distance)

    def accepts(self, histogram: Histogram) -> Verdicts:
        """D(p, q) ≤ t."""
        return np.asarray(self.score(histogram) <= self.t + TOLERANCE)

    def most(self, histogram: Histogram) -> Scores:
        """The largest part within t."""
        return nearest_part(histogram, self.distance, self.t + TOLERANCE)

    @property
    def asked(self) -> str:
        """In one line."""
        return f"{self.t:g}-closeness ({self.distance}){self.where}"
