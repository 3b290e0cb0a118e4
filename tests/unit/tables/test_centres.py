"""Means, medians and modes as released cells: what they say, what they stand for, what they cost."""

import numpy as np
import pytest

from shoal.hierarchies.dates import Dates
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import Intervals
from shoal.tables.centres import centred


def numbers(*texts, **options):
    return Intervals(intervals=(5, 10), **options).build("age", texts)


def shown(hierarchy, cells, *classes):
    """The centres of classes of (leaf text, records)."""
    members = [sorted((int(hierarchy.encode([text])[0]), n) for text, n in of) for of in classes]
    leaves = np.array([leaf for of in members for leaf, _ in of], np.int32)
    counts = np.array([n for of in members for _, n in of], np.int64)
    starts = np.cumsum([0, *map(len, members)])[:-1]
    values, ids = centred(hierarchy, cells, leaves, counts, starts)
    return values, ids, [values.labels[i] for i in ids]


def test_a_mean_counts_records_and_has_two_digits_more_than_the_data():
    _, _, labels = shown(numbers("20", "21", "23"), "mean", [("20", 2), ("21", 1)], [("23", 4)], [("20", 1), ("21", 1)])
    assert labels == ["20.33", "23", "20.5"]


@pytest.mark.parametrize(
    ("texts", "mean"),
    [
        (["-1", "-2"], "-1.5"),
        (["-1", "1"], "0"),
        (["0.1", "0.2"], "0.15"),
        (["0.05", "0.1", "0.1001"], "0.083367"),
        (["1e3", "1"], "500.5"),
        (["9007199254740993", "9007199254740995"], "9007199254740994"),
        (["-0.0", "0.0"], "0"),
    ],
)
def test_means_are_exact_until_they_are_written(texts, mean):
    _, _, labels = shown(numbers(*texts), "mean", [(text, 1) for text in texts])
    assert labels == [mean]


def test_a_median_is_the_middle_record_or_between_two():
    hierarchy = numbers("1", "2", "5", "100")
    classes = [[("1", 1), ("2", 1), ("100", 1)], [("2", 1), ("5", 1)], [("1", 3), ("100", 2)], [("5", 2), ("100", 2)]]
    assert shown(hierarchy, "median", *classes)[2] == ["2", "3.5", "1", "52.5"]


def test_a_mode_is_the_most_frequent_and_of_equals_the_first():
    hierarchy = Hierarchy.from_paths("job", [["cook", "*"], ["nurse", "*"], ["clerk", "*"]])
    classes = [[("cook", 1), ("nurse", 2)], [("clerk", 1), ("nurse", 1)]]
    values, ids, labels = shown(hierarchy, "mode", *classes)
    assert labels == ["nurse", "nurse"]
    # One text, one value: it stands for whatever either class could be.
    assert ids.tolist() == [0, 0]
    assert values.covers[0].tolist() == [0, 1, 2]


def test_the_median_of_dates_is_the_earlier_of_the_two_in_the_middle():
    hierarchy = Dates(dates=("month",)).build("day", ["2001-01-05", "2001-01-09", "2002-03-01"])
    classes = [[("2001-01-05", 1), ("2001-01-09", 1)], [("2001-01-05", 1), ("2001-01-09", 1), ("2002-03-01", 3)]]
    assert shown(hierarchy, "median", *classes)[2] == ["2001-01-05", "2002-03-01"]


def test_a_mean_stands_for_the_range_of_its_class_and_costs_as_much():
    values, ids, labels = shown(numbers("20", "22", "25", "30"), "mean", [("20", 1), ("25", 1)], [("30", 2)])
    assert labels == ["22.5", "30"]
    assert values.covers[ids[0]].tolist() == [0, 1, 2]
    assert values.shares[ids].tolist() == [0.5, 0.0]
    assert values.sizes[ids].tolist() == [3, 1]


def test_classes_with_one_mean_share_a_value_that_stands_for_both():
    values, ids, labels = shown(numbers("20", "22", "24", "30"), "mean", [("20", 1), ("24", 1)], [("22", 6)])
    assert labels == ["22", "22"]
    assert ids.tolist() == [0, 0]
    assert values.covers[0].tolist() == [0, 1, 2]
    # Two of eight records lose 4/10 of the range, six nothing.
    assert values.shares.tolist() == pytest.approx([0.1])


def test_what_may_not_be_shown_as_it_is_has_no_mean():
    coded = numbers("20", "22", "70", "80", top=60).with_null()
    classes = [[("20", 1), ("22", 1)], [("22", 1), ("80", 1)], [("70", 1), ("80", 1)], [("20", 1), (None, 1)]]
    assert shown(coded, "mean", *classes)[2] == ["21", ">=22", ">=60", "*"]


def test_a_lowest_level_that_is_an_interval_shows_intervals():
    hierarchy = numbers("20", "21", "28").selected([1, 2, 3])
    labels = shown(hierarchy, "mean", [("20", 3)], [("20", 1), ("28", 1)])[2]
    assert labels == ["20-24", "20-29"]


def test_the_middle_of_what_is_uncovered_is_anything():
    hierarchy = Hierarchy.from_paths("job", [["cook", "*"], ["nurse", "*"]]).with_uncovered()
    values, ids, labels = shown(hierarchy, "mode", [("baker", 2), ("cook", 1)], [("cook", 2)])
    assert labels == ["*", "cook"]
    assert values.sizes[ids].tolist() == [2, 1]
    assert values.shares[ids].tolist() == [1.0, 0.0]


def test_what_the_lowest_level_joins_under_the_name_of_one_value_is_not_told_apart_by_a_mean():
    levels = [["20", "20", "30"], ["*", "*", "*"]]
    hierarchy = Hierarchy.from_levels("age", ["20", "21", "30"], levels, leaf_order="numeric")
    for cells in ("mean", "median"):
        one, other = (shown(hierarchy, cells, [(leaf, 1), ("30", 1)])[2] for leaf in ("20", "21"))
        assert one == other == ["20-30"]
