"""One judge: what check, anonymize and attack say of limits on attacks, from Python and from the command line."""

import json
import random
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli import app


def people(n: int = 60) -> pd.DataFrame:
    draw = random.Random(3)
    return pd.DataFrame(
        {
            "zip": [f"{draw.randrange(10, 99)}{i % 100:02}" for i in range(n)],
            "job": [draw.choice("abcd") for _ in range(n)],
            "disease": [draw.choice(["flu", "gout", "cold"]) for _ in range(n)],
        }
    )


POLICY = """
[columns]
zip = { role = "quasi", hierarchy = { mask = "right" } }
job = { role = "quasi" }
disease = { role = "sensitive" }
"""
LIMIT = '[[require]]\nmodel = "linkage-risk"\nmax = 0.3\n'


@pytest.fixture
def place(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "raw.csv", index=False)
    (tmp_path / "limit.toml").write_text(POLICY + LIMIT, encoding="utf-8")
    (tmp_path / "wp216.toml").write_text('preset = "wp216"\n' + POLICY, encoding="utf-8")
    (tmp_path / "release.toml").write_text(
        POLICY + LIMIT + '[[require]]\nmodel = "k-anonymity"\nk = 10\n', encoding="utf-8"
    )
    return tmp_path


def run(place: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(place / w) if (place / w).suffix in (".csv", ".toml") else w for w in words])
    return done.exit_code, done.stdout


def test_a_raw_table_is_never_passed_by_a_policy_of_limits_alone(place: Path) -> None:
    code, printed = run(place, "check", "raw.csv", "-p", "limit.toml")
    assert code == 2
    assert "CANNOT BE TOLD" in printed
    assert "linkage risk at most 0.3, measured cannot be told: needs the original." in printed
    assert "Whether the policy holds cannot be told" in printed
    code, printed = run(place, "check", "raw.csv", "-p", "limit.toml", "--original", "raw.csv")
    assert code == 1
    assert "The policy does not hold" in printed


def test_a_preset_is_judged_by_all_that_it_asks(place: Path) -> None:
    pairs = pd.concat([people(), people()])
    pairs.to_csv(place / "pairs.csv", index=False)
    assert run(place, "check", "pairs.csv", "-p", "wp216.toml")[0] == 2  # 2-anonymous, and nobody was attacked
    code, printed = run(place, "check", "pairs.csv", "-p", "wp216.toml", "--original", "pairs.csv", "--json")
    assert code == 1
    found = json.loads(printed)
    assert (found["outcome"], found["hold"]) == ("fails", False)
    told = {verdict["asked"]: verdict["outcome"] for verdict in found["verdicts"]}
    assert told["2-anonymity"] == "holds"
    assert told["linkage risk at most 0.09, measured"] == "fails"


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_a_release_passes_with_its_original_and_cannot_be_told_without(place: Path, engine: str) -> None:
    data = ["raw.csv", "-p", "release.toml", "--engine", engine]
    assert run(place, "anonymize", *data, "-o", "safe.csv")[0] == 0
    data[0] = "safe.csv"
    assert run(place, "check", *data)[0] == 2
    code, printed = run(place, "check", *data, "--original", "raw.csv", "--json")
    assert json.loads(printed)["outcome"] == "holds", printed
    assert code == 0


def test_attack_does_not_call_a_limit_kept_without_the_original(place: Path) -> None:
    assert run(place, "anonymize", "raw.csv", "-p", "release.toml", "-o", "safe.csv")[0] == 0
    code, printed = run(place, "attack", "safe.csv", "-p", "release.toml")
    assert code == 2
    assert "CANNOT BE TOLD" in printed
    assert run(place, "attack", "safe.csv", "-p", "release.toml", "--original", "raw.csv")[0] == 0
    assert run(place, "attack", "raw.csv", "-p", "limit.toml")[0] == 1  # what was reached was reached


def test_an_original_without_a_column_of_the_policy_is_named() -> None:
    asked = shoal.Policy.parse(POLICY + LIMIT)
    with pytest.raises(shoal.errors.PolicyError, match="the original has no column 'job'"):
        shoal.check(people(), asked, original=people().drop(columns="job"))
