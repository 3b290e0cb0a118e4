"""Optimal: the least loss of all full-domain generalizations, proved.

Best first on lower bounds, our own. Every look at a node N bounds a whole box of the lattice:
  below N  records that fail an absorbing model fail it on every lower node, so their suppression is already owed;
           where more fail than may be suppressed, no lower node is feasible at all;
  above N  classes only merge, which bounds the losses of classes.
Verdicts prune only where the models' merging allows (``Problem.monotone``); otherwise bounds alone do.

Needs  nothing: any models, any objective.
Finds  the node that ``exhaustive`` finds, ties broken alike.
Costs  one grouping per node looked at; a small share of the lattice as a rule, all of it at worst.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError
from shoal.recoding import Recoding
from shoal.search.base import Evaluation, Problem
from shoal.search.best import Best
from shoal.search.lattice import Node

MOST_NODES = 50_000_000  # an array of bounds of this many nodes takes 400 MB


def optimal(problem: Problem) -> Recoding:
    """Look where the bound is least, until no bound is below the best."""
    if len(problem.lattice) > MOST_NODES:
        raise PolicyError(
            f"the lattice has {len(problem.lattice):,} nodes, 'optimal' keeps bounds for at most {MOST_NODES:,}",
            "give the quasi columns fewer levels",
        )
    search = _Search(problem)
    search.descend_from_top()
    search.close()
    if search.best.seen is None:
        raise problem.infeasible()
    return problem.recoding(search.best.seen, "optimal", proved=True)


class _Search:
    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.best = Best()
        self.floor = problem.objective.floor()
        self.bound = _outer_sum(self.floor)  # per node, what it costs at the least; inf where it is settled
        self.hops = 0  # steps to climb past the open nodes before a look, as looks from farther up rule out more

    def look(self, node: Node) -> Evaluation:
        """Evaluate a node and raise the bounds around it."""
        problem = self.problem
        seen = problem.evaluate(node)
        beneath = tuple(slice(0, level + 1) for level in node)
        if problem.rules_out_below(seen):
            self.bound[beneath] = np.inf
        else:
            if seen.feasible:
                self.best.offer(problem.objective.value(seen), seen)
            self._raise(beneath, problem.objective.below(seen))
        self._raise(tuple(slice(level, None) for level in node), problem.objective.above(seen))
        self.bound[node] = np.inf
        return seen

    def descend_from_top(self) -> None:
        """A first answer: from the top, undo the costliest step that still leaves a feasible node."""
        node = self.problem.lattice.top
        self.look(node)
        stuck: set[int] = set()
        while True:
            gains = [
                (self.floor[j][level] - self.floor[j][level - 1], j)
                for j, level in enumerate(node)
                if level > 0 and j not in stuck
            ]
            if not gains:
                return
            j = max(gains)[1]
            lower = (*node[:j], node[j] - 1, *node[j + 1 :])
            if self.look(lower).feasible:
                node = lower
            else:
                stuck.add(j)

    def close(self) -> None:
        """Look until every node that could win is settled."""
        while (start := self._least_open()) is not None:
            chain = self._climb(start)
            probe = chain[-1]
            for _ in range(self.hops):
                probe = self._cheapest_step(probe)
            ruled_out = self.problem.rules_out_below(self.look(probe))
            self.hops = max(0, self.hops + (1 if ruled_out else -1))
            # Halve what is left of the chain: a node that is ruled out settles all below, a feasible one its own box.
            while left := [node for node in chain if not self.best.excludes(float(self.bound[node]), node)]:
                self.look(left[len(left) // 2])
            settled = np.count_nonzero(np.isinf(self.bound)) / self.bound.size
            self.problem.progress("proving the optimum", settled)

    def _least_open(self) -> Node | None:
        """The open node of least bound; None when no node can win."""
        flat = int(self.bound.argmin())
        node = self._node(flat)
        least = float(self.bound[node])
        if np.isinf(least):
            return None
        if not self.best.excludes(least, node):
            return node
        # Only nodes that tie with the best are left; one that ranks before it would still win.
        for tied in np.flatnonzero(self.bound <= self.best.value + self.best.slack):
            if not self.best.excludes(float(self.bound.flat[tied]), node := self._node(int(tied))):
                return node
        return None

    def _climb(self, node: Node) -> list[Node]:
        """From a node upwards along the least bounds, as long as nodes are open."""
        chain = [node]
        while True:
            steps = [
                (float(self.bound[upper]), upper)
                for upper in self.problem.lattice.successors(chain[-1])
                if not self.best.excludes(float(self.bound[upper]), upper)
            ]
            if not steps:
                return chain
            chain.append(min(steps)[1])

    def _cheapest_step(self, node: Node) -> Node:
        steps = [
            (self.floor[j][level + 1] - self.floor[j][level], j)
            for j, level in enumerate(node)
            if level < self.problem.lattice.heights[j]
        ]
        if not steps:
            return node
        j = min(steps)[1]
        return (*node[:j], node[j] + 1, *node[j + 1 :])

    def _raise(self, box: tuple[slice, ...], bound: list[NDArray[np.float64]] | float) -> None:
        part = self.bound[box]
        np.maximum(part, bound if isinstance(bound, float) else _outer_sum(bound), out=part)

    def _node(self, flat: int) -> Node:
        return tuple(int(level) for level in np.unravel_index(flat, self.bound.shape))


def _outer_sum(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """The sum of one number per axis, for every combination."""
    total = np.zeros(())
    for part in parts:
        total = np.add.outer(total, part)
    return np.asarray(total)
