"""What needs no rows never asks for them: commands say of a table in an engine what they say of it in memory."""

import json
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench, nasty
from contract import TASKS
from shoal.cli.commands import app
from shoal.demo.hospital import hospital
from shoal.engines import connect
from shoal.engines.local import LocalEngine
from shoal.errors import DataError
from shoal.inspection.inspect import inspect
from shoal.inspection.sensitive import SensitiveColumn, sensitive_column

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")


def run(*arguments: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return done.exit_code, done.stdout, done.stderr


def plainly(text: str) -> object:
    """JSON without what takes time and memory."""
    found = json.loads(text)
    for entry in found.get("entries", ()):
        entry.pop("seconds")
        entry.pop("memory")
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table as two kinds of file, a folder and a database; a release with its certificate; a policy."""
    ASKED.save(tmp_path / "policy.toml")
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    pa.csv.write_csv(PEOPLE, tmp_path / "people.csv", pa.csv.WriteOptions(quoting_style="needed"))
    (tmp_path / "people").mkdir()
    pq.write_table(PEOPLE.slice(0, 20), tmp_path / "people" / "a.parquet")
    pq.write_table(PEOPLE.slice(20), tmp_path / "people" / "b.parquet")
    release = shoal.anonymize(PEOPLE, ASKED)
    (tmp_path / "proof.json").write_text(json.dumps(release.save(tmp_path / "release.parquet")))
    import duckdb

    with duckdb.connect(tmp_path / "people.db") as con:
        for name in ("people", "release"):
            con.execute(f"CREATE TABLE {name} AS FROM read_parquet('{tmp_path / name}.parquet')")
    return tmp_path


def every_way(folder: Path, name: str) -> list[tuple[str, ...]]:
    """The same rows, named in several ways; the first is read into memory."""
    file = str(folder / f"{name}.parquet")
    ways: list[tuple[str, ...]] = [(file,), (file, "--engine", "duckdb"), (file, "--memory", "500MB")]
    uri = f"duckdb://{folder / 'people.db'}"
    return [*ways, (uri, "--table", name), (f"{uri}#{name}",)]


@pytest.mark.parametrize("command", ["check", "explore", "compare", "inspect", "frontier"])
def test_a_command_says_the_same(folder: Path, command: str) -> None:
    options = {
        "check": ("-p", folder / "policy.toml"),
        "explore": ("-p", folder / "policy.toml", "--sweep", "k=2,3,30", "--sweep", "max_suppression=0,0.1"),
        "compare": ("-p", folder / "policy.toml", "--algorithms", "optimal,mondrian,mondrian_relaxed,suppress_cells"),
        "frontier": ("-p", folder / "policy.toml", "--frontier", "k=2,3,30"),
        "inspect": (),
    }[command]
    verb = "anonymize" if command == "frontier" else command
    for name in ("people", "release") if command in ("check", "inspect") else ("people",):
        said = [run(verb, *way, *options, "--json") for way in every_way(folder, name)]
        assert {(code, err) for code, _, err in said} == {(1 if (command, name) == ("check", "people") else 0, "")}
        assert all(plainly(out) == plainly(said[0][1]) for _, out, _ in said)


def test_text_is_inspected_alike(folder: Path) -> None:
    said = [run("inspect", folder / "people.csv", *way, "--json") for way in ((), ("--engine", "duckdb"))]
    assert [code for code, _, _ in said] == [0, 0]
    assert json.loads(said[0][1]) == json.loads(said[1][1])
    assert run("inspect", folder / "people.csv", "--engine", "duckdb", "-o", folder / "new.toml", "-q")[0] == 0
    assert shoal.Policy.load(folder / "new.toml").quasi


def test_a_certificate_of_a_file(folder: Path) -> None:
    first, *others = every_way(folder, "release")
    code, out, err = run("verify", folder / "proof.json", *first, "--json")
    assert (code, err) == (0, "")
    for way in others:
        code, found, err = run("verify", folder / "proof.json", *way, "--json")
        (hash_, *rest), (_, *expected) = json.loads(found)["lines"], json.loads(out)["lines"]
        assert (err, rest) == ("", expected)
        is_file = "://" not in way[0]
        assert (code, hash_["holds"]) == ((0, True) if is_file else (1, False))
        assert is_file or "belongs to a file" in hash_["why"]
    assert run("verify", folder / "proof.json", folder / "people.parquet", "--engine", "duckdb", "-q")[0] == 1


def test_a_certificate_of_a_table(database: Bench) -> None:
    release = shoal.anonymize(database.load(PEOPLE), ASKED)
    name = f"r_{secrets.token_hex(4)}"
    proof = release.save(f"table:{name}")
    found = shoal.verify_certificate(proof, database.con.table(name))
    assert found.holds
    assert next(iter(found)).holds
    local = shoal.verify_certificate(proof, database.con.table(name).to_pyarrow())
    assert list(found)[1:] == list(local)[1:]
    strange = shoal.verify_certificate(proof, database.load(pa.table({"other": [1, 2]})))
    assert [line.name for line in strange if line.holds is False] == ["output.sha256", "output.records", "columns"]


def test_earlier_releases_may_be_tables(folder: Path, server: str, postgres: Bench) -> None:
    policy, options = folder / "policy.toml", ("--original", folder / "people.parquet")
    release = folder / "release.parquet"
    _, expected, _ = run("check", release, "-p", policy, *options, "--previous", release, "--json")
    uri = f"duckdb://{folder / 'people.db'}"
    tables = {
        name: postgres.load(pq.read_table(folder / f"{name}.parquet")).get_name() for name in ("people", "release")
    }
    ways = [
        (release, "--engine", "duckdb", *options, "--previous", release),
        (release, *options, "--previous", f"{uri}#release"),
        (f"{uri}#release", "--original", "table:people", "--previous", "table:main.release"),
        (server, "--table", tables["release"], "--original", f"table:{tables['people']}", "--previous", release),
        (f"{server}#{tables['release']}", *options, "--previous", f"{server}#public.{tables['release']}"),
    ]
    for way in ways:
        code, out, err = run("check", *way, "-p", policy, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == json.loads(expected)
    code, _, err = run("check", release, *options, "--previous", "table:release", "-p", policy)
    assert code == 2
    assert "a file has no other tables" in err


# ── inspect ─────────────────────────────────────────────────────────────────────────────────────────────────


def tables() -> dict[str, pa.Table]:
    draw = np.random.default_rng(11)
    n = 300
    return {
        "nasty": nasty(),
        "hospital": LocalEngine.of(hospital()).table.slice(0, 400),
        "numbers": pa.table(
            {
                "row": np.arange(1, n + 1),
                "nr": draw.permutation(np.arange(1000, 1000 + n)),
                "income": draw.integers(0, 10**6, n) / 100,
                "born": [f"19{y:02}-0{m}-1{d}" for y, m, d in draw.integers(1, 9, (n, 3))],
                "zip": [f"0{z}" for z in draw.integers(1000, 1200, n)],
                "same": ["x"] * n,
                "empty": pa.nulls(n, pa.string()),
                "diagnosis": draw.choice(["flu", "gout", ""], n),
            }
        ),
    }


@pytest.fixture(autouse=True)
def _unrounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows in a database are not rounded: what is compared with them must not be either."""

    def unrounded(column: Any, *, in_memory: bool) -> SensitiveColumn:
        return sensitive_column(column, in_memory=False)

    monkeypatch.setattr("shoal.inspection.inspect.sensitive_column", unrounded)


def seen_alike(bench: Bench, table: pa.Table) -> None:
    found, expected = inspect(connect.engine_of_expression(bench.load(table))), inspect(LocalEngine.of(table).table)
    assert found.as_dict() == expected.as_dict()
    assert found.toml() == expected.toml()


@pytest.mark.parametrize("tuples", [10**6, 0])  # that come here at the most
@pytest.mark.parametrize("name", tables())
def test_what_is_seen_in_a_database(database: Bench, name: str, tuples: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.inspection.sources.TUPLES", tuples)
    seen_alike(database, tables()[name])


@pytest.mark.long
def test_what_is_seen_on_spark_of_every_kind_of_value(spark: Bench) -> None:
    seen_alike(spark, nasty())


@pytest.mark.long
def test_what_is_seen_on_spark(spark: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.inspection.sources.TUPLES", 0)
    seen_alike(spark, tables()["numbers"].select(["row", "zip", "diagnosis"]))


def test_columns_of_too_many_values(duck: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.inspection.sources.MANY", 50)
    monkeypatch.setattr("shoal.inspection.sources.SOME", 20)
    table = tables()["numbers"]
    found = inspect(connect.engine_of_expression(duck.load(table)))
    expected = inspect(table)
    assert [(c.name, c.kind, c.distinct, c.nulls, c.role) for c in found.columns] == [
        (c.name, c.kind, c.distinct, c.nulls, c.role) for c in expected.columns
    ]
    assert found.separations == expected.separations
    asked = found.policy  # covers what was not looked at
    assert shoal.anonymize(table, asked).measured["k"] >= 5


def test_utility_takes_rows(duck: Bench) -> None:
    with pytest.raises(DataError, match="in memory"):
        shoal.compare(duck.load(PEOPLE), ASKED, algorithms=["optimal"], utility=True)
