"""Synthetic tables: true marginals with a large budget, the planned cost, and nothing outside the domain."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.results.dp.budget import Budget
from shoal.results.dp.synthesis import _SynthesisRequest


def patients(n: int = 300) -> pa.Table:
    draw = np.random.default_rng(4)
    ward = draw.choice(["A", "B", "C"], n)
    flu = np.where((draw.random(n) < 0.9) == (ward == "A"), "yes", "no")
    return pa.table({"age": draw.integers(0, 90, n), "ward": ward, "flu": flu, "sex": draw.choice(["f", "m"], n)})


KNOWN: dict[str, Any] = {
    "columns": ["age", "ward", "flu", "sex"],
    "bins": {"age": [0, 30, 60, 90]},
    "categories": {"ward": ["A", "B", "C", "D"], "flu": ["yes", "no"], "sex": ["f", "m"]},
}


def counts(table: pa.Table, *names: str) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*(table[name].to_pylist() for name in names), strict=True))


@pytest.mark.parametrize("budget", ["epsilon=9000", "rho=9000"])
def test_with_a_huge_budget_the_marginals_are_the_true_ones(budget: str) -> None:
    table = patients()
    made = shoal.synthesize(table, budget=budget, **KNOWN)
    assert made.table.num_rows == 300
    assert len(made.pairs) == 3
    assert ("ward", "flu") in made.pairs  # the one strong dependence is always chosen
    labels = ["[0, 30)", "[30, 60)", "[60, 90]"]
    truth = table.set_column(0, "age", pa.array([labels[min(age // 30, 2)] for age in table["age"].to_pylist()]))
    for names in [*made.pairs, ("age",), ("ward",), ("flu",), ("sex",)]:
        assert counts(made.table, *names) == counts(truth, *names), names


@pytest.mark.parametrize("budget", ["epsilon=0.01", "epsilon=1", "rho=0.1"])
def test_all_values_are_within_the_domain(budget: str) -> None:
    made = shoal.synthesize(patients(40), budget=budget, rows=50, **KNOWN).table
    assert made.num_rows == 50
    assert set(made["age"].to_pylist()) <= {"[0, 30)", "[30, 60)", "[60, 90]"}
    for name, values in KNOWN["categories"].items():
        assert set(made[name].to_pylist()) <= set(values)


def test_values_that_are_not_listed_are_left_out_and_a_listed_null_is_kept() -> None:
    table = pa.table({"ward": ["A"] * 6 + ["rare"] + [None] * 3})
    made = shoal.synthesize(table, budget="rho=9000", columns=["ward"], categories={"ward": ["A", None]})
    assert counts(made.table, "ward") == {("A",): 6, (None,): 3}


@pytest.mark.parametrize("pairs", [None, [], [["ward", "flu"]], [["flu", "ward"], ["age", "flu"]]])
@pytest.mark.parametrize("budget", ["epsilon=1", "rho=0.7"])
def test_what_is_spent_is_what_the_plan_says(budget: str, pairs: Any, tmp_path: Path) -> None:
    given = Budget.of(budget)
    ledger = shoal.Ledger(tmp_path / "ledger.json", {given.loss: 2})
    prepared = _SynthesisRequest(**KNOWN, pairs=pairs).prepared(patients(), given, ledger)
    assert given.amount * (1 - Budget.of("rho=1e-9").amount) <= sum(prepared.costs) <= given.amount
    plan = prepared.plan()
    assert plan.cost == given
    assert not (tmp_path / "ledger.json").exists()
    if pairs == [["ward", "flu"]]:
        made = shoal.synthesize(patients(), budget=budget, ledger=ledger, pairs=pairs, **KNOWN)
        assert made.left == plan.left == ledger.read().left
        assert made.cost == ledger.read().spent == given
        assert made.pairs == (("ward", "flu"),)


def test_a_seed_repeats_the_drawing_of_rows_but_never_the_noise() -> None:
    made = [shoal.synthesize(patients(), budget="epsilon=0.5", seed=1, **KNOWN).table for _ in range(2)]
    assert made[0] != made[1]
    exact = [
        shoal.synthesize(patients(), budget="rho=9000", seed=1, pairs=[["ward", "flu"]], **KNOWN).table
        for _ in range(2)
    ]
    assert exact[0] == exact[1]


def test_a_person_counts_with_a_limited_number_of_records() -> None:
    table = pa.table({"who": ["a"] * 30 + ["b"] * 2 + [None] * 9, "ward": ["A"] * 32 + ["B"] * 9})
    made = shoal.synthesize(
        table, budget="rho=9000", columns=["ward"], categories={"ward": ["A", "B"]}, entity="who", contributions=3
    )
    assert counts(made.table, "ward") == {("A",): 5}
    assert made.unit == "a person (who), with at most 3 of their records"


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"columns": []}, "list of 1 to"),
        ({"columns": ["age", "age"]}, "twice"),
        ({"columns": ["age", "town"]}, "'town' needs categories or bins"),
        ({"columns": ["age", "town"], "categories": {"town": ["X"]}}, "no column 'town'"),
        ({"pairs": [["age", "ward"], ["ward", "flu"], ["flu", "age"]]}, "close a circle"),
        ({"pairs": [["age", "town"]]}, "two of the columns"),
        ({"budget": "epsilon=1,delta=1e-9"}, "no delta"),
        ({"entity": "sex"}, "identifies people"),
        ({"contributions": 2}, "needs an entity"),
        ({"rows": 0}, "rows must be"),
        ({"budget": "epsilon=5"}, "does not suffice"),
    ],
)
def test_bad_requests_are_refused_and_nothing_is_spent(asked: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    arguments = {"budget": "epsilon=1", "ledger": shoal.Ledger(path, "epsilon=2")} | KNOWN | asked
    with pytest.raises(shoal.ShoalError, match=message):
        shoal.synthesize(patients(5), **arguments)
    assert not path.exists()


def test_the_rows_are_attacked_and_measured_like_any_release() -> None:
    table = patients()
    made = shoal.synthesize(table, budget="epsilon=1", rows=300, **KNOWN).table
    risks = shoal.attack(made, original=table, quasi=["age", "ward", "sex"], sensitive=["flu"])
    assert {"identity linking", "inference"} <= {risk.name for risk in risks.risks}
    assert all(risk.attempts for risk in risks.risks)
