"""Dates in units from the day to the decade; each unit lies within one of the next."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from shoal.hierarchies.description import Description, in_a_row, require_ascending
from shoal.hierarchies.hierarchy import TOP, Hierarchy

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
    "month": lambda day: day.isoformat()[:7],
    "quarter": lambda day: f"{day.year:04}-Q{(day.month + 2) // 3}",
    "year": lambda day: day.isoformat()[:4],
    "decade": lambda day: f"{day.year // 10 * 10:04}s",
}


class Dates(Description):
    """Generalize dates to the named units, then to ``*``; level 0 is the text as written.

    Without a ``format``, ISO dates and date-times are read; the date is taken as written, regardless of the zone. With
    one, a two-digit year from ``pivot`` on is 19yy, below it 20yy. A week is a week of its month, 1-7 to 29-end.
    """

    dates: tuple[Unit, ...] = Field(description="The units, from fine to coarse.")
    format: str = Field(
        default=ISO,
        description="ISO dates and date-times, the date as written whatever the zone; or a format of Python's "
        "`strptime` with the year in it once.",
    )
    pivot: int = Field(
        default=69,
        ge=0,
        le=100,
        strict=True,
        description="Of two digits (`%y`), from this year on is 19yy, below it 20yy.",
    )

    @field_validator("dates")
    @classmethod
    def _ascending(cls, units: tuple[Unit, ...]) -> tuple[Unit, ...]:
        require_ascending(units, UNITS)
        return units

    @field_validator("format")
    @classmethod
    def _readable(cls, form: str) -> str:
        if form == ISO:
            return form
        directives = re.findall(r"%(.?)", form, re.DOTALL)
        if unknown := [d for d in directives if not d or d not in DIRECTIVES]:
            allowed = in_a_row(f"%{d}" for d in DIRECTIVES)
            raise ValueError(f"does not know {in_a_row(f'%{d}' for d in unknown)}; allowed are {allowed}")
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
        """Return the finest unit that the format contains."""
        directives = set(re.findall(r"%(.)", self.format))
        months = directives & set("mbB")
        if self.format == ISO or "j" in directives or (months and "d" in directives):
            return "day"
        return "month" if months else "year"

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in chronological order, and by text within a day."""
        days = {text: day for text in set(values) if (day := self.day(text)) is not None}
        if not days:
            return Hierarchy.empty(column, len(self.dates) + 2, "time")
        leaves = sorted(sorted(days), key=days.__getitem__)
        levels = [leaves]
        day_of = [days[text] for text in leaves]
        finer: Sequence[date | str] = day_of
        for unit in self.dates:  # each unit lies within one of the next: any of its days tells which
            label_of = {label: UNITS[unit](day) for label, day in dict(zip(finer, day_of, strict=True)).items()}
            levels.append([label_of[label] for label in finer])
            finer = levels[-1]
        levels.append([TOP] * len(leaves))
        return Hierarchy.from_levels(column, leaves, levels, leaf_order="time")

    def day(self, text: str) -> date | None:
        """Parse the day in a text with the format; None if there is none."""
        if self.format == ISO:
            return _iso_date(text)
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
