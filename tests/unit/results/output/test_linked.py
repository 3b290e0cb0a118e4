"""Columns that are sums of each other: what is hidden of one does not fall out of the others."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.engines.grouping import groupable
from shoal.results.output.ledger import Earlier
from shoal.results.output.linked import linked_columns
from shoal.results.output.request import TableRequest


def earners(**more: Any) -> pa.Table:
    """Of the capital income in A, nearly all is one person's; of the wages and of all income, it is little."""
    rng = np.random.default_rng(0)
    wages, capital = rng.uniform(10, 50, 120).round(2), rng.uniform(1, 5, 120).round(2)
    capital[3] = 4000
    return pa.table(
        {"town": np.repeat(list("ABC"), 40), "wages": wages, "capital": capital, "income": wages + capital} | more
    )


def released(rows: pa.Table, values: list[str], folder: Path, **asked: Any) -> list[Any]:
    ledger, found = folder / "ledger.json", []
    for i, value in enumerate(values):
        found.append(shoal.check_output(rows, value=value, by=["town"], statistics=["sum"], ledger=ledger, **asked))
        if found[-1].safe:
            found[-1].save(folder / f"{i}.csv")
    return found


@pytest.mark.parametrize(
    "values",
    [
        ["capital", "wages", "income"],
        ["capital", "income", "wages"],
        ["income", "wages"],
        ["wages", "income", "capital"],
    ],
)
def test_a_hidden_sum_does_not_fall_out_by_subtraction(values: list[str], tmp_path: Path) -> None:
    found = released(earners(), values, tmp_path)
    shown = [{cell.labels for cell in check.cells if not cell.hidden} for check in found]
    by_value = dict(zip(values, shown, strict=True))
    assert not {("A",)} <= by_value["wages"] & by_value["income"]
    assert ("B",) in by_value["wages"] & by_value["income"]  # the others are published
    last = found[1 if len(values) == 2 else 2]
    ranges = {cell.labels: cell.ranges["sum"] for cell in last.cells if cell.hidden}
    low, high = ranges["A",]
    assert high - low > 0.1 * 4000


def test_without_such_an_equation_nothing_more_is_hidden(tmp_path: Path) -> None:
    rows = earners(income=np.random.default_rng(5).uniform(10, 90, 120))
    found = released(rows, ["capital", "wages", "income"], tmp_path)
    assert [check.hidden for check in found] == [2, 0, 0]


def test_regressions_count_as_sums_of_linked_columns(tmp_path: Path) -> None:
    rows = earners(age=np.random.default_rng(5).integers(20, 70, 120))
    released(rows, ["capital", "wages"], tmp_path)
    found = shoal.check_regression(rows, value="income", on=["age"], by=["town"], ledger=tmp_path / "ledger.json")
    assert "A" in {model.labels[0] for model in found.models if model.hidden}


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (lambda w, c: {"w": w, "c": c, "t": w + c}, {"w", "c", "t"}),
        (lambda w, c: {"w": w, "c": c, "t": w - c}, {"w", "c", "t"}),  # losses: of either sign
        (lambda w, c: {"w": w, "c": c, "t": 12 * w + c / 1000}, {"w", "t"}),  # what is added is as little as rounding
        (lambda w, c: {"w": w, "c": 100 - w, "t": c}, {"w", "c"}),  # shares of a whole
        (lambda w, c: {"w": w, "c": c, "t": np.round(w + c)}, {"w", "c", "t"}),
        (lambda w, c: {"w": w, "c": c, "t": w * c}, set()),
        (lambda w, c: {"w": w, "c": c, "t": w + c + 300 * np.sin(np.arange(len(w)))}, set()),
    ],
)
def test_equations_are_found_in_the_data(columns: Any, expected: set[str]) -> None:
    rng = np.random.default_rng(3)
    rows = pa.table(columns(rng.uniform(1000, 9000, 200), rng.uniform(1000, 9000, 200)))
    earlier = [Earlier(TableRequest.checked([], None, [], name, ["sum"]), {}) for name in "ct"]
    asked = TableRequest.checked([], None, [], "w", ["sum"])
    features = list(
        dict.fromkeys(feature for each in (asked, *(e.request for e in earlier)) for feature in each.features)
    )
    found = linked_columns(groupable(rows), asked, earlier, features, None, 2)
    assert set(() if found is None else found.names) == expected
    if found is not None:
        values = np.array([rows[name].to_numpy() for name in found.names])
        left = np.abs(found.relations @ values - found.constants[:, None]).max(axis=1)
        assert (left <= 2e-3 * np.abs(values).max()).all()


def test_a_few_records_are_linked_by_chance() -> None:
    rows = pa.table({"w": [1.0, 2.0], "c": [5.0, 9.0], "t": [6.0, 11.0]})
    asked, earlier = (
        TableRequest.checked([], None, [], "w", ["sum"]),
        Earlier(TableRequest.checked([], None, [], "c", ["sum"]), {}),
    )
    features = [*asked.features, *earlier.request.features]
    assert linked_columns(groupable(rows), asked, [earlier], features, None, 2) is None


def test_an_equation_holds_where_values_are_missing_for_nobody(tmp_path: Path) -> None:
    """Nobody in C tells their wages: the sums of the other towns are linked all the same."""
    wages = earners()["wages"].to_pylist()
    rows = earners(wages=pa.array([*wages[:80], *[None] * 40]))
    found = released(rows, ["capital", "wages", "income"], tmp_path)
    assert ("A",) in {cell.labels for cell in found[2].cells if cell.hidden}
