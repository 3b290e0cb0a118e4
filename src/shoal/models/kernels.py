"""Compiled loops over the sparse histograms of classes: scores and verdicts.

Each takes the histogram's ``starts``, ``values`` and ``counts`` and returns one number per class; each has a plain
equivalent in its test. They add up and sort by hand: with NumPy's sums and sorts inside, loading a compiled loop
would prepare the compiler in every process, and compiling it would take seconds.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled, compiled_when_long, compiled_within
from shoal.tables.frequency import Codes, Counts, Floats

# Distances of Shell's sort: a few lines that compile in no time, and short lists are sorted by plain insertion.
GAPS = (701, 301, 132, 57, 23, 10, 4, 1)


@compiled_within
def sort_counts(counts: Floats, n: int) -> None:
    """Sort the first ``n`` counts in ascending order."""
    for gap in GAPS:
        for i in range(gap, n):
            count = counts[i]
            j = i
            while j >= gap and counts[j - gap] > count:
                counts[j] = counts[j - gap]
                j -= gap
            counts[j] = count


@compiled_within
def longest(starts: Counts) -> int:
    """Return the largest number of entries of a class."""
    n_entries = 0
    for c in range(starts.shape[0] - 1):
        n_entries = max(n_entries, starts[c + 1] - starts[c])
    return n_entries


def entropies(starts: Counts, counts: Counts) -> Floats:
    """Return the entropy of each class in nats: ln n − Σ r ln r / n."""
    out = np.zeros(len(starts) - 1)
    _entropies(starts, counts, out)
    return out


@compiled_when_long(lambda _, counts, out: len(counts))
def _entropies(starts: Counts, counts: Counts, out: Floats) -> None:
    for c in range(out.shape[0]):
        n, total = 0, 0.0
        for e in range(starts[c], starts[c + 1]):
            r = counts[e]
            n += r
            if r > 1:
                total += r * log(float(r))
        if n:
            out[c] = log(float(n)) - total / n


def heads_and_tails(starts: Counts, counts: Counts, l: int) -> tuple[Counts, Counts]:
    """Return r_1 and r_ℓ + r_{ℓ+1} + … + r_m of each class, where r_1 ≥ r_2 ≥ … are its counts."""
    heads, tails = np.zeros(len(starts) - 1, np.int64), np.zeros(len(starts) - 1, np.int64)
    ranked = np.empty(len(counts))  # more than enough, and it takes no time to ask for
    _heads_and_tails(starts, counts, l, ranked, heads, tails)
    return heads, tails


@compiled_when_long(lambda _, counts, *rest: 2 * len(counts))
def _heads_and_tails(starts: Counts, counts: Counts, l: int, ranked: Floats, heads: Counts, tails: Counts) -> None:
    """Write both numbers of each class; ``ranked`` has room for the counts of any class."""
    for c in range(heads.shape[0]):
        m = starts[c + 1] - starts[c]
        for i in range(m):
            ranked[i] = counts[starts[c] + i]
        sort_counts(ranked, m)
        heads[c] = ranked[m - 1] if m else 0
        for i in range(m - max(l, 1) + 1):
            tails[c] += np.int64(ranked[i])


@compiled_when_long(lambda _, values, *rest: 2 * len(values))
def within_caps(starts: Counts, values: Codes, counts: Counts, caps: Floats) -> NDArray[np.bool_]:
    """Return whether no value s of each class exceeds the share caps_s."""
    out = np.ones(starts.shape[0] - 1, np.bool_)
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
        for e in range(starts[c], starts[c + 1]):
            if counts[e] / n > caps[values[e]]:
                out[c] = False
                break
    return out


def equal_distances(starts: Counts, values: Codes, counts: Counts, q: Floats) -> Floats:
    """Return ½ Σ |p − q| of each class; values that are absent add their q."""
    out = np.zeros(len(starts) - 1)
    _equal_distances(starts, values, counts, q, out)
    return out


@compiled_when_long(lambda _, values, *rest: 2 * len(values) + len(rest[1]))
def _equal_distances(starts: Counts, values: Codes, counts: Counts, q: Floats, out: Floats) -> None:
    whole = 0.0
    for v in range(q.shape[0]):
        whole += q[v]
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
        total, present = 0.0, 0.0
        for e in range(starts[c], starts[c + 1]):
            total += abs(counts[e] / n - q[values[e]])
            present += q[values[e]]
        out[c] = (total + (whole - present)) / 2


def line_distances(starts: Counts, values: Codes, counts: Counts, places: Counts, q: Floats, gaps: Floats) -> Floats:
    """Return Σ_i gaps_i |F_p(i) − F_q(i)| of each class.

    ``places[v]`` is the position of value v on the line, ``q`` the overall shares by position, ``gaps[i]`` the distance
    from position i to the next.
    """
    out = np.zeros(len(starts) - 1)
    _line_distances(starts, values, counts, places, q.cumsum(), gaps, np.zeros(len(q)), out)
    return out


@compiled
def _line_distances(
    starts: Counts,
    values: Codes,
    counts: Counts,
    places: Counts,
    up_to: Floats,
    gaps: Floats,
    counts_by_position: Floats,
    out: Floats,
) -> None:
    """Apply ``line_distances``; ``up_to`` are the overall shares up to each position, ``counts_by_position`` is 0."""
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
            counts_by_position[places[values[e]]] = counts[e]
        total, below = 0.0, 0.0  # the distance times n, and the records up to a position
        for i in range(gaps.shape[0]):
            below += counts_by_position[i]
            total += gaps[i] * abs(below - n * up_to[i])
        out[c] = total / n if n else 0.0
        for e in range(starts[c], starts[c + 1]):
            counts_by_position[places[values[e]]] = 0.0


@compiled_within
def most_nodes(codes: Codes) -> int:
    """Return the largest number of subtrees of a level; none of the values of some may occur."""
    n_nodes: int = codes.shape[1]
    for level in range(codes.shape[0]):
        for v in range(codes.shape[1]):
            n_nodes = max(n_nodes, int(codes[level, v]) + 1)
    return n_nodes


@compiled
def tree_distances(starts: Counts, values: Codes, counts: Counts, codes: Codes, q: Floats) -> Floats:
    """Return the cost of moving mass through nearest common ancestors in each class, priced by their height.

    ``codes[level, v]`` is the subtree of value v at a level. Within every subtree, the amount moved is the smaller of
    its children's total surplus and total deficit.
    """
    out = np.zeros(starts.shape[0] - 1)
    n_levels, n_values = codes.shape
    height = n_levels - 1
    max_nodes = most_nodes(codes)
    first = np.full((n_levels, max_nodes), -1, np.int64)  # some value of each subtree, to look up its parent
    n_nodes = np.zeros(n_levels, np.int64)
    for level in range(n_levels):
        for v in range(n_values):
            first[level, codes[level, v]] = v
            n_nodes[level] = max(n_nodes[level], np.int64(codes[level, v]) + 1)
    extra, surplus, deficit = np.empty(max_nodes), np.empty(max_nodes), np.empty(max_nodes)
    for c in range(out.shape[0]):
        n = 0
        for e in range(starts[c], starts[c + 1]):
            n += counts[e]
        for v in range(n_values):
            extra[v] = -q[v]
        for e in range(starts[c], starts[c + 1]):
            extra[values[e]] += counts[e] / n
        n_children = n_values
        for level in range(n_levels):
            surplus[: n_nodes[level]] = 0.0
            deficit[: n_nodes[level]] = 0.0
            for child in range(n_children):
                # Level 0 may already join values; moving mass there is free because its height is 0.
                v = child if level == 0 else first[level - 1, child]
                if v < 0:
                    continue
                parent = codes[level, v]
                if extra[child] > 0:
                    surplus[parent] += extra[child]
                else:
                    deficit[parent] -= extra[child]
            moved = 0.0
            for node in range(n_nodes[level]):
                moved += min(surplus[node], deficit[node])
                extra[node] = surplus[node] - deficit[node]
            n_children = n_nodes[level]
            out[c] += level / height * moved if height else 0.0
    return out
