"""Risk: how often an attack succeeds, how certain that is, and how often it would succeed without the release.

Intervals are those of confidence.py; where only attempts and successes are known,
E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22, 1927.
M. Giomi et al., "A unified framework for quantifying privacy risk in synthetic data", PoPETs 2023 (the control).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.confidence import LEVEL, confidence_interval
from shoal.text.showing import Shown

Credits = NDArray[np.float64]
Question = Literal["singling out", "linkability", "inference"]
QUESTIONS: tuple[Question, ...] = ("singling out", "linkability", "inference")

NORMAL_95 = 1.959963984540054  # the quantile of a two-sided interval of 95 %


def wilson(successes: float, attempts: int, z: float = NORMAL_95) -> tuple[float, float]:
    """Return the 95 % confidence interval of a rate; [0, 1] without attempts.

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
    """The number of attempts and of successes (expected, if the intruder guesses among equals)."""

    attempts: int
    successes: float

    @classmethod
    def of(cls, credits: Credits) -> Tally:
        """Count one attempt per entry."""
        return cls(len(credits), float(credits.sum()))

    @property
    def share(self) -> float:
        """The share of successful attempts; 0 without attempts."""
        return self.successes / self.attempts if self.attempts else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's interval of the share."""
        return wilson(self.successes, self.attempts)


@dataclass(frozen=True)
class Control(Tally):
    """The same attack in a setting where the release cannot help."""

    of_whom: str  # in words
    claims: float | None = None  # made about these people, right and wrong
    expected: bool = False  # whether the successes are expected ones, of the same people; else these were attacked


@dataclass(frozen=True)
class Performance:
    """The success of one intruder."""

    successes: float
    claims: float  # right and wrong
    above: float  # beyond the control


@dataclass(frozen=True)
class Risk:
    """One attack, by the most successful intruder."""

    name: str
    question: Question
    column: str | None  # the sensitive column that was attacked
    attempts: int
    successes: float
    control: Control | None
    bound: float | None  # what theory allows at most, for the people of the release as a whole; None: no bound
    sentence: str  # for people who answer for the data
    intruder: str = ""  # who did best, where several tried
    intruders: Mapping[str, Performance] = field(default_factory=dict)  # each of them
    claims: float | None = None  # made, right and wrong; None: one for each attempt
    effective: float | None = None  # independent attempts with the same variance; None: Wilson's interval
    level: float = LEVEL  # of the interval
    spread: float | None = None  # half the width of the interval beyond the control, where the same people are both
    least: float | None = None  # where not everything is known that decides: successes at least, and at most
    most: float | None = None
    tolerance: float | None = None  # of its own above the control, if it is a test that a release withstands or not

    @property
    def _tally(self) -> Tally:
        return Tally(self.attempts, self.successes)

    @property
    def share(self) -> float:
        """The share of successful attempts."""
        return self._tally.share

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and largest possible share for the attacked people; both equal the share if all is known."""
        if not self.attempts:
            return 0.0, 1.0
        lowest = self.successes if self.least is None else min(self.least, self.successes)
        highest = self.successes if self.most is None else max(self.most, self.successes)
        return lowest / self.attempts, min(highest / self.attempts, max(self.share, self._bound))

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the rate for people like those attacked, including what is unknown.

        People of one class succeed together and count as fewer, and of several intruders the best was chosen: the
        interval is wider for both.
        """
        if self.effective is None:
            return self._tally.interval
        lowest, highest = self.range
        return confidence_interval(lowest, self.effective, self.level)[0], confidence_interval(
            highest, self.effective, self.level
        )[1]

    @property
    def _bound(self) -> float:
        """The highest rate that is possible for each person; guesses are bounded on average only."""
        return 1.0 if self.bound is None or self.name in ON_AVERAGE else self.bound

    @property
    def above(self) -> float:
        """(success − control) / (1 − control), at least 0: the risk in excess of the control.

        Without a control it is the share.
        """
        return self.share if self.control is None else excess_over_control(self.share, self.control.share)

    @property
    def above_interval(self) -> tuple[float, float]:
        """The same at the ends of the interval, including the uncertainty of a control with other people."""
        if self.control is None:
            return self.interval
        if self.spread is not None:
            return max(0.0, self.above - self.spread), min(1.0, self.above + self.spread)
        low, high = self.interval
        lowest, highest = (self.control.share,) * 2 if self.control.expected else self.control.interval
        return excess_over_control(low, highest), excess_over_control(high, lowest)

    @property
    def most_above(self) -> float:
        """The upper end of that interval, or the theoretical bound of this release if that is lower."""
        bound = self._bound if self.control is None else excess_over_control(self._bound, self.control.share)
        return min(self.above_interval[1], max(self.above, bound))

    @property
    def above_range(self) -> tuple[float, float]:
        """The same at the ends of the range."""
        lowest, highest = self.range
        return (
            (lowest, highest)
            if self.control is None
            else (excess_over_control(lowest, self.control.share), excess_over_control(highest, self.control.share))
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        control = self.control
        return {
            "name": self.name,
            "question": self.question,
            "column": self.column,
            "attempts": self.attempts,
            "successes": self.successes,
            "claims": self.attempts if self.claims is None else self.claims,
            "share": self.share,
            "range": list(self.range),
            "interval": list(self.interval),
            "control": control
            and {
                "attempts": control.attempts,
                "successes": control.successes,
                "claims": control.attempts if control.claims is None else control.claims,
                "share": control.share,
                "interval": list(control.interval),
                "of_whom": control.of_whom,
            },
            "above": self.above,
            "above_interval": list(self.above_interval),
            "bound": self.bound,
            "intruder": self.intruder or None,
            "intruders": {
                name: {"successes": performance.successes, "claims": performance.claims, "above": performance.above}
                for name, performance in self.intruders.items()
            },
            "sentence": self.sentence,
        }


def excess_over_control(share: float, control: float) -> float:
    """(share − control) / (1 − control), at least 0."""
    return max(0.0, (share - control) / (1 - control)) if control < 1 else 0.0


@dataclass(frozen=True)
class Answer:
    """One of the three criteria of the Article 29 Working Party, judged by the most successful attack."""

    question: Question
    possible: bool | None  # None: no suitable attack was run, or what was found does not decide
    risk: Risk | None
    tolerance: float
    missing: str = ""  # why it cannot be told; empty where it can

    @property
    def sentence(self) -> str:
        """The answer as a sentence for data protection officers."""
        if self.risk is None:
            return f"{self.question}: not measured."
        low, high = self.risk.above_interval
        if self.possible is None:
            return (
                f"{self.question}: cannot be determined: {self.missing} ({self.risk.name}, {percent_words(low)} to "
                f"{percent_words(high)} above the control; {percent_words(self.tolerance)} is tolerated)."
            )
        verdict = "possible" if self.possible else "within the tolerance"
        return f"{self.question}: {verdict} ({self.risk.name}, {percent_words(self.risk.above)} above the control)."


# What WP216 asks of a release without naming a figure: nobody is singled out; the rest is a choice, and can be changed.
TOLERANCES: dict[Question, float] = {"singling out": 0.0, "linkability": 0.09, "inference": 0.09}
# Attacks of somebody who is given more than the release and what the register says: told, but no answer to WP216.
WITH_INSIGHT = frozenset({"exclusion", "relative", "external knowledge"})
# Bets are bounded for the people of a release taken together, not for any part of them.
ON_AVERAGE = frozenset({"skewness", "inference"})


@dataclass(frozen=True)
class Attacks(Sequence[Risk], Shown):
    """All attacks that were run, those that were skipped, and the answers to the three criteria."""

    risks: tuple[Risk, ...]
    left_out: tuple[str, ...] = ()  # attack and reason
    notes: tuple[str, ...] = ()
    unread: Mapping[str, float] = field(default_factory=dict)  # per column, the share of cells that were not understood
    unread_values: Mapping[str, float] = field(default_factory=dict)  # the same, per sensitive column
    undecided: Mapping[Question, str] = field(default_factory=dict)  # why an attack that applies could not be computed
    owners_known: bool = True  # whether the referee knows whose record is whose
    everybody: bool = True  # whether all people were attacked, or a sample of them
    tolerances: Mapping[Question, float] = field(default_factory=lambda: TOLERANCES)  # above the control

    def __len__(self) -> int:
        return len(self.risks)

    def __iter__(self) -> Iterator[Risk]:
        return iter(self.risks)

    @overload
    def __getitem__(self, index: int) -> Risk: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Risk, ...]: ...
    def __getitem__(self, index: int | slice) -> Risk | tuple[Risk, ...]:
        return self.risks[index]

    def named(self, name: str, column: str | None = None) -> Risk:
        """Return the attack with this name; of several, the one on ``column``, or the most successful one."""
        matching = [risk for risk in self.risks if risk.name == name and column in (None, risk.column)]
        if not matching:
            raise KeyError(name)
        return max(matching, key=lambda risk: risk.share)

    def able(self, question: Question) -> list[Risk]:
        """The attacks that count for the answers: those that need only the release."""
        return [risk for risk in self.risks if risk.question == question and risk.name not in WITH_INSIGHT]

    def worst(self, question: Question) -> Risk | None:
        """The attack with the highest risk above its control, among those that need only the release."""
        return max(self.able(question), key=lambda risk: (risk.above, risk.share), default=None)

    def answers(self, tolerances: Mapping[Question, float] | None = None) -> tuple[Answer, ...]:
        """Singling out, linkability, inference: whether the risk is above what is tolerated.

        The intervals decide: it is possible where one lies above, tolerated where all stay below.
        """
        limits = {**self.tolerances, **(tolerances or {})}
        return tuple(self._answer(question, limits[question]) for question in QUESTIONS)

    def _answer(self, question: Question, tolerance: float) -> Answer:
        able = self.able(question)
        if not able:
            return Answer(question, None, None, tolerance, "no suitable attack was run")
        tests = [risk for risk in able if risk.tolerance is not None]
        if lost := [risk for risk in tests if risk.above_interval[0] > max(tolerance, risk.tolerance or 0.0)]:
            worst = max(lost, key=lambda risk: (risk.above, risk.share))
            return Answer(question, True, worst, max(tolerance, worst.tolerance or 0.0))
        able = [risk for risk in able if risk.tolerance is None] or able
        surest = max(able, key=lambda risk: (risk.above_interval[0], risk.above, risk.share))
        if surest.above_interval[0] > tolerance:
            return Answer(question, True, surest, tolerance)
        highest = max(able, key=lambda risk: (risk.most_above > tolerance, risk.above, risk.share))
        unread = next(filter(None, (self.not_understood(risk, tolerance) for risk in (highest, *able))), "")
        if missing := unread or self.undecided.get(question, ""):
            return Answer(question, None, highest, tolerance, missing)
        if highest.most_above <= tolerance:
            return Answer(question, False, highest, tolerance)
        missing = self.not_owned(highest, tolerance) or "too few targets"
        return Answer(question, None, highest, tolerance, missing)

    def untold(self, question: Question, limit: float) -> str:
        """Why figures of attacks within ``most`` do not prove that a release is; empty where they do.

        Everybody was attacked or not; cells, or whose records are whose, were understood or not; and every attack that
        applies was computed or not.
        """
        for risk in self.able(question):
            if missing := self.not_understood(risk, limit) or self.not_owned(risk, limit):
                return missing
            if not self.everybody and risk.most_above > limit:
                return f"a sample of {risk.attempts} targets was attacked, which is too few: attack all of them"
        return self.undecided.get(question, "")

    def not_understood(self, risk: Risk, limit: float) -> str:
        """Whether cells that could not be read may hide that the attack reaches more."""
        unread = {name: share for name, share in self.unread_values.items() if name == risk.column}
        if risk.bound is None or risk.bound > limit or risk.name in ON_AVERAGE:
            unread = {**self.unread, **unread}  # else records that look the same do so however they are read
        if not unread or risk.above + sum(unread.values()) <= limit:
            return ""  # within the limit even if every unread cell disclosed its owner
        column, share = max(unread.items(), key=lambda item: item[1])
        return f"{percent_words(share)} of the cells of {column!r} could not be interpreted"

    def not_owned(self, risk: Risk, limit: float) -> str:
        """Whether it depends on whose record is whose that the attack stays below."""
        if self.owners_known or risk.above_range[1] <= limit:
            return ""
        return "it is unknown which record belongs to whom: name a column that identifies people as id"

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
                    "interval": None if answer.risk is None else list(answer.risk.above_interval),
                    "missing": answer.missing,
                    "sentence": answer.sentence,
                }
                for answer in self.answers()
            },
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "unread": {**self.unread, **self.unread_values},
        }


def percent_words(share: float) -> str:
    """For sentences: never 0 % for something, nor 100 % for less than all."""
    value = 100 * share
    if 0 < value < 0.1:
        return "less than 0.1 %"
    if 99.9 < value < 100:
        return "more than 99.9 %"
    return f"{value:.3g} %"
