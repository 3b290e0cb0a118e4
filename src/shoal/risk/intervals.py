"""Interval disclosure: the masked value of a number discloses the original one up to an interval.

Rank-based: the interval holds p per cent of the masked values, around the record's own. Based on the standard
deviation: the original lies within p per cent of it from the masked value.
V. Torra, "Data Privacy: Foundations, New Developments and the Big Data Challenge", Springer 2017. Lecture slides swap
min and max in the ends of the rank interval; as printed they would always be those of the whole column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.engines.opening import rows_of
from shoal.errors import DataError, PolicyError
from shoal.hierarchies.spans import standard_deviation
from shoal.risk.keys import numbers
from shoal.tables.frequency import Floats

PERCENTS = tuple(range(1, 11))

Disclosed = NDArray[np.bool_]


@dataclass(frozen=True)
class ColumnDisclosure:
    """The share of disclosed records, for each percentage and on average."""

    records: int  # whose original value is known
    rank: Mapping[float, float]
    deviation: Mapping[float, float]
    rank_mean: float
    deviation_mean: float


@dataclass(frozen=True)
class IntervalDisclosure:
    """Interval disclosure of some columns."""

    columns: Mapping[str, ColumnDisclosure]

    @property
    def rank_column(self) -> str:
        """The column with the highest rank-based disclosure, to which ``rank`` refers."""
        return max(self.columns, key=lambda name: self.columns[name].rank_mean)

    @property
    def rank(self) -> float:
        """The mean over percentages for the worst column, ``rank_column``; not the mean of all columns."""
        return self.columns[self.rank_column].rank_mean

    @property
    def deviation_column(self) -> str:
        """The column with the highest deviation-based disclosure, to which ``deviation`` refers."""
        return max(self.columns, key=lambda name: self.columns[name].deviation_mean)

    @property
    def deviation(self) -> float:
        """The mean over percentages for the worst column, ``deviation_column``; not of all columns."""
        return self.columns[self.deviation_column].deviation_mean

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "rank": self.rank,
            "rank_column": self.rank_column,
            "deviation": self.deviation,
            "deviation_column": self.deviation_column,
            "columns": {name: asdict(column) for name, column in self.columns.items()},
        }


def interval_disclosure(
    original: Data, masked: Data, columns: Sequence[str], *, percents: Sequence[float] = PERCENTS
) -> IntervalDisclosure:
    """Compare two tables row by row; the rows must be in the same order.

    A masked null discloses nothing; an original null has nothing to disclose and is left out.
    """
    if not columns or isinstance(columns, str):
        raise PolicyError("columns: specify at least one numeric column, in a list")
    if not percents or not all(0 <= p <= 100 for p in percents):
        raise PolicyError("percents: specify at least one, between 0 and 100")
    before, after = rows_of(original), rows_of(masked)
    if before.table.num_rows != after.table.num_rows:
        raise DataError(
            f"the original has {before.table.num_rows} records, but the masked table has {after.table.num_rows}",
            "rows are compared one by one: give both tables complete and in the same order",
        )
    disclosures = {}
    for name in columns:
        pair = numbers(before, name), numbers(after, name)
        if infinite := sum(int(np.isinf(values).sum()) for values in pair):
            raise DataError(f"column {name!r}: {infinite} values are infinite", "treat them as missing")
        disclosures[name] = column_disclosure(*pair, percents)
    return IntervalDisclosure(disclosures)


def column_disclosure(x: Floats, masked: Floats, percents: Sequence[float] = PERCENTS) -> ColumnDisclosure:
    """Return the disclosure of originals ``x`` by their masked values, NaN if missing."""
    present = ~np.isnan(x)
    n = int(present.sum())
    ranks = _Ranks.from_masked(masked)
    rank = {p: _share(rank_disclosed(x, masked, p, ranks), n) for p in percents}
    deviation = {p: _share(deviation_disclosed(x, masked, p), n) for p in percents}
    return ColumnDisclosure(
        n, rank, deviation, float(np.mean(list(rank.values()))), float(np.mean(list(deviation.values())))
    )


@dataclass(frozen=True, eq=False)
class _Ranks:
    """The sorted masked values, and where each record's own begin and end; the same for every percentage."""

    ranked: Floats
    first: NDArray[np.int64]
    last: NDArray[np.int64]

    @classmethod
    def from_masked(cls, masked: Floats) -> _Ranks:
        ranked, rank_of, copies = np.unique(masked[~np.isnan(masked)], return_inverse=True, return_counts=True)
        ends = np.cumsum(copies)
        first, last = np.zeros(len(masked), np.int64), np.zeros(len(masked), np.int64)
        first[~np.isnan(masked)] = (ends - copies)[rank_of]
        last[~np.isnan(masked)] = ends[rank_of] - 1
        return cls(np.repeat(ranked, copies), first, last)


def rank_disclosed(x: Floats, masked: Floats, p: float, ranks: _Ranks | None = None) -> Disclosed:
    """Return whether the original lies between the masked values p·n/200 ranks below and above the record's own.

    Equal masked values share their ranks, from the first to the last. Where p·n/200 is not whole, the ends lie
    between two masked values, in proportion. ``ranks`` are those of the masked values, where they are known already.
    """
    ranks = ranks or _Ranks.from_masked(masked)
    n = len(ranks.ranked)
    if not n:
        return np.zeros(len(x), np.bool_)
    w = p * n / 200
    low = _at(ranks.ranked, np.maximum(ranks.first - w, 0))
    high = _at(ranks.ranked, np.minimum(ranks.last + w, n - 1))
    return np.asarray(~np.isnan(masked) & (low <= x) & (x <= high))


def _at(ranked: Floats, position: Floats) -> Floats:
    """Return the value at a position, which may lie between two."""
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, len(ranked) - 1)
    part = position - below
    return np.asarray((1 - part) * ranked[below] + part * ranked[above])


def deviation_disclosed(x: Floats, masked: Floats, p: float) -> Disclosed:
    """Return whether the original is within p percent of the column's standard deviation of the masked value."""
    sd = standard_deviation(x[~np.isnan(x)])
    return np.asarray(np.abs(x - masked) <= p * sd / 100)


def _share(disclosed: Disclosed, n: int) -> float:
    return float(disclosed.sum() / n) if n else 0.0
