"""Sparse histograms: one row per class, with the values that occur in it, ascending, and how often."""

from __future__ import annotations

import numpy as np

from shoal.compiled.arrays import Codes, Ints
from shoal.compiled.jit import compiled_when_long

DENSE = 1 << 16  # cells of a matrix of counts that fits the processor's cache


@compiled_when_long(lambda starts, values, *rest: 4 * len(values) + len(starts) + 3 * len(rest[4]))
def _merge_densely(
    starts: Ints,
    values: Codes,
    counts: Ints,
    class_of: Ints,
    n_values: int,
    rows_begun: Codes,
    matrix: Ints,
    out_starts: Ints,
    out_values: Codes,
    out_counts: Ints,
) -> None:
    """Apply ``merge_histograms`` by way of ``matrix``, a matrix [class, value] of zeros that fits the cache.

    Its first row is for class −1. ``rows_begun``, zeros, an entry more than there are values, becomes the number of
    rows that begin there: rows are short, and a loop over the entries of each would be mispredicted.
    """
    # The row of each entry is counted along with the entries; equal values of a class meet in one cell of the matrix.
    for i in range(class_of.shape[0]):
        rows_begun[np.uint64(starts[i])] += 1
    row = -1
    for e in range(values.shape[0]):
        row += rows_begun[e]
        matrix[np.uint64((class_of[np.uint64(row)] + 1) * n_values + values[e])] += counts[e]
    end = np.uint64(0)
    at = np.uint64(n_values)
    for c in range(out_starts.shape[0] - 1):
        for v in range(n_values):
            # Written in any case, and overwritten where it is 0: the branch would be unpredictable.
            out_values[end] = v
            out_counts[end] = matrix[at]
            end += np.uint64(matrix[at] != 0)
            at += np.uint64(1)
        out_starts[c + 1] = end


@compiled_when_long(lambda starts, values, *rest: 9 * len(values) + 6 * len(starts))
def _merge_sparsely(
    starts: Ints,
    values: Codes,
    counts: Ints,
    class_of: Ints,
    next_entry: Ints,
    entry_class: Ints,
    entry_count: Ints,
    first: Ints,
    ends: Ints,
    out_starts: Ints,
    out_values: Codes,
    out_counts: Ints,
) -> None:
    """Apply ``merge_histograms`` by distributing the entries, first by value and then, in that order, by class.

    ``next_entry``, an entry per value, and ``first`` and ``ends``, one per class, each and one more, are 0. Sorting
    the values of every class would take longer, and an array's own sort half a second to compile.
    """
    # How many entries each value and each class has, and from that where theirs begin.
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            first[class_of[i] + 1] += starts[i + 1] - starts[i]
            for e in range(starts[i], starts[i + 1]):
                next_entry[values[e] + 1] += 1
    for v in range(next_entry.shape[0] - 1):
        next_entry[v + 1] += next_entry[v]
    for c in range(first.shape[0] - 1):
        first[c + 1] += first[c]
        ends[c] = first[c]
    # Entries sorted by value.
    for i in range(class_of.shape[0]):
        if class_of[i] >= 0:
            for e in range(starts[i], starts[i + 1]):
                at = np.uint64(next_entry[values[e]])
                next_entry[values[e]] += 1
                entry_class[at] = class_of[i]
                entry_count[at] = counts[e]
    # Each goes to its class, where it meets the last entry if that has the same value.
    begin = np.int64(0)
    for v in range(next_entry.shape[0] - 1):
        for p in range(begin, next_entry[v]):  # which is now where the entries of the value end
            target = np.uint64(entry_class[p])
            at = np.uint64(ends[target])
            if ends[target] > first[target] and out_values[at - np.uint64(1)] == v:
                out_counts[at - np.uint64(1)] += entry_count[p]
            else:
                out_values[at] = v
                out_counts[at] = entry_count[p]
                ends[target] += 1
        begin = next_entry[v]
    # Merging left gaps between the classes.
    end = 0
    for c in range(first.shape[0] - 1):
        for p in range(first[c], ends[c]):
            out_values[end] = out_values[p]
            out_counts[end] = out_counts[p]
            end += 1
        out_starts[c + 1] = end


def merge_histograms(
    starts: Ints, values: Codes, counts: Ints, class_of: Ints, n_classes: int, n_values: int
) -> tuple[Ints, Codes, Ints]:
    """Sum the sparse histograms of rows that belong to the same class; values ascend within a class.

    Rows of class −1 are left out.
    """
    n = len(values)
    out_starts, dense = np.zeros(n_classes + 1, np.int64), n_classes * n_values <= 4 * n + DENSE
    max_entries = min(n_classes * n_values, n) + 1 if dense else n
    out_values, out_counts = np.empty(max_entries, np.int32), np.empty(max_entries, np.int64)
    if dense:
        rows_begun, matrix = np.zeros(n + 1, np.int32), np.zeros((n_classes + 1) * n_values, np.int64)
        _merge_densely(
            starts, values, counts, class_of, n_values, rows_begun, matrix, out_starts, out_values, out_counts
        )
    else:
        next_entry, first, ends = (np.zeros(size + 1, np.int64) for size in (n_values, n_classes, n_classes))
        entry_class, entry_count = np.empty(n, np.int64), np.empty(n, np.int64)
        _merge_sparsely(
            starts,
            values,
            counts,
            class_of,
            next_entry,
            entry_class,
            entry_count,
            first,
            ends,
            out_starts,
            out_values,
            out_counts,
        )
    end = out_starts[-1]
    return out_starts, out_values[:end].copy(), out_counts[:end].copy()


def take_histograms(starts: Ints, values: Codes, counts: Ints, rows: Ints) -> tuple[Ints, Codes, Ints]:
    """Return the sparse histograms of the given rows."""
    out_starts = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(starts[rows + 1] - starts[rows], out=out_starts[1:])
    out_values, out_counts = np.empty(out_starts[-1], np.int32), np.empty(out_starts[-1], np.int64)
    _take_histograms(starts, values, counts, rows, out_values, out_counts)
    return out_starts, out_values, out_counts


@compiled_when_long(lambda _, values, counts, rows, *rest: len(rows) + len(rest[0]))
def _take_histograms(
    starts: Ints, values: Codes, counts: Ints, rows: Ints, out_values: Codes, out_counts: Ints
) -> None:
    at = 0
    for r in range(rows.shape[0]):
        for e in range(starts[rows[r]], starts[rows[r] + 1]):
            out_values[at], out_counts[at] = values[e], counts[e]
            at += 1
