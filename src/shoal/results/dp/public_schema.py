"""Public facts about the columns: bounds, categories and bins. They are stated by the user, never read from the data.

Bounds that were read from the data would reveal the largest income; categories, the only person with a rare disease.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import Any

from shoal.errors import PolicyError
from shoal.hierarchies.builders import File, Tree
from shoal.notation.numbers import parse_number
from shoal.policy import Policy

FINEST = 6  # decimal digits between the width of the bounds and the default granularity
MAX_UNITS = 2**29  # of a value: 2^33 records of that size still add up within 64 bits
MAX_BINS = 1000


@dataclass(frozen=True)
class FixedPoint:
    """A number as a whole multiple of a granularity, within bounds."""

    column: str
    lower: Decimal
    upper: Decimal
    unit: Decimal

    @property
    def lower_units(self) -> int:
        """The lower bound in units."""
        return round(self.lower / self.unit)

    @property
    def upper_units(self) -> int:
        """The upper bound in units."""
        return round(self.upper / self.unit)

    @property
    def centre(self) -> int:
        """The middle in units: sums of distances from it need less noise than sums of values."""
        return (self.lower_units + self.upper_units) // 2


@dataclass(frozen=True)
class CellsOf:
    """The cells into which a column divides the records: categories, or bins between edges."""

    column: str
    categories: tuple[str | None, ...] = ()
    edges: tuple[Decimal, ...] = ()

    @property
    def n_cells(self) -> int:
        """The number of cells."""
        return len(self.categories) or len(self.edges) - 1

    @property
    def labels(self) -> tuple[str | None, ...]:
        """The label of each cell; that of a bin is a half-open interval, the last one closed."""
        if self.categories:
            return self.categories
        ends = ")" * (self.n_cells - 1) + "]"
        pairs = zip(self.edges[:-1], self.edges[1:], ends, strict=True)
        return tuple(f"[{_plain(low)}, {_plain(high)}{end}" for low, high, end in pairs)


@dataclass(frozen=True)
class PublicSchema:
    """Public facts about the columns, from the user or the policy."""

    bounds: Mapping[str, tuple[Decimal, Decimal]] = field(default_factory=dict)
    categories: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict)
    bins: Mapping[str, tuple[Decimal, ...]] = field(default_factory=dict)
    granularity: Mapping[str, Decimal] = field(default_factory=dict)

    @classmethod
    def from_arguments(
        cls,
        bounds: Mapping[str, Sequence[Any]] | None = None,
        categories: Mapping[str, Sequence[Any]] | None = None,
        bins: Mapping[str, int | Sequence[Any]] | None = None,
        granularity: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
    ) -> PublicSchema:
        """Check what was given; hierarchies of the policy that list their values add categories."""
        ends = {name: _bounds(name, spec) for name, spec in (bounds or {}).items()}
        return cls(
            ends,
            _of_policy(policy) | {name: _categories(name, spec) for name, spec in (categories or {}).items()},
            {name: _edges(name, spec, ends) for name, spec in (bins or {}).items()},
            {name: _unit(name, spec) for name, spec in (granularity or {}).items()},
        )

    def fixed_point(self, column: str) -> FixedPoint:
        """Return how the numbers of a column are rounded and clamped; raise an error if its bounds are unknown."""
        if column not in self.bounds:
            raise PolicyError(
                f"column {column!r} needs bounds: between which numbers do its values lie?",
                "state them from public knowledge, such as 0 and 120 for an age; they are never read from the data",
                option=f"--bounds {column}=0:120",
            )
        lower, upper = self.bounds[column]
        unit = self.granularity.get(column, Decimal(1).scaleb((upper - lower).adjusted() - FINEST))
        fixed_point = FixedPoint(column, lower, upper, unit)
        if max(abs(lower), abs(upper)) / unit > MAX_UNITS or fixed_point.lower_units == fixed_point.upper_units:
            width = "too many" if fixed_point.upper_units > fixed_point.lower_units else "less than one"
            raise PolicyError(
                f"column {column!r}: its bounds are {width} granularity units wide, or too far from 0",
                "choose another granularity",
                option="--granularity",
            )
        return fixed_point

    def cells(self, column: str) -> CellsOf:
        """Return the cells of a column; raise an error if neither categories nor bins are known."""
        if column in self.bins:
            return CellsOf(column, edges=self.bins[column])
        if column in self.categories:
            return CellsOf(column, self.categories[column])
        raise PolicyError(
            f"column {column!r} needs categories or bins: which values can it have?",
            "list them from public knowledge, or name a hierarchy that lists them in the policy; "
            "they are never read from the data",
            option=f"--categories {column}=A,B or --bins {column}=0,18,65,120",
        )


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"


def _number(column: str, subject: str, number: object) -> Decimal:
    value = (
        parse_number(str(number))
        if isinstance(number, int | float | str | Decimal) and not isinstance(number, bool)
        else None
    )
    if value is None or abs(value) > 10**15 or (value and abs(value.adjusted()) > 15):
        raise PolicyError(f"column {column!r}: {subject} must be numbers between -10^15 and 10^15")
    return value


def _bounds(column: str, ends: Sequence[Any]) -> tuple[Decimal, Decimal]:
    if isinstance(ends, str) or len(ends) != 2:
        raise PolicyError(f"column {column!r}: bounds are two numbers, the lower and the upper one")
    lower, upper = (_number(column, "bounds", end) for end in ends)
    if lower >= upper:
        raise PolicyError(f"column {column!r}: the lower bound must be less than the upper one")
    return lower, upper


def _categories(column: str, listed: Sequence[Any]) -> tuple[str | None, ...]:
    if isinstance(listed, str):
        raise PolicyError(f"column {column!r}: categories are a list of values")
    categories = tuple(
        value if value is None else str(value).lower() if isinstance(value, bool) else str(value) for value in listed
    )
    if not categories or len(set(categories)) < len(categories):
        raise PolicyError(f"column {column!r}: categories must be at least one value, each listed once")
    return categories


def _edges(
    column: str, bins: int | Sequence[Any], bounds: Mapping[str, tuple[Decimal, Decimal]]
) -> tuple[Decimal, ...]:
    if isinstance(bins, int):
        if not 1 <= bins <= MAX_BINS:
            raise PolicyError(f"column {column!r}: the number of bins must be between 1 and {MAX_BINS}")
        if column not in bounds:
            raise PolicyError(
                f"column {column!r}: {bins} bins between which bounds?",
                "state bounds, or list the edges",
                option=f"--bounds {column}=0:120",
            )
        lower, upper = bounds[column]
        return (*tuple(lower + (upper - lower) * i / bins for i in range(bins)), upper)
    edges = tuple(_number(column, "edges of bins", edge) for edge in bins)
    if not 2 <= len(edges) <= MAX_BINS + 1 or any(a >= b for a, b in pairwise(edges)):
        raise PolicyError(f"column {column!r}: edges of bins must be at least two increasing numbers")
    return edges


def _unit(column: str, granularity: object) -> Decimal:
    unit = _number(column, "granularity", granularity)
    # x · 10 and x / 10 are the same on every engine, x · 0.1 is not.
    whole = unit if unit >= 1 else 1 / unit if unit > 0 else Decimal("0.5")
    if whole != whole.to_integral_value() or not math.isfinite(float(whole)):
        raise PolicyError(f"column {column!r}: granularity must be a whole number, or 1 divided by one, such as 0.01")
    return unit


def _of_policy(policy: Policy | None) -> dict[str, tuple[str | None, ...]]:
    if policy is None:
        return {}
    categories: dict[str, tuple[str | None, ...]] = {}
    for name, column in policy.columns.items():
        if isinstance(column.hierarchy, File):
            categories[name] = column.hierarchy.build(name, [], folder=policy.folder).leaves
        elif isinstance(column.hierarchy, Tree):
            categories[name] = column.hierarchy.build(name, []).leaves
    return categories
