"""Forest: join every record with its nearest, cut the trees, suppress the cells in which a tree's records differ.

G. Aggarwal, T. Feder, K. Kenthapadi, R. Motwani, R. Panigrahy, D. Thomas, A. Zhu, "Anonymizing tables", ICDT 2005;
"Approximation algorithms for k-anonymity", Journal of Privacy Technology, 2005.
Needs  models that are judged class by class. The theorem applies to k-anonymity alone: classes that fail another model
       are merged with the nearest, at an unbounded cost.
Finds  a partition into classes of k to max(2k−1, 3k−5) records that suppresses at most max(2k−1, 3k−5) times as many
       cells as necessary, weighted by column, without suppressed records. The solution usually proves a much smaller
       factor, which the claim then names. Records are suppressed only if the other models cannot be satisfied
       otherwise.
Costs  O(n²) distances for n distinct tuples, and O(kn) memory; cutting is linear.

FOREST. The graph is complete, and the weight of an edge is the number of columns in which its two records differ. While
a tree has fewer than k records, its only record without an outgoing edge gets an edge to the nearest record outside the
tree, which is among its k−1 nearest. Each record shares its class with k−1 others, so releasing it costs at least as
much as this edge weighs; all edges together weigh no more than the optimal solution costs. A tree of s records and
weight W costs at most s·W, because a column in which its records differ also differs along some edge. Hence trees must
be small.

Cutting. As in the paper, a vertex may belong to two trees: to one as a record, to the other only as a connection of
edges (a Steiner vertex), so that each edge stays in one tree. The paper searches for a root at which to cut a tree in
two; here a single pass from the leaves to the root makes all cuts, within the same bounds. A subtree passes its
remaining records, fewer than k, up to its parent. There, remainders are bundled until a bundle has at least k records,
and thus at most 2k−2. Only the remainder at the root is added to an adjacent bundle, and the two are split again if
that gives two trees of at least k.

Equal records are one vertex with a count, which can be split at no cost. A vertex with k or more records is a tree of
its own without an outgoing edge; it lends records to an adjacent remainder only if it keeps at least k.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass, replace

import numpy as np

from shoal.recoding import Cells, Recoding
from shoal.search.cells.classes import Partition, recoding_of_partition, require_class_by_class
from shoal.search.cells.merge import least_size, merged, require_crowd
from shoal.search.cells.nearest import Metric, Neighbours, Piece, n_records_in, parted, united
from shoal.search.cells.star_levels import levels_of, with_levels
from shoal.search.problem import Problem

MAX_NEIGHBOURS = 64  # neighbours kept per tuple; if more are needed, they are searched again


def forest(problem: Problem) -> Recoding:
    """Run the published algorithm for suppressed cells."""
    require_class_by_class(problem, "forest")
    answer = of_trees(hiding(problem), "forest", "suppresses at most {} times as many cells as necessary")
    return replace(answer, hierarchies=problem.table.hierarchies)


def hiding(problem: Problem) -> Problem:
    """Return the same problem in which a cell is released unchanged or as the top."""
    return with_levels(problem, levels_of(problem, problem.lattice.ground))


def of_trees(problem: Problem, algorithm: str, claim: str) -> Cells:
    """Grow the forest, cut it, and release every tree as the tuple that covers it."""
    k = least_size(problem)
    require_crowd(problem, k)
    metric = Metric(problem)
    neighbours = Neighbours.from_metric(metric, k, min(k - 1, MAX_NEIGHBOURS))
    start = metric.partition(cut(grown(neighbours), metric.counts.tolist(), k))
    partition = merged(metric, start)
    factor = float(max(2 * k - 1, 3 * k - 5)) if partition is start else None
    return recoding_of_partition(
        problem,
        partition,
        algorithm,
        claim=claimed(claim, factor, neighbours, partition),
        n_evaluated=metric.n_scans,
    )


def claimed(claim: str, factor: float | None, neighbours: Neighbours, partition: Partition) -> str:
    """Return the claim with the theorem's factor, if it applies, or a smaller one that the solution proves."""
    if partition.n_suppressed:
        return ""
    cost, bound = neighbours.metric.cost(partition), neighbours.bound
    if bound > 0:
        proved_factor = np.ceil(cost / bound * 1e3) / 1e3
        factor = proved_factor if factor is None else min(factor, proved_factor)
    elif cost == 0:
        factor = 1.0
    return "" if factor is None else claim.format(f"{factor:.4g}")


# --- FOREST --------------------------------------------------------------------------------------------------------


def grown(neighbours: Neighbours) -> list[int]:
    """Return the target of each tuple's edge, −1 for the root of a tree; the shortest edge is added first."""
    metric, k = neighbours.metric, neighbours.k
    parent = [-1] * metric.n
    tree = list(range(metric.n))  # of each tuple, by its number in `members`
    members = [[i] for i in range(metric.n)]
    sizes = metric.counts.tolist()
    tried = [0] * metric.n  # neighbours that are known to be in the same tree
    barred = np.zeros(metric.n, np.bool_)

    def next_edge(i: int) -> tuple[float, int, int]:
        """Return the edge from ``i`` to the nearest tuple outside its tree."""
        tuples, costs = neighbours.tuples[i], neighbours.costs[i]
        while tried[i] < len(tuples) and tree[tuples[tried[i]]] == tree[i]:
            tried[i] += 1
        if tried[i] == len(tuples):
            inside = members[tree[i]]
            barred[inside] = True
            tuples, costs = metric.nearest(i, 1, barred)
            barred[inside] = False
            return float(costs[0]), i, int(tuples[0])
        return float(costs[tried[i]]), i, int(tuples[tried[i]])

    edges = [next_edge(i) for i in range(metric.n) if sizes[i] < k]
    heapq.heapify(edges)
    n_edges = len(edges)
    while edges:
        _, i, target = heapq.heappop(edges)
        if sizes[tree[i]] >= k:
            continue
        if tree[target] == tree[i]:
            heapq.heappush(edges, next_edge(i))
            continue
        parent[i] = target
        less, larger = sorted((tree[i], tree[target]), key=lambda t: len(members[t]))
        for other in members[less]:
            tree[other] = larger
        members[larger] += members[less]
        sizes[larger] += sizes[less]
        members[less] = []
        if len(edges) % 1024 == 0:
            metric.problem.progress("growing trees", 1 - len(edges) / n_edges)
    return parent


# --- cutting ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bundle:
    """A class: records of two sides that meet at a vertex, whose own records are in it where it was ``closed``."""

    sides: tuple[Piece, Piece]
    closed: bool  # the second side is the vertex itself


def cut(parent: list[int], counts: list[int], k: int) -> list[Piece]:
    """Cut trees into classes of at least k records, at most max(2k−1, 3k−5) unless all records are equal."""
    rests: dict[int, list[Piece]] = defaultdict(list)  # what the subtrees of a vertex hand up
    bundles: dict[int, list[Bundle]] = defaultdict(list)  # those that meet at a vertex
    below: dict[int, list[int]] = defaultdict(list)
    classes: list[Piece] = []
    for i in _leaves_first(parent):
        rest: Piece = {}
        for piece in rests.pop(i, []):
            if n_records_in(rest) + n_records_in(piece) >= k:
                bundles[i].append(Bundle((rest, piece), closed=False))
                rest = {}
            else:
                rest = united(rest, piece)
        if counts[i] >= k:
            classes += _beside_a_crowd(rest, i, counts[i], k)
        elif n_records_in(rest) + counts[i] >= k:
            bundles[i].append(Bundle((rest, {i: counts[i]}), closed=True))
        elif parent[i] >= 0:
            rests[parent[i]].append({**rest, i: counts[i]})
        else:
            classes += _at_the_root({**rest, i: counts[i]}, bundles, below, k)
        if parent[i] >= 0:
            below[parent[i]].append(i)
    return classes + [united(*bundle.sides) for i in sorted(bundles) for bundle in bundles[i]]


def _leaves_first(parent: list[int]) -> list[int]:
    """Order the vertices so that each comes after those whose edges lead to it."""
    waiting = [0] * len(parent)
    for target in parent:
        if target >= 0:
            waiting[target] += 1
    order = [i for i, n in enumerate(waiting) if n == 0]
    for i in order:  # which grows
        target = parent[i]
        if target >= 0:
            waiting[target] -= 1
            if waiting[target] == 0:
                order.append(target)
    return order


def _beside_a_crowd(rest: Piece, i: int, count: int, k: int) -> list[Piece]:
    """Handle the rest at a vertex with k or more equal records: it borrows what it lacks, or all records at 2k−1."""
    if not rest:
        return [{i: count}]
    lacking = k - n_records_in(rest)
    if count - lacking < k:
        return [united(rest, {i: count})]
    return [united(rest, {i: lacking}), {i: count - lacking}]


def _at_the_root(rest: Piece, bundles: dict[int, list[Bundle]], below: dict[int, list[int]], k: int) -> list[Piece]:
    """Add the fewer than k records left at the root to the smallest adjacent bundle.

    This gives two trees if either side reaches k with records of the middle vertex and k remain. If not, and 2k are
    together, the vertex lacks records for either side: both sides have at most k−2, and all together at most 3k−5.
    """
    near = [(i, b) for i in rest for b in bundles.get(i, ()) if not b.closed]
    near += [(i, b) for above in rest for i in below[above] for b in bundles.get(i, ()) if b.closed]
    middle, bundle = min(near, key=lambda at: (sum(map(n_records_in, at[1].sides)), at[0]))
    bundles[middle].remove(bundle)
    everyone = united(rest, *bundle.sides)
    for side in bundle.sides[:1] if bundle.closed else bundle.sides:
        lacking = k - n_records_in(side)
        if lacking <= everyone[middle] and n_records_in(everyone) >= 2 * k:
            lent, _ = parted(everyone, middle, lacking)
            first = united(side, lent)
            return [first, {i: left for i, n in everyone.items() if (left := n - first.get(i, 0))}]
    return [everyone]
