"""What an intruder takes each released text to stand for, whoever wrote the release.

Equal texts, labels of a hierarchy, sets, masks and dates are read as for record linkage; ranges of numbers in the
notations of several tools besides: ``20-29``, ``20 - 29``, ``[20, 30)``, ``[20, 30[``, ``(20, 30]``, ``< 30``,
``≥ 40``, ``90+``. A text of stars stands for everything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.policy import Policy
from shoal.table import builders
from shoal.table.codec import Coded
from shoal.table.hierarchy import Hierarchy
from shoal.table.intervals import number
from shoal.table.reading import Standing, is_star

Rows = NDArray[np.int64]

_X = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_U = r"((?:[0-9]+\.?[0-9]*|\.[0-9]+))"
_BETWEEN = re.compile(rf"{_U}\s*[-–—]\s*{_U}")
_BRACKETS = re.compile(rf"([\[\](])\s*{_X}\s*[,;]\s*{_X}\s*([\[\])])")
_ONE_SIDED = re.compile(rf"(<=|>=|<|>|≤|≥)\s*{_X}")
_PLUS = re.compile(rf"{_U}\s*\+")


class Range(NamedTuple):
    """From ``first`` to ``last``, each within or not."""

    first: float
    last: float
    first_within: bool
    last_within: bool


def read_range(text: str) -> Range | None:
    """A range of numbers; None for other texts, and where the ends are in the wrong order."""
    text = text.strip()
    found = None
    if match := _BETWEEN.fullmatch(text):
        found = Range(float(match[1]), float(match[2]), True, True)
    elif match := _BRACKETS.fullmatch(text):
        found = Range(float(match[2]), float(match[3]), match[1] == "[", match[4] == "]")
    elif match := _ONE_SIDED.fullmatch(text):
        bound, within = float(match[2]), match[1] in ("<=", ">=", "≤", "≥")
        below = match[1] in ("<", "<=", "≤")
        found = Range(-math.inf, bound, True, within) if below else Range(bound, math.inf, within, True)
    elif match := _PLUS.fullmatch(text):
        found = Range(float(match[1]), math.inf, True, True)
    return found if found is not None and found.first <= found.last else None


@dataclass(frozen=True, eq=False)
class Column:
    """A column that intruder and release share: which released texts stand for which kind of known value.

    Known values for which the same texts stand are one kind. A null is the last known value and the last text.
    """

    name: str
    kind_of: Rows  # (known values)  -1 where no released text stands for the value
    n_kinds: int
    kinds: Rows  # (pairs)  a kind …
    texts: Rows  # (pairs)  … and a text that stands for it; sorted by kind, then text
    n_texts: int
    unread: int  # released texts that stand for no value of the original, though they are there

    def stand(self, kinds: Rows, texts: Rows) -> NDArray[np.bool_]:
        """Whether each text stands for the kind beside it."""
        own = self.kinds * self.n_texts + self.texts
        asked = kinds * self.n_texts + texts
        place = np.minimum(np.searchsorted(own, asked), len(own) - 1)
        return own[place] == asked if len(own) else np.zeros(len(asked), np.bool_)


def column_of(
    name: str, known: Coded, released: Coded, ground: Coded | None, policy: Policy | None, *, wildcard: bool = False
) -> Column:
    """Read a released column for the values known; ``ground`` has the original's, which the hierarchy is built on.

    A word that can be read as nothing stands for all values of the original that no other text stands for: that is
    what a patient intruder concludes.
    """
    base = known.texts if ground is None else ground.texts
    hierarchies = _hierarchies(name, base, known.texts, policy)
    lookup = _Lookup(released.texts, hierarchies)
    tops = {hierarchy.top for hierarchy in hierarchies}  # values that it does not know are sent there too
    of_known = lookup.of(known.texts)
    read = set().union(*(of_known if ground is None else lookup.of(base)))
    everything = [i for i, text in enumerate(released.texts) if is_star(text) or text in tops]
    strange = [i for i, text in enumerate(released.texts) if not (i in read or i in everything or _plain(text))]
    unread = [] if ground is None else strange  # without the original it may just be somebody else's value
    null = len(released.texts)
    if wildcard:
        everything = [*everything, null]
    stand = [sorted({*(found or unread), *everything}) for found in of_known]
    of_null = [null] if (released.codes < 0).any() else []
    stand.append(list(range(null + 1)) if wildcard else sorted({*of_null, *everything}))
    number_of: dict[tuple[int, ...], int] = {}
    kind_of = [number_of.setdefault(tuple(texts), len(number_of)) if texts else -1 for texts in stand]
    lengths = [len(texts) for texts in number_of]
    return Column(
        name,
        np.array(kind_of, np.int64),
        len(number_of),
        np.repeat(np.arange(len(lengths)), lengths),
        np.fromiter((text for texts in number_of for text in texts), np.int64, sum(lengths)),
        null + 1,
        len(unread),
    )


def _plain(text: str) -> bool:
    """A number or a range is no label: where it stands for nobody, values were changed."""
    return number(text) is not None or read_range(text) is not None


def _hierarchies(name: str, base: Sequence[str], known: Sequence[str], policy: Policy | None) -> list[Hierarchy]:
    """As the release has it; and one that knows the values of people who are not in it."""
    column = None if policy is None else policy.columns.get(name)
    if policy is None or column is None or column.hierarchy is None:
        return []

    def build(texts: Sequence[str]) -> Hierarchy:
        folder = policy.folder
        return builders.build(name, column.hierarchy, texts, nulls=True, uncovered="suppress", folder=folder)

    own = build(base)
    strangers = set(known).difference(base)
    return [own, build(sorted({*base, *strangers}))] if strangers else [own]


class _Lookup:
    """The released texts, found for values that they may stand for."""

    def __init__(self, released: Sequence[str], hierarchies: Sequence[Hierarchy]) -> None:
        self.hierarchy = hierarchies[0] if hierarchies else None
        self.own = Standing(released, self.hierarchy)
        self.wider = Standing(released, hierarchies[1]) if len(hierarchies) > 1 else self.own
        self.ranges = [(i, found) for i, text in enumerate(released) if (found := read_range(text)) is not None]
        self.masks: dict[int, set[frozenset[int]]] = {}
        for text in released:
            if "*" in text.strip("*"):
                stars = frozenset(i for i, letter in enumerate(text) if letter == "*")
                self.masks.setdefault(len(text), set()).add(stars)
        self.numbers: dict[float, list[int]] = {}
        for i, text in enumerate(released):
            if (x := number(text)) is not None:
                self.numbers.setdefault(float(x), []).append(i)

    def of(self, texts: Sequence[str]) -> list[set[int]]:
        """For each value the numbers of the released texts that stand for it, those of stars left out."""
        found = [set(self._reading(text).of(text)) for text in texts]
        known = sorted((float(x), i) for i, text in enumerate(texts) if (x := number(text)) is not None)
        values = np.array([x for x, _ in known])
        for place, (first, last, first_within, last_within) in self.ranges:
            start = np.searchsorted(values, first, "left" if first_within else "right")
            end = np.searchsorted(values, last, "right" if last_within else "left")
            for _, i in known[start:end]:
                found[i].add(place)
        for value, i in known:  # 23 may have become 23.0 on the way
            found[i].update(() if found[i] else self.numbers.get(value, ()))
        for i, text in enumerate(texts):
            found[i].update(self._masks(text))
        return found

    def _masks(self, text: str) -> Iterator[int]:
        """Released texts with stars inside, such as 64/**/** for a date."""
        for stars in self.masks.get(len(text), ()):
            masked = "".join("*" if i in stars else letter for i, letter in enumerate(text))
            if masked in self.own.number:
                yield self.own.number[masked]

    def _reading(self, text: str) -> Standing:
        return self.wider if self.hierarchy is not None and self.hierarchy.missing([text]) else self.own
