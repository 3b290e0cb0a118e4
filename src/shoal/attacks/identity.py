"""Identity linking: an intruder with a register of names picks a matching record for each person.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP, and found the governor.
Bound  1/k: what is picked are one or more whole classes, and each has at least k records.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.candidates import Sight
from shoal.attacks.intruders import Choice
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk


def identity(seen: Sight, outside: Sight | None = None) -> Risk:
    """Measure how often the picked record is the person's own.

    Where nobody knows whose is whose, a person whom any record fits is taken to be behind one of them: an upper
    bound, since some may have been left out of the release.
    """
    known = ", ".join(column.name for column in seen.columns)
    return risk(
        "identity linking",
        "linkability",
        {choice.name: _scored(seen, choice) for choice in seen.choices},
        lambda scored: (
            f"An attacker who knows {known} of a person and picks one of the matching records is right in "
            f"{percent_words(float(scored.credits.mean()) if len(scored.credits) else 0.0)} of all cases."
        ),
        outside=None if outside is None else {choice.name: _scored(outside, choice) for choice in outside.choices},
        bound=1 / seen.k,
    )


def _scored(seen: Sight, choice: Choice) -> Scored:
    picked = seen.by(choice)
    crowd = picked.crowd[picked.kind_of]
    chance = np.where(crowd > 0, 1 / np.maximum(crowd, 1), 0.0)
    own = seen.own_among(picked)
    everybody = seen.n_records if seen.persons is None else len(np.unique(seen.persons))
    return Scored(
        own.estimate * chance,
        np.full(seen.n_people, 1 / everybody),
        "a record picked at random",
        claims=(crowd > 0).astype(np.float64),
        classes=picked.ties,
        least=own.least * chance,
        absent=seen.absent,
        most=own.most * chance,
    )
