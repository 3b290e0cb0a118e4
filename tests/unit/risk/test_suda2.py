"""Special uniques of small tables."""

import json

import pandas as pd
import pytest

import shoal.risk
from shoal.errors import PolicyError
from shoal.risk import suda

approx = pytest.approx


def scores(rows, **options):
    frame = pd.DataFrame(rows, columns=[f"c{j}" for j in range(len(rows[0]))])
    found = suda(frame, list(frame), **options)
    return found.scores[found.class_of].tolist()


def test_one_column_that_suffices_scores_most():
    # a alone has 2 on the first column; the others need two columns.
    assert scores([("a", "x"), ("b", "x"), ("b", "y"), ("c", "y"), ("c", "x")]) == [1, 1, 1, 1, 1]
    assert scores([("a", "x"), ("b", "x"), ("b", "x")]) == [1, 0, 0]
    assert scores([("a", "x", 1), ("b", "x", 1), ("b", "x", 1)]) == [2, 0, 0]


def test_a_set_is_minimal_where_no_part_of_it_is_unique():
    found = suda(pd.DataFrame({"a": list("xxyy"), "b": list("pqpp"), "c": list("1111")}), ["a", "b", "c"])
    # (x,q): b alone. (x,p): a and b together, since x is twice and p three times.
    assert found.sizes[found.class_of].tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 0]]
    assert found.contributions[found.class_of][0].tolist() == [1, 1, 0]
    assert found.msu == 2


def test_duplicates_are_no_uniques():
    assert scores([("a", "x"), ("a", "x"), ("b", "y"), ("b", "y")]) == [0, 0, 0, 0]


def test_a_record_alone_in_its_table_is_special():
    assert scores([("a", "x")]) == [2]


def test_sets_up_to_a_size():
    rows = [("x", "p"), ("x", "q"), ("y", "p"), ("y", "p"), ("x", "p"), ("z", "q")]
    assert scores(rows) == [0, 1, 0, 0, 0, 1]
    assert scores(rows, max_size=1) == [0, 0, 0, 0, 0, 1]


def test_dis_is_one_without_pairs_and_falls_with_them():
    unique = suda(pd.DataFrame({"a": [1, 2, 3]}), ["a"])
    assert unique.dis.tolist() == [1, 1, 1]
    found = suda(pd.DataFrame({"a": [1, 2, 2, 3, 3, 3]}), ["a"], sampling_fraction=0.5)
    # One pair, one unique of score 1: 1 / (1 + 2·1·1/(1·1)).
    assert found.dis[found.class_of].tolist() == approx([1 / 3, 0, 0, 0, 0, 0])


def test_contributions_by_column_and_by_value():
    frame = pd.DataFrame({"a": list("xxyyz"), "b": list("pqppp")})
    found = suda(frame, ["a", "b"])
    # MSU: row 0 {a,b}, row 1 {b}, row 4 {a}; each scores 1.
    assert found.scores[found.class_of].tolist() == [1, 1, 0, 0, 1]
    assert found.by_column == approx({"a": 2 / 3, "b": 2 / 3})
    assert found.by_value("a") == approx({"x": 1 / 2, "z": 1 / 2})
    assert found.by_value("b") == approx({"p": 1 / 2, "q": 1 / 2})


def test_a_null_is_a_value_or_keeps_everybody_company():
    rows = [("x", "p"), ("x", "p"), (None, "q"), ("x", "q")]
    assert scores(rows) == [0, 0, 1, 1]
    assert scores(rows, nulls="wildcard") == [0, 0, 0, 0]


def test_a_null_of_somebody_else_hides_a_record_on_that_column_only():
    rows = [("x", "p"), (None, "q"), ("y", "q"), ("y", "q")]
    # x is alone but for the null; p is alone.
    assert scores(rows, nulls="wildcard") == [1, 0, 0, 0]
    assert scores(rows) == [2, 1, 0, 0]


def test_plain_values_for_json():
    found = suda(pd.DataFrame({"a": list("xxyyz"), "b": list("pqppp")}), ["a", "b"])
    figures = json.loads(json.dumps(found.as_dict()))
    assert figures["msu_by_size"] == {"1": 2, "2": 1}
    assert (figures["special"], figures["msu"], figures["records"], figures["max_score"]) == (3, 3, 5, 1)


def test_no_uniques_no_shares():
    found = suda(pd.DataFrame({"a": [1, 1]}), ["a"])
    assert found.by_column == {"a": 0}
    assert found.by_value("a") == {}


def test_what_cannot_be_asked():
    frame = pd.DataFrame({"a": [1, 2]})
    with pytest.raises(PolicyError, match="max_size"):
        suda(frame, ["a"], max_size=0)
    with pytest.raises(PolicyError, match="sampling_fraction"):
        suda(frame, ["a"], sampling_fraction=0)


def test_every_public_name_can_be_imported_and_no_other():
    for name in shoal.risk.__all__:
        assert callable(getattr(shoal.risk, name))
    with pytest.raises(AttributeError, match="no attribute 'luck'"):
        shoal.risk.luck  # noqa: B018
