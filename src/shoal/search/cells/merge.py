"""Merging: turn a partition into classes of k records into one that satisfies all other requirements.

A failing class joins the class with which it costs least, nearest pairs first, until all classes pass. Under absorbing
models this succeeds whenever the whole table passes as one class. Under convex models, the union with a passing class
may fail again; merging then continues, and in the worst case ends with the whole table as one class.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.errors import InfeasibleError, OutOfTimeError
from shoal.models.diversity import DistinctDiversity, EntropyDiversity, RecursiveDiversity
from shoal.models.size import MaximumRisk
from shoal.search.cells.classes import SUPPRESSED, Partition, holds, passing
from shoal.search.cells.nearest import Clustering, Metric
from shoal.search.problem import Problem
from shoal.tables.frequency import Counts


def least_size(problem: Problem) -> int:
    """Return the k of the initial partition: no passing class has fewer records."""
    sizes = [problem.least_class_size]
    for model in problem.models:
        match model:
            case MaximumRisk():
                sizes.append(math.ceil(1 / model.max - 1e-9))
            case DistinctDiversity() | EntropyDiversity() | RecursiveDiversity() if problem.table.sensitive:
                sizes.append(math.ceil(model.l - 1e-9))
    return max(sizes)


def require_crowd(problem: Problem, k: int) -> None:
    """Raise an error if the table has fewer than k records."""
    if problem.table.n_records < k:
        raise _no_classes_error(problem, "there are too few records")


def merged(metric: Metric, partition: Partition) -> Partition:
    """Merge failing classes until all pass; records are suppressed only if that is impossible."""
    problem = metric.problem
    fallback: Partition | None = None
    for stage, failing in _stages(metric, partition):
        if not failing.any():
            return stage
        if fallback is None and problem.limit:
            fallback = _with_failing_suppressed(problem, stage, failing)
    if fallback is None:
        raise _no_classes_error(problem, "the whole table fails as one class")
    return fallback


def _with_failing_suppressed(problem: Problem, stage: Partition, failing: NDArray[np.bool_]) -> Partition | None:
    """Return the partition with its failing classes suppressed, if it may be released."""
    class_of = np.where(failing[stage.class_of], SUPPRESSED, stage.class_of)
    numbered = np.full(len(class_of), SUPPRESSED, np.int64)
    is_kept = class_of >= 0
    numbered[is_kept] = np.unique(class_of[is_kept], return_inverse=True)[1]
    tried = replace(stage, class_of=numbered)
    return tried if holds(problem, tried) else None


def _stages(metric: Metric, partition: Partition) -> Iterator[tuple[Partition, NDArray[np.bool_]]]:
    """Yield the partition and its failing classes, initially and after each round of mergers."""
    problem = metric.problem
    nearest_of: dict[
        int, tuple[float, int]
    ] = {}  # of a failing class, how much a record costs with the nearest, and which
    while True:
        failing = ~passing(problem, partition.classes(problem.table))
        yield partition, failing
        if not failing.any() or len(failing) == 1:
            return
        problem.progress("merging classes that fail", 1 - failing.mean())
        classes = metric.classes(partition)
        for i in np.flatnonzero(failing).tolist():
            if i not in nearest_of:
                nearest_of[i] = _nearest(problem, classes, i)
        target = _pairs(nearest_of, failing)
        numbers = np.unique(target, return_inverse=True)[1]
        # An unchanged class keeps its nearest class unless that one has changed: unions only get farther away.
        unchanged = np.bincount(target, minlength=len(target)) == 1
        unchanged &= target == np.arange(len(target))
        nearest_of = {
            int(numbers[i]): (c, int(numbers[t])) for i, (c, t) in nearest_of.items() if unchanged[i] and unchanged[t]
        }
        partition = replace(partition, class_of=numbers[partition.class_of])


def _nearest(problem: Problem, classes: Clustering, i: int) -> tuple[float, int]:
    if problem.out_of_time:
        raise OutOfTimeError(
            f"no solution was found within {problem.time_budget:g} seconds, while merging classes that fail",
            "increase time_budget, or use algorithm 'datafly'",
        )
    costs = classes.union(i).sum(axis=1)
    costs[i] = np.inf
    nearest = int(costs.argmin())
    return float(costs[nearest]), nearest


def _pairs(nearest_of: dict[int, tuple[float, int]], failing: NDArray[np.bool_]) -> Counts:
    """Return the class that each class merges into; a class takes part in at most one merger per round."""
    target = np.arange(len(failing))
    met = np.zeros(len(failing), np.bool_)
    for _, i, nearest in sorted((cost, i, nearest) for i, (cost, nearest) in nearest_of.items()):
        if not met[i] and not met[nearest]:
            target[max(i, nearest)] = min(i, nearest)
            met[[i, nearest]] = True
    return target


def _no_classes_error(problem: Problem, reason: str) -> InfeasibleError:
    """Return the error, which claims no more than the top proves."""
    if problem.rules_out_below(problem.evaluate(problem.lattice.top)):
        return problem.infeasible()
    return InfeasibleError(
        f"no classes were found that satisfy {', '.join(model.summary for model in problem.asked)} "
        f"with at most {problem.limit} of {problem.table.n_records} records suppressed: {reason}",
        "raise max_suppression, or use algorithm 'optimal', which considers every generalization",
    )
