"""Masking columns of a table: what comes back, of which type, and what is refused."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from shoal.errors import DataError, InfeasibleError, MissingValueError, PolicyError
from shoal.masking import microaggregate

PAY = [10, 12, 14, 100, 104, 150]


def masked(data, columns=("pay",), **options):
    return microaggregate(data, list(columns), **{"k": 3, **options})


@pytest.mark.parametrize(
    ("value", "low", "high"), [("mean", 12.0, 118.0), ("median", 12.0, 104.0), ("range", "10-14", "100-150")]
)
def test_every_value_becomes_that_of_its_group(value, low, high):
    frame = pa.table({"pay": PAY, "name": list("abcdef")})
    table = masked(frame, value=value).table
    assert table["pay"].to_pylist() == [low] * 3 + [high] * 3
    assert table["name"].to_pylist() == list("abcdef")


def test_the_mode_keeps_the_type_and_the_first_of_equals():
    table = masked(pa.table({"pay": [3, 3, 1, 9, 8, 7]}), value="mode").table
    assert table["pay"].to_pylist() == [3, 3, 3, 7, 7, 7]
    assert table.schema.field("pay").type == pa.int64()


def test_the_middle_of_an_even_group_lies_between():
    assert masked(pa.table({"pay": [1, 2, 4, 8]}), k=4, value="median").table["pay"].to_pylist() == [3.0] * 4


def test_frames_come_back_as_they_came():
    assert isinstance(masked(pd.DataFrame({"pay": PAY})).table, pd.DataFrame)
    assert isinstance(masked(pl.DataFrame({"pay": PAY})).table, pl.DataFrame)


def test_text_that_is_numbers_will_do(tmp_path):
    (tmp_path / "pay.csv").write_text("pay\n" + "\n".join(map(str, PAY)) + "\n")
    assert masked(tmp_path / "pay.csv").table["pay"].to_pylist() == [12.0] * 3 + [118.0] * 3


def test_the_loss_is_the_part_of_the_variance_that_is_gone():
    found = masked(pa.table({"pay": PAY}))
    groups = [PAY[:3], PAY[3:]]
    within = sum(np.var(group) * 3 for group in groups)
    assert found.loss == pytest.approx(within / (np.var(PAY) * 6))
    assert json.loads(json.dumps(found.as_dict()))["loss"] == found.loss
    assert (found.smallest, found.groups) == (3, {"pay": 2})


def test_a_column_of_one_value_loses_nothing():
    found = masked(pa.table({"pay": [5] * 6}))
    assert (found.sse, found.sst, found.loss) == (0, 0, 0)
    assert found.table["pay"].to_pylist() == [5.0] * 6


def test_columns_are_grouped_together_or_each_for_itself():
    table = pa.table({"a": [0, 1, 10, 11], "b": [0, 10, 1, 11]})
    joint = masked(table, ["a", "b"], k=2).table
    rows = list(zip(joint["a"].to_pylist(), joint["b"].to_pylist(), strict=True))
    assert all(rows.count(row) >= 2 for row in rows)
    apart = masked(table, ["a", "b"], k=2, method="univariate").table
    assert apart["a"].to_pylist() == [0.5, 0.5, 10.5, 10.5]
    assert apart["b"].to_pylist() == [0.5, 10.5, 0.5, 10.5]


def test_categories_join_in_and_become_the_most_frequent_of_their_group():
    table = pa.table({"pay": [1, 2, 3, 50, 51, 52], "sex": ["f", "f", "m", "m", "m", None]})
    shown = masked(table, categories=["sex"]).table
    assert shown["sex"].to_pylist() == ["f"] * 3 + ["m"] * 3
    sets = masked(table, categories=["sex"], value="range").table
    assert sets["sex"].to_pylist() == ["{f, m}"] * 3 + ["*"] * 3


def test_the_order_of_rows_decides_nothing():
    draw = np.random.default_rng(0)
    frame = pd.DataFrame({"a": draw.integers(0, 5, 40), "b": draw.integers(0, 5, 40), "c": draw.integers(0, 2, 40)})
    frame["c"] = frame["c"].map({0: "x", 1: "y"})
    for method in ("mdav", "v-mdav"):
        one = masked(frame, ["a", "b"], categories=["c"], method=method)
        other = masked(frame.iloc[::-1], ["a", "b"], categories=["c"], method=method)
        key = list(frame.columns)
        # Equal records may part ways; which of them goes where is no more than a name.
        pairs = [
            sorted(map(tuple, np.hstack([of, m.table[key].to_numpy(object)]).tolist()))
            for of, m in ((frame.to_numpy(object), one), (frame.iloc[::-1].to_numpy(object), other))
        ]
        assert pairs[0] == pairs[1]


def test_the_mean_of_a_column_stays():
    draw = np.random.default_rng(1)
    frame = pd.DataFrame({"a": draw.lognormal(8, 2, 101), "b": draw.normal(size=101)})
    for method in ("mdav", "v-mdav", "univariate"):
        table = masked(frame, ["a", "b"], method=method, k=4).table
        assert table["a"].mean() == pytest.approx(frame["a"].mean(), rel=1e-12)
        assert table["b"].mean() == pytest.approx(frame["b"].mean(), rel=1e-9)


@pytest.mark.parametrize(
    ("table", "options", "error", "told"),
    [
        ({"pay": [1, None, 3]}, {}, MissingValueError, "1 of 3 values are missing"),
        ({"pay": ["1", "x7", "3"]}, {}, DataError, "1 of 3 distinct values are not numbers"),
        ({"pay": [1, 2]}, {}, InfeasibleError, "no group can have 3 records: there are only 2"),
        ({"pay": [1, 2, 3]}, {"k": 0}, PolicyError, "k: must be at least 1"),
        ({"pay": [1, 2, 3]}, {"method": "ward"}, PolicyError, "unknown method"),
        ({"pay": [1, 2, 3]}, {"value": "sum"}, PolicyError, "unknown value"),
        ({"pay": [1, 2, 3]}, {"columns": ()}, PolicyError, "at least one numeric column"),
        ({"pay": [1, 2, 3]}, {"columns": ("pay", "pay")}, PolicyError, "listed twice"),
        ({"pay": [1, 2, 3]}, {"columns": ("age",)}, PolicyError, "no column 'age'"),
        ({"pay": [1, 2, 3], "s": list("abc")}, {"categories": ["s"], "improve": True}, PolicyError, "sums of squares"),
        (
            {"pay": [1, 2, 3], "s": list("abc")},
            {"categories": ["s"], "method": "univariate"},
            PolicyError,
            "sums of squares",
        ),
    ],
)
def test_what_cannot_be_masked_is_refused_without_a_value(table, options, error, told):
    with pytest.raises(error, match=told) as caught:
        masked(pa.table(table), **options)
    assert "x7" not in str(caught.value)


@pytest.mark.parametrize("pay", [[1.0, float("inf"), 3.0], ["1", "1e399", "3"]])
def test_what_no_double_holds_is_no_number(pay):
    with pytest.raises(DataError, match="1 of 3 distinct values are not numbers"):
        masked(pa.table({"pay": pay}))


@pytest.mark.parametrize("method", ["mdav", "v-mdav", "univariate"])
def test_the_largest_numbers_are_grouped_like_others(method):
    found = masked(pa.table({"pay": [1e308, 1.1e308, 1.2e308, -1e308, -1.1e308, -1.2e308]}), method=method)
    assert found.table["pay"].to_pylist() == pytest.approx([1.1e308] * 3 + [-1.1e308] * 3)
    assert 0 < found.loss < 0.01


def test_one_number_written_in_two_ways_is_no_range():
    assert masked(pa.table({"pay": ["39", "039", "39.0"]}), value="range").table["pay"].to_pylist() == ["039"] * 3
