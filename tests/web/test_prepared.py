"""What the page says of releases that were not built."""

from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from shoal.engines.opening import engine_of
from shoal.propose.inspect import inspect
from shoal.web.prepared import prepare
from shoal.web.workspace import Draft, Opened, WebRun

TABLE = pa.table({"age": [20 + i % 40 for i in range(200)], "ill": ["flu", "gout", "none", "asthma"] * 50})
FIELDS = {
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "ill": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 5}],
}


@pytest.mark.parametrize("limits", [[], [{"model": "linkage-risk", "max": 0.9}]], ids=["models", "a limit on attacks"])
def test_a_neighbour_is_not_called_safe_before_its_attacks_are_measured(limits: list[dict[str, object]]) -> None:
    fields = {**FIELDS, "require": [*FIELDS["require"], *limits]}
    release = shoal.anonymize(TABLE, shoal.Policy.of(fields))
    engine = engine_of(TABLE)
    run = WebRun(3, Draft(2, Opened(1, "t", "t", engine, inspect(TABLE)), fields, Path()), release, 0.0)
    prepare(run)
    outcomes = {node["keeps"] for node in run.cache["nodes"]}
    assert outcomes
    assert outcomes <= ({None, False} if limits else {True, False})
    assert (None if limits else True) in outcomes
