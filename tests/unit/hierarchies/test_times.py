"""If these fail, a time of day is misread, or gets into the wrong group."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.hierarchies.builders import build
from shoal.hierarchies.times import Times, read_time
from shoal.inspection.hierarchy_proposal import propose
from shoal.utility.reading import Pair


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("9:30", 9.5 * 3600),
        ("09:30:15", 9.5 * 3600 + 15),
        ("00:00", 0),
        ("23:59:59.5", 86399.5),
        ("12:05 am", 300),
        ("12:05 p.m.", 12 * 3600 + 300),
        ("9:30PM", 21.5 * 3600),
        ("24:00", None),
        ("13:00 pm", None),
        ("9:60", None),
        ("9", None),
        ("", None),
    ],
)
def test_times_are_read(text, seconds):
    assert read_time(text) == seconds


def test_a_time_lies_in_its_quarter_its_hour_and_its_part_of_the_day():
    spec = Times.model_validate({"times": ["quarter-hour", "hour", "quarter-day"]})
    hierarchy = build("t", spec, ["9:30", "9:46", "17:00"], nulls=False, uncovered="error", folder=Path())
    assert hierarchy.labels == (
        ("9:30", "9:46", "17:00"),
        ("09:30/09:44", "09:45/09:59", "17:00/17:14"),
        ("09:00/09:59", "17:00/17:59"),
        ("06:00/11:59", "12:00/17:59"),
        ("*",),
    )


@given(st.sets(st.times().map(lambda time: time.isoformat("minutes")), min_size=3, max_size=60))
def test_a_label_holds_its_times(texts):
    values = sorted(texts)
    found = propose("t", values, np.ones(len(values), np.int64))
    hierarchy = build("t", found.hierarchy, values, nulls=False, uncovered="error", folder=Path())
    if not isinstance(found.hierarchy, Times):
        return
    for labels, codes in zip(hierarchy.labels[1:-1], hierarchy.table[1:-1], strict=True):
        for leaf, code in enumerate(codes):
            first, last = str(labels[code]).split("/")
            assert first <= str(hierarchy.leaves[leaf]) <= last


@pytest.mark.parametrize("min_level", [0, 1])
@pytest.mark.parametrize("algorithm", ["local", "mondrian", "optimal"])
def test_released_times_hold_and_read_back(algorithm, min_level):
    draw = np.random.default_rng(3)
    minutes = draw.integers(0, 1440, 80)
    frame = pd.DataFrame({
        "admitted": [f"{m // 60:02}:{m % 60:02}" for m in minutes], "ward": draw.choice(["a", "b"], 80),
    })  # fmt: skip
    units = ["quarter-hour", "hour", "quarter-day"]
    column = {"role": "quasi", "hierarchy": {"times": units}, "cells": "range", "min_level": min_level}
    policy = shoal.Policy.of({
        "columns": {"admitted": column, "ward": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 4}],
        "release": {"algorithm": algorithm},
    })  # fmt: skip
    release = shoal.anonymize(frame, policy)
    assert shoal.check(release.table, policy).holds
    for text in release.table["admitted"].unique():
        assert text == "*" or len(text.split("/")) <= 2
    pair = Pair.from_tables(frame, release.table, policy)  # the one reader of releases
    assert pair.unknown == {}


@pytest.mark.parametrize("wrong", [[], ["hour", "quarter-hour"], ["minute"]])
def test_mistakes_are_told(wrong):
    with pytest.raises(shoal.ShoalError, match=r"columns\.t\.hierarchy: times"):
        shoal.Policy.of({
            "columns": {"t": {"role": "quasi", "hierarchy": {"times": wrong}}},
            "require": [{"model": "k-anonymity", "k": 2}],
        })  # fmt: skip
