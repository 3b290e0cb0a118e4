"""Random small tables, attacked with what is published and nothing else: programs written apart from the package."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import shoal
from examples import THOROUGH, some
from shoal.results.output.checked import OutputCheck

LEAST = 4
FAR = 1e6  # more than any figure: what can be as large is not bounded


def drawn(rng: np.random.Generator) -> pa.Table:
    n = int(rng.integers(15, 60))
    return pa.table(
        {
            "a": rng.choice(list("xyz"), n, p=rng.dirichlet([1, 1, 1])),
            "b": rng.choice(list("uvw"), n, p=rng.dirichlet([1, 1, 1])),
            "x": np.exp(rng.normal(3, 1.2, n)).round(1),
        }
    )


def told(check: OutputCheck, name: str, places: list[tuple[str, str]]) -> tuple[np.ndarray, np.ndarray]:
    """The published figures of a table as equations over the groups of a and b, read from the table itself."""
    rows, figures = [], []
    for row in check.table.to_pylist():
        if row[name] is not None:
            rows.append(
                [
                    float(all(row.get(c, "Total") in (key, "Total") for c, key in zip("ab", place, strict=True)))
                    for place in places
                ]
            )
            figures.append(row[name])
    return np.array(rows).reshape(-1, len(places)), np.array(figures, float)


def ends(
    goal: np.ndarray, rows: np.ndarray, figures: np.ndarray, *, whole: bool, listed: np.ndarray | None = None
) -> tuple[float, float]:
    """The least and the largest value that the published figures allow; ``listed`` groups have somebody."""
    found = []
    for sign in (1, -1):
        if whole:
            told = [LinearConstraint(rows, figures, figures)]
            told += [] if listed is None else [LinearConstraint(listed, 1, FAR)]
            ran = milp(sign * goal, constraints=told, bounds=Bounds(0, FAR), integrality=np.ones(len(goal)))
        else:
            ran = linprog(sign * goal, A_eq=rows, b_eq=figures, bounds=(0, FAR))
        assert ran.status == 0
        found.append(np.inf if goal @ ran.x >= FAR else float(goal @ ran.x))
    return found[0], found[1]


def attack(seed: int, folder: Path) -> int:
    """Release one or two tables of the same people, then try to narrow down every group; return how many were tried."""
    rng = np.random.default_rng(seed)
    rows, ledger = drawn(rng), folder / f"{seed}.json"
    places = [(a, b) for a in pc.unique(rows["a"]).to_pylist() for b in pc.unique(rows["b"]).to_pylist()]
    truth = dict.fromkeys(places, 0)
    for a, b in zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True):
        truth[a, b] += 1
    rules: dict[str, Any] = {"min_count": LEAST, "ledger": ledger, "sensitive": []}
    asked = [["a", "b"]] if rng.random() < 0.5 else [["a"], ["a", "b"]]
    equations, known = np.zeros((0, len(places))), np.zeros(0)
    tried = 0
    for n, by in enumerate(asked):
        check = shoal.check_output(rows, by=by, **rules)
        if not check.safe:
            continue
        check.save(folder / f"{seed}-{n}.csv")
        more, figures = told(check, "count", places)
        equations, known = np.vstack([equations, more]), np.concatenate([known, figures])
        for cell in check.cells:
            labels = dict(zip(by, cell.group("Total"), strict=True))
            goal = np.array(
                [
                    float(all(labels.get(c, "Total") in (key, "Total") for c, key in zip("ab", place, strict=True)))
                    for place in places
                ]
            )
            count = sum(k for k, inside in zip(truth.values(), goal, strict=True) if inside)
            if not cell.hidden:
                assert count == 0 or count >= LEAST
                continue
            listed = np.array([[float(place[0] == a) for place in places] for a in {a for a, _ in places}])
            low, high = ends(goal, equations, known, whole=True, listed=listed if by == ["a"] else None)
            assert low <= count <= high
            assert cell.ranges["count"] == pytest.approx((low, high))
            if 0 < count < LEAST:
                assert high >= LEAST
                least = 1 if by == ["a"] else 0  # everybody sees that a group which is listed has somebody
                assert low < count or count == least
            tried += 1
    return tried


def test_no_hidden_count_of_random_tables_can_be_worked_out(tmp_path: Path) -> None:
    assert sum(attack(seed, tmp_path) for seed in range(6)) > 5


@pytest.mark.long
@pytest.mark.parametrize("first", [100, 120] if THOROUGH else [100])
def test_no_hidden_count_of_many_random_tables_can_be_worked_out(first: int, tmp_path: Path) -> None:
    assert sum(attack(seed, tmp_path) for seed in range(first, first + 20)) > 20


@pytest.mark.parametrize("seed", some(range(8), always=4))
def test_no_hidden_sum_of_random_tables_comes_closer_than_asked(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = drawn(rng)
    places = sorted(set(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True)))
    check = shoal.check_output(rows, by=["a", "b"], value="x", statistics=["sum"], min_count=LEAST, sensitive=[])
    if not check.safe:
        assert check.outcome == "fails"
        return
    equations, known = told(check, "sum", places)
    for cell in check.cells:
        labels = cell.group("Total")
        inside = [all(label in (key, "Total") for label, key in zip(labels, place, strict=True)) for place in places]
        low, high = ends(np.array(inside, float), equations, known, whole=False)
        truth = cell.figures["sum"]
        if not cell.hidden:
            assert low == pytest.approx(high)
        else:
            assert cell.ranges["sum"] == pytest.approx((low, high), rel=1e-5, abs=1e-4)
            if cell.failed_rules:
                assert high >= truth * 1.1 * (1 - 1e-6)
                assert low <= truth * 0.9 * (1 + 1e-6)


def test_one_unsafe_cell_inside_a_table_takes_the_corners_of_a_rectangle() -> None:
    """One hidden cell of a table with margins needs three more, the corners of a rectangle; never fewer."""
    counts = {("1", "A"): 20, ("1", "B"): 50, ("1", "C"): 10, ("2", "A"): 8, ("2", "B"): 19, ("2", "C"): 22}
    counts |= {("3", "A"): 17, ("3", "B"): 32, ("3", "C"): 12}
    keys = [key for key, n in counts.items() for _ in range(n)]
    rows = pa.table({"row": [key[0] for key in keys], "column": [key[1] for key in keys]})
    found = shoal.check_output(rows, by=["row", "column"], min_count=9)
    hidden = {cell.labels for cell in found.cells if cell.hidden}
    assert found.proved
    assert [cell.labels for cell in found.cells if cell.failed_rules] == [("2", "A")]
    assert len(hidden) == 4
    lines = {key[0] for key in hidden}, {key[1] for key in hidden}
    assert hidden == {(row, column) for row in lines[0] for column in lines[1]}
