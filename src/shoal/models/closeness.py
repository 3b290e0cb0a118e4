"""Models of the distance to the overall distribution: t-closeness, β-likeness, δ-disclosure privacy.

N. Li, T. Li, S. Venkatasubramanian, "t-closeness: privacy beyond k-anonymity and ℓ-diversity", ICDE 2007.
J. Cao, P. Karras, "Publishing microdata with a robust privacy guarantee", VLDB 2012 (β-likeness).
J. Brickell, V. Shmatikov, "The cost of privacy", KDD 2008 (δ-disclosure).
The overall distribution q is that of the table before suppression; only values that occur in it count.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from shoal.errors import PolicyError
from shoal.models.base import TOLERANCE, Merging, Passing, Scores, SensitiveModel
from shoal.models.diversity import class_sizes, shares
from shoal.models.kernels import equal_distances, line_distances, tree_distances
from shoal.models.parts import most_in_subtrees, most_on_line, most_under_caps
from shoal.models.shares import LimitedGain, ShareBound, Shares
from shoal.tables.frequency import Domain, Histogram, RowNumbers


class ValueLine(NamedTuple):
    """The values of a sensitive column in order, with the distance from each to the next; the whole line is 1 long."""

    places: NDArray[np.int64]  # (values)  the position of each value
    q: Shares  # (values)  the overall shares, by position
    gaps: Shares  # (values − 1)


@lru_cache(maxsize=64)
def line_of_values(domain: Domain, name: str) -> ValueLine | None:
    """Return the values one apart, or as far apart as their difference; None if all are at one place."""
    at = np.arange(len(domain.texts), dtype=np.float64) if name == "ordered" else domain.places
    if at is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'numeric' needs numbers, but some of its values are not numbers",
            "choose distance 'equal', 'ordered' or 'hierarchical'",
        )
    order = np.argsort(at, kind="stable")  # a tree or file may list numbers in another order
    gaps = np.diff(at[order])
    if not len(gaps) or gaps.sum() == 0:
        return None
    places = np.empty(len(at), np.int64)
    places[order] = np.arange(len(at))
    return ValueLine(places, domain.shares[order], gaps / gaps.sum())


def _subtrees(domain: Domain) -> NDArray[np.int32]:
    if domain.hierarchy is None:
        raise PolicyError(
            f"column {domain.column!r}: distance 'hierarchical' needs a hierarchy",
            "add one to the sensitive column in the policy",
        )
    return domain.hierarchy


def equal_distance(histogram: Histogram) -> Scores:
    """Return ½ Σ |p − q|: all values are equally far apart."""
    return equal_distances(histogram.starts, histogram.values, histogram.counts, _domain(histogram).shares)


def ordered_distance(histogram: Histogram) -> Scores:
    """Return 1/(m−1) Σ_i |Σ_{j≤i} (p_j − q_j)|: neighbours in the order are close."""
    return _along(histogram, line_of_values(_domain(histogram), "ordered"))


def numeric_distance(histogram: Histogram) -> Scores:
    """Return ∫ |F_p − F_q| dx / (max − min): values are as far apart as their difference."""
    return _along(histogram, line_of_values(_domain(histogram), "numeric"))


def _along(histogram: Histogram, line: ValueLine | None) -> Scores:
    if line is None:
        return np.zeros(histogram.n_classes)
    return line_distances(histogram.starts, histogram.values, histogram.counts, *line)


def hierarchical_distance(histogram: Histogram) -> Scores:
    """Return the cost of moving mass through nearest common ancestors, priced by height (Li 2007, section 4.3)."""
    domain = _domain(histogram)
    return tree_distances(histogram.starts, histogram.values, histogram.counts, _subtrees(domain), domain.shares)


def kullback_leibler(histogram: Histogram) -> Scores:
    """Return Σ p ln(p/q), in nats; q is never 0 where p is not, because the class is part of the table."""
    p, q = _gains(histogram)
    return _sums(histogram, p * np.log(p / q))


def jensen_shannon(histogram: Histogram) -> Scores:
    """Return ½ KL(p ‖ m) + ½ KL(q ‖ m), where m is the mean of p and q; at most ln 2."""
    p, q = _gains(histogram)
    m = (p + q) / 2
    absent = np.maximum(0.0, 1 - _sums(histogram, q))  # where m = q/2, and ln(q/m) = ln 2
    return np.asarray((_sums(histogram, p * np.log(p / m) + q * np.log(q / m)) + absent * math.log(2)) / 2)


Distance = Literal["equal", "ordered", "numeric", "hierarchical", "kl", "js"]
DISTANCES: dict[str, Callable[[Histogram], Scores]] = {
    "equal": equal_distance,
    "ordered": ordered_distance,
    "numeric": numeric_distance,
    "hierarchical": hierarchical_distance,
    "kl": kullback_leibler,
    "js": jensen_shannon,
}


def distance(histogram: Histogram, name: str) -> Scores:
    """Return the distance of each class from the overall distribution."""
    return DISTANCES[name](histogram)


def nearest_part(histogram: Histogram, rows: RowNumbers, name: str, t: float) -> Scores:
    """Return an upper bound on the number of records in a part within ``t`` of the overall distribution.

    One for each class of ``rows``, exact for the equal distance. The other distances are bounded by consequences:
    linear conditions on a line; the shares of the subtrees of each level; or, for divergences, Pinsker's inequality,
    which bounds the equal distance by √(KL/2) or √(2 JS).
    """
    domain = _domain(histogram)
    entries = histogram.starts, histogram.values, histogram.counts, rows
    if name in ("ordered", "numeric"):
        line = line_of_values(domain, name)
        return class_sizes(histogram)[rows].astype(np.float64) if line is None else most_on_line(*entries, *line, t)
    if name == "hierarchical":
        return most_in_subtrees(*entries, _subtrees(domain), domain.shares, t)
    radius = {"equal": t, "kl": (t / 2) ** 0.5, "js": (2 * t) ** 0.5}[name]
    return most_under_caps(*entries, domain.shares, 1 - radius)


def _domain(histogram: Histogram) -> Domain:
    if histogram.domain is None:
        raise TypeError("distances are between sensitive values")
    return histogram.domain


def _gains(histogram: Histogram) -> tuple[Shares, Shares]:
    """Return p and q for every entry."""
    return shares(histogram), _domain(histogram).shares[histogram.values]


def _sums(histogram: Histogram, entries: Shares) -> Scores:
    """Return the sum of the entries of each class."""
    return np.add.reduceat(entries, histogram.starts[:-1]) if len(entries) else np.zeros(0)


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
    formula: ClassVar[str] = "D(p, q) ≤ t"
    lowest_is_worst: ClassVar[bool] = False

    @model_validator(mode="after")
    def _t_at_most_one(self) -> Self:
        if self.t > 1 and self.distance != "kl":
            raise ValueError(f"t must be at most 1: no two distributions are farther apart by {self.distance!r}")
        return self

    def score(self, histogram: Histogram) -> Scores:
        """Return the distance D(p, q) of each class."""
        return distance(histogram, self.distance)

    def accepts(self, histogram: Histogram) -> Passing:
        """Return whether D(p, q) ≤ t for each class."""
        return np.asarray(self.score(histogram) <= self.t + TOLERANCE)

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return an upper bound on the largest part within t."""
        return nearest_part(histogram, rows, self.distance, self.t + TOLERANCE)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"{self.t:g}-closeness ({self.distance}){self.where}"


class BasicLikeness(ShareBound):
    """No value's share in a class exceeds its share in the whole table by more than ``beta`` times the latter."""

    model: Literal["basic-beta-likeness"] = "basic-beta-likeness"
    beta: float = Field(gt=0, allow_inf_nan=False, strict=False)
    figure: ClassVar[str] = "beta"
    formula: ClassVar[str] = "(p_s − q_s)/q_s ≤ β wherever p_s > q_s"

    def excess(self, p: Shares, q: Shares) -> Shares:
        """Return the relative gain (p − q)/q."""
        return np.asarray((p - q) / q)

    def cap(self, q: Shares) -> Shares:
        """Return q and its largest allowed gain."""
        return np.asarray(q * (1 + self.gain(q)))

    def gain(self, q: Shares) -> Shares:
        """Return the largest allowed relative gain of each share."""
        return np.full_like(q, self.beta)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"basic {self.beta:g}-likeness{self.where}{self.exempt_words}"


class EnhancedLikeness(BasicLikeness):
    """β-likeness with min(β, −ln q) as the bound, so that frequent values may gain less."""

    # A separate name, so that a policy can never be read as the other model.
    model: Literal["enhanced-beta-likeness"] = "enhanced-beta-likeness"  # type: ignore[assignment]
    figure: ClassVar[str] = "enhanced_beta"
    formula: ClassVar[str] = "(p_s − q_s)/q_s ≤ min(β, −ln q_s) wherever p_s > q_s"

    def excess(self, p: Shares, q: Shares) -> Shares:
        """Return the relative gain; no β suffices if it is more than −ln q."""
        gain = (p - q) / q
        return np.where(gain <= -np.log(q) + TOLERANCE, gain, np.inf)

    def gain(self, q: Shares) -> Shares:
        """Return the largest allowed relative gain, min(β, −ln q)."""
        return np.minimum(self.beta, -np.log(q))

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"enhanced {self.beta:g}-likeness{self.where}{self.exempt_words}"


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
    formula: ClassVar[str] = "abs(ln(p_s/q_s)) < δ for every value"
    lowest_is_worst: ClassVar[bool] = False

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

    def max_passing_by_column(self, histogram: Histogram, rows: RowNumbers) -> Scores:
        """Return an upper bound on the part with every share below its cap and, if absence fails, above its floor."""
        q = _domain(histogram).shares
        factor = np.exp(self.delta)
        entries = histogram.starts, histogram.values, histogram.counts
        capped = most_under_caps(*entries, rows, q * factor, 1.0)
        if self.absent == "ignore" or not histogram.n_classes:
            return capped
        floors = np.minimum.reduceat(histogram.counts * (factor / q[histogram.values]), histogram.starts[:-1])
        return np.where(np.diff(histogram.starts) < histogram.n_values, 0.0, floors)[rows].clip(max=capped)

    @property
    def summary(self) -> str:
        """The requirement as one readable line."""
        return f"{self.delta:g}-disclosure privacy{self.where}"


COMPARED = (TCloseness, BasicLikeness, DeltaDisclosure, LimitedGain)  # with the distribution of the whole table
