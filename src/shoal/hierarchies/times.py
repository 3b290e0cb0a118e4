"""Times of day in units from a quarter of an hour to a quarter of a day, each within one of the next."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from pydantic import Field, field_validator

from shoal.hierarchies.description import Description, require_ascending
from shoal.hierarchies.hierarchy import TOP, Hierarchy

TimeUnit = Literal["quarter-hour", "hour", "quarter-day"]

UNITS: dict[TimeUnit, int] = {"quarter-hour": 15, "hour": 60, "quarter-day": 360}  # minutes, from fine to coarse
TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:[.,]([0-9]{1,9}))?)?(?: ?([AaPp])\.?[Mm]\.?)?")


def read_time(text: str) -> float | None:
    """Return the seconds since midnight; None if the text is not a time of day."""
    match = TIME.fullmatch(text.strip())
    if match is None:
        return None
    hour = int(match[1])
    if match[5]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + 12 * (match[5] in "pP")
    return hour * 3600 + int(match[2]) * 60 + int(match[3] or 0) + float(f"0.{match[4] or 0}")


class Times(Description):
    """Generalize times of day to the named units, then to ``*``; level 0 is the text as written.

    Accepted forms: 9:30, 09:30:15 and 9:30 pm. A unit is written as its first and last minute, as in 09:00/09:59.
    """

    times: tuple[TimeUnit, ...] = Field(description="The units, from fine to coarse.")

    @field_validator("times")
    @classmethod
    def _ascending(cls, units: tuple[TimeUnit, ...]) -> tuple[TimeUnit, ...]:
        require_ascending(units, UNITS)
        return units

    def build(self, column: str, values: Sequence[str]) -> Hierarchy:
        """Build with the leaves in chronological order, and by text within a moment."""
        seconds = {text: time for text in set(values) if (time := read_time(text)) is not None}
        if not seconds:
            return Hierarchy.empty(column, len(self.times) + 2, "time")
        leaves = sorted(sorted(seconds), key=seconds.__getitem__)
        levels = [leaves, *([_period(seconds[text], UNITS[unit]) for text in leaves] for unit in self.times)]
        return Hierarchy.from_levels(column, leaves, [*levels, [TOP] * len(leaves)], leaf_order="time")


def _period(seconds: float, width: int) -> str:
    first = int(seconds // 60) // width * width
    return f"{_clock(first)}/{_clock(first + width - 1)}"


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
