"""Intruders: strategies for choosing among several records that match a person.

Uniform: picks any of them at random.
Most specific: picks the record that covers the fewest values; a record of stars matches everybody and tells little.
Most likely: weighs each record by the inverse of the share of people whom it covers. These are the odds that it is the
person's own record if cells were suppressed regardless of their values. The shares are estimated from the release
alone, column by column, by expectation maximization.

An intruder who knows why cells were suppressed may do even better, so if several records match, the figures are lower
bounds. None exceeds 1/k: records that look the same cannot be told apart and are picked with equal probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from shoal.attacks.column_matching import KnownColumn
from shoal.tables.frequency import RowNumbers

UNIFORM = "uniform"
SPECIFIC = "most specific"
LIKELY = "most likely"

ROUNDS = 30  # of expectation maximization; it converges quickly
NEAR = 1e-9  # logarithms that differ by less count as equal


@dataclass(frozen=True, eq=False)
class Choice:
    """The choice of an intruder among the matching records."""

    name: str
    picks: csr_array  # (kinds, tuples)  the matching tuples that are picked; each record with equal probability
    weights: csr_array  # (kinds, tuples)  how likely each match is the own record, relative to the likeliest
    sure: NDArray[np.bool_]  # (kinds)  whether a single picked record is claimed to be the own one


def choices(
    fits: csr_array, counts: RowNumbers, sizes: NDArray[np.float64], masses: NDArray[np.float64]
) -> list[Choice]:
    """Return all strategies that differ: for each kind of person, what they pick among the matching tuples.

    ``sizes`` and ``masses`` are, per tuple, the logarithms of how many combinations of values it stands for, and of
    the share of people who have one.
    """
    everybody = np.ones(fits.shape[0], np.bool_)
    weights = csr_array((np.ones(len(fits.data)), fits.indices, fits.indptr), shape=fits.shape)
    out = [Choice(UNIFORM, fits, weights, everybody)]
    if (np.diff(fits.indptr) <= 1).all():
        return out
    specific, _ = _lowest_scored(fits, sizes)
    likely, lowest = _lowest_scored(fits, masses)
    closeness = np.exp(_of_row(fits, lowest) - masses[fits.indices])
    believed = csr_array((closeness, fits.indices, fits.indptr), shape=fits.shape)
    all_of_it = np.asarray(believed @ counts.astype(np.float64))
    narrowed = [
        Choice(SPECIFIC, specific, specific, everybody),
        # A single record is claimed only if it is more likely than not.
        Choice(LIKELY, likely, believed, np.asarray((all_of_it > 0) & (all_of_it < 2))),
    ]
    return out + [choice for choice in narrowed if choice.picks.nnz < fits.nnz]


def _lowest_scored(fits: csr_array, score: NDArray[np.float64]) -> tuple[csr_array, NDArray[np.float64]]:
    """Return for each kind the tuples with the lowest score, and that score."""
    scores = score[fits.indices]
    matched = np.diff(fits.indptr) > 0
    lowest = np.zeros(fits.shape[0])
    if matched.any():
        lowest[matched] = np.minimum.reduceat(scores, fits.indptr[:-1][matched])
    minimal = scores <= _of_row(fits, lowest) + NEAR
    ends = np.concatenate([[0], np.cumsum(minimal)])[fits.indptr]
    return csr_array((fits.data[minimal], fits.indices[minimal], ends), shape=fits.shape), lowest


def _of_row(matrix: csr_array, values: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.repeat(values, np.diff(matrix.indptr))


def extents(
    columns: Sequence[KnownColumn], tuples: RowNumbers, counts: RowNumbers
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per tuple, the logarithms of the number of combinations it covers and of their share of the release."""
    sizes, masses = np.zeros(len(tuples)), np.zeros(len(tuples))
    for j, column in enumerate(columns):
        size, mass = _of_texts(column, np.asarray(np.bincount(tuples[:, j], counts, column.n_texts), np.float64))
        sizes += np.log(size)[tuples[:, j]]
        masses += np.log(mass)[tuples[:, j]]
    return sizes, masses


def _of_texts(column: KnownColumn, frequency: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Per text, the number of values it covers and the share of people who have one of them."""
    values = column.kind_of if frequency[-1] else column.kind_of[:-1]  # a null is a value where the release has one
    n_values = np.bincount(values[values >= 0], minlength=column.n_kinds).astype(np.float64)
    shape = (column.n_texts, column.n_kinds)
    stands = csr_array((np.ones(len(column.kinds)), (column.texts, column.kinds)), shape=shape)
    sizes = np.asarray(stands @ n_values)
    read = (sizes > 0) & (frequency > 0)
    share = n_values / max(n_values.sum(), 1.0)
    floor = share / max(frequency.sum(), 1.0)  # a value that is always suppressed is rare, not impossible
    back = stands.T.tocsr()
    for _ in range(ROUNDS):
        covered = np.asarray(stands @ share)
        share = share * np.asarray(back @ np.where(read, frequency / np.where(read, covered, 1.0), 0.0)) + floor
        share /= max(share.sum(), 1e-300)
    masses = np.asarray(stands @ share)
    # A text that covers no value matches nobody.
    return np.where(sizes > 0, sizes, 1.0), np.where(sizes > 0, masses, 1.0)
