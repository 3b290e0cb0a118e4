"""Recodings become rows: cuts everywhere alike, cells part by part, equals dealt out by a hash."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.engines.base import Counted
from shoal.engines.local import LocalEngine
from shoal.recoding import Cells, Parts
from shoal.search import Problem
from shoal.search.cells.classes import Partition, merge_equal_parts, recoding_of_partition, released
from shoal.search.cuts import cuts as search_cuts
from shoal.search.losses.cells import losses
from shoal.tables.values import Values

PEOPLE = pd.DataFrame({
    "age": ["21", "21", "21", "21", "34", "35", None],
    "sex": ["f", "f", "f", "f", "m", "f", "m"],
    "ill": ["a", "a", "b", "b", "c", "c", "c"],
    "note": ["1", "2", "3", "4", "5", "6", "7"],
})  # fmt: skip
ENGINE = LocalEngine.of(PEOPLE)


def policy(cells: str = "hierarchy", **release: object) -> shoal.Policy:
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}, "cells": cells},
            "sex": {"role": "quasi"},
            "ill": {"role": "sensitive"},
            "note": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 1}],
        "release": release,
    })  # fmt: skip


def problem_of(asked: shoal.Policy, *, apart: bool = False) -> tuple[Counted, Problem]:
    counted = ENGINE.count(asked, apart=apart)
    return counted, Problem.of(counted.table, asked)


def test_counted_apart_every_row_has_one_sensitive_value() -> None:
    _, together = problem_of(policy())
    _, apart = problem_of(policy(), apart=True)
    assert together.table.n_classes == 4
    assert apart.table.n_classes == 5
    assert (np.diff(apart.table.sensitive["ill"].starts) == 1).all()
    assert apart.table.n_records == together.table.n_records == 7


def test_classes_are_released_as_what_covers_them() -> None:
    counted, problem = problem_of(policy())
    by_tuple = {tuple(map(int, codes)): i for i, codes in enumerate(problem.table.codes)}
    assert len(by_tuple) == 4
    ages = problem.table.hierarchies[0].leaves
    class_of = np.array([0 if ages[codes[0]] in ("34", "35") else 1 for codes in problem.table.codes])
    answer = recoding_of_partition(problem, Partition.of_rows(problem.table, class_of), "by hand")
    table = ENGINE.apply(counted, answer, policy()).table.to_pandas()
    assert Counter(zip(table["age"], table["sex"], strict=True)) == {("30-39", "*"): 2, ("*", "*"): 5}
    assert answer.levels == {"age": None, "sex": None}


@pytest.mark.parametrize(("cells", "text"), [("tight-range", "34-35"), ("tight-set", "34-35"), ("hierarchy", "30-39")])
def test_cells_are_written_as_the_policy_says(cells: str, text: str) -> None:
    asked = policy(cells)
    counted, problem = problem_of(asked)
    ages = problem.table.hierarchies[0].leaves
    class_of = np.array([0 if ages[codes[0]] in ("34", "35") else 1 for codes in problem.table.codes])
    answer = recoding_of_partition(problem, Partition.of_rows(problem.table, class_of), "by hand")
    assert text in ENGINE.apply(counted, answer, asked).table["age"].to_pylist()


def test_equal_records_part_ways_by_their_sensitive_values_and_counts() -> None:
    asked = policy()
    counted, problem = problem_of(asked, apart=True)
    table = problem.table
    (a,) = (i for i, v in enumerate(table.sensitive["ill"].values) if v == 0)
    (b,) = (i for i, v in enumerate(table.sensitive["ill"].values) if v == 1)
    others = [i for i in range(table.n_classes) if i not in (a, b)]
    # One of the two with each illness stays with its like, the others join the rest.
    partition = Partition(
        np.array([a, a, b, b, *others]),
        np.array([1, 1, 1, 1, *table.counts[others]]),
        np.array([0, 1, 0, 1, *[1] * len(others)]),
    )
    seen = partition.classes(table)
    assert seen.counts.tolist() == [2, 5]
    assert seen.sensitive["ill"].dense(0, 2).tolist() == [[1, 1, 0], [1, 1, 3]]
    answer = recoding_of_partition(problem, partition, "by hand")
    rows = ENGINE.apply(counted, answer, asked).table.to_pandas()
    kept = rows[rows["age"] == "21"]
    assert sorted(kept["ill"]) == ["a", "b"]
    assert len(rows) == 7
    again = LocalEngine.of(PEOPLE.sample(frac=1, random_state=3))
    counted = again.count(asked, apart=True)
    pd.testing.assert_frame_equal(again.apply(counted, answer, asked).table.to_pandas(), rows)


def test_a_row_with_several_sensitive_values_is_not_parted() -> None:
    _, problem = problem_of(policy())
    table = problem.table
    full = int(np.flatnonzero(table.counts == 4)[0])
    with pytest.raises(ValueError, match="cannot be parted"):
        Partition(np.array([full, full]), np.array([2, 2]), np.array([0, 1])).classes(table)


def test_suppressed_parts_are_dropped_or_kept_as_stars() -> None:
    for fate, expected in (("drop", 6), ("keep", 7)):
        asked = policy(suppressed=fate)
        counted, problem = problem_of(asked)
        class_of = np.array(
            [-1 if problem.table.hierarchies[0].leaves[c[0]] is None else 0 for c in problem.table.codes]
        )
        answer = recoding_of_partition(problem, Partition.of_rows(problem.table, class_of), "by hand")
        assert answer.parts(problem.table).n_suppressed == 1
        rows = ENGINE.apply(counted, answer, asked).table.to_pandas()
        assert len(rows) == expected
        assert released(problem, answer).n_classes == (1 if fate == "drop" else 2)


def test_pieces_become_ranges_and_labels_everywhere_alike() -> None:
    asked = policy()
    counted, problem = problem_of(asked)
    ages = problem.table.hierarchies[0].leaves  # 21, 34, 35 and the null
    pieces = [np.array([0 if age in ("21", "34") else 1 for age in ages]), np.array([0, 0])]
    answer = search_cuts.recoding_of_cuts(problem, pieces, "by hand")
    rows = ENGINE.apply(counted, answer, asked).table.to_pandas()
    assert Counter(rows["age"]) == {"21-34": 5, "*": 2}  # a null is in no range
    assert set(rows["sex"]) == {"*"}
    assert losses(problem, answer)["average-class"] == 3.5


def test_parts_of_a_row_that_become_the_same_are_one() -> None:
    parts = Parts(
        np.array([1, 0, 1]), np.array([[0, 1], [0, 0], [0, 1]], np.int32), np.array([2, 4, 3]), np.zeros(3, np.bool_)
    )
    found = merge_equal_parts(parts)
    assert found.row.tolist() == [0, 1]
    assert found.counts.tolist() == [4, 5]
    assert found.codes.tolist() == [[0, 0], [0, 1]]


def test_a_recoding_of_another_table_is_refused() -> None:
    _, problem = problem_of(policy())
    table = problem.table
    values = tuple(Values.of_level(h, 0) for h in table.hierarchies)
    parts = Parts(np.arange(2), np.zeros((2, 2), np.int32), np.array([1, 1]), np.zeros(2, np.bool_))
    answer = Cells(hierarchies=table.hierarchies, values=values, became=parts, algorithm="by hand", proved=False)
    with pytest.raises(ValueError, match="another table"):
        answer.parts(table)


def test_an_answer_is_applied_to_the_count_that_it_answers() -> None:
    """An engine remembers nothing: whatever it counted since, the first answer gives the first release."""
    asked, others = policy(), policy("range", suppressed="keep")
    counted, problem = problem_of(asked, apart=True)
    answer = recoding_of_partition(
        problem, Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64)), "by hand"
    )
    expected = ENGINE.apply(counted, answer, asked).table
    again = ENGINE.count(others)
    assert again.table.n_classes != counted.table.n_classes
    assert ENGINE.apply(counted, answer, asked).table == expected
