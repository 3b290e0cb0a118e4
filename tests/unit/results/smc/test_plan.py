"""The plan that all parties sign: what it opens, what it refuses, how it differs from another."""

import doctest
from fractions import Fraction

import pytest

from shoal.errors import PolicyError
from shoal.results.smc import parties, plan
from shoal.results.smc.plan import SharePlan

AGE = {"age": ("0", "120")}


@pytest.mark.parametrize("module", [plan, parties])
def test_examples_run(module) -> None:
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "computes nothing"),
        ({"minimum": ("age",)}, "minimum of 'age' needs bounds"),
        ({"mean": ("age",), "epsilon": "1"}, "mean of 'age' needs bounds"),
        ({"quantile": (("age", "1.5"),), "bounds": AGE}, "not between 0 and 1"),
        ({"quantile": (("age", "0.1234567891"),), "bounds": AGE}, "more than 9 decimals"),
        ({"sum": ("age",), "bounds": {"age": ("0", str(2**64))}}, "too wide"),
        ({"sum": ("age",), "bounds": {"age": ("0", "1e999999999")}}, "is not a number"),
        ({"count": True, "epsilon": "0.0000001"}, "larger than any use"),
        ({"sum": ("age",), "bounds": AGE, "epsilon": "0.0001"}, "larger than any use"),
        ({"variance": ("age",), "bounds": AGE, "epsilon": "1", "rows_per_person": 10**6}, "larger than any use"),
        ({"maximum": ("age",), "bounds": AGE, "epsilon": "1"}, "noise is added to counts"),
        ({"count": True, "epsilon": "0"}, "not above 0"),
        ({"count": True, "epsilon": "1", "at_least": 5}, "opens an exact bit"),
        ({"sum": ("age",), "bounds": {"age": ("5", "5")}}, "the first must be below"),
        ({"sum": ("age",), "bounds": {"age": ("0", "1.5")}}, "at most 0 decimals"),
        ({"sum": ("age",), "decimals": {"age": 12}}, "between 0 and 9"),
        ({"regression": (("age", "age"),), "bounds": AGE}, "different predictors"),
    ],
)
def test_a_plan_that_cannot_be_run_says_why(fields, message) -> None:
    with pytest.raises(PolicyError, match=message):
        SharePlan(**fields)


def test_a_variance_does_not_open_the_mean() -> None:
    assert SharePlan(variance=("age",)).opened == (
        "number of rows with age",
        "sum of squared deviations of age from its mean",
        "whether there are at least 10 rows",
    )


def test_ten_rows_are_the_least_unless_there_is_noise_or_the_parties_agree_on_others() -> None:
    assert SharePlan(count=True).min_rows_opened == 10
    assert SharePlan(count=True, at_least=1).min_rows_opened == 1
    assert SharePlan(count=True, epsilon="1").min_rows_opened == 1
    assert "whether" not in "".join(SharePlan(count=True, epsilon="1").opened)


def test_epsilon_is_divided_over_what_is_opened() -> None:
    asked = SharePlan(count=True, mean=("age",), variance=("age",), bounds=AGE, epsilon="1", rows_per_person=2)
    assert asked.n_noisy == 4  # rows, and the sum, the count and the squares of age
    law, unit = asked.noise_of("sum", "age", 3)  # type: ignore[misc]
    assert (law.epsilon, law.sensitivity, law.honest, unit) == (Fraction(1, 4), 240, 2, 1)
    law, unit = asked.noise_of("square", "age", 3)  # type: ignore[misc]
    assert (law.sensitivity, unit) == (2880, 10)


def test_all_but_one_may_collude_and_not_all() -> None:
    assert SharePlan(count=True, epsilon="1", colluders=2).honest(3) == 1
    with pytest.raises(PolicyError, match="at least one must be honest"):
        SharePlan(count=True, epsilon="1", colluders=3).honest(3)


def test_differences_and_digests() -> None:
    one, other = SharePlan(mean=("age",)), SharePlan(mean=("age",), at_least=3)
    assert one.differences(other.as_dict()) == ["at_least"]
    assert one.differences(one.as_dict()) == []
    assert one.digest != other.digest
    assert one.differences({"mean": ["age"], "strange": 1})[-1] == "strange"
