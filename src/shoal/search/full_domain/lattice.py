"""Nodes, layers and neighbours of the generalization lattice.

A node is one level per column; node ``a`` lies below ``b`` if no level of ``a`` exceeds that of ``b``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

Node = tuple[int, ...]


@dataclass(frozen=True)
class Lattice:
    """All combinations of levels, from the ground (nothing generalized) to the top (everything)."""

    heights: tuple[int, ...]  # the highest level of each column

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of levels per column: the shape of an array with one cell per node."""
        return tuple(h + 1 for h in self.heights)

    @property
    def ground(self) -> Node:
        """The bottom node, with nothing generalized."""
        return (0,) * len(self.heights)

    @property
    def top(self) -> Node:
        """The top node, with everything generalized."""
        return self.heights

    @property
    def height(self) -> int:
        """The height of the top: the sum of its levels."""
        return sum(self.heights)

    @property
    def n_nodes(self) -> int:
        """The number of nodes; ``len`` could not return numbers beyond 2^63."""
        return math.prod(self.shape)

    def __iter__(self) -> Iterator[Node]:
        """Yield every node, in the order of its levels."""
        return itertools.product(*(range(n) for n in self.shape))

    def layer(self, height: int) -> Iterator[Node]:
        """Yield the nodes whose levels sum to ``height``."""

        def fill(column: int, rest: int) -> Iterator[Node]:
            if column == len(self.heights):
                if rest == 0:
                    yield ()
                return
            above = sum(self.heights[column + 1 :])
            for level in range(max(0, rest - above), min(self.heights[column], rest) + 1):
                for tail in fill(column + 1, rest - level):
                    yield (level, *tail)

        return fill(0, height)

    def successors(self, node: Node) -> Iterator[Node]:
        """Yield the nodes that are one step more general."""
        for j, level in enumerate(node):
            if level < self.heights[j]:
                yield moved_to_level(node, j, level + 1)


def below(a: Node, b: Node) -> bool:
    """Return whether ``a`` is at most as general as ``b`` in every column."""
    return all(x <= y for x, y in zip(a, b, strict=True))


def moved_to_level(node: Node, j: int, level: int) -> Node:
    """Return the node with another level in column ``j``."""
    return (*node[:j], level, *node[j + 1 :])
