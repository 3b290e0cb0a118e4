"""Trades of ``local``: records that change classes while the classes keep passing."""

import importlib
import random

import numpy as np
import pytest

from definitions import Case, Column, Sensitive, passes
from examples import THOROUGH, some
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.closeness import BasicLikeness, EnhancedLikeness, TCloseness
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.size import AlphaK, KAnonymity, PSensitive
from shoal.search import SEARCHES, Problem
from shoal.search.cells.classes import Partition, passing
from shoal.search.local import kernels as local_kernels
from shoal.search.local.boxes import Space
from shoal.search.local.start import partition_of
from shoal.search.local.trades import limits_of, trade, within_limits
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records

local = importlib.import_module("shoal.search.local.local")  # the package has a function of this name
MODELS = (
    DistinctDiversity(l=3),
    EntropyDiversity(l=2.5),
    TCloseness(t=0.25),
    TCloseness(t=0.1, distance="ordered"),
    TCloseness(t=0.1, distance="numeric"),
    AlphaK(alpha=0.5, k=2),
    PSensitive(p=2, k=3),
    BasicLikeness(beta=0.8),
    EnhancedLikeness(beta=2.0),
)
SOME = some([MODELS[2], *MODELS[:2], *MODELS[3 : None if THOROUGH else 5]], always=1)
NUMBERS = ("1", "2", "4", "8", "16")


def problem_of(n, *models, k=3, seed=0, many=0, **terms) -> Problem:
    """Records on a line of 30 places, and five sensitive values that depend on the place; ``many`` of one tuple."""
    rng = np.random.default_rng(seed)
    line = Hierarchy.from_paths("a", [(str(i), f"five {i // 5}", f"ten {i // 10}", "*") for i in range(30)])
    told = Hierarchy.from_paths("b", [("x", "*"), ("y", "*")])
    codes = np.column_stack([rng.integers(0, 30, n), rng.integers(0, 2, n)]).astype(np.int32)
    codes[:many] = 0
    values = np.clip(rng.poisson(codes[:, 0] / 12), 0, 4).astype(np.int32)
    domain = Domain("s", NUMBERS, np.bincount(values, minlength=5), np.array(NUMBERS, np.float64))
    table = count_records(("a", "b"), codes, {domain: values}, None, (line, told), separately=True)[0]
    return Problem(table, (KAnonymity(k=k), *models), Terms(**terms))


def search_of(problem: Problem):
    """The search from one class of everybody."""
    whole = Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))
    search = local._LocalSearch(problem, Space(problem), whole)
    search._split(1)
    return search


def cost(search) -> float:
    used = search.classes.n_atoms > 0
    return float(search.classes.n_records[used] @ search.classes.cost[used])


def test_a_class_is_divided_into_two_with_equal_shares_of_each_value():
    # Eight records in two places, a and b of each value twice in either place: halves by place keep the shares.
    line = Hierarchy.from_paths("p", [("here", "*"), ("there", "*")])
    values = np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int32)
    codes = np.repeat([[0], [1]], 4, axis=0).astype(np.int32)
    domain = Domain("s", ("a", "b"), np.array([4, 4]))
    table = count_records(("p",), codes, {domain: values}, None, (line,), separately=True)[0]
    search = search_of(Problem(table, (KAnonymity(k=2), TCloseness(t=0.0))))
    assert cost(search) > 0
    trade(search.boxes, search.atoms, search.classes, search.limits, 0, 2_000, 1, 0.0)
    assert cost(search) == 0
    assert passing(search.problem, search.partition.classes(table)).all()


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.summary)
def test_verdicts_are_those_of_the_definition(model):
    rng = random.Random(model.summary)
    problem = problem_of(60, model, k=2)
    histogram = problem.table.sensitive["s"]
    overall = np.bincount(histogram.values, histogram.counts).astype(int).tolist()
    limits = limits_of(problem, np.arange(problem.table.n_classes), 1)
    records = [v for v, n in enumerate(overall) for _ in range(n)]
    sensitive = Sensitive("s", tuple(NUMBERS[v] for v in records), NUMBERS, {text: (text, "*") for text in NUMBERS})
    column = Column("a", {"x": ("x", "*")})
    asked = ({"model": "k-anonymity", "k": 2}, model.model_dump(exclude_none=True))
    case = Case((column,), (("x",),) * len(records), asked, {"s": sensitive}, None, 0)
    seen = set()
    for _ in range(300):
        mine = rng.sample(range(len(records)), rng.randint(1, rng.choice((4, 60))))
        have = np.bincount([records[i] for i in mine], minlength=5)[None].astype(np.int64)
        verdict = all(passes(case, one, mine) for one in asked)
        assert within_limits(limits, have, 0, len(mine)) == verdict
        seen.add(verdict)
    assert seen == {True, False}


@pytest.mark.parametrize("temperature", [0.3, pytest.param(0.0, marks=pytest.mark.long)])
@pytest.mark.parametrize("many", [0, 60])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.summary)
def test_trades_keep_the_books_and_every_class_passes(model, many, temperature):
    problem = problem_of(400, model, many=many)
    search = search_of(problem)
    atoms, classes = search.atoms, search.classes
    before = cost(search)
    for seed in range(3):
        n = trade(search.boxes, atoms, classes, search.limits, 0, 3_000, seed, temperature)
        assert n > 0 or seed
        assert passing(problem, search.partition.classes(problem.table)).all()
        after = cost(search)
        assert after <= before + 1e-6 or temperature
        before = after
    assert search.partition.n_classes > 3
    for c in range(len(classes.first)):
        members = np.flatnonzero(classes.class_of == c)
        listed, a = [], classes.first[c]
        while a >= 0:
            listed.append(a)
            a = classes.after[a]
        assert sorted(listed) == members.tolist()
        assert classes.n_atoms[c] == len(members)
        assert classes.n_records[c] == atoms.weights[members].sum()
    known = classes.cost.copy()
    local_kernels.rebox_all(search.boxes, atoms, classes)
    used = classes.n_atoms > 0
    assert classes.cost[used] == pytest.approx(known[used], abs=1e-9)


def test_classes_of_the_other_side_and_suppressed_records_are_left_alone():
    problem = problem_of(400, TCloseness(t=0.25))
    search = search_of(problem)
    classes = search.classes
    trade(search.boxes, search.atoms, classes, search.limits, 0, 3_000, 1, 0.0)
    rng = np.random.default_rng(1)
    classes.side[:] = rng.integers(0, 2, len(classes.side))
    other = classes.side[classes.class_of] == 1
    before = classes.class_of.copy()
    trade(search.boxes, search.atoms, classes, search.limits, 0, 3_000, 2, 0.1)
    assert (classes.class_of[other] == before[other]).all()
    assert (classes.class_of[~other] != before[~other]).any()


def test_what_the_kernel_cannot_judge_is_left_to_the_models():
    rows = np.arange(3)
    for models in ((RecursiveDiversity(c=2.0, l=2),), (TCloseness(t=0.2), TCloseness(t=0.5, distance="js"))):
        assert limits_of(problem_of(50, *models), rows, 9) is None
    assert limits_of(problem_of(50), rows, 9) is None
    assert limits_of(problem_of(50, TCloseness(t=0.2)), rows, 10**9) is None
    two = (TCloseness(t=0.3), TCloseness(t=0.1, distance="ordered"), TCloseness(t=0.2))
    limits = limits_of(problem_of(50, *two), rows, 9)
    assert (limits.t_equal, limits.t_line) == (0.2, 0.1)
    two_lines = (TCloseness(t=0.1, distance="numeric"), TCloseness(t=0.1, distance="ordered"))
    assert limits_of(problem_of(50, *two_lines), rows, 9) is None


@pytest.mark.parametrize("model", SOME, ids=lambda model: model.summary)
def test_with_them_it_never_loses_more_than_its_start_and_under_closeness_less_than_without(model, monkeypatch):
    problem = problem_of(400, model)
    answer = SEARCHES["local"](problem)
    start = local.best_start(problem, Space(problem), local.first_answer(problem))
    found = local.Solution.of(problem, partition_of(answer, problem))
    assert found.holds
    assert found.loss <= start.loss
    monkeypatch.setattr(local, "limits_of", lambda *_: None)
    without = local.Solution.of(problem, partition_of(SEARCHES["local"](problem), problem))
    assert found.loss < without.loss or not isinstance(model, TCloseness)
