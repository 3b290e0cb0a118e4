"""Missing values and numbers as people write them: the same in every engine and through every command."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from shoal.cli.commands import app
from shoal.engines.cells import read_table
from shoal.engines.connect import engine_of_expression
from shoal.engines.opening import opened
from shoal.errors import PolicyError
from shoal.hierarchies.spelling import Spelling

TEXTS = [
    "NA",
    " NA ",
    "\tNA",
    "-",
    "",
    "  ",
    "na",
    "1.234,5",
    "1.234",
    "0,5",
    "123,456",
    "12.5",
    "-1.000",
    "1.234\n",
    "é",
    None,
]
SPELLINGS = [
    Spelling(("NA", "-", "")),
    Spelling((), ",", "."),
    Spelling(("NA", "0.5"), ","),
    Spelling((), ".", ","),
    Spelling((), ",", " "),
    Spelling((), ".", "'"),
]


def test_every_engine_reads_cells_as_memory_does(bench: Bench) -> None:
    row = [f"{i:02}" for i in range(len(TEXTS))]
    table = pa.table({"row": row, "text": TEXTS, "n": pa.array(range(990, 990 + len(TEXTS)), pa.int64())})
    there = engine_of_expression(bench.load(table))
    for spelling in SPELLINGS:
        spellings = {"text": spelling, "n": Spelling(("999", "x"))}
        expected = read_table(table, spellings)
        found = there.spelled(spellings)
        rows = sorted(found.backend.fetch(found.expression).to_pylist(), key=lambda each: each["row"])
        assert rows == expected.to_pylist(), spelling


# ── every command ───────────────────────────────────────────────────────────────────────────────────────────

POLICY = """
missing = ["NA", "-", ""]

[columns]
age = { role = "quasi", hierarchy = { intervals = [10, 20, 40] } }
land = { role = "quasi", missing = [] }
pay = { role = "sensitive", decimal = ",", thousands = "." }

[[require]]
model = "k-anonymity"
k = 2

[[require]]
model = "t-closeness"
column = "pay"
t = 0.9
distance = "numeric"

[release]
nulls = "category"
max_suppression = 0.5
"""
LINES = ["age;land;pay"]
LINES += [
    f"{age};{land};{pay}"
    for age, land in (("31", "NA"), ("NA", "NO"), ("-", "NO"), ("45", "NA"), ('" "', "NO"), ("", "NO"))
    for pay in ("1.234,50", "999,999", "12.000")
]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "people.csv").write_text("\n".join(LINES) + "\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    return tmp_path


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_through_the_commands(place: Path, engine: str) -> None:
    data, policy, release = place / "people.csv", place / "policy.toml", place / "safe.csv"
    beside = ["--certificate", place / "safe.json", "--recoding", place / "recoding.json", "--engine", engine]
    done = run("anonymize", data, "-p", policy, "-o", release, *beside)
    assert done.exit_code == 0, done.output
    rows = [line.split(";") for line in release.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["age", "land", "pay"]
    assert {row[2] for row in rows[1:]} == {"1234,50", "999,9990", "12000"}  # 999.999 would be read as 999999
    assert {row[1] for row in rows[1:]} <= {"NA", "NO", "*"}
    assert not {row[0] for row in rows[1:]} & {"NA", "-", '""', '" "'}
    for command in (
        ["check", release, "-p", policy, "--original", data, "--engine", engine],
        ["verify", place / "safe.json", release, "--engine", engine],
        ["apply", place / "recoding.json", data, "-o", place / "again.csv", "--engine", engine],
        ["attack", release, "-p", policy, "--original", data],
    ):
        done = run(*command)
        assert done.exit_code == 0, (command, done.output)
    assert sorted((place / "again.csv").read_text().splitlines()) == sorted(release.read_text().splitlines())


def test_both_engines_write_the_same(place: Path) -> None:
    policy = shoal.Policy.load(place / "policy.toml")
    for engine in ("local", "duckdb"):
        release = shoal.anonymize(opened(str(place / "people.csv"), engine=engine), policy)
        release.save(place / f"{engine}.csv")
    assert (place / "local.csv").read_bytes() == (place / "duckdb.csv").read_bytes()


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_nothing_is_missing_unless_the_policy_says_so(place: Path, engine: str) -> None:
    text = POLICY.replace('missing = ["NA", "-", ""]\n', "").replace("intervals = [10, 20, 40]", "flat = true")
    policy = shoal.Policy.parse(text.replace("[release]", "[release]\nshuffle = true"))
    data = opened(str(place / "people.csv"), engine=engine)
    table = data.reading(policy).count(policy).table
    ages = table.hierarchies[0].leaves
    assert {"NA", "-", " "} <= set(ages)
    assert None in ages  # the empty field


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_measure_takes_texts_for_missing_values(place: Path, engine: str) -> None:
    data = opened(str(place / "people.csv"), engine=engine)
    apart = shoal.measure(data, quasi=["age"])
    merged = shoal.measure(data, quasi=["age"], missing=["NA", "-", ""])
    assert apart["classes"] == 6
    assert merged["classes"] == 3


def test_a_label_that_would_be_read_as_missing_is_refused(place: Path) -> None:
    tree = '{ tree = { "*" = { NA = ["NO"], x = ["NA"] } } }'
    text = POLICY.replace('land = { role = "quasi", missing = [] }', f'land = {{ role = "quasi", hierarchy = {tree} }}')
    with pytest.raises(PolicyError, match=r"columns\.land: a label of the hierarchy"):
        shoal.anonymize(place / "people.csv", shoal.Policy.parse(text))


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_what_inspect_proposes_runs_and_is_read_so(place: Path, engine: str) -> None:
    lines = [f";{line}" if i == 0 else f"{i};{line}" for i, line in enumerate(LINES)]
    (place / "people.csv").write_text("\n".join(lines * 1) + "\n", encoding="utf-8")
    done = run("inspect", place / "people.csv", "-o", place / "proposed.toml", "--engine", engine)
    assert done.exit_code == 0, done.output
    assert "read as missing values" in done.output
    policy = shoal.Policy.load(place / "proposed.toml")
    assert policy.missing == ("", "-", "NA")
    assert policy.columns["land"].missing == ()
    assert (policy.columns["pay"].decimal, policy.columns["pay"].thousands) == (",", ".")
    assert policy.columns["Unnamed: 0"].role == "identifier"
    assert shoal.Policy.parse(policy.to_toml()) == policy
    found = json.loads(run("inspect", place / "people.csv", "--json", "--engine", engine).output)
    assert found["missing"] == ["", "-", "NA"]
    ages = next(column for column in found["columns"] if column["name"] == "age")
    assert ages["nulls"] == 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('missing = ["*"]', "means a suppressed value"),
        ('missing = [" NA"]', "surrounding spaces are ignored"),
        ("missing = [1]", "string"),
        ('missing = "NA"', "list"),
    ],
)
def test_texts_that_cannot_stand_for_missing_values(change: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        shoal.Policy.parse(POLICY.replace('missing = ["NA", "-", ""]', change))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ('decimal = ",", thousands = ","', "the same mark"),
        ('decimal = ";"', "pay.decimal"),
        ('missing = ["**"]', "means a suppressed value"),
    ],
)
def test_marks_that_cannot_be(change: str, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        shoal.Policy.parse(POLICY.replace('decimal = ",", thousands = "."', change))
