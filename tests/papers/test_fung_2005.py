"""Top-down specialization after the example of Fung, Wang, Yu 2005: education, sex, work hours and a class.

Gains and scores are worked out here from the counts, by the definitions of the paper.
"""

from math import log2

import pyarrow as pa
import pytest

import shoal
from shoal.engines.local import LocalEngine
from shoal.errors import PolicyError
from shoal.search import Problem
from shoal.search.cuts.ordered import Axis
from shoal.search.cuts.top_down import Labels, Step

# Education, sex, hours a week, how many of class Y, of class N.
RECORDS = [
    ("9th", "M", "30", 0, 3),
    ("10th", "M", "32", 0, 4),
    ("11th", "M", "35", 2, 3),
    ("12th", "F", "37", 3, 1),
    ("Bachelors", "F", "42", 4, 2),
    ("Bachelors", "F", "44", 4, 0),
    ("Masters", "M", "44", 4, 0),
    ("Masters", "F", "44", 3, 0),
    ("Doctorate", "F", "44", 1, 0),
]
EDUCATION = {
    "Any": {
        "Secondary": {"Junior Sec.": ["9th", "10th"], "Senior Sec.": ["11th", "12th"]},
        "University": {"Bachelors degree": ["Bachelors"], "Grad School": ["Masters", "Doctorate"]},
    }
}


def table():
    rows = [(e, s, h, y) for e, s, h, yes, no in RECORDS for y in "Y" * yes + "N" * no]
    return pa.table(dict(zip(("education", "sex", "hours", "class"), map(list, zip(*rows, strict=True)), strict=True)))


def policy(k=4, **release):
    return shoal.Policy.of(
        {
            "columns": {
                "education": {"role": "quasi", "hierarchy": {"tree": EDUCATION}},
                "sex": {"role": "quasi"},
                "hours": {"role": "quasi", "hierarchy": {"intervals": [100]}, "cells": "range"},
                "class": {"role": "sensitive"},
            },
            "require": [{"model": "k-anonymity", "k": k}],
            "release": {"algorithm": "top_down", "label": "class", **release},
        }
    )


@pytest.fixture(scope="module")
def problem():
    return Problem.of(LocalEngine.of(table()).count(policy()).table, policy())


def bits(*counts):
    return -sum(n / sum(counts) * log2(n / sum(counts)) for n in counts if n)


def test_the_table_has_34_records_of_which_21_are_of_class_y():
    assert table().num_rows == 34
    assert table()["class"].to_pylist().count("Y") == 21


def test_the_information_gain_of_the_first_specializations(problem):
    labels = Labels(problem.table.sensitive["class"], Axis(problem.table))
    whole = bits(21, 13)
    # Secondary has 5 Y and 11 N, University 16 Y and 2 N.
    assert labels.gain(Step(0, 0, 6, (4,))) == pytest.approx(whole - 16 / 34 * bits(5, 11) - 18 / 34 * bits(16, 2))
    # Male: 6 Y and 10 N; female: 15 Y and 3 N.
    assert labels.gain(Step(1, 0, 1, (1,))) == pytest.approx(whole - 16 / 34 * bits(6, 10) - 18 / 34 * bits(15, 3))
    # Hours below 37: 2 Y and 10 N; from 37 on: 19 Y and 3 N. No other split tells more.
    gains = {start: labels.gain(Step(2, 0, 5, (start,))) for start in range(1, 6)}
    assert gains[3] == pytest.approx(whole - 12 / 34 * bits(2, 10) - 22 / 34 * bits(19, 3))
    assert max(gains, key=gains.get) == 3


def test_the_specialized_table_satisfies_and_nothing_can_be_specialized_further():
    release = shoal.anonymize(table(), policy())
    assert release.measured["k"] >= 4
    assert not release.recoding.proved
    assert release.loss["classification"] <= 13 / 34  # what the top would mislead
    assert release.suppressed == 0


def test_the_winner_is_the_best_gain_for_the_anonymity_it_takes():
    # k = 11 leaves room for one step. Scores of those allowed: hours at 37 loses 34 − 12 = 22 of anonymity,
    # sex and education 34 − 16 = 18.
    scores = {
        "hours": (bits(21, 13) - 12 / 34 * bits(2, 10) - 22 / 34 * bits(19, 3)) / 23,
        "education": (bits(21, 13) - 16 / 34 * bits(5, 11) - 18 / 34 * bits(16, 2)) / 19,
        "sex": (bits(21, 13) - 16 / 34 * bits(6, 10) - 18 / 34 * bits(15, 3)) / 19,
    }
    release = shoal.anonymize(table(), policy(k=11))
    specialized = {name for name in scores if len(set(release.table[name].to_pylist())) > 1}
    assert specialized == {max(scores, key=scores.get)}


def test_a_label_must_be_a_sensitive_column():
    with pytest.raises(PolicyError, match="'sex' is not a column with role 'sensitive'"):
        policy(label="sex")
