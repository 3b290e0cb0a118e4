"""Released cells that no hierarchy lists: how a range or a set is written and read back.

A range of numbers is ``20-29``, or ``[-5, 3]`` if a bound is negative; of dates ``2001-02-03/2001-05-06``, as in ISO
8601, of times ``09:00/11:59``; open ends are ``>=85``, ``<=17``. A set is ``{Asian, Black}``; a member that contains a
comma, a brace, a quote or an outer space, or is empty, is in JSON quotes, so that every set can be read back exactly.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

_PLAIN = re.compile(r'[^\s,{}"]([^,{}"]*[^\s,{}"])?')
_MEMBER = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[^\s,{}"](?:[^,{}"]*[^\s,{}"])?)\s*(,|$)')


def written_member(text: str) -> str:
    """Format a value as a member of a set."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def written_set(values: Iterable[str]) -> str:
    """Format a set of values as one text."""
    return set_of_members(map(written_member, values))


def set_of_members(members: Iterable[str]) -> str:
    """Format a set of members that ``written_member`` has formatted."""
    return "{" + ", ".join(members) + "}"


def read_set(text: str) -> tuple[str, ...] | None:
    """Parse a set as ``written_set`` formats it; None if the text is not such a set."""
    if not (text.startswith("{") and text.endswith("}")):
        return None
    body, at = text[1:-1], 0
    members: list[str] = []
    while at < len(body) or not members:
        match = _MEMBER.match(body, at)
        if match is None:
            return None
        member, end = match.groups()
        try:
            members.append(json.loads(member) if member.startswith('"') else member)
        except ValueError:
            return None
        at = match.end()
        if not end:
            return tuple(members)
    return None


def written_range(first: str | None, last: str | None, *, dates: bool = False) -> str:
    """Format the range from ``first`` to ``last``, both included; None is an open end."""
    if first is None:
        return f"<={last}"
    if last is None:
        return f">={first}"
    if first == last:
        return first
    if dates:  # for weeks, which are ranges themselves: the first day of one and the last day of the other
        return f"{days_of(first)[0]}/{days_of(last)[1]}"
    return f"[{first}, {last}]" if "-" in first + last or "e" in (first + last).lower() else f"{first}-{last}"


_DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}"
_DAYS = re.compile(rf"({_DAY}|{_TIME})/({_DAY}|{_TIME})")


def days_of(text: str) -> tuple[str, str]:
    """Return the first and last day or time of a range of these; any other text is both."""
    match = _DAYS.fullmatch(text)
    return (match[1], match[2]) if match else (text, text)


_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_UNSIGNED = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_CLOSED = (re.compile(rf"({_UNSIGNED})-({_UNSIGNED})"), re.compile(rf"\[({_NUMBER}), ({_NUMBER})\]"))
_AT_LEAST = re.compile(rf">=({_NUMBER})")
_AT_MOST = re.compile(rf"<=({_NUMBER})")
_SINGLE = re.compile(_NUMBER)


def ends_of(text: str) -> tuple[str | None, str | None] | None:
    """Return the ends of a range of numbers as written, None at an open end; None for other texts."""
    if _SINGLE.fullmatch(text):
        return text, text
    for form in _CLOSED:
        if match := form.fullmatch(text):
            return match[1], match[2]
    if match := _AT_LEAST.fullmatch(text):
        return match[1], None
    if match := _AT_MOST.fullmatch(text):
        return None, match[1]
    return None


_HALF_OPEN = re.compile(rf"\[({_NUMBER}), ({_NUMBER})\)")


def half_open_ends_of(text: str) -> tuple[str, str] | None:
    """Return the ends of ``[0.5, 1)`` as written; None for other texts."""
    match = _HALF_OPEN.fullmatch(text)
    return (match[1], match[2]) if match else None
