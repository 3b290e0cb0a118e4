"""Exhaustive: every node of the lattice. The oracle that the other searches are held against.

Needs  nothing: any model, any objective.
Finds  a node of least cost; among equals the lowest, then the one with the least levels.
Costs  one grouping per node.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.full_domain.best import Best
from shoal.search.problem import Problem


def exhaustive(problem: Problem) -> Recoding:
    """Look at every node."""
    best = Best()
    for i, node in enumerate(problem.lattice):
        if problem.out_of_time:
            return _unproved(problem, best)
        seen = problem.evaluate(node)
        if seen.feasible:
            best.offer(problem.objective.value(seen), seen)
        problem.progress("looking at every node", (i + 1) / problem.lattice.n_nodes)
    if best.seen is None:
        raise problem.infeasible()
    return problem.best_node(best.seen, "exhaustive", proved=True)


def _unproved(problem: Problem, best: Best) -> Recoding:
    """The best so far; of the nodes not looked at it is only known what their levels cost."""
    if best.seen is None:
        raise problem.unfinished()
    return problem.best_node(best.seen, "exhaustive", proved=False, bound=problem.cost_of_ground)
