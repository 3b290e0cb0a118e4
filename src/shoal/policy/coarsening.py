"""How the values of a sensitive column are coarsened before they are released: by level, by rounding, at their ends.

Values are recoded once, before classes are formed: what searches and models judge, what attacks call the truth and
what is written are the same coarse values. A table that is checked is not coarsened again, so a release that still has
finer values fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import Self

from pydantic import Field, model_validator

from shoal.errors import PolicyError
from shoal.hierarchies import builders
from shoal.hierarchies.builders import Spec
from shoal.notation.numbers import parse_number
from shoal.notation.same_values import says_nothing
from shoal.policy.part import FrozenPart

Label = str | None

EXACTLY = Context(prec=60)  # digits: a multiple of a step divides by it without a rest


class Coarsening(FrozenPart):
    """What is released of a sensitive column: a level of its hierarchy, or rounded numbers between two ends."""

    level: int | None = Field(
        default=None, ge=0, description="The level of the column's hierarchy that is released; 0 are its values."
    )
    round: float | None = Field(
        default=None,
        gt=0,
        allow_inf_nan=False,
        strict=False,
        description="The step to which numbers are rounded: 1,234 becomes 1,200 with a step of 100.",
    )
    top: float | None = Field(
        default=None, allow_inf_nan=False, strict=False, description="Larger numbers are released as this one."
    )
    bottom: float | None = Field(
        default=None, allow_inf_nan=False, strict=False, description="Smaller numbers are released as this one."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.level is None and not self.of_numbers:
            raise ValueError("released: say how, with level, round, top or bottom")
        if self.level is not None and self.of_numbers:
            raise ValueError("released: level cannot be combined with round, top and bottom")
        if self.top is not None and self.bottom is not None and self.bottom >= self.top:
            raise ValueError("released: bottom must be below top")
        return self

    @property
    def of_numbers(self) -> bool:
        """Whether numbers are rounded or cut at their ends."""
        return any(setting is not None for setting in (self.round, self.top, self.bottom))

    @property
    def asked(self) -> str:
        """What is released, as one readable phrase."""
        if self.level is not None:
            return f"level {self.level}"
        phrases = {"rounded to {:g}": self.round, "at most {:g}": self.top, "at least {:g}": self.bottom}
        return ", ".join(words.format(number) for words, number in phrases.items() if number is not None)

    def coarse(self, column: str, texts: Sequence[str], spec: Spec | None, folder: Path) -> list[Label]:
        """Return what each value is released as; a value that says nothing stays as it is."""
        if self.level is not None:
            return self._labels(column, texts, spec, folder)
        numbers = [parse_number(text) for text in texts]
        strange = sum(x is None and not says_nothing(text) for x, text in zip(numbers, texts, strict=True))
        if strange:
            raise PolicyError(
                f"columns.{column}.released: {strange} different values are not numbers",
                "name the texts that mean a missing value under missing, or coarsen by level",
            )
        return [text if x is None else _plain(self._coarse(x)) for x, text in zip(numbers, texts, strict=True)]

    def finer(self, column: str, texts: Sequence[Label], spec: Spec | None, folder: Path) -> list[bool]:
        """Return which texts of a release are finer than they may be; none where that cannot be told."""
        filled = [text for text in texts if text is not None]
        if self.level is None:
            numbers = {text: parse_number(text) for text in filled}
            return [
                text is not None and not says_nothing(text) and ((x := numbers[text]) is None or self._coarse(x) != x)
                for text in texts
            ]
        hierarchy = builders.build(column, spec, filled, nulls=True, uncovered="suppress", folder=folder)
        if self.level >= hierarchy.n_levels:
            return [False] * len(texts)
        labels = set(hierarchy.labels[self.level])
        return [
            text is not None
            and text not in labels
            and not hierarchy.missing([text])
            and hierarchy.labels[self.level][hierarchy.table[self.level, hierarchy.encode([text])[0]]] != text
            for text in texts
        ]

    def _coarse(self, number: Decimal) -> Decimal:
        top = None if self.top is None else Decimal(repr(self.top))
        bottom = None if self.bottom is None else Decimal(repr(self.bottom))
        if top is not None and number >= top:
            return top
        if bottom is not None and number <= bottom:
            return bottom
        if self.round is not None:
            step = Decimal(repr(self.round))
            steps = EXACTLY.divide(number, step).to_integral_value(ROUND_HALF_UP)
            number = EXACTLY.multiply(steps, step)
        number = number if top is None else min(number, top)
        return number if bottom is None else max(number, bottom)

    def _labels(self, column: str, texts: Sequence[str], spec: Spec | None, folder: Path) -> list[Label]:
        hierarchy = builders.build(column, spec, texts, nulls=False, uncovered="error", folder=folder)
        level = self.level or 0
        if level >= hierarchy.n_levels:
            raise PolicyError(
                f"columns.{column}.released.level: the hierarchy has levels 0 to {hierarchy.height}, {level} is none "
                "of them"
            )
        codes = hierarchy.table[level, hierarchy.encode(texts)]
        return [hierarchy.labels[level][code] for code in codes.tolist()]


def _plain(number: Decimal) -> str:
    """Return a number without an exponent, and without zeros that say nothing."""
    text = format(abs(number) if number == 0 else number, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
