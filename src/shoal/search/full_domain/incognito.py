"""Incognito: sets of columns from small to large; a node that fails for a subset of columns is pruned for all of them.

K. LeFevre, D. J. DeWitt, R. Ramakrishnan, "Incognito: efficient full-domain k-anonymity", SIGMOD 2005.
Needs  monotone verdicts: absorbing models, or convex ones if nothing may be suppressed.
Finds  every node that satisfies (``satisfying``); the solution has the smallest objective among them, proved.
Costs  one evaluation per candidate without a satisfying node below it, over all sets of columns; to choose the
       solution, one per satisfying node that could cost less than the best. Nodes of every set are held in memory:
       Π (levels + 1) bytes.

A node of some columns is evaluated as a node of all columns, with the other columns at their highest levels. If those
levels have one label, the grouping is the same. If the policy excludes the top, the subset property still holds because
it follows from monotonicity: the node with the other columns raised lies above the node itself.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np

from shoal.errors import OutOfTimeError
from shoal.recoding import Recoding
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.monotone import Nodes, VerdictCache, from_node_up, nodes_of, require_room
from shoal.search.problem import Problem

ColumnNumbers = tuple[int, ...]


def incognito(problem: Problem) -> Recoding:
    """Return the best of all satisfying nodes."""
    verdicts = VerdictCache(problem, "incognito")
    try:
        verdicts.look_for_better(_within_limit(verdicts))
    except OutOfTimeError:
        return verdicts.so_far()
    return verdicts.answer(verdicts.best.evaluation, proved=True)


def satisfying(problem: Problem) -> list[Node]:
    """List every node that satisfies the policy, in the order of levels."""
    verdicts = VerdictCache(problem, "incognito")
    return [node for node in nodes_of(_within_limit(verdicts)) if verdicts.feasible(node)]


def _within_limit(verdicts: VerdictCache) -> Nodes:
    """Return the nodes at which no more records fail than may be suppressed."""
    lattice = verdicts.problem.lattice
    columns = tuple(j for j, height in enumerate(lattice.heights) if height)  # the other columns have a single level
    require_room(verdicts, math.prod(lattice.heights[j] + 2 for j in columns))
    satisfying: dict[ColumnNumbers, Nodes] = {(): np.array(verdicts.satisfies(lattice.top))}
    for size in range(1, len(columns) + 1):
        satisfying = {chosen: _searched(verdicts, chosen, satisfying) for chosen in combinations(columns, size)}
        verdicts.problem.progress(f"sets of {size} columns", size / len(columns))
    return satisfying[columns].reshape(lattice.shape)


def _searched(verdicts: VerdictCache, columns: ColumnNumbers, smaller: dict[ColumnNumbers, Nodes]) -> Nodes:
    """Return the satisfying nodes of a set of columns, from those of every set with one column less."""
    shape = [verdicts.problem.lattice.heights[j] + 1 for j in columns]
    candidates, satisfying = np.ones(shape, np.bool_), np.zeros(shape, np.bool_)
    for i in range(len(columns)):
        part = smaller[columns[:i] + columns[i + 1 :]]
        candidates &= np.expand_dims(part, i)  # join and prune in one step: each part of a candidate satisfies
        np.moveaxis(satisfying, i, 0)[-1] = part  # a column at its highest level is equivalent to leaving it out
    unknown = np.argwhere(candidates & ~satisfying)
    in_order: list[Node] = list(map(tuple, unknown[np.argsort(unknown.sum(axis=1), kind="stable")].tolist()))
    verdicts.expect(_raised(verdicts.problem, columns, levels) for levels in in_order if not satisfying[levels])
    for levels in in_order:
        if not satisfying[levels] and verdicts.satisfies(_raised(verdicts.problem, columns, levels)):
            satisfying[from_node_up(levels)] = True
    return satisfying


def _raised(problem: Problem, columns: ColumnNumbers, levels: Node) -> Node:
    """Return the node of all columns, with those not in ``columns`` at their highest level."""
    node = list(problem.lattice.top)
    for j, level in zip(columns, levels, strict=True):
        node[j] = level
    return tuple(node)
