"""Skewness: the intruder guesses the value that is most over-represented among the matching records.

N. Li, T. Li, S. Venkatasubramanian, "t-closeness", ICDE 2007: where one in a hundred is positive, a class of which
every other one is tells a lot about its members, though it is as diverse as can be.
Bound  the control plus t, where each person fits one class: there the share of no value exceeds that of the whole by
       more than t (distance equal).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.attacks.candidates import Secret
from shoal.attacks.risk import Risk, percent_words
from shoal.attacks.scoring import Scored, value_risk


def skewness(secret: Secret, outside: Secret | None = None) -> Risk:
    """Measure how often the most over-represented value is the person's own."""
    scored = secret.scored_by_choice(_scored)
    blind = max(weight_by.control_share for weight_by in scored.values())
    return value_risk(
        "skewness",
        secret,
        outside,
        lambda people: scored if people is secret else people.scored_by_choice(_scored),
        lambda best: (
            f"Guessing the {secret.column} that is most over-represented among the matching records is right "
            f"in {best.success} of all cases; with the whole table alone, {percent_words(best.control_share)}."
        ),
        min(1.0, blind + closeness(secret)) if (np.diff(secret.view.fits.indptr) <= 1).all() else None,
    )


def _scored(secret: Secret) -> Scored:
    gain = _shares(secret.matching) - secret.shares[secret.matching.indices]
    bet = secret.best(gain.round(12))[secret.view.kind_of]
    claimed = bet >= 0
    credits = (claimed & (bet == secret.truth)).astype(np.float64)
    blind = np.where(claimed, secret.shares[bet], 0.0)
    of_whom = "the same guesses, right with the frequencies of the whole table"
    return Scored(credits, blind, of_whom, claimed.astype(np.float64), secret.view.ties)


def closeness(secret: Secret) -> float:
    """Return the t of t-closeness with the distance ``equal``, over the columns that the intruder knows."""
    table = secret.of_tuple
    rows = np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
    whole = secret.shares[table.indices]
    distance = np.bincount(rows, np.abs(_shares(table) - whole), table.shape[0])
    absent = 1 - np.bincount(rows, whole, table.shape[0])
    return float(((distance + absent) / 2).max())


def _shares(table: csr_array) -> NDArray[np.float64]:
    """Divide each entry by the sum of its row."""
    sums = np.asarray(table.sum(axis=1)).ravel()
    return np.asarray(table.data / np.repeat(sums, np.diff(table.indptr)))
