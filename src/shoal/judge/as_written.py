"""Judge a table by its cells as the file has them, where reading made different ones equal.

Refused, not asked and n/a may all be missing values, and 1.234,5 and 1234,5 one number: in the published file they tell
people apart. The classes are counted again by the stored cells of the quasi-identifiers, and of each two verdicts the
worse one stands. Sensitive values stay as they were read: other spellings of a value are no other value.
"""

from __future__ import annotations

from dataclasses import replace

from shoal.engines.base import Engine
from shoal.judge.judge import Gaps, judge_release
from shoal.judge.recount import Reference, recounted
from shoal.models import PopulationModel
from shoal.models.verdict import Verdict, Verdicts
from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable

ORDER = ("holds", "unknown", "fails")


def judged_as_written(
    engine: Engine, policy: Policy, counted_policy: Policy, reference: Reference, gaps: Gaps, verdicts: Verdicts
) -> tuple[Verdicts, FrequencyTable | None, tuple[str, ...]]:
    """Return the worse of each two verdicts, the finer classes and the columns; the same verdicts if none is finer.

    ``known`` is the policy with which the table was counted, without what the table cannot show.
    """
    rows = engine.as_written(counted_policy.quasi, counted_policy)
    if rows is None:
        return verdicts, None, ()
    stored_reference = Reference(reference.whole)
    table = recounted(rows.countable(counted_policy), counted_policy, stored_reference)
    n_models = len(policy.models)
    alone = policy.model_copy(update={"forbid": ()})
    blind = replace(gaps, between=None, population=gaps.population or "the people of a population have no spellings")
    stored_verdicts = judge_release(table, alone, limits=(), gaps=blind).verdicts
    of_models = [
        old if isinstance(model, PopulationModel) else _worse(old, new, is_minimum=model.lowest_is_worst)
        for model, old, new in zip(policy.models, verdicts.verdicts[:n_models], stored_verdicts, strict=True)
    ]
    changed = any(new is not old for new, old in zip(of_models, verdicts.verdicts, strict=False))
    return (
        replace(
            verdicts,
            verdicts=(*of_models, *verdicts.verdicts[n_models:]),
            classes=table.n_classes if changed else verdicts.classes,
        ),
        table if changed else None,
        rows.notes,
    )


def _worse(first: Verdict, second: Verdict, *, is_minimum: bool) -> Verdict:
    ranks = ORDER.index(first.outcome), ORDER.index(second.outcome)
    if ranks[0] != ranks[1]:
        return first if ranks[0] > ranks[1] else second
    if second.worst != second.worst or first.worst == second.worst:
        return first
    return second if (second.worst < first.worst) == is_minimum else first
