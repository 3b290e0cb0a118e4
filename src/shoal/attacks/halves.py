"""A control for what a release adds: the same policy applied to half of the people, and the other half outside.

A release is made of some people drawn at random, and predicates made from it are tried on them and on as many others,
of whom it has no information. Labels use the hierarchies of the whole table, as the release of everybody does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from shoal.engines.base import Rows
from shoal.engines.local import LocalEngine
from shoal.engines.opening import rows_of
from shoal.errors import ShoalError
from shoal.models import PopulationModel
from shoal.notation import codec
from shoal.policy import Policy
from shoal.search import PARTING, SEARCHES, Problem
from shoal.tables.frequency import RowNumbers

MIN_PEOPLE = 50  # of each half: of fewer, nothing can be said
MAX_PEOPLE = 1_000  # of each half: a search must not take longer than all attacks together


@dataclass(frozen=True, eq=False)
class Halves:
    """A release of some rows of the original, those rows, and as many others (as many persons)."""

    release: pa.Table
    inside: RowNumbers
    outside: RowNumbers


def halves(original: LocalEngine, policy: Policy, seed: int) -> Halves | str:
    """Return a release of one half, or why there is none."""
    if any(isinstance(model, PopulationModel) for model in policy.models):
        return "a requirement is about a population, of which a half of the people is no sample"
    unit = _units(original, policy)
    n_units = int(unit.max(initial=-1)) + 1
    half = min(n_units // 2, MAX_PEOPLE)
    if half < MIN_PEOPLE:
        return f"half of the people are only {half}"
    order = np.random.default_rng(seed).permutation(n_units)
    side = np.full(n_units, -1, np.int64)
    side[order[:half]], side[order[half : 2 * half]] = 0, 1
    inside, outside = (np.flatnonzero(side[unit] == number) for number in (0, 1))
    try:
        release = _released(original.table.take(pa.array(inside)), policy)
    except ShoalError:
        return f"half of the people, {half}, cannot be released under the policy"
    return Halves(release, inside, outside)


def _units(original: LocalEngine, policy: Policy) -> RowNumbers:
    """Number the person of each row, or the rows sorted by their values, so that row order has no effect."""
    entity = policy.release.entity
    if entity is not None and entity in original.table.column_names:
        codes = codec.encode_texts(entity, original.table[entity]).codes
        return np.unique(codes, return_inverse=True)[1].astype(np.int64).ravel()
    names = [*policy.quasi, *policy.sensitive]
    order = np.lexsort([codec.encode_texts(name, original.table[name]).codes for name in reversed(names)])
    units = np.empty(len(order), np.int64)
    units[order] = np.arange(len(order))
    return units


def _released(table: pa.Table, policy: Policy) -> pa.Table:
    """Release a table; an engine lists only the columns that matter, so identifiers may be absent."""
    columns = {name: column for name, column in policy.columns.items() if name in table.column_names}
    policy = policy.model_copy(update={"columns": columns})
    engine = rows_of(table)
    algorithm = policy.release.algorithm
    counted = engine.count(policy, apart=algorithm in PARTING)
    rows = engine.apply(counted, SEARCHES[algorithm](Problem.of(counted.table, policy)), policy)
    if not isinstance(rows, Rows):
        raise TypeError("a table in memory is released in memory")
    return rows.table
