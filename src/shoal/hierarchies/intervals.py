"""Numbers in intervals, each level wider than the one below, with optional top- and bottom-coding.

All arithmetic is exact, on decimals as they are written: in binary, 0.3 is less than 3 · 0.1 and would get a label that
does not contain it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.hierarchies.description import Description
from shoal.hierarchies.hierarchy import TOP, Hierarchy, once_per_hierarchy
from shoal.notation.numbers import EXACT, decimal_places, parse_number, written_decimal

# Lower bound included, upper bound excluded; None if unbounded, on one side only.
Interval = tuple[int, int] | tuple[int, None] | tuple[None, int]
Cut = Callable[[int], Interval]  # the interval that contains a point


@once_per_hierarchy
def leaf_numbers(hierarchy: Hierarchy) -> tuple[Decimal | None, ...]:
    """Return the exact number of each leaf, None for leaves that are not numbers."""
    return tuple(None if text is None else parse_number(text) for text in hierarchy.leaves)


def _number(entry: object) -> Decimal:
    """Return a number of the policy; a float counts as it is written, 0.1 and not 0.1000000000000000055."""
    if isinstance(entry, int | float | Decimal) and not isinstance(entry, bool):
        value = parse_number(str(entry))
        if value is not None:
            return value
    raise ValueError("must be a number")


def _as_toml(value: Decimal) -> int | float:
    return int(value) if value == value.to_integral_value() else float(value)


Number = Annotated[Decimal, BeforeValidator(_number), PlainSerializer(_as_toml)]


class Intervals(Description):
    """Generalize numbers to intervals, with one width or list of boundaries per level, then to ``*``.

    Values from ``top`` on and below ``bottom`` are never released, not even at level 0. Labels include both ends:
    20-24, or [-10, -6] if one of its bounds is negative. Half-open [0.5, 1) is used if the policy has decimals here, or
    some released record has.
    """

    intervals: tuple[Number, ...] = Field(
        default=(), description="The widths, one per level, each a whole multiple of the one before."
    )
    boundaries: tuple[tuple[Number, ...], ...] = Field(
        default=(),
        description="Instead of widths, where intervals begin: `[18, 65]` for `<18`, `18-64` and `>=65`; or one such "
        "list per level, each with some of the boundaries of the one before.",
    )
    origin: Number = Field(
        default=Decimal(0), description="Where an interval begins; the others follow from the width."
    )
    log_from: Number | None = Field(
        default=None,
        description="For skewed numbers: one more level below the widths, on which the interval from 0 to the first "
        "width is split at 1, 2, 5, 10, 20, 50 and so on, from this number on.",
    )
    bottom: Number | None = Field(
        default=None, description="Bottom-coding: values below it are `<bottom` on every level, 0 included."
    )
    top: Number | None = Field(
        default=None, description="Top-coding: values from it on are `>=top` on every level, 0 included."
    )

    @field_validator("boundaries", mode="before")
    @classmethod
    def _one_list_will_do(cls, value: Any) -> Any:
        flat = isinstance(value, list | tuple) and value and not any(isinstance(part, list | tuple) for part in value)
        return (tuple(value),) if flat else value

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

    @field_validator("boundaries")
    @classmethod
    def _each_in_the_one_before(cls, levels: tuple[tuple[Decimal, ...], ...]) -> tuple[tuple[Decimal, ...], ...]:
        for level, edges in enumerate(levels, start=1):
            if not edges or any(above <= below for below, above in pairwise(edges)):
                raise ValueError(f"those of level {level} must be one or more numbers, each larger than the one before")
            if level > 1 and not set(edges) < set(levels[level - 2]):
                raise ValueError(
                    f"those of level {level} must be some of those of the level before, and not all; otherwise an "
                    "interval would lie in two (C1)"
                )
        return levels

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if bool(self.intervals) == bool(self.boundaries):
            raise ValueError("give intervals (widths) or boundaries, not both")
        if self.boundaries and (self.origin or self.log_from is not None):
            raise ValueError("origin and log_from go with intervals, not with boundaries")
        if self.log_from is not None and (self.origin or not 0 < self.log_from < self.intervals[0]):
            raise ValueError("log_from must lie between 0 and the first width, and goes with no origin")
        if self.bottom is not None and self.top is not None and self.bottom >= self.top:
            raise ValueError("bottom must be less than top")
        return self

    @model_serializer(mode="wrap")
    def _without_empty_keys(self, dumped: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # The key identifies a description, so the other key must be absent, even if empty.
        empty = {"intervals", "boundaries", "log_from"}
        return {name: value for name, value in dumped(self).items() if value or name not in empty}

    @property
    def numbers(self) -> tuple[Decimal, ...]:
        """All numbers in the description."""
        bounds = (bound for bound in (self.bottom, self.top, self.log_from) if bound is not None)
        return (*self.intervals, self.origin, *(edge for edges in self.boundaries for edge in edges), *bounds)

    @property
    def n_cuts(self) -> int:
        """The number of levels between the numbers and the top."""
        return len(self.intervals) + len(self.boundaries) + (self.log_from is not None)

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in numeric order; 39 and 039 are two leaves with the same number."""
        exact = {text: value for text in set(values) if (value := parse_number(text)) is not None}
        if not exact:
            return Hierarchy.empty(column, self.n_cuts + 2, "numeric")
        return _Bins(self, exact).hierarchy(column)


def round_numbers(first: Decimal, below: Decimal) -> list[Decimal]:
    """Return 1, 2 and 5 times powers of ten, from ``first`` to the last one below ``below``."""
    powers = range(first.adjusted(), below.adjusted() + 1)
    return [n for power in powers for n in (Decimal(d).scaleb(power) for d in (1, 2, 5)) if first <= n < below]


class WholeIntervals(Intervals):
    """Intervals with whole-number labels although some values have decimals, for releases that show none of these."""


def is_whole(value: Decimal) -> bool:
    """Return whether a number has no decimals."""
    return not EXACT.remainder(value, Decimal(1))


class _Bins:
    """Exact arithmetic of intervals in whole multiples of 10^-places."""

    def __init__(self, spec: Intervals, exact: Mapping[str, Decimal]) -> None:
        self.places = max(decimal_places(value) for value in (*exact.values(), *spec.numbers))
        points = {text: self.scaled(value) for text, value in exact.items()}
        self.leaves = sorted(sorted(points), key=points.__getitem__)
        self.points = [points[text] for text in self.leaves]
        self.cuts = self._cuts(spec)
        self.bottom = None if spec.bottom is None else self.scaled(spec.bottom)
        self.top = None if spec.top is None else self.scaled(spec.top)
        unit = 10**self.places
        # The distance from an open upper bound to the last whole number below it.
        whole = not any(x % unit for x in (*self.points, *map(self.scaled, spec.numbers)))
        self.step = unit if whole else 0
        self.unit = unit if whole or isinstance(spec, WholeIntervals) else 0  # 0 where labels are half-open

    def scaled(self, value: Decimal) -> int:
        return int(EXACT.scaleb(value, self.places))

    def _cuts(self, spec: Intervals) -> list[Cut]:
        widths, origin = [self.scaled(width) for width in spec.intervals], self.scaled(spec.origin)
        cuts = [_even(width, origin) for width in widths]
        if spec.log_from is not None:
            steps = [self.scaled(n) for n in round_numbers(spec.log_from, spec.intervals[0])]
            fine, even = _between([0, *steps, widths[0]]), cuts[0]
            cuts.insert(0, lambda point: fine(point) if 0 <= point < widths[0] else even(point))
        return cuts + [_between([self.scaled(edge) for edge in edges]) for edges in spec.boundaries]

    def interval(self, point: int, cut: Cut) -> Interval:
        if self.top is not None and point >= self.top:
            return self.top, None
        if self.bottom is not None and point < self.bottom:
            return None, self.bottom
        lower, upper = cut(point)
        if self.bottom is not None:
            lower = self.bottom if lower is None else max(lower, self.bottom)
        if self.top is not None:
            upper = self.top if upper is None else min(upper, self.top)
        if upper is None:
            return (0 if lower is None else lower), None  # a cut is open at one end at most
        return (None, upper) if lower is None else (lower, upper)

    def runs(self, cut: Cut) -> list[tuple[Interval, int]]:
        """Return the intervals that contain leaves, with the number of each: in numeric order they are consecutive."""
        runs = []
        begin = 0
        while begin < len(self.points):
            interval = self.interval(self.points[begin], cut)
            upper = interval[1]
            end = len(self.points) if upper is None else bisect_left(self.points, upper, begin)
            runs.append((interval, end - begin))
            begin = end
        return runs

    def hierarchy(self, column: str) -> Hierarchy:
        levels = [self.runs(cut) for cut in self.cuts]
        labels = [self.leaves.copy()]
        shares = [[0.0] * len(self.leaves)]
        for level in levels:
            labels.append([])
            for interval, n in level:
                labels[-1] += [self.label(interval)] * n
            shares.append([self.share(interval) for interval, _ in level])
        # Top- and bottom-coding apply at level 0 too: the first and the last run of any level.
        (first, n_first), (last, n_last) = levels[0][0], levels[0][-1]
        if self.top is not None and self.points[-1] >= self.top:
            labels[0][-n_last:] = labels[1][-n_last:]
            shares[0][-n_last:] = [self.share(last)]
        if self.bottom is not None and self.points[0] < self.bottom:
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
        # 20-24 is readable, -10--6 is not. Decided label by label: a negative value that nobody sees must not change
        # how all others are written.
        return f"[{first}, {last}]" if lower < 0 else f"{first}-{last}"

    def share(self, interval: Interval) -> float:
        """Return the share of the data's range that lies in the interval."""
        lower, upper = interval
        lowest, highest = self.points[0], self.points[-1]
        begin = lowest if lower is None else max(lower, lowest)
        end = highest if upper is None else min(upper - self.step, highest)
        return (end - begin) / (highest - lowest) if highest > lowest else 0.0

    def text(self, scaled: int) -> str:
        return written_decimal(scaled, self.places)


def _even(width: int, origin: int) -> Cut:
    """Return intervals of equal width."""

    def cut(point: int) -> Interval:
        lower = origin + (point - origin) // width * width
        return lower, lower + width

    return cut


def _between(edges: Sequence[int]) -> Cut:
    """Return intervals that begin at the edges; the first has no lower bound, the last no upper one."""

    def cut(point: int) -> Interval:
        at = bisect_right(edges, point)
        if at == 0:
            return None, edges[0]
        return (edges[at - 1], edges[at]) if at < len(edges) else (edges[-1], None)

    return cut
