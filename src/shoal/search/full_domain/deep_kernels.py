"""The loops of ``deep.py``: split the classes of a node by one column, without hashing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.jit import compiled


@compiled
def split_sizes(
    leaves: NDArray[np.int32],
    counts: NDArray[np.int32],
    class_of: NDArray[np.int32],
    n_classes: int,
    part: NDArray[np.int32],
    n_parts: int,
    min_records: int,
) -> tuple[int, NDArray[np.int32]]:
    """Split every class into ``part[leaf]``; return the records in parts smaller than ``min_records``, and all sizes.

    A row is ``counts`` records of one leaf and one class; class ``n_classes`` holds the rows that are already lost. The
    size of a part is at ``[class * n_parts + part]``.
    """
    # Count the records of each (class, part). Unsigned indices need no check for negative ones.
    wide = np.uint64(n_parts)
    sizes = np.zeros((n_classes + 1) * n_parts, np.int32)
    for row in range(class_of.shape[0]):
        sizes[np.uint64(class_of[row]) * wide + np.uint64(part[leaves[row]])] += counts[row]
    # Parts of classes that are not yet lost, but too small themselves.
    lost = 0
    for i in range(n_classes * n_parts):
        lost += sizes[i] if sizes[i] < min_records else 0
    return lost, sizes


@compiled
def split_classes(
    column: int,
    leaves: NDArray[np.int32],
    counts: NDArray[np.int32],
    class_of: NDArray[np.int32],
    n_classes: int,
    part: NDArray[np.int32],
    n_parts: int,
    min_records: int,
    sizes: NDArray[np.int32],
    extra: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> tuple[NDArray[np.int32], int]:
    """Return the class of each row after the split that ``split_sizes`` measured, and the number of classes.

    ``leaves[column, row]``. Lost rows come into the class after the last. What suppressing the newly lost ones costs,
    ``extra[column, level, leaf]`` per record, is added to ``sums[column, level]``.
    """
    # Number the parts that are large enough; all others become the lost class n.
    number = np.empty(sizes.shape[0], np.int32)
    n = 0
    for i in range(n_classes * n_parts):
        number[i] = n
        n += sizes[i] >= min_records
    for i in range(sizes.shape[0]):
        if i >= n_classes * n_parts or sizes[i] < min_records:
            number[i] = n
    wide = np.uint64(n_parts)
    # Renumber the rows, and charge the cost of those that were not lost before.
    out = np.empty(class_of.shape[0], np.int32)
    for row in range(class_of.shape[0]):
        target = number[np.uint64(class_of[row]) * wide + np.uint64(part[leaves[column, row]])]
        out[row] = target
        if target == n and class_of[row] < n_classes:
            for j in range(sums.shape[0]):
                for level in range(sums.shape[1]):
                    sums[j, level] += counts[row] * extra[j, level, leaves[j, row]]
    return out, n
