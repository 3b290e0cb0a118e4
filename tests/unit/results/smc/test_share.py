"""Joint computations by three and five processes: secure results are the plain ones, and failures name a party."""

from __future__ import annotations

import importlib
import statistics
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from joint_runs import JointRuns, Rows, make_parties
from shoal import smc
from shoal.errors import PartyError

share = importlib.import_module("shoal.results.smc.share")  # the function of this name hides the module

pytestmark = pytest.mark.xdist_group("parties")  # one process that imports everything is enough

BOUNDS = {"age": ("0", "120"), "stay": ("-50", "50")}
EVERYTHING = {
    "count": True,
    "sum": ["stay"],
    "mean": ["age"],
    "variance": ["age"],
    "histogram": {"ward": ["A", "B"], "age": ["0", "18", "65", "120"]},
    "minimum": ["age"],
    "maximum": ["stay"],
    "quantile": [["age", "0.5"], ["stay", "0.9"]],
    "regression": [["stay", "age"]],
    "intersection": "id",
    "where": {"infected": "yes"},
    "bounds": BOUNDS,
    "decimals": {"stay": 1},
    "at_least": 3,
    "at_most": 6,
}
MEAN = {"mean": ["age"], "at_least": 1}


def tables(n: int) -> list[Rows]:
    drawn = Random(n)
    return [
        [
            {
                "id": f"p{drawn.choice((0, 1, 2, 10 * party + i))}" if i > 2 else f"p{i}",
                "age": drawn.randint(0, 110),
                "stay": round(drawn.uniform(-40, 40), 1),
                "ward": drawn.choice("ABC"),
                "infected": "yes" if i < 6 else "no",
            }
            for i in range(8)
        ]
        for party in range(n)
    ]


def plain(rows: list[Rows]) -> dict[str, Any]:
    """The same statistics over all tables in one place."""
    kept = [row for table in rows for row in table if row["infected"] == "yes"]
    ages, stays = [row["age"] for row in kept], [row["stay"] for row in kept]
    slope, intercept = np.polyfit(ages, stays, 1)
    wards = [row["ward"] for row in kept]
    ids = [{row["id"] for row in table if row["infected"] == "yes"} for table in rows]
    return {
        "count": len(kept),
        "sum of stay": pytest.approx(sum(stays), rel=1e-12),
        "mean of age": sum(ages) / len(ages),
        "rows with age": len(ages),
        "variance of age": pytest.approx(statistics.variance(ages), rel=1e-12),
        "histogram of ward": {"A": wards.count("A"), "B": wards.count("B"), "other": wards.count("C")},
        "histogram of age": {
            "[0, 18)": sum(age < 18 for age in ages),
            "[18, 65)": sum(18 <= age < 65 for age in ages),
            "[65, 120]": sum(age >= 65 for age in ages),
            "other": 0,
        },
        "minimum of age": min(ages),
        "maximum of stay": max(stays),
        "quantile 0.5 of age": sorted(ages)[-(-len(ages) // 2) - 1],
        "quantile 0.9 of stay": sorted(stays)[-(-9 * len(stays) // 10) - 1],
        "regression of stay on age": {
            "intercept": pytest.approx(intercept, rel=2e-7),
            "age": pytest.approx(slope, rel=2e-7),
        },
        "intersection of id": len(set.intersection(*ids)),
    }


def test_three_parties_compute_what_one_would(joint: JointRuns, tmp_path: Path) -> None:
    rows = tables(3)
    asked = {name: value for name, value in EVERYTHING.items() if name != "regression"}
    found = joint.told(tmp_path, rows, [asked] * 3)
    expected = plain(rows)
    del expected["regression of stay on age"]
    for told in found:
        assert told["result"] == expected
        assert told["signatures"] == found[0]["signatures"]
        assert sorted(told["signatures"]) == ["party1", "party2", "party3"]
        assert told["said"] == ""
        assert told["left"] == told["files"] == []


@pytest.mark.long
@pytest.mark.parametrize("n", [3, 5])
def test_more_parties_and_a_regression_too(n: int, joint: JointRuns, tmp_path: Path) -> None:
    rows = tables(n)
    for told in joint.told(tmp_path, rows, [EVERYTHING] * n):
        assert told["result"] == plain(rows)
        assert told["left"] == told["files"] == []


def test_the_mean_age_of_infected_patients_of_hospitals_that_share_nothing(joint: JointRuns, tmp_path: Path) -> None:
    """The example of V. Torra's lecture on privacy models, with the ages of its table of six patients."""
    ages = [[30, 32], [33, 62, 65], [60]]
    rows = [[{"age": age, "infected": "yes"} for age in part] + [{"age": 99, "infected": "no"}] for part in ages]
    asked = {"mean": ["age"], "where": {"infected": "yes"}, "at_least": 3}
    for told in joint.told(tmp_path, rows, [asked] * 3):
        assert told["result"] == {"mean of age": 47.0, "rows with age": 6}


def test_a_party_without_rows_takes_part(joint: JointRuns, tmp_path: Path) -> None:
    ages: list[list[tuple[int, str]]] = [[(-5, "yes"), (7, "yes")], [], [(-9, "yes"), (3, "no")]]
    rows = [[{"age": age, "infected": infected} for age, infected in part] for part in ages]
    asked = {
        "where": {"infected": "yes"},
        "sum": ["age"],
        "variance": ["age"],
        "minimum": ["age"],
        "quantile": [["age", "0.5"]],
        "bounds": {"age": ("-10", "10")},
        "at_least": 1,
    }
    for told in joint.told(tmp_path, rows, [asked] * 3):
        assert told["result"] == {
            "sum of age": -7,
            "variance of age": pytest.approx(statistics.variance([-5, 7, -9])),
            "rows with age": 3,
            "minimum of age": -9,
            "quantile 0.5 of age": -5,
        }


def test_noise_goes_the_same_way(joint: JointRuns, tmp_path: Path) -> None:
    """So little of it that it is almost surely none, in every kind of figure."""
    rows = tables(3)
    asked = {name: EVERYTHING[name] for name in ("count", "mean", "variance", "histogram", "intersection", "bounds")}
    found = joint.told(tmp_path, rows, [asked | {"epsilon": "1e9", "at_most": 8}] * 3)
    ages = [row["age"] for table in rows for row in table]
    for told in found:
        assert told["result"]["mean of age"] == sum(ages) / len(ages)
        assert told["result"]["variance of age"] == pytest.approx(statistics.variance(ages), rel=1e-2)
        assert sum(told["result"]["histogram of ward"].values()) == told["result"]["count"] == 24
        assert told["result"]["intersection of id"] >= 3
        assert told["noise"]["sum age"] < 1e-9


def test_a_process_takes_part_in_one_computation_at_a_time(tmp_path: Path) -> None:
    """There is one runtime of mpyc in a process: two would mix up their shares."""
    everybody, plan = make_parties(tmp_path, 3), smc.SharePlan(mean=("age",))
    with share._ALONE, pytest.raises(PartyError, match="another joint computation"):
        smc.share(pa.table({"age": [31]}), plan, party=1, parties=everybody, key=tmp_path / "party1.key", timeout=0.1)
    with pytest.raises(PartyError, match="not connected"):
        smc.share(pa.table({"age": [31]}), plan, party=1, parties=everybody, key=tmp_path / "party1.key", timeout=0.1)


# ── too few rows ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("sizes", "asked"),
    [
        ((3, 3, 3), {"mean": ["age"]}),  # ten is what nobody has to ask for
        ((50, 1, 1), {"mean": ["age"], "at_least": 3}),  # the first party could subtract its own
        ((9, 9, 9), {"mean": ["rare"], "skip_missing": True, "at_least": 5}),  # three rows have a value
        ((9, 9, 1), {"intersection": "id", "at_least": 5}),  # the third would ask about one person
    ],
    ids=["few", "one party has most", "few values", "one identifier"],
)
def test_nothing_is_opened_about_few_rows(
    sizes: tuple[int, ...], asked: dict[str, Any], joint: JointRuns, tmp_path: Path
) -> None:
    rows = [[{"id": i, "age": 40, "rare": "" if i else 7} for i in range(n)] for n in sizes]
    for told in joint.told(tmp_path, rows, [asked] * 3):
        assert told["error"].startswith("InfeasibleError: a figure would be about fewer than")
        assert "nothing else was opened" in told["error"]


# ── parties that fail ───────────────────────────────────────────────────────────────────────────────────────────

FEW = [[{"age": 30}, {"age": 40}], [{"age": 50}], [{"age": 60}]]
FOUND = {"mean of age": 45.0, "rows with age": 4}


def ended_cleanly(told: dict[str, Any]) -> None:
    """Its process ended by itself (one that hangs is ended and told as such), and left nothing behind."""
    assert "ended" not in told
    assert told["left"] == told["files"] == []
    assert told["said"] == ""


def test_parties_with_other_plans_are_named(joint: JointRuns, tmp_path: Path) -> None:
    found = joint.told(tmp_path, FEW, [MEAN, MEAN, {"sum": ["age"], "at_least": 1}])
    for told in found[:2]:
        assert "the parties disagree: party 3 (party3) has another sum, mean; nothing was shared" in told["error"]
        ended_cleanly(told)
    assert "party 1 (party1) has another sum, mean; party 2 (party2) has another" in found[2]["error"]


def test_a_party_that_stays_away_is_named(joint: JointRuns, tmp_path: Path) -> None:
    brief = MEAN | {"run": {"timeout": 1}}
    found = joint.told(tmp_path, FEW, [brief, brief, None])
    for told in found[:2]:
        assert "party 3 (party3)" in told["error"]
        assert "not connected" in told["error"]
        assert "nothing was shared" in told["error"]
        ended_cleanly(told)


def test_a_party_that_comes_late_is_waited_for(joint: JointRuns, tmp_path: Path) -> None:
    for told in joint.told(tmp_path, FEW, [MEAN, MEAN | {"late": 0.5}, MEAN]):
        assert told["result"] == FOUND


@pytest.mark.parametrize(
    ("stage", "so_far"),
    [
        pytest.param("connected", "nothing was shared", marks=pytest.mark.long),
        pytest.param("signed", "some figures may have been opened", marks=pytest.mark.long),  # for all a party knows
        ("shared", "some figures may have been opened"),
    ],
)
def test_a_party_that_dies_is_named_at_once(stage: str, so_far: str, joint: JointRuns, tmp_path: Path) -> None:
    found = joint.told(tmp_path, FEW, [MEAN, MEAN | {"dies": stage}, MEAN])
    assert found[1] == {"ended": "ended"}
    for told in (found[0], found[2]):
        ended_cleanly(told)
        if stage == "shared" and "result" in told:  # the shares of the others were enough for this party
            assert told["result"] == FOUND
        else:
            assert told["error"].startswith("PartyError: party 2 (party2) closed the connection")
            assert so_far in told["error"]


@pytest.mark.long
def test_nothing_was_opened_while_parties_ask_whether_there_are_enough_rows(joint: JointRuns, tmp_path: Path) -> None:
    asked = MEAN | {"at_least": 2}
    found = joint.told(tmp_path, FEW, [asked, asked | {"dies": "signed"}, asked])
    for told in (found[0], found[2]):
        assert told["error"].startswith("PartyError: party 2 (party2) closed the connection")
        assert "nothing was opened" in told["error"]


@pytest.mark.parametrize(
    "stage", ["connected", *(pytest.param(s, marks=pytest.mark.long) for s in ("signed", "shared"))]
)
def test_a_party_that_no_longer_answers_is_named(stage: str, joint: JointRuns, tmp_path: Path) -> None:
    brief = MEAN | {"run": {"timeout": 1}}
    found = joint.told(tmp_path, FEW, [brief, brief, brief | {"stops": stage}])
    assert found[2] == {"ended": "stopped"}
    for told in found[:2]:
        ended_cleanly(told)
        if stage == "shared" and "result" in told:
            assert told["result"] == FOUND
        else:
            assert told["error"].startswith("PartyError: party 3 (party3) did not answer")


@pytest.mark.parametrize("impostor", [1, *(pytest.param(n, marks=pytest.mark.long) for n in (2, 3))])
def test_a_party_with_another_certificate_is_not_talked_to(impostor: int, joint: JointRuns, tmp_path: Path) -> None:
    brief = MEAN | {"run": {"timeout": 1}}
    found = joint.told(tmp_path, FEW, [brief, brief, brief], impostor=impostor)
    for number, told in enumerate(found, 1):
        ended_cleanly(told)
        assert told["error"].startswith("PartyError: ")
        assert "nothing was shared" in told["error"]
        if number != impostor:  # who is told so, or finds that this party, or both others, cannot be reached
            assert f"party {impostor} (party{impostor})" in told["error"]


@pytest.mark.long
@pytest.mark.parametrize("stage", ["connected", "signed"])
def test_one_of_five_parties_dies(stage: str, joint: JointRuns, tmp_path: Path) -> None:
    found = joint.told(tmp_path, [*FEW, *FEW[:2]], [*[MEAN] * 3, MEAN | {"dies": stage}, MEAN])
    for number in (0, 1, 2, 4):
        assert found[number]["error"].startswith("PartyError: party 4 (party4) closed the connection")
        ended_cleanly(found[number])
