"""From what an attack scored for each person to a Risk."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.attacks.risk import Control, Credits, Question, Risk, Tally

OUTSIDERS = "people who are not in the release"


@dataclass(frozen=True, eq=False)
class Scored:
    """Per person, whether the attack worked (or how likely it was to), and the same without what it exploits."""

    credits: Credits
    blind: Credits | None = None
    of_whom: str = ""  # who has nothing but the blind guess, in words


def risk(
    name: str,
    question: Question,
    scored: Scored,
    sentence: str,
    *,
    column: str | None = None,
    outside: Scored | None = None,
    bound: float | None = None,
) -> Risk:
    """The attack as figures. A control group outside the release is better than a blind guess at the same people."""
    control = None
    if outside is not None:
        control = Control(len(outside.credits), float(outside.credits.sum()), OUTSIDERS)
    elif scored.blind is not None:
        control = Control(len(scored.blind), float(scored.blind.sum()), scored.of_whom)
    tally = Tally.of(scored.credits)
    return Risk(name, question, column, tally.attempts, tally.successes, control, bound, sentence)
