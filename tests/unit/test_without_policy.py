"""Roles and k instead of a policy, and policies edited in code."""

import numpy as np
import pandas as pd
import pytest

import shoal
from shoal.errors import PolicyError
from shoal.models import SensitiveModel

PEOPLE = pd.DataFrame(
    {
        "id": [f"P{i:04}" for i in range(120)],
        "age": [20 + i % 40 for i in range(120)],
        "city": ["Rome", "Oslo", "Bern"] * 40,
        "disease": ["flu", "gout", "cold", "cold"] * 30,
        "ward": ["a", "b"] * 60,
    }
)


def test_k_and_roles_are_a_policy():
    release = shoal.anonymize(PEOPLE, k=5, quasi=["age", "city"], sensitive=["disease"])
    assert release.measured["k"] >= 5
    assert list(release.table.columns) == ["age", "city", "disease", "ward"]
    roles = {name: column.role for name, column in release.policy.columns.items()}
    assert roles == {"id": "identifier", "age": "quasi", "city": "quasi", "disease": "sensitive", "ward": "quasi"}
    assert shoal.check(release.table, release.policy).holds


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 5}, "quasi is missing"),
        ({"quasi": ["age"]}, "k or quasi is missing"),
        ({"k": 5, "quasi": ["nobody"]}, "has no column 'nobody'"),
        ({"k": 5, "quasi": ["age"], "sensitive": ["age"]}, "known and as sensitive"),
        ({"k": 0, "quasi": ["age"]}, "greater than or equal to 1"),
    ],
)
def test_what_is_missing_or_wrong_is_told(given, message):
    with pytest.raises(PolicyError, match=message):
        shoal.anonymize(PEOPLE, **given)


def test_a_policy_and_roles_are_not_mixed():
    policy = shoal.inspect(PEOPLE).policy
    with pytest.raises(PolicyError, match="not both"):
        shoal.anonymize(PEOPLE, policy, k=5)


def test_a_policy_is_edited_in_code():
    policy = shoal.inspect(PEOPLE).policy
    edited = policy.with_columns(disease="quasi", age={"cells": "hierarchy"}, ward={"role": "plain"})
    assert edited.columns["disease"].role == "quasi"
    assert edited.columns["age"].cells == "hierarchy"
    assert edited.columns["age"].hierarchy == policy.columns["age"].hierarchy  # what is not given stays
    assert {model.column for model in policy.require if isinstance(model, SensitiveModel)} == {"disease"}
    assert edited.require == tuple(model for model in policy.require if not isinstance(model, SensitiveModel))
    assert policy.with_columns(age={"cells": "hierarchy"}).require == policy.require
    assert policy.columns["disease"].role == "sensitive"
    with pytest.raises(PolicyError, match="ward"):
        policy.with_columns(ward="nonsense")


def test_an_inspection_shows_itself_and_gives_a_policy_to_edit():
    found = shoal.inspect(PEOPLE)
    html = found._repr_html_()
    assert ".policy.with_columns(" in html
    assert html.count("<tr>") == 1 + len(found.columns)
    for column in found.columns:
        assert f">{column.name}<" in html
        assert column.role in html
    edited = found.policy.with_columns(
        age={"role": "quasi", "hierarchy": {"intervals": [10, 20]}, "cells": "hierarchy"}
    )
    assert shoal.anonymize(PEOPLE, edited).measured["k"] >= 2


def roles_of(release: shoal.Release) -> dict[str, str]:
    return {name: column.role for name, column in release.policy.columns.items()}


def test_a_column_that_nobody_named_is_not_published_as_it_is():
    wide = PEOPLE.assign(
        enrolled=pd.date_range("2020-01-01", periods=120).astype(str), height=[150 + i / 7 for i in range(120)]
    )
    release = shoal.anonymize(wide, k=5, quasi=["age", "city"], sensitive=["disease"])
    assert {roles_of(release)[name] for name in ("enrolled", "height", "ward")} == {"quasi"}
    known = release.table[["age", "city", "enrolled", "height", "ward"]].astype(str)
    assert known.groupby(list(known.columns)).size().min() >= 5
    (note,) = [finding for finding in release.findings if finding.kind == "proposed-roles"]
    assert note.severity == "note"
    for name in ("'enrolled'", "'height'", "'id'"):
        assert name in str(note)


def test_only_a_column_that_is_named_plain_is_published_as_it_is():
    release = shoal.anonymize(PEOPLE, k=5, quasi=["age"], sensitive=["disease"], plain=["ward", "city"])
    assert roles_of(release) == {
        "id": "identifier",
        "age": "quasi",
        "city": "plain",
        "disease": "sensitive",
        "ward": "plain",
    }
    assert sorted(release.table["ward"]) == sorted(PEOPLE["ward"])


def test_diversity_and_closeness_are_asked_for_by_their_letters():
    given = {"quasi": ["age"], "sensitive": ["disease"], "plain": ["ward", "city"]}
    release = shoal.anonymize(PEOPLE, k=np.int64(5), l=np.int32(3), **given)
    assert release.measured["l"] >= 3
    assert release.measured["k"] >= 5
    release = shoal.anonymize(PEOPLE, k=5, t=np.float64(0.3), **given)
    assert release.measured["t"] <= 0.3 + 1e-9
    models = {model.model for model in release.policy.require}
    assert "t-closeness" in models
    assert "distinct-l-diversity" not in models


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 5, "quasi": ["aeg"]}, "did you mean 'age'"),
        ({"k": 5, "quasi": ["age"], "plain": ["Ward "]}, "did you mean 'ward'"),
        ({"k": 5, "quasi": ["age"], "l": 2}, "no column is named as sensitive"),
        ({"k": 5.5, "quasi": ["age"]}, "whole number"),
        ({"k": 5, "quasi": ["age"], "plain": ["age"]}, "known and as plain"),
    ],
)
def test_a_misspelt_name_or_a_wrong_number_is_explained(given, message):
    with pytest.raises(PolicyError, match=message):
        shoal.anonymize(PEOPLE, **given)


def test_every_door_suggests_the_name_that_was_meant():
    policy = {
        "columns": {"zipp": {"role": "plain"}, "age": {"role": "quasi", "hierarchy": {"flat": True}}},
        "require": [{"model": "k-anonymity", "k": 1}],
    }
    table = pd.DataFrame({"zip": ["1", "2"], "age": [1, 2]})
    with pytest.raises(PolicyError, match="did you mean 'zip'"):
        shoal.anonymize(table, policy)
    with pytest.raises(PolicyError, match="did you mean 'zip'"):
        shoal.measure(table, quasi=["zpi"])
    with pytest.raises(PolicyError) as error:
        shoal.measure(table, quasi=["quite another"])
    assert "zip" not in str(error.value)  # without a line of names, these would be values
