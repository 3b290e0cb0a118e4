"""What released cells cost, whatever search chose them: every loss of an answer by name.

A loss of cells prices each released value; ``prices`` is also what a search of cells minimizes. The searches of the
lattice price levels instead (``loss.py``): that both agree on full-domain answers is tested.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shoal.recoding import Parts, Recoding
from shoal.search.losses.lattice import LOSSES, WITH_LABEL, CellLoss, most_frequent
from shoal.search.problem import Problem
from shoal.table.frequency import ClassOf, Counts, Floats, FrequencyTable, packed
from shoal.table.kernels import group, sum_by_class
from shoal.table.values import Values


def losses(problem: Problem, recoding: Recoding) -> dict[str, float]:
    """Every loss of an answer by name; where a label is named, how often a class misleads about it too."""
    parts = recoding.parts(problem.table)
    records = _records(recoding.released, parts)
    names = LOSSES if problem.label is None else LOSSES | WITH_LABEL
    return {name: _loss(problem, recoding.released, parts, records, name) for name in names}


def loss_of(problem: Problem, values: tuple[Values, ...], parts: Parts, name: str) -> float:
    """One loss of released parts, as it is published."""
    return _loss(problem, values, parts, _records(values, parts), name)


def _records(values: tuple[Values, ...], parts: Parts) -> list[Counts]:
    """Per column and value, the records that are released as it."""
    kept = np.where(parts.suppressed, 0, parts.counts)
    pairs = zip(parts.codes.T, values, strict=True)
    return [sum_by_class(kept, codes.astype(np.int64), len(value.labels)) for codes, value in pairs]


def _loss(problem: Problem, values: tuple[Values, ...], parts: Parts, records: list[Counts], name: str) -> float:
    loss = (LOSSES | WITH_LABEL)[name](problem)
    if isinstance(loss, CellLoss):
        n_suppressed = parts.n_suppressed
        sums = [
            _column_sum(problem.table, j, value, of_value, n_suppressed, name)
            for j, (value, of_value) in enumerate(zip(values, records, strict=True))
        ]
        return loss.shown(float(loss.scaled(np.array(sums)[:, None]).sum()))
    return _CLASS_LOSSES[name](problem, values, parts)


def prices(table: FrequencyTable, j: int, values: Values, name: str) -> Floats:
    """Per value of column ``j``, what a cell costs that is released as it, in the loss ``name``.

    The cell of a record that is suppressed costs 1, in ``entropy`` the logarithm of all records, in ``height`` nothing.
    """
    hierarchy = table.hierarchies[j]
    match name:
        case "loss":
            return values.shares
        case "arx-loss":
            return np.asarray(values.sizes / hierarchy.domain)
        case "precision":
            return np.asarray(values.levels / max(1, hierarchy.number_of_top))
        case "height":
            return values.levels.astype(np.float64)
        case "entropy":
            return np.asarray(np.log(np.maximum(values.under(leaf_counts(table, j)), 1)))
    raise ValueError(f"{name} is not a sum over cells")


def leaf_counts(table: FrequencyTable, j: int) -> Counts:
    """The records of each leaf of column ``j``."""
    return sum_by_class(table.counts, table.codes[:, j].astype(np.int64), len(table.hierarchies[j].leaves))


def _column_sum(table: FrequencyTable, j: int, values: Values, records: Counts, n_suppressed: int, name: str) -> float:
    """Σ over the cells of a column, suppressed ones among them."""
    sums = float(records @ prices(table, j, values, name))
    if name == "height":  # levels are not summed over records: the mean is the level where there is only one
        return sums / max(1, table.n_records - n_suppressed)
    if name == "entropy":
        own = leaf_counts(table, j)
        return sums + n_suppressed * math.log(table.n_records) - float(own @ np.log(np.maximum(own, 1)))
    return sums + n_suppressed


# --- losses that see only how records are grouped ----------------------------------------------------------------


def _classes(values: tuple[Values, ...], parts: Parts, kept: NDArray[np.int64]) -> tuple[ClassOf, int]:
    """The class of each part that is released, and how many there are.

    A class is what looks alike: a hidden cell that is released as a null is no other text than a null of the original.
    """
    codes = parts.codes[kept]
    for j, value in enumerate(values):
        number = {label: i for i, label in reversed(list(enumerate(value.labels)))}
        if len(number) < len(value.labels):
            codes[:, j] = np.array([number[label] for label in value.labels], codes.dtype)[codes[:, j]]
    class_of, firsts = group(packed(codes))
    return class_of, len(firsts)


def _class_sizes(values: tuple[Values, ...], parts: Parts) -> Counts:
    kept = np.flatnonzero(~parts.suppressed)
    return sum_by_class(parts.counts[kept], *_classes(values, parts, kept))


def _discernibility(problem: Problem, values: tuple[Values, ...], parts: Parts) -> float:
    """Python's integers: n² of 4·10⁹ records does not fit in 64 bits."""
    kept = sum(int(n) ** 2 for n in _class_sizes(values, parts).tolist())
    return float(kept + problem.table.n_records * parts.n_suppressed)


def _average_class(problem: Problem, values: tuple[Values, ...], parts: Parts) -> float:
    return problem.table.n_records / (len(_class_sizes(values, parts)) + (parts.n_suppressed > 0))


def _ambiguity(_problem: Problem, values: tuple[Values, ...], parts: Parts) -> float:
    tuples = np.ones(len(parts.counts))
    everything = 1.0
    for j, value in enumerate(values):
        tuples *= value.sizes[parts.codes[:, j]]
        everything *= value.hierarchy.domain
    return float(parts.counts @ np.where(parts.suppressed, everything, tuples))


def _classification(problem: Problem, values: tuple[Values, ...], parts: Parts) -> float:
    kept = np.flatnonzero(~parts.suppressed)
    class_of, n_classes = _classes(values, parts, kept)
    labels = problem.table.sensitive[str(problem.label)].taken(parts.row[kept])
    if not np.array_equal(parts.counts[kept], problem.table.counts[parts.row[kept]]):
        labels = replace(labels, counts=parts.counts[kept])  # rows are parted only where each has one value
    right = int(most_frequent(labels.merged(class_of, n_classes)).sum())
    return 1 - right / problem.table.n_records


_CLASS_LOSSES = {
    "discernibility": _discernibility,
    "average-class": _average_class,
    "ambiguity": _ambiguity,
    "classification": _classification,
}
