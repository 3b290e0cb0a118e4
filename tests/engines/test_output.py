"""Tables of results are checked where the rows are: the same cells, rules and ranges on every engine."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from benches import Bench
from shoal.results.output.checked import OutputCheck


def visits() -> pa.Table:
    rng = np.random.default_rng(5)
    n = 400
    return pa.table(
        {
            "region": pa.array(
                [None if x == "?" else x for x in rng.choice(list("NESW?"), n, p=[0.5, 0.3, 0.1, 0.02, 0.08])]
            ),
            "sex": rng.choice(["f", "m"], n),
            "age": pa.array(rng.integers(18, 90, n), pa.int64()),
            "income": pa.array(np.exp(rng.normal(10, 1.5, n)).round(2), mask=rng.random(n) < 0.05),
            "who": pa.array([f"p{i}" for i in rng.integers(0, 250, n)]),
        }
    )


ASKED: dict[str, dict[str, Any]] = {
    "counts": {"by": ["region", "sex"]},
    "persons": {"by": ["region", "age"], "bands": {"age": [30, 65]}, "entity": "who", "where": ["sex = f"]},
    "sums": {"by": ["region"], "value": "income", "statistics": ["count", "sum", "mean"], "entity": "who"},
    "quantiles": {"by": ["sex"], "value": "income", "statistics": ["median", "p25"], "min_count": 5},
}


@cache
def in_memory(asked: str) -> OutputCheck:
    return shoal.check_output(visits(), **ASKED[asked])


@pytest.mark.parametrize("asked", ASKED)
def test_the_table_is_that_of_the_rows_in_memory(bench: Bench, asked: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    found, expected = shoal.check_output(bench.load(visits()), ledger=ledger, **ASKED[asked]), in_memory(asked)
    assert found.outcome == expected.outcome
    ours, theirs = ({(cell.labels, cell.kept_columns): cell for cell in each.cells} for each in (found, expected))
    assert ours.keys() == theirs.keys()
    for key, cell in ours.items():
        assert (cell.hidden, set(cell.failed_rules)) == (theirs[key].hidden, set(theirs[key].failed_rules))
        assert cell.figures == pytest.approx(theirs[key].figures)
        for name, ends in cell.ranges.items():
            assert ends == pytest.approx(theirs[key].ranges[name], rel=1e-6)
    found.save(tmp_path / "table.csv")
    # Figures of one engine are recognized on another.
    again = shoal.check_output(visits(), ledger=ledger, **ASKED[asked])
    assert not again.missing


def test_a_regression_is_that_of_the_rows_in_memory(bench: Bench, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    asked: dict[str, Any] = {"value": "income", "on": ["age", "sex"], "by": ["region"], "dominance": None, "p": None}
    found, expected = (
        shoal.check_regression(rows, ledger=ledger, **asked) for rows in (bench.load(visits()), visits())
    )
    assert [(model.labels, model.hidden, model.failed_rules) for model in found.models] == [
        (model.labels, model.hidden, model.failed_rules) for model in expected.models
    ]
    for ours, theirs in zip(found.models, expected.models, strict=True):
        assert ours.fit.figures() == pytest.approx(theirs.fit.figures(), nan_ok=True)
    found.save(tmp_path / "models.csv")
    assert not shoal.check_output(visits(), by=["sex"], ledger=ledger).missing
