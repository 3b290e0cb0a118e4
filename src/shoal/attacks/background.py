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
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk

WITHOUT = "the same targets, without this knowledge"


def exclusion(
    found: Secret, outside: Secret | None = None, *, excludes: int = 1, excluded: Collection[str] = ()
) -> Risk:
    """Measure how many people's values become certain once other values are ruled out.

    ``excluded`` lists values that the intruder rules out for everybody who does not have them; without it, any
    ``excludes`` wrong values that serve best.
    """
    what = "some values" if excluded else "one value" if excludes == 1 else f"{excludes} values"

    def excluding(people: Secret) -> dict[str, Scored]:
        chosen = {choice.name: people.by(choice) for choice in people.sight.choices}
        return {name: _excluding(one, excludes, excluded) for name, one in chosen.items()}

    bound = 0.0 if not excluded and found.diversity > excludes + 1 else None
    return risk(
        "exclusion",
        "inference",
        excluding(found),
        lambda scored: (
            f"An attacker who can rule out {what} of {found.column} for a person is certain of the true one in "
            f"{percent_words(float(scored.credits.mean()))} of all cases."
        ),
        column=found.column,
        outside=None if outside is None else excluding(outside),
        bound=bound,
    )


def _excluding(found: Secret, excludes: int, excluded: Collection[str]) -> Scored:
    kinds = found.sight.kind_of
    own = found.share_of_truth(found.shown) > 0
    left = found.distinct[kinds]
    if excluded:
        out = np.array([value in set(excluded) for value in found.values])
        ruled_out = np.asarray((found.shown > 0).astype(np.int64) @ out.astype(np.int64))[kinds]
        # Their own value is not ruled out for those who have it: the intruder knows only what is true.
        left = left - ruled_out + (out[found.truth] & own)
        certain = own & (left == 1)
    else:
        certain = own & (left <= excludes + 1)
    return Scored(certain.astype(np.float64), given_away(found), WITHOUT, classes=found.sight.ties)


def relative(found: Secret, outside: Secret | None = None) -> Risk:
    """Measure how often knowing the value of one relative among the candidates discloses the person's own."""

    def beside(people: Secret) -> dict[str, Scored]:
        return {choice.name: _beside_a_relative(people.by(choice)) for choice in people.sight.choices}

    return risk(
        "relative",
        "inference",
        beside(found),
        lambda scored: (
            f"An attacker who knows the {found.column} of one relative among the records that match a person is "
            f"certain of the person's own in {percent_words(float(scored.credits.mean()))} of all cases."
        ),
        column=found.column,
        outside=None if outside is None else beside(outside),
        bound=0.0 if found.diversity > 2 else None,
    )


def _beside_a_relative(found: Secret) -> Scored:
    kinds = found.sight.kind_of
    certain = given_away(found)
    own = found.share_of_truth(found.shown)
    n = found.sight.candidates[kinds]
    # Two values, the other one once: it must be the relative's, who is any of the n − 1 others.
    one_other = (own > 0) & (found.distinct[kinds] == 2) & (n - own == 1)
    credits = np.where(one_other, 1 / np.maximum(n - 1, 1), certain)
    return Scored(credits, certain, WITHOUT, classes=found.sight.ties)
