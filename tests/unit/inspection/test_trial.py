"""A proposal that fails is made simpler until it runs."""

from dataclasses import replace

import pyarrow as pa
import pytest

from shoal.engines.opening import engine_of
from shoal.errors import DataError
from shoal.hierarchies.builders import Flat, Mask
from shoal.inspection.hierarchy_proposal import Proposal
from shoal.inspection.inspect import inspect
from shoal.inspection.trial import tried

PEOPLE = pa.table({"id": [None, *[i // 2 for i in range(1, 60)]], "age": [20 + i % 30 for i in range(60)]})


def test_a_key_of_persons_that_cannot_be_counted_is_left_out():
    proposal = replace(inspect(PEOPLE), entity="id")
    simpler = tried(engine_of(PEOPLE), proposal)
    assert simpler.entity is None
    assert any("'id'" in note for note in simpler.notes)
    assert simpler.policy.release.entity is None


def test_a_proposal_that_runs_is_not_changed():
    proposal = inspect(PEOPLE)
    assert tried(engine_of(PEOPLE), proposal) is proposal


def test_a_table_that_nothing_fits_is_refused(monkeypatch):
    def failing(*_args):
        raise DataError("cannot be counted")

    proposal, engine = inspect(PEOPLE), engine_of(PEOPLE)
    monkeypatch.setattr(type(engine), "count", failing)
    with pytest.raises(DataError, match="cannot be counted"):
        tried(engine, proposal)


def test_a_hierarchy_that_does_not_fit_gives_way_to_sets():
    proposal = inspect(PEOPLE)
    wrong = tuple(
        replace(column, proposal=Proposal(Mask(mask="right"), min_level=9)) if column.name == "age" else column
        for column in proposal.columns
    )
    simpler = tried(engine_of(PEOPLE), replace(proposal, columns=wrong))
    assert isinstance(simpler.policy.columns["age"].hierarchy, Flat)
