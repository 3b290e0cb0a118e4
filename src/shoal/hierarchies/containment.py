"""Whether a released text lies within a value: certainly, certainly not, or undecided.

A miner asks whether a cell says ``30-39``. The text 34 does, 50-59 does not, and 30-49 or ``*`` leaves it open. Both
texts are compared by the values that they cover, as ``reading`` reads them: the leaves of a hierarchy that lists them
all; otherwise points that tell all texts apart, such as the ends of every range and a number between each two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from shoal.errors import HierarchyError
from shoal.hierarchies.builders import SafeHarbor, Spec, build
from shoal.hierarchies.dates import Dates
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.reader import Reader
from shoal.notation.forms import (
    DAY,
    DecimalMark,
    Range,
    is_star,
    read_date,
    read_mask,
    read_number,
    read_period,
    read_range,
)
from shoal.notation.labels import read_set

_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")

OUTSIDE, INSIDE, UNDECIDED, UNREAD = 0, 1, 2, 3
Placing = NDArray[np.int8]  # one of these per text


def placing(
    column: str,
    texts: Sequence[str],
    value: str,
    spec: Spec | None,
    *,
    mark: DecimalMark | None = None,
    folder: Path = Path(),
) -> Placing:
    """Return for each text whether it lies within ``value``; all are unread where ``value`` itself cannot be read.

    >>> placing("age", ["34", "30-34", "50-59", "30-49", "*"], "30-39", None).tolist()
    [1, 1, 0, 2, 2]
    """
    distinct = list(dict.fromkeys([value, *texts]))  # each once: the reader numbers them by text
    covers, silent, _, _ = _covers(column, distinct, spec, mark, folder)
    if not covers[0] or 0 in silent:
        return np.full(len(texts), UNREAD, np.int8)
    placing_of = {
        text: UNDECIDED if i in silent else _compared(covers[i], covers[0]) for i, text in enumerate(distinct)
    }
    return np.array([placing_of[text] for text in texts], np.int8)


def vagueness(
    column: str,
    texts: Sequence[str],
    spec: Spec | None,
    *,
    mark: DecimalMark | None = None,
    folder: Path = Path(),
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which texts say nothing, and which may be one of several values; a text that cannot be read may be any.

    >>> [flags.tolist() for flags in vagueness("age", ["34", "30-39", "*"], None)]
    [[False, False, True], [False, True, False]]
    >>> vagueness("zip", ["13053", "1306*"], None)[1].tolist()
    [False, True]
    """
    distinct = list(dict.fromkeys(texts))
    covers, silent, points, listed = _covers(column, distinct, spec, mark, folder)
    number_of = {text: i for i, text in enumerate(distinct)}
    says_nothing = np.array([number_of[text] in silent for text in texts], np.bool_)
    is_single = [
        len(points_covered) == 1 and (listed or _equal(text, points[next(iter(points_covered))]))
        for text, points_covered in zip(distinct, covers, strict=True)
    ]
    several = np.array([not is_single[number_of[text]] for text in texts], np.bool_)
    return says_nothing, several & ~says_nothing


def _equal(text: str, point: str) -> bool:
    """Return whether a text is a value and not a range or mask of which only one point is known."""
    if text == point:
        return True
    number, point_number = read_number(text, "."), read_number(point, ".")
    return number is not None and number == point_number


def _covers(
    column: str, texts: Sequence[str], spec: Spec | None, mark: DecimalMark | None, folder: Path
) -> tuple[list[set[int]], set[int], list[str], bool]:
    """Return the points that each text covers, the texts that say nothing, the points, and whether these are all."""
    declared = build(column, spec, [], nulls=False, uncovered="error", folder=folder)
    if declared.leaves:
        hierarchies, points = [declared], [leaf for leaf in declared.leaves if leaf is not None]
    else:
        points = sorted(_points(texts, _is_dated(spec)))
        hierarchies = _hierarchies(column, spec, points, folder)
    reader = Reader(texts, points, hierarchies, mark=mark)
    covers: list[set[int]] = [set() for _ in texts]
    for point, covering in enumerate(reader.covering(points)):
        for i in covering:
            covers[i].add(point)
    return covers, set(reader.everything), points, bool(declared.leaves)


def _compared(covers: set[int], inside: set[int]) -> int:
    if not covers:
        return UNREAD
    return OUTSIDE if covers.isdisjoint(inside) else INSIDE if covers <= inside else UNDECIDED


def _is_dated(spec: Spec | None) -> bool:
    return isinstance(spec, Dates) or (isinstance(spec, SafeHarbor) and spec.safe_harbor == "date")


def _hierarchies(column: str, spec: Spec | None, points: Sequence[str], folder: Path) -> list[Hierarchy]:
    try:
        return [build(column, spec, points, nulls=False, uncovered="suppress", folder=folder)] if points else []
    except HierarchyError:  # some text is no value of such a column: the notation alone is read
        return []


def _points(texts: Iterable[str], dated: bool) -> set[str]:
    """Return values that tell the texts apart: each of them is inside one text and outside another if any value is."""
    points: set[str] = set()
    ranges: list[Range] = []
    days: set[int] = set()
    waiting = list(texts)
    while waiting:
        text = waiting.pop()
        if is_star(text):
            continue
        if (members := read_set(text.strip())) is not None:
            waiting.extend(members)
        elif dated and read_date(text) is None and (period := read_period(text)) is not None:
            days.update((period[0] // DAY, (period[1] - 1) // DAY))
        elif not dated and (parsed := read_range(text)) is not None:
            ranges.append(parsed)
        elif "*" in text and (masked := read_mask(text)) is not None:
            # Any one filler could be a value's own character: 130** and 1300* both cover 13000, and only one 13011.
            points.update(masked.replace("*", digit) for digit in "0123456789")
        else:
            points.add(text)
    # 34.0 is another text for 34, which the reader finds only if 34.0 is no value of its own.
    points -= {text for text in points if (whole := _WHOLE.fullmatch(text)) and whole[1] in points}
    points.update(format(x, "f") for x in _between({end for span in ranges for end in (span.first, span.last)}))
    points.update(date.fromordinal(day).isoformat() for day in days if 1 <= day <= date.max.toordinal())
    return points


def _between(ends: set[Decimal]) -> set[Decimal]:
    """Return all finite ends, a number between each two neighbours, one below all and one above all."""
    finite = sorted(x for x in ends if x.is_finite())
    if not finite:
        return {Decimal(0)} if ends else set()
    middles = ((a + b) / 2 for a, b in pairwise(finite))
    return {finite[0] - 1, *finite, *middles, finite[-1] + 1}
