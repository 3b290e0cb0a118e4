"""What a released text stands for: a number, a range, a set, a mask, a label of a hierarchy, or everything.

A category is read on every level of its hierarchy, as when a release is laid beside its original. Ranges, sets and
masks need no hierarchy: the way they are written tells. A text of stars only stands for everything; so a value that
really has stars at one end, such as ``A*``, is taken for a mask.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.table.hierarchy import Hierarchy
from shoal.table.intervals import number
from shoal.table.labels import days_of, read_range, read_set

Span = tuple[float, float, bool]  # first, last, and whether the last is within

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
EVERYTHING: Span = (-math.inf, math.inf, True)


def is_star(text: str) -> bool:
    """Whether the text says nothing."""
    return bool(text) and not text.strip("*")


def is_range_or_set(text: str) -> bool:
    """Whether a text is written as a set of values, or as a range of numbers or dates."""
    return read_set(text) is not None or read_range(text) is not None or "/" in text


def spans(texts: Sequence[str], hierarchy: Hierarchy | None) -> list[tuple[Span, ...] | None]:
    """The numbers that each text stands for; None where it is no number, range, or set or label of numbers."""
    under = _leaves_under(hierarchy, texts) if hierarchy is not None else {}
    return [_spans(text, under.get(text, ())) for text in texts]


def _spans(text: str, leaves: Iterable[str]) -> tuple[Span, ...] | None:
    if is_star(text):
        return (EVERYTHING,)
    if number(text) is not None:
        return ((float(text), float(text), True),)
    if (span := read_range(text)) is not None:
        return (span,) if span[0] <= span[1] else None
    members = read_set(text)
    points = [number(member) for member in (leaves if members is None else members)]
    known = sorted({float(point) for point in points if point is not None})
    return tuple((x, x, True) for x in known) if known and None not in points else None


def _leaves_under(hierarchy: Hierarchy, texts: Sequence[str]) -> dict[str, list[str]]:
    """The leaves under those texts that are labels above the ground."""
    wanted, under = set(texts), defaultdict(list)
    for level in range(1, hierarchy.n_levels):
        for leaf, code in zip(hierarchy.leaves, hierarchy.table[level], strict=True):
            label = hierarchy.labels[level][code]
            # A released text may be a leaf too, since the hierarchy is built on all files: that is not under itself.
            if label in wanted and leaf is not None and label is not None and leaf not in (label, hierarchy.top):
                under[label].append(leaf)
    return under


def closed(span: Span, points: NDArray[np.float64]) -> tuple[float, float]:
    """Both ends within: an open one gives way to the last of ``points`` (ascending) that lies in the range.

    So 1 is not in [0.5, 1) and nothing that is known and in it falls out of it.
    """
    first, last, within = span
    if within:
        return first, last
    place = bisect_left(points, last) - 1
    if place >= 0 and points[place] >= first:
        return first, float(points[place])
    return first, (first + last) / 2 if math.isfinite(first) else last - max(1.0, abs(last)) / 1000


# ── Categories ──────────────────────────────────────────────────────────────────────────────────────────────


class Standing:
    """The released texts of a category, by number, looked up for a value that they may stand for."""

    def __init__(self, released: Sequence[str], hierarchy: Hierarchy | None) -> None:
        self.number = {text: i for i, text in enumerate(released)}
        self.hierarchy = hierarchy
        self.sets: dict[str, list[int]] = defaultdict(list)
        self.shapes: set[tuple[str, int, int]] = set()  # the masked side, characters kept, and of the whole
        self.days: list[tuple[str, str, int]] = []
        for i, text in enumerate(released):
            for member in read_set(text) or ():
                self.sets[member].append(i)
            first, last = days_of(text)
            if first != text:
                self.days.append((first, last, i))
            for side, kept in (("right", text.rstrip("*")), ("left", text.lstrip("*"))):
                if kept and kept != text:
                    self.shapes.add((side, len(kept), len(text)))

    def of(self, text: str) -> list[int]:
        """The numbers of the released texts that stand for a value, those of stars left out."""
        names = {text}
        if self.hierarchy is not None:
            leaf = self.hierarchy.encode([text])[0] if not self.hierarchy.missing([text]) else None
            if leaf is not None:
                path = (self.hierarchy.labels[level][code] for level, code in enumerate(self.hierarchy.table[:, leaf]))
                names.update(label for label in path if label is not None)
        for side, kept, whole in self.shapes:
            if kept <= len(text) <= whole:
                stars = "*" * (whole - kept)
                names.add(text[:kept] + stars if side == "right" else stars + text[len(text) - kept :])
        found = {self.number[name] for name in names if name in self.number and not is_star(name)}
        found.update(self.sets.get(text, ()))
        if self.days and _DAY.fullmatch(text[:10]):
            found.update(i for first, last, i in self.days if first <= text[:10] <= last)
        return sorted(found)


def ancestry(known: Sequence[str], released: Sequence[str], hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Level of the nearest common ancestor by the height of the hierarchy, 0 where a released label stands for a value.

    A set is as near as its nearest member. What the hierarchy does not know is farthest, at 1.
    """
    height = max(1, hierarchy.height)
    out = np.ones((len(known), len(released)))
    inside = [i for i, text in enumerate(known) if not hierarchy.missing([text])]
    paths = hierarchy.table[:, hierarchy.encode([known[i] for i in inside])]
    place: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for level, labels in enumerate(hierarchy.labels):
        for code, label in enumerate(labels):
            if label is not None:
                place[label].append((level, code))
    steps = {
        (low, high): hierarchy.step(low, high)
        for low in range(hierarchy.n_levels)
        for high in range(low, hierarchy.n_levels)
    }
    for r, text in enumerate(released):
        nearest = np.full(len(inside), height, np.float64)
        for name in (text, *(read_set(text) or ())):
            for level, code in place.get(name, ()):
                for above in range(hierarchy.height, level - 1, -1):
                    shared = paths[above] == steps[level, above][code]
                    nearest[shared] = np.minimum(nearest[shared], 0 if above == level else above)
        out[inside, r] = nearest / height
    return out


# ── All of a hierarchy ──────────────────────────────────────────────────────────────────────────────────────


def leaves_behind(hierarchy: Hierarchy, texts: Sequence[str], *, nearest: bool = False) -> list[set[int]]:
    """Of each text the leaves that it may stand for; none for stars, and none where it cannot be read.

    ``nearest``: a number that is no leaf, such as a mean, stands for the leaf next to it.
    """
    # Members of a set may be labels or ranges themselves: they are read as texts of their own first.
    members = {text: found for text in texts if (found := read_set(text)) is not None}
    read = list(dict.fromkeys([*texts, *(member for found in members.values() for member in found)]))
    standing = Standing(read, hierarchy)
    behind: dict[str, set[int]] = {text: set() for text in read}
    for leaf, text in enumerate(hierarchy.leaves):
        if text is not None and leaf != hierarchy.uncovered:
            for i in standing.of(text):
                behind[read[i]].add(leaf)
    if hierarchy.leaf_order == "numeric":
        _add_numbers(hierarchy, behind, nearest=nearest)
    elif hierarchy.leaf_order == "time":
        _add_times(hierarchy, behind)
    for text, found in members.items():
        behind[text].update(*(behind[member] for member in found))
    return [behind[text] for text in texts]


def _add_numbers(hierarchy: Hierarchy, behind: Mapping[str, set[int]], *, nearest: bool) -> None:
    """Add the leaves that lie in the ranges that texts write, or are the nearest to a number."""
    read = [None if text is None else number(text) for text in hierarchy.leaves]
    places = [leaf for leaf, value in enumerate(read) if value is not None]
    values = np.array([float(value) for value in read if value is not None])
    for (text, leaves), found in zip(behind.items(), spans(list(behind), None), strict=True):
        if found is None or is_star(text) or leaves or not places:
            continue
        for first, last, within in found:
            begin = int(np.searchsorted(values, first, side="left"))
            end = int(np.searchsorted(values, last, side="right" if within else "left"))
            if begin < end:
                leaves.update(places[begin:end])
            elif first == last and nearest:
                leaves.add(places[int(np.abs(values - first).argmin())])


def _add_times(hierarchy: Hierarchy, behind: Mapping[str, set[int]]) -> None:
    """Add the leaves from the first to the last of a range, whatever its ends look like: both are of one level."""
    ends: list[dict[str, list[int]]] = []  # by level, the leaves of a label, also by its first and its last day
    for codes, labels in zip(hierarchy.table, hierarchy.labels, strict=True):
        of_level: dict[str, list[int]] = defaultdict(list)
        for leaf, code in enumerate(codes.tolist()):
            label = labels[code]
            if label is not None and leaf != hierarchy.uncovered:
                for end in {label, *days_of(label)}:
                    of_level[end].append(leaf)
        ends.append(of_level)
    for text, leaves in behind.items():
        if leaves or is_star(text):
            continue
        for at in (i for i, letter in enumerate(text) if letter == "/"):
            first, last = text[:at], text[at + 1 :]
            for of_level in ends:
                if first in of_level and last in of_level:
                    leaves.update(range(of_level[first][0], of_level[last][-1] + 1))
