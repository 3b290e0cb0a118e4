"""Exhaustive: evaluate every node of the lattice. Tests compare the other searches with it.

Needs  nothing: any model, any objective.
Finds  a node of smallest cost; ties go to the lowest node, then to the smallest levels.
Costs  one grouping per node.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.prefetch import Prefetcher
from shoal.search.problem import Problem


def exhaustive(problem: Problem) -> Recoding:
    """Evaluate every node of the lattice."""
    best, ahead = Best(), Prefetcher(problem)
    ahead.expect(problem.lattice)
    for i, node in enumerate(problem.lattice):
        if problem.out_of_time:
            return _unproved(problem, best)
        evaluation, value, _ = ahead.at(node)
        if evaluation.feasible:
            best.offer(value, evaluation)
        problem.progress("looking at every node", (i + 1) / problem.lattice.n_nodes)
    if best.evaluation is None:
        raise problem.infeasible()
    return problem.best_node(best.evaluation, "exhaustive", proved=True)


def _unproved(problem: Problem, best: Best) -> Recoding:
    """Return the best node so far; for unvisited nodes, only the cost of their levels is known."""
    if best.evaluation is None:
        raise problem.unfinished()
    return problem.best_node(best.evaluation, "exhaustive", proved=False, bound=problem.cost_of_ground)
