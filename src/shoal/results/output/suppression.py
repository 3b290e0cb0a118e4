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

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from shoal.errors import CannotTellError
from shoal.results.output.linear import BRANCHES, TOLERANCE, Flags, InsideKnowledge, LinearIntruder, Totals
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


Evidence = dict[tuple[int, int], Floats]  # by the identity of a target and the direction: a way in which it moves
INSIDE = 2  # upwards, for contributors to other classes


@dataclass(frozen=True, eq=False)
class Puzzle:
    """The quantities of a table, the cells that must be hidden, the targets, and what hiding each cell costs."""

    quantities: Sequence[Totals]
    targets: Sequence[ProtectedTotal]
    unsafe: Flags  # (cells)
    costs: Floats  # (cells)
    insiders: Sequence[Insiders | None]  # per quantity
    # Where every class is a cell of a plain table: the class at each place, and the cell of each class.
    grid: NDArray[np.int64] | None = None

    @cached_property
    def leaf(self) -> NDArray[np.int64]:
        """The cell that is a class by itself, for each class."""
        cells = self.quantities[0].cells
        alone = np.flatnonzero(np.diff(cells.indptr) == 1)
        leaf_cells = np.full(cells.shape[1], -1)
        leaf_cells[cells.indices[cells.indptr[alone]][::-1]] = alone[::-1]  # the first of those with the same class
        return leaf_cells

    def exposed(
        self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None, evidence: Evidence | None = None
    ) -> Iterator[Attack]:
        """Yield the attacks that come too close with this pattern; nothing if it is safe.

        ``evidence`` is filled with a way to move each target that is safe, where there is one for all intruders.
        """
        judged = list(self.targets if targets is None else targets)
        evidence = {} if evidence is None else evidence
        for q, totals in enumerate(self.quantities):
            intruder = LinearIntruder(totals, hidden)
            mine = [target for target in judged if target.quantity == q]
            failed: set[int] = set()
            for sign in (1, -1):
                wanted = [target for target in mine if target.level(sign) > 0 and id(target) not in failed]
                for target in _unmoved(intruder, wanted, sign, evidence):
                    failed.add(id(target))
                    yield Attack(target, sign, target.level(sign))
            insiders = self.insiders[q]
            for target in mine:
                if insiders and target.insider > 0 and id(target) not in failed:
                    yield from self._from_inside(intruder, target, evidence, insiders)

    def _from_inside(
        self, intruder: LinearIntruder, target: ProtectedTotal, evidence: Evidence, insiders: Insiders
    ) -> Iterator[Attack]:
        """Yield the attack of the first contributor to another class who comes too close."""
        level = target.insider
        slight = level * TOLERANCE
        outside = np.ones(len(insiders.falls), np.bool_)
        outside[target.classes] = False
        way = evidence.get((id(target), 1))
        if way is not None and _moved(way, target) >= level - slight:
            spared = (way >= -insiders.falls - slight) & (way <= insiders.rises + slight)
            if (spared | ~outside).all():  # it spares every contributor's own part
                evidence[id(target), INSIDE] = way
                return
        informed = outside & ((insiders.falls < intruder.totals.slack) | (insiders.rises == 0))
        everyone = {
            i: knowledge for at in np.flatnonzero(informed) for i, knowledge in insiders.knowledge_of(int(at)).items()
        }
        reached, way = intruder.reach(target.classes, 1, level, everyone)
        if reached >= level - slight:
            evidence[id(target), INSIDE] = way
            return
        evidence.pop((id(target), INSIDE), None)
        for i in everyone:
            if intruder.reach(target.classes, 1, level, insiders.knowledge_of(i))[0] < level - slight:
                yield Attack(target, 1, level, insiders.knowledge_of(i))
                return

    def changes(self, target: ProtectedTotal, cell: int, evidence: Evidence) -> bool:
        """Return whether a way to move a target would change a cell, or such a way is not known."""
        cells = self.quantities[target.quantity].cells
        classes = cells.indices[cells.indptr[cell] : cells.indptr[cell + 1]]
        for kind, level in ((1, target.above), (-1, target.below), (INSIDE, target.insider)):
            if level > 0 and (kind != INSIDE or self.insiders[target.quantity] is not None):
                way = evidence.get((id(target), kind))
                if way is None or abs(way[classes].sum()) > 1e-9 * level:
                    return True
        return False

    def safe(
        self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None, evidence: Evidence | None = None
    ) -> bool:
        """Return whether no attack comes too close."""
        return next(self.exposed(hidden, targets, evidence), None) is None


def _moved(way: Floats, target: ProtectedTotal) -> float:
    return float(way[target.classes].sum())


def _unmoved(
    intruder: LinearIntruder, targets: list[ProtectedTotal], sign: int, evidence: Evidence
) -> Iterator[ProtectedTotal]:
    """Yield the targets that cannot move as far as they should; each program moves one, and others as it can."""
    pending = sorted(targets, key=lambda target: -target.level(sign))
    while pending:
        # Distances of other orders of magnitude would be rounding errors in the same program.
        near = [target for target in pending if target.level(sign) * NEAR >= pending[0].level(sign)]
        way = intruder.moving_most([(target.classes, target.level(sign)) for target in near], sign)
        if way is None and len(near) > 1:  # a whole way may be easier to find for one alone
            way = intruder.moving_most([(pending[0].classes, pending[0].level(sign))], sign)
        rest = pending
        if way is not None:
            moved = {
                id(candidate)
                for candidate in near
                if _moved(way, candidate) * sign >= candidate.level(sign) * (1 - TOLERANCE)
            }
            evidence.update({(candidate, sign): way for candidate in moved})
            rest = [candidate for candidate in pending if id(candidate) not in moved]
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
    spared = _spared(puzzle, hidden.copy(), step, start + 0.6 * time_limit)
    if puzzle.safe(spared):  # all of it once more
        hidden = spared
    cost = float(puzzle.costs[hidden].sum())
    bound = float(puzzle.costs[puzzle.unsafe].sum())
    best = None
    # The inequalities bound how far a total can rise, which equations between columns do not.
    if len(puzzle.costs) <= EXACT and not any(totals.linked for totals in puzzle.quantities):
        best, bound = _cheapest_pattern(puzzle, cost, step, start + time_limit)
    return Hiding(hidden, cost, bound) if best is None else Hiding(best, float(puzzle.costs[best].sum()), bound)


def _cheap(puzzle: Puzzle, start: Flags, step: Step) -> Flags:
    """Hide, target by target, the cells along a cheap way to move it; hidden ones cost nothing more."""
    pending = sorted(puzzle.targets, key=lambda target: -max(target.above, target.below))
    hidden = start.copy()
    if puzzle.grid is not None and start is puzzle.unsafe:
        for target in pending:
            _hide_box(puzzle, puzzle.grid, target, hidden)
    attacks = list(puzzle.exposed(hidden))
    for i, first in enumerate(attacks):
        step("hiding cells", i / len(attacks))
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


def _hide_box(puzzle: Puzzle, grid: NDArray[np.int64], target: ProtectedTotal, hidden: Flags) -> None:
    """Hide the corners of the cheapest box around a cell in a plain table, of which every second one can rise or fall.

    Two values of each column span a box: with the cell, every second corner rises, and the others fall as far.
    """
    if len(target.classes) != 1 or min(grid.shape) < 2:
        return
    places = np.argwhere(grid == target.classes[0])
    if not len(places):
        return
    at = tuple(map(int, places[0]))
    totals, insiders = puzzle.quantities[target.quantity], puzzle.insiders[target.quantity]
    slack = totals.slack[grid]
    falls = slack if insiders is None or not target.insider else np.minimum(slack, insiders.falls[grid])
    rising = np.ones(grid.shape, np.bool_)
    if insiders is not None and target.insider:
        rising = insiders.rises[grid] > 0
    costs = np.where(hidden[puzzle.leaf[grid]], 0.0, puzzle.costs[puzzle.leaf[grid]])
    cost, possible = np.zeros(grid.shape), np.ones(grid.shape, np.bool_)
    up = max(target.above, target.insider)
    for turned in itertools.product((False, True), repeat=grid.ndim):
        if any(turned):
            corner = tuple(slice(None) if t else slice(i, i + 1) for t, i in zip(turned, at, strict=True))
            cost = cost + costs[corner]
            possible &= (falls[corner] >= up) if sum(turned) % 2 else (slack[corner] >= target.below) & rising[corner]
    for axis, i in enumerate(at):
        possible[(slice(None),) * axis + (i,)] = False
    if not possible.any():
        return
    other = np.unravel_index(np.argmin(np.where(possible, cost, np.inf)), grid.shape)
    for corner_place in itertools.product(*zip(at, map(int, other), strict=True)):
        hidden[puzzle.leaf[grid[corner_place]]] = True


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
    )
    if result.status != 0:
        raise CannotTellError(
            "the solver found no way to protect a cell within its limits; nothing is released",
            "make the table smaller: fewer columns to group by, or coarser groups",
        )
    changed = np.zeros(len(hidden), np.bool_)
    changed[visible] = np.abs(cells @ result.x[:m]) > TOLERANCE
    return changed


def _spared(puzzle: Puzzle, hidden: Flags, step: Step, end: float) -> Flags:
    """Show cells again that need not be hidden, the costliest first, as long as there is time.

    A target whose way leaves the cell as it is stays safe, so only the others are tried again.
    """
    evidence: Evidence = {}
    if not puzzle.safe(hidden, evidence=evidence):
        return hidden  # not by the same programs: nothing more is tried
    secondary = np.flatnonzero(hidden & ~puzzle.unsafe)
    for n, i in enumerate(secondary[np.argsort(-puzzle.costs[secondary], kind="stable")]):
        if time.monotonic() > end:
            break
        step("hiding fewer cells", n / len(secondary))
        touched = [target for target in puzzle.targets if puzzle.changes(target, int(i), evidence)]
        hidden[i] = False
        new_evidence: Evidence = {}
        if puzzle.safe(hidden, touched, new_evidence):
            evidence |= new_evidence
        else:
            hidden[i] = True
    return hidden


def _cheapest_pattern(puzzle: Puzzle, known_cost: float, step: Step, end: float) -> tuple[Flags | None, float]:
    """Return a safe pattern that costs less than ``known``, and a bound on the cost; None if none was found."""
    n = len(puzzle.costs)
    rows: list[Floats] = []
    bounds_of_cuts: list[float] = []
    bound = float(puzzle.costs[puzzle.unsafe].sum())
    for i in range(ROUNDS):
        step("proving that fewer cells would not do", i / ROUNDS)
        left = end - time.monotonic()
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
