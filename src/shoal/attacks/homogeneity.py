"""Homogeneity: all records that fit a person share one sensitive value, so nobody needs to know which is theirs.

A. Machanavajjhala et al., "ℓ-diversity", ICDE 2006.
Bound  0 where every class has at least two values.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.risk import Credits, Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Secret


def homogeneity(found: Secret, outside: Secret | None = None) -> Risk:
    """How many people's values are given away for certain."""
    scored = _scored(found)
    return risk(
        "homogeneity",
        "inference",
        scored,
        f"For {percent(float(scored.credits.mean()))} of the people all records that fit show the same "
        f"{found.column}: it is known without finding out which record is theirs.",
        column=found.column,
        outside=None if outside is None else _scored(outside),
        bound=0.0 if found.diversity > 1 else None,
    )


def given_away(found: Secret) -> Credits:
    """1 for each person whose candidates all have the value that is really theirs."""
    kinds = found.sight.kind_of
    certain = found.distinct[kinds] == 1
    return np.asarray(certain & (found.share_of_truth(found.shown) > 0), np.float64)


def _scored(found: Secret) -> Scored:
    credits = given_away(found)
    return Scored(credits, credits * found.shares[found.truth], "the same claims, at the shares of the whole table")
