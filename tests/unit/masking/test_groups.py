"""Groups of nearest records on tables small enough to be grouped by hand."""

import numpy as np
import pytest

from shoal.masking.groups import improve_groups, mdav_groups, univariate, v_mdav
from shoal.masking.points import Points


def line(*values):
    return Points.from_columns([np.array(values, np.float64)], n=len(values))


def together(group):
    """The groups as sets of records, whatever their numbers."""
    return {frozenset(np.flatnonzero(group == g).tolist()) for g in np.unique(group)}


def test_mdav_takes_the_farthest_with_its_nearest_and_the_farthest_from_it_with_its_own():
    # The mean is 5.8: 20 is farthest and takes 9 and 8; 0 is farthest from 20 and takes 1 and 2; 3, 4, 5 are left.
    assert together(mdav_groups(line(0, 1, 2, 3, 4, 5, 8, 9, 20), 3)) == {
        frozenset({8, 7, 6}),
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5}),
    }


def test_mdav_leaves_a_rest_of_less_than_2k_as_one_group():
    assert together(mdav_groups(line(0, 1, 2, 10, 11), 2)) == {frozenset({3, 4}), frozenset({0, 1, 2})}
    assert sorted(np.bincount(mdav_groups(line(0, 1, 2, 10, 11), 3)).tolist()) == [5]
    assert sorted(np.bincount(mdav_groups(line(*range(8)), 3)).tolist()) == [3, 5]


def test_v_mdav_lets_a_heap_grow_beyond_k_where_mdav_cuts_it():
    # Two heaps of four and k = 3: groups of fixed size must take a record of one heap into the other.
    heaps = line(0, 1, 2, 3, 100, 101, 102, 103)
    assert together(v_mdav(heaps, 3, gamma=1.1)) == {frozenset({0, 1, 2, 3}), frozenset({4, 5, 6, 7})}


def test_v_mdav_gives_who_is_left_over_to_the_group_of_the_nearest():
    assert together(v_mdav(line(0, 1, 2, 50, 60, 61, 62), 3, gamma=0.01)) == {
        frozenset({0, 1, 2}),
        frozenset({3, 4, 5, 6}),
    }


def test_what_is_left_over_does_not_make_a_group_of_2k():
    # {0, 1} grows to {0, 1, 2}, and 3, left alone, makes it four: two groups of two.
    found = together(v_mdav(line(0, 1, 2, 3, 100, 101), 2, gamma=1.1))
    assert found == {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}


def test_gamma_is_a_factor_of_distances_not_of_their_squares():
    # 2 is 1 from {0, 1} and 1.8 from the nearest else: it joins from γ = 1/1.8 on.
    values = line(0, 1, 2, 3.8, 3.9, 50, 51)
    apart = {frozenset({0, 1}), frozenset({2, 3, 4}), frozenset({5, 6})}
    joined = {frozenset({0, 1, 2}), frozenset({3, 4}), frozenset({5, 6})}
    assert together(v_mdav(values, 2, gamma=0.5)) == apart
    assert together(v_mdav(values, 2, gamma=0.6)) == joined


def test_univariate_makes_groups_of_different_size():
    assert together(univariate(np.array([10.0, 1, 11, 2, 12, 3, 13]), 3)) == {
        frozenset({1, 3, 5}),
        frozenset({0, 2, 4, 6}),
    }


def test_swaps_mend_what_greedy_groups_spoiled():
    points = line(0, 1, 2, 10, 11, 12)
    spoiled = np.array([0, 0, 1, 0, 1, 1])
    assert together(improve_groups(points, spoiled, 3)) == {frozenset({0, 1, 2}), frozenset({3, 4, 5})}


def test_moves_leave_k_behind():
    points = line(0, 1, 2, 9, 10, 11, 12)
    spoiled = np.array([0, 0, 0, 0, 1, 1, 1])
    assert together(improve_groups(points, spoiled, 3)) == {frozenset({0, 1, 2}), frozenset({3, 4, 5, 6})}
    kept = improve_groups(line(0, 1, 9), np.array([0, 0, 0]), 3)
    assert kept.tolist() == [0, 0, 0]


def test_the_answer_of_improving_does_not_change_its_input():
    spoiled = np.array([0, 0, 1, 0, 1, 1])
    improve_groups(line(0, 1, 2, 10, 11, 12), spoiled, 3)
    assert spoiled.tolist() == [0, 0, 1, 0, 1, 1]


def test_categories_count_as_much_as_the_range_of_a_number():
    # By numbers alone 0 and 1 are neighbours; the category says otherwise.
    numbers = np.array([0.0, 1, 5, 6, 10])
    signs = np.array([0, 1, 0, 1, 1], np.int32)
    points = Points.from_columns([numbers], [signs], [1.0], n=5)
    assert not points.squared
    assert together(mdav_groups(points, 2)) == {frozenset({0, 2}), frozenset({1, 3, 4})}


def test_one_heavy_column_decides():
    a, b = np.array([0.0, 0, 1, 1]), np.array([0.0, 1, 0, 1])
    heavy = Points.from_columns([a, b], n=4, weights=[100.0, 1.0])
    assert together(mdav_groups(heavy, 2)) == {frozenset({0, 1}), frozenset({2, 3})}
    light = Points.from_columns([a, b], n=4, weights=[1.0, 100.0])
    assert together(mdav_groups(light, 2)) == {frozenset({0, 2}), frozenset({1, 3})}


@pytest.mark.parametrize("k", [1, 2, 5])
def test_equal_records_are_grouped_all_the_same(k):
    sizes = np.bincount(mdav_groups(line(*[7.0] * 5), k))
    assert sizes.min() >= k
    assert sizes.sum() == 5


def test_who_listens_can_end_it():
    def stop(share):
        assert 0 <= share <= 1
        raise KeyboardInterrupt

    for method in (mdav_groups, v_mdav):
        with pytest.raises(KeyboardInterrupt):
            method(line(*range(10)), 2, heard=stop)
