"""How released texts are written, by shoal and by other tools: numbers, ranges, masks, sets and dates.

Each function reads one kind of text and returns None for every other. None of them knows the column: ``reading``
decides which reading of a text applies.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Collection, Iterable, Sequence
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Literal, NamedTuple

from shoal.notation.numbers import parse_number

DecimalMark = Literal[".", ","]
DayOrder = Literal["dmy", "mdy"]

INFINITY = Decimal("Infinity")


class Range(NamedTuple):
    """A range from ``first`` to ``last``, each included or not."""

    first: Decimal
    last: Decimal
    first_within: bool
    last_within: bool

    def holds(self, x: Decimal) -> bool:
        """Return whether the number lies in the range."""
        above = self.first <= x if self.first_within else self.first < x
        return above and (x <= self.last if self.last_within else x < self.last)


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _digits(mark: DecimalMark) -> str:
    """Parse digits without a sign, thousands optionally grouped: 1500, 1,500, 1500.0, .5."""
    thousands, point = (",", r"\.") if mark == "." else (r"\.", ",")
    return rf"(?:[0-9]{{1,3}}(?:{thousands}[0-9]{{3}})+(?:{point}[0-9]*)?|[0-9]+{point}?[0-9]*|{point}[0-9]+)"


REMEMBERED = 1 << 16  # texts: an attack reads each column several times
_EXPONENT = r"(?:[eE][+-]?[0-9]+)?"
_ENDLESS = r"[+-]?(?:[Ii]nf(?:inity)?|∞)"


@lru_cache
def _number_form(mark: DecimalMark) -> re.Pattern[str]:
    return re.compile(rf"\s*[+\-−]?{_digits(mark)}{_EXPONENT}\s*")


@lru_cache(REMEMBERED)
def read_number(text: str, mark: DecimalMark = ".") -> Decimal | None:
    """Parse a number in common notation: 23, 23.0, 1,500; with the mark ``,`` also 1.500,0."""
    if not _number_form(mark).fullmatch(text):
        return None
    thousands, point = (",", ".") if mark == "." else (".", ",")
    return parse_number(text.strip().replace("−", "-").replace(thousands, "").replace(point, "."))


_COMMA = re.compile(r"\s*[+-]?(?:[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+|0,[0-9]+|[0-9]+,(?:[0-9]{1,2}|[0-9]{4,}))\s*")
_POINT = re.compile(r"\s*[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+\.[0-9]+|0\.[0-9]+|[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,}))\s*")


def decimal_mark(texts: Iterable[str]) -> DecimalMark:
    """Return the comma if some numbers can only be read with it and none only with the point: 12,5 or 1.500,0."""
    comma = False
    for text in texts:
        if "." in text and _POINT.fullmatch(text):
            return "."
        comma = comma or ("," in text and _COMMA.fullmatch(text) is not None)
    return "," if comma else "."


_NUMERAL = re.compile(r"[0-9]+(?:[.,][0-9]+)*")


def released_mark(texts: Iterable[str], values: Collection[str], mark: DecimalMark) -> DecimalMark:
    """Return the decimal mark of texts made from ``values``, which have points: the data's unless a point is evident.

    A point is evident if a number cannot be read otherwise, or is one of the values: ``1.125-2.375`` among 1.125 and
    2.375. A cell that is a single number is no evidence: it was read in the same way as the values, and ranges beside
    it were not.
    """
    for text in texts:
        numerals = _NUMERAL.findall(text)
        for numeral in () if text.strip().lstrip("+-−") in numerals else numerals:
            if "." in numeral and (_POINT.fullmatch(numeral) or numeral in values):
                return "."
    return mark


def released_number(text: str, mark: DecimalMark) -> Decimal | None:
    """Parse a number among released texts whose ranges use ``mark``; with a point if it cannot be read otherwise."""
    return read_number(text, "." if _POINT.fullmatch(text) else mark)


# ── Ranges ──────────────────────────────────────────────────────────────────────────────────────────────────


class _Ranges(NamedTuple):
    between: re.Pattern[str]
    brackets: re.Pattern[str]
    one_sided: re.Pattern[str]
    words: re.Pattern[str]
    decade: re.Pattern[str]


_BELOW = {"<": False, "<=": True, "=<": True, "≤": True, "under": False, "below": False, "less than": False,
          "up to": True, "at most": True}  # fmt: skip
_ABOVE = {">": False, ">=": True, "=>": True, "≥": True, "over": False, "above": False, "more than": False,
          "at least": True, "from": True}  # fmt: skip
_AND_MORE = ("+", "and over", "and older", "and more", "and above", "or over", "or older", "or more", "or above")
_AND_LESS = ("and under", "and younger", "and less", "and below", "or under", "or younger", "or less", "or below")


def _any_of(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


@lru_cache
def _range_forms(mark: DecimalMark) -> _Ranges:
    plain = rf"({_digits(mark)}{_EXPONENT})"
    signed = rf"([+\-−]?{_digits(mark)}{_EXPONENT}|{_ENDLESS})"
    dash = r"\s*(?:-|–|—|\.\.+|…|\bto\b)\s*"
    comma = r"\s*[,;]\s*" if mark == "." else r"(?:\s*;\s*|\s*,\s+)"
    return _Ranges(
        re.compile(rf"([+\-−]?{_digits(mark)}{_EXPONENT}){dash}([+\-−]?{_digits(mark)}{_EXPONENT})"),
        re.compile(rf"([\[\](])\s*{signed}(?:{comma}|{dash}){signed}\s*([\[\])])"),
        re.compile(rf"({_any_of([*_BELOW, *_ABOVE])})\s*{signed}", re.IGNORECASE),
        re.compile(rf"{plain}\s*({_any_of([*_AND_MORE, *_AND_LESS])})", re.IGNORECASE),
        re.compile(r"([0-9]*0)'?s"),
    )


_ISO_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def read_range(text: str, mark: DecimalMark = ".") -> Range | None:
    """Parse a range of numbers; None for other texts, and if the ends are in the wrong order.

    Accepted forms: ``20-29``, ``20 to 29``, ``[20, 30)``, ``[20, 30[``, ``(20,30]``, ``<30``, ``≥ 40``, ``90+``, ``65
    and over``, ``30s``.
    """
    text, forms = text.strip(), _range_forms(mark)
    if not text or len(text) > 120 or _ISO_DAY.fullmatch(text):  # which no form of a range matches, but slowly
        return None
    parsed: Range | None = None
    if match := forms.between.fullmatch(text):
        parsed = _range(_end(match[1], mark), _end(match[2], mark), True, True)
    elif match := forms.brackets.fullmatch(text):
        parsed = _range(_end(match[2], mark), _end(match[3], mark), match[1] == "[", match[4] == "]")
    elif match := forms.one_sided.fullmatch(text):
        sign, end = match[1].lower(), _end(match[2], mark)
        below = sign in _BELOW
        parsed = _range(-INFINITY, end, True, _BELOW[sign]) if below else _range(end, INFINITY, _ABOVE[sign], True)
    elif match := forms.words.fullmatch(text):
        end, upwards = _end(match[1], mark), match[2].lower() in _AND_MORE
        parsed = _range(end, INFINITY, True, True) if upwards else _range(-INFINITY, end, True, True)
    elif match := forms.decade.fullmatch(text):
        start = _end(match[1], ".")
        parsed = None if start is None else _range(start, start + 10, True, False)
    return parsed


def _range(first: Decimal | None, last: Decimal | None, first_within: bool, last_within: bool) -> Range | None:
    if first is None or last is None or first > last:
        return None
    return Range(first, last, first_within or first == -INFINITY, last_within or last == INFINITY)


def _end(text: str, mark: DecimalMark) -> Decimal | None:
    if text[-1] in "fFyY∞":
        return -INFINITY if text[0] in "-−" else INFINITY
    return read_number(text, mark)


# ── Masks ───────────────────────────────────────────────────────────────────────────────────────────────────

# Letters that also occur in words count only in runs of two or more, or next to a digit.
_HIDING = re.compile(r"[*•#?█]+|[xX_]{2,}|(?<=[0-9])[xX_]+|[xX_]+(?=[0-9])")


def is_star(text: str) -> bool:
    """Return whether the text says nothing."""
    return bool(text) and not text.strip("*")


def read_mask(text: str) -> str | None:
    """Replace every hidden character by a star: 351xx is 351**; None if nothing is hidden."""
    masked = _HIDING.sub(lambda run: "*" * len(run[0]), text.strip())
    return masked if "*" in masked else None


# ── Sets ────────────────────────────────────────────────────────────────────────────────────────────────────

# What a text must contain to be separated by each, which is quickly looked for.
_SEPARATORS = {
    sign: re.compile(separator)
    for sign, separator in (
        ("|", r"\s*\|\s*"),
        (";", r"\s*;\s*"),
        (",", r"\s*,\s*"),
        ("/", r"\s*/\s*"),
        ("_", "_"),
        ("or", r"\s+or\s+"),
        ("&", r"\s*&\s*"),
        ("+", r"\s*\+\s*"),
    )
}


def lists(text: str) -> Iterable[tuple[str, ...]]:
    """Return the ways to read a text as a list without braces: a|b, a_b, [a, b]; the members decide which applies."""
    body = text.strip()
    for opening, closing in ("[]", "()", "{}"):
        if body.startswith(opening) and body.endswith(closing):
            body = body[1:-1].strip()
    for separator in (pattern for sign, pattern in _SEPARATORS.items() if sign in body):
        members = tuple(separator.split(body))
        if len(members) > 1 and all(members):
            yield tuple(member.strip("\"'") for member in members)


# ── Dates ───────────────────────────────────────────────────────────────────────────────────────────────────

Moments = tuple[int, int]  # from the first microsecond to the one after the last, counted from year 1
DAY = 86_400_000_000  # microseconds
_FAR = 4_000_000 * DAY

_MONTHS = {name: i // 2 + 1 for i, name in enumerate((
    "jan", "january", "feb", "february", "mar", "march", "apr", "april", "may", "may", "jun", "june", "jul", "july",
    "aug", "august", "sep", "september", "oct", "october", "nov", "november", "dec", "december",
))}  # fmt: skip
_TIMESTAMP = re.compile(
    r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[T ]([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:[.,]([0-9]{1,9}))?)?(?: ?(?:Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?))?)?"
)
_YEAR_FIRST = re.compile(r"([0-9]{4})[/.]([0-9]{1,2})[/.]([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2([0-9]{4})")
_MONTH = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})|([0-9]{1,2})[-/.]([0-9]{4})")
_NAMED_MONTH = re.compile(r"([A-Za-z]{3,9})\.?[ -]([0-9]{4})|([0-9]{4})[ -]([A-Za-z]{3,9})")
_QUARTER = re.compile(r"([0-9]{4})[- ]?[Qq]([1-4])|[Qq]([1-4])[- /]?([0-9]{4})")
_YEAR = re.compile(r"([0-9]{4})")
_DECADE = re.compile(r"([0-9]{3})0'?s")
_SINCE = re.compile(rf"({_any_of([*_BELOW, *_ABOVE, 'before', 'after', 'since'])})\s*(\S.*)", re.IGNORECASE)


def day_order(texts: Sequence[str]) -> DayOrder | None:
    """Return whether day or month comes first in dates that end with the year; None if that is undetermined."""
    orders: set[DayOrder] = set()
    for text in texts:
        if match := _YEAR_LAST.fullmatch(text.strip()):
            if match[2] == "." or int(match[1]) > 12:
                orders.add("dmy")
            elif int(match[3]) > 12:
                orders.add("mdy")
    return orders.pop() if len(orders) == 1 else None


@lru_cache(REMEMBERED)
def read_date(text: str, order: DayOrder | None = None) -> Moments | None:
    """Parse a day or a time, as precise as it is written; midnight means the whole day, as programs write days."""
    text = text.strip()
    try:
        if match := _TIMESTAMP.fullmatch(text):
            return _timestamp(match)
        if match := _YEAR_FIRST.fullmatch(text):
            return _days(date(int(match[1]), int(match[2]), int(match[3])))
        if order is not None and (match := _YEAR_LAST.fullmatch(text)):
            day, month = (match[1], match[3]) if order == "dmy" else (match[3], match[1])
            return _days(date(int(match[4]), int(month), int(day)))
    except ValueError:  # February 30
        return None
    return None


def _timestamp(match: re.Match[str]) -> Moments:
    start, end = _days(date(int(match[1]), int(match[2]), int(match[3])))
    if match[4] is None:
        return start, end
    hour, minute, second = (int(part or 0) for part in match.group(4, 5, 6))
    fraction = (match[7] or "")[:6]
    since = ((hour * 60 + minute) * 60 + second) * 1_000_000 + (int(fraction.ljust(6, "0")) if fraction else 0)
    if since == 0:
        return start, end
    precision = 60_000_000 if match[6] is None else 10 ** (6 - len(fraction))
    return start + since, start + since + precision


def read_period(text: str, order: DayOrder | None = None) -> Moments | None:
    """Parse a day, month, quarter, year, decade, or a range: 2001-02, Feb 2001, 2001-Q1, 2001/2003, since 2001."""
    text = text.strip()
    if (unit := _unit(text, order)) is not None:
        return unit
    if (match := _SINCE.fullmatch(text)) and (end := _unit(match[2], order)) is not None:
        return _one_sided(match[1].lower(), end)
    inner = text[1:-1].strip() if text[:1] in ("[", "(") and text[-1:] in ("]", ")") else text
    for separator in ("/", " - ", " to ", "..", "–", "—", ", ", ",", "-"):
        for at in (i for i in range(len(inner)) if inner.startswith(separator, i)):
            first, last = _unit(inner[:at], order), _unit(inner[at + len(separator) :], order)
            if first is not None and last is not None and first[0] < last[1]:
                begin, until = first[1] if text[:1] == "(" else first[0], last[0] if text[-1:] == ")" else last[1]
                return (begin, until) if begin < until else None
    return None


def _one_sided(sign: str, end: Moments) -> Moments:
    if sign in ("before", *_BELOW):
        return -_FAR, end[1] if _BELOW.get(sign, False) else end[0]
    return end[0] if sign == "since" or _ABOVE.get(sign, False) else end[1], _FAR


def _unit(text: str, order: DayOrder | None) -> Moments | None:
    text = text.strip()
    if (day := read_date(text, order)) is not None:
        return day
    if match := _MONTH.fullmatch(text):
        return _months(int(match[1] or match[4]), int(match[2] or match[3]))
    if match := _NAMED_MONTH.fullmatch(text):
        return _months(int(match[2] or match[3]), _MONTHS.get((match[1] or match[4]).lower(), 0))
    if match := _QUARTER.fullmatch(text):
        return _months(int(match[1] or match[4]), 3 * int(match[2] or match[3]) - 2, 3)
    if match := _YEAR.fullmatch(text):
        return _months(int(match[1]), 1, 12)
    if match := _DECADE.fullmatch(text):
        return _months(int(match[1]) * 10, 1, 120)
    return None


def _days(day: date) -> Moments:
    start = day.toordinal() * DAY
    return start, start + DAY


def _months(year: int, month: int, n: int = 1) -> Moments | None:
    last = year * 12 + month + n - 2  # months before year 0
    if not (1 <= month <= 12 and year >= 1 and last // 12 <= 9999):
        return None
    end = date(last // 12, last % 12 + 1, monthrange(last // 12, last % 12 + 1)[1])
    return date(year, month, 1).toordinal() * DAY, (end.toordinal() + 1) * DAY
