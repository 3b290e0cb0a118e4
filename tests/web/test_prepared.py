"""What the page says of releases that were not built."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.engines.opening import engine_of
from shoal.inspection.inspect import inspect
from shoal.web.pages import texts
from shoal.web.prepared import prepare
from shoal.web.workspace import Draft, Opened, WebRun


def run_on(table: pa.Table, fields: dict[str, Any]) -> WebRun:
    """A run as the page keeps it."""
    release = shoal.anonymize(table, shoal.Policy.of(fields))
    opened = Opened(1, "t", "t", engine_of(table), inspect(table))
    return WebRun(3, Draft(2, opened, fields, Path()), release, 0.0)


TABLE = pa.table({"age": [20 + i % 40 for i in range(200)], "ill": ["flu", "gout", "none", "asthma"] * 50})
FIELDS = {
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}}, "ill": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 5}],
}


@pytest.mark.parametrize("limits", [[], [{"model": "linkage-risk", "max": 0.9}]], ids=["models", "a limit on attacks"])
def test_a_neighbour_is_not_called_safe_before_its_attacks_are_measured(limits: list[dict[str, object]]) -> None:
    fields = {**FIELDS, "require": [*FIELDS["require"], *limits]}
    run = run_on(TABLE, fields)
    prepare(run)
    outcomes = {node["kind"] for node in run.cache["nodes"]}
    assert outcomes <= {"chosen", "fails", "unmeasured" if limits else "holds"}
    assert ("unmeasured" if limits else "holds") in outcomes
    drawn = {name for name, _, _ in run.cache["lattice"].legend}
    kinds = vars(texts().drawn)
    assert drawn <= {kinds[kind] for kind in (*outcomes, "unseen", "ruled_out")}
    rows = {f"#{node['id']}" for node in run.cache["nodes"]}
    links = {link for mark in run.cache["lattice"].marks for link in mark.links if link}
    assert links <= rows
    assert links


# Ages 0 … 9, four records each, which belong to two people; five texts stand for an unknown age.
VISITS = pa.table(
    {
        "patient": [f"p{i // 2}" for i in range(45)],
        "age": [str(i // 4) for i in range(40)] + ["?", "n/a", "-", "x", "unknown"],
        "ill": ["flu", "gout", "none"] * 15,
    }
)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "at least 4 records that match"),
        ({"entity": "patient"}, "at least 2 persons that match"),
        ({"missing": []}, "11.1 % of the records are unique"),
    ],
    ids=["records", "people", "unknown texts"],
)
def test_before_is_counted_as_the_release_is(more: dict[str, Any], told: str) -> None:
    """Several records of a person are one person, and texts that the policy calls missing are one value."""
    entity = {"entity": more["entity"]} if "entity" in more else {}
    fields = {
        "columns": {
            "patient": {"role": "identifier"},
            "age": {"role": "quasi", "missing": more.get("missing", ["?", "n/a", "-", "x", "unknown"])},
            "ill": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"max_suppression": 1.0, **entity},
    }
    run = run_on(VISITS, fields)
    prepare(run)
    assert told in run.cache["before"]


def test_preparing_computes_no_figure_that_only_a_report_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distances of classes took 300 s for a million records."""
    run = run_on(TABLE, FIELDS)
    monkeypatch.setattr("shoal.report.summary._distribution", lambda *_: pytest.fail("a figure of the report"))
    steps: list[float] = []
    prepare(run, lambda _, share: steps.append(share))
    assert [column.name for column in run.cache["columns"]] == ["age"]
    assert steps == sorted(steps)
    assert len(set(steps)) > 2
