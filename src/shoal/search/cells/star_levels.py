"""Stars: shared by the searches that hide records, columns or cells and leave the rest unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from shoal.errors import InfeasibleError
from shoal.search.full_domain.lattice import Node
from shoal.search.losses.cells import cell_prices, leaf_counts
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.tables.values import Values


def levels_of(problem: Problem, node: Node) -> list[list[int]]:
    """Return per column the level of ``node`` and the top; only the level if it is the top or there is no top."""
    return [
        [level] if level == h.height or h.cardinality(h.height) > 1 else [level, h.height]
        for h, level in zip(problem.table.hierarchies, node, strict=True)
    ]


def with_levels(problem: Problem, levels: Sequence[Sequence[int]]) -> Problem:
    """Return the same problem with only some levels of every column."""
    chosen = tuple(
        h.selected(column_levels) for h, column_levels in zip(problem.table.hierarchies, levels, strict=True)
    )
    return Problem(
        replace(problem.table, hierarchies=chosen),
        problem.asked,
        replace(problem.terms, cells=None),  # a label is shown or hidden; nothing else is written
        population=None if problem.people is None else replace(problem.people.table, hierarchies=chosen),
        progress=problem.progress,
    )


def cells_count(problem: Problem) -> bool:
    """Return whether the objective counts hidden cells by column weight: a shown cell costs 0, a hidden one 1."""
    loss = problem.objective
    if not isinstance(loss, CellLoss) or not loss.linear or loss.mean_of_kept or loss.suppressed != 1:
        return False
    for j, hierarchy in enumerate(problem.table.hierarchies):
        at = hierarchy.table[0][np.flatnonzero(leaf_counts(problem.table, j))]
        if cell_prices(type(loss), problem.table, j, Values.of_level(hierarchy, 0))[at].any():
            return False
    return True


def not_as_one(problem: Problem, algorithm: str) -> InfeasibleError:
    """Return the error if all records together fail: no solution without suppressed records was found."""
    requirements = ", ".join(model.summary for model in problem.asked)
    return InfeasibleError(
        f"hiding cells does not satisfy {requirements}: all {problem.table.n_records} records as one class fail, "
        f"and algorithm {algorithm!r} suppresses no record",
        "use algorithm 'optimal', which suppresses records too",
    )
