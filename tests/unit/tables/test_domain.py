"""Values of a sensitive column in order, and numbers that a float cannot tell apart."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.notation.codec import encode_texts
from shoal.tables.domain import domain_of


def domain(*values: str | None):
    return domain_of("s", encode_texts("s", pa.chunked_array([pa.array(values, pa.string())])), None)[0]


def test_numbers_are_in_their_own_order_and_texts_in_theirs():
    assert domain("10", "9", "9.0").texts == ("9", "9.0", "10")
    assert domain("10", "9", "x").texts == ("10", "9", "x")
    assert domain("10", None, "9").texts == ("9", "10", None)
    assert domain("10", None, "9").places is None


@pytest.mark.parametrize(
    "values",
    [
        ["9007199254740992", "9007199254740993", "9007199254740996"],  # 2^53, and what floats take for it
        ["1.0000000000000000000000000", "1.0000000000000000000000001", "1.0000000000000000000000004"],
        ["0", "1e350", "4e350"],
        ["0", "1e-350", "4e-350"],
        ["-7e20", "-600000000000000000000", "-3e20"],
    ],
)
def test_places_keep_the_proportions_of_the_numbers(values):
    places = domain(*values).places
    assert places is not None
    assert np.diff(places) / np.ptp(places) == pytest.approx([0.25, 0.75])


def test_one_number_is_nowhere_far():
    assert domain("5", "5.0").places == pytest.approx([0.0, 0.0])


def test_classes_that_differ_in_the_last_digit_of_long_numbers_are_far_apart():
    frame = pa.table({"zip": ["a", "a", "b", "b"], "s": [2**53, 2**53, 2**53 + 1, 2**53 + 1]})
    policy = shoal.Policy.of(
        {
            "columns": {"zip": {"role": "quasi"}, "s": {"role": "sensitive"}},
            "require": [{"model": "t-closeness", "t": 0.4, "distance": "numeric"}],
        }
    )
    verdicts = shoal.check(frame, policy)
    assert not verdicts.holds
    assert verdicts.verdicts[0].worst == pytest.approx(0.5)
    assert shoal.anonymize(frame, policy).levels == {"zip": 1}
