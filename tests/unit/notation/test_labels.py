"""Ranges and sets are written so that people can read them and programs read them back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.notation.labels import ends_of, read_set, written_range, written_set


@pytest.mark.parametrize(
    ("members", "text"),
    [
        (["Asian", "Black"], "{Asian, Black}"),
        (["a b"], "{a b}"),
        (["a, b", "c"], '{"a, b", c}'),
        (["", " x"], '{"", " x"}'),
        (['say "hi"', "{x}"], '{"say \\"hi\\"", "{x}"}'),
        (["Zürich"], "{Zürich}"),
    ],
)
def test_a_set_is_written_as_people_write_sets(members: list[str], text: str) -> None:
    assert written_set(members) == text
    assert read_set(text) == tuple(members)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_every_set_reads_back_as_it_was(members: list[str]) -> None:
    assert read_set(written_set(members)) == tuple(members)


@pytest.mark.parametrize("text", ["", "{", "{}", "a", "{a", "{a,}", "{a,,b}", '{"a}', '{a"b}', "{a} ", "{a}{b}"])
def test_what_is_no_set_is_not_read_as_one(text: str) -> None:
    assert read_set(text) is None


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        ("20", "29", "20-29"),
        ("20", "20", "20"),
        ("-5", "3", "[-5, 3]"),
        ("1e5", "2e5", "[1e5, 2e5]"),
        ("0.5", "1.25", "0.5-1.25"),
        ("85", None, ">=85"),
        (None, "17", "<=17"),
    ],
)
def test_a_range_is_written_and_its_ends_read_back(first: str | None, last: str | None, text: str) -> None:
    assert written_range(first, last) == text
    assert ends_of(text) == (first, last)


def test_a_range_of_dates_is_an_interval_of_iso_8601() -> None:
    assert written_range("2001-02-03", "2001-05-06", dates=True) == "2001-02-03/2001-05-06"
    assert written_range("2001-02-01/2001-02-07", "2001-03-08/2001-03-14", dates=True) == "2001-02-01/2001-03-14"
    assert written_range("2001-02-01/2001-02-07", "2001-02-01/2001-02-07", dates=True) == "2001-02-01/2001-02-07"


def test_a_half_open_end_has_no_last_number() -> None:
    assert ends_of("[0.5, 1)") is None
    assert ends_of("<17") is None
