"""Samarati: binary search on the height of the generalization lattice.

P. Samarati, "Protecting respondents' identities in microdata release", TKDE 13(6), 2001.
Needs  monotone verdicts: absorbing models, or convex ones if nothing may be suppressed.
Finds  a node of minimal height, counted in steps over the levels that the policy allows; among those, the smallest
       objective (the paper leaves the choice to preferences, see ``k_minimal``). Optimality is proved only if the
       objective is this height.
Costs  at most ⌈log2(height + 1)⌉ layers of nodes, then the rest of the solution's layer.

If no node of a height satisfies, none of a smaller height does. Other conditions (stars that pass as a class, an order
of the columns) can rule out the satisfying nodes of that height; then the next heights are searched.
"""

from __future__ import annotations

from shoal.errors import OutOfTimeError
from shoal.recoding import Recoding
from shoal.search.full_domain.monotone import VerdictCache
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Evaluation, Problem


def samarati(problem: Problem) -> Recoding:
    """Return the best node of the lowest layer with a solution."""
    verdicts = VerdictCache(problem, "samarati")
    try:
        evaluation = _lowest(verdicts)
    except OutOfTimeError:
        return verdicts.so_far()
    claim = "no generalization of smaller height satisfies the policy"
    return verdicts.answer(evaluation, proved=_height_is_the_objective(problem), claim=claim)


def _lowest(verdicts: VerdictCache) -> Evaluation | None:
    lattice = verdicts.problem.lattice
    if not verdicts.satisfies(lattice.top):
        return None
    low, high = 0, lattice.height  # no node below `low` satisfies; some node at `high` does
    while low < high:
        middle = (low + high) // 2
        verdicts.expect(lattice.layer(middle))
        if any(map(verdicts.satisfies, lattice.layer(middle))):
            high = middle
        else:
            low = middle + 1
        verdicts.problem.progress("halving the heights", 1 - (high - low) / lattice.height)
    for height in range(low, lattice.height + 1):
        verdicts.expect(lattice.layer(height))
        if (evaluation := verdicts.cheapest(lattice.layer(height))) is not None:
            return evaluation
    return None


def _height_is_the_objective(problem: Problem) -> bool:
    """Return whether each step up costs the same: no weights, and no level skipped."""
    steps = {h.number(i + 1) - h.number(i) for h in problem.table.hierarchies for i in range(h.height)}
    return isinstance(problem.objective, HeightLoss) and len(set(problem.weights)) == 1 and steps <= {1}
