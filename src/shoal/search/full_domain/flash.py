"""Flash: binary search along greedy paths up the lattice, in a fixed order; verdicts tag all nodes that they decide.

F. Kohlmayer, F. Prasser, C. Eckert, A. Kemper, K. A. Kuhn, "Flash: efficient, stable and optimal k-anonymity",
PASSAT 2012.
Needs  monotone verdicts: absorbing models, or convex ones if nothing may be suppressed.
Finds  the node with the smallest objective, proved.
Costs  about the logarithm of the height per path; then one evaluation per node that satisfies according to its tag
       only and could cost less than the best. Every node is held in memory.

The traversal visits every minimal satisfying node, since no verdict on another node decides it. If costs only increase
upwards, the best of these is the solution, as published. If records may be suppressed, a higher node can cost less; the
tags then show which nodes remain, and bounds decide which of them to evaluate.
"""

from __future__ import annotations

import heapq
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from shoal.errors import OutOfTimeError
from shoal.recoding import Recoding
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.monotone import Tags, VerdictCache, node_at
from shoal.search.problem import Problem


def flash(problem: Problem) -> Recoding:
    """Tag every node, then evaluate the nodes that the tags leave open."""
    verdicts = VerdictCache(problem, "flash")
    try:
        tags = Tags(verdicts)
        _Traversal(problem, tags).run()
        verdicts.look_for_better(tags.satisfying)
    except OutOfTimeError:
        return verdicts.so_far()
    return verdicts.answer(verdicts.best.evaluation, proved=True)


class _Traversal:
    def __init__(self, problem: Problem, tags: Tags) -> None:
        self.lattice = problem.lattice
        self.tags = tags
        self.order = _order(problem)
        position = np.empty(len(self.order), np.int64)
        position[self.order] = np.arange(len(self.order))
        self.position = position.reshape(self.lattice.shape)  # of each node in the order

    def run(self) -> None:
        """Search a path upwards from every untagged node; failing nodes start further paths."""
        flat_tags = self.tags.state.ravel()  # the same memory
        for flat in self.order.tolist():
            starts = [] if flat_tags[flat] else [(0, node_at(flat, self.position.shape))]
            while starts:
                _, node = heapq.heappop(starts)
                if not self.tags.state[node]:
                    for failed in self._halved(self._path(node)):
                        for up in self._open_above(failed):
                            heapq.heappush(starts, (int(self.position[up]), up))

    def _open_above(self, node: Node) -> list[Node]:
        """Return the successors without a tag, in order."""
        open_ones = [up for up in self.lattice.successors(node) if not self.tags.state[up]]
        return sorted(open_ones, key=lambda up: int(self.position[up]))

    def _path(self, node: Node) -> list[Node]:
        """Return the path upwards through the first untagged successor, as long as there is one."""
        path = [node]
        while further := self._open_above(path[-1]):
            path.append(further[0])
        return path

    def _halved(self, path: list[Node]) -> list[Node]:
        """Find where nodes on the path begin to satisfy; return the visited nodes that fail."""
        failed = []
        low, high = 0, len(path)  # below `low` all fail, from `high` on all satisfy
        while low < high:
            middle = (low + high - 1) // 2
            if self.tags.check(path[middle]):
                high = middle
            else:
                failed.append(path[middle])
                low = middle + 1
        return failed


def _order(problem: Problem) -> NDArray[np.int64]:
    """Order the nodes by height, by mean share of the columns' heights, by mean share of the values given up.

    The order depends on the hierarchies and not on the order of the columns, except for nodes that tie in all three.
    """
    hierarchies = problem.table.hierarchies
    heights = [np.arange(h.n_levels) for h in hierarchies]
    climbed = [levels / max(1, levels[-1]) for levels in heights]
    values = [np.array([h.cardinality(level) for level in range(h.n_levels)]) for h in hierarchies]
    given_up = [1 - n / max(1, n[0]) for n in values]
    # Rounded, so that shares summed in another order are still equal.
    sums = (reduce(np.add.outer, shares).ravel().round(9) for shares in (heights, climbed, given_up))
    return np.lexsort(tuple(sums)[::-1])
