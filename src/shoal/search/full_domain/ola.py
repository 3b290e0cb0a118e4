"""OLA: bisect the lattice until all minimal nodes are found, and choose the one with the smallest objective.

K. El Emam et al., "A globally optimal k-anonymity method for the de-identification of health data", JAMIA 16(5), 2009.
Needs  monotone verdicts: absorbing models, or convex ones if nothing may be suppressed.
Finds  the k-minimal node with the smallest objective. It is proved optimal if costs only increase upwards: if nothing
       may be suppressed, or the objective is the height. Otherwise a node that is not minimal may cost less
       (``flash`` and ``optimal`` find it).
Costs  one evaluation per node that no other verdict decides; every node is held in memory.

The minimal nodes are read from the tags at the end, instead of the paper's list that is cleaned up on the way; a
sub-lattice without untagged nodes is skipped.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from operator import add, sub

from shoal.errors import OutOfTimeError
from shoal.recoding import Recoding
from shoal.search.full_domain.best import tie_break
from shoal.search.full_domain.lattice import Lattice, Node, below
from shoal.search.full_domain.monotone import Tags, VerdictCache, costs_only_rise
from shoal.search.problem import Problem


def ola(problem: Problem) -> Recoding:
    """Return the best of the minimal nodes."""
    verdicts = VerdictCache(problem, "ola")
    try:
        nodes = minimal(verdicts)
    except OutOfTimeError:
        return verdicts.so_far()
    claim = f"of the {len(nodes)} minimal generalizations that satisfy the policy, none has a smaller loss"
    return verdicts.answer(verdicts.cheapest(nodes), proved=costs_only_rise(problem), claim=claim)


def minimal(verdicts: VerdictCache) -> list[Node]:
    """List every feasible node without another one below it, lowest first."""
    lattice = verdicts.problem.lattice
    tags = Tags(verdicts)
    if tags.check(lattice.top):
        _bisect(tags, lattice.ground, lattice.top)
    return _feasible(verdicts, tags.minimal())


def _bisect(tags: Tags, low: Node, high: Node) -> None:
    """Tag all nodes from ``low`` to ``high``; the highest satisfies."""
    if tags.state[tuple(slice(a, b + 1) for a, b in zip(low, high, strict=True))].all():
        return
    height = sum(high) - sum(low)
    if height == 1:
        tags.check(low)
        return
    for step in Lattice(tuple(map(sub, high, low))).layer(height // 2):
        node = tuple(map(add, low, step))
        if tags.check(node):
            _bisect(tags, low, node)
        else:
            _bisect(tags, node, high)


def _feasible(verdicts: VerdictCache, nodes: Iterable[Node]) -> list[Node]:
    """The same if a satisfying node may not be feasible: then the nodes above it are tried, lowest first."""
    feasible_nodes, waiting = [], []
    for node in nodes:
        if verdicts.feasible(node):
            feasible_nodes.append(node)
        else:
            waiting.append(tie_break(node))
    heapq.heapify(waiting)
    queued = {node for _, node in waiting}
    while waiting:
        _, node = heapq.heappop(waiting)
        if any(below(other, node) for other in feasible_nodes):
            continue
        if verdicts.feasible(node):
            feasible_nodes.append(node)
            continue
        for up in verdicts.problem.lattice.successors(node):
            if up not in queued:
                queued.add(up)
                heapq.heappush(waiting, tie_break(up))
    return sorted(feasible_nodes, key=tie_break)
