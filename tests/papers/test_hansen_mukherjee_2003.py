"""S. L. Hansen, S. Mukherjee, "A polynomial algorithm for optimal univariate microaggregation", TKDE 15(4), 2003.

The graph of the paper: a vertex per sorted value and one before them, an arc (i, j) for each group of the values
i+1 … j with k to 2k−1 of them, weighed by its sum of squares. A shortest path is an optimal partition. Worked out here
by hand for seven values and k = 2.
"""

import itertools

import numpy as np
import pytest

from shoal.masking.groups import univariate
from shoal.masking.kernels import shortest_path

VALUES = [1, 2, 4, 10, 11, 12, 30]

# Arcs (i, j) with 2 or 3 values and their weights: {1, 2} is ½, {1, 2, 4} is 14/3, and so on.
ARCS = {
    (0, 2): 0.5,
    (0, 3): 14 / 3,
    (1, 3): 2.0,
    (1, 4): 104 / 3,
    (2, 4): 18.0,
    (2, 5): 86 / 3,
    (3, 5): 0.5,
    (3, 6): 2.0,
    (4, 6): 0.5,
    (4, 7): 686 / 3,
    (5, 7): 162.0,
}


def test_the_arcs_are_the_sums_of_squares_of_groups():
    for (i, j), weight in ARCS.items():
        assert np.var(VALUES[i:j]) * (j - i) == pytest.approx(weight)
    assert set(ARCS) == {(i, j) for i, j in itertools.combinations(range(8), 2) if 2 <= j - i <= 3}


def test_the_shortest_path_is_the_partition():
    # 0 → 3 → 5 → 7 weighs 14/3 + ½ + 162 = 167.17; 0 → 2 → 4 → 7 and 0 → 2 → 5 → 7 weigh 247.17 and 191.17.
    assert shortest_path(np.array(VALUES, np.float64), 2).tolist() == [3, 5, 7]
    assert univariate(np.array(VALUES, np.float64), 2).tolist() == [0, 0, 0, 1, 1, 2, 2]


def test_no_group_of_an_optimal_partition_has_2k_values_or_more():
    draw = np.random.default_rng(0)
    for k in (1, 2, 3, 7):
        sizes = np.bincount(univariate(draw.normal(size=50), k))
        assert k <= sizes.min() <= sizes.max() <= 2 * k - 1
