"""If these fail, a proposed hierarchy has odd widths, or a bin for one person alone."""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shoal.hierarchies.builders import Dates, Flat, Intervals, Mask, build
from shoal.hierarchies.formats import date_formats, sample
from shoal.inspection.hierarchy_proposal import BINS, EXACT, SETS, Proposal, ProposedSpec, is_code, propose, words


def proposal(values: Sequence[str], column: str = "x", counts: Sequence[int] | None = None) -> Proposal:
    return propose(column, values, np.array(counts or [1] * len(values), dtype=np.int64))


def proposed(values: Sequence[str], column: str = "x", counts: Sequence[int] | None = None) -> ProposedSpec:
    return proposal(values, column, counts).hierarchy


def numbers(*bounds: int) -> list[str]:
    return [str(i) for i in range(*bounds)]


def days(first: date, last: date, step: int = 1) -> list[date]:
    return [first + timedelta(i) for i in range(0, (last - first).days, step)]


@pytest.mark.parametrize(
    ("values", "widths", "finest"),
    [
        (numbers(17, 91), [2, 10, 20], 0),
        (numbers(0, 20), [2], 0),
        (numbers(0, 31), [2, 10], 0),
        (numbers(0, 4), [10], 0),
        (numbers(1900, 2025), [2, 10, 20], 1),
        (numbers(-50, 51), [2, 10, 20], 1),
        (numbers(0, 100000, 17), [2000, 10000, 20000], 1),
        ([f"{i / 100:.2f}" for i in range(300)], [0.05, 0.1, 0.2, 1], 1),
        ([f"{i / 1000:.3f}" for i in range(99)], [0.002, 0.01, 0.02], 1),
    ],
)
def test_numbers_get_round_nested_widths(values, widths, finest):
    found = proposal(values)
    assert found.hierarchy.model_dump(mode="json", exclude_defaults=True) == {"intervals": widths}
    assert (found.cells, found.min_level) == ("range", finest)


def test_ages_come_in_the_usual_groups():
    assert proposed(numbers(17, 91), column="Age") == Intervals.model_validate({"intervals": [5, 10, 20, 40]})


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda x: f"{x:.3f}"), min_size=EXACT + 1, max_size=300, unique=True).filter(
        lambda texts: len(set(map(float, texts))) > EXACT
    )
)
def test_columns_with_many_numbers_start_at_bins_that_are_no_persons_own(values):
    found = proposal(values)
    assert isinstance(found.hierarchy, Intervals)
    assert found.min_level == 1
    width = float(found.hierarchy.intervals[0])
    middle = np.sort(np.array(values, dtype=float))
    assert width >= (middle[int(len(values) * 0.98)] - middle[int(len(values) * 0.02)]) / BINS


def test_a_few_huge_values_do_not_widen_the_intervals():
    values = [*numbers(0, 101), "100000000"]
    assert proposed(values, counts=[100] * 101 + [1]) == proposed(numbers(0, 101))


def test_two_values_are_kept_joined_or_hidden():
    assert proposal(["0", "1"]) == Proposal(Flat(), "set")
    assert proposal([]) == Proposal(Flat(), "set")


def test_the_many_spellings_of_one_number_are_flat():
    assert proposed(["1." + "0" * i for i in range(1, 15)]) == Flat()


def test_iso_dates_get_the_periods_that_merge_some_and_not_all():
    century = [day.isoformat() for day in days(date(1925, 1, 1), date(2025, 1, 1), 9)]
    assert proposed(century) == Dates(dates=("month", "quarter", "year", "decade"))
    spring = [day.isoformat() for day in days(date(2024, 3, 1), date(2024, 5, 20))]
    assert proposed(spring) == Dates(dates=("month", "quarter"))
    assert proposed([day.isoformat() for day in days(date(2024, 3, 1), date(2024, 3, 31))]) == Flat()
    firsts = [f"{year}-01-01" for year in range(1980, 2020)]
    assert proposed(firsts) == Dates(dates=("decade",))


def test_times_begin_with_the_day():
    times = [f"2024-0{month}-11T{hour:02}:30:00" for month in (1, 2, 7) for hour in range(24)]
    assert proposed(times) == Dates(dates=("day", "quarter"))


@pytest.mark.parametrize("form", ["%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%y/%m/%d", "%m/%d/%y", "%d-%m-%Y"])
def test_a_format_is_recognized_where_only_one_fits(form):
    values = [day.strftime(form) for day in days(date(1955, 1, 1), date(1999, 1, 1), 11)]
    spec = proposed(values)
    assert isinstance(spec, Dates)
    assert spec.format == form
    labels = spec.build("x", values).labels[spec.dates.index("year") + 1]
    assert set(labels) == {str(year) for year in range(1955, 1999)}  # the right century too


def test_an_ambiguous_date_is_flat():
    values = [f"{a:02}/{b:02}/1990" for a in range(1, 13) for b in range(1, 13)]
    assert date_formats(values) == ["%d/%m/%Y", "%m/%d/%Y"]
    assert proposed(values) == Flat()


def test_one_impossible_date_makes_the_column_flat():
    values = [day.isoformat() for day in days(date(2020, 1, 1), date(2022, 1, 1))]
    assert proposed([*values, "2021-02-30"]) == Flat()
    assert proposed([*values, "unknown"]) == Flat()


def test_codes_are_masked():
    assert proposed([f"{i:05}" for i in range(2100, 2150)]) == Mask(mask="right")
    assert proposed([f"{a}{i}" for a in "CJ" for i in range(10, 40)]) == Mask(mask="right")
    assert proposed(numbers(35100, 35150)) == Mask(mask="right")
    assert [proposal(numbers(10_000, 10_000 + n)).cells for n in (50, SETS, SETS + 1)] == ["set", "set", "hierarchy"]
    assert proposed(numbers(1000, 1050), column="PLZ") == Mask(mask="right")


def test_numbers_of_one_length_are_no_codes_where_the_name_says_so():
    assert isinstance(proposed(numbers(35100, 35150), column="yearly_income"), Intervals)
    assert isinstance(proposed(numbers(1950, 2000), column="year"), Intervals)


def test_irregular_values_are_flat():
    assert proposed([*numbers(0, 50), "n/a"]) == Flat()
    assert proposed([*numbers(0, 50), ""]) == Flat()
    assert proposed([*numbers(0, 50), "1e5"]) == Flat()
    assert proposed([*numbers(0, 50), "007"]) == Flat()
    assert proposed([f"AB{chr(65 + i)}" for i in range(20)]) == Flat()
    assert proposed([f"town {i}" for i in range(20)]) == Flat()


def test_postcodes_with_blanks_and_dashes_are_masked_where_the_name_says_so():
    for values in (
        ["SW1A 1AA", "M1 1AE", "B33 8TH"],
        ["12345-6789", "12345-1234", "90210-0001"],
        ["1012 AB", "1013 XY", "2511 AA"],
    ):
        assert proposed(values, column="postcode") == Mask(mask="right")
        assert proposed(values) == Flat()
    assert proposed(["40", "47", "65"], column="cap") != Mask(mask="right")  # a capacity


def test_a_code_has_one_length():
    assert not is_code("zip", ["02138", "2139"])
    assert is_code("zip", ["02138", "02139"])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("birthDate", {"birth", "date"}),
        ("BIRTH_DATE", {"birth", "date"}),
        ("Année de naissance", {"annee", "de", "naissance"}),
        ("Straße", {"strasse"}),
        ("zip5", {"zip"}),
        ("", set()),
    ],
)
def test_words_of_a_name(name, expected):
    assert words(name) == expected


@given(st.integers(0, 5000), st.integers(1, 1000))
def test_a_sample_is_small_and_begins_at_the_first(n, size):
    values = [str(i) for i in range(n)]
    chosen = list(sample(values, size))
    assert len(chosen) <= size
    assert chosen[:1] == values[:1]
    assert n > size or chosen == values


some_texts = st.one_of(
    st.text(max_size=8),
    st.from_regex(r"\A-?[0-9]{1,6}(\.[0-9]{1,4})?\Z"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers().map(str),
    st.dates().map(str),
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.dates(date(1900, 1, 1), date(2099, 1, 1)).map(lambda day: day.strftime("%m/%d/%y")),
    st.from_regex(r"\A[0-9A-Z]{5}\Z"),
)
kinds = st.one_of(
    st.lists(some_texts, max_size=40, unique=True),
    st.lists(st.floats(allow_nan=False, allow_infinity=False).map(repr), min_size=13, unique=True),
    st.lists(st.from_regex(r"\A-?[0-9]{1,3}(\.[0-9]{1,4})?\Z"), min_size=13, unique=True),
    st.lists(st.integers(-(10**18), 10**18).map(str), min_size=13, unique=True),
    st.lists(st.dates().map(str), min_size=13, unique=True),
    st.lists(st.dates().map(lambda day: f"{day.year:04}/{day.month}/{day.day}"), min_size=13, unique=True),
    st.lists(
        st.dates(date(1900, 1, 1), date(2099, 1, 1)).map(lambda day: day.strftime("%d.%m.%y")),
        min_size=13,
        unique=True,
    ),
    st.lists(st.from_regex(r"\A[0-9A-Z]{4}\Z"), min_size=13, unique=True),
)


@given(kinds, st.sampled_from(["x", "zip", "income"]), st.data())
@example([f"{i}e-05" for i in range(1, 30)], "x", None)
def test_a_proposal_covers_the_values_it_was_made_from(values, column, data):
    counts = [1] * len(values)
    if data is not None:
        counts = data.draw(st.lists(st.integers(1, 1000), min_size=len(values), max_size=len(values)))
    found = proposal(values, column, counts)
    hierarchy = build(column, found.hierarchy, values, nulls=True, uncovered="error", folder=Path())
    assert hierarchy.missing(values) == 0
    assert found.min_level < hierarchy.height
    assert hierarchy.cardinality(hierarchy.height) == 1
