"""Enforced results: cells are suppressed by any search until none comes out; what that costs is told to the owner."""

from __future__ import annotations

import os
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize

import shoal
from shoal.cli.columns import console
from shoal.cli.terminal.releases import show_brief
from shoal.errors import InfeasibleError, PolicyError
from shoal.forbidden import suppress_forbidden as hiding
from shoal.models import SensitiveModel
from shoal.recoding import HiddenResults
from shoal.search import SEARCHES

RNG = np.random.default_rng(7)
PEOPLE = pa.table(
    {
        "age": RNG.integers(30, 50, 60),
        "zip": RNG.choice(["13053", "13068", "14850"], 60),
        "disease": RNG.choice(["hiv", "flu", "cold"], 60, p=[0.5, 0.3, 0.2]),
    }
)
RULE = {
    "result": "rule",
    "when": {"zip": "13053"},
    "then": {"disease": "hiv"},
    "support": 0.05,
    "confidence": 0.3,
    "doubt": "accept",
    "enforce": True,
}
COUNT = {"result": "count", "where": {"zip": "13068", "disease": "cold"}, "doubt": "accept", "enforce": True}


def policy_with(*forbid: dict[str, Any], algorithm: str = "optimal", k: int = 3, **column: Any) -> dict[str, Any]:
    return {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}} | column,
            "disease": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": k}],
        "forbid": list(forbid),
        "release": {"algorithm": algorithm},
    }


def refused(policy: dict[str, Any]) -> bool:
    """Whether the same results come out if they are not enforced."""
    policy = policy | {"forbid": [{**each, "enforce": False} for each in policy["forbid"]]}
    try:
        shoal.anonymize(PEOPLE, policy)
    except shoal.VerificationError:
        return True
    return False


QUICK = ("datafly", "mondrian", "optimal", "suppress_cells", "top_down")  # one or two of every kind of recoding


@pytest.mark.parametrize(
    "algorithm", [name if name in QUICK else pytest.param(name, marks=pytest.mark.long) for name in sorted(SEARCHES)]
)
def test_every_search_can_be_combined_with_it(algorithm):
    policy = policy_with(RULE, COUNT, algorithm=algorithm)
    policy["release"]["max_suppression"] = 0.9 if algorithm == "suppress_records" else 0.0
    release = shoal.anonymize(PEOPLE, policy)
    found = release.recoding.hiding
    assert release.verdicts.holds
    assert found is not None
    assert (found.cells > 0) == (found.results > 0) == refused(policy)
    assert found.proved
    assert shoal.check(release.table, policy).holds


@pytest.mark.parametrize("forbid", [[RULE], [COUNT], [RULE, COUNT]])
def test_engines_hide_the_same_cells(forbid):
    policy = policy_with(*forbid)
    local, duckdb = shoal.anonymize(PEOPLE, policy), shoal.anonymize(ibis.memtable(PEOPLE), policy)
    assert local.recoding.hiding == duckdb.recoding.hiding
    tables = (local.table, duckdb.table.to_pyarrow())
    counted = [sorted(map(str, of.select(["age", "zip", "disease"]).to_pylist())) for of in tables]
    assert counted[0] == counted[1]
    assert local.recoding.hiding is not None
    assert local.recoding.hiding.cells > 0


@pytest.mark.parametrize(
    "model",
    [
        {"model": "distinct-l-diversity", "l": 2},
        {"model": "t-closeness", "t": 0.4},
        {"model": "alpha-k-anonymity", "k": 3, "alpha": 0.9},
    ],
)
def test_requirements_on_classes_still_hold(model):
    policy = policy_with(RULE)
    release = shoal.anonymize(PEOPLE, policy | {"require": [*policy["require"], model]})
    assert release.verdicts.holds
    assert any(isinstance(each, SensitiveModel) for each in release.policy.models)


def test_what_was_hidden_is_told_to_the_owner_only(tmp_path):
    release = shoal.anonymize(PEOPLE, policy_with(RULE))
    found = release.recoding.hiding
    assert found is not None
    assert found.rules is not None
    assert 0 <= (found.lost or 0) <= found.rules
    receipt = release.receipt["hiding"]
    assert (receipt["cells"], receipt["results"]) == (found.cells, 1)
    assert "hiding" not in str(release.certificate)  # that a rule was hidden tells that it is true
    with console.capture() as capture:
        show_brief(release)
    assert "1 forbidden result hidden by" in " ".join(capture.get().split())
    assert not release.recoding.proved


def test_a_release_from_which_nothing_comes_out_stays_as_it_is():
    policy = policy_with(RULE | {"confidence": 1.0, "support": 0.9})
    release = shoal.anonymize(PEOPLE, policy)
    assert release.recoding.hiding == HiddenResults(0, 0, 0)
    assert release.recoding.proved
    assert release.table.equals(shoal.anonymize(PEOPLE, policy_with()).table)
    assert "No forbidden result" in HiddenResults(0, 0, 0).sentence


def test_without_time_a_release_is_found_and_nothing_is_claimed(monkeypatch):
    monkeypatch.setattr(hiding, "SECONDS", 0.0)
    release = shoal.anonymize(PEOPLE, policy_with(RULE))
    found = release.recoding.hiding
    assert found is not None
    assert (found.proved, found.least) == (False, 0)
    assert "at least 0 are needed" in found.sentence
    assert release.verdicts.holds


def test_what_the_solver_prints_does_not_mix_with_results(monkeypatch, capfd):
    solve = optimize.milp

    def loud(*given: Any, **options: Any) -> Any:
        os.write(1, b"solving")
        return solve(*given, **options)

    monkeypatch.setattr(optimize, "milp", loud)
    shoal.anonymize(PEOPLE, policy_with(RULE))
    said = capfd.readouterr()
    assert "solving" not in said.out
    assert "solving" in said.err


def test_frontier_and_compare_hide_too():
    points = shoal.frontier(PEOPLE, policy_with(RULE), k=[2, 3])
    assert {point.state for point in points} == {"found"}
    entries = shoal.compare(PEOPLE, policy_with(RULE), algorithms=["optimal", "mondrian"])
    assert {entry.outcome for entry in entries} == {"found"}


def test_a_column_that_must_stay_readable_cannot_be_hidden():
    with pytest.raises(InfeasibleError, match="no cells of quasi-identifiers can be suppressed"):
        shoal.anonymize(PEOPLE, policy_with(RULE, max_level=0))


def test_only_quasi_identifiers_are_suppressed():
    only = {"result": "count", "where": {"disease": "hiv"}, "doubt": "accept", "enforce": True}
    with pytest.raises(PolicyError, match=r"enforce suppresses cells of quasi-identifiers, and it names none"):
        shoal.anonymize(PEOPLE, policy_with(only))


def test_a_replay_on_new_rows_is_judged(tmp_path):
    from shoal.release.replay import described

    release = shoal.anonymize(PEOPLE, policy_with(RULE))
    again = shoal.replay(described(release), PEOPLE)
    assert again.verdicts.holds
