"""Columns that are released as they are: whom they single out, alone or with the others, counted in persons."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.findings import Finding
from shoal.policy import Policy

N = 400
AGE = [20 + i % 40 for i in range(N)]
BASE: dict[str, Any] = {"age": AGE, "disease": [["flu", "gout", "asthma"][i // 40 % 3] for i in range(N)]}
K4, DIVERSE = {"model": "k-anonymity", "k": 4}, {"model": "distinct-l-diversity", "l": 2}


def policy(*require: Any, entity: str | None = None, **roles: str) -> Policy:
    columns: dict[str, Any] = {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}}
    columns |= {name: {"role": role} for name, role in roles.items()}
    release = {} if entity is None else {"entity": entity}
    return Policy.of({"columns": columns, "require": list(require) or [K4, DIVERSE], "release": release})


def found(asked: Policy, **columns: Any) -> dict[str, Finding]:
    return {finding.kind: finding for finding in shoal.anonymize(pa.table(BASE | columns), asked).findings}


def test_few_people_in_small_classes_are_to_be_decided_on_and_many_stop() -> None:
    """Ten records of each age: a plain column that parts two of them from the others concerns these two."""
    for n_ages, severity in ((1, "decide"), (40, "stop")):
        left = [int(age - 20 < n_ages and i < 80) for i, age in enumerate(AGE)]
        finding = found(policy(left="plain"), left=left)["singled-out"]
        assert (finding.severity, finding.people, finding.columns) == (severity, 2 * n_ages, ("left",))
        assert f"leaves {2 * n_ages} of {N} records in classes of fewer than 4, 0 of them alone" in finding.fact


def test_columns_that_single_out_only_together_are_all_named() -> None:
    one, other = [i // 40 % 2 for i in range(N)], [i // 80 % 2 for i in range(N)]
    assert "singled-out" not in found(policy(one="plain"), one=one)
    assert found(policy(one="plain", other="plain"), one=one, other=other)["singled-out"].columns == ("one", "other")


def test_the_column_that_reaches_most_people_comes_first() -> None:
    few, many = [int(i in (0, 40)) for i in range(N)], [i // 40 for i in range(N)]
    assert found(policy(few="plain", many="plain"), few=few, many=many)["singled-out"].columns == ("many", "few")


def test_what_everybody_shares_singles_nobody_out() -> None:
    assert found(policy(study="plain"), study=["A"] * N) == {}


def test_persons_are_counted_and_not_records() -> None:
    """Four records of one person with one value of a plain column are one person alone."""
    person = [f"p{age}{i // 160}" for i, age in enumerate(AGE)]  # three persons of every age: 4, 4 and 2 records
    ward = [i // 160 for i in range(N)]
    columns = {"person": person, "ward": ward}
    by_records = found(policy({"model": "k-anonymity", "k": 2}, DIVERSE, person="identifier", ward="plain"), **columns)
    by_persons = found(
        policy({"model": "k-anonymity", "k": 2}, DIVERSE, entity="person", person="identifier", ward="plain"), **columns
    )
    assert by_persons["singled-out"].people == 120
    assert "120 of 120 persons in classes of fewer than 2, 120 of them alone" in by_persons["singled-out"].fact
    # The column is recognised, so that persons are counted although nobody named it.
    assert by_records["singled-out"] == by_persons["singled-out"]


def test_classes_with_fewer_persons_than_k_are_counted_where_persons_are_only_recognised() -> None:
    person = [f"p{age}{i // 160}" for i, age in enumerate(AGE)]  # three persons of every age
    repeat = found(policy(person="identifier"), person=person)["persons-repeat"]
    assert (repeat.severity, repeat.people) == ("stop", 120)
    assert "40 classes hold fewer than 4 persons, 120 in all" in repeat.fact
    enough = found(policy({"model": "k-anonymity", "k": 3}, DIVERSE, person="identifier"), person=person)
    assert enough["persons-repeat"].severity == "note"
    assert "Every class holds at least 3 persons all the same" in enough["persons-repeat"].fact


@pytest.mark.parametrize(("alone", "severity"), [(N, "stop"), (N // 2, "stop"), (N // 4, "decide"), (N // 10, None)])
def test_sensitive_values_that_nobody_else_has(alone: int, severity: str | None) -> None:
    wage = [1000.25 + (i if i < alone else -1 - (i % 5)) for i in range(N)]
    finding = found(policy(K4, DIVERSE | {"column": "disease"}, wage="sensitive"), wage=wage).get("unique-sensitive")
    assert (finding and finding.severity) == severity
    if finding is not None:
        assert finding.people == alone
        assert f"{alone} of {N} records have a value that nobody else has" in finding.fact


def test_ten_answers_of_a_survey_single_people_out() -> None:
    draw = np.random.default_rng(3)
    many = {f"q{i}": draw.integers(1, 6, N).tolist() for i in range(12)}
    nine = dict(list(many.items())[:8])  # with the disease, nine
    finding = found(policy(**dict.fromkeys(many, "sensitive")), **many)["answers-single-out"]
    assert finding.severity == "decide"
    assert finding.people is not None
    assert finding.people > N / 2
    assert "13 sensitive columns" in finding.fact
    assert "answers-single-out" not in found(policy(**dict.fromkeys(nine, "sensitive")), **nine)
    alike = dict.fromkeys(many, AGE)
    assert "answers-single-out" not in found(policy(**dict.fromkeys(alike, "sensitive")), **alike)


def test_a_column_that_reveals_stops_only_where_people_are_in_small_classes() -> None:
    year = [2024 - age for age in AGE]
    stop = found(policy({"model": "k-anonymity", "k": 12}, DIVERSE, year="plain"), year=year)["reveals-quasi"]
    assert (stop.severity, stop.people) == ("stop", N)
    # Ages are grouped for their diseases, which are the same within a year of age; ten people share each year.
    disease = ["flu" if age % 2 else "gout" for age in AGE]
    decide = found(policy(year="plain"), year=year, disease=disease)["reveals-quasi"]
    assert (decide.severity, decide.people) == ("decide", 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 3) | st.none(), st.integers(0, 12)),
        min_size=1,
        max_size=40,
    ),
    st.integers(2, 5),
)
def test_small_classes_by_hand(rows: list[tuple[int, int, int | None, int]], k: int) -> None:
    from shoal.engines.opening import engine_of

    table = pa.table({
        name: pa.array([row[j] for row in rows], pa.int64()) for j, name in enumerate(("a", "b", "c", "person"))
    })  # fmt: skip
    engine = engine_of(table)
    sizes = Counter(row[:3] for row in rows)
    small = engine.small_classes(["a", "b", "c"], None, k)
    assert small.people == len(rows)
    assert small.alone == sum(sizes[row[:3]] == 1 for row in rows)
    assert small.few == sum(sizes[row[:3]] < k for row in rows)
    assert small.classes == sum(n < k for n in sizes.values())
    persons = {key: {row[3] for row in rows if row[:3] == key} for key in sizes}
    small = engine.small_classes(["a", "b", "c"], "person", k)
    assert small.people == len({row[3] for row in rows})
    assert small.alone == len(set().union(*(who for who in persons.values() if len(who) == 1)))
    assert small.few == len(set().union(*(who for who in persons.values() if len(who) < k)))
    assert small.classes == sum(len(who) < k for who in persons.values())
