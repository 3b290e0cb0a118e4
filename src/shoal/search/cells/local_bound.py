"""A lower bound for any recoding of cells: each record with the best k records of the whole table."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shoal.search.cells.classes import Partition
from shoal.search.cells.local_boxes import NodeKeys, Space
from shoal.search.cells.local_kernels import BoxCodes, Ints
from shoal.search.losses.definitions import ArxLoss
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.table.frequency import Floats
from shoal.table.jit import compiled
from shoal.table.kernels import group, sum_by_class

MOST_NODES = 50_000


def least_loss(problem: Problem, space: Space, partition: Partition) -> tuple[float | None, str]:
    """Return a bound on the objective in its published unit, and in words if it bounds another figure.

    In any class, at least k records of the table lie under a record's cells, so it costs no less than at the best
    lattice node at which that many share its labels. Ranges and sets may be cheaper than any label, so the bound
    assumes that their columns cost nothing.
    """
    shape = [len(column.nodes) for column in space.columns]
    free_of_charge = space.loss.mean_of_kept and problem.limit > 0  # to suppress a record
    if not isinstance(problem.objective, CellLoss) or free_of_charge or math.prod(shape) > MOST_NODES:
        return None, ""
    labels = [cells == "hierarchy" for cells in problem.cells]
    slopes = space.loss.slopes
    counts = sum_by_class(problem.table.counts, space.tuple_of_row, len(space.codes))
    costs = _least_costs(problem, space, counts, slopes, labels, _now(problem, space, partition, slopes, labels))
    if costs is None:
        return None, ""
    total = float(counts @ costs)
    bound = space.loss.at_least(total)
    if not isinstance(space.loss, ArxLoss):
        return bound, ""
    mean = math.floor(space.loss.mean_at_least(total) * 1e4) / 1e4  # down: what is claimed must hold
    return bound, f"no recoding along these hierarchies has a mean cell loss below {mean:.4f}"


def _now(problem: Problem, space: Space, partition: Partition, slopes: Floats, labels: list[bool]) -> Floats:
    """Return the cost of each tuple at the node of its cheapest class, shared by k or more: an upper estimate."""
    now = np.full(len(space.codes), np.inf)
    kept = np.flatnonzero(partition.class_of >= 0)
    order = kept[np.argsort(partition.class_of[kept], kind="stable")]
    tuples = space.tuple_of_row[partition.row[order]]
    class_of = partition.class_of[order]
    starts = np.flatnonzero(np.diff(class_of, prepend=-1))
    costs = np.zeros(len(order))
    for j, column in enumerate(space.columns):
        ranks = space.codes[tuples, j]
        price = np.full(len(ranks), column.node_prices[0].min())
        if labels[j]:
            price = column.node_prices[-1][ranks]
            for of_level, prices in zip(column.nodes[::-1], column.node_prices[::-1], strict=True):
                at = of_level[ranks]
                alike = np.minimum.reduceat(at, starts) == np.maximum.reduceat(at, starts)
                price = np.where(alike[class_of], prices[ranks], price)
        costs += slopes[j] * price
    np.minimum.at(now, tuples, costs)
    return now


def _least_costs(
    problem: Problem, space: Space, counts: NDArray[np.int64], slopes: Floats, labels: list[bool], costs: Floats
) -> Floats | None:
    """Return the smallest cost of each tuple over all nodes; None if there is no time for it."""
    columns = space.columns
    levels = [
        np.arange(len(c.nodes)) if label else np.array([len(c.nodes) - 1])
        for c, label in zip(columns, labels, strict=True)
    ]
    prices = [  # a leaf that is written like the top costs as much as a label, and nothing as a set
        slope * (column.node_prices[of] if label else np.full_like(column.node_prices[:1], column.node_prices[0].min()))
        for slope, column, of, label in zip(slopes, columns, levels, labels, strict=True)
    ]
    floors = np.zeros(1)
    for price, j in zip(prices, range(len(columns)), strict=True):
        floors = (floors[:, None] + price[:, np.unique(space.codes[:, j])].min(axis=1)).ravel()
    order = np.argsort(floors, kind="stable")
    shape = [len(of) for of in levels]
    nodes = np.column_stack(np.unravel_index(order, shape))
    offsets = np.cumsum([0, *(price.size for price in prices)])[:-1]
    flat = np.concatenate([price.ravel() for price in prices])
    sizes = np.array([price.shape[1] for price in prices])
    costs = costs.copy()
    k = problem.least_class_size
    keys = NodeKeys(space)
    for i, (node, floor) in enumerate(zip(nodes, floors[order], strict=True)):
        if i % 512 == 0:
            problem.progress("bounding", i / len(nodes))
            if problem.out_of_time:
                return None
            active = np.flatnonzero(costs > floor)
            if not len(active):
                break
        found, cheaper = _cheaper(space.codes, flat, offsets + node * sizes, costs, active)
        if len(found):
            at, firsts = group(keys.at([int(of[level]) for of, level in zip(levels, node, strict=True)]))
            enough = sum_by_class(counts, at, len(firsts))[at[found]] >= k
            costs[found[enough]] = cheaper[enough]
    return costs


@compiled
def _cheaper(codes: BoxCodes, prices: Floats, at: Ints, costs: Floats, active: Ints) -> tuple[Ints, Floats]:
    """Return the tuples that are cheaper at a node than before, with costs; prices of column j begin at ``at[j]``."""
    found = np.empty(active.shape[0], np.int64)
    cheaper = np.empty(active.shape[0])
    n = 0
    for i in range(active.shape[0]):
        u = active[i]
        total = 0.0
        for j in range(codes.shape[1]):
            total += prices[at[j] + codes[u, j]]
            if total >= costs[u]:
                break
        if total < costs[u]:
            found[n], cheaper[n] = u, total
            n += 1
    return found[:n], cheaper[:n]
