"""Columns as ``local`` uses them: the ranks of their values, and the price of a range of ranks or a set of leaves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.hierarchies.intervals import leaf_numbers
from shoal.search.cells.mondrian import left_to_right
from shoal.search.local.kernels import LARGE, BoxCodes, Boxes, Ints, meet_along, meet_friends
from shoal.search.losses.cells import cell_prices, leaf_counts
from shoal.search.losses.definitions import IyengarLoss
from shoal.search.losses.lattice import CellLoss
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats, packed
from shoal.tables.values import TIGHT, Vocabulary, leaf_groups
from shoal.tables.windows import FIXED, FixedLabels

MAX_ALL_PAIRS = 1_024  # tuples that all meet each other
SMALL = 512  # values of a column up to which the prices of all pairs are kept


def stand_in(problem: Problem) -> CellLoss:
    """Return the loss of cells to minimize: the objective, or ``loss`` if that depends only on the grouping."""
    loss = problem.objective
    return loss if isinstance(loss, CellLoss) else IyengarLoss(problem)


@dataclass(frozen=True, eq=False)
class ColumnPrices:
    """The prices of a column, unscaled; ranks put every label's leaves in a row where cells are labels.

    Where cells are sets, ``set_prices[n]`` is what a set of n leaves costs, and ``bits`` has one for every leaf of a
    rank. A set with a null in it is the top: nulls have more bits than all other leaves together.
    """

    ranks: NDArray[np.int32]  # of each leaf
    nodes: NDArray[np.int32]  # (levels, ranks)
    node_prices: Floats  # (levels, ranks)
    pairs: Floats | None  # (ranks, ranks), where they are few
    bits: BoxCodes | None = None  # (ranks, words)
    set_prices: Floats | None = None

    @classmethod
    def of(cls, problem: Problem, j: int, loss: type[CellLoss]) -> ColumnPrices:
        """Compute the prices in a loss of cells."""
        hierarchy = problem.table.hierarchies[j]
        if problem.cells[j] in FIXED:
            return cls.of_windows(problem, j, loss)
        vocabulary = Vocabulary(hierarchy)
        price = cell_prices(loss, problem.table, j, vocabulary.values)
        few = hierarchy.cardinality(0) <= SMALL
        spans = loss.measure == "share" and hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric"
        # Numbers that cost as much as they span cost that as a set too.
        as_range = problem.cells[j] in TIGHT[: 1 + spans]
        ranks, groups = _in_runs(hierarchy, SMALL) if as_range else left_to_right(hierarchy)
        firsts = [int(leaves[0]) for leaves in groups]
        nodes = vocabulary.nodes[:, firsts]
        if few and problem.cells[j] == "tight-set" and not spans and loss.measure in ("share", "size"):
            return cls(ranks, nodes, price[nodes], None, *_sets(hierarchy, loss, price[nodes], groups))
        pairs = None
        if len(groups) <= SMALL:
            pairs = np.empty((len(groups), len(groups)))
            for of_level in nodes[::-1]:
                alike = of_level[:, None] == of_level
                pairs[alike] = np.broadcast_to(price[of_level][:, None], pairs.shape)[alike]
            if as_range:
                pairs = _ranges(problem, j, loss, pairs, groups)
        return cls(ranks, nodes, price[nodes], pairs)

    @classmethod
    def of_windows(cls, problem: Problem, j: int, loss: type[CellLoss]) -> ColumnPrices:
        """Return the prices of labels that are fixed before classes are formed, each as it is written.

        Of more than ``SMALL`` positions, adjacent ones are joined, for prices alone. In a column with two values, a
        class with both has a companion, and costs as much again.
        """
        hierarchy = problem.table.hierarchies[j]
        fixed = FixedLabels.for_column(hierarchy, problem.cells[j], problem.table.leaf_counts[j])
        run_of = _run_of(fixed.n, fixed.n - fixed.n_shown, SMALL)
        first, last = np.searchsorted(run_of, np.arange(run_of[-1] + 1)), np.flatnonzero(np.diff(run_of, append=-1))
        low, high = (of.ravel() for of in np.broadcast_arrays(first[:, None], last[None, :]))
        upper = low <= high
        windows, window_of = np.unique(
            np.column_stack(fixed.around(low[upper], high[upper])), axis=0, return_inverse=True
        )
        vocabulary = Vocabulary(hierarchy, problem.cells[j], written=False)
        ids = np.array([fixed.value(vocabulary, *window) for window in windows.tolist()])
        price = cell_prices(loss, problem.table, j, vocabulary.values)
        pairs = np.zeros((len(first), len(first)))
        pairs.ravel()[upper] = price[ids][window_of.ravel()]
        if fixed.two_valued:
            pairs[0, 1] *= 2
        nodes = vocabulary.nodes[:, [int(fixed.groups[position][0]) for position in first.tolist()]]
        ranks = np.append(run_of, 0)[fixed.position]  # leaves that do not occur are in no tuple
        return cls(ranks.astype(np.int32), nodes, price[nodes], pairs)


def _run_of(n: int, n_alone: int, max_runs: int) -> NDArray[np.int64]:
    """Divide n positions into at most ``max_runs`` runs, the last ``n_alone`` each on its own."""
    n_joined = n - n_alone
    n_runs = min(n_joined, max(1, max_runs - n_alone))
    return np.concatenate([np.arange(n_joined) * n_runs // max(1, n_joined), n_runs + np.arange(n_alone)])


def _in_runs(hierarchy: Hierarchy, max_runs: int) -> tuple[NDArray[np.int32], Sequence[NDArray[np.int32]]]:
    """Return the groups of ``leaf_groups``; of more than ``max_runs``, some adjacent ones are joined, for prices alone.

    Groups in no range stay alone: nulls, and values without an entry.
    """
    ranks, groups = leaf_groups(hierarchy)
    hidden = [hierarchy.leaves[leaves[0]] is None or leaves[0] == hierarchy.uncovered for leaves in groups]
    if len(groups) <= max_runs or all(hidden):
        return ranks, groups
    n, n_hidden = len(groups) - sum(hidden), sum(hidden)  # the latter come last
    n_runs = max(1, max_runs - n_hidden)
    run_of = np.concatenate([np.arange(n) * n_runs // n, n_runs + np.arange(n_hidden)])
    starts = np.searchsorted(run_of, np.arange(n_runs + n_hidden))
    ends = np.append(starts[1:], len(groups))
    joined = [np.concatenate(groups[begin:end]) for begin, end in zip(starts.tolist(), ends.tolist(), strict=True)]
    return run_of.astype(np.int32)[ranks], joined


def _ranges(problem: Problem, j: int, loss: type[CellLoss], pairs: Floats, groups: Sequence[NDArray[Any]]) -> Floats:
    """Return approximate prices of ranges; the exact cost is computed only when they are written."""
    hierarchy = problem.table.hierarchies[j]
    n_leaves = [len(leaves) for leaves in groups]
    match loss.measure:
        case "share":
            if hierarchy.share_of == "range" and hierarchy.leaf_order == "numeric":
                measured = _spans(hierarchy, groups)
            else:
                measured = _share(_between(n_leaves), hierarchy)
            costs = loss.price(measured, hierarchy)
        case "size":
            costs = loss.price(_between(n_leaves), hierarchy)
        case "records":
            records = leaf_counts(problem.table, j)
            costs = loss.price(_between([int(records[leaves].sum()) for leaves in groups]), hierarchy)
        case _:  # by levels: that of the lowest label over all between
            costs = np.maximum.accumulate(np.triu(pairs), axis=1)
    hidden = np.array([hierarchy.leaves[leaves[0]] is None or leaves[0] == hierarchy.uncovered for leaves in groups])
    out = np.where(hidden[None, :], pairs.max(initial=0.0), np.minimum(costs, pairs.max(initial=0.0)))
    np.fill_diagonal(out, pairs.diagonal())
    return np.asarray(out)


def _between(sizes: list[int]) -> Floats:
    """Return [first, last]: the sum from the first of a sequence to the last."""
    ends = np.cumsum(sizes)
    return np.asarray(ends[None, :] - (ends - sizes)[:, None], np.float64)


def _share(sizes: Floats, hierarchy: Hierarchy) -> Floats:
    """Return the loss of a cell, (M−1)/(D−1)."""
    return np.asarray(np.maximum(sizes - 1, 0) / max(1, hierarchy.domain - 1))


def _spans(hierarchy: Hierarchy, groups: Sequence[NDArray[Any]]) -> Floats:
    """Return [first, last]: the share of the range of all numbers; of the leaves if there is no range."""
    numbers = leaf_numbers(hierarchy)
    present = [n for n in numbers if n is not None]
    if not present or max(present) == min(present):
        return _share(_between([len(leaves) for leaves in groups]), hierarchy)
    lowest, span = min(present), max(present) - min(present)
    places = np.array([0.0 if n is None else float((n - lowest) / span) for n in numbers])
    lower = np.array([places[leaves].min() for leaves in groups])
    upper = np.array([places[leaves].max() for leaves in groups])
    return np.asarray(upper[None, :] - lower[:, None])


def _sets(
    hierarchy: Hierarchy, loss: type[CellLoss], prices: Floats, groups: Sequence[NDArray[Any]]
) -> tuple[BoxCodes, Floats]:
    """Return the bits of each rank, and the approximate price of a set by its number of bits."""
    n_bits = 32 * (1 + len(hierarchy.leaves) // 32)  # more than there are leaves
    bits = np.zeros((len(groups), 2 * n_bits), np.bool_)
    n = np.arange(2 * n_bits + 1, dtype=np.float64)
    top = prices.max(initial=0.0)
    costs = loss.price(_share(n, hierarchy) if loss.measure == "share" else n, hierarchy)
    costs = np.where(n < n_bits, np.minimum(costs, top), top)
    for rank, leaves in enumerate(groups):
        bits[rank, leaves] = True
        if hierarchy.leaves[leaves[0]] is None:
            bits[rank, n_bits:-1] = True
            costs[n_bits] = prices[0, rank]  # alone it is what it is
        elif leaves[0] == hierarchy.uncovered:
            bits[rank, n_bits:] = True
    if not bits[:, n_bits:].any():
        bits = bits[:, :n_bits]
    return np.packbits(bits, axis=1, bitorder="little").view("<u4").astype(np.uint32), costs


class Space:
    """The distinct tuples of a table, and the prices of boxes around them."""

    def __init__(self, problem: Problem) -> None:
        table = problem.table
        self.problem = problem
        self.loss = stand_in(problem)
        self.columns = [ColumnPrices.of(problem, j, type(self.loss)) for j in range(len(table.columns))]
        self._ranges = [column for column in self.columns if column.bits is None]
        ranks = [column.ranks[table.codes[:, j]] for j, column in enumerate(self.columns)]
        codes = np.column_stack(ranks).astype(np.uint32)
        self.tuple_of_row, firsts = group(packed(codes.astype(np.int32)))
        self.codes: BoxCodes = np.ascontiguousarray(codes[firsts])

    def weights(self, sums: Floats | None) -> Floats:
        """Return the current weight of each column's price; without ``sums``, at the point where nothing is lost."""
        return self.loss.slopes if sums is None else self.loss.tangent(sums)

    def boxes(self, weights: Floats) -> Boxes:
        """Return boxes priced with these column weights; the cheapest cell of a column costs nothing."""
        pairs, nodes, node_prices, set_prices = [np.zeros(1)], [np.zeros(1, np.int32)], [np.zeros(1)], [np.zeros(1)]
        rows, highs, words, levels, sets = [], [], [], [], []
        n_pairs, n_nodes, n_set_prices = 1, 1, 1
        n_words = 2 * len(self._ranges)
        for column, weight, ranks in zip(self.columns, weights, self.codes.T, strict=True):
            cheapest = column.node_prices[0].min(initial=np.inf)
            if column.bits is not None and column.set_prices is not None:
                words.append(column.bits[ranks])
                sets.append((n_words, n_words + column.bits.shape[1], n_set_prices))
                set_prices.append((column.set_prices - cheapest) * weight)
                n_words += column.bits.shape[1]
                n_set_prices += len(column.set_prices)
                continue
            highs.append(ranks)
            if column.pairs is None:
                rows.append(LARGE + ranks)
            else:
                rows.append((n_pairs + ranks * len(column.pairs)).astype(np.uint32))
                pairs.append((column.pairs.ravel() - cheapest) * weight)
                n_pairs += column.pairs.size
            levels.append((n_nodes, column.nodes.shape[1]))
            nodes.append(column.nodes.ravel())
            node_prices.append((column.node_prices.ravel() - cheapest) * weight)
            n_nodes += column.nodes.size
        return Boxes(
            np.column_stack([*rows, *highs, *words]),
            np.concatenate(pairs).astype(np.float32),
            np.array(levels, np.int64).reshape(-1, 2),
            np.concatenate(nodes).astype(np.int32),
            np.concatenate(node_prices).astype(np.float32),
            np.array(sets, np.int64).reshape(-1, 3),
            np.concatenate(set_prices).astype(np.float32),
        )

    def sums(self, box: BoxCodes, n_records: NDArray[np.int64]) -> Floats:
        """Return the cost of each column's cells over the records of all classes; class 0 is the suppressed records."""
        sums = []
        n_pairs, j, q = 1, 0, len(self._ranges)
        n_words = 2 * q
        for column in self.columns:
            if column.bits is not None and column.set_prices is not None:
                n_bits = np.bitwise_count(box[1:, n_words : n_words + column.bits.shape[1]]).sum(axis=1)
                n_words += column.bits.shape[1]
                sums.append(float((n_records[1:] * column.set_prices[np.where(n_records[1:] > 0, n_bits, 0)]).sum()))
                continue
            a, b = box[1:, j], box[1:, q + j]
            j += 1
            if column.pairs is not None:
                price = column.pairs.ravel()[np.where(n_records[1:] > 0, a + b - n_pairs, 0)]
                n_pairs += column.pairs.size
            else:
                a, b = np.where(n_records[1:] > 0, (a - LARGE, b), 0)
                level = (column.nodes[:, a] != column.nodes[:, b]).sum(axis=0)
                price = column.node_prices[level, a]
            sums.append(float((n_records[1:] * price).sum()))  # not by BLAS, which adds in its threads' order
        return np.asarray(np.array(sums) + n_records[0] * self._cells_of_suppressed)

    def published_loss(self, sums: Floats) -> float:
        """Return the minimized loss as the published figure, from the sums over all cells."""
        return self.loss.published(sums, 0)

    def suppressed(self, weights: Floats) -> float:
        """Return the cost of a suppressed record."""
        cheapest = np.array([column.node_prices[0].min(initial=np.inf) for column in self.columns])
        return float(weights @ np.maximum(self._cells_of_suppressed - cheapest, 0))

    @property
    def _cells_of_suppressed(self) -> Floats:
        if self.loss.mean_of_kept:  # where they cost nothing, and a mean over the others is shown: nothing to gain
            return np.array([column.node_prices.max(initial=0.0) for column in self.columns])
        return np.full(len(self.columns), self.loss.suppressed)

    def orders(self, rng: np.random.Generator, n: int) -> Iterator[Ints]:
        """Yield orders of the tuples that put similar tuples together, from coarse to fine labels, columns mixed."""
        for _ in range(n):
            # A column's labels come from the top down; whose turn it is, chance decides.
            turns = rng.permutation(np.repeat(np.arange(len(self.columns)), [len(c.nodes) - 1 for c in self.columns]))
            left = [len(c.nodes) - 1 for c in self.columns]
            keys = []
            for j in turns:
                left[j] -= 1
                keys.append(self._at(j, left[j]))
            keys += [self._at(j, 0) for j in range(len(self.columns))]
            yield np.argsort(packed(np.column_stack(keys)), kind="stable")

    def _at(self, j: int, level: int) -> NDArray[np.int32]:
        return np.asarray(self.columns[j].nodes[level][self.codes[:, j]])

    def neighbours(
        self, boxes: Boxes, rng: np.random.Generator, n: int, limited: Problem | None = None
    ) -> tuple[NDArray[np.int32], Floats]:
        """Return approximately the ``n`` nearest tuples of each, with distances: near in some order, and their own.

        They are those found in the time of ``limited``, by default that of the problem.
        """
        limited = limited or self.problem
        m = len(self.codes)
        near, away = np.full((m, n), -1, np.int32), np.full((m, n), np.inf)
        if m <= MAX_ALL_PAIRS:
            meet_along(boxes, np.arange(m), m, near, away)
            return near, away
        for order in self.orders(rng, n // 3):
            if limited.out_of_time:
                return near, away
            meet_along(boxes, order, n // 2, near, away)
        self._meet(boxes, near.copy(), near, away, limited)
        return near, away

    def _meet(
        self, boxes: Boxes, candidates: NDArray[np.int32], near: NDArray[np.int32], away: Floats,
        limited: Problem,
    ) -> None:  # fmt: skip
        """Let all tuples meet the known neighbours of their neighbours, as long as there is time."""
        m = len(self.codes)
        pieces = np.linspace(0, m, 2 + m // 5_000, dtype=np.int64).tolist()  # short calls: each is met by an interrupt

        def meet(piece: tuple[int, int]) -> None:
            if not limited.out_of_time:
                meet_friends(boxes, candidates, near, away, *piece)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(meet, pairwise(pieces)))
