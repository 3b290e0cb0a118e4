"""k_optimize against trying every set of starting values, in plain Python where the loss is the paper's."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from definitions import Case, Column, Sensitive
from examples import examples
from shoal.errors import InfeasibleError, PolicyError
from shoal.search.cells.classes import require_class_by_class
from shoal.search.cuts.cut_kernels import splits
from shoal.search.cuts.cuts import judged_classes, recoding_of_cuts
from shoal.search.cuts.k_optimize import _SetEnumeration, k_optimize
from small_cuts import check_against_every_cut, loss_in, random_case
from strategies import KINDS, OBJECTIVES, cases, problem_of


@pytest.fixture
def from_nothing(monkeypatch):
    """No climb to begin with: the tree itself has to find the answer."""
    monkeypatch.setattr(
        _SetEnumeration, "climb_and_kick", lambda search: search.offer(np.zeros(search.axis.n_values, np.bool_))
    )


@pytest.mark.usefixtures("from_nothing")
@pytest.mark.parametrize("block", range(8))
def test_no_cut_has_less_discernibility(block):
    check_against_every_cut(range(150 * block, 150 * (block + 1)))


def best_of_all(problem):
    """The least loss of all sets, each judged and priced as a recoding."""
    axis = _SetEnumeration(problem).axis
    least = math.inf
    for bits in itertools.product([False, True], repeat=axis.n_values):
        pieces = axis.pieces(np.array(bits, np.bool_))
        if judged_classes(problem, pieces).feasible:
            least = min(least, loss_in(problem, recoding_of_cuts(problem, pieces, "every")))
    return least


@pytest.mark.usefixtures("from_nothing")
@examples(150)
@given(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2), st.sampled_from(OBJECTIVES), st.data())
def test_no_cut_has_less_of_any_loss_under_any_models(kinds, objective, data):
    case = data.draw(cases(kinds, max_rows=10))
    problem = problem_of(case, objective)
    try:
        require_class_by_class(problem, "k_optimize")
    except PolicyError:
        assume(False)
    assume(_SetEnumeration(problem).axis.n_values <= 6)
    least = best_of_all(problem)
    if least == math.inf:
        with pytest.raises(InfeasibleError):
            k_optimize(problem)
        return
    answer = k_optimize(problem)
    assert answer.proved == (case.limit == 0 or not case.keep)  # stars may pass with more than those that fail
    assert loss_in(problem, answer) == pytest.approx(least, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_set_between_head_and_tail_is_below_the_bound_of_a_node(objective):
    rng = np.random.default_rng(7)
    met = 0
    for seed in range(120):
        search = _SetEnumeration(problem_of(random_case(seed), objective))
        n = search.axis.n_values
        head = rng.random(n) < 0.2
        tail = ~head & (rng.random(n) < 0.9)
        sums, n_lost, _ = search._look(head, tail)
        bound = search.cost.bound(sums[None], np.array([n_lost]))[0]
        for _ in range(8):
            seen = search.choices.evaluated(head | (tail & (rng.random(n) < rng.random())))
            if seen.feasible:
                assert seen.value >= bound - 1e-9 * max(1, abs(bound)), seed
                assert seen.n_suppressed >= n_lost
                met += 1
    assert met > 200


@pytest.mark.usefixtures("from_nothing")
def test_below_a_class_that_fails_a_convex_model_a_part_of_it_may_pass():
    # Only a is half x, half y, and with b or c it no longer is: a alone can be kept, below a top that fails.
    records = [*["ax", "ay"], *["bx"] * 4, *["cx"] * 2]
    column = Column("q", {leaf: (leaf, "*") for leaf in "abc"})
    paths = {"x": ("x", "*"), "y": ("y", "*")}
    sensitive = Sensitive("s", tuple(record[1] for record in records), ("x", "y"), paths)
    asked = ({"model": "k-anonymity", "k": 2}, {"model": "entropy-l-diversity", "l": 2})
    for limit in (6, 8):
        case = Case((column,), tuple((record[0],) for record in records), asked, {"s": sensitive}, None, limit)
        problem = problem_of(case, "loss")
        answer = k_optimize(problem)
        assert answer.proved
        assert loss_in(problem, answer) == pytest.approx(best_of_all(problem))
        assert answer.parts(problem.table).n_suppressed == 6


def test_records_that_are_suppressed_are_a_class_of_the_average():
    # Two classes of two and one record that may go: with the stars three classes, more than there are pairs for.
    column = Column("a", {leaf: (leaf, "*") for leaf in "xyz"})
    case = Case((column,), tuple((leaf,) for leaf in "xxyyz"), ({"model": "k-anonymity", "k": 2},), {}, None, 1)
    problem = problem_of(case, "average-class")
    assert loss_in(problem, k_optimize(problem)) == pytest.approx(5 / 3)


@pytest.mark.parametrize("seed", range(40))
def test_the_kernel_splits_as_its_twin_does(seed):
    rng = np.random.default_rng(seed)
    n, q, wide = 30, 3, 6
    codes = rng.integers(0, wide, (n, q)).astype(np.int32)
    counts = rng.integers(1, 5, n)
    extra = rng.integers(0, 9, (n, 2)).astype(np.float64)
    cut = rng.integers(1, wide, q)  # the head cuts each column once
    outer = codes >= cut
    _, inside = np.unique(outer, axis=0, return_inverse=True)
    stays = rng.random(inside.max() + 1) < 0.8
    place = np.arange(wide)
    low = np.array([np.where(place < c, 0, c) for c in cut])
    high = np.array([np.where(place < c, c - 1, wide - 1) for c in cut])
    entry = np.array([np.where((place == 0) | (place == c), -1, j * wide + place) for j, c in enumerate(cut)])
    order = np.argsort(inside, kind="stable")
    starts = np.searchsorted(inside[order], np.arange(inside.max() + 2))
    least = 6
    found = splits(order, starts, codes, counts, extra, stays, low, high, entry, least, q * wide)
    expected = [np.zeros(q * wide, int), np.zeros((q * wide, 2)), np.zeros(q * wide, int), np.zeros(q * wide, int)]
    for j, at in itertools.product(range(q), range(wide)):
        if entry[j, at] < 0:
            continue
        for h in np.flatnonzero(stays):
            rows = np.flatnonzero(inside == h)
            if not low[j, at] <= codes[rows[0], j] <= high[j, at]:
                continue
            sides = [rows[codes[rows, j] < at], rows[codes[rows, j] >= at]]
            if not all(map(len, sides)):
                continue
            expected[2][entry[j, at]] += 1
            gone = [side for side in sides if counts[side].sum() < least]
            expected[3][entry[j, at]] += len(gone) < 2
            for side in gone:
                expected[0][entry[j, at]] += counts[side].sum()
                expected[1][entry[j, at]] += extra[side].sum(axis=0)
    for mine, theirs in zip(found, expected, strict=True):
        assert np.array_equal(mine, theirs)
