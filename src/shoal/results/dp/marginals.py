"""From noisy marginals to a synthetic table: a tree of pairs, tables that agree, rows drawn from them.

R. McKenna, G. Miklau, D. Sheldon, "Winning the NIST Contest", Journal of Privacy and Confidentiality, 2021: measure
every column, choose the pairs that depend most on each other as a tree, measure them, and draw rows along the tree.
Nothing here looks at the data: what follows from noisy counts costs no further privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shoal.tables.frequency import Codes, Floats

TreePair = tuple[int, int]  # numbers of two columns, the lower one first

SWEEPS = 200  # of proportional fitting, at most
LARGEST_CELL = 2.0**40  # of the independent table: a million such cells add up within 64 bits
SPREAD = 1e-9  # of the independent table, mixed in so that fitting never meets a row of zeros that needs records


def spanning_tree(n_columns: int, choose: Callable[[Sequence[TreePair]], int]) -> list[TreePair]:
    """Return the pairs of a tree: again and again, ``choose`` one of those that close no circle (J. Kruskal, 1956)."""
    part = list(range(n_columns))
    tree: list[TreePair] = []
    while open_pairs := [pair for pair in combinations(range(n_columns), 2) if part[pair[0]] != part[pair[1]]]:
        i, j = open_pairs[choose(open_pairs)]
        tree.append((i, j))
        joined, target = part[j], part[i]
        part = [target if label == joined else label for label in part]
    return tree


def closes_a_circle(n_columns: int, pairs: Sequence[TreePair]) -> bool:
    """Return whether the pairs are not a forest."""
    part = list(range(n_columns))
    for i, j in pairs:
        if part[i] == part[j]:
            return True
        joined, target = part[j], part[i]
        part = [target if label == joined else label for label in part]
    return False


def dependence(exact: Floats, rows: Floats, columns: Floats) -> int:
    """Return how far a table is from that of independent columns: a sum of whole differences.

    A record changes one cell of ``exact`` by 1, and so the sum by 1 at most; ``rows`` and ``columns`` are noisy.
    """
    total = max(rows.sum(), 1.0)
    # Whole numbers of 64 bits: among floats beyond 2^53, which a tiny budget leads to, a change of 1 is rounded up.
    expected = np.minimum(np.rint(np.outer(rows, columns) / total), LARGEST_CELL).astype(np.int64)
    return int(np.abs(exact.astype(np.int64) - expected).sum())


def on_simplex(values: Floats, total: float) -> Floats:
    """Return the nearest numbers that are not negative and add up to ``total`` (J. Duchi et al., ICML 2008)."""
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = int(np.flatnonzero(ordered > excess)[-1]) if total > 0 else 0
    return np.asarray(np.maximum(values - excess[last], 0.0), np.float64)


@dataclass(frozen=True, eq=False)
class Marginals:
    """Counts of every column, and of the pairs of a forest; they are not negative and agree with each other."""

    total: float
    single: tuple[Floats, ...]
    paired: Mapping[TreePair, Floats]


@dataclass(frozen=True, eq=False)
class MeasuredTable:
    """Noisy counts of a column or of a pair, and the variance of the noise of each."""

    noisy: Floats
    variance: float


def consistent(single: Sequence[MeasuredTable], paired: Mapping[TreePair, MeasuredTable]) -> Marginals:
    """Return marginals near to the noisy ones: each weighs the more, the less noise it has."""
    tables = [*single, *paired.values()]
    weights = [1 / (table.noisy.size * table.variance) for table in tables]
    total = max(float(np.average([table.noisy.sum() for table in tables], weights=weights)), 0.0)
    margins = []
    for i, single_table in enumerate(single):
        estimates, trust = [single_table.noisy], [1 / single_table.variance]
        for pair, table in paired.items():
            if i in pair:
                axis = 1 - pair.index(i)
                estimates.append(table.noisy.sum(axis=axis))
                trust.append(1 / (table.noisy.shape[axis] * table.variance))
        margins.append(on_simplex(np.average(estimates, axis=0, weights=trust), total))
    fitted = {
        (i, j): fit_to_margins(
            on_simplex(table.noisy.ravel(), total).reshape(table.noisy.shape), margins[i], margins[j]
        )
        for (i, j), table in paired.items()
    }
    return Marginals(total, tuple(margins), fitted)


def fit_to_margins(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Scale rows and columns in turn until both sums are met (W. Deming, F. Stephan, 1940)."""
    total = rows.sum()
    if total <= 0:
        return np.zeros_like(table)
    fitted = table + SPREAD * np.outer(rows, columns) / total
    for _ in range(SWEEPS):
        fitted = fitted * _ratio(columns, fitted.sum(axis=0))
        fitted = fitted * _ratio(rows, fitted.sum(axis=1))[:, None]
        if np.abs(fitted.sum(axis=0) - columns).max() <= 1e-9 * total:
            break
    return np.asarray(fitted, np.float64)


def _ratio(wanted: Floats, current: Floats) -> Floats:
    return np.divide(wanted, current, out=np.zeros_like(wanted), where=current > 0)


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────


def drawn_rows(marginals: Marginals, n_rows: int, draw: np.random.Generator) -> Codes:
    """Return the cell of each column for every row, drawn along the forest.

    Within each cell of a parent, the cells of its child are dealt in whole numbers as near to their expectation as
    possible: the rows have the marginals, and not another sampling error on top of the noise.
    """
    codes = np.full((n_rows, len(marginals.single)), -1, np.int32)
    visited: set[int] = set()
    for root in range(len(marginals.single)):
        if root in visited:
            continue
        codes[:, root] = _dealt(marginals.single[root], n_rows, draw)
        visited.add(root)
        waiting = [root]
        while waiting:
            parent = waiting.pop()
            for (i, j), table in marginals.paired.items():
                child = j if i == parent else i if j == parent else parent
                if child in visited:
                    continue
                conditional = table if i == parent else table.T
                for cell in range(len(conditional)):
                    rows = np.flatnonzero(codes[:, parent] == cell)
                    codes[rows, child] = _dealt(conditional[cell], len(rows), draw)
                visited.add(child)
                waiting.append(child)
    return codes


def _dealt(weights: Floats, n: int, draw: np.random.Generator) -> Codes:
    """Return ``n`` cells in random order, each as often as its weight says, rounded up or down at random."""
    share = weights / weights.sum() if weights.sum() > 0 else np.full(len(weights), 1 / len(weights))
    expected = np.round(share * n, 6)
    counts = np.floor(expected).astype(np.int64)
    rest = n - int(counts.sum())
    if rest > 0:
        # Systematic sampling: every cell is rounded up with a probability that is its fraction.
        order = draw.permutation(len(weights))
        part: Floats = np.asarray(np.cumsum((expected - counts)[order]), np.float64)
        part = part if part[-1] > 0 else np.arange(1.0, len(part) + 1)
        part = part * (rest / part[-1])
        marks = np.searchsorted(part, draw.random() + np.arange(rest), side="right")
        np.add.at(counts, order[np.minimum(marks, len(order) - 1)], 1)
    return np.asarray(draw.permutation(np.repeat(np.arange(len(weights)), counts)[:n]), np.int32)
