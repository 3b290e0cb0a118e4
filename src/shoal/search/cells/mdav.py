"""MDAV: group the record farthest from the mean with its nearest, then the record farthest from that one, and repeat.

J. Domingo-Ferrer, V. Torra, "Ordinal, continuous and heterogeneous k-anonymity through microaggregation", Data Mining
and Knowledge Discovery 11(2), 2005.
Needs  models that are judged class by class.
Finds  classes of k to 2k−1 records that are close in the values of numbers and dates, and in other columns along their
       hierarchies. Classes that fail another model are merged with the nearest; records are suppressed only if that
       ends with a table that fails as a whole. Proves nothing.
Costs  O(n²/k) distances for n records.

Numbers alone are standardized and compared by Euclidean distance, as published; with any other column, by Gower's
distance. Values that the lowest level joins, such as top-coded values, have one number. The distance of a null from
every number is the whole range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shoal.compiled.grouping import group, sum_by_class
from shoal.errors import OutOfTimeError
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.masking.groups import GroupOf, mdav_groups
from shoal.masking.points import Points
from shoal.notation.numbers import parse_number
from shoal.recoding import Parts, Recoding
from shoal.search.cells.classes import Partition, passing, recoding_of_partition, released, require_class_by_class
from shoal.search.cells.merge import least_size, merged, require_crowd
from shoal.search.cells.nearest import Metric
from shoal.search.problem import Problem
from shoal.tables.frequency import Floats, FrequencyTable, packed

LARGEST = 1e300  # the data may contain numbers that no double holds; their mean must be finite


def mdav(problem: Problem) -> Recoding:
    """Run the published algorithm, with mergers for requirements beyond k."""
    require_class_by_class(problem, "mdav")
    k = least_size(problem)
    require_crowd(problem, k)

    def heard(share: float) -> None:
        if problem.out_of_time:
            raise OutOfTimeError(
                f"no solution was found within {problem.time_budget:g} seconds, with {share:.0%} of the "
                "records grouped",
                "increase time_budget, or use algorithm 'mondrian'",
            )
        problem.progress("grouping records", share)

    records = np.repeat(np.arange(len(problem.table.counts)), problem.table.counts)
    # With k = 1, single records are classes.
    groups = records if k == 1 else mdav_groups(points(problem, records), k, heard)
    metric = Metric(problem)
    partition = merged(metric, _partition(problem.table, records, groups))
    while True:
        answer = recoding_of_partition(problem, partition, "mdav")
        # Classes that look the same are one class in the release, which may fail although its parts pass.
        if all(model.unions_pass for model in problem.models) or passing(problem, released(problem, answer)).all():
            return answer
        partition = merged(metric, _alike(answer.became))


def _alike(parts: Parts) -> Partition:
    """Return the classes as the release shows them; suppressed records form a class of their own again."""
    codes = np.column_stack([parts.suppressed, np.where(parts.suppressed[:, None], 0, parts.codes)]).astype(np.int32)
    return Partition(parts.row, parts.counts, group(packed(codes))[0])


def _partition(table: FrequencyTable, records: NDArray[np.int64], groups: GroupOf) -> Partition:
    pairs, counts = np.unique(records * (int(groups.max()) + 1) + groups, return_counts=True)
    row, class_of = np.divmod(pairs, int(groups.max()) + 1)
    return Partition(row, counts.astype(np.int64), class_of)


def points(problem: Problem, records: NDArray[np.int64]) -> Points:
    """Return the records (record i is from the table's row ``records[i]``) as numbers and as categories."""
    numbers: list[Floats] = []
    weights: list[float] = []
    signs: list[NDArray[np.int32]] = []
    prices: list[float] = []
    for j, (hierarchy, weight) in enumerate(zip(problem.table.hierarchies, problem.weights, strict=True)):
        leaves = problem.table.codes[records, j]
        of_leaf = _numbers(hierarchy)
        if of_leaf is not None:
            missing = np.isnan(of_leaf)[leaves]
            present = of_leaf[leaves[~missing]]
            numbers.append(np.where(missing, present.mean() if len(present) else 0.0, of_leaf[leaves]))
            weights.append(weight)
            if missing.any():
                signs.append(missing.astype(np.int32))
                prices.append(weight)
            continue
        for level in range(hierarchy.height):
            signs.append(hierarchy.table[level][leaves])
            prices.append(weight * (hierarchy.number(level + 1) - hierarchy.number(level)) / hierarchy.number_of_top)
    return Points.from_columns(numbers, signs, prices, n=len(records), weights=weights)


def _numbers(hierarchy: Hierarchy) -> Floats | None:
    """Return the number of each leaf, NaN if it has none; None for a column without an order."""
    if hierarchy.leaf_order == "numeric":
        read = [None if text is None else parse_number(text) for text in hierarchy.leaves]
        numbers = np.array([np.nan if value is None else float(value) for value in read]).clip(-LARGEST, LARGEST)
    elif hierarchy.leaf_order == "time":
        # Their places in the order of time: how dates are written, and so how many days lie between, the policy knows.
        numbers = np.arange(len(hierarchy.leaves), dtype=np.float64)
        numbers[[text is None for text in hierarchy.leaves]] = np.nan
    else:
        return None
    if hierarchy.uncovered is not None:
        numbers[hierarchy.uncovered] = np.nan
    # Leaves that level 0 joins get one number: their mean.
    codes = hierarchy.table[0].astype(np.int64)
    sizes = sum_by_class(np.ones(len(codes), np.int64), codes, hierarchy.cardinality(0))
    return np.asarray((np.bincount(codes, numbers, hierarchy.cardinality(0)) / np.maximum(sizes, 1))[codes])
