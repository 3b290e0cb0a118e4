"""The prices behind the bound of ``local``, against the whole linear program and every class of small tables."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from scipy.optimize import linprog

from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import Problem
from shoal.search.cells.classes import Partition
from shoal.search.local.bound import PricedTuples, least_costs
from shoal.search.local.boxes import Space
from shoal.search.local.prices import CAP, LOWER, overpaid_of, visit_classes, visit_of
from shoal.search.problem import Terms
from shoal.tables.frequency import count_records


def tuples_of(rng, k):
    """The tuples of a small table, in one class."""
    numbers = Hierarchy.from_paths("a", [(str(i), f"{i // 2}x2", f"{i // 4}x4", "*") for i in range(8)])
    kinds = Hierarchy.from_paths("b", [(f"{a}{b}", a, "*") for a, b in product("pq", "xy")])
    n = int(rng.integers(2 * k, 9))
    codes = np.column_stack([rng.integers(0, 8, n), rng.integers(0, 4, n)]).astype(np.int32)
    table = count_records(("a", "b"), codes, {}, None, (numbers, kinds))[0]
    problem = Problem(table, (KAnonymity(k=k),), Terms(objective="loss", weights=(1, int(rng.integers(1, 4)))))
    space = Space(problem)
    whole = Partition.of_rows(table, np.zeros(table.n_classes, np.int64))
    return problem, PricedTuples.of(space, space.loss.slopes, whole)


def cost_of(ladder, tuples):
    """What the lowest labels cost that all these share."""
    cost = 0.0
    for j, (start, height, size) in enumerate(zip(ladder.starts, ladder.heights, ladder.sizes, strict=True)):
        ranks = ladder.codes[list(tuples), j]
        for level in range(height):
            at = start + level * size + ranks
            if len(set(ladder.nodes[at].tolist())) == 1:
                cost += ladder.costs[at[0]]
                break
    return cost


def records_of(ladder):
    return np.repeat(np.arange(len(ladder.counts)), ladder.counts).tolist()


def whole_program(ladder, k):
    """The highest sum of prices where no k records are paid more than a class of them costs; all are listed."""
    records = records_of(ladder)
    groups = list(combinations(range(len(records)), k))
    limits = np.zeros((len(groups), len(records)))
    for i, group in enumerate(groups):
        limits[i, list(group)] = 1
    costs = [k * cost_of(ladder, [records[i] for i in group]) for group in groups]
    return -linprog(-np.ones(len(records)), limits, costs, bounds=(0, None)).fun


@pytest.mark.parametrize("to_the_end", [True, False])
@pytest.mark.parametrize("k", [2, 3])
def test_the_bound_converges_to_that_of_the_whole_program_from_below(monkeypatch, k, to_the_end):
    if to_the_end:  # however little the last rounds gain
        monkeypatch.setattr("shoal.search.local.bound.ENOUGH", -1)
    short = 1e-9 if to_the_end else 1e-5
    rng = np.random.default_rng(k)
    for _ in range(100):
        problem, tuples = tuples_of(rng, k)
        found = [total - tuples.ground * problem.n_records for total in least_costs(problem, tuples, 100)]
        best = whole_program(tuples.ladder, k)
        assert found == sorted(found)
        assert found[-1] <= best + 1e-9
        assert found[-1] >= (1 - short) * best - 1e-9


@pytest.mark.parametrize("what", [CAP, LOWER])
def test_lowered_prices_are_not_above_the_cost_of_any_class(what):
    rng = np.random.default_rng(5)
    for _ in range(150):
        k = int(rng.integers(2, 4))
        _, tuples = tuples_of(rng, k)
        ladder = tuples.ladder
        prices = rng.random(len(ladder.counts)) * rng.choice([0.01, 0.3, 1.0])
        lowered = prices.copy()
        visit, overpaid = visit_of(ladder, k), overpaid_of(50, 50 * k)
        n_calls = 1
        while not visit_classes(ladder, visit, lowered, k, what, overpaid, 7):  # interrupted again and again
            n_calls += 1
        assert n_calls > 1
        assert (lowered <= prices).all()
        exact = [Fraction(price) for price in lowered.tolist()]
        records = records_of(ladder)
        fine = True
        for size in (k, k + 1):
            for group in combinations(records, size):
                cost = size * Fraction(cost_of(ladder, group))
                assert sum(exact[u] for u in group) <= cost * (1 + Fraction(1, 10**11)) + Fraction(1, 10**15)
                fine = fine and sum(prices[u] for u in group) <= float(cost) * (1 - 1e-9)
        if what == LOWER and fine:
            assert (lowered == prices).all()
            assert overpaid.n[0] == 0
        for c in range(int(overpaid.n[0])):
            part = slice(overpaid.starts[c], overpaid.starts[c + 1])
            who, shares = overpaid.members[part], overpaid.shares[part]
            assert shares.sum() == k
            assert (shares <= ladder.counts[who]).all()
            assert prices[who] @ shares > overpaid.limits[c]
            assert overpaid.limits[c] >= k * cost_of(ladder, who.tolist()) - 1e-12
