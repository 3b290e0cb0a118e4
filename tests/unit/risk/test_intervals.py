"""Interval disclosure, counted by hand."""

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.errors import DataError, PolicyError
from shoal.risk import interval_disclosure
from shoal.risk.intervals import column_disclosure, deviation_disclosed, rank_disclosed

approx = pytest.approx

TEN = np.arange(10.0) * 10  # masked values 0, 10, … 90


def test_the_rank_interval_reaches_p_n_over_200_ranks_to_each_side():
    # p = 20: w = 1, so 50 stands for [40, 60].
    for x, disclosed in ((39.9, False), (40, True), (60, True), (60.1, False)):
        assert rank_disclosed(np.where(TEN == 50, x, 1e9), TEN, 20).tolist() == [False] * 5 + [disclosed] + [False] * 4


def test_at_the_ends_the_interval_stops_at_the_ends():
    x = np.where(TEN == 0, -0.1, TEN)
    assert rank_disclosed(x, TEN, 20).tolist() == [False] + [True] * 9
    assert not rank_disclosed(TEN + 10, TEN, 20)[-1]


def test_the_slides_that_swap_min_and_max_would_disclose_everybody():
    assert rank_disclosed(TEN[::-1], TEN, 20).tolist() == [False] * 4 + [True] * 2 + [False] * 4


def test_between_two_ranks_the_end_lies_in_proportion():
    x = TEN.copy()
    x[5] = 55
    assert rank_disclosed(x, TEN, 10)[5]  # w = 0.5: [45, 55]
    x[5] = 55.01
    assert not rank_disclosed(x, TEN, 10)[5]


def test_equal_masked_values_share_their_ranks():
    masked = np.array([0.0, 5, 5, 5, 10])
    x = np.array([0.0, 0, 10, 5, 10])
    assert rank_disclosed(x, masked, 40).tolist() == [True] * 5  # w = 1 from the first and the last of the fives
    assert rank_disclosed(x, masked, 0).tolist() == [True, False, False, True, True]


def test_standard_deviation():
    x = np.array([0.0, 10, 20])  # sd of a sample: 10
    assert deviation_disclosed(x, x + 1, 10).all()
    assert not deviation_disclosed(x, x + 1.01, 10).any()
    assert deviation_disclosed(np.array([4.0]), np.array([4.0]), 1).all()
    assert not deviation_disclosed(np.array([4.0, 4.0]), np.array([4.1, 4.1]), 10).any()


def test_the_average_is_over_one_to_ten_per_cent():
    x = np.array([0.0, 10, 20])
    found = column_disclosure(x, x + 0.55)
    assert [found.deviation[p] for p in range(1, 11)] == [0.0] * 5 + [1.0] * 5
    assert found.deviation_mean == 0.5


def test_missing_values():
    x = np.array([1.0, np.nan, 3, 4])
    masked = np.array([1.0, 2, np.nan, 4])
    found = column_disclosure(x, masked, [5])
    assert found.records == 3
    assert found.rank[5] == found.deviation[5] == approx(2 / 3)
    nothing = column_disclosure(x, np.full(4, np.nan), [5])
    assert (nothing.rank_mean, nothing.deviation_mean) == (0, 0)
    assert column_disclosure(np.full(2, np.nan), np.ones(2)).records == 0


def test_frames_column_by_column():
    original = pd.DataFrame({"income": [1.0, 2, 3, 4], "age": [20, 30, 40, 50]})
    masked = original.assign(age=[50, 40, 30, 20])
    found = interval_disclosure(original, masked, ["income", "age"])
    assert found.columns["income"].rank_mean == found.columns["income"].deviation_mean == 1
    assert found.columns["age"].rank_mean == found.columns["age"].deviation_mean == 0
    assert (found.rank, found.deviation) == (1, 1)
    figures = json.loads(json.dumps(found.as_dict()))
    assert figures["columns"]["age"]["records"] == 4


def test_numbers_may_come_as_text(tmp_path):
    original = pd.DataFrame({"income": [1.5, 2, None, 4], "row": range(4)})
    original.to_csv(tmp_path / "t.csv", index=False)
    assert interval_disclosure(tmp_path / "t.csv", original, ["income"]).columns["income"].records == 3


def test_what_cannot_be_compared_is_said():
    one, two = pd.DataFrame({"x": [1.0]}), pd.DataFrame({"x": [1.0, np.inf]})
    with pytest.raises(DataError, match="1 records, but the masked table has 2"):
        interval_disclosure(one, two, ["x"])
    with pytest.raises(DataError, match="2 values are infinite"):
        interval_disclosure(two, two, ["x"])
    with pytest.raises(DataError, match="not numbers"):
        interval_disclosure(pd.DataFrame({"x": ["a"]}), one, ["x"])
    with pytest.raises(PolicyError, match="percents"):
        interval_disclosure(one, one, ["x"], percents=[101])
    with pytest.raises(PolicyError, match="columns"):
        interval_disclosure(one, one, "x")


def test_the_figure_of_several_columns_names_the_worst_of_them():
    original = pa.table({"a": [1.0, 2.0, 3.0, 40.0], "b": [10.0, 20.0, 30.0, 40.0]})
    masked = pa.table({"a": [1.0, 2.0, 3.0, 40.0], "b": [40.0, 10.0, 20.0, 30.0]})
    found = interval_disclosure(original, masked, ["b", "a"])
    assert (found.rank_column, found.deviation_column) == ("a", "a")
    assert found.rank == found.columns["a"].rank_mean > found.columns["b"].rank_mean
    assert found.as_dict()["rank_column"] == "a"
