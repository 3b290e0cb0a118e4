"""Unsorted matching: the rows of a release stand in the order of the original, and give everybody away.

L. Sweeney, "k-anonymity", IJUFKS 10(5), 2002: the attack that a release in random order answers.
Some rows may have been left out, or stand elsewhere. So the intruder looks for the most rows that fit the people of the
original in one order: a longest common subsequence, within a band around the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.risk import Risk, percent
from shoal.attacks.scoring import Scored, risk
from shoal.attacks.sight import Secret, Sight
from shoal.attacks.standing import Rows

SHUFFLES = 9  # of the release, whose order then says nothing; the luckiest is the control, so luck is no finding
MOST = 2_000  # rows that are tried
AHEAD = 600  # people that are skipped at most, where so many were left out
ASIDE = 20  # places that a row may stand off besides


def unsorted_matching(seen: Sight, secrets: list[Secret], *, gone: int = 0, seed: int = 0) -> Risk:
    """How many released rows fit the people of the original in the same order, in all columns that both have.

    ``gone`` is how many people were left out. The control does the same with the release in random order.
    """
    random = np.random.default_rng(seed)
    rows = np.arange(seen.n_records)
    matched = aligned(seen, secrets, rows[:MOST], gone)
    chance = max(aligned(seen, secrets, random.permutation(rows)[:MOST], gone) for _ in range(SHUFFLES))
    n = min(MOST, seen.n_records)
    return risk(
        "unsorted matching",
        "linkability",
        Scored(_as_many(matched, n), _as_many(chance, n), "the same with the rows in random order, at best"),
        f"{percent(matched / n)} of the rows fit the people of the original in the same order; in random order up to "
        f"{percent(chance / n)} would.",
    )


def _as_many(successes: int, n: int) -> NDArray[np.float64]:
    return (np.arange(n) < successes).astype(np.float64)


def aligned(seen: Sight, secrets: list[Secret], rows: Rows, gone: int) -> int:
    """The most rows that fit people in one order, each at most so far from its place."""
    offsets = np.arange(-ASIDE, min(gone, AHEAD) + ASIDE + 1)
    fits = np.zeros((len(rows), len(offsets)), np.bool_)  # row i and the person in place i + offset
    for j, offset in enumerate(offsets):
        people = np.arange(len(rows)) + offset
        there = np.flatnonzero((people >= 0) & (people < seen.n_people))
        fits[there, j] = _agree(seen, secrets, people[there], rows[there])
    # best[j]: the most rows so far whose people stand before place i + offsets[j], or there.
    best = np.zeros(len(offsets), np.int64)
    for of_row in fits:
        without = np.append(best[1:], best[-1])  # the same people are one offset less from the next place
        best = np.maximum.accumulate(np.maximum(without, best + of_row))
    return int(best.max(initial=0))


def _agree(seen: Sight, secrets: list[Secret], people: Rows, rows: Rows) -> NDArray[np.bool_]:
    out = seen.fit(people, rows)
    if seen.owner is not None:
        return np.asarray(out & (seen.owner[people] == rows))
    for found in secrets:
        out &= found.truth[people] == found.of_record[rows]
    return out
