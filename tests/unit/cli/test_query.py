"""``shoal query`` and ``shoal synthesize``: plan, answer, spend, refuse."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.cli.commands import app

RUN = CliRunner()
ASKED = ["--count", "--mean", "age", "--bounds", "age=0:120", "--by", "ward", "--categories", "ward=A,B"]
MADE = ["--columns", "age,ward", "--bins", "age=0,40,120", "--categories", "ward=A,B"]


def refused(arguments: list[str], message: str) -> None:
    result = RUN.invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code != 0
    assert message in " ".join(result.output.split())


@pytest.fixture
def patients(tmp_path: Path) -> Path:
    path = tmp_path / "patients.csv"
    path.write_text("age,ward\n" + "31,A\n34,A\n58,B\n61,B\n" * 50)
    return path


def test_the_plan_spends_nothing_and_an_answer_is_entered(patients: Path, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.json"
    spend = ["--budget", "rho=50", "--ledger", str(ledger), "--total", "rho=60"]
    plan = RUN.invoke(app, ["query", str(patients), *spend, *ASKED, "--plan", "--json"], catch_exceptions=False)
    assert plan.exit_code == 0
    assert json.loads(plan.stdout)["left"] == {"rho": "10"}
    assert not ledger.exists()

    shown = RUN.invoke(app, ["query", str(patients), *spend, *ASKED, "--json"], catch_exceptions=False)
    found = json.loads(shown.stdout)
    assert found["left"] == {"rho": "10"}
    counts = {answer["group"]["ward"]: answer for answer in found["answers"] if answer["ask"] == "count"}
    assert counts["A"]["value"] == pytest.approx(100, abs=5)
    assert json.loads(ledger.read_text())["spent"] == {"rho": "50"}

    before = ledger.read_bytes()
    refused(["query", str(patients), *spend, *ASKED], "does not suffice")
    assert ledger.read_bytes() == before


def test_answers_are_printed_for_people_and_as_csv(patients: Path, tmp_path: Path) -> None:
    spend = ["--budget", "epsilon=1", "--ledger", str(tmp_path / "ledger.json"), "--total", "epsilon=9"]
    shown = RUN.invoke(app, ["query", str(patients), *spend, *ASKED], catch_exceptions=False)
    assert "mean of age" in shown.stdout
    assert "Left: ε = 8." in shown.stdout
    lines = RUN.invoke(app, ["query", str(patients), *spend, *ASKED, "--csv"], catch_exceptions=False).stdout
    assert lines.splitlines()[0] == "ask,ward,of,value,low,high"
    assert len(lines.splitlines()) == 5


def test_a_synthetic_table_is_checked_and_attacked_like_any_release(patients: Path, tmp_path: Path) -> None:
    made, policy = tmp_path / "synthetic.csv", tmp_path / "policy.toml"
    policy.write_text(
        '[columns]\nage = {role = "quasi"}\nward = {role = "sensitive"}\n[[require]]\nmodel = "k-anonymity"\nk = 2\n'
    )
    spend = ["--budget", "rho=5000", "--ledger", str(tmp_path / "ledger.json"), "--total", "rho=5000"]
    run = ["synthesize", str(patients), *spend, *MADE, "-o", str(made)]
    assert RUN.invoke(app, run, catch_exceptions=False).exit_code == 0
    judged = RUN.invoke(app, ["check", str(made), "-p", str(policy), "--json"], catch_exceptions=False)
    assert (judged.exit_code, json.loads(judged.stdout)["records"]) == (0, 200)
    attack = ["attack", str(made), "-p", str(policy), "--original", str(patients), "--json"]
    risks = json.loads(RUN.invoke(app, attack, catch_exceptions=False).stdout)["attacks"]
    # With so much budget the bins and wards are the true ones, and each bin has one ward only.
    assert {risk["name"]: risk["successes"] for risk in risks}["homogeneity"] == 200


def test_a_file_without_records_is_answered_too(tmp_path: Path) -> None:
    path, made = tmp_path / "nobody.csv", tmp_path / "synthetic.csv"
    path.write_text("age,ward\n")
    spend = ["--budget", "rho=40", "--ledger", str(tmp_path / "ledger.json"), "--total", "rho=80"]
    shown = RUN.invoke(app, ["query", str(path), *spend, *ASKED, "--json"], catch_exceptions=False)
    assert len(json.loads(shown.stdout)["answers"]) == 4
    rows = ["synthesize", str(path), *spend, *MADE, "--rows", "3", "-o", str(made)]
    assert RUN.invoke(app, rows, catch_exceptions=False).exit_code == 0
    assert len(made.read_text().splitlines()) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["query", "--budget", "epsilon=1", "--count"], "a ledger is needed"),
        (["query", "--plan", "--budget", "epsilon=1", "--mean", "age"], "'age' needs bounds"),
        (["query", "--plan", "--budget", "epsilon=1", "--bounds", "age"], "--bounds needs a column"),
        (["query", "--plan", "--budget", "epsilon=1", "--quantile", "age=half"], "quantiles must be numbers"),
        (["query", "--plan", "--budget", "much", "--count"], "budget has no part"),
        (["synthesize", "--budget", "epsilon=1", *MADE], "a ledger is needed"),
        (["synthesize", "--budget", "epsilon=1", "--ledger", "x.json", *MADE], "where should"),
        (["synthesize", "--plan", "--budget", "epsilon=1", "--columns", "age"], "'age' needs categories or bins"),
    ],
)
def test_errors_say_what_is_missing(options: list[str], message: str, patients: Path) -> None:
    refused([options[0], str(patients), *options[1:]], message)


def test_a_synthetic_table_is_planned_written_and_entered(patients: Path, tmp_path: Path) -> None:
    ledger, made = tmp_path / "ledger.json", tmp_path / "synthetic.csv"
    spend = ["--budget", "rho=5000", "--ledger", str(ledger), "--total", "rho=6000"]
    plan = RUN.invoke(app, ["synthesize", str(patients), *spend, *MADE, "--plan"], catch_exceptions=False)
    assert "choice of 1 pairs" in plan.stdout
    assert not ledger.exists()
    run = ["synthesize", str(patients), *spend, *MADE, "-o", str(made)]
    shown = RUN.invoke(app, [*run, "--json"], catch_exceptions=False)
    assert json.loads(shown.stdout)["pairs"] == [["age", "ward"]]
    lines = made.read_text().splitlines()
    assert len(lines) == 201
    assert sorted(set(lines[1:])) == ['"[0, 40)",A', '"[40, 120]",B']
    assert json.loads(ledger.read_text())["spent"] == {"rho": "5000"}
    before = ledger.read_bytes()
    refused(run, "synthetic.csv")  # it exists: refused before anything is spent
    assert ledger.read_bytes() == before
