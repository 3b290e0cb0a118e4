"""Similarity: the values of the records that fit a person differ, but mean much the same.

Incomes of 3, 4 and 5 thousand are three values, and one piece of news; so are gastritis and gastric ulcer.
N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007.
Bound  0 where t is below 1 − the greatest share of a group in the whole: a class inside a group is farther away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Secret
from shoal.attacks.skewness import closeness
from shoal.attacks.standing import Rows
from shoal.table.hierarchy import Hierarchy
from shoal.table.intervals import number


@dataclass(frozen=True, eq=False)
class Meaning:
    """Which values mean much the same: those under one label of a hierarchy, or numbers near each other."""

    groups: Rows | None = None  # (values)
    numbers: NDArray[np.float64] | None = None  # (values)
    width: float = 0.0  # numbers as near as this are similar


def meaning(found: Secret, hierarchy: Hierarchy | None, *, level: int = 1, within: float = 0.25) -> Meaning | None:
    """By the hierarchy's labels at ``level``, else numbers ``within`` a share of their range; None for plain words."""
    present = found.whole > 0
    if hierarchy is not None and level < hierarchy.height:
        place: dict[object, int] = {}
        groups = []
        for value in found.values:
            strange = bool(hierarchy.missing([value]))
            label = value if strange else hierarchy.labels[level][hierarchy.table[level, hierarchy.encode([value])[0]]]
            groups.append(place.setdefault((strange, label), len(place)))
        return Meaning(groups=np.array(groups))
    read = [None if value is None else number(value) for value in found.values]
    if any(x is None for x, there in zip(read, present, strict=True) if there):
        return None
    numbers = np.array([np.nan if x is None else float(x) for x in read])
    span = float(numbers[present].max() - numbers[present].min())
    return Meaning(numbers=numbers, width=within * span) if span > 0 else None


def similarity(found: Secret, means: Meaning, outside: Secret | None = None) -> Risk:
    """How many people's values are known roughly, and for certain."""
    scored, most = _scored(found, means)
    near = "under one heading" if means.groups is not None else "close together"
    return risk(
        "similarity",
        "inference",
        scored,
        f"For {percent(float(scored.credits.mean()))} of the people every {found.column} among the records that fit "
        f"lies {near}: it is known roughly, however many different values there are.",
        column=found.column,
        outside=None if outside is None else _scored(outside, means)[0],
        bound=0.0 if closeness(found) < 1 - most - 1e-12 else None,
    )


def _scored(found: Secret, means: Meaning) -> tuple[Scored, float]:
    """The people whose candidates are similar, and the greatest share of similar values in the whole."""
    shown = found.shown
    starts = shown.indptr[:-1][np.diff(shown.indptr) > 0]  # of kinds with candidates
    there = np.diff(shown.indptr) > 0
    low, high = np.zeros(len(there)), np.full(len(there), -1.0)
    if means.groups is not None:
        place: NDArray[np.float64] = means.groups.astype(np.float64)
        width = 0.0
    else:
        assert means.numbers is not None
        place, width = means.numbers, means.width
    if len(starts):
        low[there] = np.minimum.reduceat(place[shown.indices], starts)
        high[there] = np.maximum.reduceat(place[shown.indices], starts)
    kinds = found.sight.kind_of
    own = np.where(found.truth >= 0, place[found.truth], np.nan)
    # Rounding: 5 − 3 is a quarter of 11 − 3, and must count as one.
    claimed = there[kinds] & (high[kinds] - low[kinds] <= width * (1 + 1e-12))
    credits = claimed & (low[kinds] <= own) & (own <= high[kinds])
    order = np.argsort(place, kind="stable")  # a number that is none comes last, and no record has it
    ranked, total = place[order], np.concatenate([[0.0], np.cumsum(found.shares[order])])

    def share(first: NDArray[np.float64], last: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(total[np.searchsorted(ranked, last, "right")] - total[np.searchsorted(ranked, first, "left")])

    blind = np.where(credits, share(low[kinds], high[kinds]), 0.0)
    known = ranked[~np.isnan(ranked)]
    most = float(share(known, known + width * (1 + 1e-12)).max())
    return Scored(credits.astype(np.float64), blind, "the same claims, at the shares of the whole table"), most
