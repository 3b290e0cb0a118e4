"""Columns that tell a quasi-identifier or are told by one, and many columns of one kind."""

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.inspection.inspect import inspect
from shoal.pipeline import anonymize

N = 240
RNG = np.random.default_rng(21)


def roles(data, **given_roles):
    return {column.name: column.role for column in inspect(data, **given_roles).columns}


def test_what_a_family_or_a_school_has_in_common_is_known_with_it():
    schools = RNG.integers(0, 24, N)
    means = RNG.random(24).round(3)
    data = pa.table({"school": [f"S{s}" for s in schools], "zqs": means[schools], "age": RNG.integers(10, 18, N)})
    found = {column.name: column for column in inspect(data).columns}
    assert found["zqs"].role == "quasi"
    assert found["zqs"].sure == "likely"
    assert "'school'" in found["zqs"].reason


def test_what_the_caller_decides_is_not_overruled():
    towns = RNG.integers(0, 20, N)
    data = pa.table({"town": [f"T{t}" for t in towns], "income": towns * 100, "age": RNG.integers(20, 60, N)})
    assert roles(data)["income"] == "quasi"
    assert roles(data, sensitive=["income"])["income"] == "sensitive"
    assert roles(data, plain=["income"])["income"] == "plain"


def test_a_column_by_chance_in_step_with_another_is_none():
    data = pa.table({"sex": RNG.choice(["f", "m"], 12), "income": RNG.integers(0, 6, 12), "age": list(range(20, 32))})
    assert roles(data)["income"] == "sensitive"


@pytest.mark.parametrize(("n", "role"), [(5, "quasi"), (6, "sensitive"), (40, "sensitive")])
def test_many_columns_of_one_kind_are_one_decision(n, role):
    answers = {f"{chr(97 + i % 26)}qx{chr(97 + i // 26)}": RNG.integers(0, 4, N) for i in range(n)}
    data = pa.table({**answers, "age": RNG.integers(20, 60, N)})
    found = inspect(data)
    by_name = {column.name: column for column in found.columns}
    assert {by_name[name].role for name in answers} == {role}
    if role == "sensitive":
        assert found.batteries == (tuple(answers),)
        release = anonymize(data, found.policy)
        for name in answers:
            counts = Counter(release.table[name].to_pylist())
            classes: dict[object, set[object]] = {}
            for age, answer in zip(release.table["age"].to_pylist(), release.table[name].to_pylist(), strict=True):
                classes.setdefault(age, set()).add(answer)
            assert all(len(given) > 1 or 2 * counts[min(given)] >= N for given in classes.values())
        assert {finding.severity for finding in release.findings} <= {"decide", "note"}
        first = found.decisions[0]
        assert first.columns == tuple(answers)
        unique = len(set(zip(*(column.tolist() for column in answers.values()), strict=True)))
        assert 0 < first.alone <= unique
        assert f"{n} columns" in first.sentence


def test_numbered_columns_are_of_one_kind_whatever_they_hold():
    genes = {f"g_{i}": RNG.random(N).round(3) for i in range(8)}
    found = inspect(pa.table({**genes, "age": RNG.integers(20, 60, N)}))
    assert found.batteries == (tuple(genes),)


@pytest.mark.parametrize(("n", "grouped"), [(9, False), (10, True)])
def test_many_answers_are_one_decision_even_if_their_names_say_what_they_are(n, grouped):
    answers = {f"opinion {chr(97 + i)}": RNG.integers(0, 4, N) for i in range(n)}
    found = inspect(pa.table({**answers, "age": RNG.integers(20, 60, N)}))
    assert found.batteries == ((tuple(answers),) if grouped else ())
    assert {column.role for column in found.columns if column.name in answers} == {"sensitive"}


def test_an_answer_that_everybody_gave_is_of_one_kind_with_those_that_some_left_open():
    answers = {f"q{chr(97 + i)}x": [str(i % 5 + 1) for i in RNG.integers(0, 5, N)] for i in range(3)}
    answers |= {f"q{chr(97 + i)}z": [f"{i % 5 + 1}.0" if i else None for i in RNG.integers(0, 5, N)] for i in range(3)}
    assert inspect(pa.table({**answers, "age": RNG.integers(20, 60, N)})).batteries == (tuple(answers),)


def test_answers_that_are_numbered_alike_are_of_one_kind():
    names = [f"{stem}{time}" for time in (1, 2) for stem in ("qea", "qta", "qpa")]
    scores = {name: RNG.integers(0, 30, N) for name in names}
    found = inspect(pa.table({**scores, "qzz3": RNG.integers(0, 30, N), "age": RNG.integers(20, 60, N)}))
    assert found.batteries == (tuple(names),)


def test_two_forms_of_a_questionnaire_do_not_tell_each_other():
    # Whoever has an answer in one has none in the other: that is no reason to take one for the other.
    first = [i % 9 if i < N // 2 else None for i in range(N)]
    state = [None if i < N // 2 else i % 7 for i in range(N)]
    data = pa.table({"score": first, "state": state, "age": RNG.integers(20, 60, N)})
    assert roles(data) == {"score": "sensitive", "state": "quasi", "age": "quasi"}


def test_only_decisions_that_change_something_are_listed():
    # 'zqa' is unclear, but everybody is unique by birth anyway.
    data = pa.table(
        {"birth": [f"1950-{i % 12 + 1:02}-{i // 12 + 1:02}" for i in range(N)], "zqa": [i % 7 for i in range(N)]}
    )
    assert inspect(data).decisions == ()
    both = pa.table({"age": RNG.integers(20, 60, N), "zqa": RNG.integers(0, 50, N)})
    (decision,) = inspect(both).decisions
    assert decision.columns == ("zqa",)
    assert decision.change > 0


@given(st.integers(2, 12), st.integers(2, 60), st.randoms(use_true_random=False))
def test_every_column_is_decided(n_columns, n_rows, random):
    names = random.sample(
        ["age", "zip", "zq", "score", "income", "id", "remark", "lat", "lon", "q1", "q2", "wght"], n_columns
    )
    data = pa.table({name: [random.choice([1, 2.5, 7, None]) for _ in range(n_rows)] for name in names})
    found = inspect(data)
    assert [column.name for column in found.columns] == names
    if found.having("quasi"):
        assert tuple(found.policy.columns) == tuple(names)
