"""Suppress records: no value is generalized, and the records of classes that fail are suppressed (_TS).

_TS in the taxonomy of Ciriani, De Capitani di Vimercati, Foresti, Samarati, "k-Anonymity", 2007.
Needs  nothing: any models, nulls that match anything, a population.
Finds  the smallest number of suppressed records, with equal records together: a class that fails at the ground must be
       suppressed in any case, and once all of them are suppressed the others pass. If suppressed records stay as a
       class of stars that does not pass, the fewest additional records are suppressed.
Costs  one grouping; for stars, one evaluation per set of additional classes, a single one if the models are absorbing.
"""

from __future__ import annotations

import heapq

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError
from shoal.recoding import Recoding
from shoal.search.cells.star_levels import cells_count
from shoal.search.problem import Evaluation, Problem

LOOKS = 2000  # sets of additional classes tried as stars, in the order of their records


def suppress_records(problem: Problem) -> Recoding:
    """Suppress the classes that fail at the ground node."""
    evaluation = problem.evaluate(problem.lattice.ground)
    # Stars are handled below. Otherwise, if there is a choice, the solution is valid but no claim is made.
    exact = not problem.of_release and not (problem.cascades and problem.convex)
    if evaluation.feasible:
        claim = "no fewer records can be suppressed" if exact else ""
        return problem.recoding(evaluation, "suppress_records", proved=exact, claim=claim)
    n = problem.table.n_records
    if exact and (evaluation.n_suppressed > problem.limit or evaluation.n_suppressed == n):
        raise InfeasibleError(
            f"suppressing records does not satisfy {_requirements(problem)}: {evaluation.n_suppressed} of {n} records "
            f"fail, but at most {min(problem.limit, n - 1)} may be suppressed",
            "raise max_suppression, or use algorithm 'optimal', which generalizes too",
        )
    if exact and problem.keep_suppressed and not problem.cascades and problem.people is None:
        return _with_others(problem, evaluation)
    raise InfeasibleError(
        f"algorithm 'suppress_records' found no records whose suppression satisfies {_requirements(problem)}",
        "use algorithm 'optimal', which generalizes too",
    )


def _requirements(problem: Problem) -> str:
    return ", ".join(model.summary for model in problem.asked)


def _with_others(problem: Problem, evaluation: Evaluation) -> Recoding:
    """If the stars do not pass as a class, try sets of additional classes by the number of their records.

    Under absorbing models, any passing class makes the stars pass, so the smallest one is the solution.
    """
    counts = evaluation.table.counts
    passing = np.flatnonzero(~evaluation.failing)
    passing = passing[np.lexsort((*evaluation.table.codes[passing].T[::-1], counts[passing]))]
    sizes = counts[passing].tolist()
    room = problem.limit - evaluation.n_suppressed
    heap: list[tuple[int, tuple[int, ...]]] = [(sizes[0], (0,))] if sizes else []
    looks = 0
    while heap and heap[0][0] <= room and looks < LOOKS and not problem.out_of_time:
        size, chosen = heapq.heappop(heap)
        looks += 1
        tried = _judged(problem, evaluation, passing[list(chosen)])
        if tried.feasible:
            claim = "no fewer records can be suppressed so that the suppressed ones pass as a class"
            return problem.recoding(tried, "suppress_records", proved=cells_count(problem), claim=claim)
        last = chosen[-1] + 1
        if last < len(sizes):  # each set is reached once: by adding its last class, or by advancing it
            heapq.heappush(heap, (size + sizes[last], (*chosen, last)))
            heapq.heappush(heap, (size - sizes[last - 1] + sizes[last], (*chosen[:-1], last)))
        problem.progress("looking for classes to suppress with the others", looks / LOOKS)
    if heap and heap[0][0] <= room:
        return _with_the_smallest(problem, evaluation, passing)
    raise InfeasibleError(
        f"suppressing records does not satisfy {_requirements(problem)}: {evaluation.n_suppressed} records must be "
        f"suppressed, but neither they alone nor with others, at most {problem.limit} in total, pass as a class",
        "raise max_suppression, choose suppressed = \"drop\", or use algorithm 'optimal', which generalizes too",
    )


def _with_the_smallest(problem: Problem, evaluation: Evaluation, passing: NDArray[np.int64]) -> Recoding:
    """If there are too many sets to try, add the smallest classes one by one; the result is valid but not minimal."""
    for n_more in range(1, len(passing)):
        tried = _judged(problem, evaluation, passing[:n_more])
        if tried.feasible:
            return problem.recoding(tried, "suppress_records", proved=False)
        if tried.n_suppressed > problem.limit:
            break
    raise InfeasibleError(
        f"algorithm 'suppress_records' found no class of stars that satisfies {_requirements(problem)}, "
        f"after {LOOKS} sets of classes",
        "choose suppressed = \"drop\", or use algorithm 'optimal', which generalizes too",
    )


def _judged(problem: Problem, evaluation: Evaluation, added_classes: NDArray[np.int64]) -> Evaluation:
    failing = evaluation.failing.copy()
    failing[added_classes] = True
    return problem.judged(evaluation.table, failing, evaluation.lost, evaluation.n_lost)
