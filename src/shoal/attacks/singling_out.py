"""Singling out: the columns that an intruder knows leave exactly one record, or records of one person only.

Bound  0 where every class has at least two.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Sight


def singling_out(seen: Sight, outside: Sight | None = None) -> Risk:
    """How many people are left alone with one record, which is theirs as far as anybody knows."""
    scored = _scored(seen)
    share = float(scored.credits.mean()) if seen.n_people else 0.0
    known = ", ".join(column.name for column in seen.columns)
    return risk(
        "singling out",
        "singling out",
        scored,
        f"For {percent(share)} of the people exactly one record fits what others know of them ({known}).",
        outside=None if outside is None else _scored(outside),
        bound=0.0 if seen.k > 1 else None,
    )


def _scored(seen: Sight) -> Scored:
    alone = (seen.crowd[seen.kind_of] == 1) & seen.fits_own
    return Scored(alone.astype(np.float64))
