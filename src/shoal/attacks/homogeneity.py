"""Homogeneity: all records that match a person have the same sensitive value, so it is disclosed.

A. Machanavajjhala et al., "ℓ-diversity", ICDE 2006.
Control  the same claims, right and wrong, each at the share of its value in the whole release.
Bound  0 where every class has at least two values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Credits, Risk
from shoal.attacks.scoring import Scored, value_risk

CLAIMS = "the same claims, right with the frequencies of the whole table"


def homogeneity(secret: Secret, outside: Secret | None = None) -> Risk:
    """Measure how many people's values are disclosed because all matching records agree."""
    return value_risk(
        "homogeneity",
        secret,
        outside,
        _scored,
        lambda scored: (
            f"For {scored.success} of the targets, all matching records have the same {secret.column}, and it is the "
            "true one: it is disclosed without knowing which record is theirs."
        ),
        0.0 if secret.diversity > 1 else None,
    )


def given_away(secret: Secret) -> Credits:
    """Return 1 for each person whose candidates all have the person's true value."""
    return np.asarray(_claimed(secret) & (secret.share_of_truth(secret.matching) > 0), np.float64)


def _claimed(secret: Secret) -> NDArray[np.bool_]:
    return np.asarray(secret.distinct[secret.view.kind_of] == 1)


def _scored(secret: Secret) -> dict[str, Scored]:
    out = {}
    for choice in secret.view.choices:
        chosen = secret.by(choice)
        claimed = _claimed(chosen)
        claim = chosen.best(np.ones(chosen.matching.nnz))[chosen.view.kind_of]
        blind = np.where(claimed, secret.shares[claim], 0.0)
        credits, classes = given_away(chosen), chosen.view.ties
        out[choice.name] = Scored(credits, blind, CLAIMS, claimed.astype(np.float64), classes, failing=2)
    return out
