"""What a released text stands for."""

import math

import numpy as np
import pyarrow as pa
import pytest

from shoal.hierarchies.dates import Dates
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.reader import LeavesBehind, Reader, unread_cells
from shoal.hierarchies.spans import closed, spans
from shoal.linkage.measure import ancestry
from shoal.notation import codec
from shoal.notation.forms import is_star

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
        ("39", ((39, 39, True, True),)),
        ("-1.5e1", ((-15, -15, True, True),)),
        ("20-29", ((20, 29, True, True),)),
        ("[-10, -6]", ((-10, -6, True, True),)),
        ("[0.5, 1)", ((0.5, 1, True, False),)),
        (">=90", ((90, math.inf, True, True),)),
        ("<18", ((-math.inf, 18, True, False),)),
        ("*", ((-math.inf, math.inf, True, True),)),
        ("***", ((-math.inf, math.inf, True, True),)),
        ("{7, 3}", ((3, 3, True, True), (7, 7, True, True))),
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
        ((3, 3, True, True), (9, 9, True, True)),
        ((40, 40, True, True),),
        ((40, 40, True, True),),
    ]


def test_an_open_end_gives_way_to_the_last_known_value_within():
    points = np.array([0.5, 0.75, 1.0])
    assert closed((0.5, 1.0, True, False), points) == (0.5, 0.75)
    assert closed((0.75, 1.0, True, False), points) == (0.75, 0.75)
    assert closed((0.5, 1.0, True, True), points) == (0.5, 1.0)
    first, last = closed((0.8, 1.0, True, False), points)
    assert first <= last < 1.0
    assert closed((-math.inf, 0.5, True, False), points)[1] < 0.5


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("35138", ["35138", "351**", "**138", "{35138, 7}"]),
        ("351", ["351**"]),
        ("94138", ["**138"]),
        ("351389", []),
        ("7", ["{35138, 7}"]),
    ],
)
def test_masks_sets_and_days_stand_for_what_they_are_written_for(value, texts):
    released = ["*", "35138", "351**", "**138", "{35138, 7}", "1999-05-01/1999-05-31", "*****"]
    reader = Reader(released, [value, "35138", "94138", "1999-06-01"])
    assert [released[i] for i in sorted(reader.covering([value])[0])] == texts
    assert [released[i] for i in reader.everything] == ["*", "*****"]


def test_a_label_stands_for_a_value_on_every_level_and_stars_are_left_out():
    released = ["*", "been_married", "single", "divorced"]
    found = Reader(released, ["divorced", "single"], [MARITAL]).covering(["divorced", "single", "never heard of"])
    assert [{released[i] for i in of} for of in found] == [{"been_married", "divorced"}, {"single"}, set()]


def test_members_of_a_set_may_be_quoted():
    released = ['{"a, b", c}']
    assert Reader(released, ["a, b", "c"]).covering(["a, b", "c", "a"]) == [{0}, {0}, set()]


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
        ({"dates": ["month", "year"]}, "2001-02/2002-09", {0, 1, 2, 3}),
        ({"dates": ["month", "year"]}, "Feb 2001", {0, 1}),
        ({"dates": ["month", "year"]}, "2001-Q1", {0, 1, 2}),
    ],
)
def test_a_range_of_dates_may_end_on_any_level(given, text, leaves):
    days = ["2001-02-03", "2001-02-20", "2001-03-01", "2001-12-31"]
    hierarchy = Dates.model_validate(given).build("day", days).with_null()
    assert LeavesBehind.read(hierarchy, [text]).behind == [leaves]


def test_a_range_of_dates_reads_back_in_the_format_of_the_data():
    days = ["2/14/65", "9/20/65", "12/1/64"]
    hierarchy = Dates.model_validate({"dates": ["year"], "format": "%m/%d/%y"}).build("day", days)
    assert hierarchy.leaves == ("12/1/64", "2/14/65", "9/20/65")
    assert LeavesBehind.read(hierarchy, ["12/1/64/2/14/65", "2/14/65/9/20/65"]).behind == [{0, 1}, {1, 2}]


def read(base, released, hierarchies=()):
    """Per released text the values of the original that it stands for; all of them where it says nothing."""
    reader = Reader(released, base, hierarchies)
    found = reader.covering(base)
    everything = set(reader.everything)
    behind = [
        {v for v, of in zip(base, found, strict=True) if i in of or i in everything} for i in range(len(released))
    ]
    assert [bool(of) for of in behind] == reader.understood.tolist() or reader.numeric or reader.dated
    return behind


ZIPS = ["35137", "35138", "40000"]
AGES = ["18", "23", "29", "30", "95", "1500"]
DAYS = ["1999-05-06", "1999-05-31", "1999-06-01", "2004-12-31"]
KINDS = ["flu", "Gout", "a, b"]


@pytest.mark.parametrize(
    ("base", "text", "values"),
    [
        (ZIPS, "351xx", {"35137", "35138"}),
        (ZIPS, "351**", {"35137", "35138"}),
        (ZIPS, "351*", {"35137", "35138"}),
        (ZIPS, "3513x", {"35137", "35138"}),
        (ZIPS, "3*1*7", {"35137"}),
        (ZIPS, "*0000", {"40000"}),
        (ZIPS, " 35137", {"35137"}),
        (ZIPS, "35137.0", {"35137"}),
        (ZIPS, "xxxxx", set(ZIPS)),
        (ZIPS, "NA", set(ZIPS)),
        (ZIPS, "", set(ZIPS)),
        (["02138", "90210"], "2138", {"02138"}),
        (AGES, "23.0", {"23"}),
        (AGES, "1,500", {"1500"}),
        (AGES, "20s", {"23", "29"}),
        (AGES, "[20, 30[", {"23", "29"}),
        (AGES, "(18,30]", {"23", "29", "30"}),
        (AGES, ">=90", {"95", "1500"}),
        (AGES, "90+", {"95", "1500"}),
        (AGES, "<23", {"18"}),
        (AGES, "{18, 20-29}", {"18", "23", "29"}),
        (AGES, "*", set(AGES)),
        (["1500", "2000"], "1.500,0", {"1500"}),
        (DAYS, "1999-05-06 00:00:00", {"1999-05-06"}),
        (DAYS, "1999-05", {"1999-05-06", "1999-05-31"}),
        (DAYS, "05/1999", {"1999-05-06", "1999-05-31"}),
        (DAYS, "1999", {"1999-05-06", "1999-05-31", "1999-06-01"}),
        (DAYS, "1990s", {"1999-05-06", "1999-05-31", "1999-06-01"}),
        (["1999-05-06T10:30:00", "1999-05-06T11:00:00"], "1999-05-06 10:30", {"1999-05-06T10:30:00"}),
        (["1999-05-06 10:30:00", "1999-05-07 11:00:00"], "1999-05-06", {"1999-05-06 10:30:00"}),
        (["05/31/1999", "06/01/1999"], "1999-05", {"05/31/1999"}),
        (KINDS, "FLU ", {"flu"}),
        (KINDS, "{flu, Gout}", {"flu", "Gout"}),
        (KINDS, "flu|Gout", {"flu", "Gout"}),
        (KINDS, "flu_Gout", {"flu", "Gout"}),
        (KINDS, '{"a, b"}', {"a, b"}),
        (KINDS, "any", set(KINDS)),
        (KINDS, "care", set()),
    ],
)
def test_what_people_and_other_tools_write(base, text, values):
    assert read(base, [text]) == [values]


def test_what_stands_for_nobody_is_told_apart_from_what_says_nothing():
    assert read(AGES, ["7", "18"]) == [set(), {"18"}]
    assert read(DAYS, ["1999-05-06T10:30:00", "1999-06"]) == [set(), {"1999-06-01"}]
    assert read(KINDS, ["care", "flu"]) == [set(), {"flu"}]


def test_what_cannot_be_read_is_told_by_text():
    assert Reader(["flu", "care", "*", "7"], KINDS).understood.tolist() == [True, False, True, False]
    assert Reader(["7", "100-200", "care"], AGES).understood.tolist() == [True, True, False]
    assert Reader(["1980", "1980-02-30", "x"], DAYS).understood.tolist() == [True, False, False]


def test_a_text_that_is_a_value_stands_for_no_other_that_is_equal_as_a_number():
    assert read(["5", "5.0", "05"], ["5", "5.0", "05"]) == [{"5"}, {"5.0"}, {"05"}]
    assert read(["5", "05", "0.5"], ["5.00", "0.50", ".5"]) == [{"5"}, {"0.5"}, {"0.5"}]


def test_what_a_hierarchy_calls_a_value_decides():
    # Here 10-12 are grades of one school, and 12 has moved to another.
    schools = Hierarchy.from_paths("grade", [("10", "10-12", "*"), ("11", "10-12", "*"), ("12", "12-13", "*")])
    assert read(["10", "11", "12"], ["10-12", "12-13", "10-11"], [schools]) == [{"10", "11"}, {"12"}, {"10", "11"}]


def test_cells_that_were_not_understood_are_counted():
    coded = codec.encode_texts("q", pa.chunked_array([pa.array(["flu", "care", "care", None, "*"])]))
    assert unread_cells(Reader(coded.texts, KINDS).understood, coded) == 2


def test_a_number_that_no_record_has_stands_for_the_nearest_where_that_is_asked():
    ages = Hierarchy.from_paths("age", [(text, "*") for text in AGES], leaf_order="numeric")
    assert LeavesBehind.read(ages, ["26.5", "2", "9999", "24-26"], nearest=True).behind == [{2}, {0}, {5}, set()]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,5-2,5", {"1.5", "2.125"}),
        ("[1,5; 2)", {"1.5"}),
        ("1.125,0-2.000,0", {"1500"}),
        ("1.5-2", {"1.5"}),  # shoal writes points
        ("1.125-2.125", {"1.125", "1.5", "2.125"}),  # and these are values
        ("1.126-2.124", {"1500"}),
    ],
)
def test_a_decimal_mark_that_is_named_counts_where_no_point_is_shown(text, values):
    base = ["1.125", "1.5", "2.125", "1500"]
    found = Reader([text], base, mark=",").covering(base)
    assert {value for value, texts in zip(base, found, strict=True) if texts} == values


def test_which_texts_cover_a_value_depends_on_the_values_asked_for_and_not_on_their_order():
    reader = Reader(["39.0", "30-40"], ["39", "039", "35"])
    assert reader.covering(["35", "039", "39"]) == [{1}, {1}, {0, 1}]
    assert reader.covering(["39", "35", "039", "39"]) == [{0, 1}, {1}, {1}, {0, 1}]
    assert reader.covering(["039"]) == [{0, 1}]  # as long as there is no 39
