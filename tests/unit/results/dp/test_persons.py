"""Spellings of a person's key are one person for the privacy budget, and a key that says nothing is none."""

import ibis
import pyarrow as pa
import pytest

from shoal.engines.grouping import groupable
from shoal.notation.same_values import plain_value, says_nothing
from shoal.results.dp.counting import PrivacyUnit, counted_exactly
from shoal.results.dp.persons import key_of_person
from shoal.results.dp.statistics import CountStatistic, PersonsStatistic

SPELLINGS = [
    ["7", "07", "7.0", " 7 ", "\uff17", "+7"],
    ["Anna", "anna ", "ANNA", "\u0410nna", "an\u200bna", "\uff21nna"],
    ["anna b", "anna\u00a0 B", " Anna\tb"],
]
NOBODY = ["", " ", "unknown", "?", "n/a", "NA", "-", "(missing)", None]


@pytest.mark.parametrize("spellings", SPELLINGS)
def test_spellings_of_a_key_are_one_person(spellings: list[str]) -> None:
    assert len(set(map(plain_value, spellings))) == 1  # as `check` says
    people = groupable(pa.table({"id": [*spellings, *spellings, "other"]}))
    asks = [CountStatistic(), PersonsStatistic()]
    assert counted_exactly(people, asks, (), PrivacyUnit("id", 2)).exact == [{(): [[3]]}, {(): [[2]]}]


def test_a_key_that_says_nothing_is_no_person() -> None:
    assert all(map(says_nothing, NOBODY))
    people = groupable(pa.table({"id": pa.array([*NOBODY, "0", "00"], pa.string())}))
    assert counted_exactly(people, [PersonsStatistic()], (), PrivacyUnit("id", 1)).exact == [{(): [[1]]}]


@pytest.mark.parametrize("dialect", ["duckdb", "postgres", "pyspark"])
def test_every_engine_has_the_key_in_sql(dialect: str) -> None:
    table = ibis.table({"id": "string"}, name="people")
    sql = str(ibis.to_sql(table.select(person=key_of_person(table.id)), dialect=dialect))
    assert sql.upper().count("REGEXP_REPLACE") >= 5
