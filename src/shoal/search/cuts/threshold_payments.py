"""What it costs at the least to leave out cuts that exclude each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.search.cuts.threshold_classes import Longs
from shoal.table.jit import compiled


@compiled
def pay_conflicts(tail: Longs, excludes: NDArray[np.bool_], costs: Longs, left: Longs) -> int:
    """Of every two cuts that exclude each other, one is left out: return what that costs at the least.

    Every such pair is paid an amount, and no cut pays more to all of its pairs than it costs to leave it out:
    whatever is left out then costs at least the sum. ``left`` is what remains of each cut's cost. Expensive pairs are
    paid first.
    """
    order = tail[np.argsort(-costs[tail], kind="mergesort")]
    left[:] = costs
    paid = 0
    for a in range(1, order.shape[0]):
        v = order[a]
        for b in range(a):
            if left[v] <= 0:
                break
            u = order[b]
            if excludes[u, v] and left[u] > 0:
                y = min(left[u], left[v])
                left[u] -= y
                left[v] -= y
                paid += y
    return paid
