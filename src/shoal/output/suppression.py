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

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, eye_array, hstack, vstack

from shoal.errors import CannotTellError
from shoal.output.linear import BRANCHES, TOLERANCE, Flags, Intruder, Known, Totals
from shoal.table.frequency import Floats

EXACT = 400  # cells of a table up to which the least pattern is looked for
ROUNDS = 150  # integer programs that are solved for it
SPARING = 120  # hidden cells up to which each is tried without

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

    @property
    def ways(self) -> Iterator[tuple[int, float]]:
        """The directions in which it must be able to move, each with its distance."""
        yield from ((sign, level) for sign, level in ((1, self.above), (-1, self.below)) if level > 0)


@dataclass(frozen=True, eq=False)
class Insiders:
    """How far each class can fall below and rise above its value in the eyes of its own largest contributor."""

    falls: Floats
    rises: Floats  # 0 where somebody is alone, infinite elsewhere

    def of(self, i: int) -> dict[int, tuple[float, float]]:
        """Return what the contributor to one class knows."""
        return {i: (float(self.falls[i]), float(self.rises[i]))}


@dataclass(frozen=True, eq=False)
class Attack:
    """One attempt to work a target out: in one direction, perhaps with a contributor's knowledge of some classes."""

    target: ProtectedTotal
    sign: int
    level: float
    known: Known = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Puzzle:
    """The quantities of a table, the cells that must be hidden, the targets, and what hiding each cell costs."""

    quantities: Sequence[Totals]
    targets: Sequence[ProtectedTotal]
    unsafe: Flags  # (cells)
    costs: Floats  # (cells)
    insiders: Sequence[Insiders | None]  # per quantity

    def exposed(self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None) -> Iterator[Attack]:
        """Yield the attacks that come too close with this pattern; nothing if it is safe."""
        intruders = [Intruder(totals, hidden) for totals in self.quantities]
        for target in self.targets if targets is None else targets:
            intruder = intruders[target.quantity]
            for sign, level in target.ways:
                reached, way = intruder.reach(target.classes, sign, level)
                if reached < level * (1 - TOLERANCE):
                    yield Attack(target, sign, level)
                    break
                if sign > 0 and target.insider > 0 and (insiders := self.insiders[target.quantity]):
                    yield from self._from_inside(intruder, target, way, insiders)

    def _from_inside(
        self, intruder: Intruder, target: ProtectedTotal, way: Floats, insiders: Insiders
    ) -> Iterator[Attack]:
        """Yield the attack of the first contributor to another class who comes too close."""
        level = target.insider
        slight = level * TOLERANCE
        # One way that spares every contributor's own part serves for all of them.
        apart = np.ones(len(insiders.falls), np.bool_)
        apart[target.classes] = False
        spared = ~((way < -insiders.falls - slight) | (way > insiders.rises + slight)) | ~apart
        if spared.all() and _moved(way, target) >= level - slight:
            return
        told = apart & ((insiders.falls < intruder.totals.slack) | (insiders.rises == 0))
        everyone = {i: known for at in np.flatnonzero(told) for i, known in insiders.of(int(at)).items()}
        if intruder.reach(target.classes, 1, level, everyone)[0] >= level - slight:
            return
        for i in everyone:
            if intruder.reach(target.classes, 1, level, insiders.of(i))[0] < level - slight:
                yield Attack(target, 1, level, insiders.of(i))
                return

    def safe(self, hidden: Flags, targets: Iterable[ProtectedTotal] | None = None) -> bool:
        """Return whether no attack comes too close."""
        return next(self.exposed(hidden, targets), None) is None


def _moved(way: Floats, target: ProtectedTotal) -> float:
    return float(way[target.classes].sum())


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


def suppressed(puzzle: Puzzle, step: Step = lambda what, share: None) -> Hiding | None:
    """Return a safe pattern; None if there is none, not even with every cell hidden."""
    everything = np.ones(len(puzzle.costs), np.bool_)
    if puzzle.safe(puzzle.unsafe):
        cost = float(puzzle.costs[puzzle.unsafe].sum())
        return Hiding(puzzle.unsafe, cost, cost)
    if not puzzle.safe(everything):
        return None
    hidden = _spared(puzzle, _cheap(puzzle, step))
    cost = float(puzzle.costs[hidden].sum())
    if len(puzzle.costs) > EXACT:
        return Hiding(hidden, cost, float(puzzle.costs[puzzle.unsafe].sum()))
    best, bound = _least(puzzle, cost, step)
    return Hiding(hidden, cost, bound) if best is None else Hiding(best, float(puzzle.costs[best].sum()), bound)


def _cheap(puzzle: Puzzle, step: Step) -> Flags:
    """Hide, target by target, the cells along the cheapest way to move it; hidden ones cost nothing more."""
    hidden = puzzle.unsafe.copy()
    pending = sorted(puzzle.targets, key=lambda target: -max(target.above, target.below))
    for i, target in enumerate(pending):
        step("hiding cells", i / len(pending))
        for _ in range(3 + len(puzzle.costs)):
            attack = next(puzzle.exposed(hidden, [target]), None)
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
    shown = np.flatnonzero(~hidden)
    cells = totals.cells[shown]
    n, m = cells.shape
    slack = np.minimum(totals.slack, 1e9 * attack.level)
    highest = np.full(m + 2 * n, np.inf)
    for i, (fall, rise) in attack.known.items():
        slack[i], highest[i] = min(slack[i], fall), rise
    goal = np.zeros(m)
    goal[attack.target.classes] = -attack.sign
    split = hstack([cells, -eye_array(n), eye_array(n)])
    fixed = hstack([totals.published, csr_array((totals.published.shape[0], 2 * n))])
    rows = vstack([split, fixed]).tocsr()
    costs = puzzle.costs[shown]
    found = linprog(
        np.concatenate([np.zeros(m), costs, costs]),
        A_ub=csr_array(np.concatenate([goal, np.zeros(2 * n)])[None, :]),
        b_ub=[-1.0],
        A_eq=rows,
        b_eq=np.zeros(rows.shape[0]),
        bounds=np.column_stack([np.concatenate([-slack / attack.level, np.zeros(2 * n)]), highest]),
        method="highs",
    )
    if found.status != 0:
        raise CannotTellError(
            "the solver found no way to protect a cell within its limits; nothing is released",
            "make the table smaller: fewer columns to group by, or coarser groups",
        )
    changed = np.zeros(len(hidden), np.bool_)
    changed[shown] = np.abs(cells @ found.x[:m]) > TOLERANCE
    return changed


def _spared(puzzle: Puzzle, hidden: Flags) -> Flags:
    """Show cells again that need not be hidden, the costliest first."""
    more = np.flatnonzero(hidden & ~puzzle.unsafe)
    if len(more) > SPARING:
        return hidden
    for i in more[np.argsort(-puzzle.costs[more], kind="stable")]:
        hidden[i] = False
        hidden[i] = not puzzle.safe(hidden)
    return hidden


def _least(puzzle: Puzzle, known: float, step: Step) -> tuple[Flags | None, float]:
    """Return a safe pattern that costs less than ``known``, and a bound on the cost; None if none was found."""
    n = len(puzzle.costs)
    rows: list[Floats] = []
    least: list[float] = []
    bound = float(puzzle.costs[puzzle.unsafe].sum())
    for i in range(ROUNDS):
        step("proving that fewer cells would not do", i / ROUNDS)
        chosen = milp(
            puzzle.costs,
            constraints=LinearConstraint(np.array(rows), np.array(least), np.inf) if rows else None,
            bounds=Bounds(puzzle.unsafe.astype(float), np.ones(n)),
            integrality=np.ones(n),
            options={"node_limit": BRANCHES, "mip_rel_gap": 0.0},
        )
        if chosen.status != 0 or chosen.x is None:
            return None, bound
        bound = max(bound, float(chosen.fun) - 1e-9 * max(1.0, abs(chosen.fun)))
        if bound >= known - 1e-6 * max(1.0, known):
            return None, bound
        hidden = chosen.x > 0.5
        cuts = [cut for attack in puzzle.exposed(hidden) for cut in _cuts(puzzle, attack, hidden)]
        if not cuts:
            return hidden, bound
        for row, at_least in cuts:
            rows.append(row)
            least.append(at_least)
    return None, bound


def _cuts(puzzle: Puzzle, attack: Attack, hidden: Flags) -> Iterator[tuple[Floats, float]]:
    """Yield inequalities that every safe pattern satisfies and this one does not."""
    yield (~hidden).astype(float), 1.0  # something else has to be hidden
    totals = puzzle.quantities[attack.target.quantity]
    level = attack.level
    slack = totals.slack.copy()
    highest = np.full(len(slack), np.inf)
    for i, (fall, rise) in attack.known.items():
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
    found = linprog(
        -goal,
        A_ub=vstack([cells, -cells]).tocsr(),
        b_ub=np.concatenate([rises * hidden, falls * hidden]),
        A_eq=totals.published if totals.published.shape[0] else None,
        b_eq=np.zeros(totals.published.shape[0]) if totals.published.shape[0] else None,
        bounds=np.column_stack([np.where(alone, -np.inf, -slack / level), highest]),
        method="highs",
    )
    if found.status != 0:
        return
    n = len(falls)
    prices = np.maximum(-found.ineqlin.marginals, 0.0)
    constant = float(np.maximum(found.lower.marginals, 0.0) @ np.where(alone, 0.0, slack / level))
    needed = 1.0 - constant
    row = prices[:n] * rises + prices[n:] * falls
    row[row < 1e-9] = 0.0
    if needed <= 1e-6:
        return
    row = np.minimum(row / needed, 1.0)
    if row @ hidden < 1.0 - 1e-6:
        yield row, 1.0 - TOLERANCE
