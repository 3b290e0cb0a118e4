"""What Aggarwal and others show about a graph of distances: the bound of the forest, and that it cannot tell more."""

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.models.size import KAnonymity
from shoal.search import SEARCHES, Problem
from shoal.search.cells.nearest import Metric
from shoal.tables.frequency import count_records


def problem(rows, k):
    rows = np.array(rows, np.int32)
    hierarchies = []
    for j, column in enumerate(rows.T):
        leaves = [str(value) for value in range(column.max() + 1)]
        hierarchies.append(Hierarchy.from_levels(f"c{j}", leaves, [leaves, ["*"] * len(leaves)]))
    columns = tuple(h.column for h in hierarchies)
    table, _ = count_records(columns, rows, {}, None, tuple(hierarchies), separately=True)
    return Problem(table, (KAnonymity(k=k),))


@pytest.mark.parametrize("k", [4, 6, 9])
def test_the_same_distances_may_cost_k_over_2_times_as_much(k):
    """k records, any two of which differ in two columns: one column each of its own, or two columns shared by all."""
    spread = problem(np.eye(k), k)
    shared = problem([[i, i] for i in range(k)], k)
    assert np.array_equal(np.sort(Metric(spread).matrix()), np.sort(Metric(shared).matrix()))
    costs = []
    for table in (spread, shared):
        answer = SEARCHES["forest"](table)
        parts = answer.parts(table.table)
        hidden = [np.array(v.labels, object)[parts.codes[:, j]] == "*" for j, v in enumerate(answer.released)]
        costs.append(int(parts.counts @ np.sum(hidden, axis=0)))
    assert costs == [k * k, 2 * k]


def test_a_forest_of_generalized_cells_climbs_as_far_as_common_ancestors():
    """Ages in tens and in all, k = 2: neighbours share a decade, and sex is hidden where it differs."""
    frame = pd.DataFrame({"age": ["21", "24", "38", "31", "33"], "sex": ["f", "m", "m", "m", "m"]})
    fields = {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "sex": {"role": "quasi"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": "forest_generalize"},
    }
    table = shoal.anonymize(frame, shoal.Policy.of(fields)).table
    assert sorted(zip(table["age"], table["sex"], strict=True)) == [("2*", "*")] * 2 + [("3*", "m")] * 3
    fields["release"]["algorithm"] = "forest"
    table = shoal.anonymize(frame, shoal.Policy.of(fields)).table
    assert set(table["age"]) == {"*"}  # either an age is released as it is, or it is hidden
    assert shoal.measure(table, quasi=["age", "sex"])["k"] >= 2
