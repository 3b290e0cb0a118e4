"""Records, columns and cells that are suppressed, against trying everything."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from definitions import classes, cost, feasible, passes, suppressed
from examples import examples
from shoal.errors import InfeasibleError, PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.diversity import DistinctDiversity
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import released
from shoal.search.cells.suppress_cells import suppress_cells
from shoal.search.full_domain.local_suppression import local_suppression
from shoal.search.full_domain.optimal import optimal
from shoal.search.full_domain.suppress_columns import suppress_columns
from shoal.search.full_domain.suppress_records import suppress_records
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Terms
from shoal.tables.frequency import Domain, count_records
from strategies import cases, problem_of

# --- records -----------------------------------------------------------------------------------------------------


def fewest(case):
    """The least number of suppressed records over all sets of ground classes; None where no set will do."""
    ground = (0,) * len(case.columns)
    groups = list(classes(case, range(case.n), ground).values())
    passing = [all(passes(case, model, E) for model in case.asked) for E in groups]
    found = []
    for gone in itertools.product((False, True), repeat=len(groups)):
        if all(ok or out for ok, out in zip(passing, gone, strict=True)):
            records = {i for E, out in zip(groups, gone, strict=True) if out for i in E}
            if feasible(case, records):
                found.append(len(records))
    return min(found, default=None)


@examples(100)
@given(cases())
def test_no_fewer_records_can_be_suppressed(case):
    problem = problem_of(case)
    cascading = case.wildcard or any("columns" in model for model in case.asked)
    try:
        answer = suppress_records(problem)
    except InfeasibleError:
        assert fewest(case) is None or cascading
        return
    n_suppressed = answer.parts(problem.table).n_suppressed
    assert n_suppressed <= case.limit
    if not cascading:
        assert n_suppressed == fewest(case)
        assert answer.claim


# --- columns -----------------------------------------------------------------------------------------------------


@examples(80)
@given(cases())
def test_no_set_of_columns_costs_less(case):
    problem = problem_of(case)
    found = []
    for node in itertools.product(*({0, column.height} for column in case.columns)):
        gone = suppressed(case, node)
        if feasible(case, gone):
            found.append(cost(case, node, gone, "loss")[1])
    if not found:
        with pytest.raises(InfeasibleError, match="hiding whole columns"):
            suppress_columns(problem)
        return
    answer = suppress_columns(problem)
    if problem.suppresses_least:
        assert answer.proved
    else:  # who is suppressed is a choice, which a rule makes
        as_it_is = not any(answer.node) and not answer.parts(problem.table).n_suppressed
        assert answer.proved if as_it_is else problem.rule in answer.claim
    assert all(level in (0, h.height) for level, h in zip(answer.node, problem.table.hierarchies, strict=True))
    value = loss_of(problem, answer.released, answer.parts(problem.table), "loss")
    assert value == pytest.approx(min(found), abs=1e-12)


# --- cells -------------------------------------------------------------------------------------------------------


def small_problem(rng, *, wildcard=False, nulls=False, models=None, most_cells=12):
    """A table of a few rows whose columns have a value and a star, and its rows as codes."""
    q = int(rng.integers(1, 4))
    n = int(rng.integers(1, most_cells // q + 1))
    codes = rng.integers(0, 3, (n, q)).astype(np.int32)
    hierarchies = []
    for j in range(q):
        h = Hierarchy.from_levels(f"c{j}", ["x", "y", "z"], [["x", "y", "z"], ["*"] * 3])
        hierarchies.append(h.with_null() if nulls else h)
    if nulls:
        codes[rng.random((n, q)) < 0.2] = 3
    weights = rng.choice([1.0, 2.0, 3.5], q) if rng.random() < 0.5 else np.ones(q)
    values = rng.integers(0, 2, n).astype(np.int32)
    domain = Domain("s", ("a", "b"), np.bincount(values, minlength=2))
    table, _ = count_records(
        tuple(f"c{j}" for j in range(q)), codes, {domain: values}, None, tuple(hierarchies), separately=True
    )
    k = int(rng.integers(1, 5))
    problem = Problem(table, models or (KAnonymity(k=k),), Terms(weights=weights.tolist(), wildcard=wildcard))
    return problem, codes, k


def all_subsets(codes):
    """[subset, row, column]: which cells are hidden."""
    n, q = codes.shape
    return ((np.arange(1 << (n * q))[:, None] >> np.arange(n * q)) & 1).astype(bool).reshape(-1, n, q)


def least_stars(codes, weights, k):
    """Over all sets of cells: every record looks like k."""
    hidden = all_subsets(codes)
    same = codes[:, None, :] == codes[None, :, :]
    both, none = hidden[:, :, None] & hidden[:, None], ~hidden[:, :, None] & ~hidden[:, None]
    alike = (both | (none & same)).all(axis=3).sum(axis=2)
    return _least(hidden, (alike >= k).all(axis=1), weights)


def least_nulls(codes, weights, k, null):
    """Over all sets of cells: what is released of every record matches k records as they were."""
    missing = codes == null
    hidden = all_subsets(codes)
    same = (codes[:, None, :] == codes[None, :, :]) | missing[:, None] | missing[None]
    matched = (hidden[:, :, None] | same).all(axis=3).sum(axis=2)
    return _least(hidden & ~missing, (matched >= k).all(axis=1), weights)


def _least(hidden, holds, weights):
    costs = (hidden * weights).sum(axis=(1, 2))[holds]
    return float(costs.min()) if len(costs) else None


def cells_hidden(problem, answer):
    """The weight of the cells that are not what they were."""
    parts = answer.parts(problem.table)
    total = 0.0
    for j, (value, h) in enumerate(zip(answer.released, problem.table.hierarchies, strict=True)):
        before = [h.leaves[leaf] for leaf in problem.table.codes[parts.row, j]]
        after = [value.labels[code] for code in parts.codes[:, j]]
        changed = np.array([a != b for a, b in zip(before, after, strict=True)], bool)
        total += problem.weights[j] * int(parts.counts[changed].sum())
    return total


@pytest.mark.parametrize("seed", range(4))
def test_no_set_of_cells_weighs_less(seed):
    rng = np.random.default_rng(seed)
    for _ in range(150):
        problem, codes, k = small_problem(rng)
        least = least_stars(codes, problem.weights, k)
        if least is None:
            with pytest.raises(InfeasibleError):
                suppress_cells(problem)
            continue
        answer = suppress_cells(problem)
        assert cells_hidden(problem, answer) == pytest.approx(least)
        assert answer.proved
        assert "no fewer" in answer.claim
        assert (released(problem, answer).counts >= k).all()


@pytest.mark.parametrize("seed", range(4))
def test_no_set_of_nulls_weighs_less_where_no_record_counts_on_what_others_hide(seed):
    rng = np.random.default_rng(100 + seed)
    for _ in range(150):
        problem, codes, k = small_problem(rng, wildcard=True, nulls=True, most_cells=9)
        least = least_nulls(codes, problem.weights, k, null=3)
        if least is None:
            with pytest.raises(InfeasibleError):
                suppress_cells(problem)
            continue
        answer = suppress_cells(problem)
        assert cells_hidden(problem, answer) == pytest.approx(least)
        assert answer.proved is (least == 0)  # of answers in which records count on each other nothing is known
        assert answer.bound is None
        assert "where no record counts on what others hide" in answer.claim
        parts = answer.parts(problem.table)
        rows = [
            tuple(value.labels[code] for value, code in zip(answer.released, row, strict=True))
            for row, n in zip(parts.codes, parts.counts, strict=True)
            for _ in range(n)
        ]
        for mine in rows:  # what the policy asks, over the released rows
            matches = [
                all(a is None or b is None or a == b for a, b in zip(mine, other, strict=True)) for other in rows
            ]
            assert sum(matches) >= k


def least_released_nulls(codes, weights, k, null):
    """Over all sets of cells: every record that matched too few hides one, and all match k records as released."""
    missing = codes == null
    hidden = all_subsets(codes)
    differ = (codes[:, None, :] != codes[None, :, :]) & ~missing[:, None] & ~missing[None]
    few = (~differ.any(axis=2)).sum(axis=1) < k
    matched = (~differ | hidden[:, :, None] | hidden[:, None]).all(axis=3).sum(axis=2)
    holds = (matched >= k).all(axis=1) & ((hidden & ~missing).any(axis=2) | ~few).all(axis=1)
    return _least(hidden & ~missing, holds, weights)


@pytest.mark.parametrize("seed", range(2))
def test_released_records_match_and_the_claim_is_true_where_records_count_on_others(seed):
    rng = np.random.default_rng(200 + seed)
    n_least = n_answers = 0
    for _ in range(150):
        problem, codes, k = small_problem(rng, wildcard=True, nulls=True, most_cells=9)
        terms = replace(problem.terms, matches="released")
        trusting = Problem(problem.table, problem.asked, terms)
        guarded = least_nulls(codes, problem.weights, k, null=3)
        if guarded is None:
            with pytest.raises(InfeasibleError):
                suppress_cells(trusting)
            continue
        answer = suppress_cells(trusting)
        least = least_released_nulls(codes, problem.weights, k, null=3)
        cost = cells_hidden(trusting, answer)
        assert least - 1e-9 <= cost <= guarded + 1e-9
        if "no fewer can be" in answer.claim:
            assert cost == pytest.approx(least)
        assert answer.proved is (least == 0)
        n_answers += 1
        n_least += cost <= least + 1e-9
        rows = _released_rows(answer, trusting)
        matches = [sum(all(None in (a, b) or a == b for a, b in zip(x, y, strict=True)) for y in rows) for x in rows]
        assert min(matches) >= k
    assert n_least >= 0.9 * n_answers  # it is a search, and seldom misses the least


def _released_rows(answer, problem):
    parts = answer.parts(problem.table)
    return [
        tuple(value.labels[code] for value, code in zip(answer.released, row, strict=True))
        for row, n in zip(parts.codes, parts.counts, strict=True)
        for _ in range(n)
    ]


@pytest.mark.parametrize("search", [suppress_cells, local_suppression])
def test_other_models_hold_and_the_bound_is_one(search):
    rng = np.random.default_rng(7)
    n_answers = 0
    for _ in range(60):
        k = int(rng.integers(1, 4))
        models = (KAnonymity(k=k), DistinctDiversity(l=2, column="s"))
        problem, codes, _ = small_problem(rng, models=models)
        least = least_stars(codes, problem.weights, k)
        try:
            answer = search(problem)
        except InfeasibleError:
            assert len(problem.table.sensitive["s"].values) == 0 or problem.evaluate(problem.lattice.top).n_suppressed
            continue
        n_answers += 1
        classes_of = released(problem, answer)
        assert all(model.passes(classes_of).all() for model in models)
        assert least is not None
        assert cells_hidden(problem, answer) >= least - 1e-9
    assert n_answers > 20


@examples(40)
@given(cases())
def test_hidden_cells_on_top_of_levels_cost_no_more_than_the_best_node(case):
    problem = problem_of(case, apart=True)  # the cells of equal records may be hidden one by one
    try:
        answer = local_suppression(problem)
    except (InfeasibleError, PolicyError):
        return
    problem.limit = 0
    assert all(model.passes(released(problem, answer)).all() for model in problem.models)
    try:
        node = optimal(problem)
    except InfeasibleError:
        return
    values = [loss_of(problem, a.released, a.parts(problem.table), "loss") for a in (answer, node)]
    assert values[0] <= values[1] + 1e-12
