"""Distances with learnable parameters: weighted mean, OWA, symmetric bilinear form, Choquet integral.

All are linear in their parameters θ once the differences of two records are given, which is what the search for the
worst case needs: each family says which features are added up, in which polytope θ lies, and what lies in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from shoal.errors import DataError
from shoal.tables.frequency import Floats

Name = Literal["mean", "owa", "bilinear", "choquet"]

FULL = 6  # columns up to which a capacity has a value for each set of them: 63


@dataclass(frozen=True, eq=False)
class Family:
    """Features of differences, and the polytope { θ : unit · θ = 1, rows θ ≥ 0, low ≤ θ ≤ 1 } of their weights."""

    names: tuple[str, ...]  # of the parameters
    features: Callable[[Floats], Floats]  # (…, q) differences to (…, parameters)
    unit: Floats
    rows: Floats
    low: float
    plain: Floats  # θ of the plain distance: every family has it
    drawn: Callable[[np.random.Generator], Floats]  # some θ
    near: Callable[[Floats, float, np.random.Generator], Floats]  # some θ within a step, from 0 to 1, of another one
    lowest: Callable[[Floats, Floats], Floats]  # of differences to another and to the right record: least gap of any θ
    of_mean: Callable[[Floats], Floats] | None = None  # the θ of a weighted mean, where it is one of the family
    matrix_of: Callable[[Floats], Floats] | None = None  # θ as the matrix that must be positive semidefinite
    signed: bool = False  # whether differences have signs rather than being squared

    def inside(self, theta: Floats) -> Floats:
        """Return the nearest point to ``theta`` that satisfies all constraints exactly."""
        if self.matrix_of is None:
            clipped = np.clip(theta, self.low, None)
            return np.asarray(clipped / (self.unit @ clipped))
        values, vectors = np.linalg.eigh(self.matrix_of(theta))
        square = (vectors * np.clip(values, 0, None)) @ vectors.T
        upper = square[np.triu_indices(len(square))]
        return np.asarray(upper / np.trace(square))

    def cut(self, theta: Floats) -> Floats | None:
        """Return a row that ``theta`` violates and every positive semidefinite matrix satisfies."""
        if self.matrix_of is None:
            return None
        values, vectors = np.linalg.eigh(self.matrix_of(theta))
        return np.asarray(self.features(vectors[:, 0])) if values[0] < -1e-7 else None


def family(name: Name, columns: Sequence[str]) -> Family:
    """Return the family with this name, for these columns."""
    if name not in FAMILIES:
        raise DataError(f"family: must be one of {', '.join(FAMILIES)}")
    return FAMILIES[name](tuple(columns))


def _simplex(
    names: tuple[str, ...],
    features: Callable[[Floats], Floats],
    plain: Floats,
    of_mean: Callable[[Floats], Floats] | None = None,
) -> Family:
    p = len(names)

    def lowest(other: Floats, right: Floats) -> Floats:
        return np.asarray((features(other) - features(right)).min(axis=-1))

    def drawn(rng: np.random.Generator) -> Floats:
        return np.asarray(rng.dirichlet(np.full(p, 0.3)))

    def near(theta: Floats, step: float, rng: np.random.Generator) -> Floats:
        # By factors: a weight of a thousandth may matter, and must be found between 0 and a hundredth.
        moved = theta * np.exp(3 * step * rng.normal(size=p)) + step**2 * drawn(rng)
        return np.asarray(moved / moved.sum())

    return Family(names, features, np.ones(p), np.zeros((0, p)), 0.0, plain, drawn, near, lowest, of_mean)


def _mean(columns: tuple[str, ...]) -> Family:
    """Σ w_j d_j: some columns count more."""
    q = len(columns)
    return _simplex(columns, lambda d: d, np.full(q, 1 / q))


def _owa(columns: tuple[str, ...]) -> Family:
    """Σ w_r d_(r), differences sorted in descending order: some ranks count more."""
    q = len(columns)
    names = tuple(f"rank {rank}" for rank in range(1, q + 1))
    return _simplex(names, lambda d: np.sort(d, axis=-1)[..., ::-1], np.full(q, 1 / q))


def _bilinear(columns: tuple[str, ...]) -> Family:
    """x' W x with W positive semidefinite and of trace 1, as in the Mahalanobis distance: columns may interact."""
    q = len(columns)
    first, second = np.triu_indices(q)
    twice = np.where(first == second, 1.0, 2.0)  # both halves of the matrix
    diagonal = (first == second).astype(np.float64)

    def features(x: Floats) -> Floats:
        return np.asarray(x[..., first] * x[..., second] * twice)

    def matrix_of(theta: Floats) -> Floats:
        square = np.zeros((q, q))
        square[first, second] = square[second, first] = theta
        return square

    def drawn(rng: np.random.Generator) -> Floats:
        root = rng.normal(size=(q, q)) * np.sqrt(rng.dirichlet(np.full(q, 0.3)))[:, None]
        square = root @ root.T
        return np.asarray((square / np.trace(square))[first, second])

    def near(theta: Floats, step: float, rng: np.random.Generator) -> Floats:
        # Each column on another scale, and one direction more: both leave a semidefinite matrix semidefinite.
        factors = np.exp(1.5 * step * rng.normal(size=q))
        direction = rng.normal(size=q) * np.sqrt(rng.dirichlet(np.full(q, 0.3)))
        square = matrix_of(theta) * np.outer(factors, factors) + step**2 * np.outer(direction, direction)
        return np.asarray((square / np.trace(square))[first, second])

    def lowest(other: Floats, right: Floats) -> Floats:
        return np.broadcast_to(-(right**2).sum(axis=-1), other.shape[:-1])  # x' W x is between 0 and |x|²

    names = tuple(columns[j] if j == k else f"{columns[j]} · {columns[k]}" for j, k in zip(first, second, strict=True))
    return Family(
        names,
        features,
        diagonal,
        np.zeros((0, len(names))),
        -1.0,
        diagonal / q,
        drawn,
        near,
        lowest,
        lambda weights: np.where(first == second, weights[first], 0.0),
        matrix_of,
        signed=True,
    )


def _choquet(columns: tuple[str, ...]) -> Family:
    """The Choquet integral: sets of columns count more, or less, than their parts."""
    return _capacity(columns) if len(columns) <= FULL else _two_additive(columns)


def _capacity(columns: tuple[str, ...]) -> Family:
    """θ is μ of every nonempty set of columns; μ increases with the set."""
    q = len(columns)
    sets = range(1, 1 << q)
    inside = (np.array(sets)[:, None] >> np.arange(q)) & 1
    full = (1 << q) - 1
    rows = []
    for s in sets:
        for j in range(q):
            if s >> j & 1 and s != 1 << j:
                row = np.zeros(full)
                row[s - 1], row[(s & ~(1 << j)) - 1] = 1.0, -1.0
                rows.append(row)

    def features(d: Floats) -> Floats:
        order = np.argsort(d, axis=-1)
        ranked = np.take_along_axis(d, order, axis=-1)
        steps = np.diff(ranked, axis=-1, prepend=0.0)
        # The columns whose difference is at least as large: all, then all without the least, …
        above = np.cumsum((1 << order)[..., ::-1], axis=-1)[..., ::-1]
        out = np.zeros((*d.shape[:-1], full))
        np.put_along_axis(out, above - 1, steps, axis=-1)
        return out

    def additive(weights: Floats) -> Floats:
        whole = inside @ weights
        return np.asarray(whole / whole[-1])

    def drawn(rng: np.random.Generator) -> Floats:
        return np.asarray(additive(rng.dirichlet(np.full(q, 0.3))) ** np.exp(rng.normal()))

    def near(theta: Floats, step: float, rng: np.random.Generator) -> Floats:
        # Towards another capacity, or one that only asks whether a set holds certain columns.
        subset = int(rng.integers(1, full + 1))
        other = drawn(rng) if rng.random() < 0.5 else ((np.array(sets) & subset) == subset).astype(np.float64)
        return np.asarray(theta + step * (other - theta))

    def lowest(other: Floats, right: Floats) -> Floats:
        return np.asarray(other.min(axis=-1) - right.max(axis=-1))

    names = tuple(", ".join(columns[j] for j in range(q) if s >> j & 1) for s in sets)
    unit = (np.array(sets) == full).astype(np.float64)
    matrix = np.array(rows).reshape(-1, full)
    return Family(names, features, unit, matrix, 0.0, additive(np.ones(q)), drawn, near, lowest, additive)


def _two_additive(columns: tuple[str, ...]) -> Family:
    """Capacities with interactions of at most two columns, as mixtures of their extreme points.

    These are single columns, and the least and the largest of two (P. Miranda, E. Combarro, P. Gil, "Extreme points of
    some families of non-additive measures", EJOR 174, 2006): no constraint is left but that the weights are a mixture.
    """
    q = len(columns)
    first, second = (np.array(side) for side in zip(*combinations(range(q), 2), strict=True))

    def features(d: Floats) -> Floats:
        left, other = d[..., first], d[..., second]
        return np.concatenate([d, np.minimum(left, other), np.maximum(left, other)], axis=-1)

    pairs = [(columns[j], columns[k]) for j, k in zip(first, second, strict=True)]
    names = (*columns, *(f"min({a}, {b})" for a, b in pairs), *(f"max({a}, {b})" for a, b in pairs))

    def additive(weights: Floats) -> Floats:
        return np.concatenate([weights, np.zeros(len(names) - q)])

    return _simplex(names, features, additive(np.full(q, 1 / q)), additive)


FAMILIES: dict[str, Callable[[tuple[str, ...]], Family]] = {
    "mean": _mean,
    "owa": _owa,
    "bilinear": _bilinear,
    "choquet": _choquet,
}
