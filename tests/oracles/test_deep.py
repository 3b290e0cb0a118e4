"""The deep search of ``optimal`` against every node of the lattice."""

import itertools
import math
import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from definitions import Case, Column
from examples import examples, tables
from shoal.errors import InfeasibleError
from shoal.search import SEARCHES
from shoal.search.full_domain import deep, optimal
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.deep import DeepSearch, can_search_deep
from shoal.search.full_domain.deep_kernels import split_classes, split_sizes
from shoal.search.losses.definitions import LOSSES
from shoal.search.losses.lattice import CellLoss
from strategies import cases, problem_of

OF_CELLS = [name for name, loss in LOSSES.items() if issubclass(loss, CellLoss) and not loss.mean_of_kept]


@pytest.fixture(autouse=True, params=[1, *(pytest.param(n, marks=pytest.mark.long) for n in (0, 5))])
def decided(request, monkeypatch):
    """Threads search the whole lattice, boxes with one column decided, or nothing: the tables have four columns."""
    monkeypatch.setattr(deep, "DECIDED", request.param)
    monkeypatch.setattr(deep, "WAVE", 3)


@pytest.fixture
def deep_at_once(monkeypatch):
    """The deep search takes over from the first box on."""
    monkeypatch.setattr(optimal, "SHALLOW", 0)


def random_case(seed):
    """Up to four columns of up to six values under up to four levels, some values rare."""
    rng = random.Random(seed)
    columns = []
    for name in "abcd"[: rng.randint(1, 4)]:
        n, widths = rng.randint(1, 6), rng.choice(((), (2,), (2, 4), (3,)))
        paths = {f"{name}{i}": (f"{name}{i}", *(f"{name}{i // w}/{w}" for w in widths), "*") for i in range(n)}
        columns.append(Column(name, paths))
    n = rng.randint(1, 40)
    weights = [[rng.choice((1, 3, 8)) for _ in c.paths] for c in columns]
    rows = [tuple(rng.choices(list(c.paths), w)[0] for c, w in zip(columns, weights, strict=True)) for _ in range(n)]
    limit = rng.choice((0, rng.randint(0, n // 4), rng.randint(0, n), n))
    return Case(tuple(columns), tuple(rows), ({"model": "k-anonymity", "k": rng.randint(1, 5)},), {}, None, limit)


def values(problem):
    """The cost of every node that may be released."""
    found = {}
    for node in problem.lattice:
        seen = problem.evaluate(node)
        if seen.feasible:
            found[node] = problem.objective.value(seen)
    return found


def deep_from_top(problem):
    best = Best()
    top = problem.evaluate(problem.lattice.top)
    if top.feasible:
        best.offer(problem.objective.value(top), top)
    return DeepSearch(problem, best, lambda: None)


@pytest.mark.usefixtures("deep_at_once")
@pytest.mark.parametrize("seeds", tables(1500, 300))
def test_it_finds_the_node_that_looking_at_all_finds(seeds):
    went_deep = 0
    for seed in seeds:
        case, objective = random_case(seed), OF_CELLS[seed % len(OF_CELLS)]
        try:
            expected = SEARCHES["exhaustive"](problem_of(case, objective))
        except InfeasibleError:
            with pytest.raises(InfeasibleError):
                SEARCHES["optimal"](problem_of(case, objective))
            continue
        problem = problem_of(case, objective)
        assert can_search_deep(problem)
        found = SEARCHES["optimal"](problem)
        assert found.proved
        assert found.node == expected.node, seed
        assert np.array_equal(np.sort(found.suppressed, axis=0), np.sort(expected.suppressed, axis=0))
        went_deep += math.prod(problem.lattice.shape) > 1
    assert went_deep > len(seeds) // 2


@pytest.mark.usefixtures("deep_at_once")
def test_one_thread_and_four_find_the_same_with_the_same_number_of_nodes(monkeypatch):
    answers = []
    for n_threads in (1, 2, 4):
        monkeypatch.setattr(deep, "ThreadPoolExecutor", lambda _, n=n_threads: ThreadPoolExecutor(n))
        found = []
        for seed in range(60):
            problem = problem_of(random_case(seed), OF_CELLS[seed % len(OF_CELLS)])
            try:
                answer = SEARCHES["optimal"](problem)
            except InfeasibleError:
                continue
            found.append((seed, answer.node, answer.n_evaluated))
        answers.append(found)
    assert answers[0] == answers[1] == answers[2]
    assert max(n for *_, n in answers[0]) > 10


@pytest.mark.usefixtures("deep_at_once")
@examples(300)
@given(cases(["k"]), st.sampled_from(list(LOSSES)))
def test_it_changes_no_answer_whatever_a_policy_asks(case, objective):
    try:
        expected = SEARCHES["exhaustive"](problem_of(case, objective))
    except InfeasibleError:
        with pytest.raises(InfeasibleError):
            SEARCHES["optimal"](problem_of(case, objective))
        return
    found = SEARCHES["optimal"](problem_of(case, objective))
    assert (found.node, found.proved, found.claim) == (expected.node, expected.proved, expected.claim)


@pytest.mark.parametrize("seeds", tables(1000, 200))
def test_no_node_of_a_box_costs_less_than_its_bound(seeds):
    n_boxes = 0
    for seed in seeds:
        problem = problem_of(random_case(seed), OF_CELLS[seed % len(OF_CELLS)])
        costs = values(problem)
        search = deep_from_top(problem)
        inside = search._next_column

        def checked(box, threshold, branch, seed=seed, costs=costs, inside=inside):
            nonlocal n_boxes
            n_boxes += 1
            bound = sum(of[level] for of, level in zip(box.costs, box.low, strict=True))
            for node in itertools.product(*(range(a, b + 1) for a, b in zip(box.low, box.high, strict=True))):
                if node in costs:
                    assert costs[node] >= bound - 1e-9 * max(1, abs(bound)), seed
            # The highest node itself is priced exactly.
            high = sum(of[level] for of, level in zip(box.costs, box.high, strict=True))
            assert costs[tuple(box.high)] == pytest.approx(high, abs=1e-9)
            return inside(box, threshold, branch)

        search._next_column = checked
        assert search.close(problem.lattice.ground, math.inf) == math.inf
        if costs:
            assert search.best.value == pytest.approx(min(costs.values()), abs=1e-9)
    assert n_boxes > 3 * len(seeds)


@pytest.mark.parametrize("seeds", tables(1000, 200))
def test_what_a_threshold_leaves_out_costs_at_least_what_is_returned(seeds):
    n_left = 0
    for seed in seeds:
        problem = problem_of(random_case(seed), OF_CELLS[seed % len(OF_CELLS)])
        costs = values(problem)
        if not costs:
            continue
        least, most = min(costs.values()), max(costs.values())
        threshold = least + random.Random(seed).uniform(-0.5, 1.0) * (most - least)
        search = deep_from_top(problem)
        left_out = search.close(problem.lattice.ground, threshold)
        assert left_out >= threshold
        assert min(left_out, search.best.value) <= least + 1e-9 * max(1, abs(least)), seed
        n_left += left_out < math.inf
    assert n_left > len(seeds) // 10


@pytest.mark.usefixtures("deep_at_once")
def test_if_time_runs_out_no_node_costs_less_than_the_reported_bound(monkeypatch):
    n_open = 0
    for seed in range(150):
        problem = problem_of(random_case(seed), "arx-loss")
        costs = values(problem)
        if not costs:
            continue
        problem = problem_of(random_case(seed), "arx-loss")
        clock = itertools.count()
        ends = 5 + seed % 30
        monkeypatch.setattr(
            type(problem), "out_of_time", property(lambda _, clock=clock, ends=ends: next(clock) > ends)
        )
        found = SEARCHES["optimal"](problem)
        if not found.proved and found.bound is not None:
            n_open += 1
            assert found.bound <= problem.objective.published_figure(min(costs.values())) + 1e-9
    assert n_open > 10


def test_an_example():
    # Two columns of four values, k = 2, nothing suppressed: a0b0 and a1b1 are alone, and so are their neighbours.
    paths = {f"{i}": (f"{i}", f"{i // 2}/2", "*") for i in range(4)}
    columns = (Column("a", paths), Column("b", paths))
    rows = tuple((str(i), str(i)) for i in range(4))
    problem = problem_of(Case(columns, rows, ({"model": "k-anonymity", "k": 2},), {}, None, 0), "loss")
    search = deep_from_top(problem)
    assert search.close(problem.lattice.ground, math.inf) == math.inf
    # Each column at its pairs: (2 − 1)/(4 − 1) in every cell.
    assert search.best.evaluation is not None
    assert search.best.evaluation.node == (1, 1)
    assert search.best.value == pytest.approx(1 / 3)


@pytest.mark.parametrize("seed", range(40))
def test_the_kernels_split_as_their_twins_do(seed):
    rng = np.random.default_rng(seed)
    n, n_classes, n_parts, least = 60, 6, 3, 5
    leaves = rng.integers(0, 8, (2, n)).astype(np.int32)
    counts = rng.integers(1, 4, n).astype(np.int32)
    class_of = rng.integers(0, n_classes + 1, n).astype(np.int32)
    part = rng.integers(0, n_parts, 8).astype(np.int32)
    extra = rng.random((2, 3, 8))
    sizes = Counter()
    for row in range(n):
        sizes[class_of[row], part[leaves[1, row]]] += int(counts[row])
    gone = [row for row in range(n) if class_of[row] < n_classes and sizes[class_of[row], part[leaves[1, row]]] < least]
    given_rows = (counts, class_of, n_classes, part, n_parts, least)
    lost, found = split_sizes(leaves[1], *given_rows)
    assert lost == counts[gone].sum()
    assert all(found[c * n_parts + p] == m for (c, p), m in sizes.items())
    sums = np.zeros((2, 3))
    new, n_new = split_classes(1, leaves, *given_rows, found, extra, sums)
    kept = [row for row in range(n) if class_of[row] < n_classes and row not in gone]
    assert n_new == len({(class_of[row], part[leaves[1, row]]) for row in kept})
    assert set(np.flatnonzero(new == n_new)) == set(range(n)) - set(kept)
    of_part = {(class_of[row], part[leaves[1, row]], new[row]) for row in kept}
    assert len(of_part) == n_new == len({number for *_, number in of_part})
    expected = [
        [sum(counts[row] * extra[j, level, leaves[j, row]] for row in gone) for level in range(3)] for j in (0, 1)
    ]
    assert sums == pytest.approx(np.array(expected))


def test_columns_of_too_many_values_are_left_to_the_search_by_boxes(monkeypatch):
    problem = problem_of(random_case(3), OF_CELLS[0])
    assert can_search_deep(problem)
    splits = []

    def counted(leaves, counts, class_of, n_classes, part, n_parts, least):
        splits.append((n_classes + 1) * n_parts)
        return split_sizes(leaves, counts, class_of, n_classes, part, n_parts, least)

    monkeypatch.setattr(deep, "split_sizes", counted)
    deep_from_top(problem).close(problem.lattice.ground, math.inf)
    assert 1 < max(splits) <= deep._most_parts(problem)  # what is reserved is never exceeded
    monkeypatch.setattr(deep, "MOST_PARTS", deep._most_parts(problem) - 1)
    assert not can_search_deep(problem)
