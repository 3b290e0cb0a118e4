"""Least squares: from the rows, by an orthogonal matrix, or from sums of products, by the normal equations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.tables.frequency import Floats

DEPENDENT = 1e-9  # of a column of length 1: what is left of it beside the others, if it depends on them


@dataclass(frozen=True, eq=False)
class Projection:
    """The columns of a design matrix as an orthogonal matrix, and the weights that make coefficients of values."""

    orthogonal: Floats  # (rows, columns)
    weights: Floats  # (columns, rows)

    @classmethod
    def of_design(cls, design: Floats) -> Projection | None:
        """Return the projection on the columns of a design; None if they depend on each other."""
        n, k = design.shape
        if n < k:
            return None
        scale = np.maximum(np.sqrt((design**2).mean(axis=0)), 1e-300) if n else np.ones(k)
        q, r = np.linalg.qr(design / scale)
        if np.abs(np.diag(r)).min() < DEPENDENT * np.sqrt(max(n, 1)):
            return None
        return cls(q, np.linalg.solve(r, q.T) / scale[:, None])


def solved_normal_equations(products: Floats, moments: Floats) -> tuple[Floats, int]:
    """Return the coefficients from the sums of products of the columns and with the target, and the rank.

    Columns are scaled to the same length, so that units do not decide which of them depend on each other.
    """
    scale = np.sqrt(np.maximum(np.abs(np.diag(products)), 1e-300))
    solution, _, rank, _ = np.linalg.lstsq(products / np.outer(scale, scale), moments / scale, rcond=None)
    return np.asarray(solution / scale, np.float64), int(rank)
