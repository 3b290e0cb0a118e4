"""What an intruder can work out from published totals: linear programs over the classes that no total tells apart.

A *class* here is a set of records that all totals, published earlier or asked for now, contain or leave out together. A
total is the sum of some classes. The intruder knows every published total exactly, that no class is below its floor
(0 for counts), and that counts are whole numbers; another table is possible if it agrees with all of that. Programs
are stated in deviations from the true table, so the truth is always feasible, whatever is rounded.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, diags_array, hstack, vstack
from scipy.sparse.csgraph import connected_components

from shoal.errors import CannotTellError
from shoal.tables.frequency import Floats

Flags = NDArray[np.bool_]
InsideKnowledge = Mapping[int, tuple[float, float]]  # of some classes, how far each can fall and rise

TOLERANCE = 1e-6  # of a protection level: HiGHS answers to 1e-7 in units of the level
FEW_BRANCHES = 50  # of a program that need not find the best answer
LATE_HINT = "allow more time, or make the table smaller: fewer columns to group by, or coarser groups"
SMALL_PROGRAM = 5_000  # classes
UNBOUNDED = 1e6  # units, as far as anything that is not bounded is tried to move
BRANCHES = 20_000  # nodes of one integer program; the same answer on every machine, unlike a time limit


@dataclass(frozen=True, eq=False)
class Totals:
    """Totals of one quantity: of which classes each total is the sum, and what the intruder knows of the classes."""

    values: Floats  # (classes)  the truth
    floors: Floats  # (classes)  what the intruder knows each class to be at least; -inf for values of either sign
    cells: csr_array  # (cells, classes)  1 where a cell of the table to be released contains a class
    published: csr_array  # (earlier totals, classes)  the same for totals that were released before
    integer: bool  # whether the intruder knows that classes are whole numbers
    # Whether the totals are two nested families, as rows and columns are: such a matrix is totally unimodular, and
    # linear programs have whole solutions.
    network: bool = False
    linked: bool = (
        False  # whether the published totals include equations between columns, with coefficients of any sign
    )

    @property
    def slack(self) -> Floats:
        """How far each class can be below its true value."""
        return np.asarray(self.values - self.floors)


@dataclass(frozen=True, eq=False)
class LinearIntruder:
    """An intruder who sees the totals that are not hidden; ``reach`` is how far a hidden one may be from the truth."""

    totals: Totals
    hidden: Flags  # (cells)
    deadline: float = math.inf  # of the programs, on the clock of time.monotonic

    @cached_property
    def _open_system(self) -> tuple[csr_array, Flags]:
        """The published totals over the classes that stay unknown, and which these are."""
        rows = vstack([self.totals.cells[np.flatnonzero(~self.hidden)], self.totals.published]).tocsr()
        free = np.ones(rows.shape[1], np.bool_)
        parts = (rows != 0).astype(np.int64)  # equations between columns have coefficients of either sign
        while True:  # a total of one unknown class tells it
            unknown = parts @ free.astype(np.int64)
            alone = np.flatnonzero(unknown == 1)
            if not len(alone):
                break
            told_apart = rows[alone].multiply(free.astype(np.int64)).tocsr().indices
            free[told_apart] = False
        rows = rows[np.flatnonzero(unknown > 1)]
        return rows.tocsc()[:, np.flatnonzero(free)].tocsr(), free

    @cached_property
    def _parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The position of each unknown class, and the connected part of each unknown class and of each total."""
        rows, free = self._open_system
        position = np.full(len(free), -1)
        position[free] = np.arange(free.sum())
        n_rows, n = rows.shape
        if n_rows == 0:
            return position, np.arange(n), np.zeros(0, np.int64)
        joint = rows.tocoo()
        graph = csr_array((np.ones(joint.nnz), (joint.row, joint.col + n_rows)), shape=(n_rows + n, n_rows + n))
        part = connected_components(graph, directed=False)[1]
        return position, part[n_rows:], part[:n_rows]

    def reach(
        self,
        target: NDArray[np.int64],
        sign: int,
        scale: float = 1.0,
        inside: InsideKnowledge | None = None,
    ) -> tuple[float, Floats]:
        """Return how far the sum of the ``target`` classes can be above (sign 1) or below (-1) the truth, and a way.

        ``known`` is what a contributor knows more of some classes: how far these can be from their true values.
        """
        rows, free = self._open_system
        position, part_of_class, part_of_row = self._parts
        way = np.zeros(len(free))
        target_positions = position[target[free[target]]]
        if not len(target_positions):
            return 0.0, way
        part = np.flatnonzero(np.isin(part_of_class, part_of_class[target_positions]))
        chosen = rows[np.flatnonzero(np.isin(part_of_row, part_of_class[target_positions]))].tocsc()[:, part].tocsr()
        named = np.flatnonzero(free)[part]
        slack = self.totals.slack[named].copy()
        highest = np.full(len(part), np.inf)
        for i, (fall, rise) in (inside or {}).items():
            at = named == i
            slack[at], highest[at] = np.minimum(slack[at], fall), rise
        goal = np.isin(part, target_positions).astype(float)
        covered = np.asarray(abs(chosen).sum(axis=0)).ravel() > 0
        if np.isinf(slack).all():  # values of either sign: either determined, or anything
            solution = self._solved(goal * sign, chosen, np.full(len(part), -1.0), np.ones(len(part)))
            way[named] = solution * scale
            return (float(np.inf) if goal @ solution * sign > 1e-7 else 0.0), way
        if sign > 0 and (anything := goal.astype(bool) & ~covered & np.isinf(highest)).any():
            way[named[np.flatnonzero(anything)[0]]] = max(scale, 1.0) * 1e6
            return float(np.inf), way
        unit = 1.0 if self.totals.integer else scale
        highest = np.where(covered, highest, 0.0)
        if self.totals.linked:  # equations between columns do not bound what they link
            solution = self._solved(
                goal * sign, chosen, -np.minimum(slack / unit, UNBOUNDED), np.minimum(highest, UNBOUNDED)
            )
            way[named] = solution * unit
            reached = float(goal @ solution * sign)
            return (float(np.inf) if reached > UNBOUNDED / 10 else reached * unit), way
        solution = self._solved(goal * sign, chosen, -slack / unit, highest) * unit
        if self._fractional(solution):
            solution = self._solved(goal * sign, chosen, -slack / unit, highest, whole=True)
        way[named] = solution
        reached = float(goal @ solution * sign)
        return (float(round(reached)) if self.totals.integer else reached), way

    def require_time(self) -> None:
        """Raise an error if the time is over."""
        if time.monotonic() > self.deadline:
            raise CannotTellError("the time was over before a safe choice of hidden cells was found", LATE_HINT)

    def _solved(self, goal: Floats, rows: csr_array, lowest: Floats, highest: Floats, *, whole: bool = False) -> Floats:
        """Maximize over the deviations that leave the published totals as they are."""
        self.require_time()
        if whole:
            result = milp(
                -goal,
                constraints=LinearConstraint(rows, 0, 0) if rows.shape[0] else None,
                bounds=Bounds(lowest, highest),
                integrality=np.ones(len(goal)),
                options={"node_limit": BRANCHES, "mip_rel_gap": 0.0, **time_left(self.deadline)},
            )
        else:
            equal = {"A_eq": rows, "b_eq": np.zeros(rows.shape[0])} if rows.shape[0] else {}
            bounds = np.column_stack([lowest, highest])
            # Presolving a program of this size takes longer than it saves.
            options = {"presolve": len(goal) > SMALL_PROGRAM, **time_left(self.deadline)}
            result = linprog(-goal, bounds=bounds, method="highs", options=options, **equal)
        if result.status != 0 or result.x is None:
            self.require_time()
            raise CannotTellError(
                "the range of a hidden cell could not be computed within the limits of the solver; nothing is released",
                "make the table smaller: fewer columns to group by, or coarser groups",
            )
        return np.asarray(result.x, dtype=float)

    def _fractional(self, way: Floats) -> bool:
        """Return whether a way has to be of whole numbers, but is not."""
        return self.totals.integer and not self.totals.network and bool((np.abs(way - np.rint(way)) > 1e-6).any())

    def moving_most(self, targets: Sequence[tuple[NDArray[np.int64], float]], sign: int) -> Floats | None:
        """Return one way in which many targets are at once as far from the truth as their levels; None if not found.

        The first target goes before all others: if it does not move as far, then no way was found in which it does.
        """
        rows, free = self._open_system
        position, part_of_class, part_of_row = self._parts
        target_positions = [position[classes[free[classes]]] for classes, _ in targets]
        parts = np.unique(part_of_class[np.concatenate(target_positions)])
        part = np.flatnonzero(np.isin(part_of_class, parts))
        column = np.full(len(part_of_class), -1)
        column[part] = np.arange(len(part))
        chosen = rows[np.flatnonzero(np.isin(part_of_row, parts))].tocsc()[:, part].tocsr()
        n, m = len(part), len(targets)
        if not len(target_positions[0]):
            return None
        unit = 1.0 if self.totals.integer else float(np.median([level for _, level in targets]))
        levels = np.array([level for _, level in targets]) / unit
        at = np.repeat(np.arange(m), [len(places) for places in target_positions])
        target_columns = column[np.concatenate(target_positions)]
        moves = csr_array((np.full(len(at), -float(sign)), (at, target_columns)), shape=(m, n))
        slack = self.totals.slack[np.flatnonzero(free)[part]] / unit
        constraints = [LinearConstraint(hstack([moves, diags_array(levels)]).tocsr(), -np.inf, 0)]
        if chosen.shape[0]:
            constraints.append(LinearConstraint(hstack([chosen, csr_array((chosen.shape[0], m))]).tocsr(), 0, 0))
        for whole in (False, True):
            ran = milp(
                np.concatenate([np.zeros(n), [-2.0 * m], -np.ones(m - 1)]),
                constraints=constraints,
                bounds=Bounds(np.concatenate([-slack, np.zeros(m)]), np.concatenate([np.full(n, np.inf), np.ones(m)])),
                integrality=np.concatenate([np.full(n, float(whole)), np.zeros(m)]),
                options={"node_limit": FEW_BRANCHES, **time_left(self.deadline)},
            )
            if ran.x is None or (not whole and ran.x[n] < 1 - TOLERANCE):
                return None
            solution = ran.x[:n]
            if not self._fractional(solution):
                break
        if self.totals.integer and not self.totals.network:
            solution = np.rint(solution)
            if (chosen @ solution).any() or (solution < -np.rint(slack)).any():
                return None
        # In a network, a way that is not whole lies between whole ones, of which one moves a target at least as far.
        way = np.zeros(len(free))
        way[np.flatnonzero(free)[part]] = solution * unit
        return way


def time_left(deadline: float) -> dict[str, float]:
    """Return the option of HiGHS that ends a program at a deadline."""
    return {} if deadline == math.inf else {"time_limit": max(0.01, deadline - time.monotonic())}
