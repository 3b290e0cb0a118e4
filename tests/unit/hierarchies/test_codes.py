"""If these fail, a code of a known classification gets the wrong groups, or is not recognized."""

import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.errors import PolicyError
from shoal.hierarchies.builders import Flat, Intervals, Mask, build
from shoal.hierarchies.codes import (
    CHAPTERS,
    CLASSIFICATIONS,
    SECTION_OF,
    SUB_MAJOR,
    ClassificationCodes,
    countries,
    icd_path,
    isco_path,
    nace_path,
)
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.inspection.hierarchy_proposal import Proposal, propose
from shoal.policy import Policy


def built(kind: str, values: list[str]) -> Hierarchy:
    spec = ClassificationCodes.model_validate({"codes": kind})
    return build("x", spec, values, nulls=False, uncovered="error", folder=Path())


def paths(kind: str, values: list[str]) -> list[tuple[str | None, ...]]:
    hierarchy = built(kind, values)
    leaves = hierarchy.encode(values)
    return [tuple(hierarchy.label(level, hierarchy.table[level, leaf]) for level in range(hierarchy.n_levels))
            for leaf in leaves]  # fmt: skip


def proposed(column: str, values: list[str], counts: list[int] | None = None) -> Proposal:
    return propose(column, values, np.array(counts or [1] * len(values), np.int64))


def test_a_diagnosis_lies_in_its_category_its_ten_and_its_chapter():
    assert paths("icd-10", ["E11.9", "E11", "e100", "D48.1", "D50", "H60.0", "T98", "C7A.1"]) == [
        ("E11.9", "E11", "E10-E19", "E00-E99", "*"),
        ("E11", "E11", "E10-E19", "E00-E99", "*"),
        ("e100", "E10", "E10-E19", "E00-E99", "*"),
        ("D48.1", "D48", "D40-D49", "C00-D49", "*"),
        ("D50", "D50", "D50-D59", "D50-D99", "*"),
        ("H60.0", "H60", "H60-H69", "H60-H99", "*"),
        ("T98", "T98", "T90-T99", "S00-T99", "*"),
        ("C7A.1", "C7A", "C70-C79", "C00-D49", "*"),
    ]


@given(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZ"), st.integers(0, 99))
def test_every_category_lies_between_the_ends_of_its_ten_and_of_its_chapter(letter, number):
    category = f"{letter}{number:02}"
    found = icd_path(category)
    assert found is not None
    for group in found[1:]:
        first, last = group.split("-")
        assert first <= category <= last
    assert found[2].split("-")[0] in CHAPTERS


def test_chapters_follow_one_another_without_gaps():
    chapters = {icd_path(f"{letter}{n:02}")[2] for letter in map(chr, range(65, 91)) for n in range(100)}  # type: ignore[index]
    in_order = sorted(chapters)
    assert len(in_order) == len(CHAPTERS) == 22
    assert in_order[0].startswith("A00")
    assert in_order[-1] == "Z00-Z99"
    for before, after in pairwise(in_order):
        last, first = before.split("-")[1], after.split("-")[0]
        assert last < first


def test_an_occupation_lies_in_its_minor_sub_major_and_major_group():
    assert paths("isco-08", ["2512", "251", "9622"]) == [
        ("2512", "251*", "25**", "2***", "*"),
        ("251", "251*", "25**", "2***", "*"),
        ("9622", "962*", "96**", "9***", "*"),
    ]
    assert len(SUB_MAJOR) == 43
    assert isco_path("1990") is None  # there is no sub-major group 19


def test_a_branch_lies_in_its_group_division_and_section():
    assert paths("nace", ["01.11", "A01.11", "62.0", "62", "99.00"]) == [
        ("01.11", "01.1", "01", "A", "*"),
        ("A01.11", "A01.1", "A01", "A", "*"),
        ("62.0", "62.0", "62", "J", "*"),
        ("62", "62", "62", "J", "*"),
        ("99.00", "99.0", "99", "U", "*"),
    ]
    assert len(SECTION_OF) == 88  # divisions
    assert nace_path("K62.01") == ("K62.0", "K62", "K")  # revision 2.1
    assert nace_path("B62.01") is None
    assert nace_path("04.1") is None


def test_a_country_lies_in_its_sub_region_and_region():
    assert paths("country", ["AT", "AUT", "tw", "US", "Europe", "nowhere"]) == [
        ("AT", "Western Europe", "Europe", "*"),
        ("AUT", "Western Europe", "Europe", "*"),
        ("tw", "Eastern Asia", "Asia", "*"),
        ("US", "Northern America", "Americas", "*"),
        ("Europe", "Europe", "Europe", "*"),
        ("nowhere", "nowhere", "nowhere", "*"),
    ]


def test_every_country_has_a_code_of_two_letters_and_one_of_three():
    codes = countries()
    assert sorted(map(len, codes)) == [2] * 249 + [3] * 249
    assert len({region for _, region in codes.values()}) == 6
    assert len({part for part, _ in codes.values()}) == 23


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("icd-10", ["E11.9", "E10-E19", "E00-E99", "x"]),
        ("nace", ["01.11", "A", "01", "x"]),
        ("country", ["AT", "Western Europe", "Europe", "*x"]),
        ("isco-08", ["2512", "25**", "x", "2***"]),
    ],
)
def test_a_group_among_the_codes_stands_for_its_codes_too(kind, values):
    hierarchy = built(kind, values)  # C1 and C2 are checked as it is built
    for value in values:
        leaf = int(hierarchy.encode([value])[0])
        labels = [hierarchy.label(level, hierarchy.table[level, leaf]) for level in range(hierarchy.n_levels)]
        assert labels[0] == value


some_codes = st.one_of(
    st.from_regex(re.compile(r"[A-Z][0-9]{2}(\.[0-9]{1,2})?", re.ASCII), fullmatch=True),
    st.from_regex(re.compile(r"[0-9]{2,4}", re.ASCII), fullmatch=True),
    st.from_regex(re.compile(r"[A-V]?[0-9]{2}\.[0-9]{1,2}", re.ASCII), fullmatch=True),
    st.sampled_from(sorted(countries())),
    st.text(max_size=4),
)


@given(st.sampled_from(sorted(CLASSIFICATIONS)), st.lists(some_codes, min_size=1, max_size=30, unique=True))
def test_any_values_have_a_place_below_one_top(kind, values):
    values = [value for value in values if value.strip("*") or not value]
    if values:
        hierarchy = built(kind, values)
        assert hierarchy.missing(values) == 0
        assert hierarchy.top == "*"


def test_without_values_the_levels_are_there():
    assert built("icd-10", []).n_levels == 5


# ── found in a table ────────────────────────────────────────────────────────────────────────────────────────

ICD = [f"{letter}{n}.{d}" for letter in "AEI" for n in (10, 11) for d in range(4)]
COUNTRIES = ["AUT", "BRA", "CHN", "DEU", "FRA", "IND", "ITA", "JPN", "KEN", "MEX", "NGA", "POL", "USA", "ZAF"]


@pytest.mark.parametrize(
    ("column", "values", "kind", "sure"),
    [
        ("x", ICD, "icd-10", "likely"),
        ("diagnosis", ["E11.9", "I10", "J45"], "icd-10", "sure"),
        ("dx", ["E119", "I10", "J450"], "icd-10", "sure"),
        ("isco", ["2512", "1120", "9333"], "isco-08", "sure"),
        ("NACE_Rev2", ["01.11", "46.19", "62.01"], "nace", "sure"),
        ("x", [f"{SECTION_OF[f'{n:02}']}{n:02}.1" for n in (1, 2, 5, 6, 10, 11, 12, 35, 41, 45, 46, 62, 64, 99)],
         "nace", "likely"),
        ("country", ["AT", "FR", "US"], "country", "sure"),
        ("x", COUNTRIES, "country", "likely"),
        ("Herkunftsland", COUNTRIES, "country", "sure"),
    ],
)  # fmt: skip
def test_codes_are_found_by_their_look_or_by_the_name(column, values, kind, sure):
    found = proposed(column, values)
    assert found.hierarchy == ClassificationCodes(codes=kind)
    assert found.sure == sure
    assert ("judging by the values only" in found.told) == (sure == "likely")


def test_nearly_all_values_will_do():
    found = proposed("x", [*ICD, "none"], [10] * len(ICD) + [1])
    assert found.hierarchy == ClassificationCodes(codes="icd-10")
    assert proposed("x", [*ICD, "none"], [1] * len(ICD) + [100]).hierarchy == Flat()  # most records have something else


def test_what_only_looks_like_it_is_something_else():
    assert proposed("room", ["E11", "I10", "J45", "A01"]).hierarchy == Flat()  # few, and the name says nothing
    assert proposed("state", ["AL", "CA", "CO", "GA"]).hierarchy == Flat()  # states, and country codes too
    assert isinstance(proposed("x", [f"{n}.01" for n in range(10, 40)]).hierarchy, Intervals)  # numbers
    assert isinstance(proposed("sector", [str(n) for n in range(10, 34)]).hierarchy, Mask | Intervals)
    assert isinstance(proposed("occupation", [str(n) for n in range(1, 44)]).hierarchy, Intervals)
    assert isinstance(proposed("occ", [str(n) for n in (11, 12, 13, 21, 22, 31)]).hierarchy, Intervals)


def test_one_region_has_no_groups_to_choose_from():
    assert proposed("country", ["IT", "ES", "PT"]).hierarchy == Flat()


def test_few_codes_may_be_sets_and_many_are_groups():
    assert proposed("x", COUNTRIES).cells == "set"
    assert proposed("country", sorted(code for code in countries() if len(code) == 3)).cells == "hierarchy"


def test_a_policy_names_the_classification():
    fields = {
        "columns": {"dx": {"role": "quasi", "hierarchy": {"codes": "icd-10"}}},
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    policy = Policy.of(fields)
    assert Policy.parse(policy.to_toml()) == policy
    with pytest.raises(PolicyError, match=r"columns\.dx\.hierarchy: codes"):
        Policy.of({**fields, "columns": {"dx": {"role": "quasi", "hierarchy": {"codes": "icd-9"}}}})
