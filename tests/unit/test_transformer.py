"""The transformer: scikit-learn's common checks, what becomes of new rows, and what stays behind."""

import pickle
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.utils.estimator_checks import parametrize_with_checks

import shoal
from shoal.errors import InfeasibleError, PolicyError

AGES = [31, 34, 36, 38, 51, 53, 57, 58]
PEOPLE = pd.DataFrame(
    {"name": list("abcdefgh"), "age": AGES, "sex": ["f", "m"] * 4, "disease": ["flu", "cold", "flu", "gout"] * 2},
    index=range(100, 108),
)
POLICY = {
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
        "sex": {"role": "quasi"},
        "disease": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 2}],
}
# A batch is judged by itself: what one row of a crowd may show, the same row alone may not. A release of single rows
# that repeats what all of them together would show promises nothing.
DIFFERS_BY_BATCH = {"check_methods_subset_invariance": "k must hold among the rows of each call"}


@parametrize_with_checks(
    [shoal.Anonymizer(), shoal.Anonymizer(k=3, ranges="middle")], expected_failed_checks=lambda _: DIFFERS_BY_BATCH
)
def test_common_checks(estimator, check):
    check(estimator)


def test_rows_are_recoded_in_their_order():
    made = shoal.Anonymizer(POLICY).fit(PEOPLE)
    released = made.transform(PEOPLE)
    assert released.index.tolist() == PEOPLE.index.tolist()
    assert list(made.get_feature_names_out()) == list(released.columns) == ["age", "sex", "disease"]
    assert made.levels_ == {"age": 1, "sex": 0}
    assert released["age"].tolist() == [34.5] * 4 + [54.5] * 4
    assert released["sex"].tolist() == PEOPLE["sex"].tolist()
    assert released["disease"].tolist() == PEOPLE["disease"].tolist()


def test_labels_are_those_of_a_release():
    released = shoal.Anonymizer(POLICY, ranges="label").fit_transform(PEOPLE)
    assert released["age"].tolist() == ["30-39"] * 4 + ["50-59"] * 4


def test_values_that_were_not_seen_find_their_place_and_small_classes_are_missing():
    made = shoal.Anonymizer(POLICY, ranges="label").fit(PEOPLE)
    new = pd.DataFrame(
        {
            "name": list("pqrst"),
            "age": [33, 39, 45, 41, 71],  # nobody was in the forties, or in the seventies
            "sex": ["f", "f", "m", "m", "m"],
            "disease": ["flu"] * 5,
        }
    )
    released = made.transform(new)
    assert released["age"].tolist()[:4] == ["30-39", "30-39", "40-49", "40-49"]
    assert released.iloc[4].isna().all()  # one person is no crowd: not even the disease is told
    assert released.iloc[:4].notna().all(axis=None)


def test_a_value_that_no_hierarchy_knows_is_missing():
    tree = {"tree": {"any": ["f", "m"]}}
    made = shoal.Anonymizer({**POLICY, "columns": {**POLICY["columns"], "sex": {"role": "quasi", "hierarchy": tree}}})
    new = PEOPLE.assign(sex=["x", "m", "x", "m", *PEOPLE["sex"][4:]])
    released = made.fit(PEOPLE).transform(new)
    assert released.isna().all(axis=1).tolist() == [True, False, True, *[False] * 5]


def test_alone_everybody_is_missing_and_that_is_logged_without_values(caplog):
    made = shoal.Anonymizer(POLICY).fit(PEOPLE)
    released = made.transform(PEOPLE.iloc[:1])
    assert released.shape == (1, 3)
    assert released.isna().all(axis=None)
    (line,) = (record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert line == "transform: 1 of 1 rows are held back and returned as missing"


@pytest.mark.parametrize("seed", range(3))
def test_what_comes_out_is_anonymous_by_another_count(seed):
    draw = np.random.default_rng(seed)
    table = pd.DataFrame({"age": draw.integers(18, 90, 300), "zip": draw.choice(["021", "022", "031"], 300)})
    made = shoal.Anonymizer(k=5, ranges="label").fit(table[:200])
    for rows in (table[:200], table[200:]):
        shown = made.transform(rows)
        assert len(shown) == len(rows)
        classes = Counter(map(tuple, shown[shown.notna().any(axis=1)].to_numpy()))
        assert classes
        assert min(classes.values()) >= 5


def test_without_roles_every_column_may_be_known():
    draw = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(60), "a": draw.integers(0, 3, 60), "b": draw.integers(0, 3, 60)})
    made = shoal.Anonymizer(sensitive=["b"]).fit(table)
    assert made.policy_.quasi == ("id", "a")
    assert made.policy_.sensitive == ("b",)
    assert made.policy_.models[0].k == 5
    # Columns that are not named get the role that is proposed: here they may be known.
    assert shoal.Anonymizer(k=2, quasi=["a"]).fit(table).policy_.quasi == ("a", "b")


def test_an_array_gets_names_and_comes_back_as_one():
    table = np.column_stack([AGES, [1.5] * 8])
    made = shoal.Anonymizer(k=4).fit(table)
    assert made.policy_.quasi == ("x0", "x1")
    assert made.transform(table).dtype == np.float64
    mixed = np.array([[31, "f"], [34, "f"], [36, "m"], [None, "m"]], dtype=object)
    released = shoal.Anonymizer(k=2, ranges="label").fit_transform(mixed)
    assert released.dtype == object
    assert released.shape == (4, 2)


def test_frames_of_polars_and_set_output():
    made = shoal.Anonymizer(POLICY).fit(pl.from_pandas(PEOPLE))
    assert isinstance(made.transform(pl.from_pandas(PEOPLE)), pl.DataFrame)
    asked = shoal.Anonymizer(k=2, quasi=["x0"]).set_output(transform="pandas").fit(np.array([AGES]).T)
    assert asked.transform(np.array([AGES]).T).columns.tolist() == ["x0"]


def test_columns_are_told_apart_by_name_in_a_frame_and_by_place_in_an_array():
    frame = pd.DataFrame({"age": AGES, "sex": [1, 2] * 4})
    made = shoal.Anonymizer(k=2).fit(frame)
    with pytest.raises(ValueError, match="order"):
        made.transform(frame[["sex", "age"]])
    with pytest.raises(ValueError, match="order"):
        made.transform(pl.from_pandas(frame[["sex", "age"]]))
    with pytest.warns(UserWarning, match="valid feature names"):
        by_place = made.transform(frame.to_numpy())
    np.testing.assert_array_equal(by_place, made.transform(frame).to_numpy())


def test_in_a_pipeline_with_a_classifier():
    draw = np.random.default_rng(1)
    table = pd.DataFrame({"age": draw.integers(18, 80, 400), "sex": draw.choice(["f", "m"], 400)})
    ill = (table["age"] > 50).to_numpy()
    encode = make_column_transformer(
        (SimpleImputer(), ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["sex"]), remainder="drop"
    )
    model = make_pipeline(shoal.Anonymizer(k=5), encode, LogisticRegression()).fit(table, ill)
    assert model.score(table, ill) > 0.8


def test_a_fitted_one_pickles_and_a_clone_is_not_fitted():
    made = shoal.Anonymizer(POLICY).fit(PEOPLE)
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(made)).transform(PEOPLE), made.transform(PEOPLE))
    with pytest.raises(NotFittedError):
        clone(made).transform(PEOPLE)


def test_hierarchies_in_files_are_found_where_the_policy_is(tmp_path):
    (tmp_path / "sex.csv").write_text("f;any\nm;any\nx;any\n", encoding="utf-8")
    columns = {**POLICY["columns"], "sex": {"role": "quasi", "hierarchy": "sex.csv", "min_level": 1}}
    shoal.Policy.of({**POLICY, "columns": columns}).save(tmp_path / "policy.toml")
    made = shoal.Anonymizer(tmp_path / "policy.toml").fit(PEOPLE)
    assert made.transform(PEOPLE.assign(sex="x"))["sex"].tolist() == ["any"] * 8  # x did not occur


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"policy": POLICY, "k": 2}, PolicyError, "not both"),
        ({"k": 9}, ValueError, "minimum of 9"),
        ({"policy": {**POLICY, "require": [{"model": "k-anonymity", "k": 9}]}}, InfeasibleError, "9"),
        ({"ranges": "mean"}, PolicyError, "choose 'middle' or 'label'"),
        ({"quasi": ["height"]}, PolicyError, "no column 'height'"),
    ],
)
def test_what_cannot_be_is_told(given, error, message):
    with pytest.raises(error, match=message):
        shoal.Anonymizer(**given).fit(PEOPLE)


def test_scikit_learn_is_loaded_only_for_the_transformer_and_named_where_it_is_missing():
    code = (
        "import sys, shoal; shoal.anonymize, shoal.inspect; assert 'sklearn' not in sys.modules\n"
        "sys.modules['sklearn'] = None\n"
        "from shoal import *\n"
        "try:\n    shoal.Anonymizer\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "python -m pip install 'shoal[learn]'" in done.stdout
