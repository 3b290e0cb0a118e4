"""Identity linking: somebody with a register of names picks, for each person, one of the records that fit.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP, and found the governor.
Bound  1/k: what fits a person is one or more whole classes, and each has at least k records.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Sight


def identity(seen: Sight, outside: Sight | None = None) -> Risk:
    """How often the record picked is the person's own.

    Where nobody knows whose is whose, a person whom any record fits is taken to be behind one of them: an upper
    bound, since some may have been left out of the release.
    """
    scored = _scored(seen)
    known = ", ".join(column.name for column in seen.columns)
    share = scored.credits.mean() if seen.n_people else 0.0
    return risk(
        "identity linking",
        "linkability",
        scored,
        f"Somebody who knows {known} of a person, and picks one of the records that fit, has the right one in "
        f"{percent(float(share))} of all cases.",
        outside=None if outside is None else _scored(outside),
        bound=1 / seen.k,
    )


def _scored(seen: Sight) -> Scored:
    crowd = seen.crowd[seen.kind_of]
    credits = np.where((crowd > 0) & seen.fits_own, 1 / np.maximum(crowd, 1), 0.0)
    everybody = seen.n_records if seen.persons is None else len(np.unique(seen.persons))
    return Scored(credits, np.full(seen.n_people, 1 / everybody), "a record picked at random")
