"""Numbers, ranges, masks, lists and dates as people and programs write them."""

import math
from datetime import date
from decimal import Decimal

import pytest

from shoal.notation.forms import (
    Range,
    _range_forms,
    day_order,
    decimal_mark,
    is_star,
    lists,
    read_date,
    read_mask,
    read_number,
    read_period,
    read_range,
)

INF = math.inf


@pytest.mark.parametrize(
    ("text", "mark", "value"),
    [
        ("23", ".", "23"),
        (" 23 ", ".", "23"),
        ("23.0", ".", "23"),
        ("1,500", ".", "1500"),
        ("1,234,567.5", ".", "1234567.5"),
        ("\u22125", ".", "-5"),
        ("1e3", ".", "1000"),
        ("1.500,0", ",", "1500"),
        ("12,5", ",", "12.5"),
        ("1.500", ",", "1500"),
        ("1.500", ".", "1.5"),
        ("12,5", ".", None),
        ("1,50", ".", None),
        ("0x10", ".", None),
        ("", ".", None),
        ("nan", ".", None),
        ("1e999999999", ".", None),
    ],
)
def test_numbers(text, mark, value):
    assert read_number(text, mark) == (None if value is None else Decimal(value))


@pytest.mark.parametrize(
    ("texts", "mark"),
    [
        (["12,5", "3"], ","),
        (["1.500,0"], ","),
        (["0,750"], ","),
        (["1,500"], "."),
        (["1.500"], "."),
        (["12,5", "12.5"], "."),
        (["1,500.0", "12,5"], "."),
        ([], "."),
    ],
)
def test_the_numbers_of_a_column_show_its_decimal_mark(texts, mark):
    assert decimal_mark(texts) == mark


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("20-29", (20, 29, True, True)),
        ("20 - 29", (20, 29, True, True)),
        ("20\u201329", (20, 29, True, True)),
        ("20 to 29", (20, 29, True, True)),
        ("20..29", (20, 29, True, True)),
        ("-10--6", (-10, -6, True, True)),
        ("[-5, 3]", (-5, 3, True, True)),
        ("[0.5, 1)", (Decimal("0.5"), 1, True, False)),
        ("[20, 30)", (20, 30, True, False)),
        ("[20, 30[", (20, 30, True, False)),
        ("(20, 30]", (20, 30, False, True)),
        ("(20,30]", (20, 30, False, True)),
        ("]20;30]", (20, 30, False, True)),
        ("[20-29]", (20, 29, True, True)),
        ("(1e+03,2e+03]", (1000, 2000, False, True)),
        ("(-Inf,18]", (-INF, 18, True, True)),
        ("[65, inf)", (65, INF, True, True)),
        ("[1,500, 2,000)", (1500, 2000, True, False)),
        ("1,500-2,000", (1500, 2000, True, True)),
        ("< 30", (-INF, 30, True, False)),
        ("<=30", (-INF, 30, True, True)),
        ("\u2265 40", (40, INF, True, True)),
        ("> 40", (40, INF, False, True)),
        (">=85", (85, INF, True, True)),
        ("90+", (90, INF, True, True)),
        ("65 and over", (65, INF, True, True)),
        ("17 or younger", (-INF, 17, True, True)),
        ("under 18", (-INF, 18, True, False)),
        ("30s", (30, 40, True, False)),
        ("0s", (0, 10, True, False)),
        (" 30-39 ", (30, 39, True, True)),
        ("2001-02", None),
        ("2001-02-03", None),
        ("29-20", None),
        ("35s", None),
        ("20", None),
        ("", None),
        ("a-b", None),
        ("*", None),
        ("{1, 2}", None),
    ],
)
def test_ranges_of_several_tools(text, found):
    assert read_range(text) == (None if found is None else Range(*found))


def test_ranges_with_a_decimal_comma():
    assert read_range("1,5-2,5", ",") == Range(Decimal("1.5"), Decimal("2.5"), True, True)
    assert read_range("[1.500,5; 2.000)", ",") == Range(Decimal("1500.5"), Decimal(2000), True, False)


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("351**", "351**"),
        ("351xx", "351**"),
        ("351XX", "351**"),
        ("3513x", "3513*"),
        ("351##", "351**"),
        ("64/**/**", "64/**/**"),
        ("xxxxx", "*****"),
        ("351__", "351**"),
        ("max", None),
        ("a_b", None),
        ("35138", None),
    ],
)
def test_masks(text, masked):
    assert read_mask(text) == masked


def test_only_stars_are_stars():
    assert [is_star(text) for text in ("*", "****", "", "3*")] == [True, True, False, False]


@pytest.mark.parametrize("text", ["a|b", "a_b", "a, b", "[a, b]", "a/b", "a;b", "a or b", "{a,b}", "['a', 'b']"])
def test_lists_without_braces(text):
    assert ("a", "b") in set(lists(text))


def days(first, last):
    start, end = date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()
    return start * 86_400_000_000, (end + 1) * 86_400_000_000


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2001-02-03", "2001-02-03", "2001-02-03"),
        ("2001-02-03T00:00:00", "2001-02-03", "2001-02-03"),
        ("2001-02-03 00:00:00.000", "2001-02-03", "2001-02-03"),
        ("2001/02/03", "2001-02-03", "2001-02-03"),
        ("2001-02", "2001-02-01", "2001-02-28"),
        ("02/2001", "2001-02-01", "2001-02-28"),
        ("Feb 2001", "2001-02-01", "2001-02-28"),
        ("February 2001", "2001-02-01", "2001-02-28"),
        ("2001-Q4", "2001-10-01", "2001-12-31"),
        ("Q1 2001", "2001-01-01", "2001-03-31"),
        ("2001", "2001-01-01", "2001-12-31"),
        ("2000s", "2000-01-01", "2009-12-31"),
        ("2001-02-03/2001-05-06", "2001-02-03", "2001-05-06"),
        ("2001-02/2001-03", "2001-02-01", "2001-03-31"),
        ("2001-2003", "2001-01-01", "2003-12-31"),
        ("[2001-02-03, 2001-02-10)", "2001-02-03", "2001-02-09"),
        ("(2001-02-03, 2001-02-10]", "2001-02-04", "2001-02-10"),
        ("2001-02-03 - 2001-02-10", "2001-02-03", "2001-02-10"),
    ],
)
def test_periods(text, first, last):
    assert read_period(text) == days(first, last)


@pytest.mark.parametrize("text", ["2001-02-30", "2001-13", "Foo 2001", "2001-03/2001-02", "x", "", "20-29", "99999"])
def test_what_is_no_period_is_not_read_as_one(text):
    assert read_period(text) is None


def test_one_sided_periods_hold_what_they_say():
    year = days("1950-01-01", "1950-12-31")
    assert read_period("<1950")[1] == year[0]
    assert read_period("<=1950")[1] == year[1]
    assert read_period("since 1950")[0] == year[0]
    assert read_period("after 1950")[0] == year[1]


def test_a_time_is_as_precise_as_it_is_written():
    minute = read_date("2001-02-03 10:30")
    second = read_date("2001-02-03T10:30:05Z")
    assert minute[0] <= second[0] < second[1] <= minute[1]
    assert read_date("2001-02-03T10:30:05.250")[1] - read_date("2001-02-03T10:30:05.250")[0] == 1000


def test_day_and_month_are_told_apart_where_the_dates_show_it():
    assert day_order(["03/04/1999", "25/12/1999"]) == "dmy"
    assert day_order(["03/04/1999", "12/25/1999"]) == "mdy"
    assert day_order(["03/04/1999"]) is None
    assert day_order(["25/12/1999", "12/25/1999"]) is None
    assert read_date("25/12/1999", "dmy") == days("1999-12-25", "1999-12-25")
    assert read_date("03/04/1999", None) is None


@pytest.mark.parametrize("mark", [".", ","])
def test_a_day_is_no_range_in_any_form(mark):
    """Which is why days are not compared with the forms."""
    for text in ("2001-02-03", "0000-00-00", "9999-99-99", "1000-10-00", "0001-00-10"):
        assert not any(form.fullmatch(text) for form in _range_forms(mark))
        assert read_range(text, mark) is None


def test_a_text_is_separated_by_every_sign_it_contains():
    """The signs that are looked for first are those of the separators."""
    for sign in ("|", ";", ",", "/", "_", " or ", "&", "+"):
        assert list(lists(f"a{sign}b")) == [("a", "b")]
        assert list(lists(f"a {sign} b".replace("  ", " "))) in ([("a", "b")], [("a ", " b")])
    assert list(lists("ab")) == list(lists("born")) == []
