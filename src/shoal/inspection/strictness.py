"""How strict the requirements on sensitive columns can be: tried on the table, or on a sample of it.

The strictest of the steps is taken whose search stays near the loss without requirements: first of those that bound
every value, and if all of these cost too much, of those that exempt frequent values. Steps are tried by bisection, as
if a looser one never cost more; a search need not keep that law, so another step may cost a little less.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.engines.base import Engine
from shoal.engines.local import LocalEngine
from shoal.errors import ShoalError
from shoal.inspection.sensitive import COST, EXEMPTING, STEPS, Protection, SensitiveColumn, Strictness
from shoal.policy import Policy
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.losses.cells import losses

SAMPLE = 2_000  # records that a step is tried on, with up to ten sensitive columns; with more, fewer
SMALLEST_SAMPLE = 500


def protection_of(engine: Engine, policy: Policy, columns: Sequence[SensitiveColumn]) -> Protection | None:
    """Return the strictest requirements that cost little; None without sensitive columns, or if nothing is tried.

    ``policy`` is the proposal without them.
    """
    if not columns:
        return None
    n_sampled = max(SMALLEST_SAMPLE, 10 * SAMPLE // max(10, len(policy.sensitive)))  # every class judges each of them
    sampled = engine.reading(policy).coarsened(policy).sampled(policy, n_sampled)
    if sampled is None:
        return None
    rows, total = sampled
    before = _loss(rows, policy)
    if before is None:
        return None
    best, after = None, before
    for low, high in ((0, EXEMPTING - 1), (EXEMPTING, len(STEPS) - 1)):
        while low <= high:
            middle = (low + high) // 2
            loss = _loss(rows, _with(policy, columns, STEPS[middle]))
            if loss is not None and loss <= before + COST:
                best, after, high = middle, loss, middle - 1
            else:
                low = middle + 1
        if best is not None:
            break
    if best is None:  # dear, but better than nothing
        loss = _loss(rows, _with(policy, columns, STEPS[-1]))
        best, after = (None, before) if loss is None else (len(STEPS) - 1, loss)
    return Protection(tuple(columns), best, before, after, rows.n_records, total)


def _with(policy: Policy, columns: Sequence[SensitiveColumn], step: Strictness) -> Policy:
    fields = policy.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    additional = [requirement for column in columns for requirement in column.requirements(step)]
    existing = [{"model": model.model} | model.model_dump(exclude_none=True) for model in policy.require]
    return Policy.of(fields | {"require": [*existing, *additional]}, policy.folder)


def _loss(rows: LocalEngine, policy: Policy) -> float | None:
    """Return the loss of a search on some records; None if it finds nothing."""
    present = set(rows.columns)
    narrowed = policy.model_copy(update={"columns": {n: c for n, c in policy.columns.items() if n in present}})
    try:
        table = rows.count(narrowed, apart=narrowed.release.algorithm in PARTING).table
        problem = Problem.of(table, narrowed)
        return losses(problem, SEARCHES[narrowed.release.algorithm](problem))["loss"]
    except ShoalError:
        return None
