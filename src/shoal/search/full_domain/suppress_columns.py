"""Suppress columns: every column stays unchanged or is hidden completely (_AS).

_AS in the taxonomy of Ciriani, De Capitani di Vimercati, Foresti, Samarati, "k-Anonymity", 2007.
Needs  nothing: any models, any objective.
Finds  the set of hidden columns with the smallest loss, proved. Records are suppressed too if the policy allows it;
       with ``max_suppression = 0``, the default, only columns are.
Costs  2^q nodes in the worst case; the bounds of ``optimal``, on the lattice of the lowest and highest levels only,
       usually leave a small share of them.

A column whose ``max_level`` is below its top cannot be hidden and stays unchanged.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.errors import InfeasibleError
from shoal.recoding import FullDomain, Recoding
from shoal.search.cells.star_levels import levels_of, with_levels
from shoal.search.full_domain.optimal import optimal
from shoal.search.problem import Problem


def suppress_columns(problem: Problem) -> Recoding:
    """Return the optimal node of the lattice without intermediate levels."""
    levels = levels_of(problem, problem.lattice.ground)
    narrowed = with_levels(problem, levels)
    try:
        solution = optimal(narrowed)
    except InfeasibleError:
        requirements = ", ".join(model.summary for model in problem.asked)
        raise InfeasibleError(
            f"hiding whole columns among {', '.join(problem.table.columns)} does not satisfy {requirements} "
            f"with at most {problem.limit} of {problem.table.n_records} records suppressed",
            "relax the requirements, raise max_suppression, or use algorithm 'optimal', which generalizes too",
        ) from None
    if not isinstance(solution, FullDomain):
        raise TypeError("the answer of 'optimal' is a node")
    node = tuple(column_levels[level] for column_levels, level in zip(levels, solution.node, strict=True))
    return replace(solution, hierarchies=problem.table.hierarchies, node=node, algorithm="suppress_columns")
