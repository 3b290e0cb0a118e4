"""Laws of the steps of ``local`` that begin with a class that a record wishes for."""

import importlib
import itertools
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples import examples
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition
from shoal.search.local.boxes import Space
from shoal.search.local.kernels import STARS, rebox_all, settle
from shoal.search.local.scratch import Run
from shoal.search.local.steps import improve
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records

pytestmark = pytest.mark.xdist_group("chains")  # its loops take seconds to compile
local = importlib.import_module("shoal.search.local.local")  # the package has a function of this name
NUMBERS = Hierarchy.from_paths("a", [(str(i), f"{i // 2}x2", f"{i // 4}x4", "*") for i in range(8)])
KINDS = Hierarchy.from_paths("b", [(x, "*") for x in "xyz"])
RECORDS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 2)), min_size=4, max_size=40)


def begun(records, k, chance, cells="hierarchy", limit=0):
    """A search that begins with classes drawn at random, some of them large; a few records may be suppressed."""
    codes = np.array(records, np.int32)
    table = count_records(("a", "b"), codes, {}, None, (NUMBERS, KINDS), separately=True)[0]
    problem = Problem(table, (KAnonymity(k=k),), Terms(objective="loss", cells=(cells, "hierarchy"), limit=limit))
    rows = np.repeat(np.arange(table.n_classes), table.counts)
    n_classes = chance.randint(1, len(rows) // k)
    class_of = [i % n_classes for i in range(len(rows))]
    chance.shuffle(class_of)
    if limit and len(rows) > k * n_classes:  # who is one too many in its class goes
        sizes = np.bincount(class_of)
        gone = next(i for i, c in enumerate(class_of) if sizes[c] > k)
        class_of[gone] = -1
    partition = Partition(rows, np.ones(len(rows), np.int64), np.asarray(class_of, np.int64))
    search = local._LocalSearch(problem, Space(problem), partition)
    search._split(1)
    return search


def wishing(search, n_steps=50, seed=1, **others):
    """Let records wish, and nothing else, as far as they can."""
    terms = {"hot": 0.0, "cold": 1.0, "n_ruined": 3, "verify": False, "wishes": 1.0} | others
    run = Run(search.k, search.problem.limit, side=0, n_steps=n_steps, **terms)
    return improve(search.boxes, search.atoms, search.classes, search.logs[0], run, seed)


def state(search):
    return {name: of.copy() for name, of in search.classes._asdict().items()}


@examples(100)
@given(
    RECORDS,
    st.integers(2, 4),
    st.randoms(use_true_random=False),
    st.sampled_from(["hierarchy", "range", "set", "tight-set"]),
)
def test_wishes_keep_every_record_and_never_cost_more(records, k, chance, cells):
    if len(records) < k:
        return
    search = begun(records, k, chance, cells, limit=chance.choice([0, 2]))
    before = rebox_all(search.boxes, search.atoms, search.classes)
    wishing(search)
    classes = search.classes
    after = state(search)
    total = rebox_all(search.boxes, search.atoms, classes)
    used = classes.first >= 0
    used[STARS] = False
    assert total <= before + 1e-6
    assert (after["box"][used] == classes.box[used]).all()
    assert after["cost"][used] == pytest.approx(classes.cost[used], abs=1e-6)
    assert (classes.n_records == np.bincount(classes.class_of, minlength=len(used))).all()
    assert (classes.n_records[used] >= k).all()
    assert classes.n_records.sum() == len(records)
    assert classes.n_records[STARS] <= search.problem.limit


@examples(50)
@given(RECORDS, st.integers(2, 3), st.randoms(use_true_random=False))
def test_wishes_that_are_refused_change_nothing(records, k, chance):
    search = begun(records, k, chance)
    rebox_all(search.boxes, search.atoms, search.classes)
    sides = search.classes.side.copy()
    before = state(search)
    log = search.logs[0]
    _, n = wishing(search, verify=True)
    settle(search.atoms, search.classes, log, log.ends[:n], np.ones(n, np.bool_))
    search.classes.side[:] = sides
    for name in ("class_of", "n_atoms", "n_records", "side"):
        assert (getattr(search.classes, name) == before[name]).all()
    used = before["n_atoms"] > 0
    assert (search.classes.cost[used] == before["cost"][used]).all()
    assert (search.classes.box[used] == before["box"][used]).all()


@examples(30)
@given(RECORDS, st.integers(2, 3), st.integers(0, 99), st.integers(0, 99))
def test_the_same_seed_wishes_the_same(records, k, of_classes, seed):
    answers = []
    for _ in range(2):
        search = begun(records, k, random.Random(of_classes))
        wishing(search, seed=seed, hot=0.5)
        answers.append(search.classes.class_of.copy())
    assert (answers[0] == answers[1]).all()


def test_steps_with_wishes_find_the_best_partition_of_most_small_tables():
    chance = random.Random(4)
    n_tables = n_best = 0
    for _ in range(60):
        k = chance.randint(2, 3)
        records = [(chance.randrange(8), chance.randrange(3)) for _ in range(chance.randint(2 * k, 8))]
        search = begun(records, k, chance)
        codes = search.problem.table.codes[search.row]
        best = min(
            sum(len(of) * price(search, codes, of) for of in classes) for classes in partitions(range(len(codes)), k)
        )
        wishing(search, 1_000, hot=0.2, cold=0.001, wishes=0.6)
        found = rebox_all(search.boxes, search.atoms, search.classes)
        assert found >= best - 1e-6
        n_tables += 1
        n_best += found <= best + 1e-6
    assert n_best > 0.9 * n_tables


def price(search, codes, of):
    """The cost per record of a class, from the labels of its records."""
    total = 0.0
    weights = search.space.weights(None)
    for j, column in enumerate(search.space.columns):
        ranks = column.ranks[codes[list(of), j]]
        level = next(level for level, nodes in enumerate(column.nodes) if len(set(nodes[ranks].tolist())) == 1)
        total += weights[j] * (column.node_prices[level, ranks[0]] - column.node_prices[0].min())
    return total


def partitions(records, k):
    """Every way to deal records out into classes of k or more."""
    records = list(records)
    if not records:
        yield []
        return
    first, rest = records[0], records[1:]
    for size in range(k - 1, len(rest) + 1):
        for others in itertools.combinations(rest, size):
            left = [i for i in rest if i not in others]
            for classes in partitions(left, k):
                yield [(first, *others), *classes]
