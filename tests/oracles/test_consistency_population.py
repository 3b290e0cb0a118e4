"""Who of a population could be behind a released tuple, against every pair of a person and a record."""

from collections.abc import Sequence

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from examples import examples
from oracles.test_consistency import (
    NAMES,
    PATHS,
    Definition,
    Row,
    generalized,
    originals,
    paths_of,
    policy,
    spoiled,
    table_of,
)
from shoal.engines.local import LocalEngine
from shoal.errors import InfeasibleError
from shoal.notation import codec
from shoal.original.comparison import people_like

EXAMPLES = examples(150)


def counted(people: Sequence[Row], released: Sequence[Row], *, wildcard: bool) -> tuple[list[int], int]:
    """What shoal says: per released record the people like it, and how many kinds of people are like none."""
    asked = policy(len(people[0]))
    population = LocalEngine.of(table_of(people)).people(asked)
    table = table_of(released)
    coded = [codec.encode_texts(name, table[name]) for name in asked.quasi]
    tuples = np.column_stack([np.where(c.codes < 0, len(c.texts), c.codes) for c in coded]).astype(np.int32)
    found, absent = people_like(population, tuples, coded, wildcard=wildcard)
    return found.tolist(), absent


@EXAMPLES
@given(st.data(), st.booleans())
def test_the_people_like_a_record_are_those_whose_values_its_cells_stand_for(data: st.DataObject, wildcard: bool):
    people = data.draw(originals(14))
    released = data.draw(generalized(people))[: data.draw(st.integers(1, len(people)))]
    if data.draw(st.booleans()):
        released = data.draw(spoiled(released))
    edges = Definition(people, released, wildcard=wildcard).edges()
    found, absent = counted(people, released, wildcard=wildcard)
    assert found == [sum(column) for column in zip(*edges, strict=True)]
    without = {person for person, row in zip(people, edges, strict=True) if not any(row)}
    assert (absent == 0) == (not without)
    assert absent <= len(without)


@pytest.mark.parametrize(
    ("released", "like", "absent"),
    [
        pytest.param([("*", "*")], [4], 0, id="stars stand for everybody"),
        pytest.param([("0-9", "nurse")], [2], 2, id="a group and its namesake"),
        pytest.param([("4", "nurse"), ("8", "nurse")], [1, 1], 2, id="one each"),
        pytest.param([("4", "?"), ("", "any")], [0, 0], 2, id="texts that stand for nobody"),
        pytest.param([("0-9", "clerk"), ("0-9", None)], [1, 0], 2, id="nobody has a null"),
    ],
)
def test_few_people(released: list[Row], like: list[int], absent: int) -> None:
    # The tree has a group nurse with nurses and midwives in it: what is released as nurse may be either.
    people: list[Row] = [("4", "nurse"), ("8", "midwife"), ("8", "clerk"), ("45", "clerk")]
    found, kinds = counted(people, released, wildcard=False)
    assert found == like
    assert kinds == absent


@examples(40)
@given(st.data(), st.integers(1, 6), st.sampled_from([0, 0.5]), st.sampled_from(["drop", "keep"]))
def test_behind_every_record_of_a_k_map_release_are_k_people(tmp_path_factory, data, k, max_suppression, suppressed):
    tmp_path = tmp_path_factory.mktemp("people")
    people = data.draw(originals(24))
    rows = people[: data.draw(st.integers(1, len(people)))]
    pq.write_table(table_of(people), tmp_path / "people.parquet")
    asked = shoal.Policy.of(
        {
            **policy(len(people[0]), max_suppression=max_suppression, suppressed=suppressed).model_dump(
                mode="json", exclude_none=True
            ),
            "require": [{"model": "k-map", "k": k, "population": "people.parquet"}],
        },
        folder=tmp_path,
    )
    try:
        release = shoal.anonymize(table_of(rows), asked)
    except InfeasibleError:
        # Even in one class with everybody there are too few.
        assert len(people) < k or suppressed == "keep"
        return
    found = list(zip(*release.table.to_pydict().values(), strict=True))
    like = [sum(column) for column in zip(*Definition(people, found, wildcard=False).edges(), strict=True)]
    assert min(like) >= k
    (verdict,) = release.verdicts.verdicts
    assert verdict.worst == min(like)


def test_the_paths_of_the_definition_are_those_of_the_hierarchies() -> None:
    values = {name: list(PATHS[name]) for name in NAMES}
    rows = [tuple(values[name][i % len(values[name])] for name in NAMES) for i in range(12)]
    hierarchies = LocalEngine.of(table_of(rows)).count(policy(3)).table.hierarchies
    for name, hierarchy in zip(NAMES, hierarchies, strict=True):
        for leaf, path in paths_of(name, values[name]).items():
            if leaf is not None:
                codes = hierarchy.table[:, hierarchy.leaves.index(leaf)]
                assert tuple(of[code] for of, code in zip(hierarchy.labels, codes, strict=True)) == path
