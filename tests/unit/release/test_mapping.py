"""The mapping of a release: every released value, what it stands for, and how often it occurs."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import shoal
from shoal.search import SEARCHES

FRAME = pd.DataFrame({
    "age": ["21", "22", "24", "31", "33", "38"],
    "zip": ["101", "102", "102", "201", "201", None],
    "job": ["cook", "nurse", "cook", "clerk", "clerk", "cook"],
    "serial": list("abcdef"),
})  # fmt: skip


def policy(algorithm="optimal", cells="hierarchy", **release):
    tree = {"tree": {"any": {"office": ["clerk"], "other": ["cook", "nurse"]}}}
    return shoal.Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}, "cells": cells},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "job": {"role": "quasi", "hierarchy": tree},
            "serial": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
        "release": {"algorithm": algorithm, **release},
    })  # fmt: skip


def test_labels_of_a_level_with_what_is_under_them():
    mapping = shoal.anonymize(FRAME, policy()).mapping
    assert mapping["age"].to_pylist() == [
        {"released": "20-29", "first": "21", "last": "24", "values": None, "records": 3},
        {"released": "30-39", "first": "31", "last": "38", "values": None, "records": 3},
    ]
    assert mapping["zip"].to_pylist() == [
        {"released": "*", "first": None, "last": None, "values": ["101", "102", "201", None], "records": 6}
    ]
    assert sum(mapping["job"]["records"].to_pylist()) == 6


def test_means_stand_for_the_range_of_their_class():
    mapping = shoal.anonymize(FRAME, policy("mdav", "mean")).mapping
    assert [(line["released"], line["first"], line["last"]) for line in mapping["age"].to_pylist()] == [
        ("27.67", "21", "38"),
        ("28.67", "22", "33"),
    ]


@pytest.mark.parametrize("algorithm", SEARCHES)
def test_every_original_value_is_among_what_its_cell_stands_for(algorithm):
    options = {"max_suppression": 0.5} if algorithm == "suppress_records" else {}
    draw = np.random.default_rng(4)
    frame = pd.DataFrame({
        "age": draw.integers(20, 30, 60).astype(str),
        "zip": draw.choice(["101", "102", "201"], 60),
        "job": draw.choice(["cook", "nurse", "clerk"], 60),
        "serial": [f"{i:02}" for i in range(60)],
    })  # fmt: skip
    if algorithm == "suppress_records":
        frame = pd.concat([frame.iloc[:20].assign(age="20", zip="101", job="cook"), frame.iloc[20:30]])
        options = {"max_suppression": 1.0}
    release = shoal.anonymize(frame, policy(algorithm, **options))
    original = frame.set_index("serial")
    for name, table in release.mapping.items():
        stands_for = {line["released"]: line for line in table.to_pylist()}
        assert sum(line["records"] for line in stands_for.values()) == len(release.table)
        for serial, text in zip(release.table["serial"], release.table[name], strict=True):
            line, own = stands_for[text], original.loc[serial, name]
            assert line["first"] <= own <= line["last"] if line["values"] is None else own in line["values"]


def test_suppressed_records_that_stay_are_stars():
    frame = pd.concat([FRAME, FRAME, FRAME.iloc[:1].assign(age="90")]).assign(serial=[str(i) for i in range(13)])
    release = shoal.anonymize(frame, policy(max_suppression=0.5, suppressed="keep"))
    star = next(line for line in release.mapping["age"].to_pylist() if line["released"] == "*")
    assert (star["first"], star["last"]) == ("21", "90")


def test_values_that_keep_their_type_are_found_all_the_same():
    table = pa.table({"age": [20, 20, 20], "zip": ["1"] * 3, "job": ["cook"] * 3, "serial": list("abc")})
    mapping = shoal.anonymize(table, policy()).mapping
    assert mapping["age"].to_pylist() == [{"released": "20", "first": "20", "last": "20", "values": None, "records": 3}]


def test_the_mapping_is_json_in_a_line():
    mapping = shoal.anonymize(FRAME, policy()).mapping
    text = json.dumps({name: table.to_pylist() for name, table in mapping.items()})
    assert set(json.loads(text)) == {"age", "zip", "job"}
