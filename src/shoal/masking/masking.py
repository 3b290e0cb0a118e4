"""Microaggregation of numbers: every value is replaced by the mean, median, mode or range of its group.

For numbers that would otherwise be published unchanged, including sensitive ones. As quasi-identifiers under
requirements beyond k, numbers are handled by ``anonymize`` with algorithm ``mdav``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import rows_of
from shoal.errors import DataError, InfeasibleError, MissingValueError, PolicyError, no_column
from shoal.masking.groups import GroupOf, improve_groups, mdav_groups, univariate, v_mdav
from shoal.masking.points import Points, scaled_to_unit
from shoal.notation.codec import Coded
from shoal.notation.labels import written_range, written_set
from shoal.notation.numbers import parse_number
from shoal.tables.frequency import Floats

Method = Literal["mdav", "v-mdav", "univariate"]
Value = Literal["mean", "median", "mode", "range"]


@dataclass(frozen=True, eq=False)
class Masked:
    """A table with masked columns, and the information loss."""

    table: Any  # the same kind of frame as the input, rows in their order
    columns: tuple[str, ...]  # the numbers
    k: int
    method: Method
    groups: dict[str, int]  # per masked column
    smallest: int  # records of the smallest group
    sse: float  # sum of squares within groups, columns standardized
    sst: float  # of the whole: records times columns that vary

    @property
    def loss(self) -> float:
        """SSE/SST, 0 to 1: the part of the variance that the groups do not keep."""
        return self.sse / self.sst if self.sst else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "columns": list(self.columns),
            "k": self.k,
            "method": self.method,
            "groups": self.groups,
            "smallest": self.smallest,
            "sse": self.sse,
            "sst": self.sst,
            "loss": self.loss,
        }


def microaggregate(
    data: Data,
    columns: Sequence[str],
    *,
    k: int,
    categories: Sequence[str] = (),
    method: Method = "mdav",
    value: Value = "mean",
    gamma: float = 0.2,
    improve: bool = False,
) -> Masked:
    """Mask numbers in groups of at least ``k`` records.

    ``mdav`` and ``v-mdav`` form the same groups for all columns, so that the records of a group are equal in them;
    ``categories`` are included with Gower's distance and replaced by the most frequent one of their group.
    ``univariate`` masks each column separately, with the least possible sum of squares: each value is then shared by at
    least k records, but a combination of several columns need not be. ``improve`` continues with moves and swaps until
    none lowers the sum of squares. Rows keep their order.
    """
    _require(columns, categories, k, method, value, improve)
    engine = rows_of(data)
    if absent := [name for name in (*columns, *categories) if name not in engine.table.column_names]:
        raise no_column("the table", absent, engine.table.column_names)
    if engine.n_records < k:
        raise InfeasibleError(f"no group can have {k} records: there are only {engine.n_records}", "use a smaller k")
    numbers = {name: numbers_of(name, engine.coded(name)) for name in columns}
    groups = _groups(engine, numbers, categories, k, method, gamma, improve)
    table = engine.table
    for name in (*columns, *categories):
        masked_column = (
            _MaskedColumn(engine, name, groups[name], numbers[name]).released(value)
            if name in numbers
            else _MaskedColumn(engine, name, groups[name]).released("range" if value == "range" else "mode")
        )
        table = table.set_column(table.column_names.index(name), name, masked_column)
    varying = {name: scaled_to_unit(column) for name, column in numbers.items() if column.min() < column.max()}
    return Masked(
        engine.back(table),
        tuple(columns),
        k,
        method,
        {name: int(group.max()) + 1 for name, group in groups.items()},
        min(int(np.bincount(group).min()) for group in groups.values()),
        sum(sum_of_squares_within(column, groups[name]) / float(np.var(column)) for name, column in varying.items()),
        float(engine.n_records * len(varying)),
    )


def _require(columns: Sequence[str], categories: Sequence[str], k: int, method: str, value: str, improve: bool) -> None:
    if k < 1:
        raise PolicyError("k: must be at least 1")
    if method not in get_args(Method):
        raise PolicyError(f"unknown method: {method!r}", f"methods: {', '.join(get_args(Method))}")
    if value not in get_args(Value):
        raise PolicyError(f"unknown value: {value!r}", f"values: {', '.join(get_args(Value))}")
    if not columns:
        raise PolicyError("columns: specify at least one numeric column")
    if len({*columns, *categories}) < len(columns) + len(categories):
        raise PolicyError("columns: a column is listed twice")
    if categories and (method == "univariate" or improve):
        raise PolicyError(
            "categories: univariate and improve need sums of squares, which categories do not have",
            "use method 'mdav' or 'v-mdav' without improve, or omit categories",
        )


def numbers_of(name: str, coded: Coded) -> Floats:
    """Return a column as numbers; raise an error if a value is missing or not a number."""
    n = len(coded.codes)
    if missing := int((coded.codes < 0).sum()):
        raise MissingValueError(
            f"column {name!r}: {missing} of {n} values are missing and have no distance to others",
            "fill them, or remove these records",
        )
    exact = [parse_number(text) for text in coded.texts]
    read = [None if value is None or math.isinf(float(value)) else float(value) for value in exact]
    if strange := sum(value is None for value in read):
        raise DataError(
            f"column {name!r}: {strange} of {len(read)} distinct values are not numbers, or too large for one",
            "list it under categories, or correct these values",
        )
    return np.array([value for value in read if value is not None])[coded.codes]


def sum_of_squares_within(values: Floats, group: GroupOf) -> float:
    """Return Σ (x − mean of its group)²."""
    means = np.bincount(group, values) / np.bincount(group)
    return float(((values - means[group]) ** 2).sum())


def _groups(
    engine: LocalEngine,
    numbers: dict[str, Floats],
    categories: Sequence[str],
    k: int,
    method: Method,
    gamma: float,
    improve: bool,
) -> dict[str, GroupOf]:
    """Return, for each column, the group of every record."""
    if method == "univariate":
        return {name: univariate(column, k) for name, column in numbers.items()}
    signs = []
    for name in categories:
        coded = engine.coded(name)
        signs.append(np.where(coded.codes < 0, len(coded.texts), coded.codes).astype(np.int32))
    points = Points.from_columns(list(numbers.values()), signs, [1.0] * len(signs), n=engine.n_records)
    # Records are sorted by their values: the order in the file must not decide ties.
    order = np.lexsort((*points.signs.T[::-1], *points.numbers.T[::-1]))
    sorted_points = points.subset(order)
    groups = mdav_groups(sorted_points, k) if method == "mdav" else v_mdav(sorted_points, k, gamma)
    if improve:
        groups = improve_groups(sorted_points, groups, k)
    group = np.empty(len(order), np.int64)
    group[order] = groups
    return dict.fromkeys((*numbers, *categories), group)


@dataclass(frozen=True, eq=False)
class _MaskedColumn:
    """A column and the groups of its records."""

    engine: LocalEngine
    name: str
    group: GroupOf
    numbers: Floats | None = None  # None for a category

    def released(self, value: Value) -> pa.Array:
        match value:
            case "mean":
                return pa.array(self._means[self.group])
            case "median":
                return pa.array(self._medians[self.group])
            case "mode":
                return self._modes
        texts = np.array(self._ranges if self.numbers is not None else self._sets, dtype=object)
        return pa.array(texts[self.group], pa.string())

    @property
    def _coded(self) -> Coded:
        return self.engine.coded(self.name)

    @property
    def _means(self) -> Floats:
        # In numeric order: sums of floats depend on the order.
        order, starts, sizes = self._order
        ranked = self._values[order]
        with np.errstate(over="ignore"):
            means = np.add.reduceat(ranked, starts) / sizes
        # The sum of the largest numbers may overflow even if their mean does not.
        return np.where(np.isinf(means), np.add.reduceat(ranked / np.repeat(sizes, sizes), starts), means)

    @property
    def _values(self) -> Floats:
        return cast(Floats, self.numbers)

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return the records by group and then by number, where each group begins, and its size."""
        order = np.lexsort((self._coded.codes, *(() if self.numbers is None else (self.numbers,)), self.group))
        sizes = np.bincount(self.group)
        return order, np.cumsum(sizes) - sizes, sizes

    @property
    def _medians(self) -> Floats:
        order, starts, sizes = self._order
        ranked = self._values[order]
        low, high = ranked[starts + (sizes - 1) // 2], ranked[starts + sizes // 2]
        return np.asarray(low / 2 + high / 2)

    @property
    def _modes(self) -> pa.Array:
        """Return the most frequent value of each group, in the type of the column; the first one in case of ties."""
        codes = self._coded.codes.astype(np.int64)
        rank = codes + 1  # a null is 0
        if self.numbers is not None:
            rank = np.unique(self.numbers, return_inverse=True)[1].astype(np.int64)
        pairs, at, counts = np.unique(self.group * (int(rank.max()) + 1) + rank, return_index=True, return_counts=True)
        owner = pairs // (int(rank.max()) + 1)
        best = np.lexsort((np.arange(len(pairs)), -counts, owner))
        first = best[np.flatnonzero(np.diff(owner[best], prepend=-1))]
        chosen = codes[at[first]][self.group]
        column = self._coded.values.take(pa.array(chosen, mask=chosen < 0))
        return column.cast(self.engine.table.schema.field(self.name).type)

    @property
    def _ranges(self) -> list[str]:
        order, starts, sizes = self._order
        texts = [self._coded.texts[code].strip() for code in self._coded.codes[order].tolist()]
        numbers = self._values[order]
        pairs = zip(starts.tolist(), (starts + sizes - 1).tolist(), strict=True)
        # 39 and 039 are the same number.
        return [
            texts[first] if numbers[first] == numbers[last] else written_range(texts[first], texts[last])
            for first, last in pairs
        ]

    @property
    def _sets(self) -> list[str]:
        order, starts, _ = self._order
        members = np.split(self._coded.codes[order], starts[1:])
        texts = [*self._coded.texts, "*"]  # a null, −1, may be any value
        return [
            "*"
            if codes[0] < 0
            else written_set([texts[code] for code in np.unique(codes)])
            if np.ptp(codes)
            else texts[codes[0]]
            for codes in members
        ]
