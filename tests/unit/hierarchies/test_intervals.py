"""Intervals between boundaries of one's own, and finer steps near zero."""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.hierarchies.builders import build
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import Intervals, round_numbers
from shoal.inspection.hierarchy_proposal import propose
from shoal.notation.forms import read_range


def built(fields: dict[str, object], values: list[str]) -> Hierarchy:
    return build("x", Intervals.model_validate(fields), values, nulls=False, uncovered="error", folder=Path())


def test_boundaries_are_where_intervals_begin():
    ages = [str(age) for age in (0, 17, 18, 64, 65, 90)]
    assert built({"boundaries": [18, 65]}, ages).labels[1] == ("<18", "18-64", ">=65")
    assert built({"boundaries": [[0, 18, 65], [18]]}, ages).labels[1:] == (
        ("0-17", "18-64", ">=65"),
        ("<18", ">=18"),
        ("*",),
    )
    assert built({"boundaries": [[0.5, 2]]}, ["0", "0.5", "1.9", "2"]).labels[1] == ("<0.5", "[0.5, 2)", ">=2")


def test_an_open_end_is_no_top_coding():
    ages = ["3", "20", "70", "80"]
    assert built({"boundaries": [18, 65]}, ages).labels[0] == tuple(ages)
    assert built({"boundaries": [18, 65], "top": 75}, ages).labels[:2] == (
        ("3", "20", "70", ">=75"), ("<18", "18-64", "65-74", ">=75"),
    )  # fmt: skip


def test_skewed_numbers_get_finer_steps_near_zero():
    pay = ["0", "1", "4", "7", "30", "99", "100", "250"]
    assert built({"intervals": [100, 200], "log_from": 5}, pay).labels[1:] == (
        ("0-4", "5-9", "20-49", "50-99", "100-199", "200-299"), ("0-99", "100-199", "200-299"), ("0-199", "200-399"),
        ("*",),
    )  # fmt: skip
    assert round_numbers(Decimal(5), Decimal(100)) == [5, 10, 20, 50]
    assert round_numbers(Decimal("0.02"), Decimal("0.3")) == [Decimal(x) for x in ("0.02", "0.05", "0.1", "0.2")]


@given(
    st.sets(st.integers(-50, 300), min_size=1, max_size=30),
    st.lists(st.integers(-40, 280), min_size=1, max_size=6, unique=True).map(sorted),
)
def test_every_number_lies_in_the_interval_that_its_label_reads_as(numbers, edges):
    values = [str(n) for n in sorted(numbers)]
    hierarchy = built({"boundaries": edges}, values)
    for leaf, value in enumerate(values):
        label = hierarchy.labels[1][hierarchy.table[1, leaf]]
        found = read_range(label or "")
        within = found.holds(Decimal(value)) if found else label == value
        assert within
        # As many intervals as edges that part the numbers, by another way.
    assert hierarchy.cardinality(1) == len({sum(int(v) >= edge for edge in edges) for v in values})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"boundaries": []}, "give intervals"),
        ({"boundaries": [[1, 1]]}, "each larger than the one before"),
        ({"boundaries": [[0, 18, 65], [20]]}, "some of those of the level before"),
        ({"boundaries": [[0, 18], [0, 18]]}, "some of those of the level before"),
        ({"boundaries": [18], "log_from": 2}, "go with intervals"),
        ({"intervals": [10], "log_from": 10}, "between 0 and the first width"),
        ({"intervals": [10], "log_from": 2, "origin": 1}, "between 0 and the first width"),
        ({"boundaries": ["a"]}, "must be a number"),
    ],
)
def test_mistakes_are_told(fields, message):
    with pytest.raises(shoal.ShoalError, match=message):
        shoal.Policy.of({
            "columns": {"x": {"role": "quasi", "hierarchy": fields}}, "require": [{"model": "k-anonymity", "k": 2}],
        })  # fmt: skip


@pytest.mark.parametrize("fields", [{"boundaries": [[0, 18, 65], [18]]}, {"intervals": [50, 100], "log_from": 1}])
def test_a_policy_with_them_reads_back(fields, tmp_path):
    policy = shoal.Policy.of({
        "columns": {"x": {"role": "quasi", "hierarchy": fields, "cells": "range"}},
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": "local"},
    })  # fmt: skip
    assert shoal.Policy.parse(policy.to_toml()) == policy
    frame = pd.DataFrame({"x": [str(n % 97) for n in range(0, 600, 7)]})
    release = shoal.anonymize(frame, policy)
    target = tmp_path / "release.csv"
    certificate = release.save(target)
    assert shoal.verify_certificate(certificate, target).holds  # its policy was read from what was dumped
    assert shoal.check(target, policy).holds


def test_half_of_the_people_near_zero_make_a_column_skewed():
    draw = np.random.default_rng(1)
    texts, counts = np.unique([str(int(x)) for x in np.exp(draw.normal(4, 2.5, 3000))], return_counts=True)
    found = propose("pay", list(texts), counts)
    assert isinstance(found.hierarchy, Intervals)
    assert found.hierarchy.log_from is not None
    assert "skewed" in found.told
    plain = propose("pay", list(texts), np.where(texts.astype(int) > 5000, 1000, 1))
    assert isinstance(plain.hierarchy, Intervals)
    assert plain.hierarchy.log_from is None


@given(st.lists(st.floats(0, 1e6, allow_nan=False), min_size=150, max_size=300, unique=True), st.integers(1, 5))
def test_finer_steps_only_split_what_was_there(numbers, power):
    values = sorted({f"{x / 10 ** (power * (i % 3)):.2f}" for i, x in enumerate(numbers)})
    found = propose("x", values, np.ones(len(values), np.int64))
    if isinstance(found.hierarchy, Intervals) and found.hierarchy.log_from is not None:
        fine = build("x", found.hierarchy, values, nulls=False, uncovered="error", folder=Path())
        plain = found.hierarchy.model_copy(update={"log_from": None})
        even = build("x", plain, values, nulls=False, uncovered="error", folder=Path())
        assert fine.labels[2:] == even.labels[1:]
        for here, there in zip(fine.shares[1][fine.table[1]], even.shares[1][even.table[1]], strict=True):
            assert here <= there  # no cell loses more
