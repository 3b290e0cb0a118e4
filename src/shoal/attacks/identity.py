"""Identity linking: an intruder with a register of names picks a matching record for each person.

L. Sweeney linked a voter list to hospital discharges by birth date, sex and ZIP, and found the governor.
Bound  1/k: what is picked are one or more whole classes, and each has at least k records.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.candidates import CandidateView
from shoal.attacks.intruders import Choice
from shoal.attacks.risk import Risk
from shoal.attacks.scoring import Scored, risk


def identity(view: CandidateView, outside: CandidateView | None = None) -> Risk:
    """Measure how often the picked record is the person's own.

    If the owners of records are unknown, a person who matches any record is taken to own one of them: an upper
    bound, since some may have been left out of the release.
    """
    owners_known = ", ".join(column.name for column in view.columns)
    return risk(
        "identity linking",
        "linkability",
        {choice.name: _scored(view, choice) for choice in view.choices},
        lambda scored: (
            f"An attacker who knows {owners_known} of a person and picks one of the matching records is right in "
            f"{scored.success} of all cases."
        ),
        outside=None if outside is None else {choice.name: _scored(outside, choice) for choice in outside.choices},
        bound=1 / view.k,
    )


def _scored(view: CandidateView, choice: Choice) -> Scored:
    picked = view.by(choice)
    crowd = picked.crowd[picked.kind_of]
    chance = np.where(crowd > 0, 1 / np.maximum(crowd, 1), 0.0)
    own_record = view.own_among(picked)
    everybody = view.n_records if view.persons is None else len(np.unique(view.persons))
    return Scored(
        own_record.estimate * chance,
        np.full(view.n_people, 1 / everybody),
        "a record picked at random",
        claims=(crowd > 0).astype(np.float64),
        classes=picked.ties,
        min_credits=own_record.lowest * chance,
        absent=view.absent,
        max_credits=own_record.highest * chance,
    )
