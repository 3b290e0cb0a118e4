"""External knowledge: a member of a class subtracts himself, and sees what the others have.

K. Stokes, V. Torra and others: in a class with illnesses A, A, B, the one with B knows that everybody else has A.
Bound  0 where every class has at least three values: without one record at least two are left.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk


def external_knowledge(found: Secret) -> Risk:
    """How many people learn the value of everybody else whom their own candidates may belong to."""
    kinds = found.sight.kind_of
    own = found.share_of_truth(found.shown)
    distinct, n = found.distinct[kinds], found.sight.candidates[kinds]
    member = own > 0
    all_alike = member & (distinct == 1) & (n > 1)
    odd_one = member & (distinct == 2) & (own == 1)
    credits = (all_alike | odd_one).astype(np.float64)
    return risk(
        "external knowledge",
        "inference",
        Scored(
            credits,
            all_alike.astype(np.float64),
            "members who learn no more than any outsider",
            classes=found.sight.ties,
            succeeding=2,  # two who are alike in all but the value learn each other's
        ),
        f"{percent(float(credits.mean()))} of the records in the release tell their owner the {found.column} of all "
        "others in the class, by taking the own record away.",
        column=found.column,
        bound=0.0 if found.diversity > 2 else None,
    )
