"""The start of ``local``: the best of several solutions, fastest first.

Mondrian by gain takes a fraction of a second for 100,000 tuples and is completed even with a very short time budget, so
that there is a useful solution. The others begin only while time is left, and end early to leave time for the steps:
relaxed Mondrian, a cover of the lattice if more is required than a size, the optimum of a lattice that is small enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shoal.compiled.grouping import group
from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.models.size import KAnonymity
from shoal.recoding import Cells, Recoding
from shoal.search.cells.classes import SUPPRESSED, Partition, holds, passing, recoding_of_partition, released
from shoal.search.cells.mondrian import mondrian, mondrian_relaxed
from shoal.search.full_domain.optimal import optimal
from shoal.search.local.boxes import Space
from shoal.search.local.node_cover import first_cover
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Problem
from shoal.tables.frequency import FrequencyTable, packed
from shoal.tables.values import TIGHT
from shoal.tables.windows import FIXED

PART = 1 / 3  # of the time that is left, which one way to start may take
NEXT_START = 0.9  # of the time that the first one took, which another needs until its solution is written
WORK = 300_000_000  # tuples times nodes of a lattice up to which its optimum is looked for
JUDGED = 10  # times as much work is a node where classes are judged by more than their size


@dataclass(frozen=True, eq=False)
class Solution:
    """A partition, what its cells cover, and its loss."""

    problem: Problem
    partition: Partition
    covered: Cells  # without the texts of ranges and sets
    loss: float
    seconds: float  # that it took to compute them, where time is given

    @classmethod
    def of(cls, problem: Problem, partition: Partition) -> Solution:
        """Compute the loss of a partition."""
        before = problem.seconds_left
        covered = recoding_of_partition(problem, partition, "local", written=False)
        loss = loss_of(problem, covered.values, covered.became, problem.objective_name)
        seconds = 0.0 if problem.time_budget is None else before - problem.seconds_left
        return cls(problem, partition, covered, loss, seconds)

    @cached_property
    def recoding(self) -> Cells:
        """Return the recoding with all texts."""
        if not {*FIXED, *TIGHT} & set(self.problem.cells):
            return self.covered
        return recoding_of_partition(self.problem, self.partition, "local")

    @property
    def holds(self) -> bool:
        """Return whether it may be released; classes that look the same are judged as one."""
        problem = self.problem
        if not holds(problem, self.partition):
            return False
        alike = all(model.unions_pass for model in problem.models)
        return alike or bool(passing(problem, released(problem, self.covered)).all())


def first_answer(problem: Problem) -> Solution:
    """Return Mondrian by gain; if all records together fail, the lattice solution, which may suppress records."""
    together = _whole(problem).classes(problem.table)
    if passing(problem, together).all():
        starts = _attempts([lambda: [_split(problem)], lambda: [_whole(problem)]])
    else:
        starts = iter([partition_of(_of_the_lattice(problem, together), problem)])
    solution = next((answer for start in starts if (answer := Solution.of(problem, start)).holds), None)
    if solution is None:
        raise InfeasibleError(
            "algorithm 'local' found no release to start from: classes that pass look alike, and fail together",
            "use algorithm 'optimal'",
        )
    return solution


def best_start(problem: Problem, space: Space, first: Solution, took: float = 0.0) -> Solution:
    """Return the best of the first solution and those that can be completed in time.

    The first one ``took`` so many seconds. Another begins only if about as many are left: it can be divided into less
    time, but not the work before and after it.
    """
    if not passing(problem, _whole(problem).classes(problem.table)).all():
        return first

    def in_part() -> Problem:
        return problem.given(PART * problem.seconds_left)

    def relaxed(by: str) -> Callable[[], Iterable[Partition]]:
        return lambda: [partition_of(mondrian_relaxed(in_part(), dimension=by, written=False), problem)]

    def covered() -> Iterable[Partition]:
        cover = None if sizes_decide(problem) else first_cover(in_part(), space)
        return [] if cover is None else [cover]

    def of_the_lattice() -> Iterable[Partition]:
        work = problem.lattice.n_nodes * problem.table.n_classes
        if work * (1 if sizes_decide(problem) else JUDGED) > WORK:
            return []
        return [partition_of(optimal(in_part()), problem)]

    best = first
    ways = [relaxed("gain"), covered, relaxed("range"), of_the_lattice]
    for start in _attempts(way for way in ways if problem.seconds_left >= NEXT_START * took):
        answer = Solution.of(problem, start)
        if answer.loss < best.loss and answer.holds:
            best = answer
        if problem.out_of_time:
            break
    return best


def _attempts(ways: Iterable[Callable[[], Iterable[Partition]]]) -> Iterator[Partition]:
    """Yield what each method finds; skip methods that find nothing, or not in time."""
    for way in ways:
        try:
            yield from way()
        except (InfeasibleError, OutOfTimeError):
            continue


def _split(problem: Problem) -> Partition:
    return partition_of(mondrian(problem.given(None), dimension="gain", written=False), problem)


def _whole(problem: Problem) -> Partition:
    return Partition.of_rows(problem.table, np.zeros(problem.table.n_classes, np.int64))


def _of_the_lattice(problem: Problem, together: FrequencyTable) -> Recoding:
    try:
        return optimal(problem)
    except InfeasibleError as error:
        # A table that fails an absorbing model fails it in every part too, whichever records are suppressed.
        if problem.monotone or not all(model.passes(together).all() for model in problem.absorbing):
            raise
        raise InfeasibleError(
            f"algorithm 'local' found no release: the {problem.n_records} records fail as one class, and no node of "
            f"the lattice satisfies with at most {problem.limit} of them suppressed",
            "relax the requirements, or allow more suppression",
        ) from error


def partition_of(answer: Recoding, problem: Problem) -> Partition:
    """Return the partition of a solution."""
    parts = answer.parts(problem.table)
    class_of = np.full(len(parts.row), SUPPRESSED, np.int64)
    is_kept = ~parts.suppressed
    class_of[is_kept] = group(packed(parts.codes[is_kept]))[0]
    return Partition(parts.row, parts.counts, class_of)


def sizes_decide(problem: Problem) -> bool:
    """Return whether every class of at least k records passes."""
    return all(isinstance(model, KAnonymity) for model in problem.models) and problem.table.entities is None
