"""Roles and k instead of a policy, and policies edited in code."""

import pandas as pd
import pytest

import shoal
from shoal.errors import PolicyError

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
    assert edited.require == policy.require
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
