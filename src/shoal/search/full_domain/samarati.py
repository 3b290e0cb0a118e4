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
from shoal.search.full_domain.monotone import Looks
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Evaluation, Problem


def samarati(problem: Problem) -> Recoding:
    """Return the best node of the lowest layer with a solution."""
    looks = Looks(problem, "samarati")
    try:
        evaluation = _lowest(looks)
    except OutOfTimeError:
        return looks.so_far()
    claim = "no generalization of smaller height satisfies the policy"
    return looks.answer(evaluation, proved=_height_is_the_objective(problem), claim=claim)


def _lowest(looks: Looks) -> Evaluation | None:
    lattice = looks.problem.lattice
    if not looks.satisfies(lattice.top):
        return None
    low, high = 0, lattice.height  # no node below `low` satisfies; some node at `high` does
    while low < high:
        middle = (low + high) // 2
        looks.expect(lattice.layer(middle))
        if any(map(looks.satisfies, lattice.layer(middle))):
            high = middle
        else:
            low = middle + 1
        looks.problem.progress("halving the heights", 1 - (high - low) / lattice.height)
    for height in range(low, lattice.height + 1):
        looks.expect(lattice.layer(height))
        if (evaluation := looks.cheapest(lattice.layer(height))) is not None:
            return evaluation
    return None


def _height_is_the_objective(problem: Problem) -> bool:
    """Return whether each step up costs the same: no weights, and no level skipped."""
    steps = {h.number(i + 1) - h.number(i) for h in problem.table.hierarchies for i in range(h.height)}
    return isinstance(problem.objective, HeightLoss) and len(set(problem.weights)) == 1 and steps <= {1}
