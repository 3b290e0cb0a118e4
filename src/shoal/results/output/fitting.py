"""One linear regression by least squares, and how far single persons decide it.

The rule of residual degrees of freedom: "Guidelines for output checking", Eurostat DwB, 2015, which asks for 10. The
rest follows the rules for cells: a coefficient is a weighted sum of the values, so few persons must not have most of
its weight; and nobody's own value must decide what the model says about them, which is their leverage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shoal.results.least_squares import Projection
from shoal.results.output.rules import ModelRule, OutputRules
from shoal.tables.frequency import Floats

MAX_PREDICTIONS = 1_000  # those of the highest leverage are looked at
SLIGHT_FIT = 1e-9  # of the variation: residuals that are rounding errors


@dataclass(frozen=True, eq=False)
class Fit:
    """Coefficients with their standard errors, and the rules that the model fails."""

    terms: tuple[str, ...]
    estimates: Floats
    errors: Floats
    records: int
    persons: int
    degrees: int  # residual degrees of freedom, counted in persons
    r2: float
    failed_rules: tuple[ModelRule, ...]

    def figures(self) -> dict[str, float]:
        """Return all that is published of it, by name."""
        figures = {"count": float(self.records), "degrees": float(self.degrees), "r2": self.r2}
        for term, estimate, error in zip(self.terms, self.estimates, self.errors, strict=True):
            figures |= {f"estimate {term}": float(estimate), f"error {term}": float(error)}
        return figures


def fitted(
    values: Floats, design: Floats, terms: Sequence[str], person: NDArray[np.int64], rules: OutputRules, degrees: int
) -> Fit:
    """Regress values on the columns of a design matrix; ``person`` says whose each record is."""
    n, k = design.shape
    persons = int(person.max(initial=-1)) + 1
    left = min(n, persons) - k
    failed: list[ModelRule] = []
    if rules.count_fails(persons):
        failed.append("least count")
    if left < degrees:
        failed.append("degrees of freedom")
    projection = Projection.of_design(design)
    if projection is None:
        nothing = np.full(k, np.nan)
        return Fit(tuple(terms), nothing, nothing, n, persons, left, np.nan, (*failed, "collinear"))
    q, weights = projection.orthogonal, projection.weights
    estimates = weights @ values
    residuals = values - design @ estimates
    rest, all_of_it = float(residuals @ residuals), float(((values - values.mean()) ** 2).sum())
    if rest <= SLIGHT_FIT * max(all_of_it, SLIGHT_FIT * float(values @ values)):
        failed.append("exact fit")
    leverage = max(_leverage(q, person, persons), _small_group_leverage(q, design, person, rules))
    if leverage > rules.leverage * (1 + 1e-9):
        failed.append("leverage")
    few_decide = any(_deciding(row, person, persons, rules) < rules.min_count for row in weights)
    if few_decide or _few_decide_a_prediction(q, person, persons, rules):
        failed.append("influence")
    spread = np.sqrt(rest / (n - k) * (weights**2).sum(axis=1)) if n > k else np.full(k, np.nan)
    r2 = 1 - rest / all_of_it if all_of_it > 0 else np.nan
    return Fit(tuple(terms), estimates, spread, n, persons, left, float(r2), tuple(failed))


def _leverage(q: Floats, person: NDArray[np.int64], persons: int) -> float:
    """Return the largest share of one person's values in what the model says about that person.

    >>> _leverage(np.array([[1.0, 0.0], [0.0, 0.6], [0.0, 0.8]]), np.array([0, 1, 2]), 3)
    1.0
    """
    if len(q) == persons:
        return float((q**2).sum(axis=1).max(initial=0.0))
    k = q.shape[1]
    joint = np.zeros((persons, k, k))
    np.add.at(joint, person, q[:, :, None] * q[:, None, :])
    return float(np.linalg.eigvalsh(joint).max(initial=0.0))


def _small_group_leverage(q: Floats, design: Floats, person: NDArray[np.int64], rules: OutputRules) -> float:
    """Return the largest share of a group's own mean in what the model says about it, of groups with few persons.

    A group has the same value in every column. At the end of a line it is as exposed as a single person would be.
    """
    _, group = np.unique(design, axis=0, return_inverse=True)
    group = group.reshape(-1)
    shares = np.bincount(group, (q**2).sum(axis=1))
    pairs = np.unique(np.column_stack([group, person]), axis=0)
    small = np.bincount(pairs[:, 0]) < rules.min_count
    return float(shares[small].max(initial=0.0))


def _few_decide_a_prediction(q: Floats, person: NDArray[np.int64], persons: int, rules: OutputRules) -> bool:
    """Return whether too few persons have more than k % of the squared weights of what the model says about somebody.

    Those of a row i are the squares of the row of the hat matrix, which add up to its leverage h_i. As h_ij² is at most
    h_i h_j, a few persons can have a share s of them only if one of their records has a leverage of s by their number.
    """
    share = _decisive_share(rules)
    leverages = (q**2).sum(axis=1)
    max_records = np.bincount(person, minlength=persons).max(initial=1) * max(1, rules.min_count - 1)
    high = np.flatnonzero(leverages > share / max_records)
    for i in high[np.argsort(-leverages[high], kind="stable")][:MAX_PREDICTIONS]:
        shares = np.sort(np.bincount(person, (q @ q[i]) ** 2, minlength=persons))[::-1]
        if shares[: rules.min_count - 1].sum() > share * shares.sum() * (1 + 1e-9):
            return True
    return False


def _deciding(weights: Floats, person: NDArray[np.int64], persons: int, rules: OutputRules) -> int:
    """Return how many persons it takes to have k % of the squared weights of a coefficient, as in (n,k) dominance."""
    shares = np.sort(np.bincount(person, weights**2, minlength=persons))[::-1]
    return int(np.searchsorted(np.cumsum(shares), _decisive_share(rules) * shares.sum() * (1 - 1e-12))) + 1


def _decisive_share(rules: OutputRules) -> float:
    return (rules.dominance[1] if rules.dominance else 90.0) / 100
