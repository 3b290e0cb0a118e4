"""Boxes: a wrong one would prove a hidden cell uncertain that is not."""

import time

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

import shoal
from shoal.errors import CannotTellError
from shoal.results.output.boxes import LeafGrid
from shoal.results.output.linear import Totals
from shoal.results.output.suppression import ProtectedTotal, Puzzle, suppressed

Key = tuple[tuple[str | None, ...], tuple[bool, ...]]


def nested_cells(rng: np.random.Generator) -> tuple[list[Key], list[int], np.ndarray]:
    """Cells of a table of towns in regions by sex, or by ages in bands, and the leaves that each is the sum of."""
    dimensions = [
        [("r0", "t0"), ("r0", "t1"), ("r1", "t2"), ("r1", "t3"), ("r1", "t4")],
        [("f",), ("m",), ("x",)]
        if rng.random() < 0.5
        else [("young", "a"), ("young", "b"), ("old", "c"), ("old", "d")],
    ]
    leaves = [(p, q) for p in dimensions[0] for q in dimensions[1]]
    keys: dict[Key, list[int]] = {}
    for i, (p, q) in enumerate(leaves):
        for d in range(len(p) + 1):
            for e in range(len(q) + 1):
                labels = (*p[:d], *[None] * (len(p) - d), *q[:e], *[None] * (len(q) - e))
                kept = (*[True] * d, *[False] * (len(p) - d), *[True] * e, *[False] * (len(q) - e))
                keys.setdefault((labels, kept), []).append(i)
    members = np.zeros((len(keys), len(leaves)))
    for row, at in zip(members, keys.values(), strict=True):
        row[at] = 1
    return list(keys), [len(path) for path in leaves[0]], members


def grid_of(keys: list[Key], sizes: list[int], members: np.ndarray) -> LeafGrid:
    leaves = {i: int(np.flatnonzero(members[i])[0]) for i, (_, kept) in enumerate(keys) if all(kept)}
    grid = LeafGrid.of_cells(keys, sizes, leaves)
    assert grid is not None
    return grid


@pytest.mark.parametrize("seed", range(40))
def test_a_box_changes_the_cells_that_it_says_and_costs_what_they_cost(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys, sizes, members = nested_cells(rng)
    grid = grid_of(keys, sizes, members)
    values = rng.integers(0, 9, members.shape[1]).astype(float)
    prices = np.where(rng.random(len(keys)) < 0.5, 0.0, rng.random(len(keys)))
    for row in members[rng.permutation(len(keys))[:12]]:
        target = np.flatnonzero(row)
        up, down = float(rng.integers(1, 5)), float(min(rng.integers(0, 3), values[target].max()))
        every = np.ones(len(values), np.bool_)
        box = grid.cheapest_box(target, up, values, every, down, values, grid.leaf_prices(prices))
        if box is None:
            continue
        way = np.zeros(len(values))
        way[box.classes] = box.amounts
        assert set(np.flatnonzero(members @ way)) == set(box.cells.tolist())
        assert box.cost == pytest.approx(prices[box.cells].sum())
        assert way[target].sum() == 1
        assert (values + up * way >= 0).all()
        assert (values - down * way >= 0).all()


@pytest.mark.parametrize("seed", range(6))
def test_hidden_cells_of_nested_tables_stay_uncertain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    keys, sizes, members = nested_cells(rng)
    values = rng.poisson(7, members.shape[1]).astype(float)
    figures = members @ values
    unsafe = (figures > 0) & (figures < 5)
    cells = csr_array(members)
    totals = Totals(values, np.zeros(len(values)), cells, csr_array((0, len(values))), integer=True)
    targets = [ProtectedTotal(0, np.flatnonzero(members[i]), 5 - figures[i], 1.0) for i in np.flatnonzero(unsafe)]
    grid = grid_of(keys, sizes, members)
    puzzle = Puzzle([totals], targets, unsafe, 1 + np.log2(1 + figures), [None], grid)
    found = suppressed(puzzle)
    assert found is not None
    shown = members[~found.hidden]
    for i in np.flatnonzero(unsafe):
        ends = [
            linprog(sign * members[i], A_eq=shown, b_eq=shown @ values, bounds=(0, 1000), method="highs").fun
            for sign in (1.0, -1.0)
        ]
        assert ends[0] <= figures[i] - 1 + 1e-6
        assert -ends[1] >= 5 - 1e-6


def test_nothing_is_decided_after_the_deadline() -> None:
    rng = np.random.default_rng(3)
    keys, _, members = nested_cells(rng)
    values = np.full(members.shape[1], 9.0)
    totals = Totals(values, np.zeros(len(values)), csr_array(members), csr_array((0, len(values))), integer=True)
    target = ProtectedTotal(0, np.array([0]), 3.0, 1.0)
    unsafe = np.array([set(np.flatnonzero(row)) == {0} for row in members])
    late = Puzzle([totals], [target], unsafe, np.ones(len(keys)), [None], deadline=time.monotonic() - 1)
    with pytest.raises(CannotTellError, match="time was over"):
        suppressed(late)


def test_a_nested_table_of_many_cells_is_answered_at_once() -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(9, (30, 20))
    town, age = np.unravel_index(np.repeat(np.arange(counts.size), counts.ravel()), counts.shape)
    rows = pa.table(
        {
            "region": [f"r{i // 6}" for i in town],
            "town": [f"t{i}" for i in town],
            "band": [f"b{i // 5}" for i in age],
            "age": [f"a{i}" for i in age],
        }
    )
    found = shoal.check_output(rows, by=["region > town", "band > age"], time_limit=20)
    assert found.safe
    assert found.hidden < found.unsafe * 1.3
