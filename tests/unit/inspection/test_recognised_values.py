"""Values that lead to persons or places are recognised by what they are; values here are invented or from standards."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.inspection.recognised_values import (
    coordinate_pairs,
    passes_luhn,
    passes_mod_97,
    passes_verhoeff,
    recognised,
)

RNG = random.Random(11)


def number(length: int, first: str = "") -> str:
    return first + "".join(str(RNG.randrange(10)) for _ in range(length - len(first)))


def completed(start: str, check) -> str:
    """The number with the digit that passes a check."""
    return next(start + str(digit) for digit in range(10) if check(start + str(digit)))


def cards(n: int = 30) -> list[str]:
    return [completed(number(15, "4"), passes_luhn) for _ in range(n)]


def iban() -> str:
    account = number(18)
    return next(text for check in range(2, 99) if passes_mod_97(text := f"DE{check:02}{account}"))


def mail(i: int) -> str:
    return f"user{i}@mail.example"


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("phone numbers", "+49 171 2345678"),  # by itself among other values
        ("universal identifiers", "123e4567-e89b-12d3-a456-426614174000"),
        ("universal identifiers", "moved to 123e4567-e89b-12d3-a456-426614174000 in spring"),
        ("device addresses", "seen on 00:1a:2b:3c:4d:5e at night"),
        ("payment card numbers", "card 4111111111111111 was stolen"),
    ],
)
def test_one_identifier_among_other_values_is_enough(kind, text):
    assert recognised(["yes", "no", "maybe", text]).kind == kind


@pytest.mark.parametrize(
    "text", ["+1", "+3 weeks", "80+", "case 4111111111111112", "12-34-56-78-90-12 x", "A:1", "2-3"]
)
def test_what_only_resembles_an_identifier_is_none(text):
    assert recognised(["yes", "no", "maybe", text]) is None


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("e-mail addresses", [mail(i) for i in range(20)]),
        ("web addresses", [f"https://people.example/{i}" for i in range(20)]),
        ("handles", [f"@fish_{i}" for i in range(20)]),
        ("device addresses", [f"00:1a:2B:3c:4d:{i:02x}" for i in range(20)]),
        ("IP addresses", [f"192.0.2.{i}" for i in range(20)]),
        ("IP addresses", [f"2001:db8:0:1::{i:x}" for i in range(20)]),
        ("universal identifiers", [f"123e4567-e89b-12d3-a456-4266141740{i:02}" for i in range(20)]),
        ("bank account numbers", [iban() for _ in range(20)]),
        ("payment card numbers", cards()),
        ("payment card numbers", [f"{c[:4]} {c[4:8]} {c[8:12]} {c[12:]}" for c in cards()]),
        ("payment card numbers", [f"{c}.0" for c in cards()]),
        ("national identity numbers", [f"{i + 100}-{i + 10}-{i + 1000}" for i in range(20)]),
        ("national identity numbers", [f"756.{number(4)}.{number(4)}.{number(2)}" for _ in range(20)]),
        ("national identity numbers", [f"1980{i % 12 + 1:02}{i % 28 + 1:02}-{number(4)}" for i in range(20)]),
        ("national identity numbers", [completed(number(11), passes_verhoeff) for _ in range(20)]),
        ("phone numbers", [f"+49 30 {number(7)}" for _ in range(20)]),
        ("phone numbers", [f"555-{number(3)}-{number(4)}" for _ in range(20)]),
        ("coordinates", [f"52.{number(5)}, 13.{number(5)}" for _ in range(20)]),
    ],
)
def test_values_are_told_by_their_shape_and_check_digits(kind, values):
    found = recognised(values)
    assert found is not None
    assert (found.kind, found.inside, found.place) == (kind, False, False)
    assert found.texts >= 0.8 * len(values)
    others = [str(i) for i in range(3 * len(values))]
    assert recognised([*others, "none"]) is None


@pytest.mark.parametrize(
    "values",
    [
        [number(16, "4") for _ in range(40)],  # one in ten passes by chance
        [str(4_000_000_000_000_000 + i) for i in range(200)],  # numbered one after the other
        [f"DE{number(20)}" for _ in range(40)],
        [number(9, "1") for _ in range(40)],
        [f"{d:02}-{m:02}-2020" for d in range(1, 29) for m in range(1, 13)],
        [f"2020-{m:02}-{d:02}" for d in range(1, 29) for m in range(1, 13)],
        [f"{i / 7:.4f}" for i in range(90)],
        ["strongly agree", "agree", "n/a", "neither/nor", "10-20 years"],
        ["01:30", "12:45", "23:10:07"],
        ["1.2.3", "10.0", "300.400.500.600"],
        [str(i) for i in range(100, 200)],
        ["seen on 01-02-2020 at 10:30", "BP 120/80, 37.5 degrees", "3 visits, 0.5 mg"],
        [""],
        [],
    ],
)
def test_other_numbers_dates_and_words_are_not(values):
    assert recognised(values) is None


@pytest.mark.parametrize(
    ("kind", "remark"),
    [
        ("phone numbers", "please call +49 30 1234567 after five"),
        ("phone numbers", "mother: 555-123-4567"),
        ("phone numbers", "reach at (030) 1234567."),
        ("e-mail addresses", "wrote from fish@sea.example yesterday"),
        ("web addresses", "see www.sea.example/fish for more"),
        ("handles", "posts as @silver_fish online"),
        ("national identity numbers", "insured as 123-45-6789, moved"),
        ("bank account numbers", f"paid from {iban()} twice"),
        ("payment card numbers", "card 4111-1111-1111-1111 was refused"),
        ("IP addresses", "logged in from 192.0.2.7 at night"),
    ],
)
def test_one_identifier_within_remarks_is_enough(kind, remark):
    found = recognised(["nothing to add", "was late again", *(f"visit {i} went well" for i in range(50)), remark])
    assert found is not None
    assert (found.kind, found.texts, found.inside) == (kind, 1, True)
    assert "contain" in found.sentence


def test_census_tracts_are_places():
    tracts = [f"06{county:03}{tract:06}" for county in (1, 37, 75) for tract in range(400100, 400900, 100)]
    found = recognised(tracts)
    assert found is not None
    assert (found.kind, found.place) == ("census tracts", True)
    assert recognised([str(int(tract)) for tract in tracts]) == found  # a reader lost the zero
    assert recognised([number(11, "99") for _ in range(40)]) is None


def test_checks_are_those_of_their_standards():
    assert passes_luhn("4111111111111111")
    assert passes_luhn("79927398713")
    assert not passes_luhn("79927398710")
    assert passes_mod_97("GB82 WEST 1234 5698 7654 32")
    assert not passes_mod_97("GB82 WEST 1234 5698 7654 33")
    assert passes_verhoeff("2363")
    assert not passes_verhoeff("2364")


@given(st.integers(0, 10**14), st.integers(0, 14), st.integers(1, 9))
def test_luhn_and_verhoeff_notice_every_wrong_digit(start, position, change):
    for check in (passes_luhn, passes_verhoeff):
        valid = completed(str(start), check)
        position %= len(valid)
        wrong = (int(valid[position]) + change) % 10
        assert not check(f"{valid[:position]}{wrong}{valid[position + 1 :]}")


@given(st.lists(st.text(max_size=40), max_size=15))
def test_any_text_can_be_looked_at(texts):
    found = recognised(texts)
    assert found is None or 0 < found.texts <= len(texts)


# ── pairs of coordinates ────────────────────────────────────────────────────────────────────────────────────

LATITUDES = [f"{52 + RNG.random():.6f}" for _ in range(60)]
LONGITUDES = [f"{13 + RNG.random():.6f}" for _ in range(60)]


@pytest.mark.parametrize("names", [("lat", "lon"), ("latitude", "lng"), ("y_coord", "x_coord"), ("p", "q")])
def test_two_columns_of_degrees_are_points_whatever_they_are_called(names):
    columns = dict(zip(names, (LATITUDES, LONGITUDES), strict=True))
    assert coordinate_pairs(columns | {"score": [str(i) for i in range(60)]}) == (names,)


def test_metres_on_a_map_are_told_by_their_names():
    east = [f"{500_000 + 10 * i + 0.25:.2f}" for i in range(40)]
    assert coordinate_pairs({"easting": east, "northing": east}) == (("easting", "northing"),)
    assert coordinate_pairs({"a": east, "b": east}) == ()


@pytest.mark.parametrize(
    "columns",
    [
        {"bmi": LATITUDES, "height": LONGITUDES},  # the names say what they are
        {"p": LATITUDES, "q": [f"{13 + i / 97:.2f}" for i in range(60)]},  # not as exact as each other
        {"p": [f"{RNG.random() - 0.5:.6f}" for _ in range(60)], "q": [f"{RNG.random() - 0.5:.6f}" for _ in range(60)]},
        {"p": [repr(3 + RNG.random()) for _ in range(60)], "q": [repr(3 + RNG.random()) for _ in range(60)]},
        {"lat": LATITUDES},
    ],
)
def test_other_pairs_of_numbers_are_none(columns):
    assert coordinate_pairs(columns) == ()
