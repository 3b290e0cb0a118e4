"""Suppress cells: no value is generalized, and as few single cells as possible are hidden (_CS).

The problem of Meyerson, Williams, "On the complexity of optimal k-anonymity", PODS 2004, NP-hard for k ≥ 3; cells are
weighted by column.
Needs  models that are judged class by class; if nulls match anything, absorbing ones.
Finds  a release without suppressed records, with a lower bound on the hidden cells. Small tables under k-anonymity are
       solved exactly by integer programming, others by the cheapest patterns first and local moves.
Costs  one grouping per pattern of hidden columns, at most 1024 of them, and a fixed number of moves.

A hidden cell is ``*``, which equals other stars and nothing else: records that look the same form a class, and every
class passes. With ``nulls = "wildcard"``, a hidden cell is a null that matches anything, as statistical offices count.
Taken literally, that requires almost nothing: k − 1 records of nulls match everyone, and every unique record stays
unchanged. Therefore a record may not rely on cells hidden in other records: its released tuple must match enough
*original* records. This is stricter than the requirement, and the smallest number of cells is found exactly, record by
record. With ``matches = "released"``, records may match what is released of others, within the limits of
``released_matches``: what the requirement accepts and sdcMicro counts.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.recoding import Cells, Parts, Recoding
from shoal.search.cells import cell_suppression, classes
from shoal.search.cells.released_matches import MISSING, NullChoice
from shoal.search.cells.star_levels import cells_count, levels_of, not_as_one, with_levels
from shoal.search.problem import Problem, null_code
from shoal.tables.frequency import Codes, Floats, FrequencyTable, unique_patterns
from shoal.tables.values import Values
from shoal.tables.wildcard import neighbourhoods
from shoal.text.figures import format_count


def suppress_cells(problem: Problem) -> Recoding:
    """Hide cells of the ungeneralized table."""
    if problem.wildcard:
        _require_absorbing(problem)
    else:
        classes.require_class_by_class(problem, "suppress_cells")
    narrowed = with_levels(problem, levels_of(problem, problem.lattice.ground))
    cells = cell_suppression.HideableCells.of(narrowed, np.tile(problem.weights, (problem.table.n_classes, 1)))
    trusting = blocks = 0  # records that count on what others hide, and blocks in which they were compared
    if problem.wildcard:
        answer, cost, lower_bound, trusting, blocks = _nulls(problem, cells)
    else:
        answer, cost, lower_bound = _stars(problem, cells)
    exact = cost <= lower_bound + 1e-9
    counted = cells_count(problem)
    return replace(
        answer,
        hierarchies=problem.table.hierarchies,
        # If nulls match anything, the claim is conditional, so nothing is proved about all solutions.
        proved=exact and counted and not (problem.wildcard and cost),
        claim=_claim(problem, cost, lower_bound, trusting, blocks),
        bound=None
        if exact or not counted or problem.wildcard
        else lower_bound / (problem.table.n_records * sum(problem.weights)),
    )


def _claim(problem: Problem, cost: float, lower_bound: float, trusting: int, blocks: int) -> str:
    unit = "cells" if set(problem.weights) == {1.0} else "cells, weighted by column,"
    where = trust = ""
    if problem.wildcard and problem.terms.matches == "released":
        where = " where every record that matched too few hides one"
        trust = f"; {format_count(trusting, 'record')} {'counts' if trusting == 1 else 'count'} on what others hide"
        trust += f", compared within {blocks} blocks of similar records" if blocks > 1 else ""
    elif problem.wildcard:
        where = " where no record counts on what others hide"
    if cost <= lower_bound + 1e-9:
        return f"{_written(cost)} {unit} are suppressed, and no fewer can be{where}{trust}"
    lower_bound = math.ceil(lower_bound - 1e-9) if unit == "cells" else lower_bound
    return f"at least {_written(lower_bound)} {unit} must be suppressed{where}; this suppresses {_written(cost)}{trust}"


def _written(x: float) -> str:
    return str(round(x)) if abs(x - round(x)) < 1e-6 else f"{x:.6g}"


def _stars(problem: Problem, cells: cell_suppression.HideableCells) -> tuple[Cells, float, float]:
    """Assign the records to classes; return the solution, its cost and a lower bound."""
    partition, lower_bound = cell_suppression.partition_and_bound(cells)
    if partition is None:
        raise problem.infeasible() if problem.monotone else not_as_one(problem, "suppress_cells")
    answer = classes.recoding_of_partition(cells.problem, partition, "suppress_cells", n_evaluated=len(cells.patterns))
    return answer, cell_suppression.cost_of(cells, partition), lower_bound


# --- nulls that match anything -----------------------------------------------------------------------------------


def _require_absorbing(problem: Problem) -> None:
    reasons = {
        "needs models that a record passes still when it matches more, where nulls match anything": problem.convex,
        "does not support k-anonymity over sets of columns": [m for m in problem.models if getattr(m, "columns", None)],
        "does not support limits on the release as a whole": problem.of_release,
        "does not support after": problem.after,
    }
    if reason := next((reason for reason, applies in reasons.items() if applies), None):
        raise PolicyError(f"algorithm 'suppress_cells' {reason}", "use nulls = \"category\", or algorithm 'optimal'")
    if capped := [h.column for h in problem.table.hierarchies if h.cardinality(h.height) > 1]:
        raise PolicyError(
            f"algorithm 'suppress_cells' hides cells of any column, and max_level forbids that for "
            f"{', '.join(map(repr, capped))}",
            "remove max_level, or use algorithm 'optimal'",
        )


def _nulls(problem: Problem, cells: cell_suppression.HideableCells) -> tuple[Cells, float, float, int, int]:
    """Hide cells until every row matches enough; return the records that count on what others hide, and the blocks."""
    table = cells.problem.table
    if problem.terms.matches == "released" and cells.k is None:
        raise PolicyError(
            "algorithm 'suppress_cells' counts matches among released records under k-anonymity alone",
            'use matches = "original"',
        )
    nulls = [null_code(h, 0) for h in table.hierarchies]
    leaf_codes = np.column_stack([h.table[0][table.codes[:, j]] for j, h in enumerate(table.hierarchies)]).astype(
        np.int32
    )
    missing = np.column_stack([leaf_codes[:, j] == (-1 if null is None else null) for j, null in enumerate(nulls)])
    # An original star is a text here that matches only itself: hiding it makes it a null.
    cells = replace(cells, codes=leaf_codes, costs=np.where(missing, 0.0, problem.weights))
    hidden, lower_bound = _counting_on_nobody(problem, cells, nulls)
    hidden &= ~missing
    trusting = blocks = 0
    if problem.terms.matches == "released" and cells.k is not None:
        choice = NullChoice(
            problem, np.where(missing, MISSING, leaf_codes).astype(np.int32), table.counts, hidden, cells.k
        )
        fewer, lower_bound, blocks = choice.fewer(), choice.lower_bounds(), len(choice.blocks)
        if _holds_as_released(problem, table, np.where(fewer, MISSING, choice.codes).astype(np.int32)):
            hidden = fewer
            trusting = int(table.counts[~_hides_enough(cells, hidden, nulls)].sum())
    values = tuple(_with_null(h) for h in table.hierarchies)
    codes = np.where(hidden, [len(v.labels) - 1 for v in values], leaf_codes).astype(np.int32)
    answer = Cells(
        hierarchies=table.hierarchies,
        values=values,
        became=Parts(np.arange(table.n_classes), codes, table.counts, np.zeros(table.n_classes, np.bool_)),
        algorithm="suppress_cells",
        proved=False,
        n_evaluated=len(cells.patterns),
    )
    cost = (hidden * cells.costs).sum(axis=1)
    return answer, float(table.counts @ cost), float(table.counts @ np.minimum(cost, lower_bound)), trusting, blocks


def _counting_on_nobody(
    problem: Problem, cells: cell_suppression.HideableCells, nulls: list[int | None]
) -> tuple[NDArray[np.bool_], Floats]:
    """Hide in every row the cheapest pattern under which it matches enough original records; return its least cost."""
    cost = np.full(len(cells.counts), np.inf)
    hidden = np.ones(cells.codes.shape, np.bool_)
    for i, pattern in enumerate(cells.patterns):
        price = cells.cost(pattern)
        if (price < cost).any():
            better = (price < cost) & classes.passing(problem, _matches_of_pattern(cells, pattern, nulls))
            cost[better], hidden[better] = price[better], pattern
        problem.progress("hiding cells", i / len(cells.patterns))
    if not np.isfinite(cost).all():
        raise problem.infeasible()
    return hidden, np.minimum(cost, cell_suppression.left_out(cells))


def _matches_of_pattern(
    cells: cell_suppression.HideableCells, pattern: cell_suppression.Pattern, nulls: list[int | None]
) -> FrequencyTable:
    """Return what each row matches if it alone hides the pattern."""
    # In a column that the record itself hides, other records match with any value.
    alike = replace(cells.problem.table, codes=np.where(pattern, 0, cells.codes).astype(np.int32))
    return neighbourhoods(alike, [None if out else null for out, null in zip(pattern, nulls, strict=True)])


def _hides_enough(
    cells: cell_suppression.HideableCells, hidden: NDArray[np.bool_], nulls: list[int | None]
) -> NDArray[np.bool_]:
    """Return which rows match enough original records with what they hide themselves."""
    enough = np.zeros(len(hidden), np.bool_)
    patterns, pattern_of = unique_patterns(hidden)
    for i, pattern in enumerate(patterns):
        mine = pattern_of == i
        enough[mine] = classes.passing(cells.problem, _matches_of_pattern(cells, pattern, nulls))[mine]
    return enough


def _holds_as_released(problem: Problem, table: FrequencyTable, codes: Codes) -> bool:
    """Return whether all rows pass as the judge counts them."""
    neighbourhood_table = neighbourhoods(replace(table, codes=codes - MISSING), [0] * codes.shape[1])
    return bool(classes.passing(problem, neighbourhood_table).all())


def _with_null(hierarchy: Hierarchy) -> Values:
    """Return the original labels followed by a null that could be anything.

    A null of the data has its own number: it was not hidden and costs nothing.
    """
    leaf_values = Values.of_level(hierarchy, 0)
    top = Values.of_level(hierarchy, hierarchy.height)
    return Values(
        hierarchy,
        (*leaf_values.labels, None),
        (*leaf_values.covers, *top.covers),
        np.append(leaf_values.shares, top.shares),
        np.append(leaf_values.sizes, top.sizes),
        np.append(leaf_values.levels, top.levels),
    )
