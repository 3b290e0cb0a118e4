"""Homogeneity: all records that match a person have the same sensitive value, so it is disclosed.

A. Machanavajjhala et al., "ℓ-diversity", ICDE 2006.
Control  the same claims, right and wrong, each at the share of its value in the whole release.
Bound  0 where every class has at least two values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Credits, Risk, percent_words
from shoal.attacks.scoring import Scored, risk

CLAIMS = "the same claims, right with the frequencies of the whole table"


def homogeneity(found: Secret, outside: Secret | None = None) -> Risk:
    """Measure how many people's values are disclosed because all matching records agree."""
    return risk(
        "homogeneity",
        "inference",
        _scored(found),
        lambda scored: (
            f"For {percent_words(float(scored.credits.mean()))} of the targets, all matching records have the same "
            f"{found.column}, and it is the true one: it is disclosed without knowing which record is theirs."
        ),
        column=found.column,
        outside=None if outside is None else _scored(outside),
        bound=0.0 if found.diversity > 1 else None,
    )


def given_away(found: Secret) -> Credits:
    """Return 1 for each person whose candidates all have the person's true value."""
    return np.asarray(_claimed(found) & (found.share_of_truth(found.shown) > 0), np.float64)


def _claimed(found: Secret) -> NDArray[np.bool_]:
    return np.asarray(found.distinct[found.sight.kind_of] == 1)


def _scored(found: Secret) -> dict[str, Scored]:
    out = {}
    for choice in found.sight.choices:
        chosen = found.by(choice)
        claimed = _claimed(chosen)
        said = chosen.best(np.ones(chosen.shown.nnz))[chosen.sight.kind_of]
        blind = np.where(claimed, found.shares[said], 0.0)
        credits, classes = given_away(chosen), chosen.sight.ties
        out[choice.name] = Scored(credits, blind, CLAIMS, claimed.astype(np.float64), classes, failing=2)
    return out
