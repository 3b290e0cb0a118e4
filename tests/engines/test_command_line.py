"""The command line on engines: a URI or a folder selects it, the rest is as on files."""

import json
import secrets

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from contract import TASKS
from shoal.cli.commands import app

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("mondrian_relaxed")
SECRET = "hunter2"


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.toml"
    ASKED.save(path)
    return path


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


EXPECTED = rows_of(shoal.anonymize(PEOPLE, ASKED).rows.table)


def test_postgres(server: str, postgres: Bench, policy) -> None:
    name, target = postgres.load(PEOPLE).get_name(), f"r_{secrets.token_hex(4)}"
    uri = server.replace("postgres:@", f"postgres:{SECRET}@")
    anonymize = ("anonymize", uri, "--table", name, "-p", policy, "-o", f"table:{target}")
    code, out, err = run(*anonymize, "--json")
    assert (code, err) == (0, "")
    assert rows_of(postgres.read(target)) == EXPECTED
    assert json.loads(out)["output"]["records"] == len(EXPECTED)
    assert SECRET not in out
    code, out, err = run(*anonymize)
    assert code == 2
    assert "already exists and was not overwritten" in err
    assert SECRET not in out + err
    code, out, err = run(*anonymize, "--force")
    assert code == 0
    assert f"table:{target}" in out
    assert SECRET not in out + err
    assert run("check", uri, "--table", target, "-p", policy)[0] == 0
    assert run("check", uri, "--table", f"public.{name}", "-p", policy)[0] == 1
    for arguments in ((uri,), (uri, "--table", "nobody"), (uri.replace("/postgres?", "/none?"), "--table", name)):
        code, out, err = run("check", *arguments, "-p", policy)
        assert code == 2
        assert SECRET not in out + err


def test_a_duckdb_database(duck: Bench, policy, tmp_path) -> None:
    path = tmp_path / "people.db"
    duck.con.con.execute(f"ATTACH '{path}' AS filed")
    duck.con.con.execute(f"CREATE TABLE filed.people AS FROM {duck.load(PEOPLE).get_name()}")
    duck.con.con.execute("DETACH filed")
    uri = f"duckdb://{path}"
    code, _, err = run("anonymize", uri, "--table", "people", "-p", policy, "-o", "table:main.released")
    assert (code, err) == (0, "")
    assert run("check", uri, "--table", "released", "-p", policy)[0] == 0
    assert run("anonymize", uri, "--table", "people", "-p", policy, "-o", tmp_path / "released.csv", "-q")[0] == 0


@pytest.mark.parametrize("options", [("--engine", "duckdb"), ("--memory", "300MB"), ()], ids=str)
def test_files_and_folders(options, policy, tmp_path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(PEOPLE.slice(0, 30), folder / "a.parquet")
    pq.write_table(PEOPLE.slice(30), folder / "b.parquet")
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    shoal.anonymize(tmp_path / "people.parquet", ASKED).save(tmp_path / "local.parquet")
    for data in (folder, tmp_path / "people.parquet"):
        code, _, err = run("anonymize", data, *options, "-p", policy, "-o", tmp_path / "out.parquet", "--force", "-q")
        assert (code, err) == (0, "")
        assert (tmp_path / "out.parquet").read_bytes() == (tmp_path / "local.parquet").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["people.csv", "--engine", "abacus"], "unknown engine"),
        (["people.csv", "--table", "people"], "go with a URI"),
        (["none.csv", "--engine", "duckdb"], "does not exist"),
        (["postgresql://127.0.0.1:1/none", "--table", "people"], "could not be reached"),
        (["spark://host:7077"], "which rows"),
    ],
)
def test_what_cannot_be_opened(arguments, words, policy) -> None:
    code, _, err = run("check", *arguments, "-p", policy)
    assert code == 2
    assert words in err
