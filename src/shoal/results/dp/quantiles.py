"""Quantiles from noisy counts of values in cells and in blocks of cells.

M. Hay, V. Rastogi, G. Miklau, D. Suciu, "Boosting the Accuracy of Differentially Private Histograms Through
Consistency", VLDB 2010: with counts at several resolutions, the number of records below any value is a sum of few noisy
counts. All quantiles of a column are read from the same counts, and so is an interval of values for each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from shoal.errors import PolicyError
from shoal.results.dp.noise import ChangeBound, Noise
from shoal.results.dp.public_schema import FixedPoint
from shoal.results.dp.statistics import Figure, OfOneColumn, Piece
from shoal.tables.frequency import Floats

FANOUT = 32  # blocks, and cells in each block
N_CELLS = FANOUT**2


@dataclass(frozen=True)
class QuantileStatistic(OfOneColumn):
    """Quantiles of a column, each to within 1/1024 of the bounds."""

    values: FixedPoint
    shares: tuple[float, ...]
    kind: Literal["quantile"] = "quantile"

    def __post_init__(self) -> None:
        if not self.shares or not all(0 < share < 1 for share in self.shares):
            raise PolicyError(
                f"column {self.values.column!r}: quantiles lie between 0 and 1, such as 0.5 for the median"
            )

    @property
    def name(self) -> str:
        """The query in words."""
        return f"quantiles of {self.values.column}"

    def pieces(self, c: int, grouped: bool) -> tuple[Piece, ...]:
        """Each record is in one block and in one cell; a missing value in none."""
        return (Piece("records", FANOUT + N_CELLS, ChangeBound(2 * c, 2 * c * c, c, 2 * c)),)

    def figures(self, noisy: Sequence[Sequence[int]], noises: Sequence[Noise], confidence: float) -> list[Figure]:
        """Return the quantiles; a cell is in the interval if its noise allows that it contains the quantile."""
        lower, width = float(self.values.lower), float(self.values.upper - self.values.lower) / N_CELLS
        figures = []
        for share in self.shares:
            excess = _excess(np.asarray(noisy[0], np.float64), share)
            slack = _slacks(noises[0], share, (1 - confidence) / 2)
            # Cell v has the quantile if the excess is at least 0 up to its end, and less up to its start.
            may_be = np.flatnonzero((excess[1:] >= -slack[1:]) & (excess[:-1] < slack[:-1]))
            first, last = (int(may_be[0]), int(may_be[-1])) if len(may_be) else (0, N_CELLS - 1)
            # The excess without noise never falls: take the middle of the two nearest bounds that never do.
            rising = (np.maximum.accumulate(excess[1:]) + np.minimum.accumulate(excess[:0:-1])[::-1]) / 2
            at = min(int(np.searchsorted(rising, 0)), N_CELLS - 1)
            at = min(max(at, first), last)
            figures.append(
                Figure(f"{share:g}", lower + (at + 0.5) * width, lower + first * width, lower + (last + 1) * width)
            )
        return figures


def with_blocks(cells: Sequence[int]) -> list[int]:
    """Return the counts of the blocks, then those of the cells."""
    blocks = [sum(cells[i : i + FANOUT]) for i in range(0, N_CELLS, FANOUT)]
    return [*blocks, *cells]


def _excess(tree: Floats, share: float) -> Floats:
    """Return, up to the end of each cell (first of none), (1 - share) · records below - share · records above.

    Each is a weighted sum of 31 blocks and 32 cells, or of all blocks: never of more noise than necessary.
    """
    blocks, cells = tree[:FANOUT], tree[FANOUT:].reshape(FANOUT, FANOUT)
    before = np.concatenate([[0.0], np.cumsum(blocks)])[:FANOUT]
    after = blocks.sum() - before - blocks
    below = before[:, None] + np.cumsum(cells, axis=1)
    above = after[:, None] + cells.sum(axis=1)[:, None] - np.cumsum(cells, axis=1)
    inside = ((1 - share) * below - share * above).ravel()
    return np.concatenate([[-share * blocks.sum()], inside])


@cache
def _slacks(noise: Noise, share: float, beta: float) -> Floats:
    """Return bounds that the noise of each excess passes, on either side, with probability ``beta`` at most."""
    positions = np.arange(N_CELLS)
    left = np.concatenate([[0], positions // FANOUT + positions % FANOUT + 1])
    right = np.concatenate([[FANOUT], 2 * FANOUT - 1 - left[1:]])
    bounds = {
        pair: _chernoff(noise, share, beta, *pair) for pair in set(zip(left.tolist(), right.tolist(), strict=True))
    }
    return np.array([bounds[pair] for pair in zip(left.tolist(), right.tolist(), strict=True)])


def _chernoff(noise: Noise, share: float, beta: float, left: int, right: int) -> float:
    """Bound the weighted sum of the noise of ``left`` counts below and ``right`` counts above."""
    weight = max(1 - share if left else 0.0, share if right else 0.0)
    top = (1 if noise.law == "laplace" else 12) / (noise.scale * weight)
    best = math.inf
    for i in range(1, 200):
        at = top * i / 200
        log = left * noise.log_mgf(at * (1 - share)) + right * noise.log_mgf(at * share)
        best = min(best, (log - math.log(beta)) / at)
    return best
