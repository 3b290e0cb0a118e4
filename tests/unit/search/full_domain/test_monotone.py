"""What the searches share that prune by verdicts."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import shoal
from definitions import Case, Column, Sensitive
from shoal.errors import PolicyError
from shoal.search import SEARCHES, Problem
from shoal.search.full_domain.k_minimal import minimal_nodes
from shoal.search.full_domain.lattice import below
from shoal.search.full_domain.monotone import (
    Tags,
    VerdictCache,
    costs_only_rise,
    from_node_down,
    from_node_up,
    node_at,
    nodes_of,
)
from shoal.search.problem import Terms
from strategies import models_of, problem_of, table_of

K = {"model": "k-anonymity", "k": 2}
COLUMN = Column("q", {"a": ("a", "x", "*"), "b": ("b", "x", "*"), "c": ("c", "y", "*"), "d": ("d", "y", "*")})


def problem(leaves="aabcd", asked=(K,), limit=0, objective="loss", **more):
    rows = tuple((leaf,) for leaf in leaves)
    values = tuple("xy"[i % 2] for i in range(len(rows)))
    paths = {"x": ("x", "*"), "y": ("y", "*")}
    sensitive = {"s": Sensitive("s", values, ("x", "y"), paths)}
    return problem_of(Case((COLUMN,), rows, tuple(asked), sensitive, limit=limit, **more), objective)


def test_a_node_is_looked_at_once_and_a_second_look_is_not_counted():
    asked = problem()
    looks = VerdictCache(asked, "flash")
    assert [looks.satisfies((level,)) for level in (0, 1, 2, 1, 0)] == [False, True, True, True, False]
    assert asked.n_evaluated == 3
    assert looks.again((1,)).node == (1,)
    assert asked.n_evaluated == 3


def test_a_verdict_tags_all_that_it_decides():
    tags = Tags(VerdictCache(problem(), "flash"))
    assert tags.check((1,))
    assert tags.state.tolist() == [0, 1, 1]
    assert not tags.check((0,))
    assert tags.state.tolist() == [-1, 1, 1]
    assert tags.minimal() == [(1,)]
    assert tags.verdicts.problem.n_evaluated == 2


def test_minimal_nodes_lie_above_no_other_in_any_column():
    rows = tuple((a, b) for a in "ac" for b in "ac")
    other = Column("p", COLUMN.paths)
    tags = Tags(VerdictCache(problem_of(Case((COLUMN, other), rows, (K,))), "ola"))
    for node in [(1, 1), (0, 2), (2, 0)]:
        tags.check(node)
    assert tags.state.tolist() == [[-1, -1, 1], [-1, -1, 1], [1, 1, 1]]
    assert tags.minimal() == [(0, 2), (2, 0)]


def test_heights_count_the_steps_that_are_left_and_distances_the_levels_of_the_whole_hierarchy():
    # To hide p takes one step, of three levels; to hide q two steps, of one each. Either will do.
    long = Column("p", {x: (x, f"{x}1", f"{x}2", "*") for x in "ac"})
    case = Case((long, COLUMN), tuple((a, b) for a in "ac" for b in "ac"), (K,))
    table = table_of(case)
    table = replace(table, hierarchies=(table.hierarchies[0].selected([0, 3]), table.hierarchies[1]))
    lowest = SEARCHES["samarati"](Problem(table, models_of(case), Terms(objective="height")))
    assert (lowest.node, lowest.levels, lowest.proved) == ((1, 0), {"p": 3, "q": 0}, False)
    nearest = SEARCHES["k_minimal"](Problem(table, models_of(case), Terms(objective="height")))
    assert (nearest.node, nearest.levels, nearest.proved) == ((0, 2), {"p": 0, "q": 2}, True)
    assert [one.relative for one in minimal_nodes(Problem(table, models_of(case)))] == [1, 1]


@pytest.mark.parametrize("algorithm", ["samarati", "k_minimal"])
def test_with_weights_the_least_height_is_not_the_least_objective(algorithm):
    case = Case((COLUMN, Column("p", COLUMN.paths)), (("a", "a"), ("b", "b"), ("b", "a"), ("a", "b")), (K,))
    weighed = Problem(table_of(case), models_of(case), Terms(objective="height", weights=[5, 1]))
    recoding = SEARCHES[algorithm](weighed)
    assert recoding.node == (0, 1)
    assert not recoding.proved


def test_the_slices_above_and_beneath_a_node_are_the_nodes_so_ordered():
    shape = (2, 3, 4)
    everything = nodes_of(np.ones(shape, np.bool_))
    assert [node_at(i, shape) for i in range(24)] == everything
    for node in everything:
        for where, holds in ((from_node_up(node), lambda a, b: below(b, a)), (from_node_down(node), below)):
            marked = np.zeros(shape, np.bool_)
            marked[where] = True
            assert nodes_of(marked) == [other for other in everything if holds(other, node)]


@pytest.mark.parametrize(
    ("limit", "objective", "rises"), [(0, "loss", True), (1, "loss", False), (1, "height", True), (1, "entropy", False)]
)
def test_costs_only_rise_where_suppression_is_ruled_out_or_free(limit, objective, rises):
    assert costs_only_rise(problem(limit=limit, objective=objective)) == rises


def test_where_records_may_be_suppressed_a_node_above_a_minimal_one_can_cost_less():
    # With one record to go the ground of a column does, at a whole record; its next level costs less than that.
    leaves = "aaab" + "ccdd" * 3
    found = {name: SEARCHES[name](problem(leaves, limit=1, objective="arx-loss")) for name in ("ola", "flash")}
    assert (found["ola"].node, found["ola"].proved) == ((0,), False)
    assert found["flash"].proved
    best = SEARCHES["exhaustive"](problem(leaves, limit=1, objective="arx-loss"))
    assert found["flash"].node == best.node


@pytest.mark.parametrize(
    ("asked", "more", "reason", "hint"),
    [
        (
            ({"model": "entropy-l-diversity", "l": 2},),
            {"limit": 1},
            "if records may be suppressed",
            "max_suppression",
        ),
        (({"model": "entropy-l-diversity", "l": 2},), {"wildcard": True}, "entropy", "use algorithm 'optimal'$"),
        (
            ({"model": "delta-disclosure", "delta": 1.0, "absent": "ignore"},),
            {},
            "disclosure",
            "use algorithm 'optimal'$",
        ),
    ],
)
@pytest.mark.parametrize("algorithm", ["samarati", "k_minimal", "incognito", "ola", "flash"])
def test_a_refusal_names_the_model_and_what_helps(algorithm, asked, more, reason, hint):
    with pytest.raises(PolicyError, match=reason) as raised:
        SEARCHES[algorithm](problem(asked=(K, *asked), **more))
    assert f"algorithm '{algorithm}'" in raised.value.message
    assert "2-anonymity" not in raised.value.message
    with pytest.raises(AssertionError, match=hint):
        raise AssertionError(raised.value.hint)


def wide(n_columns, algorithm, **column):
    table = pa.table({f"q{j}": ["a", "b"] for j in range(n_columns)})
    fields = {
        "columns": {f"q{j}": {"role": "quasi", **column} for j in range(n_columns)},
        "require": [{"model": "k-anonymity", "k": 2 if not column else 1}],
        "release": {"algorithm": algorithm},
    }
    return shoal.anonymize(table, shoal.Policy.of(fields))


@pytest.mark.parametrize("algorithm", ["k_minimal", "incognito", "ola", "flash"])
@pytest.mark.parametrize(("n_columns", "column"), [(25, {}), (65, {"max_level": 0})])
def test_a_lattice_too_large_to_be_held_is_declined(algorithm, n_columns, column):
    with pytest.raises(PolicyError, match=f"over {n_columns} columns are too many"):
        wide(n_columns, algorithm, **column)


@pytest.mark.parametrize("algorithm", ["samarati", "k_minimal", "incognito", "ola", "flash"])
def test_columns_with_one_level_leave_nothing_to_choose(algorithm):
    release = wide(64, algorithm, max_level=0)
    assert set(release.levels.values()) == {0}
    assert release.recoding.n_evaluated == 1
