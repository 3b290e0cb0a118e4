"""Agreement of a known value with a released one: the released text covers the known value.

So both are compared at the level of the release. A null and a ``*`` agree with nothing, not even with each other:
otherwise a suppressed record would agree with everyone. Numbers are compared as numbers, and agree with every range
that contains them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.hierarchies.spans import EVERYTHING, closed
from shoal.linkage.columns import LinkedColumn
from shoal.notation.forms import is_star
from shoal.tables.frequency import Codes

Ends = tuple[tuple[float, float], ...]


@dataclass(frozen=True, eq=False)
class Agreement:
    """Which released texts of a column agree with each known one.

    Released texts that stand for the same are one *class*. Texts are numbered with the null after all others.
    """

    classes_of_known: tuple[tuple[int, ...], ...]  # per known text, the classes that agree with it
    released: Codes  # per released text its class, -1 where it agrees with nothing
    n_classes: int

    @property
    def is_function(self) -> bool:
        """Whether every known text agrees with at most one class, as after full-domain generalization."""
        return all(len(classes) <= 1 for classes in self.classes_of_known)

    @property
    def codes(self) -> tuple[Codes, Codes]:
        """Return a code per text of each file, equal exactly if two agree; only for a function."""
        nobody, nothing = self.n_classes, self.n_classes + 1
        known_codes = np.array([classes[0] if classes else nobody for classes in self.classes_of_known], np.int32)
        return known_codes, np.where(self.released < 0, nothing, self.released).astype(np.int32)

    @property
    def kinds(self) -> tuple[Codes, NDArray[np.bool_]]:
        """Return the kind of each known text, and (kinds, classes + 1) which classes agree; the last class is -1."""
        number: dict[tuple[int, ...], int] = {}
        kind_of = np.array([number.setdefault(classes, len(number)) for classes in self.classes_of_known], np.int32)
        agrees = np.zeros((len(number), self.n_classes + 1), np.bool_)
        for classes, kind in number.items():
            agrees[kind, list(classes)] = True
        return kind_of, agrees


def agreement(column: LinkedColumn) -> Agreement:
    """Compare the distinct texts of both files."""
    if column.known_spans is not None and column.released_spans is not None:
        points = np.unique([span[0] for reading in column.known_spans for span in reading if span[0] == span[1]])
        known_spans, released = (
            [tuple(closed(span, points) for span in reading) for reading in side]
            for side in (column.known_spans, column.released_spans)
        )
        return _of_numbers(known_spans, released)
    texts = column.released.texts
    readings = column.reader.covering(column.known.texts)
    known_classes = [
        () if is_star(text) else tuple(sorted(reading))
        for text, reading in zip(column.known.texts, readings, strict=True)
    ]
    silent = set(column.reader.everything)
    classes = np.array([*(-1 if i in silent else i for i in range(len(texts))), -1], np.int32)
    return Agreement((*known_classes, ()), classes, len(texts))


def _of_numbers(known_ends: Sequence[Ends], released: Sequence[Ends]) -> Agreement:
    star = (EVERYTHING[:2],)
    number: dict[Ends, int] = {}
    classes = [-1 if ends == star else number.setdefault(ends, len(number)) for ends in released]
    at: dict[float, list[int]] = defaultdict(list)  # points are looked up, ranges are tried
    ranges: list[tuple[float, float, int]] = []
    for ends, i in number.items():
        for first, last in ends:
            if first == last:
                at[first].append(i)
            else:
                ranges.append((first, last, i))
    firsts, lasts = (np.array([r[end] for r in ranges], np.float64) for end in (0, 1))
    owner = np.array([r[2] for r in ranges], np.int64)
    points = np.array(sorted(at), np.float64)
    classes_of_known = []
    for ends in known_ends:
        agreeing: set[int] = set()
        for first, last in ends if ends != star else ():
            if first == last:
                agreeing.update(at.get(first, ()))
            else:
                inside = points[np.searchsorted(points, first) : np.searchsorted(points, last, "right")]
                agreeing.update(i for point in inside for i in at[float(point)])
            if ranges:
                agreeing.update(owner[(firsts <= last) & (first <= lasts)].tolist())
        classes_of_known.append(tuple(sorted(agreeing)))
    return Agreement((*classes_of_known, ()), np.array([*classes, -1], np.int32), len(number))
