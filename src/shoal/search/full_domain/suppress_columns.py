"""Suppress columns: every column as it is, or hidden altogether (_AS).

The taxonomy of Ciriani, De Capitani di Vimercati, Foresti, Samarati, "k-Anonymity", 2007, in which this is _AS.
Needs  nothing: any models, any objective.
Finds  the set of hidden columns that costs least, proved. Records are suppressed too where the policy allows it;
       with ``max_suppression = 0``, the default, only columns are.
Costs  2^q nodes at worst; the bounds of ``optimal``, on the lattice of the lowest and the highest levels alone, leave
       a small share of them as a rule.

A column that ``max_level`` keeps from its top cannot be hidden, and stays as it is.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.errors import InfeasibleError
from shoal.recoding import FullDomain, Recoding
from shoal.search.cells.star_levels import levels_of, with_levels
from shoal.search.full_domain.optimal import optimal
from shoal.search.problem import Problem


def suppress_columns(problem: Problem) -> Recoding:
    """The optimal node of the lattice that has no levels in between."""
    levels = levels_of(problem, problem.lattice.ground)
    narrowed = with_levels(problem, levels)
    try:
        found = optimal(narrowed)
    except InfeasibleError:
        asked = ", ".join(model.asked for model in problem.asked)
        raise InfeasibleError(
            f"hiding whole columns among {', '.join(problem.table.columns)} does not satisfy {asked} "
            f"with at most {problem.limit} of {problem.table.n_records} records suppressed",
            "relax the requirements, raise max_suppression, or use algorithm 'optimal', which generalizes too",
        ) from None
    if not isinstance(found, FullDomain):
        raise TypeError("the answer of 'optimal' is a node")
    node = tuple(of[level] for of, level in zip(levels, found.node, strict=True))
    return replace(found, hierarchies=problem.table.hierarchies, node=node, algorithm="suppress_columns")
