"""Linear regression on the release and on the original: how far the coefficients differ.

A sensitive number is explained by the quasi-identifiers. Numbers are read from the release as midpoints, a category as
the share of each value that its cell may stand for. The error of a coefficient is given in standard errors of the
original: below about two, sampling alone could have moved it as far.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal.engines.base import Released
from shoal.engines.data import Data
from shoal.notation.numbers import parse_number
from shoal.policy import PolicySource, policy_of
from shoal.tables.frequency import Floats
from shoal.utility.reading import ColumnPair, Pair

MOST_VALUES = 30  # of a category: more would be a column of indicators each


def coefficients_kept(
    original: Data, release: Data | Released, policy: PolicySource, *, targets: Sequence[str] | None = None
) -> dict[str, Any]:
    """Return the coefficients of every numeric sensitive column, or of ``targets``, before and after.

    Quasi columns of categories with more than 30 values are left out. ``median_error`` is None where nothing can be
    regressed: no sensitive number, or one that does not vary.
    """
    policy = policy_of(policy)
    names = tuple(policy.sensitive if targets is None else targets)
    return regressions(Pair.from_tables(original, release, policy, (*policy.quasi, *names)), names)


def regressions(pair: Pair, targets: Sequence[str]) -> dict[str, Any]:
    """Compute the same on tables that were already read."""
    by_name = {column.name: column for column in pair.columns}
    explaining = [column for column in pair.columns if column.name not in targets and _usable(column)]
    by_target: dict[str, Any] = {}
    for name in targets:
        terms = _regression(by_name[name], explaining)
        if terms:
            by_target[name] = {
                "coefficients": terms,
                "median_error": float(np.median([term["error"] for term in terms])),
            }
    errors = [term["error"] for fit in by_target.values() for term in fit["coefficients"]]
    return {
        "targets": by_target,
        "median_error": float(np.median(errors)) if errors else None,
        "left_out": [column.name for column in pair.columns if column.name not in targets and not _usable(column)],
    }


def _usable(column: ColumnPair) -> bool:
    return column.numbers is not None or column.n_leaves <= MOST_VALUES


def _regression(target: ColumnPair, explaining: Sequence[ColumnPair]) -> list[dict[str, Any]]:
    """Return a line per coefficient; none if the target is not numeric, or nothing varies."""
    values = _numbers(target)
    if values is None or np.ptp(y_before := values[target.original]) == 0:
        return []
    terms, before, after = _designs(explaining)
    y_after = target.masses[target.released] @ np.nan_to_num(values)  # a sensitive value is released as it is
    fitted, rank = _fitted(before, y_before)
    left = len(y_before) - rank
    if not terms or left < 1:
        return []
    noise = float(((y_before - before @ fitted) ** 2).sum()) / left
    deviations = np.sqrt(noise * np.diag(np.linalg.pinv(before.T @ before)))
    again, _ = _fitted(after, y_after)
    return [
        {"term": term, "before": float(a), "after": float(b), "error": float(abs(a - b) / deviation)}
        for term, a, b, deviation in zip(terms, fitted[1:], again[1:], deviations[1:], strict=True)
        if deviation > 0
    ]


def _numbers(target: ColumnPair) -> Floats | None:
    """Return the number of each value; None if the column has other values, or a record has none."""
    read = [None if text is None else parse_number(text) for text in target.hierarchy.leaves]
    values = np.array([np.nan if value is None else float(value) for value in read])
    return None if np.isnan(values[target.original]).any() else values


def _designs(columns: Sequence[ColumnPair]) -> tuple[list[str], Floats, Floats]:
    """Return the names of the regressors, and both design matrices with a column of ones in front.

    Numbers are standardized by the original, so that one scale serves both. Of a category the most frequent value is
    what the others are compared with.
    """
    terms: list[str] = []
    before: list[Floats] = []
    after: list[Floats] = []
    n_before, n_after = (len(columns[0].original), len(columns[0].released)) if columns else (0, 0)
    for column in columns:
        if column.numbers is not None:
            values = column.numbers[column.original]
            if (spread := float(values.std())) > 0:
                terms.append(column.name)
                before.append((values - values.mean()) / spread)
                after.append((column.midpoints[column.released] - values.mean()) / spread)
            continue
        shares = column.masses.toarray()
        frequencies = np.bincount(column.original, minlength=column.n_leaves)
        for leaf in np.argsort(-frequencies, kind="stable")[1:]:
            if frequencies[leaf]:
                terms.append(
                    f"{column.name}: value {leaf + 1}"
                )  # its number: a result may travel farther than the data
                before.append((column.original == leaf).astype(np.float64))
                after.append(shares[column.released, leaf])
    return (
        terms,
        np.column_stack([np.ones(n_before), *before]),
        np.column_stack([np.ones(n_after), *after]),
    )


def _fitted(design: Floats, target: Floats) -> tuple[Floats, int]:
    """Fit least squares; if columns are dependent, return the solution of smallest norm."""
    fitted, _, rank, _ = np.linalg.lstsq(design, target, rcond=None)
    return fitted.astype(np.float64), int(rank)
