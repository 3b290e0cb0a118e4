"""The best node found so far; every search breaks ties the same way."""

from __future__ import annotations

import math

from shoal.search.full_domain.lattice import Node
from shoal.search.problem import Evaluation


class Best:
    """The node of smallest cost; ties go to the lowest node, then to the smallest levels, in every search."""

    def __init__(self) -> None:
        self.value = math.inf
        self.slack = 0.0  # costs this close are equal: they are sums of floats in different orders
        self.evaluation: Evaluation | None = None

    def offer(self, value: float, evaluation: Evaluation) -> None:
        """Keep a feasible node if it is better."""
        if self.evaluation is None or value < self.value - self.slack:
            self.value, self.evaluation = value, evaluation
        elif value <= self.value + self.slack and tie_break(evaluation.node) < tie_break(self.evaluation.node):
            self.value, self.evaluation = min(value, self.value), evaluation
        self.slack = 1e-11 * max(1.0, abs(self.value))

    def excludes(self, bound: float, node: Node) -> bool:
        """Return whether a node that costs at least ``bound`` can no longer be the best."""
        if self.evaluation is None or bound < self.value - self.slack:
            return False
        return bound > self.value + self.slack or tie_break(node) >= tie_break(self.evaluation.node)


def tie_break(node: Node) -> tuple[int, Node]:
    """Return the sort key among nodes of equal cost."""
    return sum(node), node
