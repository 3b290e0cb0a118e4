"""Numbers in intervals, each level wider than the one below, top- and bottom-coded where asked.

All arithmetic is exact, on decimals as they are written: in binary 0.3 lies below 3 · 0.1, and would get a label that
does not contain it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from decimal import Context, Decimal
from itertools import pairwise
from typing import Annotated, Self

from pydantic import BeforeValidator, Field, PlainSerializer, field_validator, model_validator

from shoal.table.description import Description
from shoal.table.hierarchy import TOP, Hierarchy

NUMBER = re.compile(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*")
# Every double fits. Beyond it, 1e999999999 is nine characters that would fill the memory when written out.
LARGEST = 400
# Room for the digits of any number within LARGEST, so that nothing is ever rounded.
EXACT = Context(prec=4 * LARGEST)

# Lower bound within, upper bound without; None where unbounded, on one side only.
Interval = tuple[int, int] | tuple[int, None] | tuple[None, int]


def number(text: str) -> Decimal | None:
    """The number that a text writes, exactly; None where it is not a finite number of sane size."""
    if len(text) > LARGEST or not NUMBER.fullmatch(text):
        return None
    value = Decimal(text)
    return value if abs(value.adjusted()) <= LARGEST else None


def _number(given: object) -> Decimal:
    """A number of the policy; a float counts as it is written, 0.1 and not 0.1000000000000000055."""
    if isinstance(given, int | float | Decimal) and not isinstance(given, bool):
        value = number(str(given))
        if value is not None:
            return value
    raise ValueError("must be a number")


def _as_toml(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


Number = Annotated[Decimal, BeforeValidator(_number), PlainSerializer(_as_toml)]


class Intervals(Description):
    """Numbers to intervals, one width per level, then ``*``.

    Values from ``top`` on and below ``bottom`` are never released, not even at level 0. Labels hold their
    values at both ends: 20-24, or [-10, -6] where a bound of its own is negative. Half-open [0.5, 1) is written where
    the policy has decimals here, or some released record has.
    """

    intervals: tuple[Number, ...] = Field(
        description="The widths, one per level, each a whole multiple of the one before."
    )
    origin: Number = Field(
        default=Decimal(0), description="Where an interval begins; the others follow from the width."
    )
    bottom: Number | None = Field(
        default=None, description="Bottom-coding: values below it are `<bottom` on every level, 0 included."
    )
    top: Number | None = Field(
        default=None, description="Top-coding: values from it on are `>=top` on every level, 0 included."
    )

    @field_validator("intervals")
    @classmethod
    def _nested(cls, widths: tuple[Decimal, ...]) -> tuple[Decimal, ...]:
        if not widths or widths[0] <= 0:
            raise ValueError("must be one or more widths, all positive")
        for level, (narrow, wide) in enumerate(pairwise(widths), start=2):
            if wide <= narrow or EXACT.remainder(wide, narrow):
                raise ValueError(
                    f"the width of level {level} must be a whole multiple of the one before, and larger; "
                    f"otherwise an interval would lie in two (C1)"
                )
        return widths

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom must be less than top")
        return self

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Leaves in numeric order; 39 and 039 are two leaves with one number."""
        exact = {text: value for text in set(values) if (value := number(text)) is not None}
        if not exact:
            return Hierarchy.empty(column, len(self.intervals) + 2, "numeric")
        return _Bins(self, exact).hierarchy(column)


class WholeIntervals(Intervals):
    """The same, in labels of whole numbers although some values have decimals: for releases that show none of those."""


def is_whole(value: Decimal) -> bool:
    """Whether a number has no decimals."""
    return not EXACT.remainder(value, Decimal(1))


class _Bins:
    """The arithmetic of intervals in whole multiples of 10^-places, where nothing is rounded."""

    def __init__(self, spec: Intervals, exact: Mapping[str, Decimal]) -> None:
        bounds = [spec.origin, *(b for b in (spec.bottom, spec.top) if b is not None)]
        self.places = max(_places(value) for value in (*exact.values(), *spec.intervals, *bounds))
        points = {text: self.scaled(value) for text, value in exact.items()}
        self.leaves = sorted(sorted(points), key=points.__getitem__)
        self.points = [points[text] for text in self.leaves]
        self.widths = [self.scaled(width) for width in spec.intervals]
        self.origin = self.scaled(spec.origin)
        self.bottom = None if spec.bottom is None else self.scaled(spec.bottom)
        self.top = None if spec.top is None else self.scaled(spec.top)
        unit = 10**self.places
        # One step back from an open upper bound to the last whole number below it.
        whole = not any(x % unit for x in (*self.points, *self.widths, *map(self.scaled, bounds)))
        self.step = unit if whole else 0
        self.unit = unit if whole or isinstance(spec, WholeIntervals) else 0  # 0 where labels are half-open

    def scaled(self, value: Decimal) -> int:
        return int(EXACT.scaleb(value, self.places))

    def interval(self, point: int, width: int) -> Interval:
        if self.top is not None and point >= self.top:
            return self.top, None
        if self.bottom is not None and point < self.bottom:
            return None, self.bottom
        lower = self.origin + (point - self.origin) // width * width
        upper = lower + width
        return (
            lower if self.bottom is None else max(lower, self.bottom),
            upper if self.top is None else min(upper, self.top),
        )

    def runs(self, width: int) -> list[tuple[Interval, int]]:
        """The intervals that hold leaves, each with how many: in numeric order they follow one another."""
        runs = []
        begin = 0
        while begin < len(self.points):
            interval = self.interval(self.points[begin], width)
            upper = interval[1]
            end = len(self.points) if upper is None else bisect_left(self.points, upper, begin)
            runs.append((interval, end - begin))
            begin = end
        return runs

    def hierarchy(self, column: str) -> Hierarchy:
        levels = [self.runs(width) for width in self.widths]
        labels = [self.leaves.copy()]
        shares = [[0.0] * len(self.leaves)]
        for level in levels:
            labels.append([])
            for interval, n in level:
                labels[-1] += [self.label(interval)] * n
            shares.append([self.share(interval) for interval, _ in level])
        # Top- and bottom-coding hold at level 0 too: the first and the last run of any level.
        (first, n_first), (last, n_last) = levels[0][0], levels[0][-1]
        if last[1] is None:
            labels[0][-n_last:] = labels[1][-n_last:]
            shares[0][-n_last:] = [self.share(last)]
        if first[0] is None:
            labels[0][:n_first] = labels[1][:n_first]
            shares[0][:n_first] = [self.share(first)]
        labels.append([TOP] * len(self.leaves))
        shares.append([float(len(self.leaves) > 1)])
        return Hierarchy.from_levels(column, self.leaves, labels, shares=shares, leaf_order="numeric")

    def label(self, interval: Interval) -> str:
        if interval[1] is None:
            return f">={self.text(interval[0])}"
        if interval[0] is None:
            return f"<{self.text(interval[1])}"
        lower, upper = interval
        if not self.unit:
            return f"[{self.text(lower)}, {self.text(upper)})"
        first, last = self.text(lower), self.text(upper - self.unit)
        if first == last:
            return first
        # 20-24 reads well, -10--6 does not. Each label for itself: a negative value that nobody sees must not change
        # how all others are written.
        return f"[{first}, {last}]" if lower < 0 else f"{first}-{last}"

    def share(self, interval: Interval) -> float:
        """The part of the data's range that lies in the interval."""
        lower, upper = interval
        least, most = self.points[0], self.points[-1]
        begin = least if lower is None else max(lower, least)
        end = most if upper is None else min(upper - self.step, most)
        return (end - begin) / (most - least) if most > least else 0.0

    def text(self, scaled: int) -> str:
        whole, part = divmod(abs(scaled), 10**self.places)
        decimals = f".{part:0{self.places}d}".rstrip("0") if part else ""
        return f"{'-' if scaled < 0 else ''}{whole}{decimals}"


def _places(value: Decimal) -> int:
    exponent = value.as_tuple().exponent
    return -exponent if isinstance(exponent, int) and exponent < 0 else 0
