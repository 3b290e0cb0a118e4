"""The loops that judge histograms against plain definitions, linear programs and listing all parts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from examples import examples
from shoal.models.kernels import (
    GAPS,
    entropies,
    equal_distances,
    heads_and_tails,
    line_distances,
    tree_distances,
    within_caps,
)
from shoal.models.parts import most_in_subtrees, most_on_line, most_recursive, most_under_caps, most_with_entropy

# In one worker: the last test asks what all have run.
pytestmark = [pytest.mark.usefixtures("both_ways"), pytest.mark.xdist_group("model kernels")]


def sparse(rows):
    """Rows of counts as starts, values and counts."""
    rows = np.array(rows)
    starts = np.concatenate([[0], np.cumsum((rows > 0).sum(axis=1))])
    return starts, np.nonzero(rows)[1].astype(np.int32), rows[rows > 0].astype(np.int64)


def classes(n_values, most=40):
    """Some classes of at least one record each, over the same values."""
    row = st.lists(st.integers(0, most), min_size=n_values, max_size=n_values).filter(any)
    return st.lists(row, min_size=1, max_size=4)


def every(rows):
    """All classes, to be bounded."""
    return np.arange(len(rows))


# Also so many values that sorting begins with larger distances.
@st.composite
def some_classes(draw, sizes=(1, 2, 5, GAPS[3] + 6)):
    return draw(classes(draw(st.sampled_from(sizes))))


def entropy_of(counts):
    n = sum(counts)
    return -sum(r / n * math.log(r / n) for r in counts if r)


@examples(60)
@given(some_classes())
def test_entropy(rows):
    starts, _, counts = sparse(rows)
    np.testing.assert_allclose(entropies(starts, counts), [entropy_of(row) for row in rows], atol=1e-12)


@examples(60)
@given(some_classes(), st.floats(1, 12))
def test_the_part_with_enough_entropy_is_the_largest_that_a_cut_leaves(rows, l):
    starts, _, counts = sparse(rows)
    found = most_with_entropy(starts, counts, every(rows), math.log(l) - 1e-12)
    for most, row in zip(found, rows, strict=True):
        # Cutting to an integer height, and one more record for some of the values that are cut.
        largest = 0
        for height in range(max(row) + 1):
            cut = [min(r, height) for r in row]
            for i in itertools.chain([None], (i for i, r in enumerate(row) if r > height)):
                if i is not None:
                    cut[i] += 1
                if any(cut) and entropy_of(cut) >= math.log(l) - 1e-12:
                    largest = max(largest, sum(cut))
        assert largest <= most + 1e-9
        assert most <= largest + len(row) + 1  # between two such cuts there is no more room


@examples(60)
@given(some_classes(), st.integers(1, 7))
def test_head_and_tail(rows, l):
    starts, _, counts = sparse(rows)
    heads, tails = heads_and_tails(starts, counts, l)
    ranked = [sorted((r for r in row if r), reverse=True) for row in rows]
    assert heads.tolist() == [row[0] for row in ranked]
    assert tails.tolist() == [sum(row[l - 1 :]) for row in ranked]


@examples(60)
@given(some_classes(), st.sampled_from([0.3, 0.5, 1.0, 1.5, 2.0, 4.0]), st.integers(1, 7))
def test_the_recursive_part_is_the_largest_that_a_cut_leaves(rows, c, l):
    starts, _, counts = sparse(rows)
    found = most_recursive(starts, counts, every(rows), c, l)
    for most, row in zip(found, rows, strict=True):
        cuts = ([min(r, height) for r in row] for height in range(1, max(row) + 1))
        passing = (sum(cut) for cut in cuts if max(cut) < c * sum(sorted(cut, reverse=True)[l - 1 :]) * (1 + 1e-11))
        assert most == max(passing, default=0)


@examples(60)
@given(some_classes(), st.data())
def test_the_part_under_caps_is_what_a_linear_program_finds(rows, data):
    m = len(rows[0])
    caps = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.05, 0.2, 0.5, 0.9, 1.3]), min_size=m, max_size=m)))
    share = data.draw(st.sampled_from([0.3, 0.8, 1.0]))
    found = most_under_caps(*sparse(rows), every(rows), caps, share)
    for most, row in zip(found, rows, strict=True):
        # Of a part of n records, at least share·n must be explained by s ≤ r, s ≤ n·caps.
        program = linprog(
            [*[0.0] * m, -1.0],
            A_ub=[*np.column_stack([np.eye(m), -np.minimum(caps, 1)]), [*[-1.0] * m, share]],
            b_ub=np.zeros(m + 1),
            bounds=[*((0, r) for r in row), (0, sum(row))],
        )
        assert most == pytest.approx(-program.fun, abs=1e-6)


def line(data, m):
    gaps = np.array(data.draw(st.lists(st.sampled_from([1.0, 2.0, 5.0]), min_size=m - 1, max_size=m - 1)))
    places = np.array(data.draw(st.permutations(range(m))))
    return places, gaps / gaps.sum()


@examples(40)
@given(some_classes(sizes=(2, 5, 9)), st.data())
def test_distances_on_a_line_and_the_part_within_them(rows, data):
    m = len(rows[0])
    places, gaps = line(data, m)
    whole = np.sum(rows, axis=0) + data.draw(st.integers(0, 3))
    q = np.empty(m)
    q[places] = whole / whole.sum()
    t = data.draw(st.sampled_from([0.0, 0.02, 0.1, 0.3]))
    given_rows = sparse(rows)
    found = line_distances(*given_rows, places, q, gaps)
    most = most_on_line(*given_rows, every(rows), places, q, gaps, t + 1e-12)
    for row, apart, bound in zip(rows, found, most, strict=True):
        p = np.empty(m)
        p[places] = np.array(row)
        assert apart == pytest.approx(gaps @ np.abs(np.cumsum(p / p.sum() - q))[:-1], abs=1e-12)
        # s ≤ r with Σ_i gaps_i d_i ≤ t n, where d_i ≥ |S_i − n Q_i|
        up_to = np.tril(np.ones((m, m)))[:-1] - np.cumsum(q)[:-1, None]
        left = np.vstack(
            [
                np.hstack([up_to, -np.eye(m - 1)]),
                np.hstack([-up_to, -np.eye(m - 1)]),
                [*[-t] * m, *gaps],
            ]
        )
        program = linprog(
            [*[-1.0] * m, *[0.0] * (m - 1)],
            A_ub=left,
            b_ub=np.zeros(len(left)),
            bounds=[*((0, r) for r in p), *[(0, None)] * (m - 1)],
        )
        assert -program.fun - 1e-6 <= bound <= sum(row) + 1e-9
        if t == 0:
            continue
        if apart <= t:
            assert bound == pytest.approx(sum(row))


def test_cuts_see_what_the_mean_does_not():
    # All records at both ends have the mean of the whole table, but are far from it.
    q = np.array([0.1, 0.8, 0.1])
    given_rows = sparse([[10, 1, 10]])
    assert most_on_line(*given_rows, every([0]), np.arange(3), q, np.full(2, 0.5), 0.1)[0] < 10


@examples(40)
@given(some_classes(sizes=(4,)), st.data())
def test_distances_in_a_tree_and_the_part_within_them(rows, data):
    # Two subtrees of two values each; a third one, 2, of which none occurs.
    codes = np.array([[0, 1, 3, 4], [0, 0, 1, 1], [0, 0, 0, 0]], np.int32)
    whole = np.sum(rows, axis=0) + 1
    q = whole / whole.sum()
    t = data.draw(st.sampled_from([0.0, 0.05, 0.2]))
    given_rows = sparse(rows)
    found = tree_distances(*given_rows, codes, q)
    most = most_in_subtrees(*given_rows, every(rows), codes, q, t + 1e-12)
    for row, apart, bound in zip(rows, found, most, strict=True):
        extra = np.array(row) / sum(row) - q
        between = abs(extra[:2].sum())
        within = sum((abs(pair).sum() - abs(pair.sum())) / 2 for pair in (extra[:2], extra[2:]))
        assert apart == pytest.approx(between + within / 2, abs=1e-12)
        if apart <= t:
            assert bound == pytest.approx(sum(row))
        assert bound <= sum(row) + 1e-9


@examples(20)
@given(st.lists(st.integers(0, 4), min_size=4, max_size=4).filter(any), st.sampled_from([0.05, 0.2]))
def test_no_part_within_a_tree_is_larger_than_its_bound(row, t):
    codes = np.array([[0, 1, 3, 4], [0, 0, 1, 1], [0, 0, 0, 0]], np.int32)
    q = np.array([0.4, 0.3, 0.2, 0.1])
    parts = list(itertools.product(*(range(r + 1) for r in row)))[1:]
    within = tree_distances(*sparse(parts), codes, q) <= t
    largest = max((sum(part) for part, near in zip(parts, within, strict=True) if near), default=0)
    assert largest <= most_in_subtrees(*sparse([row]), every([row]), codes, q, t + 1e-12)[0] + 1e-6


@examples(40)
@given(some_classes())
def test_equal_distances(rows):
    whole = np.sum(rows, axis=0)
    rows = [[r if n else 0 for r, n in zip(row, whole, strict=True)] for row in rows]
    q = whole / whole.sum()
    expected = [np.abs(np.array(row) / sum(row) - q).sum() / 2 for row in rows]
    np.testing.assert_allclose(equal_distances(*sparse(rows), q), expected, atol=1e-12)


@examples(40)
@given(some_classes(), st.data())
def test_shares_within_caps(rows, data):
    m = len(rows[0])
    caps = np.array(data.draw(st.lists(st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 1.0]), min_size=m, max_size=m)))
    expected = [all(r / sum(row) <= cap for r, cap in zip(row, caps, strict=True)) for row in rows]
    assert within_caps(*sparse(rows), caps).tolist() == expected


@examples(20)
@given(some_classes(sizes=(5,)), st.data())
def test_a_bound_of_some_classes_is_that_of_all(rows, data):
    starts, values, counts = sparse(rows)
    some = np.array(data.draw(st.lists(st.sampled_from(range(len(rows))), max_size=5)), np.int64)
    q, codes = np.full(5, 0.2), np.array([range(5), [0, 0, 1, 1, 1], [0] * 5], np.int32)
    bounds = [
        lambda which: most_with_entropy(starts, counts, which, math.log(3)),
        lambda which: most_recursive(starts, counts, which, 1.5, 2),
        lambda which: most_under_caps(starts, values, counts, which, 1.5 * q, 1.0),
        lambda which: most_on_line(starts, values, counts, which, np.arange(5), q, np.full(4, 0.25), 0.1),
        lambda which: most_in_subtrees(starts, values, counts, which, codes, q, 0.1),
    ]
    for bound in bounds:
        assert bound(some).tolist() == bound(every(rows))[some].tolist()


def test_the_loops_that_may_be_interpreted_were_run_both_ways(both_ways):
    assert both_ways >= {"_entropies", "_equal_distances", "_heads_and_tails", "within_caps"}
