"""Chromosome: a cut of every column as one bit string, for randomized searches.

A column with a tree has a bit for every label with several occurring values under it: whether the label is split. A
value becomes the first unsplit label on its way down, so every string is a valid cut, and bits below an unsplit label
have no effect. A column of numbers or dates whose cells are ranges has a bit for every value but the first: whether an
interval starts there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError
from shoal.recoding import Cuts, FullDomain
from shoal.search.cuts.cuts import Judged, Pieces, RowsToGroup, judged_table, recoding_of_cuts
from shoal.search.cuts.ordered import OrderedDomain, ordered_domain
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.optimal import optimal
from shoal.search.losses.cells import cell_prices, leaf_counts
from shoal.search.losses.lattice import CellLoss, Loss, LossClasses
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats, FrequencyTable
from shoal.tables.values import Leaves, Vocabulary

Bits = NDArray[np.bool_]

FEW_NODES = 50_000  # nodes of a lattice whose best node is found quickly


class Gene(Protocol):
    """The bits of one column."""

    n_bits: int
    n_pieces: int  # numbers of pieces are below this

    def pieces(self, bits: Bits) -> tuple[Pieces, Floats]:
        """Return the piece of each leaf, and the price of a cell in each piece."""

    def active(self, bits: Bits) -> NDArray[np.int64]:
        """Return the bits that have an effect."""

    def at_level(self, level: int) -> Bits:
        """Return the bits of a whole level of the hierarchy."""

    def of_pieces(self, pieces: Pieces) -> Bits:
        """Return the bits of a cut, given the piece of each leaf."""

    def named(self, bits: Bits) -> Pieces:
        """Return the pieces as they are released."""


class _PiecePrices:
    """The price of a cell released as a set of leaves of a column."""

    def __init__(self, table: FrequencyTable, j: int, loss: type[Loss], cells: str = "hierarchy") -> None:
        self._table, self._j, self._loss = table, j, loss
        self._vocabulary = Vocabulary(table.hierarchies[j], cells)

    def prices_of(self, leaves: Sequence[Leaves]) -> Floats:
        """Return the prices of several values."""
        values = self._vocabulary.selected([self._vocabulary.number_of(leaf_set) for leaf_set in leaves])
        return cell_prices(self._loss, self._table, self._j, values)


class TreeGene:
    """Which labels of a hierarchy are split; labels with one occurring label below always are: it loses less."""

    def __init__(self, table: FrequencyTable, j: int, loss: type[Loss]) -> None:
        hierarchy = table.hierarchies[j]
        self.codes = hierarchy.table
        self.height = hierarchy.height
        self._occurs = leaf_counts(table, j) > 0
        occurring = self.codes[:, self._occurs]
        self.bases = np.concatenate(
            [[0], np.cumsum([hierarchy.cardinality(level) for level in range(self.height + 1)])]
        )
        self.n_pieces = int(self.bases[-1])
        self.bit_of = np.full(self.bases[-1], -1)  # its bit per label; without one the last, always set
        self.levels: list[int] = []  # of each bit
        for level in range(self.height, 0, -1):
            pairs = np.unique(occurring[level - 1 : level + 1], axis=1)
            several = np.flatnonzero(np.bincount(pairs[1], minlength=hierarchy.cardinality(level)) > 1)
            self.bit_of[self.bases[level] + several] = len(self.levels) + np.arange(len(several))
            self.levels += [level] * len(several)
        self.n_bits = len(self.levels)
        labels = [
            np.flatnonzero(codes_of_level == code).astype(np.int32)
            for codes_of_level in self.codes
            for code in range(int(codes_of_level.max()) + 1)
        ]
        self._prices = _PiecePrices(table, j, loss).prices_of(labels)
        self._labels = self.bases[:-1, None] + self.codes  # [level, leaf]
        self._bit_of_leaf = self.bit_of[self._labels[:0:-1]]  # [step from the top down, leaf]
        self._above = self._bits_above()

    def _bits_above(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return the bits of each level from the top down, and the bit of the lowest label above that has one."""
        bits_of_levels = []
        above = np.full(self.codes.shape[1], -1)  # of each leaf
        for bit_of in self._bit_of_leaf:
            bits, leaves = np.unique(bit_of, return_index=True)
            bits_of_levels.append((bits[bits >= 0], above[leaves[bits >= 0]]))
            above = np.where(bit_of >= 0, bit_of, above)
        return bits_of_levels

    def _split(self, bits: Bits) -> Bits:
        """Return [step from the top down, leaf]: whether all labels so far are split."""
        split = np.append(bits, True)[self._bit_of_leaf]
        for higher, lower in pairwise(split):
            lower &= higher
        return split

    def pieces(self, bits: Bits) -> tuple[Pieces, Floats]:
        """Return the first unsplit label of each leaf, with the prices."""
        level = self.height - self._split(bits).sum(axis=0)
        return self._labels[level, np.arange(self.codes.shape[1])].astype(np.int32), self._prices

    def active(self, bits: Bits) -> NDArray[np.int64]:
        """Return the bits of labels whose ancestors are all split."""
        passed = np.append(np.zeros(len(bits), np.bool_), True)  # the label is reached, and split
        reached = np.zeros(len(bits), np.bool_)
        for level_bits, above in self._above:
            reached[level_bits] = passed[above]
            passed[level_bits] = reached[level_bits] & bits[level_bits]
        return np.flatnonzero(reached)

    def at_level(self, level: int) -> Bits:
        """Return the bits that split every label above the level."""
        return np.array(self.levels, np.int64) > level

    def of_pieces(self, pieces: Pieces) -> Bits:
        """Return the bits that split every label whose occurring leaves are in several pieces."""
        bits = np.zeros(self.n_bits, np.bool_)
        for level in range(1, self.height + 1):
            pairs = np.unique(np.stack([self.codes[level], pieces])[:, self._occurs], axis=1)
            labels, n_pieces = np.unique(pairs[0], return_counts=True)
            split = self.bit_of[self.bases[level] + labels[n_pieces > 1]]
            bits[split[split >= 0]] = True
        return bits

    def named(self, bits: Bits) -> Pieces:
        """Return the pieces, which are labels already."""
        return self.pieces(bits)[0]


class IntervalGene:
    """Which values start an interval; null and values without an entry are alone, or the column is one interval."""

    def __init__(self, table: FrequencyTable, j: int, loss: type[Loss], cells: str) -> None:
        self.domain: OrderedDomain = ordered_domain(table, j)
        self.n_bits = max(0, self.domain.n_values - 1)
        self.n_pieces = self.domain.n_values
        hierarchy = self.domain.hierarchy
        self._alone = np.array(
            [
                any(hierarchy.leaves[leaf] is None or leaf == hierarchy.uncovered for leaf in leaves)
                for leaves in self.domain.values
            ]
        )
        self._prices = _PiecePrices(table, j, loss, cells)
        self._price_of: dict[tuple[int, int], float] = {}

    def _starts(self, bits: Bits) -> Bits:
        starts = np.append(True, bits)
        return starts | self._alone if bits.any() else starts

    def pieces(self, bits: Bits) -> tuple[Pieces, Floats]:
        """Return the intervals by number."""
        starts = self._starts(bits)
        firsts = np.flatnonzero(starts)
        ends = list(zip(firsts.tolist(), (np.append(firsts[1:], len(starts)) - 1).tolist(), strict=True))
        new = [end for end in ends if end not in self._price_of]
        self._price_of.update(
            zip(new, self._prices.prices_of([self.domain.leaves(*end) for end in new]).tolist(), strict=True)
        )
        number = np.cumsum(starts) - 1
        pieces = np.where(self.domain.position_of < 0, 0, number[self.domain.position_of]).astype(np.int32)
        return pieces, np.array([self._price_of[end] for end in ends])

    def active(self, bits: Bits) -> NDArray[np.int64]:
        """Return all bits: each has an effect."""
        return np.arange(self.n_bits)

    def at_level(self, level: int) -> Bits:
        """Return the bits that start an interval wherever the label of the level changes."""
        codes = self.domain.hierarchy.table[level][[leaves[0] for leaves in self.domain.values]]
        return np.asarray(codes[1:] != codes[:-1])

    def of_pieces(self, pieces: Pieces) -> Bits:
        """Return the bits that start an interval wherever the piece changes."""
        piece_of_place = pieces[[leaves[0] for leaves in self.domain.values]]
        return np.asarray(piece_of_place[1:] != piece_of_place[:-1])

    def named(self, bits: Bits) -> Pieces:
        """Return the pieces; values that do not occur belong to the intervals of labels that contain them."""
        return self.domain.pieces(self._starts(bits))


@dataclass(frozen=True, eq=False)
class Individual:
    """A choice of bits, and its value."""

    bits: Bits
    excess: int  # records suppressed beyond the limit; 0 if the choice may be released
    value: float  # in the objective's own unit

    @property
    def rank(self) -> tuple[int, float]:
        """The sort key: choices that may be released come first."""
        return self.excess, self.value


class Chromosome:
    """The bits of all columns, one column after the other, and the value of a choice of bits."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        table = problem.table
        self.genes: list[Gene] = [_gene(problem, j) for j in range(len(table.columns))]
        self.ends = np.cumsum([0, *(gene.n_bits for gene in self.genes)]).tolist()
        self.n_evaluated = 0
        self._judged: dict[bytes, Individual] = {}
        sizes = [max(gene.n_pieces, len(h.leaves)) for gene, h in zip(self.genes, table.hierarchies, strict=True)]
        self._rows = RowsToGroup(table, table.codes, sizes)

    @property
    def n_bits(self) -> int:
        """The number of bits of all columns."""
        return int(self.ends[-1])

    def of_column(self, bits: Bits, j: int) -> Bits:
        """Return the bits of a column."""
        return bits[self.ends[j] : self.ends[j + 1]]

    def of_node(self, node: Node) -> Bits:
        """Return the bits of a lattice node."""
        return np.concatenate([gene.at_level(level) for gene, level in zip(self.genes, node, strict=True)])

    def of_pieces(self, pieces: Sequence[Pieces]) -> Bits:
        """Return the bits of a cut of every column."""
        return np.concatenate(
            [gene.of_pieces(column_pieces) for gene, column_pieces in zip(self.genes, pieces, strict=True)]
        )

    def active(self, bits: Bits) -> NDArray[np.int64]:
        """Return the bits that have an effect."""
        active_bits = [gene.active(self.of_column(bits, j)) + self.ends[j] for j, gene in enumerate(self.genes)]
        return np.concatenate(active_bits).astype(np.int64)

    def judged(self, bits: Bits) -> Individual:
        """Group the records by the pieces, judge the classes and compute the objective."""
        key = bits.tobytes()
        if key in self._judged:
            return self._judged[key]
        self.n_evaluated += 1
        pieces, cells = zip(*(g.pieces(self.of_column(bits, j)) for j, g in enumerate(self.genes)), strict=True)
        judged_classes = judged_table(self.problem, self._rows.classes(pieces))
        excess = 0 if judged_classes.feasible else max(1, judged_classes.n_suppressed - self.problem.limit)
        self._judged[key] = individual = Individual(bits, excess, self._value(judged_classes, cells))
        return individual

    def _value(self, judged_classes: Judged, cells: Sequence[Floats]) -> float:
        """Return the objective of the kept classes and the suppressed records, in its own unit."""
        loss, is_kept = self.problem.objective, ~judged_classes.failing
        if isinstance(loss, CellLoss):
            column_prices = np.array(
                [prices[judged_classes.classes.codes[is_kept, j]] for j, prices in enumerate(cells)]
            )
            sums = column_prices @ judged_classes.classes.counts[is_kept].astype(np.float64)
            return float(loss.scaled(loss.totals(sums, judged_classes.n_suppressed)[:, None]).sum())
        classes = LossClasses(
            judged_classes.classes.counts,
            lambda: np.array([prices[judged_classes.classes.codes[:, j]] for j, prices in enumerate(cells)]),
            lambda: judged_classes.classes.sensitive[str(self.problem.label)],
        )
        total = float(loss.kept_sums(classes)[is_kept].sum()) + loss.suppressed * judged_classes.n_suppressed
        return loss.published(total, judged_classes.n_suppressed)

    def founders(self) -> list[Individual]:
        """Return the starting points: the top, and the best lattice node if it is found quickly.

        Iyengar and Winkler start at random. Starting from the node guarantees a solution no worse than it.
        """
        problem = self.problem
        founders = [self.judged(self.of_node(problem.lattice.top))]
        if problem.lattice.n_nodes <= FEW_NODES:
            try:
                answer = optimal(problem)
            except InfeasibleError:
                if problem.monotone:
                    raise
                answer = None
            if isinstance(answer, FullDomain):
                founders.append(self.judged(self.of_node(answer.node)))
        elif founders[0].excess and problem.monotone:
            raise problem.infeasible()
        return founders

    def answer(self, best: Individual, algorithm: str) -> Cuts:
        """Return the best individual as a recoding."""
        if best.excess:
            raise InfeasibleError(
                f"algorithm {algorithm!r} found no cut with at most {self.problem.limit} of "
                f"{self.problem.table.n_records} records suppressed, after {self.n_evaluated} of them",
                "raise max_suppression, or use algorithm 'optimal', which misses no full-domain answer",
            )
        pieces = [gene.named(self.of_column(best.bits, j)) for j, gene in enumerate(self.genes)]
        return recoding_of_cuts(self.problem, pieces, algorithm, n_evaluated=self.n_evaluated)


def _gene(problem: Problem, j: int) -> Gene:
    hierarchy = problem.table.hierarchies[j]
    ordered_cells = problem.cells[j] in ("range", "tight-range") and hierarchy.leaf_order in ("numeric", "time")
    if ordered_cells and not ordered_domain(problem.table, j).whole:
        return IntervalGene(problem.table, j, type(problem.objective), problem.cells[j])
    return TreeGene(problem.table, j, type(problem.objective))
