"""If these fail, the demo tells wrongly who is found in the release and who is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.demo.linkage import Linkage, link
from shoal.hierarchies import builders
from shoal.policy import Policy

RECORDS = pa.table({
    "zip": ["02138", "02138", "02139", "02141", "02141", None],
    "sex": ["f", "m", "f", "m", "m", "f"],
    "disease": ["flu", "hiv", "flu", "hiv", "flu", "hiv"],
})  # fmt: skip
VOTERS = pa.table({
    "name": ["Ada", "Bo", "Cy", "Di", "Ed"],
    "zip": ["02138", "02138", "02141", "99501", "02139"],
    "sex": ["f", "m", "m", "f", "f"],
})  # fmt: skip


# ── link ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_found_and_who_is_named() -> None:
    # Ada and Bo are really in rows 0 and 1, Cy in one of two, Di nowhere; Ed is not the woman of 02139.
    found = link(RECORDS, VOTERS, ["zip", "sex"], {0: 0, 1: 1, 2: 3})
    assert found == Linkage(people=5, matched=4, singled_out=3, named=2, chance=1.0)
    assert link(RECORDS, VOTERS, ["zip", "sex"]).named == 0  # without a referee nobody knows


def test_the_wrong_record_is_no_name() -> None:
    assert link(RECORDS, VOTERS, ["zip", "sex"], {0: 1, 1: 0}).named == 0


def test_the_best_chance_is_that_of_the_smallest_crowd() -> None:
    found = link(RECORDS, VOTERS, ["sex"])
    assert found == Linkage(people=5, matched=5, singled_out=0, named=0, chance=1 / 3)


def test_nobody_is_found() -> None:
    strangers = VOTERS.set_column(1, "zip", pa.array(["1"] * 5))
    assert link(RECORDS, strangers, ["zip", "sex"]) == Linkage(5, 0, 0, 0, 0.0)
    assert link(RECORDS, VOTERS.slice(0, 0), ["zip", "sex"]) == Linkage(0, 0, 0, 0, 0.0)


def test_the_same_person_may_be_listed_twice() -> None:
    twice = pa.concat_tables([VOTERS.slice(0, 1)] * 2)
    assert link(RECORDS, twice, ["zip", "sex"], {0: 0, 1: 0}) == Linkage(2, 2, 2, 2, 1.0)


def test_a_null_meets_a_null_only() -> None:
    unknown = pa.table({"zip": pa.array([None, ""], pa.string()), "sex": ["f", "f"]})
    assert link(RECORDS, unknown, ["zip", "sex"]) == Linkage(2, 1, 1, 0, 1.0)


def test_values_are_compared_as_text_whatever_their_types() -> None:
    numbers = pa.table({"age": pa.array([21, 22, 22], pa.int8())})
    for other in (
        pa.array(["21", "22", "x"]),
        pa.array([21.0, 22.0, None]),
        pa.array([21, 22, 23]).dictionary_encode(),
    ):
        assert link(numbers, pa.table({"age": other}), ["age"], {0: 0}) == Linkage(3, 2, 1, 1, 1.0)


def test_chunks_do_not_matter() -> None:
    cut = pa.concat_tables([RECORDS.slice(0, 1), RECORDS.slice(1, 0), RECORDS.slice(1)])
    assert link(cut, VOTERS, ["zip", "sex"], {0: 0}) == link(RECORDS, VOTERS, ["zip", "sex"], {0: 0})


def test_plain_values() -> None:
    plain = link(RECORDS, VOTERS, ["zip", "sex"], {0: 0}).as_dict()
    assert json.loads(json.dumps(plain)) == {
        "people": 5, "matched": 4, "singled_out": 3, "named": 1, "chance": 1.0
    }  # fmt: skip


# ── the register beside the labels of a release ─────────────────────────────────────────────────────────────


def met(spec: Any, released: list[str], known: list[str | None], level: int, folder: Path = Path()) -> list[list[str]]:
    """For each value known, the values of the original whose records at a level may be that person's."""
    fields = {"columns": {"q": {"role": "quasi", "hierarchy": spec}}, "require": [{"model": "k-anonymity", "k": 1}]}
    policy = Policy.of(fields, folder)
    hierarchy = builders.build(
        "q", policy.columns["q"].hierarchy, released, nulls=False, uncovered="error", folder=folder
    )
    codes = hierarchy.table[level][hierarchy.encode(released)]
    original = pa.table({"q": released})
    table = pa.table({"q": [hierarchy.labels[level][code] for code in codes]})

    def meet(value: str | None, row: int) -> bool:
        person = pa.table({"q": pa.array([value], pa.string())})
        return link(table.slice(row, 1), person, ["q"], original=original, policy=policy).matched == 1

    return [[text for row, text in enumerate(released) if meet(value, row)] for value in known]


def test_dates_that_no_patient_has_fall_into_the_same_month() -> None:
    spec, released = {"dates": ["month", "year"]}, ["1964-09-13", "1964-11-02"]
    known: list[str | None] = ["1964-09-13", "1964-09-14", "1970-01-01"]
    assert met(spec, released, known, 0) == [["1964-09-13"], [], []]
    assert met(spec, released, known, 1) == [["1964-09-13"], ["1964-09-13"], []]
    assert met(spec, released, known, 2) == [released, released, []]
    assert met(spec, released, known, 3) == [released] * 3


def test_a_decimal_among_the_known_does_not_change_the_words_of_the_release() -> None:
    # The release says 20-24; with 22.5 among its own values it would have said [20, 25).
    assert met({"intervals": [5]}, ["21", "33"], ["22", "22.5", "-3"], 1) == [["21"], ["21"], []]
    assert met({"intervals": [5]}, ["21.5", "33"], ["22", "25"], 1) == [["21.5"], []]


def test_a_longer_code_does_not_shift_the_others() -> None:
    released = ["02138", "02139"]
    known: list[str | None] = ["02138", "02131", "02138-1234"]
    assert met({"mask": "right"}, released, known, 1) == [released, released, []]
    assert met({"mask": "right"}, released, known, 5) == [released] * 3
    assert met({"mask": "left"}, released, ["38", "12138"], 1) == [[], ["02138"]]


def test_a_tree_and_a_file(tmp_path: Path) -> None:
    tree = {"tree": {"*": {"care": ["nurse", "physician"], "trade": ["cook"]}}}
    found = met(tree, ["nurse"], ["physician", "cook", "astronaut", None], 1)
    assert found == [["nurse"], [], [], []]
    (tmp_path / "jobs.csv").write_text("nurse;care;*\nphysician;care;*\n", encoding="utf-8")
    assert met("jobs.csv", ["nurse"], ["physician", "nurse"], 1, tmp_path) == [["nurse"]] * 2


def test_a_register_of_patients_meets_their_records() -> None:
    people = pa.table({
        "age": ["21", "25", "38", "7.5", "64"] * 3,
        "zip": ["02138", "02139", "0214", "99501", "02141"] * 3,
        "born": ["2003-01-02", "1999-12-31", "1986-06-01", "2017-01-01", "1960-02-29"] * 3,
    })  # fmt: skip
    policy = Policy.of({
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20], "top": 60}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "born": {"role": "quasi", "hierarchy": {"dates": ["year", "decade"]}},
        },
        "require": [{"model": "k-anonymity", "k": 6}],
        "release": {"shuffle": False},
    })  # fmt: skip
    release = shoal.anonymize(people, policy)
    assert any(release.levels.values())
    own = {i: i for i in range(5)}
    names = people.column_names
    found = link(release.rows.table, people.slice(0, 5), names, own, original=people, policy=policy)
    assert found.matched == found.people == 5
    assert found.chance <= 1 / 6


@pytest.mark.parametrize("suppressed", ["drop", "keep"])
def test_a_release_stands_against_its_own_table(suppressed: str) -> None:
    policy = Policy.of({
        "columns": {
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "sex": {"role": "quasi"},
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"max_suppression": 0.4, "suppressed": suppressed},
    })  # fmt: skip
    release = shoal.anonymize(RECORDS, policy)
    found = link(release.rows.table, RECORDS, ["zip", "sex"], original=RECORDS, policy=policy)
    assert found.singled_out == 0
    assert found.chance <= 1 / 2
