"""Complementary release: two releases of the same people, each safe alone, are combined.

A person's value must be among the candidates of both. L. Sweeney, "k-anonymity", IJUFKS 10(5), 2002.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array

from shoal.attacks.candidates import Secret
from shoal.attacks.homogeneity import given_away
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk
from shoal.hierarchies.hierarchy import Label

BLOCK = 2**16  # pairs of kinds compared together


def complementary_release(found: Secret, earlier: Secret) -> Risk:
    """Measure how many people's values are the only ones that the candidates of both releases share.

    Both are of the same people, in the same order; the values of ``earlier`` may have other numbers.
    """
    n_theirs = earlier.shown.shape[0]
    pairs, pair_of = np.unique(found.sight.kind_of * n_theirs + earlier.sight.kind_of, return_inverse=True)
    mine, theirs = _there(found, found.values), _there(earlier, found.values)
    common = np.empty(len(pairs), np.int64)
    for first in range(0, len(pairs), BLOCK):
        some = pairs[first : first + BLOCK]
        common[first : first + BLOCK] = mine[some // n_theirs].multiply(theirs[some % n_theirs]).sum(axis=1)
    own = (found.share_of_truth(found.shown) > 0) & (earlier.share_of_truth(earlier.shown) > 0)
    credits = (own & (common[pair_of.ravel()] == 1)).astype(np.float64)
    alone = np.maximum(given_away(found), given_away(earlier))
    # Whether a value is certain depends on all who share a class of either release with the person.
    one, other = found.sight.class_of, earlier.sight.class_of
    ties = np.column_stack([one, other + one.max(initial=0) + 1])
    return risk(
        "complementary release",
        "linkability",
        Scored(
            credits, alone * credits, "the same targets, with only one of the releases", classes=ties, reaching=True
        ),
        f"With both releases, the {found.column} of {percent_words(float(credits.mean()))} of the targets is "
        f"certain; one of them alone discloses {percent_words(float((alone * credits).mean()))}.",
        column=found.column,
    )


def _there(found: Secret, values: Sequence[Label]) -> csr_array:
    """Return which of some values the candidates of each kind have."""
    number = {value: i for i, value in enumerate(values)}
    place = np.array([number.get(value, -1) for value in found.values])[found.shown.indices]
    kind = np.repeat(np.arange(found.shown.shape[0]), np.diff(found.shown.indptr))[place >= 0]
    there = place[place >= 0]
    return csr_array((np.ones(len(there), np.int64), (kind, there)), shape=(found.shown.shape[0], len(values)))
