"""Random people and several random releases of them, attacked with what is published: brute force, no package code."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import shoal
from examples import tables

LEAST = 3
FAR = 1e5  # more than any figure
COLUMNS = ("a", "b", "c")

Place = tuple[str, ...]
Group = frozenset[int]  # places


class Intruder:
    """Someone who adds up equations over the groups of a, b and c; which groups are empty is not known."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        labels = [sorted({row[name] for row in rows}) for name in COLUMNS]
        self.places: list[Place] = list(itertools.product(*labels))
        self.counts = np.zeros(len(self.places))
        self.records: list[list[dict[str, Any]]] = [[] for _ in self.places]
        for row in rows:
            at = self.places.index(tuple(row[name] for name in COLUMNS))
            self.counts[at] += 1
            self.records[at].append(row)
        self.known: list[tuple[Group, float]] = []

    def group(self, fixed: dict[str, str], where: dict[str, str]) -> Group:
        return frozenset(
            i
            for i, place in enumerate(self.places)
            if all(dict(zip(COLUMNS, place, strict=True))[name] == label for name, label in (fixed | where).items())
        )

    def ends(self, group: Group) -> tuple[float, float]:
        """The least and the largest count of a group that agrees with all that is published."""
        goal = np.array([float(i in group) for i in range(len(self.places))])
        rows = np.array([[float(i in known) for i in range(len(self.places))] for known, _ in self.known])
        figures = np.array([figure for _, figure in self.known])
        told = LinearConstraint(rows, figures, figures) if len(rows) else ()
        ran = [
            milp(sign * goal, constraints=told, bounds=Bounds(0, FAR), integrality=np.ones(len(goal)))
            for sign in (1, -1)
        ]
        low, high = (float(goal @ each.x) for each in ran)
        return low, np.inf if high >= FAR else high

    def count(self, group: Group) -> float:
        return float(sum(self.counts[i] for i in group))

    def persons(self, group: Group) -> int:
        return len({row["who"] for i in group for row in self.records[i]})


def drawn(rng: np.random.Generator, *, several: bool) -> list[dict[str, Any]]:
    n = int(rng.integers(8, 45))
    parts = {"a": "xyz", "b": "uvw", "c": "pq"}
    found = {
        name: rng.choice(list(labels), n, p=rng.dirichlet(np.full(len(labels), 0.8))) for name, labels in parts.items()
    }
    who = rng.integers(0, max(2, n // 3), n) if several else np.arange(n)
    return [{name: str(column[i]) for name, column in found.items()} | {"who": str(who[i])} for i in range(n)]


def attack(seed: int, folder: Path) -> int:
    rng = np.random.default_rng(seed)
    several = rng.random() < 0.4
    rows = drawn(rng, several=several)
    intruder, ledger = Intruder(rows), folder / f"{seed}.json"
    data = pa.Table.from_pylist(rows)
    tried = 0
    for n in range(int(rng.integers(1, 4))):
        by = [name for name in COLUMNS if rng.random() < 0.5][:2]
        left = [name for name in COLUMNS if name not in by]
        where = {}
        if rng.random() < 0.6:
            name = str(rng.choice(left))
            where = {name: str(rng.choice(sorted({row[name] for row in rows})))}
        asked: dict[str, Any] = {"by": by, "where": [f"{name} = {label}" for name, label in where.items()]}
        found = shoal.check_output(
            data, ledger=ledger, min_count=LEAST, entity="who" if several else None, dominance=None, p=None, **asked
        )
        if not found.safe:
            continue
        found.save(folder / f"{seed}-{n}.csv")
        groups = {}
        for row in found.table.to_pylist():
            group = intruder.group({name: row[name] for name in by if row[name] != "Total"}, where)
            groups[tuple(row[name] for name in by)] = group
            if row["count"] is not None:
                assert row["count"] == intruder.count(group)
                intruder.known.append((group, float(row["count"])))
                assert intruder.persons(group) == 0 or intruder.persons(group) >= LEAST
        for cell in found.cells:
            if cell.hidden:
                group = groups[tuple(cell.group("Total"))]
                low, high = intruder.ends(group)
                count = intruder.count(group)
                least, most = cell.ranges["count"]
                assert low <= least <= count <= most <= high  # never wider than it is
                if len(by) == 2:
                    assert (least, most) == (low, high)
                if 0 < intruder.persons(group) < LEAST and not several:
                    assert high >= LEAST
                    assert low < count or (len(by) == 1 and not where)
                tried += 1
    tried += no_difference_is_small(intruder)
    return tried + nobody_is_known_to_be_absent(intruder)


def no_difference_is_small(intruder: Intruder) -> int:
    """What two published figures, or a figure and parts of it, leave over has nobody or enough persons."""
    groups = list(dict.fromkeys(group for group, _ in intruder.known))
    for larger in groups:
        inner = [group for group in groups if group < larger]
        for parts in itertools.chain(((one,) for one in inner), itertools.combinations(inner, 2)):
            if len(parts) == 1 or not parts[0] & parts[1]:
                rest = larger.difference(*parts)
                assert intruder.persons(rest) == 0 or intruder.persons(rest) >= LEAST
    return len(groups)


def nobody_is_known_to_be_absent(intruder: Intruder) -> int:
    """No published group is known to have everybody of a group with one label less."""
    tried = 0
    for group, count in intruder.known:
        fixed = {
            name: labels.pop()
            for j, name in enumerate(COLUMNS)
            if len(labels := {intruder.places[i][j] for i in group}) == 1
        }
        for name in fixed:
            larger = intruder.group({key: label for key, label in fixed.items() if key != name}, {})
            if count > 0 and larger > group and intruder.count(larger) == count:
                assert intruder.ends(larger - group)[1] >= 1
                tried += 1
    return tried


@pytest.mark.parametrize("numbers", tables(24, 3))
def test_nothing_hidden_in_several_releases_can_be_worked_out(numbers: range, tmp_path: Path) -> None:
    assert sum(attack(seed, tmp_path) for seed in numbers) > len(numbers)


# ── sums, with what contributors know ────────────────────────────────────────────────────────────────────────


def upper_end(goal: int, rows: np.ndarray, figures: np.ndarray, known: dict[int, tuple[float, float]]) -> float:
    """The largest sum of a place that agrees with the published ones and what somebody knows."""
    ends = [known.get(i, (0.0, FAR)) for i in range(rows.shape[1])]
    aim = np.zeros(rows.shape[1])
    aim[goal] = -1
    ran = linprog(aim, A_eq=rows if len(rows) else None, b_eq=figures if len(rows) else None, bounds=ends)
    assert ran.status == 0
    return float(-ran.fun)


def attack_sums(seed: int) -> int:
    """No sum of a group, nor the largest contribution to it, comes within 10 % for anybody, contributors included."""
    rng = np.random.default_rng(seed)
    parts: dict[Place, list[float]] = {}
    for a in "xyz"[: int(rng.integers(1, 4))]:
        for b in "uvw"[: int(rng.integers(2, 4))]:
            parts[a, b] = [float(x) for x in np.exp(rng.normal(3, 1.3, int(rng.choice([0, 1, 1, 2, 4, 8])))).round(1)]
    places = list(parts)
    rows = [{"a": a, "b": b, "x": x} for (a, b), values in parts.items() for x in values]
    if len({row["a"] for row in rows}) < 2 or len({row["b"] for row in rows}) < 2:
        return 0
    places = [(a, b) for a in sorted({row["a"] for row in rows}) for b in sorted({row["b"] for row in rows})]
    found = shoal.check_output(
        pa.Table.from_pylist(rows), by=["a", "b"], value="x", statistics=["sum"], min_count=2, sensitive=[]
    )
    if not found.safe:
        return 0
    told = [row for row in found.table.to_pylist() if row["sum"] is not None]
    equations = np.array(
        [[float(row["a"] in (a, "Total") and row["b"] in (b, "Total")) for a, b in places] for row in told]
    )
    figures = np.array([row["sum"] for row in told])
    tried = 0
    for i, place in enumerate(places):
        values = sorted(parts.get(place, []), reverse=True)
        if not values or not fails(values):
            continue
        truth, largest = sum(values), values[0]
        assert upper_end(i, equations, figures, {}) >= 1.1 * truth * (1 - 1e-5)
        for j, other in enumerate(places):
            if j != i and parts.get(other):
                own = max(parts[other])
                alone = len(parts[other]) == 1
                end = upper_end(i, equations, figures, {j: (own, own if alone else FAR)})
                assert end >= 1.1 * largest * (1 - 1e-5)
                tried += 1
    return tried


def fails(values: list[float]) -> bool:
    first, second = [*values, 0.0][:2]
    rest = sum(values) - first - second
    return len(values) < 2 or first + second > 0.9 * sum(values) * (1 + 1e-9) or rest < 0.1 * first * (1 - 1e-9)


@pytest.mark.parametrize("numbers", tables(24, 4))
def test_no_sum_comes_too_close_for_contributors_to_other_groups(numbers: range) -> None:
    assert sum(attack_sums(seed) for seed in numbers) > len(numbers)
