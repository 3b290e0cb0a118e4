"""``shoal party`` and ``shoal share`` on the command line: keys, the plan, and three parties that run the command."""

import json
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from joint_runs import shared_runs
from shoal.cli.commands import app

RUN = CliRunner()


def test_a_party_gets_a_key_and_a_block_for_all(tmp_path: Path) -> None:
    made = RUN.invoke(app, ["party", str(tmp_path / "north"), "192.0.2.10:7001", "--json"], catch_exceptions=False)
    told = json.loads(made.stdout)
    (block,) = tomllib.loads((tmp_path / "north.party.toml").read_text())["party"]
    assert (block["name"], block["address"], block["fingerprint"]) == ("north", "192.0.2.10:7001", told["fingerprint"])
    assert (tmp_path / "north.key").stat().st_mode & 0o777 == 0o600
    assert "PRIVATE" not in (tmp_path / "north.party.toml").read_text()
    refused = RUN.invoke(app, ["party", str(tmp_path / "south"), "192.0.2.10"], catch_exceptions=False)
    assert refused.exit_code == 2
    assert "is not host:port" in refused.output


def test_the_plan_is_printed_and_nobody_connected_to(tmp_path: Path) -> None:
    asked = [
        "share",
        "nowhere.csv",
        "--party",
        "1",
        "--parties",
        str(tmp_path / "none.toml"),
        "--mean",
        "age",
        "--plan",
    ]
    shown = RUN.invoke(app, asked, catch_exceptions=False)
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[:4] == [
        "Opened to all parties:",
        "sum of age",
        "number of rows with age",
        "whether there are at least 10 rows",
    ]
    told = json.loads(RUN.invoke(app, [*asked, "--json"], catch_exceptions=False).stdout)
    assert told["plan_digest"] == shown.stdout.splitlines()[4]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the plan computes nothing"),
        (["--minimum", "age"], "needs bounds"),
        (["--mean", "age", "--at-least", "0"], "at_least must be a whole number between 1"),
        (["--mean", "age", "--bounds", "age=0:120", "--noise", "epsilon=1", "--at-least", "5"], "opens an exact bit"),
        (["--mean", "age", "--bounds", "age=0:120", "--noise", "delta=1"], "epsilon"),
        (["--quantile", "age=2", "--bounds", "age=0:120"], "not between 0 and 1"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(options: list[str], message: str) -> None:
    refused = RUN.invoke(app, ["share", "nowhere.csv", "--party", "1", *options, "--plan"], catch_exceptions=False)
    assert refused.exit_code == 2
    assert message in " ".join(refused.output.split())


@pytest.mark.xdist_group("parties")
def test_three_parties_run_the_command(tmp_path: Path) -> None:
    joint = shared_runs()
    rows = [[{"age": 30 + i, "infected": "yes" if i % 2 else "no"} for i in range(n)] for n in (9, 8, 7)]
    commands = []
    for number in (1, 2, 3):
        asked = ["share", f"{number}.csv", "--party", str(number), "--mean", "age", "--where", "infected=yes"]
        commands.append({"command": [*asked, "--at-least", "3", *(["--json"] if number == 3 else [])]})
    found = joint.told(tmp_path, rows, commands)
    ages = [row["age"] for table in rows for row in table if row["infected"] == "yes"]
    mean = sum(ages) / len(ages)
    for told in found[:2]:
        assert told["exit"] == 0
        assert told["shown"].startswith(f"mean of age: {mean}\nrows with age: {len(ages)}\n")
        assert "semi-honest" in told["shown"]
        assert "honest majority" in told["shown"]
    assert json.loads(found[2]["shown"])["result"] == {"mean of age": mean, "rows with age": len(ages)}

    few = joint.told(tmp_path, rows, [{"command": [*each["command"], "--at-least", "20"]} for each in commands])
    assert [told["exit"] for told in few] == [1, 1, 1]
    assert all("nothing else was opened" in " ".join(told["shown"].split()) for told in few)
