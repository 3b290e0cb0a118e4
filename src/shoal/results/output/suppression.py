"""Which cells of a table to hide besides the unsafe ones, so that none of these can be worked out.

M. Fischetti and J. J. Salazar, "Solving the cell suppression problem on tabular data with linear constraints",
Management Science 47(7), 2001: an integer program chooses the cells; where an intruder could still come too close to a
target, linear duality gives an inequality that every safe choice satisfies, and the program is solved again.
Needs  the targets, each with the distance that must stay possible above and below its true value.
Finds  a safe pattern of least cost and the proof for up to ``EXACT`` cells; beyond, the union of cheapest ways to move
       each target, from which superfluous cells are removed.
Costs  a linear program per target and round. A pattern counts only after ``exposed`` has tried every target again.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from shoal.errors import CannotTellError
from shoal.results.output.boxes import CellBox, LeafGrid, LeafPrices
from shoal.results.output.linear import BRANCHES, TOLERANCE, Flags, InsideKnowledge, LinearIntruder, Totals, time_left
from shoal.tables.frequency import Floats

EXACT = 400  # cells of a table up to which the least pattern is looked for
NEAR = 1_000.0  # how much larger one distance of a program may be than another
ROUNDS = 150  # integer programs that are solved for it

Step = Callable[[str, float], None]


@dataclass(frozen=True, eq=False)
class ProtectedTotal:
    """Classes whose sum must stay uncertain: how far above and below the truth it must be able to lie."""

    quantity: int  # which of the totals: counts, sums
    classes: NDArray[np.int64]
    above: float
    below: float
    insider: float = 0.0  # the distance above that must be possible also for a contributor to another class

    def joined(self, other: ProtectedTotal) -> ProtectedTotal:
        """Return what protects the same classes as both ask for."""
        above, below = max(self.above, other.above), max(self.below, other.below)
        return ProtectedTotal(self.quantity, self.classes, above, below, max(self.insider, other.insider))

    def sum_of(self, way: Floats) -> float:
        """Return by how much a way moves it."""
        return float(way[self.classes].sum())

    def level(self, sign: int) -> float:
        """Return how far it must be able to move up or down."""
        return self.above if sign > 0 else self.below


@dataclass(frozen=True, eq=False)
class Insiders:
    """How far each class can fall below and rise above its value in the eyes of its own largest contributor."""

    falls: Floats
    rises: Floats  # 0 where somebody is alone, infinite elsewhere
    n_columns: int = 1  # linked columns: the classes of the first are followed by the same of the second, and so on

    def knowledge_of(self, i: int) -> dict[int, tuple[float, float]]:
        """Return what the contributor to one class knows, of all columns."""
        n = len(self.falls) // self.n_columns
        return {j: (float(self.falls[j]), float(self.rises[j])) for j in range(i % n, len(self.falls), n)}


@dataclass(frozen=True, eq=False)
class Attack:
    """One attempt to work a target out: in one direction, perhaps with a contributor's knowledge of some classes."""

    target: ProtectedTotal
    sign: int
    level: float
    knowledge: InsideKnowledge = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class CellMove:
    """Another table with the same published totals: by how much some classes differ, and which cells change."""

    classes: NDArray[np.int64]
    amounts: Floats
    cells: frozenset[int]

    @classmethod
    def between(cls, way: Floats, cells: csr_array) -> CellMove:
        """Return the move of all classes by the entries of ``way``."""
        changed = np.abs(cells @ way) > 1e-9 * max(float(np.abs(way).max(initial=0.0)), 1e-300)
        classes = np.flatnonzero(way)
        return cls(classes, way[classes], frozenset(np.flatnonzero(changed).tolist()))

    def reached(self, target: ProtectedTotal) -> float:
        """Return by how much the sum of a target moves."""
        return float(self.amounts[np.isin(self.classes, target.classes)].sum())


Evidence = dict[tuple[int, int], CellMove]  # by the identity of a target and the direction: a move that is far enough
INSIDE = 2  # upwards, for contributors to other classes


@dataclass(frozen=True, eq=False)
class Puzzle:
    """The quantities of a table, the cells that must be hidden, the targets, and what hiding each cell costs."""

    quantities: Sequence[Totals]
    targets: Sequence[ProtectedTotal]
    unsafe: Flags  # (cells)
    costs: Floats  # (cells)
    insiders: Sequence[Insiders | None]  # per quantity
    grid: LeafGrid | None = None  # of a table whose leaves are its classes, judged by itself
    boxes: dict[ProtectedTotal, CellBox] = field(default_factory=dict)  # found so far, of cells that were hidden
    deadline: float = math.inf  # of what must be done for any answer, on the clock of time.monotonic

    def exposed(
        self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None, evidence: Evidence | None = None
    ) -> Iterator[Attack]:
        """Yield the attacks that come too close with this pattern; nothing if it is safe.

        ``evidence`` is filled with a way to move each target that is safe, where there is one for all intruders.
        """
        judged = list(self.targets if targets is None else targets)
        evidence = {} if evidence is None else evidence
        for q, totals in enumerate(self.quantities):
            intruder = LinearIntruder(totals, hidden, self.deadline)
            mine = [target for target in judged if target.quantity == q]
            self._move_by_boxes(mine, hidden, evidence)
            failed: set[int] = set()
            for sign in (1, -1):
                wanted = [
                    t for t in mine if t.level(sign) > 0 and id(t) not in failed and (id(t), sign) not in evidence
                ]
                for target in _unmoved(intruder, wanted, sign, evidence):
                    failed.add(id(target))
                    yield Attack(target, sign, target.level(sign))
            insiders = self.insiders[q]
            for target in mine:
                if insiders and target.insider > 0 and id(target) not in failed:
                    yield from self._from_inside(intruder, target, evidence, insiders)

    def leaf_prices(self, hidden: Flags) -> LeafPrices:
        """Return what hiding more costs; of a table whose leaves are not its classes, nothing."""
        return {} if self.grid is None else self.grid.leaf_prices(np.where(hidden, 0.0, self.costs))

    def cheapest_box(self, target: ProtectedTotal, prices: LeafPrices) -> CellBox | None:
        """Return the box that protects a target and hides the cheapest cells besides; None if none can."""
        if self.grid is None:
            return None
        slack, insiders = self.quantities[target.quantity].slack, self.insiders[target.quantity]
        falls, rising = slack, np.ones(len(slack), np.bool_)
        if insiders is not None and target.insider:
            falls, rising = np.minimum(slack, insiders.falls), insiders.rises > 0
            rising[target.classes] = True
        up = max(target.above, target.insider)
        return self.grid.cheapest_box(target.classes, up, falls, rising, target.below, slack, prices)

    def _move_by_boxes(self, targets: Iterable[ProtectedTotal], hidden: Flags, evidence: Evidence) -> None:
        """Note the moves of targets along boxes of hidden cells, as far as there are some."""
        prices: LeafPrices | None = None
        for target in targets if self.grid is not None else ():
            box = self.boxes.get(target)
            if box is None or not hidden[box.cells].all():
                prices = self.leaf_prices(hidden) if prices is None else prices
                box = self.cheapest_box(target, prices)
                if box is None or not hidden[box.cells].all():
                    continue
                self.boxes[target] = box
            cells = frozenset(box.cells.tolist())
            for sign, amount in ((1, max(target.above, target.insider)), (-1, target.below)):
                if amount > 0:
                    evidence[id(target), sign] = CellMove(box.classes, sign * amount * box.amounts, cells)

    def _from_inside(
        self, intruder: LinearIntruder, target: ProtectedTotal, evidence: Evidence, insiders: Insiders
    ) -> Iterator[Attack]:
        """Yield the attack of the first contributor to another class who comes too close."""
        level = target.insider
        slight = level * TOLERANCE
        outside = np.ones(len(insiders.falls), np.bool_)
        outside[target.classes] = False
        move = evidence.get((id(target), 1))
        if move is not None and move.reached(target) >= level - slight:
            falls, rises = insiders.falls[move.classes], insiders.rises[move.classes]
            spared = (move.amounts >= -falls - slight) & (move.amounts <= rises + slight)
            if (spared | ~outside[move.classes]).all():  # it spares every contributor's own part
                evidence[id(target), INSIDE] = move
                return
        informed = outside & ((insiders.falls < intruder.totals.slack) | (insiders.rises == 0))
        everyone = {
            i: knowledge for at in np.flatnonzero(informed) for i, knowledge in insiders.knowledge_of(int(at)).items()
        }
        reached, way = intruder.reach(target.classes, 1, level, everyone)
        if reached >= level - slight:
            evidence[id(target), INSIDE] = CellMove.between(way, intruder.totals.cells)
            return
        evidence.pop((id(target), INSIDE), None)
        for i in everyone:
            if intruder.reach(target.classes, 1, level, insiders.knowledge_of(i))[0] < level - slight:
                yield Attack(target, 1, level, insiders.knowledge_of(i))
                return

    def changes(self, target: ProtectedTotal, cell: int, evidence: Evidence) -> bool:
        """Return whether a move of a target would change a cell, or such a move is not known."""
        for kind, level in ((1, target.above), (-1, target.below), (INSIDE, target.insider)):
            if level > 0 and (kind != INSIDE or self.insiders[target.quantity] is not None):
                move = evidence.get((id(target), kind))
                if move is None or cell in move.cells:
                    return True
        return False

    def safe(
        self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None, evidence: Evidence | None = None
    ) -> bool:
        """Return whether no attack comes too close."""
        return next(self.exposed(hidden, targets, evidence), None) is None


def _unmoved(
    intruder: LinearIntruder, targets: list[ProtectedTotal], sign: int, evidence: Evidence
) -> Iterator[ProtectedTotal]:
    """Yield the targets that cannot move as far as they should; each program moves one, and others as it can."""
    pending = sorted(targets, key=lambda target: -target.level(sign))
    while pending:
        intruder.require_time()
        # Distances of other orders of magnitude would be rounding errors in the same program.
        near = [target for target in pending if target.level(sign) * NEAR >= pending[0].level(sign)]
        way = intruder.moving_most([(target.classes, target.level(sign)) for target in near], sign)
        if way is None and len(near) > 1:  # a whole way may be easier to find for one alone
            way = intruder.moving_most([(pending[0].classes, pending[0].level(sign))], sign)
        rest = pending
        if way is not None:
            move = CellMove.between(way, intruder.totals.cells)
            moved = {id(t) for t in near if t.sum_of(way) * sign >= t.level(sign) * (1 - TOLERANCE)}
            evidence.update({(target_id, sign): move for target_id in moved})
            rest = [target for target in pending if id(target) not in moved]
        if rest and rest[0] is pending[0]:
            rest = rest[1:]
            yield pending[0]
        pending = rest


@dataclass(frozen=True, eq=False)
class Hiding:
    """The hidden cells, and a lower bound on the cost of every safe pattern; equal costs are a proof."""

    hidden: Flags
    cost: float
    bound: float

    @property
    def proved(self) -> bool:
        """Whether no safe pattern costs less."""
        return self.cost <= self.bound + 1e-6 * max(1.0, self.cost)


def suppressed(
    puzzle: Puzzle,
    step: Step = lambda task, share: None,
    time_limit: float = 60.0,
    first: Flags | None = None,
) -> Hiding | None:
    """Return a safe pattern; None if there is none, not even with every cell hidden.

    ``first`` is a pattern to begin with, which was safe with fewer targets.

    After ``time_limit`` seconds, nothing more is tried to hide fewer cells; the pattern is safe, but not proved least.
    """
    start = time.monotonic()
    everything = np.ones(len(puzzle.costs), np.bool_)
    if puzzle.safe(puzzle.unsafe):
        cost = float(puzzle.costs[puzzle.unsafe].sum())
        return Hiding(puzzle.unsafe, cost, cost)
    if not puzzle.safe(everything):
        return None
    hidden = _cheap(puzzle, puzzle.unsafe if first is None else first, step)
    # From here on, an answer is known: what takes too long is given up.
    with contextlib.suppress(CannotTellError):
        spared = _spared(replace(puzzle, deadline=start + 0.6 * time_limit), hidden.copy(), step)
        if puzzle.safe(spared):  # all of it once more
            hidden = spared
    cost = float(puzzle.costs[hidden].sum())
    bound = float(puzzle.costs[puzzle.unsafe].sum())
    best = None
    # The inequalities bound how far a total can rise, which equations between columns do not.
    if len(puzzle.costs) <= EXACT and not any(totals.linked for totals in puzzle.quantities):
        with contextlib.suppress(CannotTellError):
            best, bound = _cheapest_pattern(replace(puzzle, deadline=start + time_limit), cost, step)
    return Hiding(hidden, cost, bound) if best is None else Hiding(best, float(puzzle.costs[best].sum()), bound)


def _cheap(puzzle: Puzzle, start: Flags, step: Step) -> Flags:
    """Hide, target by target, a cheap box or the cells along a cheap way to move it; hidden ones cost nothing more."""
    hidden = start.copy()
    attacks = sorted(puzzle.exposed(hidden), key=lambda attack: -max(attack.target.above, attack.target.below))
    for i, first in enumerate(attacks):
        step("hiding cells", i / len(attacks))
        box = puzzle.cheapest_box(first.target, puzzle.leaf_prices(hidden))
        if box is not None:
            hidden[box.cells] = True
        for _ in range(3 + len(puzzle.costs)):
            attack = next(puzzle.exposed(hidden, [first.target]), None)
            if attack is None:
                break
            before = hidden.copy()
            hidden |= _cheapest_way(puzzle, attack, hidden)
            if (before == hidden).all():  # a whole way may differ from a fractional one: hide the cheapest cell left
                hidden[np.argmin(np.where(hidden, np.inf, puzzle.costs))] = True
    # What was hidden later cannot expose what was protected before: the intruder only ever knows less.
    return hidden


def _cheapest_way(puzzle: Puzzle, attack: Attack, hidden: Flags) -> Flags:
    """Return the published cells that change in the cheapest way to move the target as far as asked."""
    totals = puzzle.quantities[attack.target.quantity]
    visible = np.flatnonzero(~hidden)
    cells = totals.cells[visible]
    n, m = cells.shape
    slack = np.minimum(totals.slack, 1e9 * attack.level)
    highest = np.full(m + 2 * n, np.inf)
    for i, (fall, rise) in attack.knowledge.items():
        slack[i], highest[i] = min(slack[i], fall), rise
    goal = np.zeros(m)
    goal[attack.target.classes] = -attack.sign
    split = hstack([cells, -eye_array(n), eye_array(n)])
    fixed = hstack([totals.published, csr_array((totals.published.shape[0], 2 * n))])
    rows = vstack([split, fixed]).tocsr()
    costs = puzzle.costs[visible]
    result = linprog(
        np.concatenate([np.zeros(m), costs, costs]),
        A_ub=csr_array(np.concatenate([goal, np.zeros(2 * n)])[None, :]),
        b_ub=[-1.0],
        A_eq=rows,
        b_eq=np.zeros(rows.shape[0]),
        bounds=np.column_stack([np.concatenate([-slack / attack.level, np.zeros(2 * n)]), highest]),
        method="highs",
        options=time_left(puzzle.deadline),
    )
    if result.status != 0:
        raise CannotTellError(
            "the solver found no way to protect a cell within its limits; nothing is released",
            "make the table smaller: fewer columns to group by, or coarser groups",
        )
    changed = np.zeros(len(hidden), np.bool_)
    changed[visible] = np.abs(cells @ result.x[:m]) > TOLERANCE
    return changed


def _spared(puzzle: Puzzle, hidden: Flags, step: Step) -> Flags:
    """Show cells again that need not be hidden, the costliest first, as long as there is time.

    A target whose way leaves the cell as it is stays safe, so only the others are tried again.
    """
    evidence: Evidence = {}
    if not puzzle.safe(hidden, evidence=evidence):
        return hidden  # not by the same programs: nothing more is tried
    secondary = np.flatnonzero(hidden & ~puzzle.unsafe)
    for n, i in enumerate(secondary[np.argsort(-puzzle.costs[secondary], kind="stable")]):
        if time.monotonic() > puzzle.deadline:
            break
        step("hiding fewer cells", n / len(secondary))
        touched = [target for target in puzzle.targets if puzzle.changes(target, int(i), evidence)]
        hidden[i] = False
        new_evidence: Evidence = {}
        try:
            safe = puzzle.safe(hidden, touched, new_evidence)
        except CannotTellError:  # not in time
            safe = False
        if safe:
            evidence |= new_evidence
        else:
            hidden[i] = True
    return hidden


def _cheapest_pattern(puzzle: Puzzle, known_cost: float, step: Step) -> tuple[Flags | None, float]:
    """Return a safe pattern that costs less than ``known``, and a bound on the cost; None if none was found."""
    n = len(puzzle.costs)
    rows: list[Floats] = []
    bounds_of_cuts: list[float] = []
    bound = float(puzzle.costs[puzzle.unsafe].sum())
    for i in range(ROUNDS):
        step("proving that fewer cells would not do", i / ROUNDS)
        left = puzzle.deadline - time.monotonic()
        if left <= 0:
            return None, bound
        chosen = milp(
            puzzle.costs,
            constraints=LinearConstraint(np.array(rows), np.array(bounds_of_cuts), np.inf) if rows else None,
            bounds=Bounds(puzzle.unsafe.astype(float), np.ones(n)),
            integrality=np.ones(n),
            options={"node_limit": BRANCHES, "mip_rel_gap": 0.0, "time_limit": left},
        )
        if chosen.status != 0 or chosen.x is None:
            return None, bound
        bound = max(bound, float(chosen.fun) - 1e-9 * max(1.0, abs(chosen.fun)))
        if bound >= known_cost - 1e-6 * max(1.0, known_cost):
            return None, bound
        hidden = chosen.x > 0.5
        cuts = [cut for attack in puzzle.exposed(hidden) for cut in _cuts(puzzle, attack, hidden)]
        if not cuts:
            return hidden, bound
        for row, at_least in cuts:
            rows.append(row)
            bounds_of_cuts.append(at_least)
    return None, bound


def _cuts(puzzle: Puzzle, attack: Attack, hidden: Flags) -> Iterator[tuple[Floats, float]]:
    """Yield inequalities that every safe pattern satisfies and this one does not."""
    yield (~hidden).astype(float), 1.0  # something else has to be hidden
    totals = puzzle.quantities[attack.target.quantity]
    level = attack.level
    slack = totals.slack.copy()
    highest = np.full(len(slack), np.inf)
    for i, (fall, rise) in attack.knowledge.items():
        slack[i], highest[i] = min(slack[i], fall), rise
    goal = np.zeros(len(slack))
    goal[attack.target.classes] = attack.sign
    cells = totals.cells
    # A cell can fall by what its classes can fall, and need not rise by more than all others can fall.
    falls = np.asarray(cells @ slack) / level
    rises = np.full(len(falls), float(slack.sum()) / level + 1.0)
    # Where a class is a cell by itself, the bound on the cell says it all, and depends on the pattern.
    alone = np.zeros(len(slack), np.bool_)
    alone[cells[np.flatnonzero(np.diff(cells.indptr) == 1)].indices] = True
    result = linprog(
        -goal,
        A_ub=vstack([cells, -cells]).tocsr(),
        b_ub=np.concatenate([rises * hidden, falls * hidden]),
        A_eq=totals.published if totals.published.shape[0] else None,
        b_eq=np.zeros(totals.published.shape[0]) if totals.published.shape[0] else None,
        bounds=np.column_stack([np.where(alone, -np.inf, -slack / level), highest]),
        method="highs",
        options=time_left(puzzle.deadline),
    )
    if result.status != 0:
        return
    n = len(falls)
    prices = np.maximum(-result.ineqlin.marginals, 0.0)
    constant = float(np.maximum(result.lower.marginals, 0.0) @ np.where(alone, 0.0, slack / level))
    needed = 1.0 - constant
    row = prices[:n] * rises + prices[n:] * falls
    row[row < 1e-9] = 0.0
    if needed <= 1e-6:
        return
    row = np.minimum(row / needed, 1.0)
    if row @ hidden < 1.0 - 1e-6:
        yield row, 1.0 - TOLERANCE
