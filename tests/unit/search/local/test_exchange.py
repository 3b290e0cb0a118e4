"""Exchanges of records with equal sensitive values: no verdict of ``local`` may change, and the books are kept."""

import importlib
from itertools import product

import numpy as np
import pytest

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.closeness import TCloseness
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition, passing
from shoal.search.local.boxes import Space
from shoal.search.local.exchange import exchange, kinds_of
from shoal.search.local.kernels import rebox_all
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


def test_kinds_are_all_sensitive_values_together():
    table = problem_of(300, values=(3, 2)).table
    kinds = kinds_of(table)
    values = np.column_stack([of.values[of.starts[:-1]] for of in table.sensitive.values()])
    same = (values[:, None] == values[None]).all(axis=2)
    assert (same == (kinds[:, None] == kinds[None])).all()


def dealt(problem: Problem, n_classes: int) -> Partition:
    """Classes with equal shares of every kind, of records that are roughly alike."""
    rows = np.repeat(np.arange(problem.table.n_classes), problem.table.counts)
    kinds = kinds_of(problem.table)[rows]
    along = problem.table.codes[rows, 0] + np.random.default_rng(0).integers(0, 8, len(rows))
    class_of = np.empty(len(rows), np.int64)
    for kind in np.unique(kinds):
        of_kind = np.flatnonzero(kinds == kind)
        class_of[of_kind[np.argsort(along[of_kind], kind="stable")]] = (
            np.arange(len(of_kind)) * n_classes // len(of_kind)
        )
    partition = Partition(rows, np.ones(len(rows), np.int64), class_of)
    assert passing(problem, partition.classes(problem.table)).all()
    return partition


@pytest.mark.parametrize("temperature", [0.0, 0.05])
def test_an_exchange_changes_no_verdict_and_keeps_the_books(temperature):
    problem = problem_of(500, TCloseness(column="s0", t=0.3), values=(4, 2))
    space = Space(problem)
    search = local._LocalSearch(problem, space, dealt(problem, 50))
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
