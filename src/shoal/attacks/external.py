"""External knowledge: a member of a class excludes their own record and sees the values of the others.

K. Stokes, V. Torra and others: in a class with illnesses A, A, B, the one with B knows that everybody else has A.
Bound  0 where every class has at least three values: without one record at least two are left.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk


def external_knowledge(secret: Secret) -> Risk:
    """Measure how many people learn the value of everyone else in their class."""
    kinds = secret.view.kind_of
    n_truth = secret.share_of_truth(secret.matching)
    distinct, n = secret.distinct[kinds], secret.view.candidates[kinds]
    member = n_truth > 0
    all_alike = member & (distinct == 1) & (n > 1)
    odd_one = member & (distinct == 2) & (n_truth == 1)
    credits = (all_alike | odd_one).astype(np.float64)
    return risk(
        "external knowledge",
        "inference",
        Scored(
            credits,
            all_alike.astype(np.float64),
            "members who learn no more than any outsider",
            classes=secret.view.ties,
            succeeding=2,  # two who are alike in all but the value learn each other's
        ),
        f"{percent_words(float(credits.mean()))} of the people in the release can deduce the {secret.column} of all "
        "others in their class by excluding their own record.",
        column=secret.column,
        bound=0.0 if secret.diversity > 2 else None,
    )
