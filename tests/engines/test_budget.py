"""A budget of distinct tuples: counting starts from coarser levels, says so, and stays correct."""

import pyarrow as pa
import pytest

import shoal
from benches import Bench
from contract import TASKS
from shoal.errors import DataError

TASK = TASKS["nulls"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)


def policy(algorithm: str, max_tuples: int | None, **columns) -> shoal.Policy:
    asked = TASK.policy(algorithm)
    columns = {name: asked.columns[name].model_copy(update=given) for name, given in columns.items()}
    release = asked.release.model_copy(update={"max_tuples": max_tuples})
    return asked.model_copy(update={"release": release, "columns": {**asked.columns, **columns}})


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian", "mondrian_relaxed", "suppress_cells"])
def test_it_is_the_release_that_starts_from_those_levels(database: Bench, algorithm: str) -> None:
    release = shoal.anonymize(database.load(PEOPLE), policy(algorithm, 24))
    [note] = [note.fact for note in release.findings if "distinct tuples exceed max_tuples = 24" in note.fact]
    assert "'q0' from level 1" in note
    assert release.counted.rows.table.num_rows <= 24
    release.save(f"table:{database.name}_{algorithm}", force=True)
    local = shoal.anonymize(PEOPLE, policy(algorithm, None, q0={"min_level": 1}))
    assert release.levels == local.levels
    assert release.suppressed == local.suppressed
    assert release.verdicts.same(local.verdicts)
    written = database.read(f"{database.name}_{algorithm}")
    if algorithm in ("optimal", "mondrian"):
        assert sorted(map(repr, written.to_pylist())) == sorted(map(repr, local.rows.table.to_pylist()))


def test_a_budget_that_suffices_changes_nothing(database: Bench) -> None:
    table = database.load(PEOPLE)
    wide, free = (shoal.anonymize(table, policy("optimal", n)) for n in (10**6, None))
    assert wide.findings == free.findings
    assert wide.levels == free.levels
    assert wide.receipt["input"] == free.receipt["input"]


def test_a_budget_that_nothing_fits(duck: Bench) -> None:
    with pytest.raises(DataError, match="3 distinct tuples remain at the highest levels"):
        shoal.anonymize(duck.load(PEOPLE), policy("optimal", 2))


def test_levels_that_the_policy_forbids_are_not_reached(duck: Bench) -> None:
    with pytest.raises(DataError, match="max_tuples is 24"):
        shoal.anonymize(duck.load(PEOPLE), policy("optimal", 24, q0={"max_level": 0}, q1={"max_level": 0}))


def test_new_tuples_are_recoded_along_hierarchies_of_all_values(duck: Bench) -> None:
    ages = pa.table({"age": [*range(20, 60), 99], "s": ["x"] * 41})
    asked = {
        "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "s": {"role": "plain"}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"max_suppression": 0.1},
    }
    local = shoal.anonymize(ages, shoal.Policy.of(asked))
    asked["release"]["max_tuples"] = 10
    release = shoal.anonymize(duck.load(ages), shoal.Policy.of(asked))
    assert release.levels == local.levels
    assert release.loss["loss"] == pytest.approx(local.loss["loss"])
    assert release.table.to_pyarrow().to_pylist() == local.rows.table.to_pylist()
