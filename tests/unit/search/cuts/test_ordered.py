"""Ordered domains: what comes after what, and what an interval is called."""

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.search import Problem
from shoal.search.cuts.choices import Choices
from shoal.search.cuts.cuts import released_values
from shoal.search.cuts.ordered import Axis, ordered_domain
from shoal.search.problem import Terms


def counted(values, **column):
    policy = shoal.Policy.of(
        {"columns": {"q": {"role": "quasi", **column}}, "require": [{"model": "k-anonymity", "k": 1}]}
    )
    return LocalEngine.of(pa.table({"q": pa.array(values, pa.string())})).count(policy).table


def row(table):
    domain = ordered_domain(table, 0)
    return [[domain.hierarchy.leaves[leaf] for leaf in of] for of in domain.values]


def test_numbers_lie_as_numbers_do_and_null_is_last():
    table = counted(["9", None, "10", "100", "-3"], hierarchy={"intervals": [10]})
    assert row(table) == [["-3"], ["9"], ["10"], ["100"], [None]]


def test_values_that_level_0_joins_are_one():
    table = counted(["9", "91", "90", "95"], hierarchy={"intervals": [10], "top": 90})
    assert row(table) == [["9"], ["90", "91", "95"]]


def test_the_values_under_a_label_are_neighbours_whatever_the_order_of_the_tree():
    tree = {"tree": {"*": ["a", {"g": ["b", "c"]}, {"h": ["d", "e"]}]}}
    assert row(counted(["e", "b", "d", "a", "c"], hierarchy=tree)) == [["a"], ["b"], ["c"], ["d"], ["e"]]
    left = counted(["11", "21", "12", "22"], hierarchy={"mask": "left"})  # those that end alike
    assert row(left) == [["11"], ["21"], ["12"], ["22"]]


def test_only_values_that_occur_are_in_the_row():
    assert row(counted(["a", "c"], hierarchy={"tree": {"*": ["a", "b", "c"]}})) == [["a"], ["c"]]


def test_values_without_an_entry_come_before_null():
    table = counted(["a", "?", None, "b", "!"], hierarchy={"tree": {"*": ["a", "b"]}}, uncovered="suppress")
    assert row(table) == [["a"], ["b"], ["*"], [None]]


def test_no_two_intervals_of_a_column_look_alike():
    # Values without an entry are * from the start, and so is whatever is joined with null.
    table = counted(["a", "?", None, "b", "!"], hierarchy={"tree": {"*": ["a", "b"]}}, uncovered="suppress")
    problem = Problem(table, (), Terms(limit=0))
    axis = Axis(table)
    for bits in np.ndindex(2, 2, 2):
        pieces = axis.pieces(np.array(bits, np.bool_))
        ids = released_values(problem, pieces)[1][0][table.codes[:, 0]]
        assert len(set(ids.tolist())) == 1 + sum(bits)


@pytest.mark.parametrize(
    ("first", "last", "leaves"),
    [
        (0, 0, ["a"]),  # a value is itself
        (0, 1, ["a", "b", "x"]),  # all of g that occurs: g
        (1, 2, ["b", "c"]),  # part of g, part of h: a set of what occurs
        (2, 3, ["c", "d"]),
        (0, 3, ["a", "b", "x", "c", "d"]),  # all that occurs: the top
    ],
)
def test_an_interval_with_the_same_values_of_the_data_as_a_label_is_that_label(first, last, leaves):
    tree = {"tree": {"*": {"g": ["a", "b", "x"], "h": ["c", "d"]}}}
    domain = ordered_domain(counted(["a", "b", "c", "d"], hierarchy=tree), 0)
    assert [domain.hierarchy.leaves[leaf] for leaf in domain.leaves(first, last)] == leaves


def test_a_column_that_is_shown_or_hidden_is_one_value_of_the_list():
    table = counted(["11", "12", "21"], hierarchy={"mask": "right"}, only="suppress")
    axis = Axis(table)
    assert axis.n_values == 1
    assert axis.intervals(np.array([False]))[1] == [[(0, 2)]]
    assert axis.intervals(np.array([True]))[1] == [[(0, 0), (1, 1), (2, 2)]]
    assert Axis(counted(["11", "12", "21"], hierarchy={"mask": "right"})).n_values == 2


def test_a_node_of_the_lattice_is_a_set_of_values():
    table = counted(["11", "12", "21"], hierarchy={"mask": "right"})
    axis = Axis(table)
    assert [axis.of_node((level,)).tolist() for level in range(3)] == [[True, True], [False, True], [False, False]]


@pytest.mark.parametrize("objective", ["loss", "arx-loss", "precision", "height", "entropy", "ambiguity"])
def test_a_finer_interval_never_costs_more_than_the_least_of_those_around_it(objective):
    # Labels that stand for absent values cost more than wider sets: the least price must know.
    tree = {"tree": {"*": {"g": ["a", "b", "x", "y", "z"], "h": ["c", "d"]}}}
    problem = Problem(counted(["a", "b", "c", "d"], hierarchy=tree), (), Terms(objective=objective))
    cost = Choices(problem).cost
    for first in range(4):
        for last in range(first, 4):
            least = cost._price(0, (first, last), lower_bound=True)
            around = [cost._price(0, (a, b), lower_bound=False) for a in range(first + 1) for b in range(last, 4)]
            assert least <= min(around) + 1e-12
