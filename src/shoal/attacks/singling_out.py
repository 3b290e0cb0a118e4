"""Singling out: what an intruder knows matches exactly one record, or the records of one person only.

Either no other record fits, or one fits better than all others. A claim may be wrong: only those that are right count,
and the control is what the same number of claims about records picked at random would have brought.
Bound  0 where every class has at least two.
"""

from __future__ import annotations

import numpy as np

from shoal.attacks.candidates import CandidateView
from shoal.attacks.intruders import UNIFORM, Choice
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, risk


def singling_out(view: CandidateView, outside: CandidateView | None = None) -> Risk:
    """Measure how many people match a single record that is, as far as is known, their own."""
    owners_known = ", ".join(column.name for column in view.columns)
    by_name = {choice.name: _scored(view, choice) for choice in view.choices}

    def sentence(scored: Scored) -> str:
        share = float(scored.credits.mean()) if view.n_people else 0.0
        fits = (
            "exactly one record matches"
            if scored is by_name[UNIFORM]
            else "one record, their own, fits better than any other"
        )
        return f"For {percent_words(share)} of the targets, {fits} what others know about them ({owners_known})."

    return risk(
        "singling out",
        "singling out",
        by_name,
        sentence,
        outside=None if outside is None else {choice.name: _scored(outside, choice) for choice in outside.choices},
        bound=0.0 if view.k > 1 else None,
    )


def _scored(view: CandidateView, choice: Choice) -> Scored:
    picked = view.by(choice)
    alone = ((picked.crowd == 1) & choice.sure)[picked.kind_of]
    own_record = view.own_among(picked)
    everybody = view.n_records if view.persons is None else len(np.unique(view.persons))
    return Scored(
        own_record.estimate * alone,
        alone / everybody,
        "the same number of claims about records picked at random",
        claims=alone.astype(np.float64),
        classes=picked.ties,
        min_credits=own_record.lowest * alone,
        absent=view.absent,
        max_credits=own_record.highest * alone,
        failing=2,
    )
