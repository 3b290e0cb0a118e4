"""If these fail, a figure is rounded to something that is not true."""

from __future__ import annotations

import pytest

from shoal.text.figures import format_number, format_share, visible


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (5, "5"),
        (5.0, "5"),
        (1234567, "1,234,567"),
        (-3, "-3"),
        (0.25, "0.2500"),
        (12.3456789, "12.3457"),
        (1234.56, "1,234.6"),
        (float("inf"), "∞"),
        (float("-inf"), "-∞"),
        (float("nan"), "–"),
    ],
)
def test_numbers(value: float, text: str) -> None:
    assert format_number(value) == text


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 10, "0.0 %"),
        (10, 10, "100.0 %"),
        (1, 3, "33.3 %"),
        (1, 1_000_000, "<0.1 %"),
        (999_999, 1_000_000, ">99.9 %"),
        (0, 0, "0.0 %"),
    ],
)
def test_shares_never_say_none_for_some_nor_all_for_less(part: float, whole: float, text: str) -> None:
    assert format_share(part, whole) == text


def test_a_file_name_that_is_no_text_can_be_shown() -> None:
    assert visible("\udcff.csv").encode() == "\ufffd.csv".encode()
