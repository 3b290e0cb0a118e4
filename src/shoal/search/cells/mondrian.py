"""Mondrian: split the records at a median, recursively, while every part satisfies the requirements.

K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006.
Needs  requirements that are judged class by class, which the whole table satisfies as one class.
Finds  regions that no further cut of these kinds can split; optimality is not proved. ``mondrian`` is strict: records
       with equal values stay together. In ``mondrian_relaxed``, records at the median may go to either side.
Costs  O(n log n): one pass over the rows per level of halving.

Columns whose cells are ranges or sets are cut between two values, as evenly as possible: at the median or just below
it, so that a cut is found whenever one leaves k on either side. If cells are labels of the hierarchy, a cut across a
label gains nothing, so a label is split into its children. Failing children stay together, joined by the smallest
passing one if they still fail; the paper gives up such a split.

In the relaxed version, the paper halves every region. Here records at the median are separated only if a strict cut
would leave one side too small, and only as many as it lacks: halving separates the most frequent values first, which
loses most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.threads import done_in_parts
from shoal.errors import InfeasibleError
from shoal.hierarchies.hierarchy import Hierarchy, once_per_hierarchy
from shoal.hierarchies.intervals import leaf_numbers
from shoal.models.size import KAnonymity
from shoal.recoding import Recoding
from shoal.search.cells.classes import (
    Partition,
    class_table,
    passing,
    recoding_of_partition,
    released,
    require_class_by_class,
)
from shoal.search.cells.mondrian_kernels import ENTROPY, GAIN, RANGE, Dimensions, ordered_by, proposed
from shoal.search.problem import Problem
from shoal.tables.frequency import ClassOf, Codes, Counts, FrequencyTable
from shoal.tables.values import cut_at, leaf_groups
from shoal.tables.windows import FixedLabels

Proposals = tuple[NDArray[np.int32], Counts, Counts, NDArray[np.int64]]

RUN = 20_000  # parts of rows that are worth a thread
RUNS = 16  # runs of regions that threads share: the regions at the end of one may be larger than others
BY = {"range": RANGE, "entropy": ENTROPY, "gain": GAIN}


def mondrian(problem: Problem, *, dimension: str | None = None, written: bool = True) -> Recoding:
    """Run strict Mondrian: equal tuples share a class. ``dimension`` overrides the problem's setting."""
    return _mondrian(problem, "mondrian", False, dimension, written)


def mondrian_relaxed(problem: Problem, *, dimension: str | None = None, written: bool = True) -> Recoding:
    """Run relaxed Mondrian: records at the median may go either way. ``dimension`` overrides the problem's setting."""
    # Sides that share a value may become classes that look the same; the release contains their union.
    return _mondrian(problem, "mondrian_relaxed", _unions_pass(problem), dimension, written)


def _mondrian(problem: Problem, algorithm: str, parting: bool, dimension: str | None, written: bool) -> Recoding:
    require_class_by_class(problem, algorithm)
    table = problem.table
    together = table.merged(np.zeros(table.n_classes, np.int64), 1, table.codes[:1])
    if not passing(problem, together).all():
        # A table that fails an absorbing model fails it in every part too, whichever records are suppressed.
        proved = problem.monotone or not all(model.passes(together).all() for model in problem.absorbing)
        raise problem.infeasible() if proved else _all_together_fail(problem, algorithm)
    partition, n_splits = _partition(problem, parting, dimension)
    answer = recoding_of_partition(problem, partition, algorithm, n_evaluated=n_splits, written=written)
    if not _unions_pass(problem) and not passing(problem, released(problem, answer)).all():
        raise _alike(algorithm)
    return answer


def _unions_pass(problem: Problem) -> bool:
    return all(model.unions_pass for model in problem.models)


# --- the loop ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Open:
    """Regions that may still be split; region r owns the parts ``starts[r]`` … ``starts[r+1]``, which are records of
    ``row``. All of them pass, so that the search may end at any time."""

    codes: Codes  # (parts, columns)  ranks
    row: NDArray[np.int64]  # (parts)
    counts: Counts  # (parts)
    starts: NDArray[np.int64]  # (regions + 1)
    tried: NDArray[np.bool_]  # (regions, columns)  splits that failed

    @property
    def region_of(self) -> ClassOf:
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


def _partition(problem: Problem, parting: bool, dimension: str | None = None) -> tuple[Partition, int]:
    """Return the final regions and the number of splits tried. All open regions are split at once."""
    table = problem.table
    by = BY[dimension or problem.terms.dimension]
    dimensions, codes = _dimensions(problem)
    n, q = codes.shape
    now = _Open(codes, np.arange(n), table.counts, np.array([0, n]), np.zeros((1, q), np.bool_))
    sizes_decide = all(isinstance(m, KAnonymity) for m in problem.models) and table.entities is None
    closed: list[tuple[NDArray[np.int64], Counts, ClassOf]] = []
    n_splits = n_closed = n_done = 0
    while len(now.row) and not problem.out_of_time:
        side, lent, n_sides, column = _proposals(dimensions, now, problem.least_class_size, by, parting)
        n_splits += int((column >= 0).sum())
        if lent.any():
            now, side = _parted(now, side, lent)
        region_of = now.region_of
        is_closed = n_sides[region_of] == 0
        closed.append(
            (now.row[is_closed], now.counts[is_closed], n_closed + np.cumsum(n_sides == 0)[region_of[is_closed]] - 1)
        )
        n_closed += int((n_sides == 0).sum())
        n_done += int(now.counts[is_closed].sum())
        problem.progress("splitting", n_done / table.n_records)
        now = _split(problem, now, side, n_sides, column, ~is_closed, sizes_decide)
    closed.append((now.row, now.counts, n_closed + now.region_of))
    row, counts, class_of = (np.concatenate(part) for part in zip(*closed, strict=True))
    return Partition(row, counts, class_of), n_splits


def _proposals(dimensions: Dimensions, now: _Open, min_records: int, by: int, parting: bool) -> Proposals:
    """Return the split to try per region, as ``proposed`` does; threads share the regions, which see nothing else."""

    def propose(run: tuple[int, int]) -> Proposals:
        first, last = run
        starts = now.starts[first : last + 1]
        parts = slice(int(starts[0]), int(starts[-1]))
        return proposed(
            dimensions,
            now.codes[parts],
            now.counts[parts],
            starts - starts[0],
            now.tried[first:last],
            min_records,
            by,
            parting,
        )

    n_runs = min(RUNS, len(now.row) // RUN)
    if n_runs < 2:
        return propose((0, len(now.starts) - 1))
    ends = np.unique(np.searchsorted(now.starts, np.linspace(0, len(now.row), n_runs + 1)))
    proposals = done_in_parts(propose, list(pairwise(ends.tolist())))
    side, lent, n_sides, column = zip(*proposals, strict=True)
    return np.concatenate(side), np.concatenate(lent), np.concatenate(n_sides), np.concatenate(column)


def _parted(now: _Open, side: NDArray[np.int32], lent: Counts) -> tuple[_Open, NDArray[np.int32]]:
    """Split parts of which some records go to side 0 into two parts."""
    wholly = lent == now.counts
    side = np.where(wholly, 0, side)
    twice = (lent > 0) & ~wholly
    part = np.repeat(np.arange(len(side)), 1 + twice)
    second = np.flatnonzero(np.diff(part) == 0) + 1
    counts, side = now.counts[part], side[part]
    counts[second] = lent[part[second]]
    counts[second - 1] -= counts[second]
    side[second] = 0
    starts = np.concatenate([[0], np.cumsum(1 + twice)])[now.starts]
    return _Open(now.codes[part], now.row[part], counts, starts, now.tried), side


def _split(
    problem: Problem,
    now: _Open,
    side: NDArray[np.int32],
    n_sides: Counts,
    column: NDArray[np.int64],
    open_: NDArray[np.bool_],
    sizes_decide: bool,
) -> _Open:
    """Return the regions after the passing splits; a region whose split fails stays and tries another column."""
    first = np.cumsum(n_sides) - n_sides
    parts = np.flatnonzero(open_)
    child_of = first[now.region_of[parts]] + side[parts]
    parent = np.repeat(np.arange(len(n_sides)), n_sides)
    if not sizes_decide:
        classes = class_table(problem.table, now.row[parts], now.counts[parts], child_of, len(parent))
        joined = _joined(problem, classes, parent)
        child_of, parent = joined[child_of], parent[np.unique(joined, return_index=True)[1]]
    alone = np.bincount(parent, minlength=len(n_sides))[parent] == 1
    tried = np.where(alone[:, None], now.tried[parent], False)
    tried[np.flatnonzero(alone), column[parent[alone]]] = True
    order, starts = ordered_by(child_of, len(parent))
    parts = parts[order]
    return _Open(np.take(now.codes, parts, axis=0), now.row[parts], now.counts[parts], starts, tried)


def _joined(problem: Problem, classes: FrequencyTable, parent: ClassOf) -> ClassOf:
    """Return the side of each child of a region, in the order of regions; children on one side stay together.

    Failing children are joined; a single failing child is joined with its smallest passing sibling. This repeats until
    nothing fails, or the region is whole again, which passes.
    """
    side = np.arange(classes.n_classes)
    fails = ~passing(problem, classes)
    while True:
        n_sides, n_failing = np.bincount(parent), np.bincount(parent, fails)
        joins = fails & (n_sides > 1)[parent]
        if not joins.any():
            return side
        order = np.lexsort((classes.counts, fails, parent))
        smallest = order[np.searchsorted(parent[order], np.arange(len(n_sides)))]
        joins[smallest[(n_failing == 1) & (n_sides > 1)]] = True
        together = np.arange(len(parent))
        at = np.flatnonzero(joins)
        together[at] = at[np.searchsorted(parent[at], parent[at])]  # the first of the region that joins
        remaining, number_of = np.unique(together, return_inverse=True)
        changed = np.unique(number_of[at])
        classes = classes.merged(number_of, len(remaining), classes.codes[remaining])
        parent, fails = parent[remaining], fails[remaining]
        fails[changed] = ~passing(problem, classes.selected(changed))
        side = number_of[side]


# --- what the kernels need to know of the columns ---------------------------------------------------------------


def _dimensions(problem: Problem) -> tuple[Dimensions, Codes]:
    """Return the columns as the kernels need them, and the table's cells as ranks."""
    table = problem.table
    codes = np.empty((table.n_classes, len(table.columns)), np.int32)
    trees = np.array([cells == "hierarchy" for cells in problem.cells])
    sizes, ends, lower, upper, labels, shares = [], [], [], [], [], []
    for j, hierarchy in enumerate(table.hierarchies):
        rank, groups = _in_order(hierarchy, problem, j)
        codes[:, j] = rank[table.codes[:, j]]
        firsts = np.array([group[0] for group in groups])
        outside = [hierarchy.leaves[leaf] is None or leaf == hierarchy.uncovered for leaf in firsts]
        sizes.append(len(groups))
        ends.append(len(groups) - sum(outside))
        places, begins = _places(hierarchy)[np.concatenate(groups)], _starts(groups)
        if problem.cells[j] == "set":  # a window spans positions
            places = np.repeat(
                np.arange(len(groups)) / max(1, hierarchy.domain - 1), [len(values) for values in groups]
            )
        lower.append(np.minimum.reduceat(places, begins))
        upper.append(np.maximum.reduceat(places, begins))
        labels.append(hierarchy.table[:, firsts].ravel())
        shares.append(
            np.concatenate([values[at[firsts]] for values, at in zip(hierarchy.shares, hierarchy.table, strict=True)])
        )
    return Dimensions(
        trees,
        np.array(sizes),
        np.array(ends),
        np.array(problem.weights),
        _starts(lower),
        np.concatenate(lower),
        np.concatenate(upper),
        _starts(labels),
        np.concatenate(labels).astype(np.int32),
        np.concatenate(shares),
    ), codes


def _starts(parts: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    return np.cumsum([0, *map(len, parts)])[:-1]


def _in_order(hierarchy: Hierarchy, problem: Problem, j: int) -> tuple[NDArray[np.int32], Sequence[NDArray[Any]]]:
    """Return the rank of each leaf, and the leaves of each rank, in an order in which labels are ranges of ranks."""
    match problem.cells[j]:
        case "hierarchy":
            return left_to_right(hierarchy)
        case "set":
            fixed = FixedLabels.for_column(hierarchy, "set", problem.table.leaf_counts[j])
            return fixed.position, fixed.groups
    return leaf_groups(hierarchy)


def left_to_right(hierarchy: Hierarchy) -> tuple[NDArray[np.int32], list[NDArray[np.int64]]]:
    """Order the labels of level 0 so that those under any label of any level are adjacent."""
    order = np.lexsort(hierarchy.table)
    ground = hierarchy.table[0][order]
    starts = np.flatnonzero(np.diff(ground, prepend=-1))
    rank = np.empty(len(order), np.int32)
    rank[order] = np.cumsum(np.diff(ground, prepend=-1) != 0) - 1
    return rank, cut_at(order, starts[1:])


@once_per_hierarchy
def _places(hierarchy: Hierarchy) -> NDArray[np.float64]:
    """Return the position of each leaf in 0 … 1: by its number if losses measure ranges, otherwise by leaf count."""
    if hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric":
        numbers = leaf_numbers(hierarchy)
        present = [n for n in numbers if n is not None]
        lowest = min(present, default=Decimal(0))
        if span := max(present, default=lowest) - lowest:
            return np.array([0.0 if n is None else float((n - lowest) / span) for n in numbers])
    return np.arange(len(hierarchy.leaves)) / max(1, hierarchy.domain - 1)


# --- no answer ---------------------------------------------------------------------------------------------------


def _all_together_fail(problem: Problem, algorithm: str) -> InfeasibleError:
    return InfeasibleError(
        f"algorithm {algorithm!r} found no release: the {problem.table.n_records} records fail as one class, and it "
        "suppresses none",
        "use algorithm 'optimal', which may suppress records, or relax the requirements",
    )


def _alike(algorithm: str) -> InfeasibleError:
    return InfeasibleError(
        f"algorithm {algorithm!r} found no release: classes that pass look alike, and fail together",
        "use algorithm 'optimal'",
    )
