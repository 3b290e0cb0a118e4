"""Released ranges as numbers: additional columns that analysts can compute with.

With ``ranges = "bounds"`` a column ``age`` of numbers or dates is followed by ``age_from`` and ``age_to``, with
``ranges = "midpoint"`` a column of numbers by ``age_mid``. They only repeat what the text says, so the classes are
those of the texts: a reader of the release checks that and drops them. A star and a missing value have no bounds, and
the text shows which it is; a range that is open at one end has only the other bound.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.errors import VerificationError
from shoal.hierarchies.builders import SafeHarbor
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.intervals import Intervals
from shoal.notation import codec
from shoal.notation.forms import DAY, INFINITY, read_number, read_period, read_range
from shoal.notation.labels import read_set

if TYPE_CHECKING:
    from shoal.policy import Policy

End = Decimal | dt.date | None


def bound_names(policy: Policy) -> dict[str, tuple[str, ...]]:
    """Return the names of the additional columns of each quasi column."""
    form = policy.release.ranges
    if form == "text":
        return {}
    names: dict[str, tuple[str, ...]] = {}
    for name in policy.quasi:
        spec = policy.columns[name].hierarchy
        if _is_numeric(spec):
            names[name] = (f"{name}_from", f"{name}_to") if form == "bounds" else (f"{name}_mid",)
        elif isinstance(spec, Dates) and form == "bounds":
            names[name] = (f"{name}_from", f"{name}_to")
    return names


def _is_numeric(spec: object) -> bool:
    return isinstance(spec, Intervals) or (isinstance(spec, SafeHarbor) and spec.safe_harbor == "age")


# ── what a text says ────────────────────────────────────────────────────────────────────────────────────────


def ends(text: str | None, dates: Dates | None = None) -> tuple[End, End]:
    """Return the first and last value of a released text; None at an open end, and twice if it says nothing."""
    if text is None:
        return None, None
    if (members := read_set(text)) is not None:
        read = [ends(member, dates) for member in members]
        return _end([first for first, _ in read], min), _end([last for _, last in read], max)
    return _numbers(text) if dates is None else _days(text, dates)


def _end(ends: Sequence[End], choose: Callable[[list[Any]], End]) -> End:
    """Return the least or the greatest of some numbers or days; None if one of them is open."""
    given_ends = [end for end in ends if end is not None]
    return choose(given_ends) if len(given_ends) == len(ends) else None


def _numbers(text: str) -> tuple[End, End]:
    if (number := read_number(text)) is not None:
        return number, number
    parsed = read_range(text)
    if parsed is None:
        return None, None
    return (None if parsed.first == -INFINITY else parsed.first), (None if parsed.last == INFINITY else parsed.last)


def _days(text: str, dates: Dates) -> tuple[End, End]:
    if (day := dates.day(text)) is not None:
        return day, day
    for at in (i for i, letter in enumerate(text) if letter == "/"):  # the format itself may contain slashes
        first, last = dates.day(text[:at]), dates.day(text[at + 1 :])
        if first is not None and last is not None:
            return first, last
    period = read_period(text)
    if period is None:
        return None, None
    return dt.date.fromordinal(period[0] // DAY), dt.date.fromordinal((period[1] - 1) // DAY)


def _row(text: str | None, form: str, dates: Dates | None) -> tuple[End, ...]:
    first, last = ends(text, dates)
    if form == "bounds":
        return first, last
    return ((first + last) / 2,) if isinstance(first, Decimal) and isinstance(last, Decimal) else (None,)


# ── the columns ─────────────────────────────────────────────────────────────────────────────────────────────


def bound_columns(texts: Sequence[str | None], column: str, policy: Policy) -> dict[str, pa.Array]:
    """Return the additional columns of a column with these texts."""
    spec, form = policy.columns[column].hierarchy, policy.release.ranges
    dates = spec if isinstance(spec, Dates) else None
    rows = {text: _row(text, form, dates) for text in set(texts)}
    names = bound_names(policy)[column]
    return {name: _array([rows[text][i] for text in texts], dated=dates is not None) for i, name in enumerate(names)}


def _array(values: Sequence[End], *, dated: bool) -> pa.Array:
    if dated:
        return pa.array(values, pa.date32())
    numbers = [value for value in values if isinstance(value, Decimal)]
    whole = all(value == value.to_integral_value() and abs(value) < 2**53 for value in numbers)
    kind = pa.int64() if whole else pa.float64()
    written = int if whole else float
    return pa.array([written(value) if isinstance(value, Decimal) else None for value in values], kind)


def with_bounds(table: pa.Table, policy: Policy) -> pa.Table:
    """Add the columns that the policy asks for to released rows, each directly after its own column."""
    extra = {}
    for column in bound_names(policy):
        coded = codec.encode_texts(column, table[column])
        codes = pa.array(coded.codes, mask=coded.codes < 0)
        extra[column] = {
            name: values.take(codes) for name, values in bound_columns(list(coded.texts), column, policy).items()
        }
    columns: dict[str, pa.ChunkedArray] = {}
    for name in table.column_names:
        columns |= {name: table[name], **extra.get(name, {})}
    return pa.table(columns) if columns else table


# ── read back ───────────────────────────────────────────────────────────────────────────────────────────────


def present_bounds(columns: Iterable[str], policy: Policy) -> dict[str, list[str]]:
    """Return the additional columns that a table has; a column with its own role is not one of them."""
    names = set(columns)
    present = {
        column: [name for name in bounds if name in names]
        for column, bounds in bound_names(policy).items()
        if column in names
    }
    return {column: bounds for column, bounds in present.items() if bounds}


def require_true(groups: pa.Table, column: str, names: Sequence[str], policy: Policy) -> None:
    """Raise an error if an additional column contradicts its text; ``groups`` are distinct rows of both."""
    coded = codec.encode_texts(column, groups[column])
    expected_bounds = bound_columns([*coded.texts, None], column, policy)
    for name in names:
        written = codec.encode_texts(name, _bounds_with_points(groups[name], policy.columns[column].decimal))
        expected = [None if value is None else str(value) for value in expected_bounds[name].to_pylist()]
        wrong = {
            i
            for i, (code, text) in enumerate(zip(coded.codes.tolist(), written.codes.tolist(), strict=True))
            if not _agrees(expected[code], written.texts[text] if text >= 0 else None)
        }
        if wrong:
            raise VerificationError(
                f"column {name!r}: {len(wrong)} of {len(coded.codes)} distinct rows do not match {column!r}",
                f"shoal writes it from {column!r}; remove it, or write the release again",
            )


def _bounds_with_points(column: pa.ChunkedArray, decimal: str) -> pa.ChunkedArray:
    """Return bounds that a file has with decimal commas with points."""
    return pc.replace_substring(column, ",", ".") if decimal == "," and pa.types.is_string(column.type) else column


def _agrees(expected: str | None, text: str | None) -> bool:
    if not text:
        return expected is None
    if expected is None:
        return False
    number, expected_number = read_number(text), read_number(expected)
    if expected_number is not None:
        return number is not None and float(number) == float(expected_number)
    return text[:10] == expected and text[10:] in ("", " 00:00:00", "T00:00:00")


def distinct_rows(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return the distinct rows of some columns."""
    return table.select(list(columns)).group_by(list(columns)).aggregate([])


def collisions(policy: Policy) -> Mapping[str, str]:
    """Return columns of the policy whose name an additional column would repeat, each with the column that adds it."""
    names = {name.lower(): name for name in policy.columns}
    return {
        names[new.lower()]: column
        for column, bounds in bound_names(policy).items()
        for new in bounds
        if new.lower() in names
    }
