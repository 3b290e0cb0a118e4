"""Similarity: the values of the records that match a person differ but mean nearly the same.

Incomes of 3, 4 and 5 thousand are three values, and one piece of news; so are gastritis and gastric ulcer.
N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007.
Control  the same claims, right and wrong, each at the share of its values in the whole release.
Bound  0 where t is below 1 − the greatest share of a group in the whole: a class inside a group is farther away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.candidates import Secret
from shoal.attacks.homogeneity import CLAIMS
from shoal.attacks.risk import Risk
from shoal.attacks.scoring import Scored, value_risk
from shoal.attacks.skewness import closeness
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.notation.forms import decimal_mark, read_number
from shoal.tables.frequency import RowNumbers


@dataclass(frozen=True, eq=False)
class Meaning:
    """Which values mean nearly the same: those under one label of a hierarchy, or numbers close to each other."""

    groups: RowNumbers | None = None  # (values)
    numbers: NDArray[np.float64] | None = None  # (values)
    width: float = 0.0  # numbers as near as this are similar


def meaning(secret: Secret, hierarchy: Hierarchy | None, *, level: int = 1, within: float = 0.25) -> Meaning | None:
    """Group by the hierarchy's labels at ``level``, or numbers ``within`` a share of their range; else None."""
    present = secret.whole > 0
    if hierarchy is not None and level < hierarchy.height:
        number_of: dict[object, int] = {}
        groups = []
        for value in secret.values:
            strange = bool(hierarchy.missing([value]))
            label = value if strange else hierarchy.labels[level][hierarchy.table[level, hierarchy.encode([value])[0]]]
            groups.append(number_of.setdefault((strange, label), len(number_of)))
        return Meaning(groups=np.array(groups))
    mark = decimal_mark(value for value in secret.values if value is not None)
    read = [None if value is None else read_number(value, mark) for value in secret.values]
    if any(x is None for x, occurs in zip(read, present, strict=True) if occurs):
        return None
    numbers = np.array([np.nan if x is None else float(x) for x in read])
    span = float(numbers[present].max() - numbers[present].min())
    return Meaning(numbers=numbers, width=within * span) if span > 0 else None


def similarity(secret: Secret, means: Meaning, outside: Secret | None = None) -> Risk:
    """Measure how many people's values are disclosed approximately, with certainty."""
    points, width = _places(means)
    near = "under one heading" if means.groups is not None else "close together"
    return value_risk(
        "similarity",
        secret,
        outside,
        lambda people: _by_all(people, means),
        lambda scored: (
            f"For {scored.success} of the targets, every {secret.column} among the matching records is {near}, "
            "including the true one: it is disclosed approximately, however many different values there are."
        ),
        0.0 if closeness(secret) < 1 - _SimilarShares(secret, points).greatest(width) - 1e-12 else None,
    )


def _places(means: Meaning) -> tuple[NDArray[np.float64], float]:
    """Return values as points, and the distance up to which points are similar."""
    if means.groups is not None:
        return means.groups.astype(np.float64), 0.0
    assert means.numbers is not None
    return means.numbers, means.width * (1 + 1e-12)  # rounding: 5 − 3 is a quarter of 11 − 3, and must count as one


class _SimilarShares:
    """The share of the release's records between two points."""

    def __init__(self, secret: Secret, points: NDArray[np.float64]) -> None:
        order = np.argsort(points, kind="stable")  # a number that is none comes last, and no record has it
        self.ranked = points[order]
        self.total = np.concatenate([[0.0], np.cumsum(secret.shares[order])])

    def between(self, first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
        ends = np.searchsorted(self.ranked, last, "right"), np.searchsorted(self.ranked, first, "left")
        return np.asarray(self.total[ends[0]] - self.total[ends[1]])

    def greatest(self, width: float) -> float:
        """Return the largest share of similar values."""
        points = self.ranked[~np.isnan(self.ranked)]
        return float(self.between(points, points + width).max())


def _by_all(secret: Secret, means: Meaning) -> dict[str, Scored]:
    points, width = _places(means)
    shares = _SimilarShares(secret, points)
    return {choice.name: _scored(secret.by(choice), points, width, shares) for choice in secret.view.choices}


def _scored(secret: Secret, points: NDArray[np.float64], width: float, shares: _SimilarShares) -> Scored:
    """Score the people whose candidates are similar."""
    matching = secret.matching
    matched = np.diff(matching.indptr) > 0
    starts = matching.indptr[:-1][matched]  # of kinds with candidates
    low, high = np.zeros(len(matched)), np.full(len(matched), -1.0)
    if len(starts):
        low[matched] = np.minimum.reduceat(points[matching.indices], starts)
        high[matched] = np.maximum.reduceat(points[matching.indices], starts)
    kinds = secret.view.kind_of
    true_point = np.where(secret.truth >= 0, points[secret.truth], np.nan)
    claimed = matched[kinds] & (high[kinds] - low[kinds] <= width)
    credits = claimed & (low[kinds] <= true_point) & (true_point <= high[kinds])
    blind = np.where(claimed, shares.between(low[kinds], high[kinds]), 0.0)
    classes = secret.view.ties
    return Scored(credits.astype(np.float64), blind, CLAIMS, claimed.astype(np.float64), classes, failing=2)
