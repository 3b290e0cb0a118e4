"""How far from the least possible loss is local recoding? A linear programme over all classes there could be.

    python benchmarks/local_bound.py [--data ADULT_FOLDER] [--k 2 5] [--tuples N] [--page]

A recoding of cells is a partition into classes of k or more, and a class costs each of its records what the narrowest
labels over all of them cost. Give every record a price, so that no k records of a class together are paid more than the
class costs: then no partition costs less than all prices together. The highest such prices are the dual of the linear
programme that may take half a class here and a third there. Classes are too many to be listed, but for given prices
the worst of each node of the lattice is found by grouping the records there and adding up the k highest prices of each
class; those found are added to the programme until there are few (cutting planes). Then everybody in a violated class
is paid no more than it costs, so that none is left: what is shown is a proof, up to the rounding of the last digit.

Costs are linear in the cells. ARX's loss is not: it is taken by its tangent at the answer that `local` found, as the
search itself does; the other bound is of the mean cell loss, where nothing is approximated.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from local import DOCS, plain
from numba import njit
from numpy.typing import NDArray
from optimal import census
from page import between
from page import table as written
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES
from shoal.search.cells.classes import Partition
from shoal.search.cells.local_boxes import Space
from shoal.search.cells.local_start import partition_of
from shoal.search.losses.cells import losses
from shoal.table.frequency import FrequencyTable

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TOLERANCE = 1e-6  # of a class; the prices are lowered by as much before they are called a bound
CUTS = 400_000  # looked at in one round
ENOUGH = 0.01  # violated classes for each tuple with which the rounds end; who is in them is paid less


@dataclass(frozen=True, eq=False)
class Lattice:
    """The distinct tuples at every level of every column: labels as bits of a word, and what a cell costs there."""

    labels: NDArray[np.uint64]  # (levels of all columns, tuples)
    costs: Floats
    starts: Ints  # where the levels of a column begin
    nodes: Ints  # (nodes, columns), the cheapest first
    floors: Floats  # what a tuple costs at each at the least
    counts: Ints  # records of each tuple

    @classmethod
    def of(cls, space: Space, weights: Floats, counts: Ints) -> Lattice:
        """Cells of a column are priced from its cheapest upwards."""
        columns = list(enumerate(space.columns))
        labels = [column.nodes[:, space.codes[:, j]].astype(np.uint64) for j, column in columns]
        costs = [
            (column.node_prices[:, space.codes[:, j]] - column.node_prices[0].min()) * weights[j]
            for j, column in columns
        ]
        bits = [int(of.max()).bit_length() for of in labels]
        if sum(bits) > 64:
            raise SystemExit("labels of all columns together need more than 64 bits")
        shifts = (np.cumsum(bits) - bits).astype(np.uint64)
        heights = [len(of) for of in labels]
        floors = np.zeros(1)
        for of in costs:
            floors = (floors[:, None] + of.min(axis=1)).ravel()
        order = np.argsort(floors, kind="stable")
        return cls(
            np.concatenate([of << shift for of, shift in zip(labels, shifts, strict=True)]),
            np.concatenate(costs),
            np.cumsum([0, *heights])[:-1],
            np.array(list(itertools.product(*map(range, heights))))[order],
            floors[order],
            counts,
        )


@njit(cache=True, nogil=True)
def violated(
    labels: NDArray[np.uint64], costs: Floats, starts: Ints, nodes: Ints, floors: Floats, counts: Ints, prices: Floats,
    k: int, members: Ints, shares: Ints, paid: Floats, mend: bool,
) -> tuple[int, NDArray[np.int64]]:  # fmt: skip
    """Classes whose k dearest records are paid more than the class costs, and which of them is the worst of each tuple.

    A class that costs c a record can only be one of these if somebody in it is paid more than c: the others of a node
    are not looked at. With ``mend`` nobody in a violated class is paid more than c afterwards, so that none is left.
    """
    m, q = costs.shape[1], starts.shape[0]
    mask = (1 << 16) - 1
    table, words = np.full(mask + 1, -1, np.int64), np.zeros(mask + 1, np.uint64)
    used, size, cost = np.empty(m, np.int64), np.empty(m, np.int64), np.empty(m)
    wrong = np.zeros(m, np.bool_)
    top, who = np.empty((m, k)), np.empty((m, k), np.int64)
    worst, of = np.zeros(m), np.full(m, -1, np.int64)
    highest, n = prices.max(), 0
    for x in range(nodes.shape[0]):
        if floors[x] >= highest:
            break
        n_classes = n_wrong = 0
        for looked in range(3):  # at those who are paid more; at all who are with them; at those who are to be mended
            if (looked == 1 and n_classes == 0) or (looked == 2 and (n_wrong == 0 or not mend)):
                break
            for i in range(m):
                total = 0.0
                if looked == 0:
                    if prices[i] <= floors[x]:
                        continue
                    for j in range(q):
                        total += costs[starts[j] + nodes[x, j], i]
                        if total >= prices[i]:
                            break
                    if total >= prices[i]:
                        continue
                word = np.uint64(0)
                for j in range(q):
                    word |= labels[starts[j] + nodes[x, j], i]
                h = np.int64((word * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(48))
                while table[h] >= 0 and words[h] != word:
                    h = (h + 1) & mask
                c = table[h]
                if looked == 0:
                    if c < 0:
                        table[h], words[h] = n_classes, word
                        used[n_classes], size[n_classes], cost[n_classes] = h, 0, total
                        n_classes += 1
                    continue
                if looked == 2:
                    if c >= 0 and wrong[c]:
                        prices[i] = min(prices[i], cost[c])
                    continue
                if c < 0 or (size[c] == k and prices[i] <= top[c, k - 1]):
                    continue
                y = min(size[c], k - 1)
                while y > 0 and top[c, y - 1] < prices[i]:
                    top[c, y], who[c, y] = top[c, y - 1], who[c, y - 1]
                    y -= 1
                top[c, y], who[c, y] = prices[i], i
                size[c] = min(k, size[c] + 1)
            if looked != 1:
                continue
            for c in range(n_classes):
                total, left, e = 0.0, k, 0
                while e < size[c] and left > 0:
                    total += min(left, counts[who[c, e]]) * top[c, e]
                    left -= min(left, counts[who[c, e]])
                    e += 1
                over = total - k * cost[c]
                wrong[c] = left == 0 and over > TOLERANCE
                if not wrong[c]:
                    continue
                n_wrong += 1
                if n == paid.shape[0]:
                    continue
                new, left = False, k
                for z in range(e):
                    if over > worst[who[c, z]]:
                        worst[who[c, z]], of[who[c, z]] = over, n
                        new = True
                    members[n, z], shares[n, z] = who[c, z], min(left, counts[who[c, z]])
                    left -= shares[n, z]
                if new:
                    for z in range(e, k):
                        members[n, z], shares[n, z] = 0, 0
                    paid[n] = k * cost[c]
                    n += 1
        for c in range(n_classes):
            table[used[c]] = -1
    return n, of


def highest_prices(lattice: Lattice, k: int, prices: Floats, note: Callable[[str], None]) -> Floats:
    """The prices that together are highest, none of which any class violates; ``prices`` is a guess."""
    m = len(lattice.counts)
    # k records of one tuple are a class that costs nothing. Nobody is paid far above the guess: it is a proof without
    # that too, and the first rounds know nothing of most tuples.
    most = np.where(lattice.counts >= k, 0.0, 2 * prices + lattice.counts @ prices / lattice.counts.sum())
    bounds = np.column_stack([np.zeros(m), most])
    members, shares = np.empty((CUTS, k), np.int64), np.empty((CUTS, k), np.int64)
    paid = np.empty(CUTS)
    rows, limits = [csr_array((0, m))], [np.empty(0)]
    total, last = np.inf, False
    while True:
        n, worst = violated(
            *(lattice.labels, lattice.costs, lattice.starts, lattice.nodes, lattice.floors, lattice.counts),
            *(prices, k, members, shares, paid, last),
        )
        chosen = np.unique(worst[worst >= 0])
        note(f"{len(chosen):,} classes are paid more than they cost; {total / lattice.counts.sum():.5f}")
        if n == 0 or last:
            return prices
        if len(chosen) <= ENOUGH * m:
            last = True
            continue
        data, columns = shares[chosen].astype(float).ravel(), members[chosen].ravel()
        rows.append(csr_array((data, columns, np.arange(len(chosen) + 1) * k), shape=(len(chosen), m)))
        limits.append(paid[chosen].copy())
        solved = linprog(
            -lattice.counts.astype(float),
            vstack(rows).tocsr(),
            np.concatenate(limits),
            bounds=bounds,
            method="highs-ipm",
        )
        prices, total = np.maximum(solved.x, 0), -solved.fun


# ── Adult ────────────────────────────────────────────────────────────────────────────────────────────────


def paid_now(space: Space, partition: Partition, lattice: Lattice) -> tuple[Floats, float]:
    """What the records of each tuple pay in an answer, the mean of several classes; and the mean over all records."""
    order = np.argsort(partition.class_of, kind="stable")
    tuples = space.tuple_of_row[partition.row[order]]
    class_of, counts = partition.class_of[order], partition.counts[order]
    firsts = np.flatnonzero(np.diff(class_of, prepend=-1))
    costs = np.zeros(len(order))
    for j, column in enumerate(space.columns):
        levels = slice(lattice.starts[j], lattice.starts[j] + len(column.nodes))
        labels, prices = lattice.labels[levels][:, tuples], lattice.costs[levels][:, tuples]
        alike = np.minimum.reduceat(labels, firsts, axis=1) == np.maximum.reduceat(labels, firsts, axis=1)
        costs += prices[alike.argmax(axis=0)[class_of], np.arange(len(order))]
    together = np.bincount(tuples, costs * counts, len(space.codes))
    return together / lattice.counts, float(together.sum() / lattice.counts.sum())


def nearness(table: FrequencyTable, k: int) -> dict[str, float]:
    """What `local` loses, and what no partition can lose less than, in two prices."""
    problem = plain(table, k)()
    answer = SEARCHES["local"](problem)
    partition, space = partition_of(answer, problem), Space(problem)
    counts = np.bincount(space.tuple_of_row, table.counts, len(space.codes)).astype(np.int64)
    found = {"loss": losses(problem, answer)["arx-loss"]}
    ones = Lattice.of(space, space.loss.slopes, counts)
    sums = [
        paid_now(space, partition, Lattice.of(space, np.eye(len(space.columns))[j], counts))[1]
        for j in range(len(space.columns))
    ]
    ground = np.array([column.node_prices[0].min() for column in space.columns])
    tangent = space.weights((np.array(sums) + ground) * table.n_records)
    for name, lattice in (("mean cell loss", ones), ("tangent", Lattice.of(space, tangent, counts))):
        start = time.perf_counter()
        paid, mean = paid_now(space, partition, lattice)
        prices = highest_prices(lattice, k, paid, lambda text, name=name: print(f"k = {k}, {name}: {text}", flush=True))
        least = np.maximum(prices - TOLERANCE, 0)
        found |= {
            name: mean,
            f"{name}, bound": float(lattice.counts @ least / lattice.counts.sum()),
            f"{name}, seconds": time.perf_counter() - start,
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--k", type=int, nargs="+", default=[2, 5])
    parser.add_argument("--tuples", type=int, help="look at so many rows of the frequency table only")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/local.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = census(arguments.data, Path(folder))
        table = LocalEngine.of(data.table).count(Policy.parse(data.policy(5, 0.0)), apart=True).table
    if arguments.tuples:
        table = table.taken(range(0, table.n_classes, -(-table.n_classes // arguments.tuples)))
    found = {k: nearness(table, k) for k in arguments.k}
    text = written(
        ("", *(f"k = {k}" for k in found)),
        [
            ("ARX's loss", *(f"{of['loss']:.4f}" for of in found.values())),
            ("by its tangent", *(f"{of['tangent']:.4f}" for of in found.values())),
            ("no partition is below", *(f"{of['tangent, bound']:.4f}" for of in found.values())),
            ("mean cell loss", *(f"{of['mean cell loss']:.4f}" for of in found.values())),
            ("no partition is below", *(f"{of['mean cell loss, bound']:.4f}" for of in found.values())),
        ],
    )
    print(text)
    if arguments.page:
        between(DOCS / "local.md", Path(__file__).name, text)


if __name__ == "__main__":
    main()
