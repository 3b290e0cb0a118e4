"""Mondrian against a plain recursion over single records, written from its description alone."""

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column, Label, Sensitive, passes
from examples import some
from shoal.errors import InfeasibleError
from shoal.search import SEARCHES, Problem
from shoal.search.cells.mondrian import _partition
from shoal.search.cells.mondrian_kernels import ordered_by
from shoal.search.problem import Terms
from strategies import _PARAMETERS, NOT_IN_THE_HIERARCHY, SENSITIVE_PATHS, SHAPES, models_of, table_of

PARAMETERS = {kind: of for kind, of in _PARAMETERS.items() if kind != "k over columns"}

CLOSE = 1e-9  # what differs by less is equal but for rounding


class Plain:
    """The published recursion with the departures that the module tells of."""

    def __init__(self, case: Case, cells: tuple[str, ...], dimension: str, weights: tuple[int, ...]) -> None:
        self.case, self.cells, self.dimension, self.weights = case, cells, dimension, weights
        sizes = [m["k"] for m in case.asked if m["model"] in ("k-anonymity", "p-sensitive", "alpha-k-anonymity")]
        self.least = max(sizes, default=1)
        self.leaves = [{value: place for place, value in enumerate(c.paths)} for c in case.columns]
        self.place = cache(self._place)
        self.price = cache(self._price)

    def leaf(self, i: int, j: int) -> int:
        """Values without an entry come last."""
        return self.leaves[j].get(self.case.rows[i][j], len(self.leaves[j]))

    def passes(self, records: list[int]) -> bool:
        return all(passes(self.case, model, records) for model in self.case.asked)

    def regions(self) -> list[list[int]] | None:
        everyone = sorted(range(self.case.n), key=self.key)
        return self.split(everyone) if self.passes(everyone) else None

    def split(self, records: list[int]) -> list[list[int]]:
        for _, sides in self.candidates(records):
            settled = self.settled(sides)
            if len(settled) > 1:
                return [region for side in settled for region in self.split(side)]
        return [records]

    def candidates(self, records):
        """Columns with their sides, the one to be tried first first."""
        found = []
        for j in range(len(self.cells)):
            if len({self.place(i, j) for i in records}) == 1:
                continue
            score = self.entropy(records, j) if self.dimension == "entropy" else self.price(tuple(records), j)
            found.append((score, j))
        found = ranked([(score, (j, self.sides(records, j))) for score, j in found])
        found = [(score, sides) for score, (_, sides) in found if len(sides) > 1]
        if self.dimension != "gain":
            return found
        return ranked([(self.gain(records, sides), sides) for _, sides in found])

    # --- one column ---

    def _place(self, i: int, j: int) -> tuple[bool, int, int]:
        """Where a record lies in a column: leaves that level 0 joins lie together, nulls and the like last."""
        column = self.case.columns[j]
        label = column.label(self.case.rows[i][j], 0)
        members = [place for value, place in self.leaves[j].items() if column.label(value, 0) == label]
        members = members or [len(self.leaves[j])]
        known = [*column.paths, None]
        return known[members[0]] is None, members[0], members[-1]

    def level(self, records: list[int], j: int) -> int:
        column = self.case.columns[j]
        values = {self.case.rows[i][j] for i in records}
        return next(n for n in range(column.n_levels) if len({column.label(value, n) for value in values}) == 1)

    def _price(self, records: tuple[int, ...], j: int) -> Fraction:
        column: Column = self.case.columns[j]
        if self.cells[j] == "hierarchy":
            level = self.level(records, j)
            return self.weights[j] * max(column.loss(self.case.rows[i][j], level) for i in records)
        places = sorted(self.place(i, j) for i in records)
        if len(set(places)) > 1 and places[-1][0]:
            return Fraction(self.weights[j])
        return self.weights[j] * Fraction(places[-1][2] - places[0][1], max(1, column.domain - 1))

    def entropy(self, records: list[int], j: int) -> float:
        column = self.case.columns[j]
        n_values = len({column.label(v, 0) for v in [*column.paths, *(["?"] if column.uncovered else [])]})
        counts = Counter(self.place(i, j) for i in records)
        shares = [n / len(records) for n in counts.values()]
        return self.weights[j] * -math.fsum(p * math.log(p) for p in shares) / math.log(n_values)

    def sides(self, records: list[int], j: int) -> list[list[int]]:
        if self.cells[j] == "hierarchy":
            return self.children(records, j)
        places = sorted({self.place(i, j) for i in records})
        cuts = [
            ([i for i in records if self.place(i, j) <= cut], [i for i in records if self.place(i, j) > cut])
            for cut in places[:-1]
        ]
        # The most even cut; of two, the one with the median in its lower part.
        lower, upper = max(cuts, key=lambda cut: (min(map(len, cut)), len(cut[0])))
        return [lower, upper] if min(len(lower), len(upper)) >= self.least else [records]

    def children(self, records: list[int], j: int) -> list[list[int]]:
        column = self.case.columns[j]
        level = self.level(records, j) - 1
        by_label: dict = {}
        for i in records:
            by_label.setdefault(column.label(self.case.rows[i][j], level), []).append(i)
        rest = [i for mine in by_label.values() if len(mine) < self.least for i in mine]
        others = [mine for mine in by_label.values() if len(mine) >= self.least]
        if 0 < len(rest) < self.least and others:
            rest += others.pop(min(range(len(others)), key=lambda c: len(others[c])))
        return [sorted(rest, key=records.index), *others] if rest else others

    def settled(self, sides: list[list[int]]) -> list[list[int]]:
        sides = [list(side) for side in sides]
        while len(sides) > 1:
            failing = [s for s, side in enumerate(sides) if not self.passes(side)]
            if not failing:
                break
            if len(failing) == 1:
                others = [s for s in range(len(sides)) if s not in failing]
                failing = sorted([*failing, min(others, key=lambda s: len(sides[s]))])
            joined = [i for s in failing for i in sides[s]]
            sides = [joined if s == failing[0] else side for s, side in enumerate(sides) if s not in failing[1:]]
        return [sorted(side, key=self.key) for side in sides]

    def key(self, i: int) -> list[int]:
        return [self.leaf(i, j) for j in range(len(self.cells))]

    def gain(self, records: list[int], sides: list[list[int]]) -> float:
        q = range(len(self.cells))
        before = len(records) * sum(self.price(tuple(records), j) for j in q)
        after = sum(len(side) * sum(self.price(tuple(side), j) for j in q) for side in sides)
        bits = -math.fsum(len(side) * math.log2(len(side) / len(records)) for side in sides)
        return float(before - after) / bits


def ranked(scored):
    """The greatest first, of equals the first."""
    left, out = list(scored), []
    while left:
        best = 0
        for at in range(1, len(left)):
            if left[at][0] > left[best][0] * (1 + CLOSE) and left[at][0] > 0:
                best = at
        out.append(left.pop(best))
    return out


def compared(case: Case, cells: tuple[str, ...], dimension: str, weights: tuple[int, ...]) -> int:
    problem = Problem(
        table_of(case), models_of(case), Terms(limit=case.limit, cells=cells, dimension=dimension, weights=weights)
    )
    plain = Plain(case, cells, dimension, weights)
    expected = plain.regions()
    if expected is None:
        with pytest.raises(InfeasibleError):
            SEARCHES["mondrian"](problem)
        return 0
    partition, _ = _partition(problem, parting=False)
    classes = dict(zip(partition.row.tolist(), partition.class_of.tolist(), strict=True))
    assert len(classes) == len(partition.row) == problem.table.n_classes
    rows = {tuple(codes): row for row, codes in enumerate(problem.table.codes.tolist())}
    found: dict[int, set[int]] = {}
    for i in range(case.n):
        found.setdefault(classes[rows[tuple(plain.key(i))]], set()).add(i)
    assert {frozenset(E) for E in found.values()} == {frozenset(E) for E in expected}
    return len(expected)


def drawn(rng: random.Random, kinds: Sequence[str], most: int) -> Case:
    """A small table, now and then with nulls, with values that the hierarchy does not know, and with persons."""
    n = rng.randint(1, most)
    columns = []
    for name in "abc"[: rng.randint(1, 3)]:
        shape = rng.choice(SHAPES)
        height = len(shape) - 1
        paths: dict[Label, tuple[Label, ...]] = {
            f"{name}{leaf}": tuple("all" if level == height else f"{name}{level}{c}" for level, c in enumerate(codes))
            for leaf, codes in enumerate(zip(*shape, strict=True))
        }
        if height and rng.random() < 0.25:
            paths[None] = (None,) * height + ("all",)
        columns.append(Column(name, paths, uncovered=rng.random() < 0.1))
    leaves = [[*c.paths, *([NOT_IN_THE_HIERARCHY] if c.uncovered else [])] for c in columns]
    # Weights of which the first is large: values that most records have are what strict cuts fail at.
    shares = [[rng.choice([1, 1, 4]) for _ in values] for values in leaves]
    rows = [tuple(rng.choices(v, w)[0] for v, w in zip(leaves, shares, strict=True)) for _ in range(n)]
    order = list(SENSITIVE_PATHS)[: rng.randint(1, 4)]
    asked = [{"model": model, **{p: rng.choice(v) for p, v in of.items()}} for model, of in map(PARAMETERS.get, kinds)]
    persons = tuple(rng.choices(range(6), k=n)) if rng.random() < 0.2 else None
    sensitive = {
        name: Sensitive(name, tuple(rng.choices(order, k=n)), tuple(order), SENSITIVE_PATHS) for name in ("s", "u")
    }
    return Case(tuple(columns), tuple(rows), tuple(asked), sensitive, persons, limit=rng.choice([0, 0, n]))


@pytest.mark.parametrize("dimension", ["range", "entropy", "gain"])
@pytest.mark.parametrize("most", some([24, 6, 60], always=1))
def test_crowds_are_split_as_by_the_plain_recursion(dimension, most):
    check(dimension, most, lambda rng: ["k"], 200, f"{dimension} {most}")


@pytest.mark.parametrize("dimension", ["range", "entropy", "gain"])
@pytest.mark.parametrize("most", [8, 20])
def test_every_model_is_kept_as_by_the_plain_recursion(dimension, most):
    check(dimension, most, lambda rng: rng.choices(list(PARAMETERS), k=rng.randint(1, 2)), 150, f"{dimension} {most}")


def check(dimension, most, kinds, n_cases, seed):
    rng = random.Random(seed)
    n_regions = Counter()
    for _ in range(n_cases):
        case = drawn(rng, kinds(rng), most)
        cells = tuple(rng.choice(["hierarchy", "hierarchy", "tight-range", "tight-set"]) for _ in case.columns)
        n_regions[compared(case, cells, dimension, tuple(rng.choice([1, 1, 1, 2, 3]) for _ in cells))] += 1
    assert len(n_regions) > 3  # tables without an answer, that stay whole, and that fall apart


@given(st.lists(st.integers(0, 5)))
def test_classes_are_brought_together_in_order(class_of):
    order, starts = ordered_by(np.array(class_of, np.int64), 6)
    assert order.tolist() == np.argsort(np.array(class_of, np.int64), kind="stable").tolist()
    assert np.diff(starts).tolist() == [class_of.count(c) for c in range(6)]
