"""Risk: how often an attack worked, how sure that figure is, and what it would have been without the release.

E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.
M. Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023 (the control).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

Credits = NDArray[np.float64]
Question = Literal["singling out", "linkability", "inference"]
QUESTIONS: tuple[Question, ...] = ("singling out", "linkability", "inference")

NORMAL_95 = 1.959963984540054  # the quantile of a two-sided interval of 95 %


def wilson(successes: float, attempts: int, z: float = NORMAL_95) -> tuple[float, float]:
    """The interval in which the true rate lies with 95 % confidence; all of [0, 1] where nothing was attempted.

    Successes need not be whole: a guess among t equals counts 1/t. Its variance is below that of a coin with the same
    rate, so the interval is rather too wide than too narrow.
    """
    if attempts == 0:
        return 0.0, 1.0
    rate, spread = successes / attempts, z * z / attempts
    middle = (rate + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(max(0.0, rate * (1 - rate)) / attempts + spread / attempts / 4)
    # At 0 and at 1 the interval touches the end exactly, which rounding would miss.
    low = 0.0 if successes <= 0 else max(0.0, middle - half)
    high = 1.0 if successes >= attempts else min(1.0, middle + half)
    return low, high


@dataclass(frozen=True)
class Tally:
    """Attempts, and how many of them worked (an expected number where the intruder guesses among equals)."""

    attempts: int
    successes: float

    @classmethod
    def of(cls, credits: Credits) -> Tally:
        """One attempt per entry."""
        return cls(len(credits), float(credits.sum()))

    @property
    def share(self) -> float:
        """Successes by attempts; 0 where nothing was attempted."""
        return self.successes / self.attempts if self.attempts else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share."""
        return wilson(self.successes, self.attempts)


@dataclass(frozen=True)
class Control(Tally):
    """The same attack where the release cannot have helped."""

    of_whom: str  # in words


@dataclass(frozen=True)
class Risk:
    """One attack."""

    name: str
    question: Question
    column: str | None  # the sensitive column that was attacked
    attempts: int
    successes: float
    control: Control | None
    bound: float | None  # what theory allows at most, for the people of the release as a whole; None: no bound
    sentence: str  # for people who answer for the data

    @property
    def _tally(self) -> Tally:
        return Tally(self.attempts, self.successes)

    @property
    def share(self) -> float:
        """Successes by attempts."""
        return self._tally.share

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share, 95 %."""
        return self._tally.interval

    @property
    def above(self) -> float:
        """(success − control) / (1 − control), at least 0: what is left of the risk beside the control.

        Without a control it is the share.
        """
        return self.share if self.control is None else _above(self.share, self.control.share)

    @property
    def above_interval(self) -> tuple[float, float]:
        """From the worst to the best that both intervals allow."""
        if self.control is None:
            return self.interval
        (low, high), (least, most) = self.interval, self.control.interval
        return _above(low, most), _above(high, least)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        control = self.control
        return {
            "name": self.name,
            "question": self.question,
            "column": self.column,
            "attempts": self.attempts,
            "successes": self.successes,
            "share": self.share,
            "interval": list(self.interval),
            "control": control
            and {
                "attempts": control.attempts,
                "successes": control.successes,
                "share": control.share,
                "interval": list(control.interval),
                "of_whom": control.of_whom,
            },
            "above": self.above,
            "above_interval": list(self.above_interval),
            "bound": self.bound,
            "sentence": self.sentence,
        }


def _above(share: float, control: float) -> float:
    return max(0.0, (share - control) / (1 - control)) if control < 1 else 0.0


@dataclass(frozen=True)
class Answer:
    """One of the three questions of the Article 29 Working Party, answered by the attack that did worst."""

    question: Question
    possible: bool | None  # None: no attack was run that could tell
    risk: Risk | None
    tolerance: float

    @property
    def sentence(self) -> str:
        """For people who answer for the data."""
        if self.risk is None:
            return f"{self.question}: not measured."
        verdict = "possible" if self.possible else "not above what is tolerated"
        return f"{self.question}: {verdict} ({self.risk.name}, {percent(self.risk.above)} beyond the control)."


# What WP216 asks of a release without naming a figure: nobody is singled out; the rest is a choice, and can be changed.
TOLERANCES: dict[Question, float] = {"singling out": 0.0, "linkability": 0.09, "inference": 0.09}
# Attacks of somebody who is given more than the release and what the register says: told, but no answer to WP216.
WITH_INSIGHT = frozenset({"exclusion", "relative", "external knowledge"})


@dataclass(frozen=True)
class Attacks(Sequence[Risk]):
    """All attacks that were run, those that could not be, and the three questions answered from them."""

    risks: tuple[Risk, ...]
    left_out: tuple[str, ...] = ()  # attack and reason
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.risks)

    def __iter__(self) -> Iterator[Risk]:
        return iter(self.risks)

    @overload
    def __getitem__(self, place: int) -> Risk: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Risk, ...]: ...
    def __getitem__(self, place: int | slice) -> Risk | tuple[Risk, ...]:
        return self.risks[place]

    def named(self, name: str, column: str | None = None) -> Risk:
        """The attack of this name; of several, that on ``column``, or the one that does worst."""
        found = [risk for risk in self.risks if risk.name == name and column in (None, risk.column)]
        if not found:
            raise KeyError(name)
        return max(found, key=lambda risk: risk.share)

    def worst(self, question: Question) -> Risk | None:
        """The attack that leaves most beyond its control, among those that need the release alone."""
        able = [risk for risk in self.risks if risk.question == question and risk.name not in WITH_INSIGHT]
        return max(able, key=lambda risk: (risk.above, risk.share)) if able else None

    def answers(self, tolerances: dict[Question, float] | None = None) -> tuple[Answer, ...]:
        """Singling out, linkability, inference: whether the measured risk is above what is tolerated."""
        limits = TOLERANCES | (tolerances or {})
        out = []
        for question in QUESTIONS:
            risk = self.worst(question)
            possible = None if risk is None else risk.above > limits[question]
            out.append(Answer(question, possible, risk, limits[question]))
        return tuple(out)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {
            "attacks": [risk.as_dict() for risk in self.risks],
            "answers": {
                answer.question: {
                    "possible": answer.possible,
                    "attack": answer.risk and answer.risk.name,
                    "column": answer.risk and answer.risk.column,
                    "risk": None if answer.risk is None else answer.risk.above,
                    "tolerance": answer.tolerance,
                    "sentence": answer.sentence,
                }
                for answer in self.answers()
            },
            "left_out": list(self.left_out),
            "notes": list(self.notes),
        }

    def _repr_html_(self) -> str:
        from shoal.report.notebook import attacks_html

        return attacks_html(self)


def percent(share: float) -> str:
    """For sentences: never 0 % for something, nor 100 % for less than all."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1 %"
    if 99.9 < value < 100:
        return "more than 99.9 %"
    return f"{value:.3g} %"
