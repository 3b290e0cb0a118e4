"""The search by thresholds of k_optimize against trying every set, and its loops against counting again."""

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from definitions import Case, Column
from examples import THOROUGH, examples
from shoal.errors import OutOfTimeError
from shoal.search.cuts import k_optimize as module
from shoal.search.cuts.k_optimize import _SetEnumeration
from shoal.search.cuts.thresholds import search as threshold
from shoal.search.cuts.thresholds.classes import IN, OPEN, OUT
from shoal.search.cuts.thresholds.losses import pair_losses
from shoal.search.cuts.thresholds.payments import gains_of_cuts, pack_lists, pay_conflicts
from shoal.search.cuts.thresholds.search import ThresholdSearch, can_search_by_thresholds
from shoal.search.problem import Problem
from small_cuts import check_against_every_cut, least_discernibility, loss_in, random_case
from strategies import cases, problem_of

pytestmark = pytest.mark.xdist_group("threshold")  # its loops take seconds to compile


@pytest.fixture
def from_nothing(monkeypatch):
    """Only the search by thresholds: no climb and no other tree before it."""
    monkeypatch.setattr(module, "LOOKS_BEFORE_THRESHOLDS", 0)
    monkeypatch.setattr(
        _SetEnumeration, "climb_and_kick", lambda search: search.offer(np.zeros(search.axis.n_values, np.bool_))
    )


@pytest.fixture(params=[threshold.LISTED, 1])
def without_a_start(from_nothing, monkeypatch, request):
    """No search either for what suppresses nothing; and with few rows that pay, or many."""
    monkeypatch.setattr(_SetEnumeration, "suppress_nothing", lambda search, rows: 0)
    monkeypatch.setattr(threshold, "LISTED", request.param)


@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("block", range(2))
def test_no_cut_has_less_discernibility(block):
    check_against_every_cut(range(100 * block, 100 * (block + 1)))
    check_against_every_cut([2175])  # two cuts between the same two values of a class lose its record once


@pytest.mark.usefixtures("without_a_start")
def test_no_cut_that_suppresses_has_less_discernibility():
    check_against_every_cut(range(60), limits=(1, 3, 6))


@pytest.mark.long
@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("block", range(8 if THOROUGH else 5))
def test_no_cut_of_thousands_of_tables_has_less_discernibility(block):
    check_against_every_cut(range(500 * block, 500 * (block + 1)))


@pytest.mark.long
@pytest.mark.usefixtures("without_a_start")
@pytest.mark.parametrize("block", range(8 if THOROUGH else 2))
def test_no_cut_of_thousands_of_tables_that_suppresses_has_less_discernibility(block):
    check_against_every_cut(range(250 * block, 250 * (block + 1)), limits=(1, 2, 4, 8, 24))


@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("rows", [0, 40, 100])
def test_a_search_that_ends_early_has_a_bound_and_the_same_answer_every_time(rows, monkeypatch):
    monkeypatch.setattr(module, "ROWS", rows / 1000)
    early = 0
    for seed in range(40):
        for limit in (0, 2, 6):
            case = replace(random_case(seed), limit=limit)
            least = least_discernibility(case)
            if least == math.inf or case.limit > case.n:
                continue
            problem, again = problem_of(case, "discernibility"), problem_of(case, "discernibility")
            try:
                answer = module.k_optimize(problem)
            except OutOfTimeError:
                continue
            assert answer.proved or answer.bound <= least
            assert least <= loss_in(problem, answer)
            assert not answer.proved or least == loss_in(problem, answer)
            early += not answer.proved
            repeated = module.k_optimize(again)
            assert (answer.bound, answer.n_evaluated) == (repeated.bound, repeated.n_evaluated)
            assert loss_in(again, repeated) == loss_in(problem, answer)
    assert early > 5


@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("looks", [0, 5, 20])
def test_a_search_that_runs_out_of_time_has_a_bound(looks, monkeypatch):
    early = 0
    for seed in range(40):
        case = replace(random_case(seed), limit=3)
        least = least_discernibility(case)
        if least == math.inf or case.n < 3:
            continue
        problem = problem_of(case, "discernibility")
        problem.time_budget = float(looks)
        left = itertools.count(looks, -1)  # every look at the clock takes a second
        monkeypatch.setattr(Problem, "seconds_left", property(lambda _, left=left: float(next(left))))
        try:
            answer = module.k_optimize(problem)
        except OutOfTimeError:
            continue
        assert least <= loss_in(problem, answer)
        assert least == loss_in(problem, answer) if answer.proved else answer.bound <= least
        early += not answer.proved
    assert early > 5


@pytest.mark.parametrize("power", [1.5, 4])
def test_the_next_threshold_needs_what_is_planned_of_what_is_left(power):
    passed = [(threshold, round(threshold**power)) for threshold in (1_000, 1_300)]
    rise = module._affordable(passed, 3 * 1_300**power)
    assert (1_300 * rise) ** power == pytest.approx(module.PLANNED * 3 * 1_300**power, rel=1e-3)
    assert module._affordable(passed, 1.0) == module.LEAST_RISE > 1  # it always rises
    assert module._affordable(passed[:1], 1.0) == math.inf  # nothing to tell from


def all_costs(search):
    sets = [np.array(bits, np.bool_) for bits in itertools.product([False, True], repeat=search.axis.n_values)]
    return [(chosen, search.choices.evaluated(chosen)) for chosen in sets]


@examples(100)
@given(cases(("k",), max_rows=14), st.integers(0, 12), st.floats(0.1, 3))
def test_when_it_stops_no_set_costs_less_than_the_bound_of_the_open_nodes(case, steps, share):
    problem = problem_of(case, "discernibility")
    search = _SetEnumeration(problem)
    assume(can_search_by_thresholds(problem, search.axis) and search.axis.n_values <= 7)
    costs = all_costs(search)
    least = min(seen.value for _, seen in costs)
    threshold = max(1, int(share * min(least, problem.table.n_records**2)))
    found = []

    def offer(chosen, cost):
        assert cost == search.choices.evaluated(chosen).value
        found.append(cost)
        return cost

    tree = ThresholdSearch(problem, search.axis, offer, problem.limit)
    tree.begin()
    aim = threshold
    while tree.open and steps:
        threshold, steps = tree.step(threshold), steps - 1
    assert least >= min(tree.bound, threshold)
    assert threshold == min([aim, *found])


def test_nodes_below_a_decision_keep_every_cheaper_set():
    # Whatever is decided without a search: a set below the threshold stays in one of the open nodes, or was found.
    for seed in range(60):
        problem = problem_of(random_case(seed), "discernibility")
        search = _SetEnumeration(problem)
        if not can_search_by_thresholds(problem, search.axis):
            continue
        costs = all_costs(search)
        tree = ThresholdSearch(problem, search.axis, lambda _, cost: cost, problem.limit)
        least = min(seen.value for _, seen in costs)
        if least == math.inf:
            continue
        tree.begin()
        threshold = int(least) + 1
        while tree.open and threshold > least:
            for states in [node.states for node in tree.open]:
                assert set(states.tolist()) <= {OUT, OPEN, IN}
            threshold = tree.step(threshold)
            held = [
                any(
                    not ((node.states == OUT) & chosen).any() and not ((node.states == IN) & ~chosen).any()
                    for node in tree.open
                )
                for chosen, seen in costs
                if seen.value == least
            ]
            assert threshold == least or any(held), seed


def discernible(places, counts, cuts, first, k):
    """Σ max(class, k) over records, the records in classes below k, and the classes; straight from the rows."""
    sizes = {}
    for row, n in zip(places.tolist(), counts.tolist(), strict=True):
        key = tuple(sum(bool(cuts[first[j] + p]) for p in range(place)) for j, place in enumerate(row))
        sizes[key] = sizes.get(key, 0) + n
    return sum(n * max(n, k) for n in sizes.values()), sum(n for n in sizes.values() if n < k)


def lost_rows(places, counts, cuts, tree):
    """The rows in classes below k."""
    keys = [
        tuple(int(cuts[tree.first[j] : tree.first[j] + p].sum()) for j, p in enumerate(row)) for row in places.tolist()
    ]
    sizes = Counter()
    for key, n in zip(keys, counts.tolist(), strict=True):
        sizes[key] += n
    return {i for i, key in enumerate(keys) if sizes[key] < tree.k}


def listed(rows, n_listed, u, v):
    found = rows[u, v, : n_listed[u, v]].tolist()
    assert len(set(found)) == len(found) < rows.shape[2]
    return set(found)


@pytest.mark.parametrize("seed", range(40))
def test_costs_and_losses_of_cuts_are_those_of_counting_again(seed):
    problem = problem_of(random_case(seed), "discernibility")
    search = _SetEnumeration(problem)
    if not search.axis.n_values:  # nothing to cut
        assert not can_search_by_thresholds(problem, search.axis)
        return
    tree = ThresholdSearch(problem, search.axis, lambda _, cost: cost, problem.limit)
    rng = np.random.default_rng(seed)
    states = rng.choice([OUT, OPEN, OPEN, IN], search.axis.n_values).astype(np.int8)
    places, counts, keys = tree._merged(tree.places, tree.counts, states)
    fine, head = states >= OPEN, states == IN
    base, _ = discernible(tree.places, tree.counts, fine, tree.first, tree.k)
    assert (counts * np.maximum(counts, tree.k)).sum() == base
    added = tree._added(places, counts, keys, states)
    costs = added.cuts
    under = tree._under_head(places, counts, states)
    gone, lost = under.n_lost, under.lost
    whole, expected_gone = discernible(tree.places, tree.counts, head, tree.first, tree.k)
    assert (gone, under.kept_discernibility) == (expected_gone, whole - tree.k * gone)
    rows, n_listed = np.zeros((len(states), len(states), 16), np.int32), np.zeros((len(states), len(states)), np.int64)
    pair_losses(
        places, counts, *tree._of_head[1:], under.n_classes, states, tree.first, tree.k, tree._sizes, tree._local,
        tree._positions, tree._grid, lost, tree._pairs, rows, n_listed,
    )  # fmt: skip
    tail = np.flatnonzero(states == OPEN)
    for u in tail:
        fewer, more = fine.copy(), head.copy()
        fewer[u], more[u] = False, True
        assert costs[u] == discernible(tree.places, tree.counts, fewer, tree.first, tree.k)[0] - base
        assert gone + lost[u] == discernible(tree.places, tree.counts, more, tree.first, tree.k)[1]
        for v in tail[tail != u]:
            both = more.copy()
            both[v] = True
            assert gone + tree._pairs[u, v] == discernible(tree.places, tree.counts, both, tree.first, tree.k)[1]
            if u < v:
                second = head | (np.arange(len(states)) == v)
                alone = lost_rows(places, counts, more, tree) | lost_rows(places, counts, second, tree)
                assert listed(rows, n_listed, u, v) == lost_rows(places, counts, both, tree) - alone
        before = lost_rows(places, counts, head, tree)
        assert listed(rows, n_listed, u, u) == lost_rows(places, counts, more, tree) - before
    for size in (2, 3):  # costs of cuts can be added: leaving out several costs no less than each alone
        for some in itertools.combinations(tail.tolist(), size):
            fewer = fine.copy()
            fewer[list(some)] = False
            together = discernible(tree.places, tree.counts, fewer, tree.first, tree.k)[0]
            by_column = [of_runs(added, states, tree.first, j, fewer) for j in range(len(tree.sizes))]
            assert together - base >= sum(by_column) >= costs[list(some)].sum()
            if sum(of > 0 for of in by_column) == 1 and len({column_of(v, tree.first) for v in some}) == 1:
                assert together - base == sum(by_column)  # those of one column cost exactly their runs


def column_of(v, first):
    return int(np.searchsorted(first, v, "right")) - 1


def of_runs(added, states, first, j, kept):
    """What the cuts of a column that are left out cost as runs, from the square of the column."""
    cuts = [v for v in range(first[j], first[j + 1]) if states[v] >= OPEN]
    square = added.runs[added.squares[j] : added.squares[j + 1]].reshape(len(cuts) + 1, len(cuts) + 1)
    stays = [0, *(i for i, v in enumerate(cuts, 1) if kept[v]), len(cuts) + 1]
    return sum(int(square[a, b - 1]) for a, b in itertools.pairwise(stays))


def joined_runs(square, first, out):
    """What it costs to leave out cuts, column by column in runs."""
    stays = [[0, *(np.flatnonzero(~out[a:b]) + 1), b - a + 1] for a, b in itertools.pairwise(first)]
    return sum(square[j][a, b - 1] for j, of in enumerate(stays) for a, b in itertools.pairwise(of))


@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("share", [0, 0.3])
@pytest.mark.parametrize("seed", range(30))
def test_no_choice_of_cuts_costs_less_than_was_paid(seed, share, runs):
    rng = np.random.default_rng(seed)
    n, n_rows, price = 8, 12, 7
    first, states = np.array([0, 5, 8]), np.full(n, OPEN, np.int8)
    # Every two intervals that meet cost something: with ``runs`` all in a run, else only neighbours.
    meet = [np.triu(rng.integers(0, 20, (m, m)) * rng.integers(0, 2, (m, m)), 1) for m in (6, 4)]
    meet = [of if runs else np.triu(of) * (np.arange(len(of)) == np.arange(len(of))[:, None] + 1) for of in meet]
    squares = np.array([0, 36, 52])
    square = [
        np.array([[of[a : b + 1, a : b + 1].sum() for b in range(len(of))] for a in range(len(of))]) for of in meet
    ]
    costs = np.concatenate([np.diagonal(of, 1) for of in square])
    counts = rng.integers(1, 4, n_rows)
    excludes = np.triu(rng.random((n, n)) < 0.3 - 0.2 * (share > 0), 1)
    excludes |= excludes.T
    lists = {(u, v): np.flatnonzero(rng.random(n_rows) < share * rng.random()) for u in range(n) for v in range(u, n)}
    rows, n_listed = np.zeros((n, n, n_rows), np.int32), np.zeros((n, n), np.int64)
    for (u, v), of in lists.items():
        rows[u, v, : len(of)], n_listed[u, v] = of, len(of)
    number = np.full(n_rows, -1)
    tail = np.arange(n)
    *packed, sizes = pack_lists(tail, excludes, rows, n_listed, counts, number)
    assert (number == -1).all()
    prices = price * sizes
    budget, left = prices.copy(), np.zeros(n, np.int64)
    paid = pay_conflicts(tail, excludes, costs, *packed, budget, left)
    flat = np.concatenate([of.ravel() for of in square])
    beyond, whole = gains_of_cuts(
        tail, excludes, costs, left, *packed, prices, budget, states, first, squares, flat
    )  # fmt: skip
    assert (left >= 0).all()
    assert (budget >= 0).all()
    least = math.inf
    for bits in itertools.product([False, True], repeat=n):
        out = np.array(bits)
        if not (excludes & ~out & ~out[:, None]).any():
            gone = {int(r) for (u, v), of in lists.items() if not (out[u] or out[v]) and not excludes[u, v] for r in of}
            total = joined_runs(square, first, out) + price * sum(counts[r] for r in gone)
            assert total >= paid + left[out].sum()
            assert (total >= paid + beyond[~out]).all()
            least = min(least, total)
        if share == 0:  # a cut costs exactly the runs of those that it excludes, less what they have paid
            for u in np.flatnonzero((excludes == out).all(axis=1)):
                assert beyond[u] == joined_runs(square, first, out) - (costs - left)[out].sum()
    if not runs:
        assert (beyond <= whole).all()
        assert paid * (2 if share == 0 else 3) >= least  # a maximal payment: what has nothing left is a choice


def test_a_cost_that_counting_does_not_confirm_proves_nothing():
    case = Case(
        (Column("a", {v: (v, "*") for v in "xy"}),), (("x",),) * 3 + (("y",),) * 3, ({"model": "k-anonymity", "k": 2},)
    )
    search = _SetEnumeration(problem_of(case, "discernibility"))
    both = np.ones(search.axis.n_values, np.bool_)
    assert search._cheaper(both, 18) == 18  # two classes of three
    assert search._cheaper(both, 17) > case.n**2
