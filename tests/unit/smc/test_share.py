"""Joint computations by three and five processes: secure results are the plain ones, and failures name a party."""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from shoal import smc

PARTY = Path(__file__).resolve().parents[2] / "joint_party.py"
BOUNDS = {"age": ("0", "120"), "stay": ("0", "50")}
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


def free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def tables(n: int) -> list[list[dict[str, Any]]]:
    drawn = Random(n)
    return [
        [
            {
                "id": f"p{drawn.choice((0, 1, 2, 10 * party + i))}" if i else "p0",
                "age": drawn.randint(0, 110),
                "stay": round(drawn.uniform(0, 40), 1),
                "ward": drawn.choice("ABC"),
                "infected": "yes" if i < 6 else "no",
            }
            for i in range(8)
        ]
        for party in range(n)
    ]


def run(
    folder: Path, rows: list[list[dict[str, Any]]], scenarios: list[list[dict[str, Any] | None]]
) -> list[list[Any]]:
    """Run the parties as processes and return what each printed, by scenario and party."""
    blocks = []
    for i, (port, table) in enumerate(zip(free_ports(len(rows)), rows, strict=True), 1):
        blocks.append(smc.make_party(folder / f"party{i}", f"127.0.0.1:{port}")[1].read_text(encoding="utf-8"))
        lines = [",".join(map(str, row.values())) for row in table]
        (folder / f"{i}.csv").write_text("\n".join([",".join(table[0]), *lines, ""]), encoding="utf-8")
    (folder / "parties.toml").write_text("\n".join(blocks), encoding="utf-8")
    (folder / "scenarios.json").write_text(json.dumps(scenarios), encoding="utf-8")
    command = [sys.executable, str(PARTY)]
    started = [
        subprocess.Popen([*command, str(i), "scenarios.json"], cwd=folder, stdout=subprocess.PIPE, text=True)
        for i in range(1, len(rows) + 1)
    ]
    try:
        printed = [each.communicate(timeout=180)[0] for each in started]
    finally:
        for each in started:
            each.kill()
    return list(zip(*([json.loads(line) for line in text.splitlines()] for text in printed), strict=True))  # type: ignore[arg-type]


def plain(rows: list[list[dict[str, Any]]]) -> dict[str, Any]:
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


def test_three_parties_compute_what_one_would_and_failures_name_who(tmp_path: Path) -> None:
    rows = tables(3)
    mean = {"mean": ["age"], "at_least": 1}
    everything, few, disagreeing, noisy, missing = run(
        tmp_path,
        rows,
        [
            [dict(EVERYTHING)] * 3,
            [mean | {"at_least": 25}] * 3,
            [mean, mean, {"mean": ["stay"], "decimals": {"stay": 1}}],
            [mean | {"epsilon": "1000000", "bounds": BOUNDS}] * 3,
            [mean | {"timeout": 2}, mean | {"timeout": 2}, None],
        ],
    )
    expected = plain(rows)
    for told in everything:
        assert told["result"] == expected
        assert told["signatures"] == everything[0]["signatures"]
        assert sorted(told["signatures"]) == ["party1", "party2", "party3"]
        assert told["said"] == ""
        assert told["left"] == []
    for told in few:
        assert told["error"].startswith("InfeasibleError: all parties together have fewer than 25 rows")
    for told in disagreeing[:2]:
        assert "the parties disagree: party 3 (party3) has another mean, decimals; nothing was shared" in told["error"]
    assert "party 1 (party1) has another mean, decimals; party 2 (party2) has" in disagreeing[2]["error"]
    for told in missing[:2]:
        assert told["error"].startswith("PartyError: not connected after 2 s: party 3 (party3) at 127.0.0.1:")
    # So little noise that it is almost surely none: the way of the figures is the same.
    ages = [row["age"] for table in rows for row in table]
    assert noisy[0]["result"] == {"mean of age": sum(ages) / len(ages), "rows with age": len(ages)}
    assert noisy[0]["noise"]["sum age"] < 1e-9


@pytest.mark.long
def test_five_parties_compute_what_one_would(tmp_path: Path) -> None:
    rows = tables(5)
    for told in run(tmp_path, rows, [[dict(EVERYTHING)] * 5])[0]:
        assert told["result"] == plain(rows)
