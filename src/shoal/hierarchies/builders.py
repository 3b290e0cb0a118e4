"""Descriptions of generalization hierarchies, as a policy writes them, and how each one is built.

Intervals, masks, dates, times, codes, scales and flat hierarchies have the values of the data as leaves; trees and
files list their own. Values that a description cannot place (a text that is not a number, an invalid date) are left out
here, and ``build`` either rejects them or sends them to the top.
"""

from __future__ import annotations

import csv
import errno
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    PlainSerializer,
    SerializationInfo,
    ValidationError,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.errors import HierarchyError
from shoal.hierarchies.codes import ClassificationCodes
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.description import Description, in_a_row
from shoal.hierarchies.hierarchy import TOP, Hierarchy, uncovered_values
from shoal.hierarchies.intervals import Intervals
from shoal.hierarchies.pieces import in_text_order
from shoal.hierarchies.scales import Ordered
from shoal.hierarchies.times import Times
from shoal.text.bounded import MOST_BYTES, read_bounded

# ── Masks ───────────────────────────────────────────────────────────────────────────────────────────────────

LONGEST = 64  # characters of a code; one level for each


class Mask(Description):
    """Replace characters by ``*`` one by one: 35138, 3513*, 351**, …, ``*``.

    Level n hides n characters of each value, and a shorter value completely. A mask is as wide as its own value,
    independently of other values; only at the top level, where nothing of any value remains, all are ``*``.
    """

    mask: Literal["right", "left"] = Field(description="The side from which characters are masked.")

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in text order and one level per character of the longest."""
        leaves = in_text_order(values)
        length = max(1, max(map(len, leaves), default=1))
        if length > LONGEST:
            raise HierarchyError(
                f"column {column!r}: a value has {length} characters; a mask takes at most {LONGEST}",
                "a mask is meant for short codes; use another hierarchy for the column",
            )
        if not leaves:
            return Hierarchy.empty(column, 2, "text")
        levels = [leaves, *([self.masked(text, n) for text in leaves] for n in range(1, length)), [TOP] * len(leaves)]
        return Hierarchy.from_levels(column, leaves, levels, leaf_order="text")

    def masked(self, text: str, n: int) -> str:
        """Return a value with ``n`` of its characters hidden."""
        if n >= len(text):
            return "*" * max(1, len(text))
        return text[:-n] + "*" * n if self.mask == "right" else "*" * n + text[n:]


# ── Trees, files and none ───────────────────────────────────────────────────────────────────────────────────


class Tree(Description):
    """Nested groups: ``{ "*" = { been_married = ["divorced", "widow"], single = ["single"] } }``.

    A value that is higher in the tree than others stays unchanged at the levels below.
    """

    tree: dict[str, Any] | list[Any] = Field(description="Groups within groups; the outermost name is the top.")

    @field_validator("tree")
    @classmethod
    def _well_formed(cls, tree: dict[str, Any] | list[Any]) -> dict[str, Any] | list[Any]:
        _require_groups(tree)
        return tree

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in the order of the tree, whether they occur in the data or not."""
        paths = list(_paths(self.tree, ()))
        longest = max(map(len, paths))
        return Hierarchy.from_paths(column, [(path[0],) * (longest - len(path)) + path for path in paths])


def _require_groups(node: object) -> None:
    if isinstance(node, dict | list):
        if not node:
            raise ValueError("has a group without values")
        for below in node.values() if isinstance(node, dict) else node:
            _require_groups(below)
    elif not isinstance(node, str | int | float | date) or (isinstance(node, float) and not math.isfinite(node)):
        raise ValueError("must be made of groups { name = [values] }, texts and numbers")


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(node, dict):
        for name, below in node.items():
            yield from _paths(below, (name, *above))
    elif isinstance(node, list):
        for below in node:
            yield from _paths(below, above)
    else:
        # As in a file: TOML's true is the text true.
        yield (str(node).lower() if isinstance(node, bool) else str(node), *above)


class Flat(Description):
    """A flat hierarchy: a value, or ``*``."""

    flat: Literal[True] = Field(default=True, description="The value, or `*`.")

    @model_serializer
    def _always_with_its_key(self) -> dict[str, bool]:
        return {"flat": True}

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in text order."""
        leaves = in_text_order(values)
        if not leaves:
            return Hierarchy.empty(column, 2, "text")
        return Hierarchy.from_levels(column, leaves, [leaves, [TOP] * len(leaves)], leaf_order="text")


class File(Description):
    """A CSV file in ARX's layout, one line per value without a header: leaf;level 1;…;*."""

    path: str = Field(min_length=1)

    DELIMITERS: ClassVar[str] = ";\t,"

    @model_validator(mode="before")
    @classmethod
    def _a_name_will_do(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value

    @model_serializer
    def _as_a_name(self) -> str:
        return self.path

    def build(self, column: str, values: Sequence[str], *, folder: Path = Path()) -> Hierarchy:
        """Build with the leaves in the order of the file, in the data or not: the loss divides by all of them."""
        return self.of_text(column, self._text(column, folder))

    def of_text(self, column: str, text: str) -> Hierarchy:
        """Build from the content of a file."""
        paths = self._paths(column, text)
        path_of: dict[str, tuple[str, ...]] = {}
        at_fault = {path[0] for path in paths if path_of.setdefault(path[0], path) != path}
        if at_fault:
            raise self._error(column, f"{len(at_fault)} values have more than one path from level 0 (C1)")
        return Hierarchy.from_paths(column, list(path_of.values()))

    def _paths(self, column: str, text: str) -> list[tuple[str, ...]]:
        tables = [self._rows(column, text, delimiter) for delimiter in self.DELIMITERS]
        if not tables[0]:
            raise self._error(column, "is empty")
        for rows in tables:
            # A label may contain another delimiter; the right one gives rows of equal length that end in the same top.
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
            return read_bounded(folder / self.path).decode("utf-8-sig")
        except FileNotFoundError:
            raise self._error(column, "does not exist", "the path is relative to the policy") from None
        except (OSError, ValueError) as error:
            reason = "is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else "cannot be read"
            if isinstance(error, OSError) and error.errno == errno.EFBIG:
                reason = f"has more than {MOST_BYTES // 2**20} MB"
            raise self._error(column, reason) from None

    def _rows(self, column: str, text: str, delimiter: str) -> list[tuple[int, tuple[str, ...]]]:
        """Return every row with the number of its first line."""
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


# ── Safe Harbor ─────────────────────────────────────────────────────────────────────────────────────────────

# Three-digit ZIP areas with at most 20,000 people, as the guidance of the US Department of Health and Human Services
# on 45 CFR 164.514 lists them from the census of 2000.
RESTRICTED = frozenset((
    "036", "059", "063", "102", "203", "556", "692", "790", "821", "823", "830", "831", "878", "879", "884", "890",
    "893",
))  # fmt: skip


SAFE_HARBOR_AGES = Intervals.model_validate({"intervals": [5, 10, 30], "top": 90})


class SafeHarbor(Description):
    """The generalization of a ZIP code, a date, a birth date or an age under 45 CFR 164.514(b)(2), from level 0 on.

    ZIP codes keep three digits, or 000 if few people live there; dates keep the year; ages above 89 form one group, and
    so do the birth years of people who are that old in the year ``as_of``.
    """

    safe_harbor: Literal["zip", "date", "birth", "age"] = Field(description="What the values are.")
    as_of: int | None = Field(
        default=None,
        ge=1900,
        le=9999,
        strict=True,
        description="With `birth`, and only there: the year in which people are that old.",
    )

    @model_validator(mode="after")
    def _birth_needs_a_year(self) -> Self:
        if (self.safe_harbor == "birth") != (self.as_of is not None):
            raise ValueError(
                "as_of, the year in which people are that old, goes with safe_harbor = 'birth' and only there"
            )
        return self

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build the hierarchy of the given kind."""
        if self.safe_harbor == "age":
            return SAFE_HARBOR_AGES.build(column, values)
        if self.safe_harbor == "zip":
            return self._zip(column, values)
        dates = Dates.model_validate({"dates": ["year", "decade"]}).build(column, values)
        if not dates.leaves:
            return Hierarchy.empty(column, 3, "time")
        years, decades, top = ([dates.label(level, code) for code in dates.table[level]] for level in (1, 2, 3))
        if self.as_of is not None:
            last = self.as_of - 90  # people born then or earlier are 90 or turn 90
            old = [int(str(year)) <= last for year in years]
            years = [f"<={last}" if is_old else year for year, is_old in zip(years, old, strict=True)]
            decades = [f"<={last}" if is_old else label for label, is_old in zip(decades, old, strict=True)]
        return Hierarchy.from_levels(column, dates.leaves, [years, decades, top], leaf_order="time")

    @staticmethod
    def _zip(column: str, values: Sequence[str]) -> Hierarchy:
        codes = sorted(text for text in set(values) if re.fullmatch(r"[0-9]{5}(-?[0-9]{4})?", text))
        if not codes:
            return Hierarchy.empty(column, 2, "text")
        areas = ["000**" if text[:3] in RESTRICTED else text[:3] + "**" for text in codes]
        return Hierarchy.from_levels(column, codes, [areas, [TOP] * len(codes)], leaf_order="text")


# ── Which of them, and the whole ────────────────────────────────────────────────────────────────────────────

BY_KEY: dict[str, type[Description]] = {
    "intervals": Intervals,
    "boundaries": Intervals,
    "mask": Mask,
    "dates": Dates,
    "times": Times,
    "codes": ClassificationCodes,
    "ordered": Ordered,
    "tree": Tree,
    "flat": Flat,
    "safe_harbor": SafeHarbor,
}


def _chosen(value: Any) -> Any:
    """Return the description that has this key; a text is the name of a file."""
    if isinstance(value, Description):
        return value
    kind: type[Description] = File
    if not isinstance(value, str):
        keys = [key for key in BY_KEY if isinstance(value, Mapping) and key in value]
        if len(keys) != 1:
            raise ValueError(f"must be a file name, or have exactly one of the keys {in_a_row(BY_KEY)}")
        kind = BY_KEY[keys[0]]
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        # As one message: the path of a union's member would name the key twice.
        raise ValueError("; ".join(_explained(error))) from None


def _explained(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        path = ".".join(map(str, problem["loc"]))
        message = problem["msg"].removeprefix("Value error, ")
        yield f"{path}: {message}" if path else message


def _dumped(spec: Description, info: SerializationInfo) -> Any:
    # A union would try the serializer of every member on any of them, and dump a file as flat.
    return spec.model_dump(
        mode=info.mode,
        exclude_unset=info.exclude_unset,
        exclude_defaults=info.exclude_defaults,
        exclude_none=info.exclude_none,
    )


Spec = Annotated[
    Intervals | Mask | Dates | Times | ClassificationCodes | Ordered | Tree | Flat | SafeHarbor | File,
    BeforeValidator(_chosen),
    PlainSerializer(_dumped),
]


def build(
    column: str,
    spec: Spec | None,
    values: Sequence[str],
    *,
    nulls: bool,
    uncovered: Literal["error", "suppress"],
    folder: Path,
) -> Hierarchy:
    """Build the hierarchy of a column with these distinct values, which covers every one of them and null."""
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
