"""Statistics of the original and of the release.

Numbers are read from the release as midpoints. Tables of counts spread a released cell evenly over the values that it
stands for. Distances of distributions are total variation: half the sum of what differs, 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.sparse import coo_array

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.policy import PolicySource, policy_of
from shoal.tables.frequency import Floats
from shoal.utility.reading import ColumnPair, Pair

LARGEST_TABLE = 4_000_000  # cells of a table of two columns: more are left out
LARGEST_JOINT = 400_000_000  # pairs of tuples, times columns, that the divergence of the joint may look at
BLOCK = 2**22


def statistics_kept(
    original: Data, release: Data | Released, policy: PolicySource, *, columns: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return means, variances, correlations and contingency tables, before and after, and how far they differ."""
    return kept_statistics(Pair.from_tables(original, release, policy_of(policy), columns))


def kept_statistics(pair: Pair) -> dict[str, Any]:
    """Compute the same on tables that were already read."""
    numbers = [column for column in pair.columns if column.numbers is not None]
    return {
        "numbers": {column.name: _moments(column) for column in numbers},
        "correlations": _correlations(numbers),
        "marginals": {column.name: _marginal(column) for column in pair.columns},
        "tables": _tables(pair),
        "kl_divergence": divergence(pair),
        "unknown": pair.unknown,
    }


def _values(column: ColumnPair) -> tuple[Floats, Floats]:
    """Return the numbers before and after."""
    numbers = column.numbers
    if numbers is None:
        raise ValueError("the column is not numeric")
    return numbers[column.original], column.midpoints[column.released]


def _moments(column: ColumnPair) -> dict[str, float]:
    before, after = _values(column)
    return {
        "mean_before": float(before.mean()),
        "mean_after": float(after.mean()),
        "variance_before": float(before.var()),
        "variance_after": float(after.var()),
    }


def _correlations(columns: Sequence[ColumnPair]) -> dict[str, Any]:
    """Return Pearson's correlations of all varying pairs of numeric columns; 0 if the release shows one value only."""
    pairs: list[dict[str, Any]] = []
    for a, b in combinations(columns, 2):
        before, after = (_correlation(x, y) for x, y in zip(_values(a), _values(b), strict=True))
        if before is not None:
            pairs.append({"columns": [a.name, b.name], "before": before, "after": after or 0.0})
    errors = [abs(pair["before"] - pair["after"]) for pair in pairs]
    return {"pairs": pairs, "mean_error": float(np.mean(errors)) if errors else None}


def _correlation(x: Floats, y: Floats) -> float | None:
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return None
    return float(np.corrcoef(x, y)[0, 1])


def _marginal(column: ColumnPair) -> float:
    """Return the total variation of the column's own distribution."""
    before = np.bincount(column.original, minlength=column.n_leaves) / len(column.original)
    texts = np.bincount(column.released, minlength=len(column.texts)) / len(column.released)
    return float(np.abs(before - column.masses.T @ texts).sum() / 2)


def _tables(pair: Pair) -> dict[str, Any]:
    """Return the total variation of every table of two columns."""
    pairs: list[dict[str, Any]] = []
    left_out = []
    for a, b in combinations(pair.columns, 2):
        if a.n_leaves * b.n_leaves > LARGEST_TABLE:
            left_out.append([a.name, b.name])
            continue
        before = _table(a.original, b.original, (a.n_leaves, b.n_leaves))
        texts = _table(a.released, b.released, (len(a.texts), len(b.texts)))
        difference = before.toarray() - (a.masses.T @ texts @ b.masses).toarray()
        pairs.append({"columns": [a.name, b.name], "distance": float(np.abs(difference).sum() / 2)})
    distances = [table["distance"] for table in pairs]
    return {"pairs": pairs, "mean": float(np.mean(distances)) if distances else None, "left_out": left_out}


def _table(x: Any, y: Any, shape: tuple[int, int]) -> Any:
    return coo_array((np.full(len(x), 1 / len(x)), (x, y)), shape=shape).tocsr()


def divergence(pair: Pair) -> float | None:
    """Return the Kullback–Leibler divergence of the original's joint distribution from that of the release.

    Dropped records could be anything. Infinite where the release rules out a record that there is; None where the
    tables have too many distinct tuples to compare.
    """
    tuples, counts = pair.tuples(pair.columns, released=False)
    released, sizes = pair.tuples(pair.columns, released=True)
    if len(tuples) * len(released) * len(pair.columns) > LARGEST_JOINT:
        return None
    dropped = max(0, pair.n_original - pair.n_released)
    uniform = dropped / math.prod(column.n_leaves for column in pair.columns)
    estimated = np.empty(len(tuples))
    step = max(1, BLOCK // len(released))
    masses = [column.masses.tocsc() for column in pair.columns]
    for begin in range(0, len(tuples), step):
        block = tuples[begin : begin + step]
        likely = np.ones((len(block), len(released)))
        for j, mass in enumerate(masses):
            leaves, leaf_index = np.unique(block[:, j], return_inverse=True)
            likely *= mass[:, leaves].toarray().T[:, released[:, j]][leaf_index]
        estimated[begin : begin + step] = likely @ sizes
    estimated = (estimated + uniform) / (pair.n_released + dropped)
    shares = counts / counts.sum()
    if (estimated == 0).any():
        return math.inf
    return max(0.0, float((shares * np.log(shares / estimated)).sum()))
