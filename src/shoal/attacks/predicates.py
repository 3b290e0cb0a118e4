"""Predicates made from a release alone: the box of a class and the value of one or two of its columns.

A. Cohen, K. Nissim, "Towards formalizing the GDPR's notion of singling out", PNAS 2020; A. Cohen, "Attacks on
deidentification's defenses", USENIX Security 2022.
A predicate isolates if exactly one person of the original satisfies it. With a weight of w, its probability in the
population, a predicate made without the release does so with probability n w (1 − w)^(n − 1), at most 37 % and far less
where w is far from 1/n. What a release adds is measured on people outside of it, who are as many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from shoal.attacks.column_matching import KnownColumn
from shoal.attacks.downcoding import Downcoded
from shoal.attacks.join import fitting
from shoal.attacks.label_columns import NO_LEAVES, LabelColumn
from shoal.attacks.label_rules import LeafSet
from shoal.compiled.grouping import group
from shoal.tables.frequency import RowNumbers, packed

MAX_VALUES = 4  # of a label that names none: the rarest are tried
MAX_NAMED = 12  # ends and members that are tried for one cell
MAX_PAIRS = 16  # pairs of values that are tried for one class, the rarest first

ONE_VALUE, RAREST_VALUE, TWO_VALUES = "one value", "rarest value", "two values"


@dataclass(frozen=True, eq=False)
class Predicates:
    """Predicates of one kind: a class, and a leaf in each of one or two of its columns."""

    name: str
    class_of: RowNumbers
    columns: RowNumbers  # (predicates, 1 or 2)
    leaves: RowNumbers  # (predicates, 1 or 2)

    def __len__(self) -> int:
        return len(self.class_of)


@dataclass(frozen=True, eq=False)
class PeopleInBoxes:
    """Which people lie in the box of which class: pairs of a class and a kind of people with equal tuples."""

    class_of: RowNumbers  # (pairs)
    kind_of: RowNumbers  # (pairs)
    leaves: RowNumbers  # (kinds, columns)
    counts: RowNumbers  # (kinds)  people
    persons: tuple[RowNumbers, RowNumbers] | None  # (rows) a kind and a person, where a person may have several rows

    def satisfying(self, predicates: Predicates, sizes: Sequence[int]) -> RowNumbers:
        """Return how many people satisfy each predicate; ``sizes`` are those of the columns' domains."""
        out = np.zeros(len(predicates), np.int64)
        for columns in np.unique(predicates.columns, axis=0).tolist():
            rows = np.flatnonzero((predicates.columns == columns).all(axis=1))
            pair_keys, asked_keys = self.class_of, predicates.class_of[rows]
            for i, j in enumerate(columns):
                pair_keys = pair_keys * sizes[j] + self.leaves[self.kind_of, j]
                asked_keys = asked_keys * sizes[j] + predicates.leaves[rows, i]
            out[rows] = self._people_with(pair_keys, asked_keys)
        return out

    def _people_with(self, pair_keys: RowNumbers, asked_keys: RowNumbers) -> RowNumbers:
        wanted, number_of = np.unique(asked_keys, return_inverse=True)
        if not len(wanted):
            return np.zeros(0, np.int64)
        position = np.minimum(np.searchsorted(wanted, pair_keys), len(wanted) - 1)
        matching = np.flatnonzero(wanted[position] == pair_keys)
        if self.persons is None:
            sums = np.bincount(position[matching], self.counts[self.kind_of[matching]], len(wanted)).astype(np.int64)
            return np.asarray(sums[number_of.ravel()])
        kinds, persons = self.persons
        order = np.argsort(kinds, kind="stable")
        starts = np.searchsorted(kinds[order], np.arange(len(self.counts) + 1))
        people = [
            np.column_stack([np.full(hi - lo, at), persons[order[lo:hi]]])
            for at, kind in zip(position[matching].tolist(), self.kind_of[matching].tolist(), strict=True)
            for lo, hi in [(int(starts[kind]), int(starts[kind + 1]))]
        ]
        rows = np.unique(np.concatenate([np.zeros((0, 2), np.int64), *people]), axis=0)
        return np.bincount(rows[:, 0], minlength=len(wanted)).astype(np.int64)[number_of.ravel()]


def people_in_boxes(proved: Downcoded, rows: RowNumbers | None, persons: RowNumbers | None = None) -> PeopleInBoxes:
    """Return who lies in which box; ``rows`` of the original are looked at, and ``persons`` tells whose they are."""
    leaves = np.column_stack([np.zeros(0, np.int64) if c.leaf_of is None else c.leaf_of for c in proved.columns])
    leaves = leaves if rows is None else leaves[rows]
    readable = np.flatnonzero((leaves >= 0).all(axis=1))
    if not len(readable):
        nothing = np.zeros(0, np.int64)
        return PeopleInBoxes(nothing, nothing, leaves[:0], nothing, None)
    kind_of, firsts = group(packed(leaves[readable].astype(np.int32)))
    kinds = leaves[readable][firsts]
    of_kind, of_class = fitting(kinds, proved.texts, [_matching_column(column) for column in proved.columns])
    owners = None if persons is None else (kind_of.astype(np.int64), persons[readable])
    return PeopleInBoxes(of_class, of_kind, kinds, np.bincount(kind_of).astype(np.int64), owners)


def _matching_column(column: LabelColumn) -> KnownColumn:
    """Return which text stands for which leaf, as the join of people and classes wants it."""
    texts = np.repeat(np.arange(len(column.labels)), [len(label.leaves) for label in column.labels])
    leaves = np.concatenate([np.zeros(0, np.int64), *(label.leaves for label in column.labels)])
    order = np.lexsort((texts, leaves))
    n_leaves, n_texts = len(column.domain), len(column.labels)
    return KnownColumn(
        column.name, np.arange(n_leaves), n_leaves, leaves[order], texts[order], n_texts, 0, 0, len(column.text_of)
    )


# --- which predicates ---------------------------------------------------------------------------------------------


def predicates_of(proved: Downcoded, *, named: bool = False) -> tuple[Predicates, ...]:
    """Return the predicates of each kind: each value that a cell names, the rarest of the class, and pairs of them.

    Of a cell that names no value, the rarest ones are tried; with ``named``, none.
    """
    rarity = [_released_shares(column) for column in proved.columns]
    values: dict[tuple[int, int], LeafSet] = {}
    single: list[tuple[int, int, int]] = []
    rarest: list[tuple[int, int, int]] = []
    pairs: list[tuple[int, int, int, int, int]] = []
    for c, texts in enumerate(proved.texts.tolist()):
        candidates: list[tuple[float, int, int]] = []
        for j in np.flatnonzero(proved.is_general[c]).tolist():
            if (j, texts[j]) not in values:
                column = proved.columns[j]
                tried = not named or len(column.printed[texts[j]]) > 0
                values[j, texts[j]] = _values_to_try(column, texts[j], rarity[j]) if tried else NO_LEAVES
            candidates += [(float(rarity[j][leaf]), j, leaf) for leaf in values[j, texts[j]].tolist()]
        if not candidates:
            continue
        single += [(c, j, leaf) for _, j, leaf in candidates]
        rarest.append((c, *min(candidates)[1:]))
        pairs += [(c, *pair) for pair in _rarest_pairs(candidates)]
    ones, rares = (np.array(rows, np.int64).reshape(-1, 3) for rows in (single, rarest))
    twos = np.array(pairs, np.int64).reshape(-1, 5)
    return (
        Predicates(ONE_VALUE, ones[:, 0], ones[:, 1:2], ones[:, 2:]),
        Predicates(RAREST_VALUE, rares[:, 0], rares[:, 1:2], rares[:, 2:]),
        Predicates(TWO_VALUES, twos[:, 0], twos[:, [1, 3]], twos[:, [2, 4]]),
    )


def _rarest_pairs(candidates: Sequence[tuple[float, int, int]]) -> list[tuple[int, int, int, int]]:
    by_column: dict[int, list[tuple[float, int]]] = {}
    for share, j, leaf in candidates:
        by_column.setdefault(j, []).append((share, leaf))
    weighed = [
        (a * b, j, x, l, y)
        for (j, first_values), (l, second_values) in combinations(sorted(by_column.items()), 2)
        for (a, x), (b, y) in product(first_values, second_values)
    ]
    return [pair[1:] for pair in sorted(weighed)[:MAX_PAIRS]]


def _values_to_try(column: LabelColumn, text: int, rarity: NDArray[np.float64]) -> LeafSet:
    """Return the values of a cell that are tried: those that it names, or else the rarest that it covers."""
    leaves, named = column.labels[text].leaves, column.printed[text]
    tried = named if len(named) else leaves
    limit = MAX_NAMED if len(named) else MAX_VALUES
    return tried[np.argsort(rarity[tried], kind="stable")[:limit]]


def _released_shares(column: LabelColumn) -> NDArray[np.float64]:
    """Return how often each value occurs as far as the release tells: each cell is shared by the values it covers."""
    shares = np.zeros(len(column.domain))
    counts = np.bincount(column.text_of, minlength=len(column.labels))
    for label, n in zip(column.labels, counts.tolist(), strict=True):
        if n and len(label.leaves):
            shares[label.leaves] += n / len(label.leaves)
    return np.asarray(shares / max(1, len(column.text_of)))


def chance_of_one(satisfying: RowNumbers, n_outside: int, n: int) -> NDArray[np.float64]:
    """Return the chance that exactly one of ``n`` people satisfies what so many of ``n_outside`` others satisfy.

    Of as many or more outsiders, ``n`` are drawn without replacement; of fewer, with replacement.
    """
    k = satisfying.astype(np.float64)
    if n_outside == n:
        return np.asarray(satisfying == 1, np.float64)
    if n_outside < n:
        w = k / max(1, n_outside)
        return np.asarray(n * w * (1 - w) ** (n - 1))
    counts, number_of = np.unique(satisfying, return_inverse=True)
    chances = np.array([_drawn_once(count, n_outside, n) for count in counts.tolist()])
    return np.asarray(chances[number_of.ravel()])


def _drawn_once(satisfying: int, n_outside: int, n: int) -> float:
    """Return the hypergeometric chance that ``n`` of ``n_outside`` people include one of those who satisfy."""
    unsatisfying = n_outside - satisfying
    if not satisfying or unsatisfying < n - 1:
        return 0.0
    return math.exp(math.log(satisfying) + _log_ways(unsatisfying, n - 1) - _log_ways(n_outside, n))


def _log_ways(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
