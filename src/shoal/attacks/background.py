"""Background knowledge: further facts about a person rule out all but one of the candidate values.

Either values can be excluded for a person (who drives an expensive car does not have the low income), or the value
of a relative among the candidates is known, and taken away.
A. Machanavajjhala et al., "ℓ-diversity", ICDE 2006: who must exclude ℓ − 1 values needs to know ℓ − 1 things.
Bound  0 where every class has more values than can be excluded, and one.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from shoal.attacks.candidates import Secret
from shoal.attacks.homogeneity import given_away
from shoal.attacks.risk import Risk
from shoal.attacks.scoring import Scored, value_risk

LESS_KNOWLEDGE = "the same targets, without this knowledge"


def exclusion(
    secret: Secret, outside: Secret | None = None, *, excludes: int = 1, excluded: Collection[str] = ()
) -> Risk:
    """Measure how many people's values become certain once other values are ruled out.

    ``excluded`` lists values that the intruder rules out for everybody who does not have them; without it, any
    ``excludes`` wrong values that serve best.
    """
    ruled_out = "some values" if excluded else "one value" if excludes == 1 else f"{excludes} values"

    def excluding(people: Secret) -> dict[str, Scored]:
        return {choice.name: _excluding(people.by(choice), excludes, excluded) for choice in people.view.choices}

    bound = 0.0 if not excluded and secret.diversity > excludes + 1 else None
    return value_risk(
        "exclusion",
        secret,
        outside,
        excluding,
        lambda scored: (
            f"An attacker who can rule out {ruled_out} of {secret.column} for a person is certain of the true one in "
            f"{scored.success} of all cases."
        ),
        bound,
    )


def _excluding(secret: Secret, excludes: int, excluded: Collection[str]) -> Scored:
    kinds = secret.view.kind_of
    owns_truth = secret.share_of_truth(secret.matching) > 0
    left = secret.distinct[kinds]
    if excluded:
        out = np.array([value in set(excluded) for value in secret.values])
        ruled_out = np.asarray((secret.matching > 0).astype(np.int64) @ out.astype(np.int64))[kinds]
        # Their own value is not ruled out for those who have it: the intruder knows only what is true.
        left = left - ruled_out + (out[secret.truth] & owns_truth)
        certain = owns_truth & (left == 1)
    else:
        certain = owns_truth & (left <= excludes + 1)
    return Scored(certain.astype(np.float64), given_away(secret), LESS_KNOWLEDGE, classes=secret.view.ties)


def relative(secret: Secret, outside: Secret | None = None) -> Risk:
    """Measure how often knowing the value of one relative among the candidates discloses the person's own."""

    def with_relative(people: Secret) -> dict[str, Scored]:
        return {choice.name: _beside_a_relative(people.by(choice)) for choice in people.view.choices}

    return value_risk(
        "relative",
        secret,
        outside,
        with_relative,
        lambda scored: (
            f"An attacker who knows the {secret.column} of one relative among the records that match a person is "
            f"certain of the person's own in {scored.success} of all cases."
        ),
        0.0 if secret.diversity > 2 else None,
    )


def _beside_a_relative(secret: Secret) -> Scored:
    kinds = secret.view.kind_of
    certain = given_away(secret)
    n_truth = secret.share_of_truth(secret.matching)
    n = secret.view.candidates[kinds]
    # Two values, the other one once: it must be the relative's, who is any of the n − 1 others.
    one_other = (n_truth > 0) & (secret.distinct[kinds] == 2) & (n - n_truth == 1)
    credits = np.where(one_other, 1 / np.maximum(n - 1, 1), certain)
    return Scored(credits, certain, LESS_KNOWLEDGE, classes=secret.view.ties)
