"""Evaluates the nodes that a search expects to need next in advance, on both cores.

When a search requests a node, the expected nodes are evaluated with it, in two parallel parts. Each part derives tables
only from earlier ones and its own (``Rollup.branch``), so neither the number of threads nor their speed changes the
order of a table's classes, and with it the last bit of a sum. A node counts as evaluated when it is requested; one that
is never requested does not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from shoal.compiled.threads import done_in_parts, go_on_if_wanted
from shoal.search.full_domain.lattice import Node
from shoal.search.problem import Evaluation, Problem

MAX_SERIAL_TUPLES = 1 << 15  # distinct tuples up to which one thread is faster
ROOM = 1 << 23  # classes of all nodes evaluated in advance
QUICK = 1 << 12  # classes that one thread groups before a second has started
HUGE = 1 << 17  # classes from which a single node is derived on both cores (``rollup.HUGE``)
FIRST, MAX_TOGETHER = 4, 128  # nodes per batch: at first, and once whole batches are used


class PricedNode(NamedTuple):
    """A node with its cost, if it is feasible, and a lower bound on the cost of every node above."""

    evaluation: Evaluation
    value: float
    above: float


def priced(problem: Problem, evaluation: Evaluation) -> PricedNode:
    """Return an evaluation with its cost and its lower bound."""
    objective = problem.objective
    value = objective.value(evaluation) if evaluation.feasible else math.inf
    return PricedNode(evaluation, value, objective.above(evaluation) if objective.sees_classes else -math.inf)


class Prefetcher:
    """Evaluates requested nodes together with those that are expected next."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n_tuples = problem.table.n_classes
        self._max_together = 1 if n_tuples <= MAX_SERIAL_TUPLES else min(MAX_TOGETHER, max(FIRST, ROOM // n_tuples))
        self._expected: Iterator[Node] = iter(())
        self._ready: dict[Node, PricedNode] = {}
        self._size = FIRST

    def expect(self, nodes: Iterable[Node], wanted: Callable[[Node], bool] = lambda _: True) -> None:
        """Set the nodes to evaluate in advance, in order, skipping those no longer ``wanted``."""
        self._expected = filter(wanted, nodes)
        self._size = FIRST

    def at(self, node: Node) -> PricedNode:
        """Return a node as if it were evaluated now."""
        if node not in self._ready:
            nodes = [node, *self._next(node)]
            if len(nodes) == 1:
                return priced(self.problem, self.problem.evaluate(node))
            self._evaluate(nodes)
        priced_node = self._ready.pop(node)
        self.problem.count_visit(priced_node.evaluation)
        return priced_node

    def _next(self, node: Node) -> Iterator[Node]:
        """Yield the nodes to evaluate with ``node``: more if the last batch was used up, none if that is not faster."""
        if self._max_together == 1 or not QUICK < self.problem.rollup.n_to_group(node) <= HUGE:
            return iter(())
        self._size = FIRST if self._ready else min(2 * self._size, self._max_together)
        return islice((other for other in self._expected if other != node), self._size - 1)

    def _evaluate(self, nodes: list[Node]) -> None:
        problem, half = self.problem, (len(nodes) + 1) // 2
        branches = [(problem.branch(), nodes[:half]), (problem.branch(), nodes[half:])]
        priced_parts = done_in_parts(_evaluated_in_time, branches)
        for branch, _ in branches:
            problem.join(branch)
        self._ready = {entry.evaluation.node: entry for part in priced_parts for entry in part}


def _evaluated_in_time(part: tuple[Problem, list[Node]]) -> list[PricedNode]:
    """Evaluate the nodes of a part until time runs out, but at least the first, which was requested."""
    problem, nodes = part
    priced_nodes = [priced(problem, problem.evaluated(nodes[0]))]
    for node in nodes[1:]:
        go_on_if_wanted()
        if problem.out_of_time:
            break
        priced_nodes.append(priced(problem, problem.evaluated(node)))
    return priced_nodes
