"""Judge a table by itself: its values, and its cells as they are stored."""

from __future__ import annotations

from dataclasses import replace

from shoal.attacks.limits import measured
from shoal.engines.base import require_columns
from shoal.engines.data import Data
from shoal.engines.opening import engine_of, in_order, order_of, original_of, population_of, sensitive_of
from shoal.findings import findings_of
from shoal.findings.evidence import of_table
from shoal.forbidden.mining import mine
from shoal.judge import Gaps, judge_release
from shoal.judge.as_written import judged_as_written
from shoal.judge.recount import Reference, recounted
from shoal.models.verdict import Verdicts
from shoal.policy import Policy
from shoal.tables.frequency import FrequencyTable
from shoal.text.log import log


def checked(data: Data, policy: Policy, original: Data | None) -> tuple[Verdicts, FrequencyTable]:
    """Return the verdicts on a table by itself, and its counts."""
    engine = engine_of(data, policy)
    names = engine.columns
    require_columns(names, policy, removed_roles=("identifier", "plain"))
    gaps, telling = Gaps.of(policy, names, order_of(engine, None if original is None else engine_of(original)))
    rows_or_tally = engine.tallied(telling)  # rows, or distinct rows with counts
    if policy.release.nulls == "forbid":
        rows_or_tally.forbid_nulls(policy)
    before = None if original is None else original_of(original, policy)
    whole = rows_or_tally.domains(policy) if before is None else sensitive_of(before, policy).domains(policy)
    outside = population_of(policy)
    reference = Reference(whole, None if outside is None else outside.people(policy), policy.marks)
    rows_or_tally.persons(telling)  # none may be missing
    rows = rows_or_tally.countable(telling)
    owners = None
    if gaps.persons and before is not None:
        from shoal.original.owners import owners_of

        owners = owners_of(rows_or_tally, before, policy)
    rows = rows if owners is None or owners.rows is None else owners.rows
    table = recounted(rows, policy, reference)
    gaps = gaps if owners is None else gaps.known(owners, table)
    attacks = None if before is None else measured(in_order(engine, rows, policy), before, policy)
    left = [name for name in policy.identifiers if name in names]
    verdicts = judge_release(table, policy, attacks=attacks, mined=mine(rows, policy), identifiers=left, gaps=gaps)
    verdicts, finer, spelled = judged_as_written(engine, policy, telling, reference, gaps, verdicts)
    log.info("check: %d records in %d classes; the policy %s", table.n_records, table.n_classes, verdicts.outcome)
    findings = findings_of(of_table(engine, rows_or_tally, table, policy, before, spelled))
    return replace(verdicts, findings=findings), table if finer is None else finer
