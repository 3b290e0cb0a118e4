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


def complementary_release(secret: Secret, earlier: Secret) -> Risk:
    """Measure how many people's values are the only ones that the candidates of both releases share.

    Both are of the same people, in the same order; the values of ``earlier`` may have other numbers.
    """
    n_theirs = earlier.matching.shape[0]
    pairs, pair_of = np.unique(secret.view.kind_of * n_theirs + earlier.view.kind_of, return_inverse=True)
    mine, theirs = _candidate_values(secret, secret.values), _candidate_values(earlier, secret.values)
    common = np.empty(len(pairs), np.int64)
    for first in range(0, len(pairs), BLOCK):
        block = pairs[first : first + BLOCK]
        common[first : first + BLOCK] = mine[block // n_theirs].multiply(theirs[block % n_theirs]).sum(axis=1)
    in_both = (secret.share_of_truth(secret.matching) > 0) & (earlier.share_of_truth(earlier.matching) > 0)
    credits = (in_both & (common[pair_of.ravel()] == 1)).astype(np.float64)
    alone = np.maximum(given_away(secret), given_away(earlier))
    # Whether a value is certain depends on all who share a class of either release with the person.
    own_class, earlier_class = secret.view.class_of, earlier.view.class_of
    ties = np.column_stack([own_class, earlier_class + own_class.max(initial=0) + 1])
    return risk(
        "complementary release",
        "linkability",
        Scored(
            credits, alone * credits, "the same targets, with only one of the releases", classes=ties, reaching=True
        ),
        f"With both releases, the {secret.column} of {percent_words(float(credits.mean()))} of the targets is "
        f"certain; one of them alone discloses {percent_words(float((alone * credits).mean()))}.",
        column=secret.column,
    )


def _candidate_values(secret: Secret, values: Sequence[Label]) -> csr_array:
    """Return which of some values the candidates of each kind have."""
    number = {value: i for i, value in enumerate(values)}
    number_of_entry = np.array([number.get(value, -1) for value in secret.values])[secret.matching.indices]
    kind = np.repeat(np.arange(secret.matching.shape[0]), np.diff(secret.matching.indptr))[number_of_entry >= 0]
    values_present = number_of_entry[number_of_entry >= 0]
    return csr_array(
        (np.ones(len(values_present), np.int64), (kind, values_present)), shape=(secret.matching.shape[0], len(values))
    )
