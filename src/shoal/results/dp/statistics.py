"""The queries: which integers each adds up, how much one person can change them, and what follows from noisy ones.

A person has at most c records (``contributions``) after the limit. A statistic that each record changes by a vector of
length r at most is changed by c · r at most when a person is added or removed, and never depends on the other people.
All of it holds for all groups together: a record is in one group only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from shoal.errors import PolicyError
from shoal.results.dp.noise import ChangeBound, Noise
from shoal.results.dp.public_schema import CellsOf, FixedPoint

AskKind = Literal["count", "persons", "sum", "mean", "quantile", "table", "regression", "contributions"]


@dataclass(frozen=True)
class Piece:
    """Integers that get the same noise: ``size`` entries in each group."""

    name: str
    size: int
    sensitivity: ChangeBound
    unit: float = 1.0  # the value of one unit


@dataclass(frozen=True)
class Figure:
    """A noisy figure, and an interval that contains the figure without noise with the stated confidence."""

    of: str  # which figure of the query: a cell, a quantile, a coefficient; empty if there is one only
    value: float
    low: float
    high: float


class QueryStatistic(Protocol):
    """What one question needs: statistics, their sensitivity, and figures from noisy statistics."""

    @property
    def kind(self) -> AskKind:
        """The kind of statistic."""

    @property
    def name(self) -> str:
        """The query in words."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""

    @property
    def numbers(self) -> tuple[str, ...]:
        """Those of the columns that must be numbers."""

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Return the statistics of one group, with the sensitivity of all groups together."""

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the answers for one group, from its noisy statistics; the data are not looked at again."""


def _of_records(c: int, max_addend: int) -> ChangeBound:
    """Return the sensitivity of a sum to which every record adds ``max_addend`` in absolute value at most."""
    return ChangeBound(c * max_addend, (c * max_addend) ** 2, c * max_addend, c)


def _whole(noisy: int, noise: Noise, confidence: float, label: str = "") -> Figure:
    """Return a count; the interval is cut at 0, the count is not, so that it stays unbiased."""
    width = noise.half_width(confidence)
    return Figure(label, noisy, max(0, noisy - width), max(0, noisy + width))


@dataclass(frozen=True)
class CountStatistic:
    """The number of records."""

    kind: Literal["count"] = "count"
    name: str = "count"
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each record counts 1."""
        return (Piece("records", 1, _of_records(c, 1)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the noisy count as it was drawn."""
        return [_whole(noisy[0][0], noises[0], confidence)]


@dataclass(frozen=True)
class PersonsStatistic:
    """The number of people: each counts once in every group that their records are in."""

    kind: Literal["persons"] = "persons"
    name: str = "persons"
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """A person counts 1 in c groups at most, in one if there are none."""
        groups = c if grouped else 1
        return (Piece("persons", 1, ChangeBound(groups, groups, 1, groups)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the noisy count as it was drawn."""
        return [_whole(noisy[0][0], noises[0], confidence)]


@dataclass(frozen=True)
class ContributionsStatistic:
    """How many people have 1, 2, … records, with noise: shows what the limit of records per person loses."""

    upto: int
    kind: Literal["contributions"] = "contributions"
    columns: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The query in words."""
        return "people by number of records"

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each person counts once, whatever the limit: it is asked before the limit applies."""
        return (Piece("persons", self.upto + 1, ChangeBound(1, 1, 1, 1)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return a count for each number of records."""
        labels = [*map(str, range(1, self.upto + 1)), f"more than {self.upto}"]
        return [_whole(n, noises[0], confidence, label) for label, n in zip(labels, noisy[0], strict=True)]


class OfOneColumn:
    """A query about the numbers of one column."""

    values: FixedPoint

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return (self.values.column,)

    @property
    def numbers(self) -> tuple[str, ...]:
        """All of its columns."""
        return self.columns


@dataclass(frozen=True)
class SumStatistic(OfOneColumn):
    """The sum of a column, in whole units of its granularity."""

    values: FixedPoint
    kind: Literal["sum"] = "sum"

    @property
    def name(self) -> str:
        """The query in words."""
        return f"sum of {self.values.column}"

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each record adds the bound of greater absolute value at most; a missing value adds nothing."""
        values = self.values
        max_abs = max(abs(values.lower_units), abs(values.upper_units))
        return (Piece(f"sum of {values.column}", 1, _of_records(c, max_abs), float(values.unit)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the noisy sum in the units of the column."""
        total, width = noisy[0][0], noises[0].half_width(confidence)
        return [Figure("", *(float(units * self.values.unit) for units in (total, total - width, total + width)))]


@dataclass(frozen=True)
class MeanStatistic(OfOneColumn):
    """The mean of a column: a sum of distances from the middle of the bounds, divided by a count."""

    values: FixedPoint
    kind: Literal["mean"] = "mean"

    @property
    def name(self) -> str:
        """The query in words."""
        return f"mean of {self.values.column}"

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each record adds half the width of the bounds at most to the sum, and 1 to the count of values."""
        values = self.values
        max_distance = max(values.centre - values.lower_units, values.upper_units - values.centre)
        distances = Piece(f"distances of {values.column}", 1, _of_records(c, max_distance), float(values.unit))
        return distances, Piece(f"values of {values.column}", 1, _of_records(c, 1))

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the mean; its interval holds for all sums and counts that their intervals contain."""
        total, n = noisy[0][0], noisy[1][0]
        part_confidence = 1 - (1 - confidence) / 2  # both intervals hold at once
        wide, width = noises[0].half_width(part_confidence), noises[1].half_width(part_confidence)
        lower, upper = float(self.values.lower), float(self.values.upper)

        def mean(units: float) -> float:
            return min(upper, max(lower, float(self.values.unit) * (self.values.centre + units)))

        value = mean(total / max(n, 1))
        if n - width < 1:  # there may be no value at all: the noise allows any mean
            return [Figure("", value, lower, upper)]
        ends = [mean((total + s * wide) / (n + t * width)) for s in (-1, 1) for t in (-1, 1)]
        return [Figure("", value, min(ends), max(ends))]


@dataclass(frozen=True)
class TableStatistic:
    """A histogram of one column, or a contingency table of several."""

    cells: tuple[CellsOf, ...]
    kind: Literal["table"] = "table"

    @property
    def name(self) -> str:
        """The query in words."""
        return f"{'histogram' if len(self.cells) == 1 else 'table'} of {', '.join(self.columns)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(cells.column for cells in self.cells)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns with bins."""
        return tuple(cells.column for cells in self.cells if cells.edges)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each column."""
        return tuple(cells.n_cells for cells in self.cells)

    @property
    def labels(self) -> list[str]:
        """The label of each cell, in the order of the counts."""
        labels = [""]
        for i, cells in enumerate(self.cells):
            words = ["" if label is None else label for label in cells.labels]
            labels = [f"{label}, {word}" if i else word for label in labels for word in words]
        return labels

    def require_own_labels(self) -> None:
        """Raise an error if two cells have the same label."""
        if len(set(labels := self.labels)) < len(labels):
            raise PolicyError(f"{self.name}: two cells share the label of their categories", "rename a category")

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each record is in one cell, or in none if a value is missing or not among the categories."""
        return (Piece("records", math.prod(self.shape), _of_records(c, 1)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return a count for each cell."""
        return [_whole(n, noises[0], confidence, label) for label, n in zip(self.labels, noisy[0], strict=True)]


def require_few_cells(
    statistics: Sequence[QueryStatistic], c: int, grouped: bool, groups: int, max_cells: int = 1_000_000
) -> None:
    """Refuse tables so large that drawing their noise would take minutes."""
    for statistic in statistics:
        if sum(piece.size for piece in statistic.pieces(c, grouped)) * groups > max_cells:
            raise PolicyError(
                f"{statistic.name}: more than {max_cells:,} cells over all groups",
                "ask for fewer columns, categories or bins",
            )
