"""Log-linear model of key frequencies: what neighbouring cells say about a sample unique.

C. J. Skinner, D. J. Holmes, "Estimating the re-identification risk per record in microdata", JOS 14(4), 1998;
C. J. Skinner, N. Shlomo, "Assessing identification risk in survey microdata using log-linear models", JASA 103, 2008.
A cell of the cross table of all columns has Poisson(λ) records, λ a product of effects of its values and of the pairs
of columns named; empty cells count, they are evidence as well. λ is fitted to the SAMPLE: the population has
Poisson(λ/π) people there, and beside a sample unique Poisson(μ) others, μ = λ(1−π)/π. (A well-known package takes λ
for the population's.) Then P(F=1 | f=1) = exp(−μ) and E(1/F | f=1) = (1 − exp(−μ))/μ.

Needs  a sampling fraction π that is the same for everybody.
Costs  nothing without interactions: the fit is a product of shares. With them, iterative proportional fitting, on one
       cross table for each set of columns that pairs connect: sets that no pair connects are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import prod
from typing import Any, Literal

import numpy as np

from shoal.engines.data import Data
from shoal.errors import DataError, PolicyError
from shoal.risk.keys import keys_of
from shoal.risk.uniqueness import fraction_of
from shoal.tables.frequency import ClassOf, Codes, Floats, FrequencyTable

CELLS = 2**24  # of one cross table: 128 MB
ROUNDS = 1_000
CLOSE = 1e-6  # the fitted margins are those of the table up to this share of its records

Pairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class LogLinearRisk:
    """The expected number of sample uniques that are population unique, and that are matched correctly."""

    sample_uniques: int
    population_uniques: float  # τ₁ = Σ P(F=1 | f=1)
    matches: float  # τ₂ = Σ E(1/F | f=1)
    sampling_fraction: float
    converged: bool  # the fit, as far as it had to iterate
    rates: Floats  # (classes)  λ, fitted to the sample
    risks: Floats  # (classes)  E(1/F | f=1); 0 where the sample has more than one
    class_of: ClassOf | None = None  # (records)  the class of each row, where rows are known

    @property
    def share(self) -> float:
        """The expected P(PU | SU)."""
        return self.population_uniques / self.sample_uniques if self.sample_uniques else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "sample_uniques": self.sample_uniques,
            "population_uniques": self.population_uniques,
            "matches": self.matches,
            "share": self.share,
            "sampling_fraction": self.sampling_fraction,
            "converged": self.converged,
        }


def log_linear_risk(
    data: Data,
    quasi: Sequence[str],
    *,
    interactions: Sequence[tuple[str, str]] | Literal["all"] = (),
    sampling_fraction: float | None = None,
    population_size: float | None = None,
    weight: str | None = None,
) -> LogLinearRisk:
    """Estimate the risk with main effects of all columns and ``interactions`` of some pairs, or of all.

    Too few interactions find uniques where there are none, too many fit the sample's own accidents.
    """
    keys = keys_of(data, quasi)
    size = float(keys.weights(weight).sum()) if weight is not None else population_size
    fraction = fraction_of(keys.n_records, sampling_fraction, size)
    risk = log_linear(keys.table, fraction, _pairs(keys.table.columns, interactions))
    return replace(risk, class_of=keys.class_of)


def log_linear(table: FrequencyTable, fraction: float, pairs: Pairs = ()) -> LogLinearRisk:
    """Compute the same from a frequency table; ``pairs`` are column indices."""
    rates, converged = fit_loglinear(table, pairs)
    alone = table.counts == 1
    expected_unsampled = rates[alone] * (1 - fraction) / fraction
    risks = np.zeros(table.n_classes)
    risks[alone] = -np.expm1(-expected_unsampled) / np.where(expected_unsampled > 0, expected_unsampled, 1) + (
        expected_unsampled == 0
    )
    return LogLinearRisk(
        int(alone.sum()),
        float(np.exp(-expected_unsampled).sum()),
        float(risks.sum()),
        fraction,
        converged,
        rates,
        risks,
    )


def fit_loglinear(table: FrequencyTable, pairs: Pairs = ()) -> tuple[Floats, bool]:
    """Return λ of every class of the table, by maximum likelihood over the full cross table."""
    n = table.n_records
    rates = np.full(table.n_classes, float(n))
    converged = True
    for columns in _connected(len(table.columns), pairs):
        codes, shape = _dense(table.codes[:, columns])
        cells = prod(shape)
        if cells > CELLS:
            raise DataError(
                f"the cross table of columns {', '.join(repr(table.columns[j]) for j in columns)} has {cells} cells, "
                f"more than {CELLS}",
                "use fewer interactions, so that the columns form smaller sets, or generalize some columns",
            )
        cell_of = np.ravel_multi_index(tuple(codes.T), shape)
        observed = np.bincount(cell_of, table.counts, minlength=cells).astype(np.float64).reshape(shape)
        margins = [tuple(columns.index(j) for j in pair) for pair in pairs if pair[0] in columns]
        fit, close = _proportional(observed, margins) if margins else (observed, True)
        rates *= fit.ravel()[cell_of] / n
        converged &= close
    return rates, converged


def _proportional(observed: Floats, margins: Sequence[tuple[int, ...]]) -> tuple[Floats, bool]:
    """Iterative proportional fitting: the least structured table with the margins of the observed one."""
    n = observed.sum()
    summed_axes = [tuple(j for j in range(observed.ndim) if j not in margin) for margin in margins]
    goals = [observed.sum(axis=axes, keepdims=True) for axes in summed_axes]
    fit = np.full(observed.shape, n / observed.size)
    for _ in range(ROUNDS):
        max_gap = 0.0
        for axes, goal in zip(summed_axes, goals, strict=True):
            now = fit.sum(axis=axes, keepdims=True)
            max_gap = max(max_gap, float(np.abs(goal - now).max()))
            fit *= np.divide(goal, now, out=np.zeros_like(goal), where=now > 0)
        if max_gap <= CLOSE * n:
            return fit, True
    return fit, False


def _dense(codes: Codes) -> tuple[Codes, tuple[int, ...]]:
    """Return codes without gaps: only values that occur have cells."""
    columns = [np.unique(column, return_inverse=True) for column in codes.T]
    return np.column_stack([code_of for _, code_of in columns]), tuple(len(values) for values, _ in columns)


def _connected(n_columns: int, pairs: Pairs) -> list[list[int]]:
    """Group columns into sets so that every pair lies within one set."""
    root_of = list(range(n_columns))
    for i, j in pairs:
        root_of = [root_of[i] if x == root_of[j] else x for x in root_of]
    return [[j for j in range(n_columns) if root_of[j] == root] for root in sorted(set(root_of))]


def _pairs(columns: tuple[str, ...], interactions: Sequence[tuple[str, str]] | Literal["all"]) -> Pairs:
    if interactions == "all":
        return tuple(combinations(range(len(columns)), 2))
    if isinstance(interactions, str):
        raise PolicyError("interactions: expected pairs of columns, or 'all'")
    for pair in interactions:
        if len(set(pair)) != 2 or not set(pair) <= set(columns):
            raise PolicyError(f"interactions: {tuple(pair)!r} are not two of the quasi-identifiers")
    return tuple((columns.index(column), columns.index(other)) for column, other in interactions)
