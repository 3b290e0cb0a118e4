"""Counting queries: the error of counts on the release, over a random workload.

A query asks how many records lie in a range of some columns, or in a set of values where a column has no order. The
release answers with what it is expected to hold: each released cell is any of the values that it stands for, with
equal chance.

X. Xiao, Y. Tao, "Anatomy: simple and effective privacy preservation", VLDB 2006; K. LeFevre, D. DeWitt,
R. Ramakrishnan, "Workload-aware anonymization", KDD 2006.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.errors import PolicyError
from shoal.policy import PolicySource, policy_of
from shoal.tables.frequency import Floats
from shoal.utility.reading import ColumnPair, Pair

BLOCK = 2**22  # answers kept at a time: tuples times queries


def query_error(
    original: Data,
    release: Data | Released,
    policy: PolicySource,
    *,
    columns: Sequence[str] | None = None,
    queries: int = 1000,
    dimensions: int = 2,
    selectivity: float = 0.1,
    floor: float = 0.001,
    seed: int = 0,
) -> dict[str, Any]:
    """Measure the error of ``queries`` random counts over ``dimensions`` quasi-identifiers, or over ``columns``.

    A query takes about ``selectivity`` of the domain. Its error is |answer − truth| / truth; a truth below ``floor`` of
    all records counts as that, since one record too many where there is none is no infinite error.
    """
    policy = policy_of(policy)
    return workload_error(
        Pair.from_tables(original, release, policy, policy.quasi if columns is None else columns),
        queries=queries,
        dimensions=dimensions,
        selectivity=selectivity,
        floor=floor,
        seed=seed,
    )


def workload_error(
    pair: Pair,
    *,
    queries: int = 1000,
    dimensions: int = 2,
    selectivity: float = 0.1,
    floor: float = 0.001,
    seed: int = 0,
) -> dict[str, Any]:
    """Compute the same on tables that were already read."""
    if queries < 1 or dimensions < 1:
        raise PolicyError("queries, dimensions: must be at least 1")
    if not 0 < selectivity <= 1 or not 0 < floor <= 1:
        raise PolicyError("selectivity, floor: must be above 0 and at most 1")
    draw = np.random.default_rng(seed)
    n_columns = min(dimensions, len(pair.columns))
    by_columns = Counter(
        tuple(sorted(draw.choice(len(pair.columns), n_columns, replace=False).tolist())) for _ in range(queries)
    )
    truths, answers = [], []
    for indices, n in sorted(by_columns.items()):
        columns = [pair.columns[j] for j in indices]
        regions = [_regions(column, n, selectivity ** (1 / n_columns), draw) for column in columns]
        truths.append(_counts(pair, columns, regions, released=False))
        answers.append(_counts(pair, columns, regions, released=True))
    truth, answer = np.concatenate(truths), np.concatenate(answers)
    errors = np.abs(answer - truth) / np.maximum(truth, floor * pair.n_original)
    return {
        "queries": queries,
        "dimensions": n_columns,
        "selectivity": selectivity,
        "floor": floor,
        "seed": seed,
        "median": float(np.median(errors)),
        "mean": float(errors.mean()),
        "95%": float(np.quantile(errors, 0.95)),
        "unknown": pair.unknown,
    }


def _regions(column: ColumnPair, n: int, share: float, draw: np.random.Generator) -> NDArray[np.bool_]:
    """Return ``n`` sets of leaves, each about ``share`` of all: ranges if the leaves are ordered."""
    size = min(column.n_leaves, max(1, math.ceil(share * column.n_leaves - 1e-9)))
    out = np.zeros((n, column.n_leaves), np.bool_)
    if column.ordered:
        starts = draw.integers(0, column.n_leaves - size + 1, n)
        places = starts[:, None] + np.arange(size)
    else:
        places = np.argsort(draw.random((n, column.n_leaves)), axis=1)[:, :size]
    out[np.arange(n)[:, None], places] = True
    return out


def _counts(
    pair: Pair, columns: Sequence[ColumnPair], regions: Sequence[NDArray[np.bool_]], *, released: bool
) -> Floats:
    """Return the number of records in each region; for the release, the expected number."""
    codes, counts = pair.tuples(columns, released=released)
    shares = [
        np.asarray(column.masses @ region.T) if released else region.T.astype(np.float64)
        for column, region in zip(columns, regions, strict=True)
    ]
    n = len(regions[0])
    step = max(1, BLOCK // max(1, len(codes)))
    out = np.empty(n)
    for begin in range(0, n, step):
        inside = np.ones((len(codes), min(step, n - begin)))
        for j, share in enumerate(shares):
            inside *= share[codes[:, j], begin : begin + step]
        out[begin : begin + step] = counts @ inside
    return out
