"""A table as it is asked for: the columns to group by, bands of numbers, the records it is about, what is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import ibis

from shoal.errors import PolicyError

if TYPE_CHECKING:
    from shoal.engines.grouping import Groupable

_CONDITION = re.compile(r"^\s*(?P<column>.+?)\s*(?P<sign><=|>=|!=|==|=|<|>|\sin\s)\s*(?P<value>.*?)\s*$")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_PERCENTILE = re.compile(r"p(\d+(?:\.\d+)?)")
LINEAR = ("count", "sum", "mean")
REGRESSION = "regression"

Label = str | None  # None is a missing value
Key = tuple[Label, ...]


@dataclass(frozen=True)
class Feature:
    """What tells records apart by one column: its values, its bands, whether conditions hold or it has a number."""

    column: str = ""
    cuts: tuple[float, ...] = ()
    conditions: tuple[str, ...] = ()
    present: str = ""
    non_null: str = ""  # of a column that need not have numbers

    def expression(self, rows: Groupable) -> Any:
        """Return the feature as a column of an Ibis table."""
        if self.conditions or self.present or self.non_null:
            holds: Any = rows.number(self.present).notnull() if self.present else ibis.literal(True)
            if self.non_null:
                holds = rows.table[self.non_null].notnull()
            for condition in self.conditions:
                holds = holds & _holds(condition, rows)
            return ibis.ifelse(holds, "1", "0")
        if not self.cuts:
            return rows.table[self.column].cast("string")
        number = rows.number(self.column)
        banded = ibis.cases(
            (number.isnull(), ibis.null("string")),
            *((number < cut, label) for cut, label in zip(self.cuts, self.labels, strict=False)),
            else_=self.labels[-1],
        )
        return banded

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the bands."""
        limits = [f"{cut:g}" for cut in self.cuts]
        between = [f"{low} to < {high}" for low, high in pairwise(limits)]
        return (f"< {limits[0]}", *between, f">= {limits[-1]}")

    @property
    def source(self) -> str:
        """The one column that it reads."""
        return self.column or self.present or self.non_null or _parsed(self.conditions[0])[0]


def _parsed(condition: str) -> tuple[str, str, str]:
    parts = _CONDITION.match(condition)
    if parts is None:
        raise PolicyError(
            "a condition is a column, a sign and a value", "as in 'age >= 18', 'sex = F' or 'town in A,B'"
        )
    return parts["column"].strip("'\" "), parts["sign"].strip(), parts["value"]


def _holds(condition: str, rows: Groupable) -> Any:
    name, sign, value = _parsed(condition)
    rows.require([name])
    column, values = rows.table[name], [part.strip().strip("'\"") for part in value.split(",")]
    numeric = column.type().is_numeric()
    if sign in ("=", "==", "!=", "in"):
        if sign != "in":
            values = [value.strip("'\"")]
        if numeric:
            equal = rows.number(name).isin([_number(part) for part in values])
        else:
            equal = column.cast("string").isin(values)
        equal = equal.fill_null(False)
        return ~equal if sign == "!=" else equal
    number, limit = rows.number(name), _number(value)
    comparison = {"<": number < limit, "<=": number <= limit, ">": number > limit, ">=": number >= limit}[sign]
    return comparison.fill_null(False)


def _number(text: str) -> float:
    if not _NUMBER.fullmatch(text):
        raise PolicyError("a column of numbers is compared with a number", "as in 'age >= 18'")
    return float(text)


@dataclass(frozen=True)
class TableRequest:
    """One table of results: groups, and what is shown of each."""

    dimensions: tuple[tuple[str, ...], ...]  # columns to group by, each alone or nested from coarse to fine
    bands: tuple[tuple[str, tuple[float, ...]], ...] = ()
    where: tuple[str, ...] = ()
    value: str | None = None
    statistics: tuple[str, ...] = ("count",)
    on: tuple[str, ...] = ()  # of a regression: the columns that the value is regressed on
    categories: tuple[str, ...] = ()  # those of them with a coefficient per category
    few_valued: tuple[str, ...] = ()  # the others whose few values are judged as categories; the data say which

    @classmethod
    def checked(
        cls,
        by: Sequence[str | Sequence[str]],
        bands: Mapping[str, Sequence[float]] | None,
        where: Sequence[str],
        value: str | None,
        statistics: Sequence[str],
        on: Sequence[str] = (),
        categories: Sequence[str] = (),
    ) -> TableRequest:
        """Check and freeze what a user asks for."""
        dimensions = tuple(
            tuple(part.strip() for part in item.split(">")) if isinstance(item, str) else tuple(item) for item in by
        )
        names = [name for dimension in dimensions for name in dimension]
        if len(set(names)) < len(names) or not all(names):
            raise PolicyError("a column to group by is named twice, or has no name", "name each column once")
        if absent := [name for name in bands or {} if name not in names]:
            raise PolicyError(f"bands are given for {', '.join(map(repr, absent))}, which is not grouped by")
        for cuts in (bands or {}).values():
            if not len(cuts) or list(cuts) != sorted(set(cuts)):
                raise PolicyError("the limits of bands must be ascending numbers", "as in 18,65")
        for name in statistics:
            if name not in (*LINEAR, "median", *([REGRESSION] if on else [])) and not _PERCENTILE.fullmatch(name):
                raise PolicyError(
                    f"unknown statistic {name!r}", "count, sum, mean, median, or a percentile such as p90"
                )
        if not statistics or len(set(statistics)) < len(statistics):
            raise PolicyError("name at least one statistic, and each once", "count, sum, mean, median, p90")
        if value is None and set(statistics) != {"count"}:
            raise PolicyError("sums, means and quantiles need a value column", "pass value", option="--value")
        for condition in where:
            _parsed(condition)
        frozen = tuple(sorted((name, tuple(float(cut) for cut in cuts)) for name, cuts in (bands or {}).items()))
        return cls(dimensions, frozen, tuple(where), value, tuple(statistics), tuple(on), tuple(categories))

    @property
    def names(self) -> list[str]:
        """The columns to group by."""
        return [name for dimension in self.dimensions for name in dimension]

    @property
    def quantiles(self) -> dict[str, float]:
        """The quantiles asked for, by name."""
        percentiles = [name for name in self.statistics if name not in (*LINEAR, REGRESSION)]
        return {name: 0.5 if name == "median" else float(name[1:]) / 100 for name in percentiles}

    @property
    def sums(self) -> bool:
        """Whether sums can be worked out from it: a mean is a sum over a count, and residuals add up to 0."""
        return bool({"sum", "mean", REGRESSION} & set(self.statistics))

    @property
    def implied(self) -> tuple[TableRequest, ...]:
        """The tables of sums that can be worked out from it: of a regression, also those of each category."""
        if not self.on:
            return (self,)
        columns = (*self.categories, *self.few_valued)
        finer = (replace(self, dimensions=(*self.dimensions, (name,))) for name in columns)
        return (self, *finer)

    @property
    def insides(self) -> tuple[Feature, ...]:
        """What holds for the records that the table is about, a feature per column; nothing if it is about all."""
        by_column: dict[str, list[str]] = {}
        for condition in sorted(self.where):
            by_column.setdefault(_parsed(condition)[0], []).append(condition)
        conditions_by_column = [Feature(conditions=tuple(conditions)) for conditions in by_column.values()]
        present = [*([] if self.value is None else [self.value]), *self.on]
        presence = [Feature(non_null=name) if name in self.categories else Feature(present=name) for name in present]
        return (*conditions_by_column, *presence)

    @property
    def conditional(self) -> list[str]:
        """The columns of its conditions."""
        return list(dict.fromkeys(_parsed(condition)[0] for condition in self.where))

    def feature(self, name: str) -> Feature:
        """Return the feature of a column to group by."""
        return Feature(column=name, cuts=dict(self.bands).get(name, ()))

    @property
    def features(self) -> list[Feature]:
        """All that tells its cells apart."""
        return [*map(self.feature, self.names), *self.insides]

    @property
    def depths(self) -> Iterator[tuple[int, ...]]:
        """How many columns of each dimension a kind of cell is grouped by, from all to none."""
        return product(*(range(len(dimension), -1, -1) for dimension in self.dimensions))

    def kept_columns(self, depth: Sequence[int]) -> list[bool]:
        """Return which of the columns to group by a kind of cell keeps."""
        return [i < n for dimension, n in zip(self.dimensions, depth, strict=True) for i in range(len(dimension))]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "by": [list(dimension) for dimension in self.dimensions],
            "bands": {name: list(cuts) for name, cuts in self.bands},
            "where": list(self.where),
            "value": self.value,
            "statistics": list(self.statistics),
            **({"on": list(self.on), "categories": list(self.categories)} if self.on else {}),
        }
