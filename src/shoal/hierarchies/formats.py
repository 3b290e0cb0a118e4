"""Formats of values: numbers as usually written, and the formats that read texts as dates."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date, datetime

from shoal.hierarchies.dates import ISO, ISO_DATE

# As usually written: 007 and +1 are codes. A double keeps fifteen digits.
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?(e-[0-9]{2})?")

# Never three digits, unlike a social security number.
DATE = re.compile(r"([0-9]{4}|[0-9]{1,2})([-/.])[0-9]{1,2}\2([0-9]{4}|[0-9]{1,2})")
FORMATS = tuple(
    form.replace(" ", mark)
    for mark in "-/."
    for form in ("%Y %m %d", "%d %m %Y", "%m %d %Y", "%y %m %d", "%d %m %y", "%m %d %y")
)


def date_formats(values: Sequence[str]) -> list[str]:
    """Return the formats that read every value as a date; a proposal needs exactly one."""
    if all(map(ISO_DATE.fullmatch, values)):
        return [ISO] if _reads(ISO, values) else []
    if not all(map(DATE.fullmatch, values)):
        return []
    # A sample rules out most formats before every value is read.
    return [form for form in FORMATS if _reads(form, sample(values)) and _reads(form, values)]


def sample(values: Sequence[str], size: int = 1000) -> Sequence[str]:
    """Return at most ``size`` of the values, evenly spaced: the same ones every time."""
    return values[:: max(1, -(-len(values) // size))]


def read_days(form: str, values: Iterable[str]) -> set[date]:
    """Return the days that the texts name; a ValueError if one does not fit the format."""
    if form == ISO:  # the date as written; many times may share one
        return {date.fromisoformat(day) for day in {value[:10] for value in values}}
    return {datetime.strptime(value, form).date() for value in values}


def _reads(form: str, values: Iterable[str]) -> bool:
    try:
        read_days(form, values)
    except ValueError:
        return False
    return True
