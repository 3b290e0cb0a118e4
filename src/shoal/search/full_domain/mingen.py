"""MinGen: evaluate every generalization, keep those that satisfy, and choose one with minimal distortion.

L. Sweeney, "Achieving k-anonymity privacy protection using generalization and suppression", IJUFKS 10(5), 2002.
Needs  nothing: any model, any objective.
Finds  a k-minimal distortion. The paper measures distortion by Prec, so ``objective = "precision"`` is MinGen as
       published; any other objective is used as the distortion.
Costs  one evaluation if the original table already satisfies, otherwise one per node.

It differs from ``exhaustive`` in two ways: as in the paper's first step, a table that already satisfies is released
unchanged; and it counts all minimal distortions among which the solution was chosen. The preference is that of all
searches: the lowest node, then the smallest levels.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.prefetch import Prefetcher
from shoal.search.problem import Problem


def mingen(problem: Problem) -> Recoding:
    """Run steps 1 and 2 of the paper."""
    best, ahead = Best(), Prefetcher(problem)
    ahead.expect(problem.lattice)
    distortions: list[float] = []  # of the generalizations that satisfy
    finished = True
    for i, node in enumerate(problem.lattice):
        if problem.out_of_time:
            finished = False
            break
        evaluation, value, _ = ahead.at(node)
        if evaluation.feasible:
            distortions.append(value)
            best.offer(value, evaluation)
        if i == 0 and evaluation.feasible and not evaluation.n_suppressed:
            return problem.recoding(evaluation, "mingen", proved=True, claim="the table satisfies as it is")
        problem.progress("making every generalization", (i + 1) / problem.lattice.n_nodes)
    if best.evaluation is None:
        raise problem.infeasible() if finished else problem.unfinished()
    if not finished:
        return problem.best_node(best.evaluation, "mingen", proved=False, bound=problem.cost_of_ground)
    minimal = sum(distortion <= best.value + best.slack for distortion in distortions)
    claim = f"{len(distortions)} generalizations satisfy the policy, {minimal} of them with this smallest distortion"
    return problem.best_node(best.evaluation, "mingen", proved=True, claim=claim)
