"""The bound that a page quotes, against every partition of small tables."""

import importlib
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition
from shoal.search.cells.local_boxes import Space
from shoal.search.problem import Terms
from shoal.table.frequency import count_records
from shoal.table.hierarchy import Hierarchy

pytestmark = pytest.mark.long  # the bound of a benchmark, not of the package

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
local = importlib.import_module("shoal.search.cells.local")  # the package has a function of this name


@pytest.fixture
def benchmark(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("local_bound")


def partitions(records, k):
    """Every way to deal records out into classes of k or more."""
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in combinations(rest, size):
            for classes in partitions([i for i in rest if i not in others], k):
                yield [(first, *others), *classes]


def problem_of(rng, k):
    numbers = Hierarchy.from_paths("a", [(str(i), f"{i // 2}x2", f"{i // 4}x4", "*") for i in range(8)])
    kinds = Hierarchy.from_paths("b", [(f"{a}{b}", a, "*") for a, b in product("pq", "xy")])
    n = int(rng.integers(2 * k, 8))
    codes = np.column_stack([rng.integers(0, 8, n), rng.integers(0, 4, n)]).astype(np.int32)
    table = count_records(("a", "b"), codes, {}, None, (numbers, kinds))[0]
    return Problem(table, (KAnonymity(k=k),), Terms(objective="loss", weights=(1, int(rng.integers(1, 4)))))


@pytest.mark.parametrize("k", [2, 3])
def test_the_prices_are_those_of_the_whole_programme_and_no_partition_is_below(benchmark, k):
    rng = np.random.default_rng(k)
    for _ in range(120):
        problem = problem_of(rng, k)
        table, space = problem.table, Space(problem)
        lattice = benchmark.Lattice.of(space, space.loss.slopes, counts_of(space, table))
        row = np.repeat(np.arange(table.n_classes), table.counts)
        least = np.inf
        for classes in partitions(list(range(len(row))), k):
            class_of = np.empty(len(row), np.int64)
            for c, members in enumerate(classes):
                class_of[list(members)] = c
            partition = Partition(row, np.ones(len(row), np.int64), class_of)
            _, mean = benchmark.paid_now(space, partition, lattice)
            assert mean == pytest.approx(local.Solution.of(problem, partition).loss, abs=1e-9)
            least = min(least, mean)
        prices = benchmark.highest_prices(lattice, k, np.ones(len(lattice.counts)), lambda _: None)
        bound = lattice.counts @ prices / lattice.counts.sum()
        assert bound <= least + 1e-6
        assert bound == pytest.approx(whole_programme(space, lattice, row, k), abs=1e-5)


def whole_programme(space, lattice, row, k):
    """The highest mean price where no k records are paid more than a class of them costs; all are listed."""
    groups = list(combinations(range(len(row)), k))
    costs = []
    for group in groups:
        tuples = space.tuple_of_row[row[list(group)]]
        cost = 0.0
        for j, column in enumerate(space.columns):
            for level in range(len(column.nodes)):
                at = lattice.starts[j] + level
                if len(set(lattice.labels[at, tuples].tolist())) == 1:
                    cost += lattice.costs[at, tuples[0]]
                    break
        costs.append(k * cost)
    limits = np.zeros((len(groups), len(row)))
    for i, group in enumerate(groups):
        limits[i, list(group)] = 1
    solved = linprog(-np.ones(len(row)), limits, costs, bounds=(0, None))
    return -solved.fun / len(row)


def counts_of(space, table):
    return np.bincount(space.tuple_of_row, table.counts, len(space.codes)).astype(np.int64)


def test_what_the_rounds_leave_is_mended(benchmark, monkeypatch):
    monkeypatch.setattr(benchmark, "ENOUGH", 1e9)  # no round at all: the guess is mended
    rng = np.random.default_rng(9)
    for _ in range(60):
        problem = problem_of(rng, 2)
        space = Space(problem)
        lattice = benchmark.Lattice.of(space, space.loss.slopes, counts_of(space, problem.table))
        prices = benchmark.highest_prices(lattice, 2, np.ones(len(lattice.counts)), lambda _: None)
        room = np.empty((999, 2), np.int64), np.empty((999, 2), np.int64), np.empty(999)
        of = (lattice.labels, lattice.costs, lattice.starts, lattice.nodes, lattice.floors, lattice.counts)
        assert benchmark.violated(*of, prices, 2, *room, False)[0] == 0
