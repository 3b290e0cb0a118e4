"""What single cells do not show: rows that are absent, two releases together, and what contributors know."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import shoal
from examples import tables
from shoal.results.output.checked import OutputCheck

ILL = pa.table(
    {
        "town": ["A"] * 20 + ["B"] * 40 + ["C"] * 40,
        "ill": ["yes"] * 20 + ["yes", "no"] * 40,
        "sex": ["f", "m"] * 50,
        "income": [100.0 + i for i in range(100)],
    }
)


def hidden(found: OutputCheck) -> set[tuple[str | None, ...]]:
    return {tuple(cell.group("Total")) for cell in found.cells if cell.hidden}


@pytest.mark.parametrize("asked", [{}, {"value": "income", "statistics": ["mean"]}], ids=["count", "mean"])
@pytest.mark.parametrize("before", [False, True])
def test_that_a_group_is_empty_is_not_told_by_its_absence(asked: dict[str, Any], before: bool, tmp_path: Path) -> None:
    """Everybody in A is ill: with no row for the healthy of A, hiding the ill would hide nothing."""
    ledger = tmp_path / "ledger.json"
    if before:
        shoal.check_output(ILL, by=["sex"], ledger=ledger).save(tmp_path / "first.csv")
    found = shoal.check_output(ILL, by=["town", "ill"], sensitive=["ill"], ledger=ledger, **asked)
    rows = {(row["town"], row["ill"]): row for row in found.table.to_pylist()}
    assert len(rows) == 12
    assert rows["A", "yes"]["suppressed"]
    assert rows["A", "no"]["suppressed"] or rows["A", "Total"]["suppressed"]


def test_a_group_that_no_record_of_the_table_is_in_is_listed() -> None:
    found = shoal.check_output(ILL, by=["ill"], where=["town = A"])
    assert found.outcome == "fails"
    assert hidden(found) >= {("yes",), ("no",)}


def test_a_table_of_those_in_a_condition_lists_no_others() -> None:
    found = shoal.check_output(ILL, by=["town"], where=["town in B,C"])
    assert {cell.labels[0] for cell in found.cells} == {"B", "C", None}


@pytest.mark.parametrize("turned", [False, True])
def test_everybody_of_a_group_is_not_told_by_two_tables(turned: bool, tmp_path: Path) -> None:
    """20 people in A, and 20 people in A who are ill."""
    ledger = tmp_path / "ledger.json"
    asked: list[dict[str, Any]] = [{"by": ["town"]}, {"by": ["town"], "where": ["ill = yes"]}]
    if turned:
        asked.reverse()
    first = shoal.check_output(ILL, ledger=ledger, **asked[0])
    assert first.holds
    first.save(tmp_path / "first.csv")
    second = shoal.check_output(ILL, ledger=ledger, **asked[1])
    assert second.outcome == "fails"
    assert ("A",) in hidden(second)
    assert len(hidden(second)) >= 2
    assert shoal.check_output(ILL, ledger=ledger, sensitive=[], **asked[1]).holds


def test_everybody_of_a_group_is_not_told_by_the_parts_of_another_table(tmp_path: Path) -> None:
    """Women and men of A are 10 each; the 20 who are ill are all."""
    ledger = tmp_path / "ledger.json"
    rules: dict[str, Any] = {"ledger": ledger, "min_count": 5}
    shoal.check_output(ILL, by=["sex"], where=["town = A"], sensitive=[], **rules).save(tmp_path / "first.csv")
    second = shoal.check_output(ILL, where=["town = A", "ill = yes"], sensitive=["ill"], **rules)
    assert second.outcome == "fails"
    assert not second.safe


def corners(lone: list[float], several: float) -> pa.Table:
    """Four rows and columns of many people, but two people alone at opposite corners of a rectangle."""
    cells = {(a, b): [100.0 + i for i in range(20)] for a in "PQRS" for b in "uvwz"}
    cells["P", "u"], cells["Q", "v"] = [lone[0]], [lone[1]]
    cells["P", "v"] = cells["Q", "u"] = [several + i for i in range(12)]
    rows = [(a, b, x) for (a, b), values in cells.items() for x in values]
    return pa.table(dict(zip(("a", "b", "x"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.mark.parametrize("shift", [0.0, 150.0], ids=["positive", "of either sign"])
def test_who_is_alone_at_the_opposite_corner_does_not_learn_the_other(shift: float) -> None:
    """Four hidden corners move together: who knows one of them knows all, also where their own would have to rise."""
    rows = corners([5000.0, 5200.0], 900.0)
    if shift:
        rows = rows.append_column("y", pa.array([x - shift for x in rows["x"].to_pylist()]))
    found = shoal.check_output(
        rows, by=["a", "b"], value="y" if shift else "x", statistics=["sum"], sensitive=[], dominance=None
    )
    assert hidden(found) > {("P", "u"), ("Q", "v")}
    assert hidden(found) != {(a, b) for a in "PQ" for b in "uv"}


def test_few_persons_with_many_records_are_not_the_difference_of_two_tables(tmp_path: Path) -> None:
    """Three people of 65 have 20 records each: their 60 records are in no cell, but one table less the other."""
    who = [(f"p{i}", 30, "fm"[i % 2]) for i in range(100)] + [("x", 65, "f"), ("y", 65, "m"), ("z", 65, "m")]
    people, ages, sexes = (list(column) for column in zip(*(each for each in who for _ in range(20)), strict=True))
    rows, ledger = pa.table({"who": people, "age": ages, "sex": sexes}), tmp_path / "ledger.json"
    shoal.check_output(rows, where=["age <= 64"], entity="who", ledger=ledger).save(tmp_path / "first.csv")
    second = shoal.check_output(rows, by=["sex"], where=["age <= 65"], entity="who", ledger=ledger, sensitive=[])
    assert second.outcome == "fails"
    shown = {cell.group("Total")[0]: cell.figures["count"] for cell in second.cells if not cell.hidden}
    assert "Total" not in shown
    assert len(shown) < 2  # nor is the total the sum of both


def test_a_column_of_noughts_and_ones_is_counted_not_summed() -> None:
    rows = pa.table({"town": ["A"] * 30 + ["B"] * 60, "hiv": [1] * 30 + [0, 1] * 30})
    for column in (rows["hiv"], rows["hiv"].cast(pa.bool_())):
        with pytest.raises(shoal.PolicyError, match="count instead"):
            shoal.check_output(rows.set_column(1, "hiv", column), by=["town"], value="hiv", statistics=["mean"])
    assert shoal.check_output(rows, by=["town", "hiv"]).outcome == "fails"  # everybody of A has it


@pytest.mark.parametrize("extreme", [1.0, 5.0])
def test_a_mean_at_the_end_of_the_scale_tells_what_everybody_said(extreme: float) -> None:
    rows = pa.table({"town": ["A"] * 30 + ["B"] * 60, "mark": [extreme] * 30 + [1.0, 2.0, 5.0] * 20})
    found = shoal.check_output(rows, by=["town"], value="mark", statistics=["mean"], dominance=None, p=None)
    assert [cell.labels[0] for cell in found.cells if "full" in cell.failed_rules] == ["A"]


def test_neighbouring_quantiles_have_enough_people_between_them(tmp_path: Path) -> None:
    rows, ledger = pa.table({"x": [float(i * i) for i in range(101)]}), tmp_path / "ledger.json"
    assert shoal.check_output(rows, value="x", statistics=["p40", "median"]).holds  # 11 from one to the other
    found = shoal.check_output(rows, value="x", statistics=["p42", "median"])
    assert found.cells[0].failed_rules == ("quantile",)
    shoal.check_output(rows, value="x", statistics=["median"], ledger=ledger).save(tmp_path / "first.csv")
    assert shoal.check_output(rows, value="x", statistics=["p40"], ledger=ledger).holds
    later = shoal.check_output(rows, value="x", statistics=["p42"], ledger=ledger)
    assert later.cells[0].failed_rules == ("differencing",)


def test_the_mean_of_nobody_is_missing_and_not_zero(tmp_path: Path) -> None:
    rows = pa.table(
        {"a": ["x"] * 20 + ["y"] * 20, "b": ["u", "v"] * 10 + ["u"] * 20, "n": [3.0 + i for i in range(40)]}
    )
    asked: dict[str, Any] = {"by": ["a", "b"], "value": "n", "statistics": ["count", "mean"], "sensitive": []}
    found = shoal.check_output(rows, ledger=tmp_path / "ledger.json", **asked)
    assert found.holds
    nobody = next(row for row in found.table.to_pylist() if (row["a"], row["b"]) == ("y", "v"))
    assert (nobody["count"], nobody["mean"], nobody["suppressed"]) == (0, None, False)
    found.save(tmp_path / "a.csv")
    assert shoal.check_output(rows, ledger=tmp_path / "ledger.json", **asked).holds


def test_what_hidden_cells_are_together_does_not_tell_of_two_persons() -> None:
    """One cell fails and another protects it: the total less the rest is their sum, 91 % of it are two persons."""
    groups = {"x": [27, 5, 4, 0], "y": [5, 6, 5, 6, 5, 6, 5, 5], "z": [65, 0, 0, 0]}
    rows = pa.table(
        {
            "a": [name for name, values in groups.items() for _ in values],
            "capital": [float(value) for values in groups.values() for value in values],
        }
    )
    found = shoal.check_output(rows, by=["a"], value="capital", statistics=["sum"], min_count=4)
    assert {cell.labels[0]: bool(cell.failed_rules) for cell in found.cells} == {
        "x": False,
        "y": False,
        "z": True,
        None: False,
    }
    assert {("z",)} < hidden(found) != {("x",), ("z",)}


@pytest.mark.parametrize("seeds", tables(40, always=10))
def test_no_total_shows_several_hidden_cells_of_which_two_persons_have_most(seeds: range, tmp_path: Path) -> None:
    """With plain sums, for every row and column of a table, also after another table with the same ledger."""
    assert sum(unions_that_are_told(seed, tmp_path) for seed in seeds) >= len(seeds)


def unions_that_are_told(seed: int, folder: Path) -> int:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    labels = {"a": rng.choice(list("wxyz"), n), "b": rng.choice(list("pq"), n)}
    values = np.exp(rng.normal(2, 2.2, n)).round()
    rows, tried = pa.table({**labels, "v": values}), 0
    asked: dict[str, Any] = {"value": "v", "statistics": ["sum"], "min_count": 3, "p": None}
    for by in (["a"], ["a", "b"]):
        found = shoal.check_output(rows, by=by, ledger=folder / f"{seed}.json", **asked)
        if not found.safe:
            continue
        found.save(folder / f"{seed}-{len(by)}.csv")
        suppressed = {tuple(row[name] for name in by): row["suppressed"] for row in found.table.to_pylist()}
        for total, j in itertools.product(suppressed, range(len(by))):
            if total[j] != "Total" or suppressed[total]:
                continue
            parts = [k for k in suppressed if k[j] != "Total" and (*k[:j], "Total", *k[j + 1 :]) == total]
            together = np.zeros(n, np.bool_)
            for part in parts:
                matching = [labels[name] == label for name, label in zip(by, part, strict=True) if label != "Total"]
                together |= np.logical_and.reduce(matching) & suppressed[part]
            largest = np.sort(values[together])[::-1]
            if sum(suppressed[part] for part in parts) > 1 and len(largest):
                assert largest[:2].sum() <= 0.9 * largest.sum() * (1 + 1e-9)
                tried += 1
    return tried
