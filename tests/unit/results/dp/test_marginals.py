"""Marginals that agree, trees of pairs, and rows drawn along them; each beside a slow definition."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.results.dp.marginals import (
    MeasuredTable,
    closes_a_circle,
    consistent,
    dependence,
    drawn_rows,
    fit_to_margins,
    on_simplex,
    spanning_tree,
)

NUMBERS = st.integers(-30, 60)


@given(st.integers(1, 5), st.data())
def test_the_best_choice_each_time_is_a_maximum_spanning_tree(n_columns: int, data: st.DataObject) -> None:
    pairs = list(combinations(range(n_columns), 2))
    score = {pair: data.draw(st.integers(0, 9)) for pair in pairs}
    tree = spanning_tree(n_columns, lambda open_pairs: int(np.argmax([score[pair] for pair in open_pairs])))
    # By brute force: a set of n - 1 pairs without a circle is a tree.
    trees = [some for some in combinations(pairs, n_columns - 1) if not closes_a_circle(n_columns, some)]
    assert tuple(sorted(tree)) in trees
    assert sum(score[pair] for pair in tree) == max(sum(score[pair] for pair in some) for some in trees)
    for chosen in tree:
        assert closes_a_circle(n_columns, [*tree, chosen])


@given(st.lists(NUMBERS, min_size=1, max_size=6), st.integers(0, 40))
def test_the_nearest_point_of_the_simplex_is_nearer_than_any_other(values: list[int], total: int) -> None:
    found = on_simplex(np.array(values, np.float64), float(total))
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(total, abs=1e-9)
    # The projection x of v has (v - x) · (corner - x) <= 0 for all corners of the simplex.
    for corner in np.eye(len(values)) * total:
        assert (np.array(values) - found) @ (corner - found) <= 1e-6


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_noisy_tables_become_counts_that_agree(rows: int, columns: int, data: st.DataObject) -> None:
    draw: Any = data.draw
    shape = (rows, columns)
    table = np.array(draw(st.lists(NUMBERS, min_size=rows * columns, max_size=rows * columns)), float).reshape(shape)
    one = np.array(draw(st.lists(NUMBERS, min_size=rows, max_size=rows)), np.float64)
    other = np.array(draw(st.lists(NUMBERS, min_size=columns, max_size=columns)), np.float64)
    found = consistent([MeasuredTable(one, 2), MeasuredTable(other, 2)], {(0, 1): MeasuredTable(table, 3)})
    pair = found.paired[0, 1]
    assert (pair >= 0).all()
    slack = 1e-6 * max(found.total, 1)
    np.testing.assert_allclose(pair.sum(axis=1), found.single[0], atol=slack)
    assert found.single[0].sum() == pytest.approx(found.total, abs=slack)
    assert found.single[1].sum() == pytest.approx(found.total, abs=slack)
    n_rows = draw(st.integers(0, 50))
    codes = drawn_rows(found, n_rows, np.random.default_rng(0))
    assert codes.shape == (n_rows, 2)
    assert ((codes >= 0) & (codes < shape)).all()


def test_columns_are_met_as_well_when_the_table_has_no_empty_cells() -> None:
    table = np.array([[4.0, 1, 2], [3, 8, 1]])
    fitted = fit_to_margins(table, np.array([10.0, 9]), np.array([5.0, 5, 9]))
    np.testing.assert_allclose(fitted.sum(axis=0), [5, 5, 9], rtol=1e-8)
    np.testing.assert_allclose(fitted.sum(axis=1), [10, 9], rtol=1e-8)
    odds = table[0, 0] * table[1, 1] / table[0, 1] / table[1, 0]  # proportional fitting keeps the odds ratios
    assert fitted[0, 0] * fitted[1, 1] / fitted[0, 1] / fitted[1, 0] == pytest.approx(odds, rel=1e-6)


@given(st.lists(st.integers(0, 9), min_size=6, max_size=6), st.integers(0, 5))
def test_one_record_changes_the_score_of_a_pair_by_one_at_most(counts: list[int], at: int) -> None:
    rows, columns = np.array([7.0, 3]), np.array([4.0, 0, 5.5])
    before = np.array(counts).reshape(2, 3)
    after = before.copy()
    after.flat[at] += 1
    assert abs(dependence(after, rows, columns) - dependence(before, rows, columns)) <= 1


@given(st.floats(0, 1e19), st.floats(0, 1e19))
def test_so_it_is_where_a_tiny_budget_has_made_the_noise_huge(first: float, second: float) -> None:
    # Floats of that size cannot hold a change of 1: 2^53 and 2^53 + 2 are neighbours.
    before = np.array([[3.0, 5], [0, 9]])
    after = np.array([[4.0, 5], [0, 9]])
    rows, columns = np.array([first, 7.5]), np.array([second, 2.25])
    assert abs(dependence(after, rows, columns) - dependence(before, rows, columns)) <= 1


def test_counts_without_noise_are_dealt_exactly() -> None:
    # Three columns along a path: 0 - 1 - 2, and a fourth by itself.
    draw = np.random.default_rng(5)
    true = np.stack([draw.integers(0, n, 500) for n in (3, 2, 4, 2)], axis=1)
    true[:, 1] = (true[:, 0] + (draw.random(500) < 0.2)) % 2

    def counts(codes: Any, i: int, j: int) -> Any:
        found = np.zeros((codes[:, i].max() + 1, codes[:, j].max() + 1))
        np.add.at(found, (codes[:, i], codes[:, j]), 1)
        return found

    single = [MeasuredTable(np.bincount(true[:, i]).astype(float), 1e-6) for i in range(4)]
    pairs = {pair: MeasuredTable(counts(true, *pair), 1e-6) for pair in ((0, 1), (1, 2))}
    codes = drawn_rows(consistent(single, pairs), 500, np.random.default_rng(1))
    for i, j in pairs:
        np.testing.assert_array_equal(counts(codes, i, j), counts(true, i, j))
    np.testing.assert_array_equal(np.bincount(codes[:, 3]), np.bincount(true[:, 3]))


def test_fractions_are_rounded_up_as_often_as_they_say() -> None:
    found = consistent([MeasuredTable(np.array([0.75, 1.5, 0.75]), 1.0)], {})
    draw = np.random.default_rng(2)
    totals = sum(np.bincount(drawn_rows(found, 3, draw)[:, 0], minlength=3) for _ in range(2000))
    np.testing.assert_allclose(totals / 2000, [0.75, 1.5, 0.75], atol=0.06)  # five standard errors
