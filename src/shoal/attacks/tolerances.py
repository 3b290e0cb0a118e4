"""What a policy tolerates of each kind of attack: one table for findings, terminal, notebook, report and page."""

from __future__ import annotations

from shoal.attacks.risk import TOLERANCES, Question
from shoal.models.size import AlphaK, KAnonymity, PSensitive
from shoal.policy import Policy


def required_size(policy: Policy) -> int:
    """Return the number of persons that a policy requires of every class; at least two."""
    sizes = [
        model.k
        for model in policy.models
        if isinstance(model, AlphaK | PSensitive) or (isinstance(model, KAnonymity) and model.columns is None)
    ]
    return max([2, *sizes])


def tolerances(policy: Policy) -> dict[Question, float]:
    """Return what is tolerated of each kind of attack.

    A policy with k persons in every class tolerates that one of k is linked to the right record. It decides nothing on
    how well their values may be guessed.
    """
    return TOLERANCES | {"linkability": max(TOLERANCES["linkability"], 1 / required_size(policy))}
