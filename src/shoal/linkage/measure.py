"""Distances between the values of two files, column by column: the terms that linkage sums.

Numbers are scaled by a standard deviation, so that one counts as much as a category that differs. All distances are
squared, since Euclid's is wanted of the whole. Each part answers for texts by number, the null after all others.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from shoal.errors import DataError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.spans import EVERYTHING, Span, closed, standard_deviation
from shoal.linkage.columns import LinkedColumn
from shoal.notation.forms import decimal_mark, is_star, read_number
from shoal.notation.labels import read_set
from shoal.tables.frequency import Codes, Floats
from shoal.tables.wildcard import Nulls

Index = NDArray[np.integer[Any]]
ScaledBy = Literal["own", "original"]
Categories = Literal["equal", "hierarchy"]

LARGEST = 2**26  # entries of a table of distances: half a gigabyte


@dataclass(frozen=True, eq=False)
class Spans:
    """Numbers and ranges of numbers: 0 if two overlap, else the gap between the nearest ends."""

    column: int
    left: Floats  # (2, texts)  first and last number, scaled
    right: Floats

    def between(self, left: Index, right: Index) -> Floats:
        """Return the squared distances, broadcast."""
        return self.gap(left, right) ** 2

    def gap(self, left: Index, right: Index) -> Floats:
        """Return how far the right lies above the left; negative if below."""
        above = self.right[0, right] - self.left[1, left]
        below = self.left[0, left] - self.right[1, right]
        return np.where(above > 0, above, np.where(below > 0, -below, 0.0))

    @property
    def swapped(self) -> Spans:
        """Return the same measure seen from the other file."""
        return Spans(self.column, self.right, self.left)


@dataclass(frozen=True, eq=False)
class Equal:
    """0 if two codes are equal or one is negative, which matches everything; else the weight."""

    column: int
    left: Codes  # (texts)
    right: Codes
    weight: float

    def between(self, left: Index, right: Index) -> Floats:
        """Return the squared distances, broadcast."""
        mine, theirs = self.left[left], self.right[right]
        return np.where((mine == theirs) | (mine < 0) | (theirs < 0), 0.0, self.weight)

    @property
    def swapped(self) -> Equal:
        """Return the same measure seen from the other file."""
        return Equal(self.column, self.right, self.left, self.weight)


@dataclass(frozen=True, eq=False)
class Table:
    """Squared distances tabulated for every pair of texts."""

    column: int
    table: Floats

    def between(self, left: Index, right: Index) -> Floats:
        """Return the squared distances, broadcast."""
        distances: Floats = self.table[left, right]
        return distances

    @property
    def swapped(self) -> Table:
        """Return the same measure seen from the other file."""
        return Table(self.column, np.ascontiguousarray(self.table.T))


DistanceTerm = Spans | Equal | Table


def distance_terms(
    columns: Sequence[LinkedColumn],
    *,
    scale: ScaledBy = "own",
    nulls: Nulls = "category",
    categories: Categories = "equal",
    weights: Mapping[str, float] | None = None,
) -> list[DistanceTerm]:
    """Return the distance measures of each column; a column may have two."""
    for option, choice, allowed in (
        ("scale", scale, ("own", "original")),
        ("nulls", nulls, ("category", "wildcard")),
        ("categories", categories, ("equal", "hierarchy")),
    ):
        if choice not in allowed:
            raise DataError(f"{option}: must be one of {', '.join(allowed)}")
    given_weights = dict(weights or {})
    if unknown := [name for name in given_weights if name not in {column.name for column in columns}]:
        raise DataError(f"weights: {', '.join(map(repr, unknown))} is not compared")
    if any(not (math.isfinite(w) and w >= 0) for w in given_weights.values()):
        raise DataError("weights: must be numbers of at least 0")
    out: list[DistanceTerm] = []
    for j, column in enumerate(columns):
        weight = float(given_weights.get(column.name, 1.0))
        if column.numeric:
            out += _numbers(j, column, scale, nulls, weight)
        else:
            out.append(_category(j, column, nulls, categories, weight))
    return out


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


def _numbers(j: int, column: LinkedColumn, scale: ScaledBy, nulls: Nulls, weight: float) -> list[DistanceTerm]:
    known_spans, released = column.known_spans, column.released_spans
    if known_spans is None or released is None:
        raise TypeError("not a numeric column")
    reference = _reference(column)
    points = np.unique(np.concatenate([reference, _points(known_spans)]))
    mine, theirs = (
        [[closed(span, points) for span in text_spans] for text_spans in side] for side in (known_spans, released)
    )
    unit = math.sqrt(weight)
    moved = [(0.0, _deviation(reference))] * 2
    plain = all(
        len(text_spans) == 1 and text_spans[0][0] == text_spans[0][1] for side in (mine, theirs) for text_spans in side
    )
    if scale == "own" and plain:
        # A range compared on two scales would not hold its own values, so files are scaled apart only without any.
        moved = [_moments(column.known.codes, mine), _moments(column.released.codes, theirs)]
    missing = _null_part(j, column, nulls, weight)
    if all(len(text_spans) == 1 for side in (mine, theirs) for text_spans in side):
        ends = [
            np.array([*(text_spans[0] for text_spans in side), EVERYTHING[:2]]).T for side in (mine, theirs)
        ]  # a null covers everything here; a separate term distinguishes it
        left, right = ((end - mean) / sd * unit for end, (mean, sd) in zip(ends, moved, strict=True))
        return [Spans(j, left, right), *missing]
    _require_room(column.name, len(mine), len(theirs))
    table = np.zeros((len(mine) + 1, len(theirs) + 1))
    sd = moved[0][1]
    if mine:
        listed = np.array([span for text_spans in mine for span in text_spans])
        starts = np.cumsum([0, *(len(text_spans) for text_spans in mine[:-1])])
        for r, text_spans in enumerate(theirs):
            gaps = [
                np.maximum(np.maximum(first - listed[:, 1], listed[:, 0] - last), 0.0) for first, last in text_spans
            ]
            table[:-1, r] = np.minimum.reduceat(np.min(gaps, axis=0), starts)
    return [Table(j, (table / sd) ** 2 * weight), *missing]


def _null_part(j: int, column: LinkedColumn, nulls: Nulls, weight: float) -> list[DistanceTerm]:
    if nulls == "wildcard" or not any((side.codes < 0).any() for side in (column.known, column.released)):
        return []
    codes = [
        np.array([*(-1 if is_star(text) else 0 for text in side.texts), 1], np.int32)
        for side in (column.known, column.released)
    ]
    return [Equal(j, codes[0], codes[1], weight)]


def _points(spans: Sequence[tuple[Span, ...]]) -> Floats:
    return np.array(
        [text_spans[0][0] for text_spans in spans if len(text_spans) == 1 and text_spans[0][0] == text_spans[0][1]],
        np.float64,
    )


def _reference(column: LinkedColumn) -> Floats:
    """Return the numbers that set the scale: of the original if given, else the known file, else the release."""
    if column.original is not None:
        texts = column.original.texts
        mark = decimal_mark(texts) if column.mark is None else "."
        numbers = [read_number(text, mark) for text in texts]
        read = np.array([*(math.nan if x is None else float(x) for x in numbers), math.nan])[column.original.codes]
    else:
        read = np.zeros(0)
    for coded, spans in ((column.known, column.known_spans), (column.released, column.released_spans)):
        if not np.isfinite(read).any() and spans is not None:
            alone = [
                text_spans[0][0] if len(text_spans) == 1 and text_spans[0][0] == text_spans[0][1] else math.nan
                for text_spans in spans
            ]
            read = np.array([*alone, math.nan])[coded.codes]
    return np.asarray(read[np.isfinite(read)])


def _deviation(values: Floats) -> float:
    sd = standard_deviation(values)
    return sd if sd > 0 else 1.0  # a constant column distinguishes nobody, on any scale


def _moments(codes: Codes, spans: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    values = np.array([text_spans[0][0] for text_spans in spans])[codes[codes >= 0]] if spans else np.zeros(0)
    return (float(values.mean()) if len(values) else 0.0), _deviation(values)


# ── Categories ──────────────────────────────────────────────────────────────────────────────────────────────


def _category(j: int, column: LinkedColumn, nulls: Nulls, categories: Categories, weight: float) -> DistanceTerm:
    known_texts, released = column.known.texts, column.released.texts
    readings = [sorted(reading) for reading in column.reader.covering(known_texts)]
    silent = set(column.reader.everything)
    stars = [r in silent for r in range(len(released))]
    if all(len(reading) <= 1 for reading in readings) and not (
        categories == "hierarchy" and column.hierarchy is not None
    ):
        nobody, null = len(released), len(released) + 1  # codes that no released text has
        wild = -1 if nulls == "wildcard" else null
        left = [
            -1 if is_star(text) else reading[0] if reading else nobody
            for text, reading in zip(known_texts, readings, strict=True)
        ]
        right = [-1 if star else r for r, star in enumerate(stars)]
        return Equal(j, np.array([*left, wild], np.int32), np.array([*right, wild], np.int32), weight)
    _require_room(column.name, len(known_texts), len(released))
    table = np.ones((len(known_texts) + 1, len(released) + 1))
    if categories == "hierarchy" and column.hierarchy is not None:
        table[:-1, :-1] = ancestry(known_texts, released, column.hierarchy)
    for k, reading in enumerate(readings):
        table[k, reading] = 0.0
    table[:, [*stars, False]] = 0.0
    table[[*(is_star(text) for text in known_texts), False], :] = 0.0
    if nulls == "wildcard":
        table[-1, :] = table[:, -1] = 0.0
    table[-1, -1] = 0.0
    return Table(j, table**2 * weight)


def ancestry(known_texts: Sequence[str], released: Sequence[str], hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Level of the nearest common ancestor divided by the height; 0 if a released label covers the value.

    A set is as near as its nearest member. What the hierarchy does not know is farthest, at 1.
    """
    height = max(1, hierarchy.height)
    out = np.ones((len(known_texts), len(released)))
    inside = [i for i, text in enumerate(known_texts) if not hierarchy.missing([text])]
    paths = hierarchy.table[:, hierarchy.encode([known_texts[i] for i in inside])]
    positions_of: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for level, labels in enumerate(hierarchy.labels):
        for code, label in enumerate(labels):
            if label is not None:
                positions_of[label].append((level, code))
    steps = {
        (low, high): hierarchy.step(low, high)
        for low in range(hierarchy.n_levels)
        for high in range(low, hierarchy.n_levels)
    }
    for r, text in enumerate(released):
        nearest = np.full(len(inside), height, np.float64)
        for name in (text, *(read_set(text) or ())):
            for level, code in positions_of.get(name, ()):
                for above in range(hierarchy.height, level - 1, -1):
                    shared = paths[above] == steps[level, above][code]
                    nearest[shared] = np.minimum(nearest[shared], 0 if above == level else above)
        out[inside, r] = nearest / height
    return out


def _require_room(name: str, n_known: int, n_released: int) -> None:
    if (n_known + 1) * (n_released + 1) > LARGEST:
        raise DataError(
            f"column {name!r}: {n_known} distinct known and {n_released} distinct released values are too many to "
            f"tabulate the distance of every pair (at most {LARGEST})",
            'compare the column as numbers or with categories = "equal", or omit it',
        )
