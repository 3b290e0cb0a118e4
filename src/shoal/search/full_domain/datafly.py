"""Datafly: generalize the column with the most distinct values until few enough records fail.

L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5), 2002.
Needs  a k-anonymity requirement; classes that fail any other model count as occurring too rarely.
Finds  a release that satisfies the requirements; neither the paper nor this module claims minimality.
Costs  at most one grouping per step up the lattice.

Steps 2-5 of the paper: generalize while the sequences that occur less than k times account for more than k tuples;
suppress the rest; "enforce the k requirement on suppressed tuples": if fewer than k records were suppressed, another
class is suppressed as well, so that at least k records are suppressed. The paper stops at k records and knows no
``max_suppression``: a larger one does not make it stop earlier, unlike in other implementations.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError, PolicyError
from shoal.models.size import KAnonymity
from shoal.recoding import Recoding
from shoal.search.full_domain.lattice import moved_to_level
from shoal.search.problem import Evaluation, Problem


def datafly(problem: Problem) -> Recoding:
    """Run the published loop; it continues if the policy allows fewer suppressed records than the paper does."""
    k = _k(problem)
    node = problem.lattice.ground
    while True:
        evaluation = problem.evaluate(node)
        if evaluation.n_suppressed <= k:
            enforced = problem.judged(evaluation.table, _enforced(evaluation, k), evaluation.lost, evaluation.n_lost)
            if enforced.feasible:
                return problem.recoding(enforced, "datafly", proved=False)
        column = _most_distinct(problem, evaluation)
        if column is None:
            raise problem.infeasible() if problem.monotone else _past_the_answer(problem)
        node = moved_to_level(node, column, node[column] + 1)
        problem.progress("generalizing", sum(node) / problem.lattice.height)


def _past_the_answer(problem: Problem) -> InfeasibleError:
    """Return the error; if failing at the top proves nothing about the nodes below, it claims no more than that."""
    return InfeasibleError(
        f"algorithm 'datafly' found no release with at most {problem.limit} of {problem.table.n_records} records "
        f"suppressed: it reached the highest levels and does not backtrack",
        "use algorithm 'optimal', which misses no answer",
    )


def _k(problem: Problem) -> int:
    sizes = [model.k for model in problem.models if isinstance(model, KAnonymity)]
    if not sizes:
        raise PolicyError("algorithm 'datafly' needs a k-anonymity requirement", "add one, or use algorithm 'optimal'")
    if problem.cascades or problem.of_release:
        raise PolicyError(
            "algorithm 'datafly' supports neither nulls = 'wildcard' "
            "nor several sets of columns nor limits on the release as a whole",
            "use algorithm 'optimal'",
        )
    return max(sizes)


def _most_distinct(problem: Problem, evaluation: Evaluation) -> int | None:
    """Return the column with the most distinct values that can still be generalized; the first one if several tie."""
    codes = evaluation.table.codes
    distinct = [
        (len(np.unique(codes[:, j])), -j)
        for j, level in enumerate(evaluation.node)
        if level < problem.lattice.heights[j] and problem.admits(moved_to_level(evaluation.node, j, level + 1))
    ]
    return -max(distinct)[1] if distinct else None


def _enforced(evaluation: Evaluation, k: int) -> NDArray[np.bool_]:
    """Step 4: suppress no records or at least k, by adding the smallest classes that suffice."""
    failing = evaluation.failing.copy()
    counts = evaluation.table.counts
    for i in np.lexsort((*evaluation.table.codes.T[::-1], counts)):
        if not 0 < counts[failing].sum() < k:
            break
        failing[i] = True
    return failing
