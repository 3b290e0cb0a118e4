"""Clusters and exchanges: what ``local`` does where closeness is asked."""

import importlib
from itertools import product

import numpy as np
import pytest

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.closeness import TCloseness
from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition, passing
from shoal.search.local.boxes import Space
from shoal.search.local.clusters import clusters, kinds_of, least_variation
from shoal.search.local.exchange import exchange
from shoal.search.local.kernels import rebox_all
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records

local = importlib.import_module("shoal.search.local.local")


def problem_of(n: int, *models, seed: int = 0, values: tuple[int, ...] = (4,), **others) -> Problem:
    rng = np.random.default_rng(seed)
    numbers = Hierarchy.from_paths("a", [(str(i), f"{i // 5}x5", f"{i // 20}x20", "*") for i in range(60)])
    kinds = Hierarchy.from_paths("b", [(f"{a}{b}", a, "*") for a, b in product("pqr", "xyz")])
    codes = np.column_stack([rng.integers(0, 60, n), rng.integers(0, 9, n)]).astype(np.int32)
    codes[: n // 5] = codes[0]
    sensitive = {}
    for i, size in enumerate(values):
        of = rng.choice(size, n, p=np.arange(1, size + 1) / np.arange(1, size + 1).sum()).astype(np.int32)
        domain = Domain(f"s{i}", tuple(map(str, range(size))), np.bincount(of, minlength=size))
        sensitive[domain] = of
    table = count_records(("a", "b"), codes, sensitive, None, (numbers, kinds), separately=True)[0]
    return Problem(table, (KAnonymity(k=3), *models), Terms(**others))


@pytest.mark.parametrize("seed", range(40))
def test_the_least_variation_is_that_of_the_best_composition(seed):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 30, int(rng.integers(1, 5)))
    shares, size = counts / counts.sum(), int(rng.integers(1, 9))
    ways = [way for way in product(range(size + 1), repeat=len(shares)) if sum(way) == size]
    least = min(np.abs(np.array(way) / size - shares).sum() / 2 for way in ways)
    assert least_variation(shares, size) == pytest.approx(least, abs=1e-12)


@pytest.mark.parametrize("distance", ["equal", "ordered"])
@pytest.mark.parametrize("t", [0.3, 0.15])
def test_clusters_hold_every_record_once_and_pass(t, distance):
    found = 0
    for seed in range(6):
        problem = problem_of(400, TCloseness(column="s0", t=t, distance=distance), seed=seed)
        for partition in clusters(problem, Space(problem)):
            found += 1
            assert passing(problem, partition.classes(problem.table)).all()
            by_row = np.bincount(partition.row, partition.counts, problem.table.n_classes)
            assert (by_row == problem.table.counts).all()
            # Most classes have one size, or a few who joined: mergers are for those left over.
            sizes = np.bincount(partition.class_of, partition.counts)
            usual = np.bincount(sizes.astype(int)).argmax()
            assert ((sizes >= usual) & (sizes <= usual + 2)).mean() > 0.5
    assert found >= 12


def test_of_two_sensitive_columns_both_are_dealt_out():
    problem = problem_of(600, TCloseness(column="s0", t=0.35), TCloseness(column="s1", t=0.35), values=(3, 2))
    partitions = list(clusters(problem, Space(problem)))
    assert partitions
    for partition in partitions:
        assert passing(problem, partition.classes(problem.table)).all()
        assert partition.n_classes > 10


def test_where_no_closeness_is_asked_there_are_no_clusters():
    problem = problem_of(200, DistinctDiversity(column="s0", l=2))
    assert not list(clusters(problem, Space(problem)))


def test_kinds_are_all_sensitive_values_together():
    table = problem_of(300, values=(3, 2)).table
    kinds = kinds_of(table)
    values = np.column_stack([of.values[of.starts[:-1]] for of in table.sensitive.values()])
    same = (values[:, None] == values[None]).all(axis=2)
    assert (same == (kinds[:, None] == kinds[None])).all()


@pytest.mark.parametrize("temperature", [0.0, 0.05])
def test_an_exchange_changes_no_verdict_and_keeps_the_books(temperature):
    problem = problem_of(500, TCloseness(column="s0", t=0.3), values=(4, 2))
    space = Space(problem)
    start = next(iter(clusters(problem, space)))
    search = local._LocalSearch(problem, space, start)
    search._split(1)
    before, cost = composition(problem, search.partition), search.total
    n = exchange(search.boxes, search.atoms, search.classes, search.alike, 0, 20_000, 3, temperature)
    assert n > (50 if temperature else 5)
    after = search.partition
    assert composition(problem, after) == before
    assert passing(problem, after.classes(problem.table)).all()
    classes = search.classes
    kept = classes.cost.copy()
    total = rebox_all(search.boxes, search.atoms, classes)
    assert classes.cost == pytest.approx(kept, abs=1e-9)
    if temperature == 0:
        assert total / problem.n_records < cost - 1e-4
    for c in np.flatnonzero(classes.first >= 0):
        listed, a = [], classes.first[c]
        while a >= 0:
            listed.append(a)
            a = classes.after[a]
        assert sorted(listed) == np.flatnonzero(classes.class_of == c).tolist()


def composition(problem: Problem, partition: Partition) -> list[tuple[int, ...]]:
    """How many of each kind the classes have, whatever their order."""
    kinds = kinds_of(problem.table)
    table = np.zeros((partition.n_classes, kinds.max() + 1), np.int64)
    np.add.at(table, (partition.class_of, kinds[partition.row]), partition.counts)
    return sorted(map(tuple, table.tolist()))


def test_local_starts_from_clusters_where_they_lose_least():
    problem = problem_of(500, TCloseness(column="s0", t=0.25))
    space = Space(problem)
    least = min(local.Solution.of(problem, each).loss for each in clusters(problem, space))
    answer = local.local(problem)
    assert loss_of(problem, answer.values, answer.became, problem.objective_name) <= least
