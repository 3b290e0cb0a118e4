"""Descriptions of hierarchies, as a policy writes them, and how each becomes one.

Intervals, masks, dates and flat hierarchies have the data's values as leaves; trees and files bring their
own. What a description cannot place (a text that is no number, a date that is none) is left out here, and
``build`` either refuses it or sends it to the top.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SerializationInfo,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.errors import HierarchyError
from shoal.table.hierarchy import TOP, Hierarchy, uncovered_values


class _Description(BaseModel):
    # hide_input: an error must not quote what may be a value of the data.
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and (unknown := [key for key in given if key not in cls.model_fields]):
            raise ValueError(f"no such key: {_listed(unknown)}; allowed are {_listed(cls.model_fields)}")
        return given


# ── Intervals ───────────────────────────────────────────────────────────────────────────────────────────────

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


class Intervals(_Description):
    """Numbers to intervals, one width per level, then ``*``.

    Values from ``top`` on and below ``bottom`` are never released, not even at level 0. Labels hold their
    values at both ends: 20-24, or [-10, -6] where a bound is negative; with decimals, half-open [0.5, 1).
    """

    intervals: tuple[Number, ...]
    origin: Number = Decimal(0)
    bottom: Number | None = None
    top: Number | None = None

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
        self.whole = not any(x % unit for x in (*self.points, *self.widths, *map(self.scaled, bounds)))
        self.step = unit if self.whole else 0

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
        bounds = (bound for level in levels for interval, _ in level for bound in interval)
        # 20-24 reads well, -10--6 does not; one column has one style.
        signed = any(bound is not None and bound < 0 for bound in bounds)
        labels = [self.leaves.copy()]
        shares = [[0.0] * len(self.leaves)]
        for level in levels:
            labels.append([])
            for interval, n in level:
                labels[-1] += [self.label(interval, signed)] * n
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

    def label(self, interval: Interval, signed: bool) -> str:
        if interval[1] is None:
            return f">={self.text(interval[0])}"
        if interval[0] is None:
            return f"<{self.text(interval[1])}"
        lower, upper = interval
        if not self.whole:
            return f"[{self.text(lower)}, {self.text(upper)})"
        first, last = self.text(lower), self.text(upper - self.step)
        if first == last:
            return first
        return f"[{first}, {last}]" if signed else f"{first}-{last}"

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


# ── Masks ───────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST = 64  # characters of a code; a level for each of them


class Mask(_Description):
    """Characters become ``*`` one after the other: 35138, 3513*, 351**, …, *****.

    Shorter values are filled up with ``*`` on the masked side from level 1 on, so that they meet the others.
    """

    mask: Literal["right", "left"]

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Leaves in text order, one level per character of the longest."""
        leaves = sorted(set(values))
        length = max(1, max(map(len, leaves), default=1))
        if length > LONGEST:
            raise HierarchyError(
                f"column {column!r}: a value has {length} characters; a mask takes at most {LONGEST}",
                "a mask is meant for short codes; give the column another hierarchy",
            )
        if not leaves:
            return Hierarchy.empty(column, 2, "text")
        levels = [leaves]
        if self.mask == "right":
            full = [text.ljust(length, "*") for text in leaves]
            levels += [[text[: length - n] + "*" * n for text in full] for n in range(1, length + 1)]
        else:
            full = [text.rjust(length, "*") for text in leaves]
            levels += [["*" * n + text[n:] for text in full] for n in range(1, length + 1)]
        return Hierarchy.from_levels(column, leaves, levels, leaf_order="text")


# ── Dates ───────────────────────────────────────────────────────────────────────────────────────────────────

Unit = Literal["day", "week", "month", "quarter", "year", "decade"]

ISO = "ISO"
ISO_DATE = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})"
    r"([T ]([01][0-9]|2[0-4]):[0-5][0-9](:[0-6][0-9]([.,][0-9]+)?)?( ?(Z|[+-][0-9]{2}(:?[0-9]{2})?))?)?"
)
DIRECTIVES = "YymbBdjaAHIMSfpzZ%"


def _week(day: date) -> str:
    # Weeks are counted within the month (1-7, 8-14, …, 29-end): a calendar week may lie in two months,
    # and would then have two parents (C1).
    first = (day.day - 1) // 7 * 7 + 1
    last = min(first + 6, monthrange(day.year, day.month)[1])
    return f"{day.replace(day=first).isoformat()}/{day.replace(day=last).isoformat()}"


# From fine to coarse; each lies within one of the next.
UNITS: dict[Unit, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": _week,
    "month": lambda day: f"{day.year:04}-{day.month:02}",
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: f"{day.year:04}",
    "decade": lambda day: f"{day.year // 10 * 10:04}s",
}


class Dates(_Description):
    """Dates to the units named, then ``*``; the text as it was written is level 0.

    Without a ``format``, ISO dates and date-times are read, the date as written whatever the zone. With one,
    a two-digit year from ``pivot`` on is 19yy, below it 20yy. A week is a week of its month, 1-7 to 29-end.
    """

    dates: tuple[Unit, ...]
    format: str = ISO
    pivot: int = Field(69, ge=0, le=100, strict=True)

    @field_validator("dates")
    @classmethod
    def _ascending(cls, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        if not units or list(units) != [unit for unit in UNITS if unit in units]:
            raise ValueError(f"must be one or more of {_listed(UNITS)}, in this order")
        return units

    @field_validator("format")
    @classmethod
    def _readable(cls, form: str) -> str:
        if form == ISO:
            return form
        directives = re.findall(r"%(.?)", form, re.DOTALL)
        if unknown := [d for d in directives if not d or d not in DIRECTIVES]:
            allowed = _listed(f"%{d}" for d in DIRECTIVES)
            raise ValueError(f"does not know {_listed(f'%{d}' for d in unknown)}; allowed are {allowed}")
        if len([d for d in directives if d in "Yy"]) != 1:
            raise ValueError("must hold the year once, as %Y or %y")
        try:
            datetime.strptime(datetime(2001, 2, 3, tzinfo=UTC).strftime(form), form)
        except (ValueError, re.error):
            raise ValueError("is not a format that dates can be read with") from None
        return form

    @model_validator(mode="after")
    def _no_finer_than_written(self) -> Self:
        units = list(UNITS)
        if units.index(self.dates[0]) < units.index(self._written):
            raise ValueError(f"dates: the format gives no more than the {self._written}")
        return self

    @property
    def _written(self) -> Unit:
        """The finest unit that the format tells."""
        directives = set(re.findall(r"%(.)", self.format))
        months = directives & set("mbB")
        if self.format == ISO or "j" in directives or (months and "d" in directives):
            return "day"
        return "month" if months else "year"

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Leaves in the order of time, those of one day by their text."""
        read = _iso_date if self.format == ISO else self._formatted_date
        days = {text: day for text in set(values) if (day := read(text)) is not None}
        if not days:
            return Hierarchy.empty(column, len(self.dates) + 2, "time")
        leaves = sorted(sorted(days), key=days.__getitem__)
        levels = [leaves]
        for unit in self.dates:
            label_of = {day: UNITS[unit](day) for day in set(days.values())}
            levels.append([label_of[days[text]] for text in leaves])
        levels.append([TOP] * len(leaves))
        return Hierarchy.from_levels(column, leaves, levels, leaf_order="time")

    def _formatted_date(self, text: str) -> date | None:
        try:
            day = datetime.strptime(text, self.format).date()
            if "%y" in self.format.replace("%%", ""):
                # strptime's own rule is fixed; only 1900 can lack a day (February 29) that its 2000 has.
                year = day.year % 100
                day = day.replace(year=year + (1900 if year >= self.pivot else 2000))
        except ValueError:
            return None
        return day


def _iso_date(text: str) -> date | None:
    match = ISO_DATE.fullmatch(text)
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None


# ── Trees, files and none ───────────────────────────────────────────────────────────────────────────────────


class Tree(_Description):
    """Groups within groups: ``{ "*" = { been_married = ["divorced", "widow"], single = ["single"] } }``.

    A value that sits higher than others stays as it is on the levels below.
    """

    tree: dict[str, Any] | list[Any]

    @field_validator("tree")
    @classmethod
    def _well_formed(cls, tree: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        _require_groups(tree)
        return tree

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Leaves as the tree lists them, in the data or not."""
        paths = list(_paths(self.tree, ()))
        longest = max(map(len, paths))
        return Hierarchy.from_paths(column, [(path[0],) * (longest - len(path)) + path for path in paths])


def _require_groups(node: object) -> None:
    if isinstance(node, dict | list):
        if not node:
            raise ValueError("has a group without values")
        for below in node.values() if isinstance(node, dict) else node:
            _require_groups(below)
    elif not isinstance(node, str | int | float | date):
        raise ValueError("must be made of groups { name = [values] }, texts and numbers")


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, dict):
        for name, below in node.items():
            yield from _paths(below, (name, *above))
    elif isinstance(node, list):
        for below in node:
            yield from _paths(below, above)
    else:
        # As a file writes them: TOML's true is the text true.
        yield (str(node).lower() if isinstance(node, bool) else str(node), *above)


class Flat(_Description):
    """A value, or ``*``."""

    flat: Literal[True] = True

    @model_serializer
    def _always_with_its_key(self) -> dict[str, bool]:
        return {"flat": True}

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Leaves in text order."""
        leaves = sorted(set(values))
        if not leaves:
            return Hierarchy.empty(column, 2, "text")
        return Hierarchy.from_levels(column, leaves, [leaves, [TOP] * len(leaves)], leaf_order="text")


class File(_Description):
    """A CSV file in ARX's layout, a line per value without a header: leaf;level 1;…;*."""

    path: str = Field(min_length=1)

    DELIMITERS: ClassVar[str] = ";\t,"

    @model_validator(mode="before")
    @classmethod
    def _a_name_will_do(cls, given: Any) -> Any:
        return {"path": given} if isinstance(given, str) else given

    @model_serializer
    def _as_a_name(self) -> str:
        return self.path

    def build(self, column: str, values: Sequence[str], *, folder: Path = Path()) -> Hierarchy:
        """Leaves as the file lists them, in the data or not: the loss divides by all of them."""
        paths = self._paths(column, folder)
        path_of: dict[str, tuple[str, ...]] = {}
        at_fault = {path[0] for path in paths if path_of.setdefault(path[0], path) != path}
        if at_fault:
            raise self._error(column, f"{len(at_fault)} values have more than one path from level 0 (C1)")
        return Hierarchy.from_paths(column, list(path_of.values()))

    def _paths(self, column: str, folder: Path) -> list[tuple[str, ...]]:
        text = self._text(column, folder)
        tables = [self._rows(column, text, delimiter) for delimiter in self.DELIMITERS]
        if not tables[0]:
            raise self._error(column, "is empty")
        for rows in tables:
            # A label may hold another delimiter; the right one makes rows of one length that end in one top.
            if len(rows[0][1]) > 1 and len({(len(row), row[-1]) for _, row in rows}) == 1:
                return [row for _, row in rows]
        rows = max(tables, key=lambda rows: len(rows[0][1]))
        n_fields = len(rows[0][1])
        for line, row in rows:
            if len(row) != n_fields:
                raise self._error(column, f"line {line} has {len(row)} fields, the first row {n_fields}")
        return [row for _, row in rows]

    def _text(self, column: str, folder: Path) -> str:
        try:
            return (folder / self.path).read_bytes().decode("utf-8-sig")
        except FileNotFoundError:
            raise self._error(column, "does not exist", "it is looked for beside the policy") from None
        except (OSError, ValueError) as error:
            reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "cannot be read"
            raise self._error(column, reason) from None

    def _rows(self, column: str, text: str, delimiter: str) -> list[tuple[int, tuple[str, ...]]]:
        """Every row with the number of the line where it begins."""
        rows = []
        begin = 1
        reader = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
        try:
            for row in reader:
                if any(field.strip() for field in row) or len(row) > 1:
                    rows.append((begin, tuple(row)))
                begin = reader.line_num + 1
        except csv.Error:
            raise self._error(column, f"line {begin} is not CSV") from None
        return rows

    def _error(self, column: str, message: str, hint: str | None = None) -> HierarchyError:
        return HierarchyError(f"column {column!r}: hierarchy file {self.path!r}: {message}", hint)


# ── Which of them, and the whole ────────────────────────────────────────────────────────────────────────────

BY_KEY: dict[str, type[_Description]] = {
    "intervals": Intervals,
    "mask": Mask,
    "dates": Dates,
    "tree": Tree,
    "flat": Flat,
}


def _chosen(given: Any) -> Any:
    """The description whose key is there; a text is the name of a file."""
    if isinstance(given, _Description):
        return given
    kind: type[_Description] = File
    if not isinstance(given, str):
        keys = [key for key in BY_KEY if isinstance(given, Mapping) and key in given]
        if len(keys) != 1:
            raise ValueError(f"must be a file name, or have exactly one of the keys {_listed(BY_KEY)}")
        kind = BY_KEY[keys[0]]
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        # Told as one message: the path of a union's member would name the key twice.
        raise ValueError("; ".join(_explained(error))) from None


def _explained(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        place = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        yield f"{place}: {message}" if place else message


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def _dumped(spec: _Description, info: SerializationInfo) -> Any:
    # A union would try each member's own serializer on any of them, and a file would be dumped as flat.
    return spec.model_dump(
        mode=info.mode,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )


Spec = Annotated[Intervals | Mask | Dates | Tree | Flat | File, BeforeValidator(_chosen), PlainSerializer(_dumped)]


def build(
    column: str,
    spec: Spec | None,
    values: Sequence[str],
    *,
    nulls: bool,
    uncovered: Literal["error", "suppress"],
    folder: Path,
) -> Hierarchy:
    """The hierarchy of a column with these distinct values, ready for every one of them and for null."""
    if isinstance(spec, File):
        hierarchy = spec.build(column, values, folder=folder)
    else:
        hierarchy = (spec or Flat()).build(column, values)
    missing = hierarchy.missing(values)
    if missing and uncovered == "error":
        raise uncovered_values(column, missing, len(set(values)))
    if nulls:
        hierarchy = hierarchy.with_null()
    return hierarchy.with_uncovered() if missing else hierarchy
