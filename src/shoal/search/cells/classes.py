"""Partitions into classes: a search assigns records to classes, which are judged and released one by one.

In lattice searches, a node's levels define the classes. All other searches assign the rows of the table to classes
and release each class as one tuple: per column, the most specific value that stands for all of its cells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group
from shoal.errors import PolicyError
from shoal.recoding import Cells, Parts, Recoding
from shoal.search.problem import Problem
from shoal.tables.centres import CENTRES, centred, needs
from shoal.tables.frequency import ClassOf, Counts, FrequencyTable, Histogram, packed
from shoal.tables.values import Values, Vocabulary, covering
from shoal.tables.windows import FIXED, FixedLabels, written_as

SUPPRESSED = -1  # the class of suppressed records


@dataclass(frozen=True, eq=False)
class Partition:
    """Assignment to classes: part i is ``counts[i]`` records of ``row[i]`` of the table, in class ``class_of[i]``."""

    row: NDArray[np.int64]
    counts: Counts
    class_of: ClassOf  # SUPPRESSED, or 0 … n_classes − 1, none of them empty

    @classmethod
    def of_rows(cls, table: FrequencyTable, class_of: ClassOf) -> Partition:
        """Build a partition with each row in one class; class numbers may be any nonnegative numbers."""
        is_kept = class_of >= 0
        numbered = np.full(len(class_of), SUPPRESSED, np.int64)
        numbered[is_kept] = np.unique(class_of[is_kept], return_inverse=True)[1]
        return cls(np.arange(len(class_of)), table.counts, numbered)

    @property
    def n_classes(self) -> int:
        """The number of released classes."""
        return int(self.class_of.max(initial=-1)) + 1

    @property
    def n_suppressed(self) -> int:
        """The number of suppressed records."""
        return int(self.counts[self.class_of < 0].sum())

    def classes(self, table: FrequencyTable) -> FrequencyTable:
        """Return the released classes as the models see them."""
        is_kept = self.class_of >= 0
        return class_table(table, self.row[is_kept], self.counts[is_kept], self.class_of[is_kept], self.n_classes)

    def stars(self, table: FrequencyTable) -> FrequencyTable:
        """Return the suppressed records as one class, as they appear if they stay in the release."""
        is_suppressed = self.class_of < 0
        return class_table(
            table,
            self.row[is_suppressed],
            self.counts[is_suppressed],
            np.zeros(int(is_suppressed.sum()), np.int64),
            int(is_suppressed.any()),
        )


def class_table(
    table: FrequencyTable, row: NDArray[np.int64], counts: Counts, class_of: ClassOf, n_classes: int
) -> FrequencyTable:
    """Return the classes of some records as models see them; the codes have no meaning.

    A row is split only if the table was counted with one row per sensitive value, so that each row has a single value.
    """
    records = table.selected(row)
    if not np.array_equal(records.counts, counts):
        records = replace(
            records,
            counts=counts,
            sensitive={name: _of_one_value(h, counts) for name, h in records.sensitive.items()},
            entities=records.entities and _of_one_value(records.entities, counts),
        )
    return records.merged(class_of, n_classes, np.zeros((n_classes, len(table.columns)), np.int32))


def _of_one_value(histogram: Histogram, counts: Counts) -> Histogram:
    if len(histogram.values) != len(counts):
        raise ValueError("a row with several sensitive values cannot be parted")
    return replace(histogram, counts=counts)


def passing(problem: Problem, classes: FrequencyTable) -> NDArray[np.bool_]:
    """Return whether each class satisfies all requirements."""
    passes = np.ones(classes.n_classes, np.bool_)
    for model in problem.models:
        passes &= model.passes(classes)
    return passes


def holds(problem: Problem, partition: Partition) -> bool:
    """Return whether a partition may be released: all classes pass, and suppression is within the limit, not total."""
    n_suppressed = partition.n_suppressed
    if n_suppressed > problem.limit or not partition.n_classes:
        return False
    if n_suppressed and problem.keep_suppressed and not passing(problem, partition.stars(problem.table)).all():
        return False
    return bool(passing(problem, partition.classes(problem.table)).all())


def require_class_by_class(problem: Problem, algorithm: str) -> None:
    """Refuse requirements that cannot be judged class by class, or that a search with mixed levels cannot satisfy."""
    reasons = {
        "does not support nulls = 'wildcard'": problem.wildcard,
        "does not support k-anonymity over sets of columns": problem.cascades and not problem.wildcard,
        "does not support limits on the release as a whole": bool(problem.of_release),
        "makes classes that overlap in the population, so it does not support k-map and delta-presence": problem.people
        is not None,
        "does not support after": bool(problem.after),
    }
    if reason := next((reason for reason, applies in reasons.items() if applies), None):
        raise PolicyError(f"algorithm {algorithm!r} {reason}", "use algorithm 'optimal'")
    for hierarchy, cells in zip(problem.table.hierarchies, problem.cells, strict=True):
        if (orders := needs(cells)) and hierarchy.leaf_order not in orders:
            raise PolicyError(
                f"columns.{hierarchy.column}.cells: {cells!r} needs numbers{' or dates' * (len(orders) > 1)}, and its "
                "hierarchy does not say that they are",
                'give it a hierarchy of intervals, or use cells = "mode"',
            )
    capped = [h.column for h in problem.table.hierarchies if h.cardinality(h.height) > 1]
    if capped:
        raise PolicyError(
            f"algorithm {algorithm!r} may merge any two records, but max_level keeps values of "
            f"{', '.join(map(repr, capped))} separate at every level",
            "remove max_level, or use algorithm 'optimal'",
        )


def recoding_of_partition(
    problem: Problem,
    partition: Partition,
    algorithm: str,
    *,
    proved: bool = False,
    claim: str = "",
    n_evaluated: int = 0,
    written: bool = True,
) -> Cells:
    """Release every class as the most specific tuple that covers it; the problem defines how cells are written.

    If it is only priced, ``written`` is false: texts of ranges and sets, which may name thousands of values, take most
    of the time.
    """
    table = problem.table
    kept_parts = np.flatnonzero(partition.class_of >= 0)
    order = kept_parts[np.argsort(partition.class_of[kept_parts], kind="stable")]
    starts = np.flatnonzero(np.diff(partition.class_of[order], prepend=-1))
    values: list[Values] = []
    codes = np.zeros((len(partition.row), len(table.columns)), np.int32)
    for j, hierarchy in enumerate(table.hierarchies):
        leaves, cells = table.codes[partition.row[order], j], problem.cells[j]
        if cells in CENTRES:
            of_column, ids = centred(hierarchy, cells, leaves, partition.counts[order], starts)
        else:
            vocabulary = Vocabulary(hierarchy, cells, written=written)
            if cells in FIXED:
                fixed = FixedLabels.for_column(hierarchy, cells, table.leaf_counts[j])
                ids = written_as(fixed, vocabulary, leaves, partition.counts[order], starts)
            else:
                ids = covering(vocabulary, leaves, starts)
            of_column = vocabulary.values
        codes[order, j] = ids[partition.class_of[order]]
        values.append(of_column)
    suppressed = partition.class_of < 0
    return Cells(
        hierarchies=table.hierarchies,
        values=tuple(values),
        became=merge_equal_parts(Parts(partition.row, codes, partition.counts, suppressed)),
        algorithm=algorithm,
        proved=proved,
        claim=claim,
        n_evaluated=n_evaluated,
    )


def merge_equal_parts(parts: Parts) -> Parts:
    """Return the parts in the order of rows; parts of a row with the same released tuple are merged."""
    keys = packed(np.column_stack([parts.row.astype(np.int32), parts.suppressed.astype(np.int32), parts.codes]))
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.concatenate([[True], keys[order][1:] != keys[order][:-1]])) if len(keys) else order
    counts = np.add.reduceat(parts.counts[order], firsts) if len(firsts) else parts.counts
    first = order[firsts]
    return Parts(parts.row[first], parts.codes[first], counts, parts.suppressed[first])


def released(problem: Problem, answer: Recoding) -> FrequencyTable:
    """Return the classes of a solution as models see them; suppressed records that stay come last, as a class of stars.

    A hidden null looks the same as a null of the data: both have one code.
    """
    parts = answer.parts(problem.table)
    codes = parts.codes.copy()
    nulls: list[int | None] = []
    for j, values in enumerate(answer.released):
        empty = [number for number, label in enumerate(values.labels) if label is None]
        codes[np.isin(codes[:, j], empty), j] = empty[0] if empty else 0
        nulls.append(empty[0] if empty else None)
    kept_parts = np.flatnonzero(~parts.suppressed)
    class_of, firsts = group(packed(codes[kept_parts]))
    numbers = np.full(len(parts.row), len(firsts), np.int64)
    numbers[kept_parts] = class_of
    of_classes = codes[kept_parts][firsts]
    rows = kept_parts
    if problem.keep_suppressed and parts.suppressed.any():
        rows = np.arange(len(parts.row))
        stars = [len(values.labels) for values in answer.released]  # no label has this number
        of_classes = np.vstack([of_classes, np.array([stars], np.int32)])
    table = class_table(problem.table, parts.row[rows], parts.counts[rows], numbers[rows], len(of_classes))
    return replace(table, codes=of_classes, nulls=tuple(nulls))
