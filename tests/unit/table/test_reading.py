"""What a released text stands for."""

import math

import numpy as np
import pytest

from shoal.table.dates import Dates
from shoal.table.hierarchy import Hierarchy
from shoal.table.reading import Standing, ancestry, closed, is_star, leaves_behind, spans

MARITAL = Hierarchy.from_paths(
    "marital",
    [
        ("divorced", "been_married", "*"),
        ("married", "been_married", "*"),
        ("widow", "been_married", "*"),
        ("single", "single", "*"),
    ],
)


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("39", ((39, 39, True),)),
        ("-1.5e1", ((-15, -15, True),)),
        ("20-29", ((20, 29, True),)),
        ("[-10, -6]", ((-10, -6, True),)),
        ("[0.5, 1)", ((0.5, 1, False),)),
        (">=90", ((90, math.inf, True),)),
        ("<18", ((-math.inf, 18, False),)),
        ("*", ((-math.inf, math.inf, True),)),
        ("***", ((-math.inf, math.inf, True),)),
        ("{7, 3}", ((3, 3, True), (7, 7, True))),
        ("{3, x}", None),
        ("29-20", None),
        ("young", None),
        ("", None),
    ],
)
def test_numbers_ranges_and_sets_of_numbers_are_read(text, meaning):
    assert spans([text], None) == [meaning]


def test_a_label_of_numbers_stands_for_those_under_it():
    ages = Hierarchy.from_paths("age", [("3", "child", "*"), ("9", "child", "*"), ("40", "adult", "*")])
    assert spans(["child", "40", "adult"], ages) == [
        ((3, 3, True), (9, 9, True)),
        ((40, 40, True),),
        ((40, 40, True),),
    ]


def test_an_open_end_gives_way_to_the_last_known_value_within():
    points = np.array([0.5, 0.75, 1.0])
    assert closed((0.5, 1.0, False), points) == (0.5, 0.75)
    assert closed((0.75, 1.0, False), points) == (0.75, 0.75)
    assert closed((0.5, 1.0, True), points) == (0.5, 1.0)
    first, last = closed((0.8, 1.0, False), points)
    assert first <= last < 1.0
    assert closed((-math.inf, 0.5, False), points)[1] < 0.5


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("35138", ["35138", "351**", "**138", "{35138, 7}"]),
        ("351", ["351**"]),
        ("94138", ["**138"]),
        ("351389", []),
        ("7", ["{35138, 7}"]),
        ("1999-05-06", ["1999-05-01/1999-05-31"]),
        ("1999-05-06T10:00:00", ["1999-05-01/1999-05-31"]),
        ("1999-06-01", []),
    ],
)
def test_masks_sets_and_days_stand_for_what_they_are_written_for(value, texts):
    released = ["*", "35138", "351**", "**138", "{35138, 7}", "1999-05-01/1999-05-31", "*****"]
    assert [released[i] for i in Standing(released, None).of(value)] == texts


def test_a_label_stands_for_a_value_on_every_level_and_stars_are_left_out():
    released = ["*", "been_married", "single", "divorced"]
    standing = Standing(released, MARITAL)
    assert [released[i] for i in standing.of("divorced")] == ["been_married", "divorced"]
    assert [released[i] for i in standing.of("single")] == ["single"]
    assert standing.of("never heard of") == []


def test_members_of_a_set_may_be_quoted():
    released = ['{"a, b", c}']
    standing = Standing(released, None)
    assert [standing.of(value) for value in ("a, b", "c", "a")] == [[0], [0], []]


def test_common_ancestors_count_levels_by_the_height():
    table = ancestry(["divorced", "single", "alien"], ["divorced", "been_married", "widow", "{single, widow}"], MARITAL)
    assert table.tolist() == [[0, 0, 0.5, 0.5], [1, 1, 1, 0], [1, 1, 1, 1]]


def test_only_stars_are_stars():
    assert [is_star(text) for text in ("*", "****", "", "3*")] == [True, True, False, False]


@pytest.mark.parametrize(
    ("given", "text", "leaves"),
    [
        ({"dates": ["month", "year"]}, "2001-02/2001-03", {0, 1, 2}),
        ({"dates": ["week", "year"]}, "2001-02-01/2001-03-07", {0, 1, 2}),
        ({"dates": ["month", "year"]}, "2001-02-20/2001-12-31", {1, 2, 3}),
        ({"dates": ["month", "year"]}, "{2001-02, 2001-12-31}", {0, 1, 3}),
        ({"dates": ["month", "year"]}, "2001-03/2001-02", set()),
        ({"dates": ["month", "year"]}, "2001-02/2002-09", set()),
    ],
)
def test_a_range_of_dates_may_end_on_any_level(given, text, leaves):
    days = ["2001-02-03", "2001-02-20", "2001-03-01", "2001-12-31"]
    hierarchy = Dates.model_validate(given).build("day", days).with_null()
    assert leaves_behind(hierarchy, [text]) == [leaves]


def test_a_range_of_dates_reads_back_in_the_format_of_the_data():
    days = ["2/14/65", "9/20/65", "12/1/64"]
    hierarchy = Dates.model_validate({"dates": ["year"], "format": "%m/%d/%y"}).build("day", days)
    assert hierarchy.leaves == ("12/1/64", "2/14/65", "9/20/65")
    assert leaves_behind(hierarchy, ["12/1/64/2/14/65", "2/14/65/9/20/65"]) == [{0, 1}, {1, 2}]
