"""Queries, statistics and classifiers on tables small enough to work out by hand."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import linregress

import shoal
from shoal.errors import DataError, PolicyError
from shoal.utility import classification, coefficients_kept, il1, query_error, statistics_kept, utility
from shoal.utility.queries import _regions
from shoal.utility.reading import Pair
from shoal.utility.statistics import divergence


def policy(**release):
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "away": {"role": "quasi", "hierarchy": {"intervals": [10, 50]}},
            "ill": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": release,
    })  # fmt: skip


ORIGINAL = pa.table({
    "age": ["20", "24", "30", "34"],
    "away": ["1", "3", "2", "8"],
    "ill": ["flu", "gout", "flu", "flu"],
})  # fmt: skip
RELEASE = ORIGINAL.set_column(0, "age", pa.array(["20-29", "20-29", "30-39", "30-39"]))
STARS = pa.table({"age": ["*"] * 4, "away": ["*"] * 4, "ill": ["flu", "gout", "flu", "flu"]})


def test_the_original_answers_every_query_and_keeps_every_statistic():
    found = query_error(ORIGINAL, ORIGINAL, policy(), queries=50)
    assert (found["median"], found["mean"], found["95%"]) == (0, 0, 0)
    kept = statistics_kept(ORIGINAL, ORIGINAL, policy())
    assert kept["kl_divergence"] == pytest.approx(0, abs=1e-12)
    assert set(kept["marginals"].values()) == {0}
    assert kept["tables"]["mean"] == pytest.approx(0, abs=1e-12)
    assert kept["correlations"]["mean_error"] == 0


def paid(**columns):
    """A policy in which pay is explained by the other columns."""
    return shoal.Policy.of({
        "columns": {
            **{name: {"role": "quasi", **fields} for name, fields in columns.items()},
            "pay": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip


AGE = {"hierarchy": {"intervals": [10, 50]}}
WAGES = pa.table({"age": [20, 24, 30, 36, 40, 44], "pay": [10, 16, 15, 26, 24, 35]})


def test_a_coefficient_before_and_after_is_that_of_simple_regression():
    wide = WAGES.set_column(0, "age", pa.array(["20-29", "20-29", "30-39", "30-39", "40-49", "40-49"]))
    found = coefficients_kept(WAGES, wide, paid(age=AGE))["targets"]["pay"]
    (term,) = found["coefficients"]
    ages, pay = WAGES["age"].to_numpy().astype(float), WAGES["pay"].to_numpy()
    before = linregress(ages / ages.std(), pay)
    after = linregress(np.array([24.5, 24.5, 34.5, 34.5, 42, 42]) / ages.std(), pay)  # 49 is beyond the oldest
    assert term["term"] == "age"
    assert (term["before"], term["after"]) == pytest.approx((before.slope, after.slope))
    assert term["error"] == found["median_error"] == pytest.approx(abs(before.slope - after.slope) / before.stderr)


def test_a_category_counts_with_the_share_of_each_value_that_it_may_be():
    job = {"hierarchy": {"tree": {"work": ["cook", "smith"]}}}
    table = pa.table({"job": ["cook", "cook", "cook", "smith", "smith"], "pay": [10, 12, 14, 30, 34]})
    (same,) = coefficients_kept(table, table, paid(job=job))["targets"]["pay"]["coefficients"]
    assert (same["before"], same["after"], same["error"]) == pytest.approx((20, 20, 0), abs=1e-9)
    merged = table.set_column(0, "job", pa.array(["work"] * 5))
    (term,) = coefficients_kept(table, merged, paid(job=job))["targets"]["pay"]["coefficients"]
    # Every record is half a smith: nothing to compare, and the shortest solution lies between 1 and 1/2.
    assert (term["before"], term["after"]) == pytest.approx((20, 20 * 0.5 / 1.25))
    assert "smith" not in str(term)  # no value of the data in a result


def test_the_order_of_the_released_rows_does_not_matter():
    shuffled = WAGES.take(pa.array([3, 1, 5, 0, 4, 2]))
    found = coefficients_kept(WAGES, shuffled, paid(age=AGE))
    assert found["median_error"] == pytest.approx(0, abs=1e-9)


def test_without_a_number_to_explain_there_is_no_regression():
    assert coefficients_kept(ORIGINAL, RELEASE, policy()) == {"targets": {}, "median_error": None, "left_out": []}
    alike = WAGES.set_column(1, "pay", pa.array([5] * 6))
    assert coefficients_kept(alike, alike, paid(age=AGE))["median_error"] is None
    with pytest.raises(PolicyError, match="no column 'cost'"):
        coefficients_kept(WAGES, WAGES, paid(age=AGE), targets=["cost"])


def test_a_category_of_many_values_is_left_out_and_named():
    n = 40
    table = pa.table({"town": [f"t{i % 35}" for i in range(n)], "age": range(n), "pay": [i * i for i in range(n)]})
    found = coefficients_kept(table, table, paid(town={}, age=AGE))
    assert found["left_out"] == ["town"]
    assert [term["term"] for term in found["targets"]["pay"]["coefficients"]] == ["age"]


def test_one_column_of_queries_by_hand():
    # Half of the four ages in a row: {20, 24}, {24, 30}, {30, 34}. The release answers 2, 2, 2 as the original does.
    assert query_error(ORIGINAL, RELEASE, policy(), columns=["age"], dimensions=1, selectivity=0.5)["mean"] == 0
    # One age: always 1 in the original; the release spreads its two over the leaves 20, 24 and 30, 34: 1 each.
    assert query_error(ORIGINAL, RELEASE, policy(), columns=["age"], dimensions=1, selectivity=0.25)["mean"] == 0
    crowded = ORIGINAL.set_column(0, "age", pa.array(["20", "20", "20", "34"]))
    spread = crowded.set_column(0, "age", pa.array(["*"] * 4))
    # The leaves 20 and 34: the truths 3 and 1, answers 2: errors 1/3 and 1.
    errors = {
        query_error(crowded, spread, policy(), columns=["age"], dimensions=1, selectivity=0.5, queries=1, seed=s)[
            "mean"
        ]
        for s in range(10)
    }
    assert sorted(errors) == pytest.approx([1 / 3, 1])


def test_a_truth_below_the_floor_counts_as_the_floor():
    crowded = ORIGINAL.set_column(0, "age", pa.array(["20", "20", "20", "34"]))
    spread = crowded.set_column(0, "age", pa.array(["*"] * 4))
    asked = {"columns": ["age"], "dimensions": 1, "selectivity": 0.5, "queries": 1, "floor": 1.0}
    errors = {query_error(crowded, spread, policy(), **asked, seed=s)["mean"] for s in range(10)}
    assert errors == {0.25}  # off by one, of four


def test_the_seed_decides_the_workload():
    frame = people(80, 9)
    stars = frame.assign(age="*")
    one, again, other = (query_error(frame, stars, policy(), queries=20, seed=s)["mean"] for s in (1, 1, 2))
    assert one == again != other


def test_regions_are_ranges_where_there_is_an_order_and_any_sets_elsewhere():
    tables = [
        pa.table({"age": [str(x) for x in range(20)], "away": ["1"] * 20, "ill": [f"x{x}" for x in range(20)]})
    ] * 2
    age, _, ill = Pair.from_tables(*tables, policy()).columns
    draw = np.random.default_rng(0)
    ranges, sets = (_regions(column, 50, 0.25, draw) for column in (age, ill))
    assert set(ranges.sum(axis=1)) == set(sets.sum(axis=1)) == {5}
    gaps = [int(np.ptp(np.flatnonzero(row))) for row in ranges]
    assert set(gaps) == {4}
    assert len({int(row.argmax()) for row in ranges}) > 5
    assert max(int(np.ptp(np.flatnonzero(row))) for row in sets) > 10


@pytest.mark.parametrize("wrong", [{"queries": 0}, {"dimensions": 0}, {"selectivity": 0.0}, {"floor": 2.0}])
def test_workloads_that_make_no_sense_are_refused(wrong):
    with pytest.raises(PolicyError, match="must be"):
        query_error(ORIGINAL, RELEASE, policy(), **wrong)


def test_moments_are_those_of_midpoints():
    kept = statistics_kept(ORIGINAL, RELEASE, policy())
    age = kept["numbers"]["age"]
    assert age["mean_before"] == 27
    assert age["mean_after"] == (24.5 + 32) / 2  # 34 is the oldest there is: 30-39 reaches no farther
    assert age["variance_after"] == pytest.approx(((32 - 24.5) / 2) ** 2)
    (pair,) = kept["correlations"]["pairs"]
    assert pair["columns"] == ["age", "away"]
    assert pair["before"] == pytest.approx(np.corrcoef([20, 24, 30, 34], [1, 3, 2, 8])[0, 1])
    assert pair["after"] == pytest.approx(np.corrcoef([24.5, 24.5, 32, 32], [1, 3, 2, 8])[0, 1])


def test_distances_of_tables_by_hand():
    kept = statistics_kept(ORIGINAL, STARS, policy(), columns=["age", "ill"])
    assert kept["marginals"] == {"age": 0, "ill": 0}
    # 24 is always gout; the stars give each age a quarter of it: a quarter of the mass of each cell moves.
    (table,) = kept["tables"]["pairs"]
    before = np.array([[1, 0], [0, 1], [1, 0], [1, 0]]) / 4
    after = np.outer(np.full(4, 1 / 4), [3 / 4, 1 / 4])
    assert table["distance"] == pytest.approx(np.abs(before - after).sum() / 2)
    assert kept["kl_divergence"] == pytest.approx(
        sum(p * math.log(p / q) for p, q in zip(before.ravel(), after.ravel(), strict=True) if p)
    )


def test_a_release_that_rules_out_a_record_diverges_without_bound():
    wrong = ORIGINAL.set_column(0, "age", pa.array(["20", "24", "30", "30"]))
    assert divergence(Pair.from_tables(ORIGINAL, wrong, policy())) == math.inf
    assert json.loads(json.dumps(utility(ORIGINAL, wrong, policy(), queries=5)))["statistics"]["kl_divergence"] == "inf"


def test_dropped_records_could_have_been_anything():
    found = divergence(Pair.from_tables(ORIGINAL, RELEASE.slice(0, 3), policy(), ["age"]))
    told = np.array([2 / 2, 2 / 2, 1 / 2, 1 / 2]) + 1 / 4
    assert found == pytest.approx(float((np.full(4, 1 / 4) * np.log(1 / told)).sum()))


def test_losses_of_masked_numbers_by_hand():
    before = pa.table({"a": [1.0, 2, 4], "b": [0.0, 10, 20]})
    after = pa.table({"a": [1.5, 1.5, 4], "b": [5.0, 5, 20]})
    found = il1(before, after, ["a", "b"])
    assert found["il1"] == pytest.approx((0.5 + 0.25 + 0 + 0.5 + 0) / 5)  # without the cell that was 0
    spreads = [np.std([1, 2, 4], ddof=1), np.std([0, 10, 20], ddof=1)]
    assert found["il1s"] == pytest.approx((1 / spreads[0] + 10 / spreads[1]) / math.sqrt(2) / 6)
    with pytest.raises(DataError, match="3 records, but the masked table has 2"):
        il1(before, after.slice(1), ["a"])
    with pytest.raises(PolicyError, match="masked table has no column 'b'"):
        il1(before, after.drop_columns("b"), ["a", "b"])


# --- a classifier ----------------------------------------------------------------------------------------------------


def people(n, seed):
    draw = np.random.default_rng(seed)
    age = draw.integers(20, 60, n)
    frame = pd.DataFrame({"age": age.astype(str), "away": draw.integers(0, 30, n).astype(str)})
    return frame.assign(ill=np.where(age + draw.normal(0, 2, n) < 38, "flu", "gout"))


def test_a_classifier_learns_as_much_from_what_is_kept_and_nothing_from_stars():
    frame = people(400, 0)
    tested = people(300, 1)
    same = classification(frame, frame, policy(label="ill"), test=tested)
    assert same["before"] == same["after"] > 0.9 > same["baseline"] > 0.5
    assert (same["held_out"], same["tested"], same["label"]) == (True, 300, "ill")
    ranges = frame.assign(age=[f"{int(a) // 10}0-{int(a) // 10}9" for a in frame["age"]])
    coarse = classification(frame, ranges, policy(), label="ill", test=tested)
    assert coarse["before"] == same["before"]
    assert coarse["baseline"] + 0.1 < coarse["after"] <= same["after"]
    stars = frame.assign(age="*", away="*")
    assert classification(frame, stars, policy(), label="ill", test=tested)["after"] < coarse["after"] - 0.1


def test_without_a_test_table_the_original_is_tested_on():
    frame = people(60, 3)
    found = classification(frame, frame, policy(label="ill"))
    assert (found["held_out"], found["tested"]) == (False, 60)


def test_values_that_the_original_does_not_have_can_be_tested_on():
    frame, tested = people(100, 4), people(20, 5)
    tested.loc[0, "age"] = "99"
    assert 0 <= classification(frame, frame, policy(label="ill"), test=tested)["after"] <= 1


def test_any_model_of_scikit_learn_will_do():
    from sklearn.tree import DecisionTreeClassifier

    frame = people(100, 6)
    found = classification(frame, frame, policy(label="ill"), model=DecisionTreeClassifier(random_state=0))
    assert found["before"] == found["after"] == 1


def test_one_label_leaves_nothing_to_learn():
    frame = people(20, 7).assign(ill="flu")
    assert classification(frame, frame, policy(label="ill"))["after"] == 1


def test_a_label_must_be_named_and_sensitive():
    with pytest.raises(PolicyError, match="specify the sensitive column"):
        classification(ORIGINAL, RELEASE, policy())
    with pytest.raises(PolicyError, match="'age' is not a sensitive column"):
        classification(ORIGINAL, RELEASE, policy(), label="age")
    with pytest.raises(PolicyError, match="test table has no column 'ill'"):
        classification(ORIGINAL, RELEASE, policy(label="ill"), test=ORIGINAL.drop_columns("ill"))


def test_all_at_once_is_json_and_takes_a_release():
    release = shoal.anonymize(people(60, 8), policy(algorithm="mdav", label="ill"))
    found = json.loads(json.dumps(utility(people(60, 8), release, policy(label="ill"), queries=30)))
    assert found["query_error"]["queries"] == 30
    assert set(found["statistics"]["numbers"]) == {"age", "away"}
    assert found["classification"]["label"] == "ill"
    assert json.loads(json.dumps(utility(people(60, 8), release, policy(), queries=3)))["classification"] is None
