"""Hidden cells: as few as exhaustive search finds, and never less uncertain than asked."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import csr_array

from examples import THOROUGH
from shoal.results.output.boxes import LeafGrid
from shoal.results.output.linear import LinearIntruder, Totals
from shoal.results.output.suppression import ProtectedTotal, Puzzle, suppressed

LEAST = 5


def cells_of(shape: tuple[int, ...]) -> csr_array:
    """All cells of a table and all its totals, over its inner cells."""
    places = np.arange(np.prod(shape)).reshape(shape)
    rows = []
    for kept in itertools.product(*(range(n + 1) for n in shape)):
        row = np.zeros(places.size)
        row[places[tuple(i if i < n else slice(None) for i, n in zip(kept, shape, strict=True))].ravel()] = 1
        rows.append(row)
    return csr_array(np.array(rows))


def puzzle_of(table: np.ndarray) -> Puzzle:
    cells, values = cells_of(table.shape), table.ravel().astype(float)
    totals = Totals(
        values, np.zeros(len(values)), cells, csr_array((0, len(values))), integer=True, network=table.ndim <= 2
    )
    figures = cells @ values
    unsafe = (figures > 0) & (figures < LEAST)
    targets = [
        ProtectedTotal(0, cells[[i]].indices.astype(np.int64), LEAST - figures[i], 1.0) for i in np.flatnonzero(unsafe)
    ]
    return Puzzle([totals], targets, unsafe, 1 + np.log2(1 + figures), [None])


def grid_of(shape: tuple[int, ...]) -> LeafGrid:
    """The classes of a plain table, in the order of ``cells_of``."""
    keys = [
        (
            tuple(str(i) if i < n else None for i, n in zip(at, shape, strict=True)),
            tuple(i < n for i, n in zip(at, shape, strict=True)),
        )
        for at in itertools.product(*(range(n + 1) for n in shape))
    ]
    leaves = [i for i, (_, kept) in enumerate(keys) if all(kept)]
    grid = LeafGrid.of_cells(keys, [1] * len(shape), {i: j for j, i in enumerate(leaves)})
    assert grid is not None
    return grid


def least_by_trying(puzzle: Puzzle) -> float | None:
    free = np.flatnonzero(~puzzle.unsafe)
    best = None
    for more in itertools.product([False, True], repeat=len(free)):
        hidden = puzzle.unsafe.copy()
        hidden[free] = more
        cost = float(puzzle.costs[hidden].sum())
        if (best is None or cost < best - 1e-9) and puzzle.safe(hidden):
            best = cost
    return best


def possible(table: np.ndarray, hidden: np.ndarray) -> np.ndarray:
    """Every table of whole numbers with the published figures: the figures of all its cells."""
    cells, values = cells_of(table.shape).toarray(), table.ravel()
    shown = cells[~hidden]
    top = int(values.sum())
    guesses = np.indices((top + 1,) * len(values), dtype=np.int8).reshape(len(values), -1)
    agree = (shown @ guesses == (shown @ values)[:, None]).all(axis=0)
    return np.asarray((cells @ guesses[:, agree]).T)


@pytest.mark.parametrize("seed", range(20))
def test_no_pattern_found_by_trying_all_costs_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 15, size=[(2, 2), (3,), (4,), (1, 4)][seed % 4])
    puzzle = puzzle_of(table)
    found, best = suppressed(puzzle), least_by_trying(puzzle)
    assert (found is None) == (best is None)
    if found is not None and best is not None:
        assert found.proved
        assert found.cost == pytest.approx(best)


@pytest.mark.parametrize("seed", range(12))
def test_ranges_are_those_of_all_tables_that_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = [(2, 2), (3,), (2, 2), (4,)][seed % 4]
    table = rng.integers(0, 4, size=shape)
    cells = cells_of(shape)
    hidden = rng.random(cells.shape[0]) < 0.7
    hidden[-1] = False  # with the grand total, there are finitely many tables
    totals = Totals(
        table.ravel().astype(float), np.zeros(table.size), cells, csr_array((0, table.size)), integer=True, network=True
    )
    figures = possible(table, hidden)
    intruder = LinearIntruder(totals, hidden)
    for i in range(cells.shape[0]):
        classes = cells[[i]].indices.astype(np.int64)
        truth = cells[[i]] @ totals.values
        assert truth + intruder.reach(classes, 1)[0] == figures[:, i].max()
        assert truth - intruder.reach(classes, -1)[0] == figures[:, i].min()


def test_ranges_in_three_dimensions_are_those_of_all_tables_that_agree() -> None:
    table = np.array([1, 0, 0, 1, 0, 1, 0, 0]).reshape(2, 2, 2)
    cells = cells_of(table.shape)
    hidden = np.diff(cells.indptr) == 1  # all inner cells; every total of two dimensions is published
    totals = Totals(table.ravel().astype(float), np.zeros(8), cells, csr_array((0, 8)), integer=True)
    figures = possible(table, hidden)
    assert len(figures) >= 1
    for i in np.flatnonzero(hidden):
        classes = cells[[i]].indices.astype(np.int64)
        truth = float((cells[[i]] @ totals.values)[0])
        assert truth + LinearIntruder(totals, hidden).reach(classes, 1)[0] == figures[:, i].max()
        assert truth - LinearIntruder(totals, hidden).reach(classes, -1)[0] == figures[:, i].min()


@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (2, 2, 3), (3, 2, 2)])
def test_moving_many_targets_at_once_finds_what_a_program_for_each_finds(shape: tuple[int, ...]) -> None:
    for seed in range(12):
        rng = np.random.default_rng(seed)
        puzzle = puzzle_of(rng.integers(0, 9, size=shape))
        hidden = puzzle.unsafe | (rng.random(len(puzzle.unsafe)) < 0.4)
        intruder = LinearIntruder(puzzle.quantities[0], hidden)
        exposed = {
            target.classes.tobytes()
            for target in puzzle.targets
            for sign in (1, -1)
            if intruder.reach(target.classes, sign)[0] < target.level(sign)
        }
        assert {attack.target.classes.tobytes() for attack in puzzle.exposed(hidden)} == exposed


def test_distances_of_different_size_are_not_mixed_up() -> None:
    """Two sums of a thousand million beside two of a tenth: the small ones must be able to move as well."""
    values = np.array([3e9, 2e9, 0.3, 0.2])
    cells = csr_array(np.vstack([np.eye(4), [[1, 1, 0, 0]], [[0, 0, 1, 1]], np.ones((1, 4))]))
    totals = Totals(values, np.zeros(4), cells, csr_array((0, 4)), integer=False)
    targets = [ProtectedTotal(0, np.array([i]), values[i] / 10, values[i] / 10) for i in range(4)]
    unsafe = np.array([True, True, True, False, False, False, False])
    puzzle = Puzzle([totals], targets, unsafe, np.ones(7), [None])
    assert {int(attack.target.classes[0]) for attack in puzzle.exposed(unsafe)} == {2, 3}
    unsafe[3] = True
    assert puzzle.safe(unsafe)


def recomputed(cells: csr_array, values: np.ndarray, hidden: np.ndarray, i: int) -> tuple[float, float]:
    """The range of a cell by a program that knows nothing of ours: nonnegative tables with the published figures."""
    shown = cells[np.flatnonzero(~hidden)]
    goal = cells[[i]].toarray()[0]
    ends = [
        linprog(sign * goal, A_eq=shown, b_eq=shown @ values, bounds=(0, None), method="highs") for sign in (1.0, -1.0)
    ]
    low, high = (sign * end.fun if end.status == 0 else sign * -np.inf for sign, end in zip((1, -1), ends, strict=True))
    return low, high


def protects(shape: tuple[int, ...], seed: int, *, boxes: bool = False) -> None:
    table = np.random.default_rng(seed).poisson(7, size=shape)
    puzzle = puzzle_of(table)
    if boxes:
        puzzle = dataclasses.replace(puzzle, grid=grid_of(shape))
    found = suppressed(puzzle, time_limit=0.0 if boxes else 60.0)
    assert found is not None
    cells, values = cells_of(shape), table.ravel().astype(float)
    for i in np.flatnonzero(puzzle.unsafe):
        low, high = recomputed(cells, values, found.hidden, int(i))
        truth = float((cells[[i]] @ values)[0])
        assert high >= LEAST - 1e-6
        assert low <= truth - 1 + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_no_hidden_cell_can_be_worked_out_from_the_published_ones(seed: int) -> None:
    protects([(3, 4), (4, 4), (2, 3, 2)][seed % 3], seed)


@pytest.mark.parametrize("shape", [(8,), (6, 7), (4, 5, 3), (3, 3, 2, 2)])
def test_boxes_protect_without_any_time_to_improve_them(shape: tuple[int, ...]) -> None:
    protects(shape, 3, boxes=True)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160 if THOROUGH else 130))
def test_no_hidden_cell_can_be_worked_out_from_the_published_ones_of_many(seed: int) -> None:
    protects([(3, 4), (4, 5), (2, 3, 3), (9,)][seed % 4], seed)
