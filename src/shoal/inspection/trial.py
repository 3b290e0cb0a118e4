"""A proposal is tried before it is shown: its policy is parsed, the table counted, and what fails is left out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from shoal.engines.base import Engine
from shoal.errors import ShoalError
from shoal.inspection.hierarchy_proposal import HIDDEN_OR_SETS
from shoal.inspection.inspection import Inspection


def tried(engine: Engine, proposal: Inspection) -> Inspection:
    """Return the proposal, without the parts with which the table cannot be counted; the last error if none works.

    Rows in an engine are not counted again: their policy is only parsed.
    """
    if not proposal.having("quasi"):
        return proposal
    error: ShoalError | None = None
    for simpler in _simpler(proposal):
        try:
            policy = simpler.policy
            if engine.in_memory:
                engine.reading(policy).count(policy)
        except ShoalError as failure:
            error = error or failure
        else:
            return simpler
    if error is not None:
        raise error
    return proposal


def _simpler(proposal: Inspection) -> Iterator[Inspection]:
    """Yield the proposal, then with less and less that can fail, each with a remark."""
    yield proposal
    if proposal.entity is not None:
        remark = f"persons cannot be counted by {proposal.entity!r}: k counts records"
        proposal = replace(proposal, entity=None, remarks=(*proposal.remarks, remark))
        yield proposal
    if proposal.household is not None:
        proposal = replace(proposal, household=None)
        yield proposal
    plain = tuple(
        replace(column, proposal=HIDDEN_OR_SETS) if column.proposal is not None else column
        for column in proposal.columns
    )
    remark = "no hierarchy fits all columns: classes show sets of values"
    yield replace(proposal, columns=plain, remarks=(*proposal.remarks, remark))
