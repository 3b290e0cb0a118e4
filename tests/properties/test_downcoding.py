"""What downcoding calls certain is true of every class, whichever algorithm wrote it; and rows have no order."""

from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks.downcoding import Downcoded, downcoded
from shoal.attacks.labels import label_columns
from shoal.errors import ShoalError
from shoal.policy.column import Cell
from shoal.search import SEARCHES

QUASI = ("age", "town", "sex")
TOWNS = {"*": {"north": ["a", "b"], "south": ["c", "d", "e"]}}
SLOW = {"genetic", "annealing", "k_optimize"}


def people(random: np.random.Generator, n: int) -> pa.Table:
    return pa.table(
        {
            "age": random.integers(20, 32, n),
            "town": random.choice(list("abcde"), n),
            "sex": random.choice(["f", "m"], n),
            "illness": random.choice(["flu", "hiv", "none"], n),
        }
    )


def policy(algorithm: str, cells: str = "hierarchy", **release: Any) -> dict[str, Any]:
    def quasi(hierarchy: Any) -> dict[str, Any]:
        return {"role": "quasi", "hierarchy": hierarchy, "cells": cells}

    return {
        "columns": {
            "age": quasi({"intervals": [5, 10]}),
            "town": quasi({"tree": TOWNS}),
            "sex": quasi({"flat": True}),
            "illness": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"algorithm": algorithm, **release},
    }


def attacked(release: shoal.Release) -> Downcoded:
    return downcoded(label_columns(release.rows.table, release.engine.table, QUASI, release.policy))


def require_true(found: Downcoded, release: shoal.Release) -> int:
    """Check each certain value against the people whom its class was made of; return how many there are."""
    original = release.engine.table.take(pa.array(release.rows.sources))
    leaves = np.column_stack(
        [
            np.array([column.domain.index(str(value)) for value in original[column.name].to_pylist()])
            for column in found.columns
        ]
    )
    for c, j, leaf in zip(found.certain.class_of, found.certain.column, found.certain.leaf, strict=True):
        members = leaves[found.class_of == c]
        assert leaf in members[:, j], (release.policy.release.algorithm, found.columns[j].name)
    shown = {name: release.rows.table[name].to_pylist() for name in QUASI}
    for c, j, leaf in zip(found.tuples.class_of, found.tuples.column, found.tuples.leaf, strict=True):
        row = int(np.flatnonzero(found.class_of == c)[0])
        others = [i for i in range(len(QUASI)) if i != j]
        members = leaves[found.class_of == c]
        mine = members[members[:, j] == leaf]
        assert any(
            all(found.columns[i].domain[int(one[i])] == str(shown[QUASI[i]][row]) for i in others) for one in mine
        )
    return len(found.certain)


@pytest.mark.parametrize("algorithm", sorted(set(SEARCHES) - SLOW))
def test_nothing_that_is_called_certain_is_wrong(algorithm: str) -> None:
    random = np.random.default_rng(5)
    for cells in get_args(Cell):
        for options in ({}, {"max_suppression": 0.1, "suppressed": "keep"}, {"nulls": "wildcard"}):
            try:
                release = shoal.anonymize(people(random, 40), policy(algorithm, cells, **options))
            except ShoalError:  # the algorithm does not take these options
                continue
            require_true(attacked(release), release)


def test_tight_labels_give_values_back_and_hierarchies_fewer() -> None:
    random = np.random.default_rng(1)
    table = people(random, 60)
    names = get_args(Cell)
    tight = "tight-set" if "tight-set" in names else "set"
    n_certain = {
        cells: require_true(attacked(release), release)
        for cells in (tight, "hierarchy")
        for release in [shoal.anonymize(table, policy("local", cells))]
    }
    assert n_certain[tight] > n_certain["hierarchy"]


def test_the_order_of_rows_changes_nothing() -> None:
    random = np.random.default_rng(2)
    release = shoal.anonymize(people(random, 80), policy("mondrian", "range"))
    rows = release.rows.table.take(pa.array(random.permutation(release.rows.table.num_rows)))
    original = release.engine.table.take(pa.array(random.permutation(80)))
    figures = []
    for shown, truth in ((release.rows.table, release.engine.table), (rows, original)):
        found = downcoded(label_columns(shown, truth, QUASI, release.policy))
        figures.append((len(found.tuples), len(found.certain), round(float(found.likelier.sum()), 9)))
    assert figures[0] == figures[1]
