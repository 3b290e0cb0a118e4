"""The best node so far, with ties broken the same way by every search."""

from __future__ import annotations

import math

from shoal.search.full_domain.lattice import Node
from shoal.search.problem import Evaluation


class Best:
    """Least cost; among equals the lowest node, then the one with the least levels: the same answer everywhere."""

    def __init__(self) -> None:
        self.value = math.inf
        self.slack = 0.0  # costs this near are equal: they are sums of floats in different orders
        self.seen: Evaluation | None = None

    def offer(self, value: float, seen: Evaluation) -> None:
        """Take a feasible node if it is better."""
        if self.seen is None or value < self.value - self.slack:
            self.value, self.seen = value, seen
        elif value <= self.value + self.slack and rank(seen.node) < rank(self.seen.node):
            self.value, self.seen = min(value, self.value), seen
        self.slack = 1e-11 * max(1.0, abs(self.value))

    def excludes(self, bound: float, node: Node) -> bool:
        """Whether a node that costs at least ``bound`` can no longer win."""
        if self.seen is None or bound < self.value - self.slack:
            return False
        return bound > self.value + self.slack or rank(node) >= rank(self.seen.node)


def rank(node: Node) -> tuple[int, Node]:
    """The order among nodes of equal cost."""
    return sum(node), node
