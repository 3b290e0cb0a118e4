"""Cheapest node first: release the passing classes at each lattice node, and continue with the remaining records.

A start of ``local`` where more is required than a size; under 0.2-closeness it saves 3.6 % of the final loss. Nodes are
ordered by average cost. Records released early are cheap; the remaining ones are expensive, which ``local`` improves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.search.cells.classes import Partition, class_table, passing
from shoal.search.local.boxes import Space
from shoal.search.local.kernels import Ints
from shoal.search.problem import Problem
from shoal.tables.frequency import ClassOf, packed

MAX_NODES = 50_000  # of a lattice that is ordered as a whole
WORK = 2_000_000_000  # tuples examined, over all nodes: a larger table is covered by a part of them
MAX_JUDGED = 2_000  # nodes whose classes are judged


def first_cover(problem: Problem, space: Space) -> Partition | None:
    """Return the classes, each of whole tuples; None if the lattice is too large or no record can be released."""
    table, k = problem.table, problem.least_class_size
    shape = [len(column.nodes) for column in space.columns]
    if math.prod(shape) > MAX_NODES:
        return None
    m = len(space.codes)
    counts = sum_by_class(table.counts, space.tuple_of_row, m)
    nodes = _ordered(space, counts, shape)
    max_nodes = min(len(nodes), max(200, WORK // max(1, m)), MAX_JUDGED)
    nodes = np.append(nodes[: len(nodes) - 1 : max(1, len(nodes) // max_nodes)], nodes[-1])
    keys = _NodeKeys(space)
    class_of = np.full(m, -1, np.int64)
    left = np.arange(m)
    n_classes = 0
    for i, node in enumerate(nodes):
        if not len(left) or problem.out_of_time:
            break
        if i % 256 == 0:
            problem.progress("covering", i / len(nodes))
        at, firsts = group(keys.at(np.unravel_index(node, shape), left))
        sizes = sum_by_class(counts[left], at, len(firsts))
        good = sizes >= k
        if not good.any():
            continue
        good[good] = _judged(problem, space, left, at, good)
        if not good.all() and good.any() and sizes[~good].sum() < k:
            good[sizes.argmax()] = False  # so that the remaining records can be released at all
        released = good[at]
        class_of[left[released]] = n_classes + (np.cumsum(good) - 1)[at[released]]
        n_classes += int(good.sum())
        left = left[~released]
    return _with_the_rest(problem, space, class_of, n_classes)


def _ordered(space: Space, counts: NDArray[np.int64], shape: list[int]) -> NDArray[np.int64]:
    """Return all nodes by Π(1 + mean price) over the columns: two columns half lost are worse than one fully lost."""
    total = np.zeros(shape)
    shares = counts / max(1, counts.sum())
    for j, (column, weight) in enumerate(zip(space.columns, space.weights(None), strict=True)):
        means = np.array([shares @ of_level[space.codes[:, j]] for of_level in column.node_prices])
        room = max(float(column.node_prices.max(initial=0.0) - means[0]), 1e-12)
        steps = np.log1p(np.maximum(means - means[0], 0) / room) * weight
        total = total + steps.reshape([-1 if i == j else 1 for i in range(len(shape))])
    return np.argsort(total.ravel(), kind="stable")


def _judged(
    problem: Problem, space: Space, left: NDArray[np.int64], at: ClassOf, large: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return which of the sufficiently large classes pass."""
    class_of_tuple = np.full(len(space.codes), -1, np.int64)
    class_of_tuple[left] = np.where(large, np.cumsum(large) - 1, -1)[at]
    class_of = class_of_tuple[space.tuple_of_row]
    rows = np.flatnonzero(class_of >= 0)
    return passing(
        problem, class_table(problem.table, rows, problem.table.counts[rows], class_of[rows], int(large.sum()))
    )


def _with_the_rest(problem: Problem, space: Space, class_of: ClassOf, n_classes: int) -> Partition | None:
    """Make the remaining records one class; if it fails, merge classes into it, the latest first, until it passes."""
    table = problem.table
    if (class_of < 0).any():
        class_of = np.where(class_of < 0, n_classes, class_of)
        n_classes += 1
        of_rows = class_of[space.tuple_of_row]
        classes = class_table(table, np.arange(table.n_classes), table.counts, of_rows, n_classes)
        n_joined = 1
        while not passing(problem, classes.selected(np.array([len(classes.counts) - 1]))).all():
            if n_joined == n_classes:
                return None
            n_joined = min(n_classes, 2 * n_joined)
            numbers = np.minimum(np.arange(n_classes), n_classes - n_joined)
            joined = class_table(
                table, np.arange(table.n_classes), table.counts, numbers[of_rows], n_classes - n_joined + 1
            )
            classes = joined
        class_of = np.minimum(class_of, n_classes - n_joined)
    return Partition.of_rows(table, class_of[space.tuple_of_row])


class _NodeKeys:
    """The tuples at any node of the lattice, one word each."""

    def __init__(self, space: Space) -> None:
        self._labels = [column.nodes[:, space.codes[:, j]] for j, column in enumerate(space.columns)]
        bits = [int(labels.max(initial=0)).bit_length() for labels in self._labels]
        self._shifted: list[NDArray[np.uint64]] | None = None
        if sum(bits) <= 64:
            starts = (np.cumsum(bits) - bits).astype(np.uint64)
            self._shifted = [
                labels.astype(np.uint64) << start for labels, start in zip(self._labels, starts, strict=True)
            ]

    def at(self, node: Sequence[int], tuples: Ints | None = None) -> NDArray[np.uint64]:
        """Return the words of all tuples, or of some; equal exactly if all labels are."""
        if self._shifted is None:
            labels = [of[level] for of, level in zip(self._labels, node, strict=True)]
            return packed(np.column_stack([of if tuples is None else of[tuples] for of in labels]))
        keys = np.zeros(self._labels[0].shape[1] if tuples is None else len(tuples), np.uint64)
        for shifted, level in zip(self._shifted, node, strict=True):
            keys |= shifted[level] if tuples is None else shifted[level][tuples]
        return keys
