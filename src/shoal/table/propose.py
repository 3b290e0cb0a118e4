"""A hierarchy for a column of which nothing is known but its name and its values.

Numbers get intervals of round widths, dates get calendar periods, codes lose characters from the right; everything
else is kept, joined into sets, or hidden. A column with many different numbers starts at bins of about a 64th of its
range, so that no released range ends at somebody's own value. A proposal always covers the values it was made from; the
hierarchy of someone who knows the column may lose less.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.table.builders import Flat, Mask
from shoal.table.dates import ISO, ISO_DATE, UNITS, Dates, Unit
from shoal.table.intervals import Intervals

Spec = Intervals | Mask | Dates | Flat
Counts = NDArray[np.int64]

FEW = 12  # up to so many distinct values, a number may be a code for a category
BINS = 64  # of the range of a column: finer boundaries lose no less, and end at single people's values
EXACT = 100  # up to so many different whole numbers, such as ages, are their own bins


@dataclass(frozen=True)
class Proposal:
    """A hierarchy, the finest level that is released, and what cells between two levels are written as."""

    hierarchy: Spec
    cells: Literal["hierarchy", "range", "set"] = "hierarchy"
    min_level: int = 0

    def fields(self) -> dict[str, Any]:
        """As a policy writes it."""
        fields: dict[str, Any] = {"hierarchy": self.hierarchy.model_dump(mode="json", exclude_defaults=True)}
        if self.min_level:
            fields["min_level"] = self.min_level
        return fields if self.cells == "hierarchy" else fields | {"cells": self.cells}


HIDDEN_OR_SETS = Proposal(Flat(), "set")


# As people and programs write numbers: 007 and +1 are codes. Fifteen digits are what a double keeps.
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,20})?(e-[0-9]{2})?")
AGES = tuple(map(Decimal, (5, 10, 20, 40)))  # the groups that people use

CODE = re.compile(r"[0-9A-Z]{2,16}")
CODE_WORDS = re.compile("zip|zipcode|postal|postalcode|postcode|plz|cap|cp|cep|code|id|key|icd")
MEASURE_WORDS = re.compile(
    "incomes?|salary|wages?|costs?|prices?|amount|total|value|weight|balance|debt|tax|gehalt|einkommen|lohn|kosten"
    "|betrag|preis|salaire|revenu|cout|reddito|costo|stipendio|salario|ingresos?|renda|pay|gain|loss|distance"
)

AGE_WORDS = re.compile("age|ages|alter|eta|edad|idade|leeftijd")

# Never three digits, unlike a social security number.
DATE = re.compile(r"([0-9]{4}|[0-9]{1,2})([-/.])[0-9]{1,2}\2([0-9]{4}|[0-9]{1,2})")
FORMATS = tuple(
    form.replace(" ", mark)
    for mark in "-/."
    for form in ("%Y %m %d", "%d %m %Y", "%m %d %Y", "%y %m %d", "%d %m %y", "%m %d %y")
)
PERIODS: tuple[Unit, ...] = ("day", "month", "quarter", "year", "decade")
PIVOT = 31  # of two digits: a birth in 1931 is likelier than anything in 2031


def propose(column: str, values: Sequence[str], counts: Counts) -> Proposal:
    """A hierarchy for the distinct ``values`` of ``column``, value ``i`` occurring ``counts[i]`` times."""
    if len(values) <= 2:
        return HIDDEN_OR_SETS
    forms = date_formats(values)
    if forms:
        return _dates(values, forms[0]) if len(forms) == 1 else HIDDEN_OR_SETS
    if len(values) > FEW and is_code(column, values):
        return Proposal(Mask(mask="right"))
    if all(map(NUMBER.fullmatch, values)):
        return _intervals(column, np.array(values, dtype=np.float64), counts)
    return HIDDEN_OR_SETS


def date_formats(values: Sequence[str]) -> list[str]:
    """The formats that read every value as a date; a proposal needs exactly one."""
    if all(map(ISO_DATE.fullmatch, values)):
        return [ISO] if _reads(ISO, values) else []
    if not all(map(DATE.fullmatch, values)):
        return []
    # A sample rules out most formats before every value is read.
    return [form for form in FORMATS if _reads(form, sample(values)) and _reads(form, values)]


def is_code(column: str, values: Sequence[str]) -> bool:
    """Digits, or digits among capitals, equally many in every value: a postcode, a diagnosis code, a key."""
    if len({len(value) for value in values}) != 1 or not all(map(CODE.fullmatch, values)):
        return False
    if any(value.isalpha() for value in values):
        return False
    if not all(value.isdigit() for value in values) or any(value[0] == "0" for value in values):
        return True
    # Whole numbers may look the same. The name decides; without its help the length does, as few measures
    # have five digits or more in every record.
    names = words(column)
    if any(map(CODE_WORDS.fullmatch, names)):
        return True
    return len(values[0]) >= 5 and not any(map(MEASURE_WORDS.fullmatch, names))


def words(column: str) -> frozenset[str]:
    """The words of a column's name, small and without accents: ``birthDate_Année`` is birth, date, annee."""
    plain = unicodedata.normalize("NFKD", column).replace("ß", "ss")
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    parted = re.sub(r"(?<=[^\W\d_A-Z])(?=[A-Z])|[\W\d_]+", " ", plain)
    return frozenset(parted.lower().split())


def sample(values: Sequence[str], size: int = 1000) -> Sequence[str]:
    """At most ``size`` of the values, evenly spaced: the same every time."""
    return values[:: max(1, -(-len(values) // size))]


def _days(form: str, values: Iterable[str]) -> set[date]:
    if form == ISO:  # the date as written; many times may share one
        return {date.fromisoformat(day) for day in {value[:10] for value in values}}
    return {datetime.strptime(value, form).date() for value in values}


def _reads(form: str, values: Iterable[str]) -> bool:
    try:
        _days(form, values)
    except ValueError:
        return False
    return True


def _dates(values: Sequence[str], form: str) -> Proposal:
    """The periods that merge some dates and not all; days are shown only where there are few of them."""
    days = _days(form, values)
    kept: list[Unit] = []
    finer = len(values)
    for period in PERIODS:
        distinct = len(set(map(UNITS[period], days)))
        if 1 < distinct < finer:
            kept.append(period)
            finer = distinct
    if not kept:
        return HIDDEN_OR_SETS
    spec = Dates(dates=tuple(kept), format=form, pivot=PIVOT if "%y" in form else 69)
    return Proposal(spec, "range", 1 if len(values) > EXACT else 0)


def _intervals(column: str, numbers: NDArray[np.float64], counts: Counts) -> Proposal:
    """Round widths that merge some numbers and not all, from a 64th of the range up to half of it.

    The range is that of the middle 98 % of the records: a few huge values would put the rest in one interval.
    """
    order = np.argsort(numbers, kind="stable")
    below = np.cumsum(counts[order])
    first, last = np.searchsorted(below, [below[-1] * 0.01, below[-1] * 0.99])
    span = float(numbers[order[last]] - numbers[order[first]]) or float(np.ptp(numbers))
    if not span:
        return HIDDEN_OR_SETS
    whole = bool((numbers == np.floor(numbers)).all())
    exact = len(numbers) <= FEW or (whole and len(numbers) <= EXACT)
    # Decimal, since 0.1 · 5 must be a whole multiple of 0.1.
    least = Decimal(repr(span)) / BINS
    ladder = AGES if whole and exact and any(map(AGE_WORDS.fullmatch, words(column))) else _widths(least, span, whole)
    kept: list[Decimal] = []
    finer = len(numbers)
    for width in ladder:
        distinct = len(np.unique(np.floor(numbers / float(width))))
        if 1 < distinct < finer:
            kept.append(width)
            finer = distinct
    if not kept:
        return HIDDEN_OR_SETS if not exact else Proposal(Intervals(intervals=(_above(span),)), "range")
    return Proposal(Intervals(intervals=tuple(kept)), "range", 0 if exact else 1)


def _widths(least: Decimal, span: float, whole: bool) -> Iterator[Decimal]:
    """Nested round widths: 1, 2, 10, 20, 100 … or 5, 10, 50, 100 …, the first not below ``least``."""
    power = max(least.adjusted(), 0) if whole else least.adjusted()
    width = next(w for w in (Decimal(d).scaleb(power + up) for up in (0, 1) for d in (1, 2, 5)) if w >= least)
    while float(width) <= span / 2:
        yield width
        width *= 5 if str(width.normalize()).lstrip("0.").startswith("2") else 2


def _above(span: float) -> Decimal:
    """A round width that holds the whole range, for columns that have few numbers."""
    return Decimal(10).scaleb(Decimal(repr(span)).adjusted())
