"""Regressions by group: the coefficients of other libraries, and what is not published."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from typer.testing import CliRunner

import shoal
from examples import examples
from shoal.cli import app
from shoal.results.output.fitting import fitted
from shoal.results.output.rules import OutputRules


def people(n: int = 240, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 70, n)
    sex = rng.choice(["f", "m"], n)
    income = 20_000 + 300 * age + 2_000 * (sex == "m") + rng.normal(0, 4_000, n)
    return pa.table({"region": rng.choice(["N", "S"], n), "sex": sex, "age": age, "income": income.round(2)})


def of(rows: pa.Table, name: str, values: Any) -> pa.Table:
    at = rows.column_names.index(name)
    return rows.set_column(at, name, pa.array(values))


def test_the_coefficients_are_those_of_scikit_learn() -> None:
    rows = people()
    found = shoal.check_regression(rows, value="income", on=["age", "sex"], by=["region"])
    assert found.holds
    shown = found.table.to_pylist()
    for region in "NS":
        chosen = [i for i, each in enumerate(rows["region"].to_pylist()) if each == region]
        part = rows.take(chosen)
        design = np.column_stack([part["age"].to_numpy(), np.array(part["sex"].to_pylist()) == "m"]).astype(float)
        other = LinearRegression().fit(design, part["income"].to_numpy())
        ours = {row["term"]: row for row in shown if row["region"] == region}
        assert list(ours) == ["(intercept)", "age", "sex=m"]
        assert [row["estimate"] for row in ours.values()] == pytest.approx([other.intercept_, *other.coef_])
        assert ours["age"]["r2"] == pytest.approx(other.score(design, part["income"].to_numpy()))
        assert ours["age"]["degrees_of_freedom"] == len(part) - 3
        whole = np.column_stack([np.ones(len(part)), design])
        residuals = part["income"].to_numpy() - other.predict(design)
        spread = np.sqrt(np.diag(np.linalg.inv(whole.T @ whole)) * (residuals @ residuals) / (len(part) - 3))
        assert [row["standard_error"] for row in ours.values()] == pytest.approx(spread)


@given(st.integers(0, 10_000), st.integers(1, 4))
@examples(60)
def test_leverage_is_the_share_of_a_persons_own_value(seed: int, k: int) -> None:
    """The rule fails exactly where some entry of the diagonal of the hat matrix is above the limit."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(k + 12, 40))
    design = np.column_stack([np.ones(n), np.exp(rng.normal(0, 2, (n, k)))])
    hat = design @ np.linalg.pinv(design)
    limit = float(rng.uniform(0.2, 1))
    fit = fitted(rng.normal(0, 1, n), design, ["x"] * (k + 1), np.arange(n), OutputRules(leverage=limit), 0)
    assert ("leverage" in fit.failed_rules) == (np.diag(hat).max() > limit)


def test_who_has_several_records_has_the_leverage_of_all() -> None:
    """Two records at the end of the line, each with half of its weight, decide it together if they are one person's."""
    age = np.array([30.0 + i % 3 for i in range(60)] + [5000.0, 5001.0])
    rows = pa.table({"age": age, "y": np.sin(age * 7) + 10, "who": [str(i) for i in range(60)] + ["x", "x"]})
    alone = shoal.check_regression(rows, value="y", on=["age"], leverage=0.6)
    assert "leverage" not in alone.models[0].failed_rules
    together = shoal.check_regression(rows, value="y", on=["age"], leverage=0.6, entity="who")
    assert "leverage" in together.models[0].failed_rules


@pytest.mark.parametrize(
    ("rows", "asked", "rule"),
    [
        (people(12), {"on": ["age"], "min_count": 3}, ""),
        (people(11), {"on": ["age"], "min_count": 3}, "degrees of freedom"),
        (people(9), {"on": ["age"], "degrees": 0}, "least count"),
        (of(people(), "sex", ["m"] * 3 + ["f"] * 237), {"on": ["sex"]}, "category"),
        (of(people(), "sex", [1] * 3 + [0] * 237), {"on": ["sex"]}, "influence"),
        # A mean of nine people as intercept and slope, whatever two numbers are written; the same for more values.
        (of(people(), "sex", [1] * 9 + [0] * 231), {"on": ["sex"]}, "category"),
        (of(people(), "sex", [7.5] * 9 + [3] * 231), {"on": ["sex"]}, "category"),
        (of(people(), "sex", [1] * 9 + [0] * 231), {"on": ["age", "sex"]}, "category"),
        (of(people(), "sex", [i % 5 for i in range(231)] + [9] * 9), {"on": ["sex"]}, "category"),
        # Nine people far out, at one point of the line or close to it, decide what the line says there.
        (of(people(), "age", [9000] * 9 + [20 + i % 40 for i in range(231)]), {"on": ["age"]}, "leverage"),
        (
            of(people(), "age", [9000 + i for i in range(9)] + [20 + i % 40 for i in range(231)]),
            {"on": ["age"]},
            "influence",
        ),
        (of(people(), "age", [9000] + [30 + i % 7 for i in range(239)]), {"on": ["age"]}, "leverage"),
        (of(people(), "income", [3.5 * x for x in people()["age"].to_pylist()]), {"on": ["age"]}, "exact fit"),
        (of(people(), "income", [9e9] + [100.0 + i for i in range(239)]), {"on": ["age"]}, "dominance"),
        (of(people(), "age", [30] * 240), {"on": ["age"]}, "collinear"),
    ],
)
def test_what_a_model_fails(rows: pa.Table, asked: dict[str, Any], rule: str) -> None:
    found = shoal.check_regression(rows, value="income", **asked)
    assert rule in found.models[0].failed_rules if rule else not found.models[0].failed_rules
    assert found.safe == (not rule)
    if rule:
        assert found.outcome == "fails"
        with pytest.raises(shoal.InfeasibleError):
            _ = found.table


def test_a_model_of_categories_only_is_a_table_of_means(tmp_path: Path) -> None:
    """Means by region, published before with the total, and a model by region give the hidden region away."""
    rng = np.random.default_rng(1)
    region = ["N"] * 60 + ["S"] * 50 + ["W"] * 4
    rows = pa.table({"region": region, "sex": ["f", "m"] * 57, "income": rng.normal(100, 20, 114).round(1)})
    ledger = tmp_path / "ledger.json"
    shoal.check_output(rows, value="income", statistics=["count", "mean"], ledger=ledger).save(tmp_path / "a.csv")
    found = shoal.check_regression(rows, value="income", on=["sex"], by=["region"], ledger=ledger)
    hidden = {model.labels[0] for model in found.models if model.hidden}
    assert hidden == {"S", "W"}  # with N and S, the total would tell W
    assert [model.failed_rules for model in found.models if model.labels[0] == "S"] == [()]
    found.save(tmp_path / "b.csv")
    table = shoal.check_output(rows, by=["region"], value="income", statistics=["mean"], ledger=ledger)
    assert {cell.labels[0] for cell in table.cells if cell.hidden} >= {"S", "W"}


def test_numbers_of_two_values_are_the_categories_of_the_ledger(tmp_path: Path) -> None:
    """The mean of the only four with a 1 in W is hidden in a table; a slope in W, or in all but W, would tell it."""
    rng = np.random.default_rng(1)
    region, smoker = ["N"] * 60 + ["W"] * 40, [0, 1] * 30 + [0] * 36 + [1] * 4
    rows = pa.table({"region": region, "smoker": smoker, "income": rng.normal(100, 20, 100).round(1)})
    ledger = tmp_path / "ledger.json"
    table = shoal.check_output(
        rows, by=["region", "smoker"], value="income", statistics=["count", "mean"], sensitive=[], ledger=ledger
    )
    assert ("W", "1") in {cell.labels for cell in table.cells if cell.hidden}
    table.save(tmp_path / "a.csv")
    inside = shoal.check_regression(rows, value="income", on=["smoker"], by=["region"], ledger=ledger)
    assert "W" in {model.labels[0] for model in inside.models if model.hidden}
    ledger.unlink()
    shoal.check_output(
        rows, by=["smoker"], value="income", statistics=["count", "mean"], sensitive=[], ledger=ledger
    ).save(tmp_path / "b.csv")
    others = shoal.check_regression(rows, value="income", on=["smoker"], by=["region"], ledger=ledger)
    assert {model.labels[0] for model in others.models if model.hidden} == {"N", "W"}  # N and the table tell W


def test_a_regressor_of_few_values_in_one_group_only_cannot_be_judged() -> None:
    rng = np.random.default_rng(2)
    n = 120
    score = np.where(np.arange(2 * n) < n, rng.normal(0, 1, 2 * n).round(3), np.arange(2 * n) % 2)
    rows = pa.table({"region": ["N"] * n + ["S"] * n, "score": score, "income": rng.normal(100, 20, 2 * n)})
    found = shoal.check_regression(rows, value="income", on=["score"], by=["region"])
    assert {model.labels[0]: model.failed_rules for model in found.models} == {"N": (), "S": ("category",)}


def test_two_models_of_almost_the_same_people_are_not_both_published(tmp_path: Path) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    rows = of(rows, "age", [*rows["age"].to_pylist()[:-3], 71, 71, 71])
    first = shoal.check_regression(rows, value="income", on=["age"], ledger=ledger)
    first.save(tmp_path / "a.csv")
    again = shoal.check_regression(rows, value="income", on=["age", "sex"], ledger=ledger)
    assert again.holds  # of the same people
    fewer = shoal.check_regression(rows, value="income", on=["age"], where=["age <= 70"], ledger=ledger)
    assert "differencing" in fewer.models[0].failed_rules
    assert not fewer.safe


def test_people_with_a_missing_value_are_a_difference_too(tmp_path: Path) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    rows = of(rows, "sex", [None] * 4 + rows["sex"].to_pylist()[4:])
    shoal.check_regression(rows, value="income", on=["age"], ledger=ledger).save(tmp_path / "a.csv")
    assert not shoal.check_regression(rows, value="income", on=["age", "sex"], ledger=ledger).safe


def test_changed_data_are_noticed(tmp_path: Path) -> None:
    rows, ledger = people(), tmp_path / "ledger.json"
    shoal.check_regression(rows, value="income", on=["age"], ledger=ledger).save(tmp_path / "a.csv")
    assert shoal.check_output(rows, by=["sex"], ledger=ledger).holds
    other = of(rows, "age", [rows["age"].to_pylist()[0] + 1, *rows["age"].to_pylist()[1:]])
    for found in (
        shoal.check_output(other, by=["sex"], ledger=ledger),
        shoal.check_regression(other, value="income", on=["age"], ledger=ledger),
    ):
        assert found.outcome == "unknown"
        assert found.reason.endswith("regression")
        assert not found.safe


@pytest.mark.parametrize(
    "asked",
    [
        {"value": "income", "on": []},
        {"value": "income", "on": ["income"]},
        {"value": "income", "on": ["age"], "by": ["age"]},
        {"value": "income", "on": ["nowhere"]},
        {"value": "income", "on": ["age"], "categories": ["sex"]},
        {"value": "income", "on": ["age"], "degrees": -1},
        {"value": "income", "on": ["age"], "leverage": 0.0},
        {"value": "sex", "on": ["age"]},
        {"value": "ill", "on": ["age"]},
    ],
)
def test_a_regression_that_makes_no_sense_is_refused(asked: dict[str, Any]) -> None:
    rows = people().append_column("ill", pa.array([0, 1] * 120))
    with pytest.raises((shoal.PolicyError, shoal.DataError)):
        shoal.check_regression(rows, **asked)


def test_the_command_line_publishes_regressions(tmp_path: Path) -> None:
    data, out = tmp_path / "rows.csv", tmp_path / "models.csv"
    rows = people()
    lines = [",".join(map(str, row.values())) for row in rows.to_pylist()]
    data.write_text("\n".join([",".join(rows.column_names), *lines, "W,f,30,31000", "W,m,40,32000"]) + "\n")
    run = CliRunner().invoke
    asked = ["output", str(data), "--value", "income", "--on", "age,sex", "--by", "region"]
    told = run(app, [*asked, "--json"])
    assert told.exit_code == 1
    assert json.loads(told.stdout)["hidden"][0]["group"] == {"region": "W"}
    written = run(app, [*asked, "-o", str(out), "--ledger", str(tmp_path / "ledger.json")])
    assert written.exit_code == 0, written.output
    assert "32000" not in out.read_text()
    assert sum("suppressed" not in line and line.endswith("true") for line in out.read_text().splitlines()) == 1
    assert run(app, ["output", str(data), "--on", "age"]).exit_code == 2
