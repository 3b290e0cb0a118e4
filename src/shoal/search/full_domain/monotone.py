"""Shared by searches that prune by verdicts: nodes above a satisfying one satisfy, nodes below a failing one fail.

Here a node *satisfies* if no more records fail than may be suppressed. Other conditions of a policy, such as suppressed
records passing as a class of stars or an order in which columns are generalized, do not carry over to higher nodes:
they decide which satisfying nodes are feasible, and are never used for pruning.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError
from shoal.recoding import FullDomain
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.prefetch import Prefetcher
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Evaluation, Problem

Nodes = NDArray[np.bool_]  # one cell per node of the lattice

MOST_NODES = 1 << 24  # a byte and a cost each in memory; evaluating all would take an hour
MOST_COLUMNS = 64  # of a NumPy array


class VerdictCache:
    """Evaluates each node at most once; keeps the best feasible node in case time runs out."""

    def __init__(self, problem: Problem, algorithm: str) -> None:
        if not problem.monotone:
            raise _not_monotone(problem, algorithm)
        self.problem = problem
        self.algorithm = algorithm
        self.best = Best()
        self._satisfies: dict[Node, bool] = {}
        self._costs: dict[Node, float] = {}  # costs of the feasible nodes
        self._above: list[tuple[Node, float]] = []  # lower bound on the cost of every node above
        self._ahead = Prefetcher(problem)

    def expect(self, nodes: Iterable[Node]) -> None:
        """Set the nodes to evaluate in advance on both cores, in this order."""
        self._ahead.expect(nodes, lambda node: node not in self._satisfies)

    def satisfies(self, node: Node) -> bool:
        """Return whether no more records fail than may be suppressed."""
        if node not in self._satisfies:
            if self.problem.out_of_time:
                raise self.problem.unfinished()
            evaluation, value, above = self._ahead.at(node)
            if evaluation.feasible:
                self._costs[node] = value
                self.best.offer(value, evaluation)
            if self.problem.objective.sees_classes:
                self._above.append((node, above))
            self._satisfies[node] = not self.problem.rules_out_below(evaluation)
        return self._satisfies[node]

    def feasible(self, node: Node) -> bool:
        """Return whether a node satisfies and meets all other conditions of the policy."""
        return self.satisfies(node) and node in self._costs

    def again(self, node: Node) -> Evaluation:
        """Evaluate a node again without counting it as another visited node."""
        evaluation = self.problem.evaluate(node)
        self.problem.n_evaluated -= 1
        return evaluation

    def cheapest(self, nodes: Iterable[Node]) -> Evaluation | None:
        """Return the best of some nodes, if any is feasible."""
        best = Best()
        for node in nodes:
            if self.feasible(node) and not best.excludes(self._costs[node], node):
                best.offer(self._costs[node], self.again(node))
        return best.evaluation

    def look_for_better(self, satisfying: Nodes) -> None:
        """Evaluate the nodes known to satisfy only by pruning, unless their lower bound is too high.

        A node may cost less than a minimal node below it: more cells are generalized, but fewer records suppressed.
        """
        lower_bounds = self._least_costs()
        left = np.flatnonzero(satisfying & (lower_bounds <= self.best.value + self.best.slack))
        costs = lower_bounds.ravel()[left]
        order = np.argsort(costs, kind="stable")

        def worthwhile() -> Iterator[Node]:  # one at a time: there may be millions, and the best changes meanwhile
            for i in order:
                node = node_at(int(left[i]), lower_bounds.shape)
                if not self.best.excludes(float(costs[i]), node):
                    yield node

        self.expect(worthwhile())
        for node in worthwhile():
            self.satisfies(node)

    def _least_costs(self) -> NDArray[np.float64]:
        floor = self.problem.objective.floor()
        levels = [floor[j, :n] for j, n in enumerate(self.problem.lattice.shape)]
        lower_bounds = np.array(reduce(np.add.outer, levels))
        for node, cost in self._above:
            np.maximum(lower_bounds[from_node_up(node)], cost, out=lower_bounds[from_node_up(node)])
        return lower_bounds

    def answer(self, evaluation: Evaluation | None, *, proved: bool, claim: str = "") -> FullDomain:
        """Return the solution, or raise the error that explains why there is none."""
        if evaluation is None:
            raise self.problem.infeasible()
        return self.problem.best_node(evaluation, self.algorithm, proved=proved, claim=claim)

    def so_far(self) -> FullDomain:
        """Return the best visited node when time runs out; for the others only the bottom node's cost is known."""
        if self.best.evaluation is None:
            raise self.problem.unfinished()
        return self.problem.best_node(
            self.best.evaluation, self.algorithm, proved=False, bound=self.problem.cost_of_ground
        )


class Tags:
    """What is known about every node: it satisfies (1), it fails (-1), or nothing yet (0)."""

    def __init__(self, verdicts: VerdictCache) -> None:
        lattice = verdicts.problem.lattice
        require_room(verdicts, lattice.n_nodes)
        self.verdicts = verdicts
        self.state = np.zeros(lattice.shape, np.int8)
        self._n_known = 0

    def check(self, node: Node) -> bool:
        """Evaluate an untagged node and tag all nodes that it decides: the predictive tagging of Flash and OLA."""
        if not self.state[node]:
            satisfies = self.verdicts.satisfies(node)
            decided = self.state[from_node_up(node) if satisfies else from_node_down(node)]
            self._n_known += int((decided == 0).sum())
            decided[...] = 1 if satisfies else -1
            self.verdicts.problem.progress("tagging nodes", self._n_known / self.state.size)
        return bool(self.state[node] > 0)

    @property
    def satisfying(self) -> Nodes:
        """Return the nodes tagged as satisfying."""
        return np.asarray(self.state > 0)

    def minimal(self) -> list[Node]:
        """Return the satisfying nodes that have no satisfying node below them."""
        satisfying = self.satisfying
        higher = np.zeros_like(satisfying)
        for j in range(satisfying.ndim):
            np.moveaxis(higher, j, 0)[1:] |= np.moveaxis(satisfying, j, 0)[:-1]
        return nodes_of(satisfying & ~higher)


def _not_monotone(problem: Problem, algorithm: str) -> PolicyError:
    """Return the error that names the requirements without monotone verdicts, and what would help."""
    anywhere = problem.limit == 0 and not problem.wildcard
    blamed = problem.of_release or [m for m in problem.convex if not (anywhere and m.unions_pass)]
    of_suppression = not problem.of_release and not problem.wildcard and all(m.unions_pass for m in problem.convex)
    return PolicyError(
        f"algorithm {algorithm!r} assumes that every node above a satisfying node satisfies too, which is not true "
        f"for {', '.join(m.summary for m in blamed)}" + (" if records may be suppressed" if of_suppression else ""),
        "use algorithm 'optimal'" + (", or max_suppression = 0" if of_suppression else ""),
    )


def require_room(verdicts: VerdictCache, n_held: int) -> None:
    """Refuse a lattice with too many nodes to hold in memory."""
    n_columns = len(verdicts.problem.lattice.shape)
    if n_held > MOST_NODES or n_columns > MOST_COLUMNS:
        raise PolicyError(
            f"algorithm {verdicts.algorithm!r} stores the lattice node by node: "
            f"{n_held} of them over {n_columns} columns are too many",
            "use algorithm 'optimal', or exclude levels with min_level, max_level or only",
        )


def costs_only_rise(problem: Problem) -> bool:
    """Return whether no node costs less than a feasible node below it, so that a minimal node is optimal.

    Higher levels and merged classes cost more. A record that is no longer suppressed may outweigh both, unless none may
    be suppressed or suppression is free, as for height.
    """
    return problem.limit == 0 or isinstance(problem.objective, HeightLoss)


def from_node_up(node: Node) -> tuple[slice, ...]:
    """Return the index of the node and all nodes above it."""
    return tuple(slice(level, None) for level in node)


def from_node_down(node: Node) -> tuple[slice, ...]:
    """Return the index of the node and all nodes below it."""
    return tuple(slice(0, level + 1) for level in node)


def nodes_of(nodes: Nodes) -> list[Node]:
    """List the marked nodes, in the order of their levels."""
    return [tuple(node) for node in np.argwhere(nodes).tolist()]


def node_at(flat: int, shape: tuple[int, ...]) -> Node:
    """Return the node with this number in the order of levels."""
    return tuple(int(level) for level in np.unravel_index(flat, shape))
