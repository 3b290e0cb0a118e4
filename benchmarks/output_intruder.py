"""Can somebody who has everything that was published with one ledger work out what had to stay hidden?

    python benchmarks/output_intruder.py [--sequences N] [--first SEED]

Invented people, and for each sequence several releases with one ledger: tables of counts, sums and means, by period and
with conditions, of columns of which one is the sum of two others, and regressions on a column of 0 and 1. The intruder
knows every published figure, which values the columns have, that numbers are not negative, that income is wages and
capital, and of regressions the sums that residuals imply. What agrees with all of it is bounded by integer and linear
programs (HiGHS), written apart from the package, which is only asked for what it publishes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import shoal

GROUPS = ("a", "b", "d", "period")
CONDITIONS = ("a = x", "b = u", "d = 1", "period = 1")
PARTS = ("wages", "capital")  # which add up to the third
COLUMNS = (*PARTS, "income")
MIN_COUNT = 4
FAR = 1e7  # more than any figure: what can be as large is not bounded
Vector = NDArray[np.float64]
PlaceSet = frozenset[int]


def people(rng: np.random.Generator) -> pa.Table:
    """Invent people in small groups, with a few large incomes."""
    n = int(rng.integers(24, 90))
    wages = np.exp(rng.normal(3, 0.8, n)).round()
    capital = np.where(rng.random(n) < 0.4, 0, np.exp(rng.normal(2, 1.6, n)).round())
    return pa.table(
        {
            "a": rng.choice(list("xyz"), n, p=rng.dirichlet([2, 2, 1])),
            "b": rng.choice(list("uv"), n, p=rng.dirichlet([2, 1])),
            "d": rng.choice([0, 1], n, p=rng.dirichlet([3, 1])),
            "period": rng.choice([1, 2], n),
            "age": rng.integers(18, 70, n),
            "wages": wages,
            "capital": capital,
            "income": wages + capital,
        }
    )


def drawn_release(rng: np.random.Generator) -> dict[str, Any]:
    """Draw what is asked for: a table, or a regression where it has the key ``on``."""
    request: dict[str, Any] = {}
    if rng.random() < 0.35:
        request["where"] = [CONDITIONS[rng.integers(0, len(CONDITIONS))]]
    if rng.random() < 0.25:
        request |= {"value": str(rng.choice(COLUMNS)), "on": [["d"], ["d", "age"], ["age"]][rng.integers(0, 3)]}
        return request | {"by": [["a"], ["b"], ["period"], []][rng.integers(0, 4)]}
    request["by"] = [str(name) for name in rng.permutation(GROUPS)[: rng.integers(0, 3)]]
    if rng.random() < 0.75:
        request["value"] = str(rng.choice(COLUMNS))
        request["statistics"] = [["sum"], ["mean", "count"], ["sum", "count"]][rng.integers(0, 3)]
    return request


@dataclass
class Intruder:
    """Equations over the groups that all columns tell apart: numbers of people, and sums of wages, capital, income."""

    rows: list[dict[str, Any]]
    places: list[tuple[str, ...]] = field(init=False)
    people: dict[int, list[dict[str, Any]]] = field(init=False)
    counts: list[tuple[PlaceSet, float]] = field(default_factory=list)
    sums: list[tuple[str, PlaceSet, float]] = field(default_factory=list)
    cells: set[PlaceSet] = field(default_factory=set)  # that some release was about, published or hidden
    cells_of_sums: set[PlaceSet] = field(default_factory=set)  # those of sums and means, and what totals tell of them

    def __post_init__(self) -> None:
        labels = [sorted({str(row[name]) for row in self.rows}) for name in GROUPS]
        self.places = list(itertools.product(*labels))
        self.people = {i: [] for i in range(len(self.places))}
        for row in self.rows:
            self.people[self.places.index(tuple(str(row[name]) for name in GROUPS))].append(row)

    def group(self, fixed: Mapping[str, str]) -> PlaceSet:
        """Return the places with these labels."""
        at = [(GROUPS.index(name), label) for name, label in fixed.items()]
        return frozenset(i for i, labels in enumerate(self.places) if all(labels[j] == label for j, label in at))

    def read_table(self, check: Any, request: Mapping[str, Any]) -> None:
        """Learn every figure of a published table."""
        condition = dict(text.split(" = ") for text in request.get("where", ()))
        for row in check.table.to_pylist():
            fixed = {name: row[name] for name in request["by"] if row[name] != "Total"}
            if any(condition.get(name, label) != label for name, label in fixed.items()):
                continue  # a group that the condition leaves empty
            group = self.group(fixed | condition)
            self.cells.add(group)
            if {"sum", "mean"} & {*request.get("statistics", ())}:
                self.cells_of_sums.add(group)
                if not row["suppressed"]:
                    self.cells_of_sums |= {
                        self.hidden_part(check, fixed, name, condition) for name in request["by"] if name not in fixed
                    }
            if row.get("count") is not None:
                self.counts.append((group, float(row["count"])))
            if row.get("sum") is not None:
                self.sums.append((request["value"], group, row["sum"]))
            if row.get("mean") is not None:
                self.sums.append((request["value"], group, row["mean"] * row["count"]))

    def hidden_part(self, check: Any, total: Mapping[str, str], name: str, condition: Mapping[str, str]) -> PlaceSet:
        """Return what a published total shows of hidden cells together, of those that one more column tells apart."""
        groups = [
            self.group({**total, name: row[name], **condition})
            for row in check.table.to_pylist()
            if row["suppressed"]
            and row[name] != "Total"
            and all(row[other] == total.get(other, "Total") for other in check.request.names if other != name)
            and condition.get(name, row[name]) == row[name]
        ]
        return frozenset().union(*groups)

    def read_regression(self, check: Any, request: Mapping[str, Any]) -> None:
        """Learn what residuals imply: they add up to 0, also over the people with a 1; counts of these are known."""
        condition = dict(text.split(" = ") for text in request.get("where", ()))
        for model in check.models:
            fixed = dict(zip(request["by"], model.labels, strict=True)) | condition
            inner = [fixed, *(fixed | {"d": label} for label in "01" if "d" in request["on"] and "d" not in fixed)]
            for group in map(self.group, inner):
                if not model.hidden:
                    self.cells.add(group)
                    self.cells_of_sums.add(group)
                    self.counts.append((group, float(len(self.members(group)))))
                    value = sum(row[request["value"]] for row in self.members(group))
                    self.sums.append((request["value"], group, float(value)))

    def members(self, group: PlaceSet) -> list[dict[str, Any]]:
        """Return the people of a group: the truth, which the intruder does not have."""
        return [row for i in group for row in self.people[i]]

    def classes(self, equations: list[PlaceSet]) -> set[PlaceSet]:
        """Return the smallest groups that any of these figures tells apart."""
        alike: dict[tuple[bool, ...], set[int]] = {}
        for i in range(len(self.places)):
            alike.setdefault(tuple(i in group for group in equations), set()).add(i)
        return {frozenset(group) for group in alike.values()}

    def disclosures(self) -> Iterator[str]:
        """Yield what can be worked out although it had to stay open."""
        for group in self.cells | self.classes([places for places, _ in self.counts]):
            n = len(self.members(group))
            if 0 < n < MIN_COUNT:
                low, high = self.count_ends(group)
                if high < MIN_COUNT or low == high:
                    yield f"{n} people of a group are {low:g} to {high:g}"
        protected = self.cells_of_sums | self.classes([*self.cells_of_sums])
        for group in protected | self.classes([places for _, places, _ in self.sums]):
            for column in COLUMNS:
                values = sorted((float(row[column]) for row in self.members(group)), reverse=True)
                level = distance(values)
                if level > 0:
                    low, high = self.sum_ends(column, group)
                    truth, slight = sum(values), 1e-5 * level + 1e-6 * sum(values)
                    close = high < truth + level - slight or low > truth - min(level, truth) + slight
                    # Unions of hidden groups are judged by whether they are told, not by how nearly.
                    if close if group in protected else high - low < slight:
                        n = len(values)
                        yield f"a sum of {column} over {n} people, {truth:g} ± {level:g}, is {low:g} to {high:g}"

    def count_ends(self, group: PlaceSet) -> tuple[float, float]:
        """Return the least and the largest number of people that the published figures allow."""
        n = len(self.places)
        coefficients = np.array([self.row(places) for places, _ in self.counts]).reshape(-1, n)
        figures = np.array([figure for _, figure in self.counts])
        ends = []
        for sign in (1, -1):
            places = LinearConstraint(coefficients, figures, figures) if len(coefficients) else ()
            ran = milp(sign * self.row(group), constraints=places, bounds=Bounds(0, FAR), integrality=np.ones(n))
            if ran.x is None:
                raise AssertionError("the published figures contradict each other")
            ends.append(float(np.rint(self.row(group) @ ran.x)))
        return ends[0], ends[1]

    def sum_ends(self, column: str, group: PlaceSet) -> tuple[float, float]:
        """Return the least and the largest sum that the published figures allow."""
        coefficients = np.array([self.parts(name, places) for name, places, _ in self.sums]).reshape(
            -1, 2 * len(self.places)
        )
        figures = np.array([figure for _, _, figure in self.sums])
        goal = self.parts(column, group)
        ends = []
        for sign in (1, -1):
            equal = {"A_eq": coefficients, "b_eq": figures} if len(coefficients) else {}
            ran = linprog(sign * goal, bounds=(0, FAR), **equal)
            if ran.status != 0:
                raise AssertionError("the published figures contradict each other")
            ends.append(float(goal @ ran.x))
        return ends[0], math.inf if ends[1] >= FAR / 2 else ends[1]

    def row(self, group: PlaceSet) -> Vector:
        """Return a group as a row over the places."""
        return np.array([float(i in group) for i in range(len(self.places))])

    def parts(self, column: str, group: PlaceSet) -> Vector:
        """Return a sum as a row over wages and capital of each place; that of income has both."""
        row, zeros = self.row(group), np.zeros(len(self.places))
        return np.concatenate([row if column in (part, "income") else zeros for part in PARTS])


def distance(values: list[float]) -> float:
    """Return how far from the truth a sum must be able to lie, by the rules as the documentation states them."""
    total = sum(values)
    if not values or total <= 0:
        return 0.0
    level = 0.0
    if len(values) < MIN_COUNT:
        level = max(level, 0.1 * total)
    if sum(values[:2]) > 0.9 * total * (1 + 1e-9):
        level = max(level, 0.1 * total, sum(values[:2]) / 0.9 - total)
    if total - sum(values[:2]) < 0.1 * values[0] * (1 - 1e-9):
        level = max(level, 0.1 * total, 0.1 * values[0] - (total - sum(values[:2])))
    return level


def sequence(seed: int, folder: Path) -> tuple[int, list[str]]:
    """Publish several releases with one ledger; return how many there were, and what they give away."""
    rng = np.random.default_rng(seed)
    rows = people(rng)
    intruder = Intruder(rows.to_pylist())
    ledger, published = folder / f"{seed}.json", 0
    for n in range(int(rng.integers(2, 6))):
        request = drawn_release(rng)
        check = shoal.check_regression if "on" in request else shoal.check_output
        rules: dict[str, Any] = {"degrees": 4} if "on" in request else {"sensitive": [], "time_limit": 10.0}
        try:
            checked: Any = check(rows, **request, **rules, min_count=MIN_COUNT, ledger=ledger)
        except shoal.ShoalError:
            continue
        if checked.safe:
            checked.save(folder / f"{seed}-{n}.csv")
            published += 1
            (intruder.read_regression if "on" in request else intruder.read_table)(checked, request)
    return published, list(intruder.disclosures())


def main() -> None:
    """Print what is given away, and how many sequences were attacked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    start, n_published, n_disclosures = time.perf_counter(), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(arguments.first, arguments.first + arguments.sequences):
            published, disclosed = sequence(seed, Path(folder))
            n_published += published
            n_disclosures += len(disclosed)
            for disclosure in disclosed:
                print(f"sequence {seed}: {disclosure}", flush=True)
            if (seed - arguments.first + 1) % 50 == 0:
                print(f"{seed - arguments.first + 1} sequences, {n_published} releases", flush=True)
    print(
        f"{arguments.sequences} sequences from {arguments.first}, {n_published} releases published together, "
        f"{n_disclosures} disclosures, {time.perf_counter() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
