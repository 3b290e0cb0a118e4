"""Plans and answers: what a query will cost and how exact it will be; noisy figures with their intervals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.results.dp.budget import Budget
from shoal.results.dp.statistics import Figure

COVERS = (
    "Each interval contains the figure without noise with the stated probability. Clamping to the bounds, rounding, "
    "the limit of records per person and sampling are not in it."
)


@dataclass(frozen=True)
class PlannedPiece:
    """Noise of one statistic, before anything is spent."""

    ask: str
    statistic: str
    noise: str
    width: float  # half the width of the interval, in the units of the column
    cost: str

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return dict(vars(self))


@dataclass(frozen=True)
class QueryPlan:
    """How exact the answers will be. It is made without reading a value of the data, and costs nothing."""

    pieces: tuple[PlannedPiece, ...]
    cost: Budget
    confidence: float
    unit: str
    threshold: int | None = None  # the noisy number of people from which an unlisted key is shown
    left: Budget | None = None  # of the ledger, afterwards
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "cost": self.cost.as_dict(),
            "left": None if self.left is None else self.left.as_dict(),
            "unit": self.unit,
            "confidence": self.confidence,
            "threshold": self.threshold,
            "pieces": [piece.as_dict() for piece in self.pieces],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class NoisyAnswer:
    """A noisy figure of one group."""

    ask: str
    group: Mapping[str, str | None]
    figure: Figure

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "ask": self.ask,
            "group": dict(self.group),
            "of": self.figure.of,
            "value": self.figure.value,
            "low": self.figure.low,
            "high": self.figure.high,
        }


@dataclass(frozen=True)
class Answers(Sequence[NoisyAnswer]):
    """The answers to all queries of one call. They may be published."""

    answers: tuple[NoisyAnswer, ...]
    cost: Budget
    confidence: float
    unit: str
    left: Budget | None = None
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, i: Any) -> Any:
        return self.answers[i]

    def of(self, ask: str, **group: str | None) -> dict[str, Figure]:
        """Return the figures of one query and group, by what each is of."""
        return {
            answer.figure.of: answer.figure
            for answer in self.answers
            if answer.ask == ask and dict(answer.group) == group
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "cost": self.cost.as_dict(),
            "left": None if self.left is None else self.left.as_dict(),
            "unit": self.unit,
            "confidence": self.confidence,
            "answers": [answer.as_dict() for answer in self.answers],
            "notes": list(self.notes),
        }

    def as_csv(self) -> str:
        """Return one line per figure."""
        names = list(dict.fromkeys(name for answer in self.answers for name in answer.group))
        out = io.StringIO()
        lines = csv.writer(out, lineterminator="\n")
        lines.writerow(["ask", *names, "of", "value", "low", "high"])
        for answer in self.answers:
            figure = answer.figure
            group = (answer.group.get(name) for name in names)
            lines.writerow([answer.ask, *group, figure.of, figure.value, figure.low, figure.high])
        return out.getvalue()
