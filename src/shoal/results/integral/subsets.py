"""The databases that could have generated a result: subsets of the persons, drawn or all of them.

A subset is never stored: it is drawn again from its number, so memory grows with the persons and not with the draws.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Members = NDArray[np.bool_]  # (persons)  whether each is in the subset
MOST_ENUMERATED = 20  # persons of whom all subsets could be listed


@dataclass(frozen=True)
class Subsets:
    """Every person is in a subset with probability ``share``, independently; all subsets if there are few."""

    n_persons: int
    n_drawn: int
    share: float
    seed: int

    @property
    def exhaustive(self) -> bool:
        """Whether all non-empty subsets are listed, each once, instead of drawn."""
        return self.n_persons <= MOST_ENUMERATED and 2**self.n_persons - 1 <= self.n_drawn

    def __len__(self) -> int:
        return 2**self.n_persons - 1 if self.exhaustive else self.n_drawn

    def members(self, i: int) -> Members:
        """Return the persons in subset ``i``, the same on every call."""
        if self.exhaustive:
            return np.asarray(((i + 1) >> np.arange(self.n_persons)) & 1 == 1)
        return np.random.default_rng([self.seed, i]).random(self.n_persons) < self.share

    def __iter__(self) -> Iterator[Members]:
        return map(self.members, range(len(self)))
