"""How many cells sdcMicro hides where nulls match anything: a second opinion for tests and benchmarks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

NA = -1


def coded(data: pa.Table) -> NDArray[np.int64]:
    """Return the table as codes, ``NA`` for a null; values are in the order of their numbers."""
    columns = []
    for name in data.column_names:
        texts = data[name].to_pylist()
        numbers = {text: i for i, text in enumerate(sorted({text for text in texts if text is not None}, key=float))}
        columns.append([NA if text is None else numbers[text] for text in texts])
    return np.array(columns).T


def frequencies(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many records match each: an ``NA`` of either side matches anything."""
    tuples, row_of, counts = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    found = [counts[((tuples == mine) | (tuples == NA) | (mine == NA)).all(axis=1)].sum() for mine in tuples]
    return np.array(found)[row_of.ravel()]


def nulls_of_sdcmicro(rows: NDArray[np.int64], k: int) -> int | None:
    """The cells that localSuppression of sdcMicro 5.8.1 hides, after its description; None where it finds no way.

    Of more than k equal records, k take part. In every pass, the records that match too few, the rarest first, hide
    one cell: in the column with the most values in which the nearest record that does not match differs.
    """
    n_values = [len(set(column) - {NA}) for column in rows.T.tolist()]
    n_columns = len(n_values)
    columns = n_columns - 1 - np.argsort(np.argsort(n_values, kind="stable"), kind="stable")
    columns = np.argsort(columns, kind="stable")
    filled = np.where(rows == NA, rows[0], rows)
    seen = {}
    taken = []
    for i, row in enumerate(map(tuple, filled.tolist())):
        seen[row] = seen.get(row, 0) + 1
        if seen[row] <= k:
            taken.append(i)
    left = rows[taken]
    n_before = int((left == NA).sum())
    while (few := (found := frequencies(left)) < k).any():
        for i in sorted(np.flatnonzero(few).tolist(), key=lambda i: found[i]):
            differ = (left != left[i]) & (left != NA) & (left[i] != NA)
            distance = differ.sum(axis=1)
            if not distance.any():
                return None
            near = differ[distance == distance[distance > 0].min()].any(axis=0)
            left[i, next(c for c in columns if near[c])] = NA
    return int((left == NA).sum()) - n_before
