"""Combine the scores of an attack per person into a Risk, using the most successful of several intruders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.candidates import Secret
from shoal.attacks.confidence import LEVEL, effective_attempts, spread_above
from shoal.attacks.intruders import LIKELY, SPECIFIC
from shoal.attacks.risk import Control, Credits, Performance, Question, Risk, excess_over_control, percent_words

NARROWING = (SPECIFIC, LIKELY)
OUTSIDERS = "outsiders who are not in the release"
NONE_OF_THEIRS = "a record picked at random: outsiders have none in the release, so every claim is wrong"


@dataclass(frozen=True, eq=False)
class Scored:
    """Per person, whether the attack succeeded (or its probability), and the same without what it exploits."""

    credits: Credits
    blind: Credits | None = None
    of_whom: str = ""  # who has nothing but the blind guess, in words
    claims: Credits | None = None  # whether something was claimed, rightly or not; None: everybody
    classes: NDArray[np.int64] | None = (
        None  # people who succeed or fail together (``CandidateView.ties``); None: each alone
    )
    min_credits: Credits | None = None  # where it is not known whether it worked: at least, and at most
    max_credits: Credits | None = None
    absent: int = 0  # the number of people who are not in the release
    failing: int = 1  # people who fail together at least, where a failure is that somebody else looks the same
    succeeding: int = 1  # people who succeed together at least
    reaching: bool = False  # both of a person's classes decide, with all who are in them

    @property
    def n_claims(self) -> float:
        """The number of claims, right and wrong."""
        return float(len(self.credits) if self.claims is None else self.claims.sum())

    def performance(self) -> Performance:
        """The figures of one intruder."""
        successes = float(self.credits.sum())
        n = len(self.credits)
        return Performance(
            successes, self.n_claims, excess_over_control(successes / n, self.control_share) if n else 0.0
        )

    @property
    def success(self) -> str:
        """The success rate, as a percentage in words."""
        return percent_words(float(self.credits.mean()) if len(self.credits) else 0.0)

    @property
    def control_share(self) -> float:
        """The success rate of the baseline guess."""
        return float(self.blind.mean()) if self.blind is not None and len(self.blind) else 0.0


def value_risk(
    name: str,
    secret: Secret,
    outside: Secret | None,
    scored_by: Callable[[Secret], Mapping[str, Scored]],
    sentence: Callable[[Scored], str],
    bound: float | None = None,
) -> Risk:
    """Build the Risk of an attack on a sensitive value; the same attack on outsiders is its control."""
    theirs = None if outside is None else scored_by(outside)
    return risk(name, "inference", scored_by(secret), sentence, column=secret.column, outside=theirs, bound=bound)


def risk(
    name: str,
    question: Question,
    scored: Scored | Mapping[str, Scored],
    sentence: str | Callable[[Scored], str],
    *,
    column: str | None = None,
    outside: Mapping[str, Scored] | None = None,
    bound: float | None = None,
) -> Risk:
    """Build the Risk of an attack: the figures of the best intruder, with those of the others.

    ``outside``: the same intruders with people who are not in the release. What is learned about them as well is no
    leak, and replaces the blind guess as the control; but no record is theirs, so a link is a wrong claim, and none of
    it counts for them.
    """
    by_name = {"": scored} if isinstance(scored, Scored) else dict(scored)
    performances = {name: trial.performance() for name, trial in by_name.items()}
    chosen = max(by_name, key=lambda name: (performances[name].above, performances[name].successes))
    best = by_name[chosen]
    n = len(best.credits)
    control = None
    theirs = None if outside is None else outside.get(chosen, next(iter(outside.values())))
    if theirs is not None and question == "inference":
        control = Control(len(theirs.credits), float(theirs.credits.sum()), OUTSIDERS, theirs.n_claims)
    elif theirs is not None:
        n_theirs = len(theirs.credits)
        control = Control(n_theirs, best.control_share * n_theirs, NONE_OF_THEIRS, theirs.n_claims, expected=True)
    elif best.blind is not None:
        control = Control(n, float(best.blind.sum()), best.of_whom, best.n_claims, expected=True)
    # The best of several is chosen on the same people: each interval must hold, so that of the best does.
    level = 1 - (1 - LEVEL) / len(by_name)
    classes = np.arange(n) if best.classes is None else best.classes
    spread = None
    if question == "inference" and theirs is None and best.blind is not None:
        spread = spread_above(
            best.credits, best.blind, classes, level, succeeding=best.succeeding, reaching=best.reaching
        )
    return Risk(
        name,
        question,
        column,
        n,
        float(best.credits.sum()),
        control,
        bound,
        (sentence if isinstance(sentence, str) else sentence(best)) + _by_whom(by_name, chosen),
        intruder=chosen,
        intruders=performances if chosen else {},
        claims=best.n_claims,
        effective=effective_attempts(
            best.credits, classes, level, failing=best.failing, succeeding=best.succeeding, reaching=best.reaching
        ),
        level=level,
        spread=spread,
        least=None if best.min_credits is None else float(np.sort(best.min_credits)[: max(0, n - best.absent)].sum()),
        most=None if best.max_credits is None else float(best.max_credits.sum()),
    )


def _by_whom(tried: Mapping[str, Scored], chosen: str) -> str:
    return f" Of {len(tried)} strategies, choosing the {chosen} record works best." if chosen in NARROWING else ""
