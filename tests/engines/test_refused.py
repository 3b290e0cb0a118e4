"""What cannot be opened, read or written: an error that says what to do, no password in it, and nothing lost."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from contract import TASKS
from shoal.cli.commands import app
from shoal.engines import connect
from shoal.engines.backends.base import schema_and_name
from shoal.engines.backends.connection_errors import failure, safe_uri
from shoal.errors import OutputError

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")
SECRET = "hunter2"


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    ASKED.save(tmp_path / "policy.toml")
    return tmp_path / "policy.toml"


def refused(*arguments: object) -> str:
    """What is said of a command that fails."""
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert (done.exit_code, done.stdout) == (2, "")
    assert SECRET not in done.stderr
    return done.stderr


# ── names ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "schema", "name"),
    [
        ("people", None, "people"),
        ("lab.people", "lab", "people"),
        ('"na.me"', None, "na.me"),
        ('lab."na.me"', "lab", "na.me"),
        ('"la.b"."na""me"', "la.b", 'na"me'),
        ('"la.b".people', "la.b", "people"),
        ("a.b.c", "a.b", "c"),
        ('5" nails', None, '5" nails'),
        ("", None, ""),
        ("lab.", "lab", ""),
    ],
)
def test_names_of_tables(text: str, schema: str | None, name: str) -> None:
    assert schema_and_name(text) == (schema, name)


@pytest.mark.parametrize("name", ['Our "Péople".x', "SELECT", "two words", "ta\tb", "é'"])
def test_strange_names(database: Bench, name: str) -> None:
    written = '"' + name.replace('"', '""') + '"'
    schema = "main" if database.name == "duckdb" else "public"
    source = database.load(PEOPLE)
    release = shoal.anonymize(source, ASKED)
    release.save(f"table:{schema}.{written}")
    assert len(database.read(name)) == release.rows.n_records
    with pytest.raises(OutputError, match="already exists and was not overwritten"):
        release.save(f"table:{written}")
    neighbour = connect.neighbour(connect.engine_of_expression(source), f"{schema}.{written}")
    assert shoal.check(neighbour, ASKED).holds
    database.con.con.execute(f"DROP TABLE {written}")


# ── the input ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_never_replaces_itself(bench: Bench) -> None:
    view = bench.load(PEOPLE)
    schema = {"duckdb": "main", "postgres": "public", "spark": "default"}[bench.name]
    source = view
    if bench.name == "spark":  # of a view, which is made of files: a table
        bench.con._session.sql(f"CREATE TABLE mine USING parquet AS SELECT * FROM {view.get_name()}")
        source = bench.con.table("mine")
    name = source.get_name()
    release = shoal.anonymize(source.filter(source["q0"].notnull()), ASKED)
    names = [name, f"{schema}.{name}"] + ([] if bench.name == "postgres" else [name.upper()])
    for target in names:
        with pytest.raises(OutputError, match="is the input itself"):
            release.save(f"table:{target}", force=True)
    assert len(bench.read(name)) == len(PEOPLE)
    if bench.name == "postgres":
        release.save(f"table:{name.upper()}")  # another one, there
        assert len(bench.read(name)) == len(PEOPLE)
    if bench.name == "spark":
        bench.con._session.sql("DROP TABLE mine")


def test_a_folder_never_replaces_what_is_read(policy: Path, tmp_path: Path) -> None:
    source = tmp_path / "in" / "people"
    source.mkdir(parents=True)
    pq.write_table(PEOPLE, source / "a.parquet")
    (tmp_path / "link").symlink_to(source)
    for target in ("in/people", "in", "link", "in/people/b.parquet", "in/../in/people/b", "in/people/a.parquet"):
        for data in (source, source / "a.parquet"):
            if data.is_file() and target.rpartition("/")[2].startswith("b"):
                continue  # beside a file there is room
            told = refused("anonymize", data, "--engine", "duckdb", "-p", policy, "-o", tmp_path / target, "--force")
            assert "input itself" in told or "in the folder that is read" in told
    assert [path.name for path in source.iterdir()] == ["a.parquet"]
    assert pq.read_table(source / "a.parquet") == PEOPLE


def test_spark_never_replaces_what_it_reads(spark: Bench, master: str, tmp_path: Path) -> None:
    source = tmp_path / "people"
    source.mkdir()
    pq.write_table(PEOPLE, source / "a.parquet")
    for target in (source, f"file://{source}/", f"{source}/inside", tmp_path):
        release = shoal.anonymize(connect.connected(master, parquet=str(source)), ASKED)
        with pytest.raises(OutputError, match=r"input itself|folder that is read"):
            release.save(str(target), force=True)
    assert pq.read_table(source / "a.parquet") == PEOPLE


# ── errors ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        (f"mysql://amy:{SECRET}@host/db", "no engine for mysql://"),
        (f"postgresql://amy:x/{SECRET}@127.0.0.1:1/db", "%40"),
        (f"postgresql://amy:x#{SECRET}@127.0.0.1:1/db", "%40"),
        (f"postgresql://amy:{SECRET}@x@127.0.0.1:1/db", "127.0.0.1:1/db could not be reached"),
        (f"postgresql://amy:{SECRET}@127.0.0.1:port/db", "is the URI right"),
        (f"postgresql://amy:{SECRET}@127.0.0.1:1/db", "are host and port right"),
        (f"postgresql://amy:{SECRET}@nowhere.invalid/db", "there is no such host"),
        ("duckdb://nowhere.db", "does not exist"),
        ("spark://127.0.0.1:1", "no Spark master answers"),
        ("spark://127.0.0.1:1,nowhere", "no Spark master answers"),
    ],
)
def test_what_cannot_be_reached(uri: str, told: str, policy: Path) -> None:
    assert told in refused("check", uri, "--table", "people", "-p", policy)


def test_what_postgres_refuses(server: str, postgres: Bench, policy: Path) -> None:
    people, run = postgres.load(PEOPLE).get_name(), postgres.con.con.execute
    run(f"CREATE ROLE dora LOGIN PASSWORD '{SECRET}'")
    run(f"CREATE VIEW a_view AS SELECT * FROM {people}")
    run(f'CREATE TABLE "Cased" AS SELECT q0, q0 AS "Q0" FROM {people}')
    dora = server.replace("postgres:@", f"dora:{SECRET}@")
    target = ("-p", policy, "-o", "table:out")
    assert "right to read" in refused("anonymize", dora, "--table", people, *target)
    run(f"GRANT SELECT ON {people} TO dora")
    assert "or write to another schema" in refused("anonymize", dora, "--table", people, *target)
    assert "no such database" in refused("check", server.replace("/postgres?", "/none?"), "--table", "x", "-p", policy)
    assert "know the user" in refused("check", server.replace("postgres:@", "zoe:@"), "--table", "x", "-p", policy)
    for name in ("nobody", "nowhere.people", people.upper()):
        assert "capitals count" in refused("check", server, "--table", name, "-p", policy)
    assert "differ only in case" in refused("check", server, "--table", "Cased", "-p", policy)
    anonymize = ("anonymize", server, "--table", people, "-p", policy, "--force", "-o")
    assert "no such schema" in refused(*anonymize, "table:nowhere.out")
    assert "no table, a view perhaps" in refused(*anonymize, "table:a_view")
    from_view = ("anonymize", server, "--table", "a_view", "-p", policy, "-q", "-o")
    assert "views depend on" in refused(*from_view, f"table:{people}", "--force")
    assert CliRunner().invoke(app, list(map(str, (*from_view, "table:of_a_view")))).exit_code == 0
    assert len(postgres.read(people)) == len(PEOPLE)
    assert "out" not in postgres.tables()


def test_a_wrong_password_is_told_apart() -> None:
    class OperationalError(Exception):
        """As psycopg's."""

    told = 'connection to server at "h", port 5432 failed: FATAL:  password authentication failed for user "amy"'
    assert "refused the user or the password" in str(failure("h", "be reached", OperationalError(told)))
    assert "amy" not in str(failure("h", "be reached", OperationalError(told)))


@pytest.mark.parametrize(
    "uri", [f"postgresql://amy:{SECRET}@h/d", f"postgresql://amy:a@{SECRET}@h/d", f"postgresql://:{SECRET}@h/d?a=b@c"]
)
def test_what_is_shown_of_a_uri(uri: str) -> None:
    assert SECRET not in safe_uri(uri)


def test_what_duckdb_refuses(policy: Path, tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(path) as con:
        con.register("incoming", PEOPLE)
        con.execute("CREATE TABLE people AS FROM incoming")
        con.execute("CREATE VIEW a_view AS FROM people")
    uri = f"duckdb://{path}"
    anonymize = ("anonymize", uri, "-p", policy, "--force", "--table")
    assert "is there such a schema" in refused(*anonymize, "people", "-o", "table:nowhere.out")
    assert "no view of that name" in refused(*anonymize, "people", "-o", "table:a_view")
    assert "could not write" in refused(*anonymize, "a_view", "-o", "table:people")
    assert "has no table" in refused(*anonymize, "nobody", "-o", "table:out")
    people = connect.connected(uri, table="people")
    assert set(people.backend.tables(None)) == {"people", "a_view"}
    assert people.expression.count().to_pyarrow().as_py() == len(PEOPLE)
    (tmp_path / "no.db").write_text("no database")
    assert "is it a DuckDB database" in refused("check", f"duckdb://{tmp_path / 'no.db'}", "--table", "x", "-p", policy)
