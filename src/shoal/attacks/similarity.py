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
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk
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


def meaning(found: Secret, hierarchy: Hierarchy | None, *, level: int = 1, within: float = 0.25) -> Meaning | None:
    """Group by the hierarchy's labels at ``level``, or numbers ``within`` a share of their range; else None."""
    present = found.whole > 0
    if hierarchy is not None and level < hierarchy.height:
        place: dict[object, int] = {}
        groups = []
        for value in found.values:
            strange = bool(hierarchy.missing([value]))
            label = value if strange else hierarchy.labels[level][hierarchy.table[level, hierarchy.encode([value])[0]]]
            groups.append(place.setdefault((strange, label), len(place)))
        return Meaning(groups=np.array(groups))
    mark = decimal_mark(value for value in found.values if value is not None)
    read = [None if value is None else read_number(value, mark) for value in found.values]
    if any(x is None for x, there in zip(read, present, strict=True) if there):
        return None
    numbers = np.array([np.nan if x is None else float(x) for x in read])
    span = float(numbers[present].max() - numbers[present].min())
    return Meaning(numbers=numbers, width=within * span) if span > 0 else None


def similarity(found: Secret, means: Meaning, outside: Secret | None = None) -> Risk:
    """Measure how many people's values are disclosed approximately, with certainty."""
    place, width = _places(means)
    near = "under one heading" if means.groups is not None else "close together"
    return risk(
        "similarity",
        "inference",
        _by_all(found, means),
        lambda scored: (
            f"For {percent_words(float(scored.credits.mean()))} of the targets, every {found.column} among the "
            "matching "
            f"records is {near}, including the true one: it is disclosed approximately, however many different "
            "values there are."
        ),
        column=found.column,
        outside=None if outside is None else _by_all(outside, means),
        bound=0.0 if closeness(found) < 1 - _SimilarShares(found, place).greatest(width) - 1e-12 else None,
    )


def _places(means: Meaning) -> tuple[NDArray[np.float64], float]:
    """Return values as points, and the distance up to which points are similar."""
    if means.groups is not None:
        return means.groups.astype(np.float64), 0.0
    assert means.numbers is not None
    return means.numbers, means.width * (1 + 1e-12)  # rounding: 5 − 3 is a quarter of 11 − 3, and must count as one


class _SimilarShares:
    """The share of the release's records between two points."""

    def __init__(self, found: Secret, place: NDArray[np.float64]) -> None:
        order = np.argsort(place, kind="stable")  # a number that is none comes last, and no record has it
        self.ranked = place[order]
        self.total = np.concatenate([[0.0], np.cumsum(found.shares[order])])

    def between(self, first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
        ends = np.searchsorted(self.ranked, last, "right"), np.searchsorted(self.ranked, first, "left")
        return np.asarray(self.total[ends[0]] - self.total[ends[1]])

    def greatest(self, width: float) -> float:
        """Return the largest share of similar values."""
        known = self.ranked[~np.isnan(self.ranked)]
        return float(self.between(known, known + width).max())


def _by_all(found: Secret, means: Meaning) -> dict[str, Scored]:
    place, width = _places(means)
    shares = _SimilarShares(found, place)
    return {choice.name: _scored(found.by(choice), place, width, shares) for choice in found.sight.choices}


def _scored(found: Secret, place: NDArray[np.float64], width: float, shares: _SimilarShares) -> Scored:
    """Score the people whose candidates are similar."""
    shown = found.shown
    there = np.diff(shown.indptr) > 0
    starts = shown.indptr[:-1][there]  # of kinds with candidates
    low, high = np.zeros(len(there)), np.full(len(there), -1.0)
    if len(starts):
        low[there] = np.minimum.reduceat(place[shown.indices], starts)
        high[there] = np.maximum.reduceat(place[shown.indices], starts)
    kinds = found.sight.kind_of
    own = np.where(found.truth >= 0, place[found.truth], np.nan)
    claimed = there[kinds] & (high[kinds] - low[kinds] <= width)
    credits = claimed & (low[kinds] <= own) & (own <= high[kinds])
    blind = np.where(claimed, shares.between(low[kinds], high[kinds]), 0.0)
    classes = found.sight.ties
    return Scored(credits.astype(np.float64), blind, CLAIMS, claimed.astype(np.float64), classes, failing=2)
