"""What the searches share that prune by verdicts: above a node that satisfies all do, below one that fails none does.

A node *satisfies* here where no more records fail than may be suppressed. Whatever else a policy asks of a node, that
suppressed records pass as a class of stars or that columns are generalized in an order, is not inherited upwards: it
decides which satisfying nodes are feasible, and never what is pruned.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from shoal.errors import PolicyError
from shoal.recoding import FullDomain
from shoal.search.full_domain.best import Best
from shoal.search.full_domain.lattice import Node
from shoal.search.losses.definitions import HeightLoss
from shoal.search.problem import Evaluation, Problem

Nodes = NDArray[np.bool_]  # one cell per node of the lattice

MOST_NODES = 1 << 24  # a byte and a cost for each are held, and looking at them would take an hour
MOST_COLUMNS = 64  # of a NumPy array


class Looks:
    """Looks at nodes, each once; the best feasible one of all is at hand when the time is over."""

    def __init__(self, problem: Problem, algorithm: str) -> None:
        if not problem.monotone:
            raise _not_monotone(problem, algorithm)
        self.problem = problem
        self.algorithm = algorithm
        self.best = Best()
        self._satisfies: dict[Node, bool] = {}
        self._costs: dict[Node, float] = {}  # of the feasible nodes
        self._above: list[tuple[Node, float]] = []  # what every node above costs at the least

    def satisfies(self, node: Node) -> bool:
        """Whether no more records fail than may be suppressed."""
        if node not in self._satisfies:
            if self.problem.out_of_time:
                raise self.problem.unfinished()
            objective = self.problem.objective
            seen = self.problem.evaluate(node)
            if seen.feasible:
                self._costs[node] = objective.value(seen)
                self.best.offer(self._costs[node], seen)
            if objective.sees_classes:
                self._above.append((node, objective.above(seen)))
            self._satisfies[node] = not self.problem.rules_out_below(seen)
        return self._satisfies[node]

    def feasible(self, node: Node) -> bool:
        """Whether it satisfies, and is all that the policy asks of an answer."""
        return self.satisfies(node) and node in self._costs

    def again(self, node: Node) -> Evaluation:
        """A second look at a node, which is not counted as one node more."""
        seen = self.problem.evaluate(node)
        self.problem.n_evaluated -= 1
        return seen

    def cheapest(self, nodes: Iterable[Node]) -> Evaluation | None:
        """The best of some nodes, if any is feasible."""
        best = Best()
        for node in nodes:
            if self.feasible(node) and not best.excludes(self._costs[node], node):
                best.offer(self._costs[node], self.again(node))
        return best.seen

    def look_for_better(self, satisfying: Nodes) -> None:
        """Look at the nodes that only pruning tells to satisfy, unless what they cost at the least is too much.

        A node may cost less than a minimal one below it: more cells are generalized, fewer records suppressed.
        """
        least = self._least_costs()
        left = np.flatnonzero(satisfying & (least <= self.best.value + self.best.slack))
        costs = least.ravel()[left]
        for i in np.argsort(costs, kind="stable").tolist():
            node = node_at(int(left[i]), least.shape)
            if not self.best.excludes(float(costs[i]), node):
                self.satisfies(node)

    def _least_costs(self) -> NDArray[np.float64]:
        floor = self.problem.objective.floor()
        levels = [floor[j, :n] for j, n in enumerate(self.problem.lattice.shape)]
        least = np.array(reduce(np.add.outer, levels))
        for node, cost in self._above:
            np.maximum(least[above(node)], cost, out=least[above(node)])
        return least

    def answer(self, seen: Evaluation | None, *, proved: bool, claim: str = "") -> FullDomain:
        """The search's answer, or why there is none."""
        if seen is None:
            raise self.problem.infeasible()
        return self.problem.best_node(seen, self.algorithm, proved=proved, claim=claim)

    def so_far(self) -> FullDomain:
        """The best of the nodes looked at when the time is over; of the others only the ground's cost is known."""
        if self.best.seen is None:
            raise self.problem.unfinished()
        return self.problem.best_node(self.best.seen, self.algorithm, proved=False, bound=self.problem.cost_of_ground)


class Tags:
    """What is known of every node: that it satisfies (1), that it fails (-1), or nothing yet (0)."""

    def __init__(self, looks: Looks) -> None:
        lattice = looks.problem.lattice
        require_room(looks, lattice.n_nodes)
        self.looks = looks
        self.known = np.zeros(lattice.shape, np.int8)
        self._n_known = 0

    def check(self, node: Node) -> bool:
        """Look at a node unless its tag tells, and tag all that it decides: the predictive tagging of Flash and OLA."""
        if not self.known[node]:
            satisfies = self.looks.satisfies(node)
            decided = self.known[above(node) if satisfies else beneath(node)]
            self._n_known += int((decided == 0).sum())
            decided[...] = 1 if satisfies else -1
            self.looks.problem.progress("tagging nodes", self._n_known / self.known.size)
        return bool(self.known[node] > 0)

    @property
    def satisfying(self) -> Nodes:
        """The nodes tagged so."""
        return np.asarray(self.known > 0)

    def minimal(self) -> list[Node]:
        """The satisfying nodes above no other."""
        satisfying = self.satisfying
        higher = np.zeros_like(satisfying)
        for j in range(satisfying.ndim):
            np.moveaxis(higher, j, 0)[1:] |= np.moveaxis(satisfying, j, 0)[:-1]
        return nodes_of(satisfying & ~higher)


def _not_monotone(problem: Problem, algorithm: str) -> PolicyError:
    """Which verdicts cannot be pruned by, and what would help."""
    anywhere = problem.limit == 0 and not problem.wildcard
    blamed = problem.of_release or [m for m in problem.convex if not (anywhere and m.unions_pass)]
    of_suppression = not problem.of_release and not problem.wildcard and all(m.unions_pass for m in problem.convex)
    return PolicyError(
        f"algorithm {algorithm!r} assumes that every node above a satisfying node satisfies too, which is not true "
        f"for {', '.join(m.asked for m in blamed)}" + (" if records may be suppressed" if of_suppression else ""),
        "use algorithm 'optimal'" + (", or max_suppression = 0" if of_suppression else ""),
    )


def require_room(looks: Looks, n_held: int) -> None:
    """Decline a lattice that is too large to be held node by node."""
    n_columns = len(looks.problem.lattice.shape)
    if n_held > MOST_NODES or n_columns > MOST_COLUMNS:
        raise PolicyError(
            f"algorithm {looks.algorithm!r} stores the lattice node by node: "
            f"{n_held} of them over {n_columns} columns are too many",
            "use algorithm 'optimal', or exclude levels with min_level, max_level or only",
        )


def costs_only_rise(problem: Problem) -> bool:
    """Whether no node costs less than a feasible one below it, so that a minimal node costs least.

    Higher levels cost more and merged classes too. A record that is no longer suppressed may outweigh both, unless
    none may be suppressed or, as for height, it costs nothing.
    """
    return problem.limit == 0 or isinstance(problem.objective, HeightLoss)


def above(node: Node) -> tuple[slice, ...]:
    """Where the node and all above it are."""
    return tuple(slice(level, None) for level in node)


def beneath(node: Node) -> tuple[slice, ...]:
    """Where the node and all below it are."""
    return tuple(slice(0, level + 1) for level in node)


def nodes_of(nodes: Nodes) -> list[Node]:
    """The nodes that are marked, in the order of their levels."""
    return [tuple(node) for node in np.argwhere(nodes).tolist()]


def node_at(flat: int, shape: tuple[int, ...]) -> Node:
    """The node with this number in the order of levels."""
    return tuple(int(level) for level in np.unravel_index(flat, shape))
