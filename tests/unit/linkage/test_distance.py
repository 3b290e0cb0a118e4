"""Distance-based linkage."""

import json
import math
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import DataError
from shoal.linkage import distance, distance_linkage, measure
from shoal.risk.intervals import deviation_disclosed

KNOWN = pd.DataFrame({"age": [24, 31, 38, 57], "zip": ["35138", "35142", "94138", "94139"]})


def policy(**hierarchies):
    columns = {name: {"role": "quasi", "hierarchy": given} for name, given in hierarchies.items()}
    return shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})


def test_a_value_within_a_range_is_at_distance_0_and_one_outside_as_far_as_the_nearest_end():
    release = pd.DataFrame({"age": ["20-29", "60-69"]})
    found = distance_linkage(KNOWN, release)
    deviation = KNOWN["age"].std(ddof=1)
    assert found.distance == pytest.approx(np.array([0, 2, 9, 3]) / deviation)
    assert found.rows.tolist() == [0, 0, 0, 1]


def test_the_end_of_a_half_open_range_belongs_to_the_next():
    known = pd.DataFrame({"x": [1.0, 0.5, 0.9]})
    release = pd.DataFrame({"x": ["[0.5, 1)", "[1, 1.5)"]})
    found = distance_linkage(known, release)
    assert found.rows.tolist() == [1, 0, 0]
    assert found.ties.tolist() == [1, 1, 1]
    assert found.distance.tolist() == [0, 0, 0]


def test_ties_are_worth_their_share():
    release = pd.DataFrame({"age": ["20-39", "20-39", "20-39", "40-59"], "zip": ["*"] * 4})
    found = distance_linkage(KNOWN, release, truth="position")
    assert found.ties.tolist() == [3, 3, 3, 1]
    assert found.correct == pytest.approx(2)
    assert (found.of, found.singled_out, found.risk) == (4, 1, pytest.approx(0.5))


def test_masks_sets_and_stars_stand_for_values_without_a_hierarchy():
    release = pd.DataFrame({"zip": ["351**", "{94138, 94139}", "*****"]})
    found = distance_linkage(KNOWN, release)
    assert found.ties.tolist() == [2, 2, 2, 2]
    assert found.rows.tolist() == [0, 0, 1, 1]


def test_categories_can_be_as_near_as_their_common_ancestor():
    tree = policy(zip={"mask": "right"})
    release = pd.DataFrame({"zip": ["35200", "94138"]})
    equal = distance_linkage(KNOWN, release, policy=tree, categories="equal")
    assert equal.distance.tolist() == [1, 1, 0, 1]
    near = distance_linkage(KNOWN, release, policy=tree, categories="hierarchy")
    assert near.distance == pytest.approx([3 / 5, 3 / 5, 0, 1 / 5])


def test_labels_of_the_policy_are_read():
    tree = policy(job={"tree": {"*": {"health": ["nurse", "doctor"], "law": ["judge"]}}})
    known = pd.DataFrame({"job": ["nurse", "judge", "doctor"]})
    found = distance_linkage(known, pd.DataFrame({"job": ["health", "judge"]}), policy=tree, truth=[0, 1, 0])
    assert found.rows.tolist() == [0, 1, 0]
    assert found.distance.tolist() == [0, 0, 0]
    assert found.risk == 1


def test_each_file_is_scaled_by_itself_or_both_by_the_original():
    known = np.array([[0.0], [1.0], [2.0]])
    moved = known * 10 + 5
    assert distance_linkage(known, moved, scale="own").distance == pytest.approx([0, 0, 0])
    far = distance_linkage(known, moved, scale="original").distance
    assert far == pytest.approx((5 - known[:, 0]) / known.std(ddof=1))
    wider = distance_linkage(known, moved, scale="original", original=np.array([[0.0], [100.0]])).distance
    assert wider == pytest.approx((5 - known[:, 0]) / (100 / math.sqrt(2)))


def test_a_constant_column_has_a_scale():
    assert distance_linkage(np.ones((2, 1)), np.array([[1.0], [3.0]]), scale="original").distance.tolist() == [0, 0]


def test_nulls_are_a_category_or_stand_for_everything():
    known = pd.DataFrame({"x": [1.0, None], "y": ["a", None]})
    release = pd.DataFrame({"x": [None, 1.0], "y": [None, "a"]})
    assert distance_linkage(known, release).rows.tolist() == [1, 0]
    assert distance_linkage(known, release).ties.tolist() == [1, 1]
    assert distance_linkage(known, release, nulls="wildcard").ties.tolist() == [2, 2]


def test_a_suppressed_number_is_as_near_to_a_null():
    known = pd.DataFrame({"x": [1.0, None]})
    release = pd.DataFrame({"x": ["*", "1"]})
    assert distance_linkage(known, release).distance.tolist() == [0, 0]
    assert distance_linkage(known, release).ties.tolist() == [2, 1]


def test_weights_decide_between_columns():
    known = pd.DataFrame({"a": ["x"], "b": ["y"]})
    release = pd.DataFrame({"a": ["x", "-"], "b": ["-", "y"]})
    assert distance_linkage(known, release).ties.tolist() == [2]
    assert distance_linkage(known, release, weights={"b": 2}).rows.tolist() == [1]
    assert distance_linkage(known, release, weights={"b": 0}).rows.tolist() == [0]


def test_columns_may_have_other_names(tmp_path):
    release = pd.DataFrame({"years": ["20-29", "30-39", "30-39", "50-59"], "area": ["351**", "*", "*", "94139"]})
    path = tmp_path / "release.csv"
    release.to_csv(path, index=False)
    found = distance_linkage(KNOWN, path, on={"age": "years", "zip": "area"}, truth="position")
    assert found.columns == ("years", "area")
    assert found.correct == pytest.approx(3)


def test_text_is_a_number_only_on_request(tmp_path):
    path = tmp_path / "known.csv"
    path.write_text("age\n24\n31\n")
    release = pd.DataFrame({"age": ["25", "31"]})
    assert distance_linkage(path, release).distance.tolist() == [1, 0]
    assert distance_linkage(path, release, numeric=["age"], scale="original").distance == pytest.approx(
        [math.sqrt(2) / 7, 0]
    )


def test_ids_tell_who_is_who_and_are_not_compared():
    known = KNOWN.assign(who=["a", "b", "c", "d"])
    release = known.iloc[[3, 0, 1]]
    found = distance_linkage(known, release, id="who")
    assert found.columns == ("age", "zip")
    assert (found.of, found.correct) == (3, 3)


def test_the_assignment_gives_nobody_away_twice():
    known = np.array([[0.0], [1.0], [5.0]])
    release = np.array([[0.9], [0.8], [5.0]])
    found = distance_linkage(known, release, scale="original", one_to_one=True, truth=[1, 0, 2])
    assert found.rows.tolist() == [1, 0, 2]
    assert found.assigned.tolist() == [1, 0, 2]
    assert found.assigned_risk == 1
    few = distance_linkage(known, release[:2], scale="original", one_to_one=True, truth=[1, 0, -1])
    assert sorted(few.assigned.tolist()) == [-1, 0, 1]


def test_twins_share_an_assignment():
    found = distance_linkage(np.zeros((2, 1)), np.zeros((2, 1)), one_to_one=True, truth="position")
    assert found.assigned_correct == pytest.approx(1)


def test_results_are_plain_for_json():
    shown = json.loads(json.dumps(distance_linkage(KNOWN, KNOWN, truth="position", one_to_one=True).as_dict()))
    assert shown["risk"] == shown["assigned_risk"] == 1
    unknown = distance_linkage(KNOWN, KNOWN)
    assert unknown.risk is None
    assert unknown.assigned_risk is None
    json.dumps(unknown.as_dict())


SECRET = "Zacharias"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on": ["age", "height"]}, "no column 'height'"),
        ({"on": []}, "no column to compare"),
        ({"on": {"age": "zip", "zip": "zip"}}, "named twice"),
        ({"numeric": ["zip"]}, "1 of 4 distinct values in the known file"),
        ({"numeric": ["nothing"]}, "not compared"),
        ({"truth": [0, 1]}, "4 whole numbers"),
        ({"truth": [0, 1, 2, 4]}, "1 of 4 are not rows"),
        ({"truth": "row"}, "only be 'position'"),
        ({"truth": "position", "id": "age"}, "are alternatives"),
        ({"id": "name"}, "no column 'name'"),
        ({"scale": "none"}, "scale"),
        ({"nulls": "forbid"}, "nulls"),
        ({"categories": "tree"}, "categories"),
        ({"weights": {"height": 1}}, "'height' is not compared"),
        ({"weights": {"age": -1}}, "at least 0"),
        ({"per": "person"}, "per"),
        ({"per": "released", "truth": [0, 0, 1, 2]}, "share their released record"),
    ],
)
def test_mistakes_are_named_without_a_value_of_the_data(arguments, message):
    known = KNOWN.assign(zip=["35138", SECRET, "94138", "94139"])
    with pytest.raises(DataError, match=message) as caught:
        distance_linkage(known, KNOWN, **arguments)
    assert SECRET not in str(caught.value)


def test_positions_need_files_of_one_length_and_ids_one_record_each():
    with pytest.raises(DataError, match="positions do not match"):
        distance_linkage(KNOWN, KNOWN.iloc[:2], truth="position")
    with pytest.raises(DataError, match="more than one record"):
        distance_linkage(KNOWN, pd.concat([KNOWN, KNOWN]), id="age")
    with pytest.raises(DataError, match="no column in common"):
        distance_linkage(KNOWN, KNOWN.rename(columns=str.upper))
    with pytest.raises(DataError, match="is not a table"):
        distance_linkage(np.zeros(3), KNOWN)


def test_what_is_too_large_is_refused(monkeypatch):
    monkeypatch.setattr(distance, "ASSIGNABLE", 15)
    with pytest.raises(DataError, match="4 by 4 records"):
        distance_linkage(KNOWN, KNOWN, one_to_one=True)
    monkeypatch.setattr(measure, "LARGEST", 15)
    with pytest.raises(DataError, match="column 'zip': 4 distinct known"):
        distance_linkage(KNOWN, KNOWN, policy=policy(zip={"mask": "right"}), categories="hierarchy")


def test_scipy_is_loaded_by_linkage_alone():
    code = "import sys, shoal; assert 'scipy' not in sys.modules; assert 'shoal.linkage' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_sets_and_labels_of_numbers_are_as_near_as_their_nearest_member():
    release = pd.DataFrame({"age": ["{20, 40}", "30-33", None]})
    known = pd.DataFrame({"age": [24.0, 31.0, 38.0, None]})
    found = distance_linkage(known, release, scale="original")
    deviation = known["age"].std(ddof=1)
    assert found.distance == pytest.approx(np.array([4 / deviation, 0, 2 / deviation, 0]))
    assert found.rows.tolist() == [0, 1, 0, 2]


def test_what_is_listed_as_numeric_is_and_nothing_else():
    release = pd.DataFrame({"age": [25, 31]})
    by_type = distance_linkage(KNOWN, release, scale="original", policy=policy(age={"intervals": [10]}))
    assert by_type.distance[0] == pytest.approx(1 / KNOWN["age"].std(ddof=1))
    as_text = distance_linkage(KNOWN, release, numeric=[], policy=policy(age={"intervals": [10]}))
    assert as_text.distance.tolist() == [1, 0, 1, 1]


def test_numbers_are_read_with_the_marks_that_the_policy_names():
    known = pd.DataFrame({"pay": ["1.500,5", "2.500,0", "8.000,0"]})
    release = pd.DataFrame({"pay": ["1.500-2.000", "2.400,5-2.600,5", "8.000,0"]})
    asked = shoal.Policy.of({
        "columns": {"pay": {"role": "quasi", "decimal": ",", "thousands": ".", "hierarchy": {"intervals": [1000]}}},
        "require": [{"model": "k-anonymity", "k": 2}],
    })  # fmt: skip
    found = distance_linkage(known, release, policy=asked)
    assert found.rows.tolist() == [0, 1, 2]
    assert found.distance == pytest.approx(np.zeros(3))
    as_words = distance_linkage(known, release, policy=asked, numeric=[])
    assert as_words.distance == pytest.approx(np.zeros(3))
    commas = pd.DataFrame({"0": ["1,5", "2,5", "3,5"]})  # which nobody names and all see
    near = distance_linkage(np.array([[1.0]]), np.array([[2.0]]), scale="original", original=commas)
    assert near.distance == pytest.approx([1.0])


def test_the_deviation_is_that_of_interval_disclosure():
    x, masked = np.array([1.0, 4.0, 6.0, 9.0, 30.0]), np.array([2.0, 3.0, 6.0, 12.0, 30.0])
    frames = [pd.DataFrame({"x": values}) for values in (x, masked)]
    off = []
    for i in range(5):
        known, released = (frame.iloc[[i]] for frame in frames)
        off.append(distance_linkage(known, released, scale="original", original=frames[0]).distance[0])
    for percent in (1, 5, 8.6, 8.7, 10, 30):
        disclosed = deviation_disclosed(x, masked, percent)
        assert disclosed.tolist() == [d <= percent / 100 for d in off]
