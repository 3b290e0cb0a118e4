"""Datafly and MinGen (Sweeney 1997, 2002) on their twelve patients."""

import pyarrow as pa
import pytest

import shoal
from lectures import twelve_patients
from shoal.engines.local import LocalEngine
from shoal.errors import InfeasibleError
from shoal.search import Problem
from shoal.search.problem import Terms

BIRTH_GENERALIZED_ONCE = (0, 1, 0, 0)


def policy(**release):
    return shoal.Policy.of(
        {
            "columns": {
                "race": {"role": "quasi"},
                "birth": {"role": "quasi", "hierarchy": {"dates": ["year"], "format": "%m/%d/%y", "pivot": 30}},
                "gender": {"role": "quasi"},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            },
            "require": [{"model": "k-anonymity", "k": 2}],
            "release": {"algorithm": "datafly", "max_suppression": 0.2, **release},
        }
    )


def distinct_at(node):
    """Distinct values per column, as the paper writes them under the table."""
    problem = Problem(LocalEngine.of(twelve_patients()).count(policy()).table, policy().require, Terms(limit=2))
    return [len(set(column)) for column in problem.evaluate(node).table.codes.T.tolist()]


def test_birth_has_the_most_distinct_values_and_after_one_step_no_longer():
    assert distinct_at((0, 0, 0, 0)) == [2, 12, 2, 3]
    assert distinct_at(BIRTH_GENERALIZED_ONCE) == [2, 3, 2, 3]


def test_datafly_generalizes_birth_once_and_nothing_else():
    release = shoal.anonymize(twelve_patients(), policy())
    assert tuple(release.levels.values()) == BIRTH_GENERALIZED_ONCE
    assert release.recoding.n_evaluated == 2  # the loop's test failed once and held once
    assert not release.recoding.proved


def test_datafly_suppresses_the_seventh_and_the_eighth_patient_and_ten_remain():
    release = shoal.anonymize(twelve_patients(), policy())
    assert release.suppressed == 2
    rows = sorted(map(tuple, (row.values() for row in release.table.to_pylist())))
    assert rows == [
        ("black", "1964", "female", "02138"),
        ("black", "1964", "female", "02138"),
        ("black", "1965", "female", "02138"),
        ("black", "1965", "female", "02138"),
        ("black", "1965", "male", "02141"),
        ("black", "1965", "male", "02141"),
        ("white", "1964", "male", "02139"),
        ("white", "1964", "male", "02139"),
        ("white", "1967", "male", "02138"),
        ("white", "1967", "male", "02138"),
    ]
    assert release.measured["k"] == 2


def test_where_nothing_may_be_suppressed_datafly_goes_on_generalizing():
    release = shoal.anonymize(twelve_patients(), policy(max_suppression=0))
    assert release.suppressed == 0
    assert release.table.num_rows == 12
    assert release.measured["k"] >= 2


def test_where_fewer_than_k_would_be_suppressed_a_further_class_goes_with_them():
    # Seven a, three b, one c, k = 3: one record stands alone, so a class of three joins it in being suppressed.
    table = pa.table({"q": [*"aaaaaaa", *"bbb", "c"]})
    fields = {
        "columns": {"q": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": "datafly", "max_suppression": 0.5},
    }
    release = shoal.anonymize(table, shoal.Policy.of(fields))
    assert release.suppressed == 4
    assert release.table["q"].to_pylist() == ["a"] * 7


def test_datafly_does_not_say_that_nothing_satisfies_where_it_only_went_past_the_answer():
    # The class a is diverse, b is not, and neither is the whole: the one answer is below, with b suppressed.
    table = pa.table({"q": [*"aabbbb"], "s": [*"xyxxxx"]})
    fields = {
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}, {"model": "entropy-l-diversity", "l": 2}],
        "release": {"max_suppression": 0.7},
    }
    assert shoal.anonymize(table, shoal.Policy.of(fields)).suppressed == 4
    fields["release"]["algorithm"] = "datafly"
    with pytest.raises(InfeasibleError, match="'datafly' found no release") as raised:
        shoal.anonymize(table, shoal.Policy.of(fields))
    assert "no generalization" not in str(raised.value)
    assert "optimal" in raised.value.hint


# --- MinGen ----------------------------------------------------------------------------------------------------------


def prec(release):
    return 1 - release.loss["precision"]


def test_mingen_distorts_less_than_datafly_where_nothing_may_be_suppressed():
    least = shoal.anonymize(twelve_patients(), policy(algorithm="mingen", objective="precision", max_suppression=0))
    some = shoal.anonymize(twelve_patients(), policy(algorithm="datafly", objective="precision", max_suppression=0))
    assert least.recoding.proved
    assert prec(least) > prec(some)
    assert tuple(least.levels.values()) == (1, 1, 0, 1)  # by year, gender and 0213* or 0214*


def test_mingen_counts_what_satisfies_and_how_many_distort_least():
    release = shoal.anonymize(twelve_patients(), policy(algorithm="mingen", objective="precision"))
    problem = Problem(
        LocalEngine.of(twelve_patients()).count(policy()).table, policy().require, Terms(limit=2, objective="precision")
    )
    looks = [problem.evaluate(node) for node in problem.lattice]
    costs = [problem.objective.value(seen) for seen in looks if seen.feasible]
    assert release.loss["precision"] == pytest.approx(min(costs))
    minimal = sum(cost == pytest.approx(min(costs)) for cost in costs)
    assert release.recoding.claim == (
        f"{len(costs)} generalizations satisfy the policy, {minimal} of them with this smallest distortion"
    )
    assert release.recoding.n_evaluated == len(looks)


def test_mingen_leaves_a_table_alone_that_satisfies_as_it_is():
    table = pa.concat_tables([twelve_patients()] * 2)
    release = shoal.anonymize(table, policy(algorithm="mingen"))
    assert set(release.levels.values()) == {0}
    assert release.recoding.n_evaluated == 1
    assert release.recoding.proved
    assert prec(release) == 1
