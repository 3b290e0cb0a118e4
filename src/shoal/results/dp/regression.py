"""Linear regression from noisy sufficient statistics.

Sums of all variables and of products of two determine the coefficients (D. Vu, A. Slavković, "Differential Privacy for
Clinical Trial Data", ICDMW 2009; Y.-X. Wang, UAI 2018). Every variable is scaled by its bounds to [-1, 1] and rounded
to multiples of 1/1024, so that each record changes each statistic by 1 at most and all of them are whole numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np

from shoal.errors import PolicyError
from shoal.results.dp.noise import ChangeBound, Noise
from shoal.results.dp.public_schema import FixedPoint
from shoal.results.dp.statistics import Figure, Piece
from shoal.results.least_squares import solved_normal_equations
from shoal.tables.frequency import Floats

STEPS = 1024  # of a scaled variable, between 0 and 1


@dataclass(frozen=True)
class RegressionStatistic:
    """The coefficients of a linear model, by least squares."""

    target: FixedPoint
    features: tuple[FixedPoint, ...]
    kind: Literal["regression"] = "regression"

    def __post_init__(self) -> None:
        if not self.features or len(set(self.columns)) < len(self.columns):
            raise PolicyError("a regression needs at least one feature, each named once, and another column to explain")

    @property
    def name(self) -> str:
        """The query in words."""
        return f"regression of {self.target.column} on {', '.join(variable.column for variable in self.features)}"

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it reads."""
        return tuple(variable.column for variable in self.variables)

    @property
    def numbers(self) -> tuple[str, ...]:
        """All of its columns."""
        return self.columns

    @property
    def variables(self) -> tuple[FixedPoint, ...]:
        """The features, then the target."""
        return (*self.features, self.target)

    @property
    def products(self) -> list[tuple[int, int]]:
        """The pairs of variables whose products are added up: all but the square of the target, which is not needed."""
        last = len(self.features)
        return [pair for pair in combinations_with_replacement(range(last + 1), 2) if pair != (last, last)]

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each complete record adds 1 to the count and [-1, 1] to every sum, in units of 1/1024²."""
        entries = 1 + len(self.variables) + len(self.products)
        unit = STEPS**2
        sensitivity = ChangeBound(c * entries * unit, c * c * entries * unit**2, c * unit, c * entries)
        return (Piece("sums and products", entries, sensitivity, 1 / unit),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return intercept and coefficients, with intervals by interval arithmetic over all noise at once."""
        sums = np.asarray(noisy[0], np.float64) / STEPS**2
        entries = len(sums)
        noise = noises[0].half_width(1 - (1 - confidence) / entries) / STEPS**2
        matrix, right = self._normal_equations(sums)
        scaled, _ = solved_normal_equations(matrix, right)
        error = _perturbation(matrix, scaled, noise)
        return self._unscaled(scaled, error)

    def _normal_equations(self, sums: Floats) -> tuple[Floats, Floats]:
        n_features = len(self.features)
        matrix = np.zeros((n_features + 1, n_features + 1))
        right = np.zeros(n_features + 1)
        matrix[0, 0], right[0] = sums[0], sums[1 + n_features]
        matrix[0, 1:] = matrix[1:, 0] = sums[1 : 1 + n_features]
        for (i, j), product in zip(self.products, sums[2 + n_features :], strict=True):
            if j == n_features:
                right[1 + i] = product
            else:
                matrix[1 + i, 1 + j] = matrix[1 + j, 1 + i] = product
        return matrix, right

    def _unscaled(self, scaled: Floats, error: Floats) -> list[Figure]:
        """Return the coefficients in the units of the columns."""
        middle = [float(variable.lower + variable.upper) / 2 for variable in self.variables]
        half = [float(variable.upper - variable.lower) / 2 for variable in self.variables]
        slopes = [half[-1] * beta / h for beta, h in zip(scaled[1:], half[:-1], strict=True)]
        errors = [half[-1] * e / h for e, h in zip(error[1:], half[:-1], strict=True)]
        intercept = middle[-1] + half[-1] * scaled[0] - sum(b * m for b, m in zip(slopes, middle[:-1], strict=True))
        loose = half[-1] * error[0] + sum(e * abs(m) for e, m in zip(errors, middle[:-1], strict=True))
        values = [("intercept", intercept, loose)]
        values += [(variable.column, b, e) for variable, b, e in zip(self.features, slopes, errors, strict=True)]
        return [Figure(column, float(value), float(value - e), float(value + e)) for column, value, e in values]


def _perturbation(matrix: Floats, solution: Floats, noise: float) -> Floats:
    """Bound how far the solution is from that of the equations without noise, each entry of which is within ``noise``.

    With the equations (A - E) x = b - e, the solution of A y = b differs by x - y = A⁻¹ (E x - e), entry by entry at
    most |A⁻¹| noise (1 + |y|₁ + |x - y|₁). If the noise allows a singular matrix, nothing is known: infinite.
    """
    try:
        size = np.abs(np.linalg.inv(matrix)).sum(axis=1) * noise
    except np.linalg.LinAlgError:
        return np.full(len(solution), np.inf)
    if not np.isfinite(size).all() or size.sum() >= 1:
        return np.full(len(solution), np.inf)
    total = size.sum() * (1 + np.abs(solution).sum()) / (1 - size.sum())  # |x - y|₁
    return np.asarray(size * (1 + np.abs(solution).sum() + total))
