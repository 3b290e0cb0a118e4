"""t-closeness (Li, Li, Venkatasubramanian 2007): salaries 3k to 11k, and diseases on a tree."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.models.closeness import hierarchical_distance
from shoal.tables.frequency import Domain, Histogram

SALARIES = {"low": [3, 4, 5], "mixed": [6, 8, 11], "rest": [7, 9, 10]}


def salaries(*classes):
    rows = [(name, f"{k}000") for name in classes or SALARIES for k in SALARIES[name]]
    return pd.DataFrame(rows, columns=["class", "salary"])


def closeness(t, distance, **sensitive):
    columns = {"class": {"role": "quasi"}, "salary": {"role": "sensitive", **sensitive}}
    require = [{"model": "t-closeness", "t": t, "distance": distance}]
    return shoal.Policy.of({"columns": columns, "require": require})


@pytest.mark.parametrize("distance", ["ordered", "numeric"])
@pytest.mark.parametrize(("name", "far"), [("low", 0.375), ("mixed", 1 / 6)])
def test_low_salaries_are_farther_from_the_whole_than_mixed_ones(name, far, distance):
    # As text 10000 comes before 3000: a wrong order would show here.
    verdicts = shoal.check(salaries(name), closeness(1, distance), original=salaries())
    assert verdicts.verdicts[0].worst == pytest.approx(far)


def test_the_table_is_as_close_as_its_farthest_class_and_a_bound_met_exactly_is_met():
    assert shoal.check(salaries(), closeness(0.375, "ordered")).holds
    assert not shoal.check(salaries(), closeness(0.374999, "ordered")).holds


def test_by_equal_distance_both_classes_are_as_far():
    # Each holds 3 of 9 values: ½ (3 · (1/3 − 1/9) + 6 · 1/9) = 2/3.
    for name in SALARIES:
        verdicts = shoal.check(salaries(name), closeness(1, "equal"), original=salaries())
        assert verdicts.verdicts[0].worst == pytest.approx(2 / 3)


def test_numbers_that_a_tree_lists_in_another_order_are_as_far_as_ever():
    groups = {"few": ["9000", "3000", "7000"], "many": ["11000", "4000", "10000", "5000", "8000", "6000"]}
    tree = {"tree": {"*": groups}}
    verdicts = shoal.check(salaries("low"), closeness(1, "numeric", hierarchy=tree), original=salaries())
    assert verdicts.verdicts[0].worst == pytest.approx(0.375)


# --- the tree of diseases ----------------------------------------------------------------------------------------

TREE = {
    "disease": {
        "respiratory": {
            "infection": ["flu", "pneumonia", "bronchitis"],
            "vascular": ["pulmonary edema", "pulmonary embolism"],
        },
        "digestive": {
            "stomach": ["gastric ulcer", "stomach cancer", "gastritis"],
            "colon": ["colitis", "colon cancer"],
        },
    }
}
PATIENTS = {
    "first": ["gastric ulcer", "stomach cancer", "pneumonia"],
    "second": ["gastritis", "flu", "bronchitis"],
    "third": ["gastritis", "bronchitis", "stomach cancer"],
}

# By hand, in 27ths (height 3, so a move within a group of leaves costs 1/3, across the root 1). Of 9 records the whole
# has ulcer 1, cancer 2, gastritis 2 (stomach 5); flu 1, pneumonia 1, bronchitis 2 (infection 4).
#   first:  within stomach 2/9 · 1/3, within infection 2/9 · 1/3, over the root 1/9:  2 + 2 + 3
#   second: within stomach 1/9 · 1/3, within infection 1/9 · 1/3, over the root 2/9:  1 + 1 + 6
#   third:  within stomach 1/9 · 1/3, within infection 1/9 · 1/3, over the root 1/9:  1 + 1 + 3
BY_HAND = {"first": Fraction(7, 27), "second": Fraction(8, 27), "third": Fraction(5, 27)}


def patients(*classes):
    rows = [(name, disease) for name in classes or PATIENTS for disease in PATIENTS[name]]
    return pd.DataFrame(rows, columns=["class", "salary"])


@pytest.mark.parametrize("name", PATIENTS)
def test_the_hierarchical_distance_of_each_class_is_what_a_hand_computes(name):
    policy = closeness(1, "hierarchical", hierarchy={"tree": TREE})
    verdicts = shoal.check(patients(name), policy, original=patients())
    assert verdicts.verdicts[0].worst == pytest.approx(float(BY_HAND[name]))


@pytest.mark.parametrize(
    ("other", "far"), [("flu", 0), ("bronchitis", 1 / 3), ("pulmonary embolism", 2 / 3), ("stomach cancer", 1)]
)
def test_moving_all_from_one_disease_to_another_costs_the_height_of_their_common_ancestor(other, far):
    diseases = ["flu", "pneumonia", "bronchitis", "pulmonary embolism", "stomach cancer"]
    levels = np.array([[0, 1, 2, 3, 4], [0, 0, 0, 1, 2], [0, 0, 0, 0, 1], [0] * 5], np.int32)
    whole = np.array([disease == other for disease in diseases], np.int64)
    domain = Domain("disease", tuple(diseases), whole, None, levels)
    flu = Histogram(np.array([0, 1]), np.array([0], np.int32), np.array([7]), 5, domain)
    assert hierarchical_distance(flu)[0] == pytest.approx(far)
