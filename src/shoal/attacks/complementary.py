"""Complementary release: two releases of the same people, each safe alone, are laid side by side.

A person's value must be among the candidates of both. L. Sweeney, "k-anonymity", IJUFKS 10(5), 2002.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.homogeneity import given_away
from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Secret


def complementary_release(found: Secret, earlier: Secret) -> Risk:
    """How many people's values are the only one that the candidates of both releases share.

    Both are of the same people, in the same order; the values of ``earlier`` may have other numbers.
    """
    number = {value: i for i, value in enumerate(found.values)}
    place = np.array([number.get(value, -1) for value in earlier.values])
    kinds, pair_of = np.unique(
        np.column_stack([found.sight.kind_of, earlier.sight.kind_of]), axis=0, return_inverse=True
    )
    common = np.empty(len(kinds), np.int64)
    for i, (mine, theirs) in enumerate(kinds):
        ours = found.shown.indices[found.shown.indptr[mine] : found.shown.indptr[mine + 1]]
        others = earlier.shown.indices[earlier.shown.indptr[theirs] : earlier.shown.indptr[theirs + 1]]
        common[i] = np.isin(place[others], ours).sum()
    own = (found.share_of_truth(found.shown) > 0) & (earlier.share_of_truth(earlier.shown) > 0)
    credits = (own & (common[pair_of.ravel()] == 1)).astype(np.float64)
    alone = np.maximum(given_away(found), given_away(earlier))
    # People go together who share a class of either release.
    first, second = found.sight.class_of, earlier.sight.class_of
    ties = np.column_stack([first, second + first.max(initial=0) + 1])
    return risk(
        "complementary release",
        "linkability",
        Scored(credits, alone * credits, "the same people, by one of the releases alone", classes=ties),
        f"With both releases the {found.column} of {percent(float(credits.mean()))} of the people is certain; one of "
        f"them alone gives away {percent(float((alone * credits).mean()))}.",
        column=found.column,
    )
