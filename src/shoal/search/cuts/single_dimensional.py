"""Single-dimensional: one cut per column, the same for all records, and single cells hidden where a class is too small.

K. LeFevre, D. DeWitt, R. Ramakrishnan, "Mondrian multidimensional k-anonymity", ICDE 2006, call recodings that map the
values of each column alone single-dimensional; A. Hundepool, L. Willenborg, "μ- and τ-ARGUS", 1996, hide cells after
such a recoding. The search is our own.
Needs  models that are judged class by class.
Finds  a release without suppressed records: a value is released as the same label everywhere, or its cell is hidden. No
       single step of a cut improves it; nothing is proved.
Costs  one greedy cell suppression per look: at most 150 on tables of up to 1 300 distinct records, fewer on larger
       ones, at least 12; then, up to 20 000 records, the steps of ``local`` on the chosen labels.

A cut may show 5-9 beside 40-79, where a level has one width for all values: this costs much less where few records are
old. Cells are labels of the hierarchies, so that they do not depend on the values in a class. The search starts at cuts
under which some share of the records would be in classes that fail, and splits or joins one label at a time as long as
labels and hidden cells together cost less. Of two cuts, the one that wipes fewer columns is better, whatever they
cost: the sum alone would hide one column entirely to show the others in full.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.errors import InfeasibleError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.recoding import Cells, Cuts
from shoal.search.cells.cell_suppression import HideableCells, covered
from shoal.search.cells.classes import Partition, recoding_of_partition, require_class_by_class
from shoal.search.cells.star_levels import not_as_one
from shoal.search.cuts.chromosome import Bits, Chromosome
from shoal.search.cuts.cuts import Pieces, released_values
from shoal.search.cuts.top_down import top_down
from shoal.search.local.local import local
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Problem
from shoal.tables.values import Values, Vocabulary

FAILING = (0.1, 0.3)  # shares of the records that fail under the cuts from which the search starts
ROWS = 200_000  # distinct records that all looks together go through,
LOOKS = (12, 150)  # but at least and at most so many looks
KICKED = (2, 5)  # at least so many steps, and fewer than so many, at once where no single one helps
WIPED = 0.9  # a column of which a greater share of the cells is hidden is wiped
POLISHED = 20_000  # records up to which hidden cells are chosen by ``local``


@dataclass(frozen=True, eq=False)
class WeighedCut:
    """A cut of every column, with the columns that are wiped after cells were hidden, and the cost."""

    bits: Bits
    rank: tuple[int, float]


def single_dimensional(problem: Problem) -> Cells:
    """Improve the best of a few cuts step by step, then hide as few cells as possible."""
    require_class_by_class(problem, "single_dimensional")
    # Labels of the hierarchies only, and nobody is suppressed.
    search = _CutSearch(_on(problem, problem.table.hierarchies, cells=None, limit=0, keep_suppressed=False))
    search.climb(search.best_start())
    search.kick()
    return search.answer()


def better(rank: tuple[int, float], best: tuple[int, float]) -> bool:
    """Return whether fewer columns are wiped, or as many at a lower cost, allowing for rounding of float sums."""
    return rank[0] < best[0] or (rank[0] == best[0] and rank[1] < best[1] - 1e-12 * abs(rank[1]))


class _CutSearch:
    """The cuts that were looked at, and the best of them."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.chromosome = Chromosome(problem)
        self.rng = np.random.default_rng(problem.terms.seed)
        self.looks: dict[bytes, WeighedCut] = {}
        codes = problem.table.codes
        self.several = (codes != codes[:1]).any(axis=0)  # columns with more than one value
        self.n_looks = min(1 << self.chromosome.n_bits, int(np.clip(ROWS // max(1, problem.table.n_classes), *LOOKS)))
        self.best = WeighedCut(np.zeros(0, np.bool_), (len(problem.table.columns) + 1, np.inf))

    @property
    def ended(self) -> bool:
        """Whether the looks or the time are used up."""
        return len(self.looks) >= self.n_looks or self.problem.out_of_time

    def look(self, bits: Bits) -> WeighedCut:
        """Hide cells under a cut, at most once; keep it if it costs less than all before."""
        effective = np.zeros_like(bits)
        active = self.chromosome.active(bits)
        effective[active] = bits[active]
        bits, key = effective, effective.tobytes()
        if key not in self.looks:
            narrowed = self.narrowed(bits)
            recoding = self.released(narrowed, covered(_hideable(self.problem, narrowed)), written=False)
            self.looks[key] = WeighedCut(bits, self.rank(recoding))
            self.problem.progress("weighing cuts against hidden cells", min(1.0, len(self.looks) / self.n_looks))
        look = self.looks[key]
        if better(look.rank, self.best.rank):
            self.best = look
        return look

    def best_start(self) -> WeighedCut:
        """Return the best of the top, the best lattice node, and cuts under which some records fail."""
        problem, n_rows = self.problem, self.problem.table.n_classes
        top = self.chromosome.of_node(problem.lattice.top)
        everything = _hideable(problem, self.narrowed(top))
        if not everything.passes(np.arange(n_rows), np.zeros(n_rows, np.int64), 1)[0]:
            raise problem.infeasible() if problem.monotone else not_as_one(problem, "single_dimensional")
        self.look(top)
        for share in FAILING:
            if self.problem.out_of_time:
                break
            limit = int(share * problem.table.n_records)
            try:
                start = top_down(_on(problem, problem.table.hierarchies, limit=limit))
            except InfeasibleError:  # models whose verdicts may change as classes merge
                continue
            if isinstance(start, Cuts):
                self.look(self.chromosome.of_pieces(start.of_leaf))
        for founder in self.chromosome.founders():
            self.look(founder.bits)
        return self.best

    def kick(self) -> None:
        """Change a few bits of the best cut at once, and climb again where that helps, until the looks are used up."""
        for _ in range(self.n_looks):
            if self.ended or not self.chromosome.n_bits:
                return
            before = self.best
            changed = before.bits.copy()
            for _ in range(self.rng.integers(*KICKED)):
                bit = self.rng.choice(self.chromosome.active(changed))
                changed[bit] = ~changed[bit]
            self.look(changed)
            if self.best is not before:
                self.climb(self.best)

    def climb(self, here: WeighedCut) -> None:
        """Split or join one label at a time, in random order, as long as some step helps."""
        improved = True
        while improved:
            improved = False
            for bit in self.rng.permutation(self.chromosome.active(here.bits)).tolist():
                if self.ended:
                    return
                changed = here.bits.copy()
                changed[bit] = ~changed[bit]
                self.look(changed)
                if self.best is not here:
                    here, improved = self.best, True

    def answer(self) -> Cells:
        """Return the best cut with its cells hidden in the best way known."""
        narrowed = self.narrowed(self.best.bits)
        found = self.released(narrowed, covered(_hideable(self.problem, narrowed)))
        if self.problem.table.n_records <= POLISHED and not self.problem.out_of_time:
            by_local = local(narrowed)
            if isinstance(by_local, Cells):
                polished = self.in_labels(narrowed, by_local)
                found = polished if better(self.rank(polished), self.rank(found)) else found
        return replace(found, n_evaluated=len(self.looks), n_nodes=None)

    def rank(self, recoding: Cells) -> tuple[int, float]:
        """Return the number of wiped columns and the cost in the policy's objective, to be compared in this order."""
        problem, parts = self.problem, recoding.parts(self.problem.table)
        hidden = parts.counts @ (parts.codes == Vocabulary.TOP_ID) / problem.table.n_records
        n_wiped = int((hidden[self.several] > WIPED).sum())
        return n_wiped, loss_of(problem, recoding.released, parts, problem.objective_name)

    def narrowed(self, bits: Bits) -> Problem:
        """Return the problem with two levels per column: the labels of the cut, and the top."""
        problem, chromosome = self.problem, self.chromosome
        pieces = [gene.named(chromosome.of_column(bits, j)) for j, gene in enumerate(chromosome.genes)]
        hierarchies = _two_levels(problem, pieces)
        return _on(problem, hierarchies)

    def released(self, narrowed: Problem, partition: Partition, *, written: bool = True) -> Cells:
        """Return a partition as a recoding of the problem."""
        return self.in_labels(
            narrowed, recoding_of_partition(narrowed, partition, "single_dimensional", written=written)
        )

    def in_labels(self, narrowed: Problem, found: Cells) -> Cells:
        """Return a recoding of the narrowed problem as one of the whole problem, with the levels of its hierarchies."""
        values: list[Values] = []
        codes = np.empty_like(found.became.codes)
        for j, (of_column, hierarchy) in enumerate(zip(found.values, self.problem.table.hierarchies, strict=True)):
            vocabulary = Vocabulary(hierarchy)
            numbers = np.array([vocabulary.number_of(np.sort(leaves)) for leaves in of_column.covers], np.int32)
            codes[:, j] = numbers[found.became.codes[:, j]]
            values.append(vocabulary.values)
        return Cells(
            hierarchies=self.problem.table.hierarchies,
            values=tuple(values),
            became=replace(found.became, codes=codes),
            algorithm="single_dimensional",
            proved=False,
        )


def _on(problem: Problem, hierarchies: tuple[Hierarchy, ...], **terms: Any) -> Problem:
    """Return the problem with other hierarchies and other terms, and the time that is left."""
    left = None if problem.time_budget is None else max(0.0, problem.seconds_left)
    return Problem(
        replace(problem.table, hierarchies=hierarchies),
        problem.asked,
        replace(problem.terms, time_budget=left, **terms),
        progress=problem.progress,
    )


def _two_levels(problem: Problem, pieces: list[Pieces]) -> tuple[Hierarchy, ...]:
    """Return the hierarchies with the labels of some pieces and the top."""
    narrowed: list[Hierarchy] = []
    for h, values, numbers in zip(problem.table.hierarchies, *released_values(problem, pieces), strict=True):
        used, of_leaf = np.unique(numbers, return_inverse=True)
        if len(used) == 1:
            narrowed.append(h.selected([h.height]))
            continue
        narrowed.append(
            replace(
                h,
                table=np.vstack([of_leaf, np.zeros(len(of_leaf))]).astype(np.int32),
                labels=(tuple(values.labels[i] for i in used), h.labels[-1]),
                shares=(values.shares[used], h.shares[-1]),
                numbers=(0, h.number_of_top),
                top_number=h.number_of_top,
            )
        )
    return tuple(narrowed)


def _hideable(problem: Problem, narrowed: Problem) -> HideableCells:
    """Return the cells under a cut; hiding one costs the information that it still has."""
    costs = np.empty(problem.table.codes.shape)
    for j, h in enumerate(narrowed.table.hierarchies):
        shares = h.shares[0][h.table[0][problem.table.codes[:, j]]]
        costs[:, j] = problem.weights[j] * np.maximum(h.shares[-1][0] - shares, 0)
    return HideableCells.of(narrowed, costs)
