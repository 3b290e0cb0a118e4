"""k-minimal generalizations with suppression: all of them, with the figures that Samarati's preferences compare.

P. Samarati, "Protecting respondents' identities in microdata release", TKDE 13(6), 2001.
Needs  monotone verdicts: absorbing models, or convex ones if nothing may be suppressed.
Finds  every generalization that satisfies the policy, suppresses no more than its levels require, and lies above no
       other such generalization (``minimal_nodes``). The search returns the first by the policy's preference; among
       ties, the one with the smallest objective. Optimality is proved only if the objective is the absolute distance.
Costs  as ``ola``, which finds the nodes.

Distances count levels of the whole hierarchies, including levels that the policy excludes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from shoal.errors import OutOfTimeError
from shoal.recoding import Recoding
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.monotone import VerdictCache
from shoal.search.full_domain.ola import minimal
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Evaluation, Problem

Vector = tuple[int, ...]  # a level of the whole hierarchy per column


@dataclass(frozen=True)
class Minimal:
    """A k-minimal generalization with its distances."""

    node: Node  # levels as numbered in the lattice
    distance: Vector  # from the original table
    relative: Fraction  # Σ level / height of the hierarchy
    classes: int  # distinct tuples kept
    suppressed: int  # records

    @property
    def height(self) -> int:
        """The absolute distance: the sum of the levels."""
        return sum(self.distance)


PREFERENCES: dict[str, Callable[[Minimal], Fraction | int]] = {
    "least-absolute": lambda node: node.height,
    "least-relative": lambda node: node.relative,
    "maximum-distribution": lambda node: -node.classes,
    "least-suppression": lambda node: node.suppressed,
}


_FIRST = {
    "least-absolute": "has a smaller distance",
    "least-relative": "has a smaller relative distance",
    "maximum-distribution": "has more distinct tuples",
    "least-suppression": "suppresses fewer records",
}


def search_k_minimal(problem: Problem) -> Recoding:
    """Return the k-minimal generalization that the policy prefers."""
    verdicts = VerdictCache(problem, "k_minimal")
    try:
        minimal_nodes = _described(verdicts)
    except OutOfTimeError:
        return verdicts.so_far()
    nearest = [chosen.node for chosen in preferred(minimal_nodes, problem.terms.preference)]
    claim = f"of the {len(minimal_nodes)} k-minimal generalizations none {_FIRST[problem.terms.preference]}"
    is_objective = isinstance(problem.objective, HeightLoss) and len(set(problem.weights)) == 1
    is_objective &= problem.terms.preference == "least-absolute"
    return verdicts.answer(verdicts.cheapest(nearest), proved=is_objective, claim=claim)


def minimal_nodes(problem: Problem) -> list[Minimal]:
    """List every k-minimal generalization, lowest first; empty if no node satisfies."""
    return _described(VerdictCache(problem, "k_minimal"))


def preferred(candidates: Iterable[Minimal], preference: str) -> list[Minimal]:
    """Return the generalizations that a preference ranks first; several if they tie."""
    ranked = [(PREFERENCES[preference](candidate), candidate) for candidate in candidates]
    best_value = min((value for value, _ in ranked), default=0)
    return [candidate for value, candidate in ranked if value == best_value]


def _described(verdicts: VerdictCache) -> list[Minimal]:
    return [_minimal_of(verdicts.problem, verdicts.again(node)) for node in minimal(verdicts)]


def _minimal_of(problem: Problem, evaluation: Evaluation) -> Minimal:
    levels = list(zip(problem.table.hierarchies, evaluation.node, strict=True))
    return Minimal(
        evaluation.node,
        tuple(h.number(level) for h, level in levels),
        sum((Fraction(h.number(level), max(1, h.number_of_top)) for h, level in levels), Fraction(0)),
        int((~evaluation.failing).sum()),
        evaluation.n_suppressed,
    )
