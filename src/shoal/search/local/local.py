"""Local: recode every class separately; dissolve and rebuild neighbourhoods of classes while that reduces the loss.

Needs  requirements that are judged class by class.
Finds  classes that lose no more than the start (``start.py``): the best of Mondrian, a cover and the optimum of the
       lattice. Optimality is not proved, but a lower bound on the loss is reported.
Costs  a dozen steps per record, each linear in k and in the number of neighbours examined.

A step takes a few neighbouring classes apart, and records from large classes near them. Each record then joins the
class that it costs least to join, or founds one with others that are loose or that a large class can spare, whatever
costs less in all (ruin and recreate: G. Schrimpf et al., J. Computational Physics 159, 2000). What costs more is
accepted now and then, ever more rarely (annealing). Other steps begin with the class that a record wishes for, and
dissolve those that lose a record to it (``wishes.py``).
Records with equal tuples may go to different classes. Where more is asked than a size, what a step proposes is judged
first; in between, classes change by one record or are divided such that all keep passing (``trades.py``), or,
where that cannot be told within a step, records with the same sensitive values change places, which changes no verdict.

Losses of cells are minimized as they are; ARX's, a product over columns, by its tangent, which is renewed every round.
Losses that see only how records are grouped (discernibility, average-class, ambiguity) have ``loss`` as a stand-in.
Cells that are sets are priced as sets in ``loss`` and ARX's; in the others, which price levels or records, as labels.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import sum_by_class
from shoal.models.base import SensitiveModel
from shoal.recoding import Recoding
from shoal.search.cells.classes import SUPPRESSED, Partition, class_table, passing, require_class_by_class
from shoal.search.local.bound import least_loss
from shoal.search.local.boxes import Space
from shoal.search.local.exchange import exchange, kinds_of
from shoal.search.local.kernels import (
    LOCKED,
    STARS,
    Atoms,
    LinkedClasses,
    Log,
    attach_all,
    rebox_all,
    settle,
)
from shoal.search.local.scratch import Run
from shoal.search.local.start import Solution, best_start, first_answer, sizes_decide
from shoal.search.local.steps import improve
from shoal.search.local.trades import limits_of, trade
from shoal.search.problem import Problem
from shoal.tables.frequency import Counts, Floats

STEPS = 24  # per record at k = 5, without a time budget
JUDGED = 11  # where proposals have to be judged
FEWEST = 1_000  # steps, even for the smallest table
ROUNDS = 24
FOR_STEPS = 0.9  # share of the time after the start; the rest is for the bound
FOR_NEAR = 0.4  # share of the time after the start in which neighbours are looked for
NEIGHBOURS = 48  # of each tuple
FEWER = 32  # where proposals have to be judged
CROWDED = 100_000  # tuples; from here on a third of the neighbours suffices, since tuples are dense
HOT, COLD = 0.7, 0.03  # temperatures, in mean costs of a record
RUINED = 3  # the most classes dissolved in one step
WISHES = 0.5  # the most of the steps that begin with the class that a record wishes for
EXCHANGES = 16  # per step, if requirements go beyond class size
SPARE = 256  # extra room for classes, per thread
PROPOSALS = 512  # judged together


def local(problem: Problem) -> Recoding:
    """Start from a good solution, improve it, and compute a lower bound for any recoding.

    With a time budget, each part begins only while time is left; the first solution is always completed.
    """
    require_class_by_class(problem, "local")
    seconds_at_start = problem.seconds_left
    first = first_answer(problem)
    took = 0.0 if problem.time_budget is None else seconds_at_start - problem.seconds_left
    if problem.out_of_time:
        return replace(first.recoding, unfinished=_unfinished(problem, 0.0, 0.0))
    space = Space(problem)
    solution = start = best_start(problem, space, first, took)
    if problem.out_of_time:
        return replace(start.recoding, unfinished=_unfinished(problem, 0.0, 0.0))
    to_write = 0.0
    if problem.time_budget is not None:  # measured, so that as much is left for the solution
        before = problem.seconds_left
        written = start.recoding
        to_write = start.seconds + before - problem.seconds_left
        if problem.out_of_time:
            return replace(written, unfinished=_unfinished(problem, 0.0, 0.0))
    search = _LocalSearch(problem, space, start.partition)
    if search.total > 0:
        search.run(to_write)
    if search.n_steps:
        improved = Solution.of(problem, search.partition)
        if improved.loss < start.loss and improved.holds:
            solution = improved
    bound, claim = least_loss(problem.given(problem.seconds_left - to_write), space, solution.partition)
    saved = 1 - solution.loss / start.loss if start.loss else 0.0
    unfinished = _unfinished(problem, search.share_done, saved) if search.total > 1e-15 else ""
    return replace(solution.recoding, n_evaluated=search.n_steps, bound=bound, claim=claim, unfinished=unfinished)


def _unfinished(problem: Problem, share: float, saved: float) -> str:
    """Say that time ran out before the default number of steps, and what the completed steps gained."""
    if problem.time_budget is None or share >= 1:
        return ""
    clause = "before the first of the planned steps"
    if share > 0:
        clause = f"after {max(1, int(100 * share))} % of the planned steps, which saved {100 * saved:.0f} % of the loss"
    return f"the time budget of {problem.time_budget:g} seconds ended {clause}"


# --- the search --------------------------------------------------------------------------------------------------


class _LocalSearch:
    """The current classes, and the steps that improve them."""

    def __init__(self, problem: Problem, space: Space, start: Partition) -> None:
        self.problem = problem
        self.space = space
        self.k = problem.least_class_size
        self.verify = not sizes_decide(problem)
        self.rng = np.random.default_rng(problem.terms.seed)
        self.n_steps = 0
        self._seconds = math.inf  # available, with a time budget
        self._for_steps = math.inf  # of these
        # Of a tuple with many records, k are separate atoms that can move to other classes; the rest stay together.
        parts = np.repeat(np.arange(len(start.row)), np.where(start.counts > 2 * self.k, self.k + 1, start.counts))
        weights = np.ones(len(parts), np.int64)
        firsts = np.flatnonzero(np.diff(parts, prepend=-1))
        is_crowded = start.counts > 2 * self.k
        weights[firsts[is_crowded]] = start.counts[is_crowded] - self.k
        self.row = start.row[parts]
        tuple_of = space.tuple_of_row[self.row]
        order = np.argsort(tuple_of, kind="stable")
        m = len(space.codes)
        self.boxes = space.boxes(space.weights(None))
        n_words = self.boxes.codes.shape[1]
        self.classes = _emptied(len(parts), start.n_classes, problem, self.k, n_words)
        n_near = NEIGHBOURS // 3 if m > CROWDED else FEWER if self.verify else NEIGHBOURS
        near, away = space.neighbours(self.boxes, self.rng, n_near, problem.given(FOR_NEAR * problem.seconds_left))
        self.atoms = Atoms(
            tuple_of,
            weights,
            np.searchsorted(tuple_of[order], np.arange(m + 1)),
            order,
            near,
            self._floors(near, away, sum_by_class(weights, tuple_of, m)),
            _kinds(problem)[self.row],
        )
        kinds = kinds_of(problem.table)[self.row]
        # Records of the same kind can be exchanged; if persons are counted, none can.
        self.alike = kinds if self.verify and problem.table.entities is None else None
        n_most = len(self.classes.first)
        self.limits = limits_of(problem, self.row, n_most) if self.verify else None
        attach_all(self.atoms, self.classes, start.class_of[parts] + 1)
        n_free = len(self.classes.first)
        n_proposals = min(PROPOSALS, 1 + start.n_classes // 16)
        self.logs = [_log(n_free, n_words, self.k, n_proposals) for _ in range(2)]
        rebox_all(self.boxes, self.atoms, self.classes)
        self.total = self._renew()

    def _floors(self, near: NDArray[np.int32], away: Floats, counts: Counts) -> Floats:
        """Return a lower bound on a record's cost: the nearest tuples that make a class of k, one at a time."""
        reached = np.cumsum(np.column_stack([counts, np.where(near < 0, 0, counts[near])]), axis=1) >= self.k
        alone = np.zeros(len(counts))
        distances = np.column_stack([alone, np.where(np.isfinite(away), away, 0)])
        position = np.where(reached.any(axis=1), reached.argmax(axis=1), distances.argmax(axis=1))
        return np.asarray(distances[np.arange(len(counts)), position])

    def _renew(self) -> float:
        """Renew the weights of the columns and the prices of the boxes; return the mean cost of a record."""
        classes = self.classes
        sums = self.space.sums(classes.box, classes.n_records)
        weights = self.space.weights(sums)
        self.boxes = self.space.boxes(weights)
        classes.cost[STARS] = self.space.suppressed(weights)
        return rebox_all(self.boxes, self.atoms, classes) / max(1, self.problem.n_records)

    @property
    def n_planned(self) -> int:
        """The number of steps without a time budget.

        A step dissolves classes of about k records, each of which examines about k others: larger k, fewer steps.
        """
        fewer = (10 / (self.k + 5)) ** 2
        steps_per_record = JUDGED * min(1.5, fewer) if self.verify else STEPS * max(fewer, fewer**1.5)
        return max(FEWEST, int(steps_per_record * len(self.row)))

    @property
    def share_done(self) -> float:
        """The share of the planned steps completed; above 1 if there was more time."""
        return min(1.0, self.n_steps / self.n_planned)

    def run(self, to_write: float = 0.0) -> None:
        """Run rounds of steps, each with its own weights and its own halves of the classes.

        With a time budget, ``to_write`` seconds of it are reserved for writing the solution.
        """
        problem = self.problem
        self._seconds = max(1e-9, problem.seconds_left)
        self._for_steps = max(1e-9, min(FOR_STEPS * self._seconds, self._seconds - to_write))
        n_total = self.n_planned
        n_call = min(6_000, 10 + 12_000_000 // (self.k + 5) ** 3)  # some tenths of a second
        threads = 2 if len(self.row) >= 5_000 else 1
        hot, cold = self.total * HOT, self.total * COLD
        if self.verify:
            hot, cold = 0.0, self.total * self.k
        with ThreadPoolExecutor(threads) as pool:
            while (share := self._share(n_total)) < 1 and not problem.out_of_time and self.total > 1e-15:
                problem.progress(f"loss {self.loss:.5f}", share)
                sides = self._split(threads)
                until = min(1.0, share + 1 / ROUNDS)
                while (now := self._share(n_total)) < until and not problem.out_of_time:
                    share_after = min(1.0, now + threads * n_call / n_total)
                    heat = (hot * (cold / hot) ** now, hot * (cold / hot) ** share_after) if hot else (hot, cold)
                    self._step(pool, threads, n_call, heat, sides, now)
                self.total = self._renew()

    def _step(
        self,
        pool: ThreadPoolExecutor,
        threads: int,
        n_steps: int,
        heat: tuple[float, float],
        sides: NDArray[np.int8],
        share: float,
    ) -> None:
        """Run some steps in each thread; judge the proposals if requirements go beyond class size."""
        seeds = self.rng.integers(0, 1 << 31, threads).tolist()

        wishes = 0.0 if self.verify else min(WISHES, 3 / self.k)  # many records wish for classes that cannot be

        def call(i: int) -> tuple[int, int]:
            run = Run(self.k, self.problem.limit, i, n_steps, *heat, RUINED, self.verify, wishes)
            n, n_proposals = improve(self.boxes, self.atoms, self.classes, self.logs[i], run, seeds[i])
            return int(n), int(n_proposals)

        results = list(map(call, range(threads)) if threads == 1 else pool.map(call, range(threads)))
        self.n_steps += sum(n for n, _ in results)
        if not self.verify:
            return
        for log, (_, n_proposals) in zip(self.logs, results, strict=False):
            self._judge(log, n_proposals, sides)
        warm = self.total * HOT * (COLD / HOT) ** share
        rest = [(i, EXCHANGES * n, seeds[i], warm) for i, (n, _) in enumerate(results)]
        state = (self.boxes, self.atoms, self.classes)
        limits, alike = self.limits, self.alike
        if limits is not None:
            list(pool.map(lambda arguments: trade(*state, limits, *arguments), rest))
        elif alike is not None:
            list(pool.map(lambda arguments: exchange(*state, alike, *arguments), rest))

    def _share(self, n_total: int) -> float:
        """Return the share of work done: by steps, or by time with a time budget."""
        if self.problem.time_budget is None:
            return self.n_steps / n_total
        seconds_used = self._seconds - self.problem.seconds_left
        return max(self.n_steps / (20 * n_total), seconds_used / self._for_steps)

    def _split(self, threads: int) -> NDArray[np.int8]:
        """Assign the classes to the threads: close ones together, with another boundary each round."""
        classes = self.classes
        side = classes.side
        if threads == 1:
            side[:] = 0
        else:
            (order,) = self.space.orders(self.rng, 1)
            position = np.empty(len(order), np.int64)
            position[order] = np.arange(len(order))
            nonempty = np.flatnonzero(classes.first >= 0)
            positions = position[self.atoms.tuple_of[classes.first[nonempty]]]
            side[:] = np.arange(len(side)) % 2
            side[nonempty] = positions > np.median(positions)
        problem = self.problem
        side[STARS] = LOCKED if problem.limit == 0 or problem.keep_suppressed else 0
        return side.copy()

    def _judge(self, log: Log, n_proposals: int, sides: NDArray[np.int8]) -> None:
        """Keep the proposals in which every class passes, undo the others."""
        if not n_proposals:
            return
        ends = log.ends[:n_proposals]
        touched = log.touched[: ends[-1, 1]]
        proposal_of = np.repeat(np.arange(n_proposals), np.diff(ends[:, 1], prepend=0))
        is_changed = (self.classes.n_atoms[touched] > 0) & (touched != STARS)
        number = np.full(len(self.classes.first), -1, np.int64)
        number[touched[is_changed]] = np.arange(is_changed.sum())
        class_of = number[self.classes.class_of]
        atoms = np.flatnonzero(class_of >= 0)
        classes = class_table(
            self.problem.table, self.row[atoms], self.atoms.weights[atoms], class_of[atoms], int(is_changed.sum())
        )
        failed = np.zeros(n_proposals, np.bool_)
        failed[proposal_of[is_changed][~passing(self.problem, classes)]] = True
        settle(self.atoms, self.classes, log, ends, failed)
        self.classes.side[touched] = sides[touched]

    @property
    def loss(self) -> float:
        """The objective, or its stand-in, of the current classes."""
        classes = self.classes
        sums = self.space.sums(classes.box, classes.n_records)
        return self.space.published_loss(sums)

    @property
    def partition(self) -> Partition:
        """Return the current classes as a partition of the table's rows."""
        pairs = np.column_stack([self.row, self.classes.class_of])
        keys, class_of = np.unique(pairs, axis=0, return_inverse=True)
        counts = sum_by_class(self.atoms.weights, class_of.ravel().astype(np.int64), len(keys))
        is_kept = keys[:, 1] != STARS
        numbers = np.full(len(keys), SUPPRESSED, np.int64)
        numbers[is_kept] = np.unique(keys[is_kept, 1], return_inverse=True)[1]
        return Partition(keys[:, 0], counts, numbers)


def _kinds(problem: Problem) -> NDArray[np.int64]:
    """Return per row what a class should have many of: persons, or values of a judged sensitive column."""
    table = problem.table
    histogram = table.entities
    if histogram is None:
        judged = [model.column for model in problem.models if isinstance(model, SensitiveModel)]
        column = next((name for name in table.sensitive if name in judged or None in judged), None)
        histogram = None if column is None else table.sensitive[column]
    if histogram is None:
        return np.zeros(table.n_classes, np.int64)
    return histogram.values[histogram.starts[:-1]].astype(np.int64)  # a row has one


def _emptied(n_atoms: int, n_classes: int, problem: Problem, k: int, n_words: int) -> LinkedClasses:
    max_classes = max(n_classes, problem.n_records // k) + 2 * SPARE + 1
    nobody, zeros = np.full(n_atoms, -1, np.int64), np.zeros(max_classes, np.int64)
    return LinkedClasses(
        nobody, nobody.copy(), nobody.copy(), np.full(max_classes, -1, np.int64), zeros, zeros.copy(),
        np.zeros((max_classes, n_words), np.uint32), np.zeros(max_classes), np.zeros(max_classes, np.int8),
    )  # fmt: skip


def _log(n_classes: int, n_words: int, k: int, n_proposals: int) -> Log:
    n = 8_192 + 64 * k
    return Log(
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n),
        np.empty(2 * n, np.int64), np.empty((2 * n, n_words), np.uint32),
        np.zeros(n_classes, np.int64), np.empty((n_proposals, 2), np.int64), np.zeros(4, np.int64),
        np.empty(n_classes, np.int64),
    )  # fmt: skip
