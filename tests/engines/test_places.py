"""Where a release may be written, what is refused, and that nothing half-written or secret is left behind."""

import subprocess
import sys
from functools import partial

import ibis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from benches import Bench
from contract import TASKS
from shoal.engines import connect, memory
from shoal.engines.backends.connection_errors import safe_uri
from shoal.engines.backends.duckdb_files import in_pieces
from shoal.errors import DataError, OutputError, ShoalError, VerificationError

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


def visible(bench: Bench) -> set[str]:
    """Tables that anybody could mistake for a release."""
    return {name for name in bench.tables() if not name.startswith("t_")}


# ── targets ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_table_is_not_overwritten_unless_forced(database: Bench) -> None:
    release = shoal.anonymize(database.load(PEOPLE), ASKED)
    target = f"{database.name}_once"
    release.save(f"table:{target}")
    before = database.read(target)
    with pytest.raises(OutputError, match="already exists and was not overwritten"):
        release.save(f"table:{target}")
    shoal.anonymize(database.load(PEOPLE.slice(0, 40)), ASKED).save(f"table:{target}", force=True)
    after = database.read(target)
    assert len(after) < len(before)


def test_a_schema_can_be_named(postgres: Bench) -> None:
    with postgres.con.begin() as cursor:
        cursor.execute('CREATE SCHEMA "Öffentlich"')
    shoal.anonymize(postgres.load(PEOPLE), ASKED).save("table:Öffentlich.re lease")
    assert len(postgres.con.table("re lease", database="Öffentlich").to_pyarrow()) == 60
    with pytest.raises(OutputError, match="could not write the release"):
        shoal.anonymize(postgres.load(PEOPLE), ASKED).save("table:nowhere.release")


@pytest.mark.parametrize("target", ["table:", "release.csv"])
def test_postgres_writes_tables(postgres: Bench, target: str) -> None:
    with pytest.raises(OutputError, match="table"):
        shoal.anonymize(postgres.load(PEOPLE), ASKED).save(target)


def test_a_folder_of_parquet_files(duck: Bench, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("shoal.engines.formats.folders.FILE_ROWS", 25)
    monkeypatch.setattr("shoal.engines.backends.duckdb_files.PIECE", 7)
    release = shoal.anonymize(duck.load(PEOPLE), ASKED)
    release.save(tmp_path / "out")
    parts = sorted((tmp_path / "out").iterdir())
    tables = [pq.read_table(part) for part in parts]
    assert [part.name for part in parts] == [f"part-{i:05}.parquet" for i in range(len(parts))]
    assert [len(table) for table in tables][:-1] == [25] * (len(parts) - 1)
    local = shoal.anonymize(PEOPLE, ASKED).rows.table
    assert pa.concat_tables(tables).to_pylist() == local.to_pylist()
    with pytest.raises(OutputError, match="already exists and was not overwritten"):
        release.save(tmp_path / "out")
    (tmp_path / "out" / "stray").touch()
    release.save(tmp_path / "out", force=True)
    assert sorted((tmp_path / "out").iterdir()) == parts
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert shoal.check(connect.from_files(tmp_path / "out"), ASKED).holds


def test_a_table_in_memory_goes_to_a_file() -> None:
    with pytest.raises(OutputError, match="saved to a file"):
        shoal.anonymize(PEOPLE, ASKED).save("table:release")


# ── what is written is counted, and believed ────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spoil", ["DELETE FROM {0} WHERE serial < '010'", "UPDATE {0} SET q0 = serial"])
def test_a_wrong_table_never_appears(postgres: Bench, spoil: str, monkeypatch) -> None:
    release = shoal.anonymize(postgres.load(PEOPLE), ASKED)
    judge = type(release.engine).groups

    def spoiled(engine, names, table=None):
        if table is not None:
            postgres.con.con.execute(spoil.format('"wrong"'))
        return judge(engine, names, table)

    monkeypatch.setattr(type(release.engine), "groups", spoiled)
    with pytest.raises(VerificationError):
        release.save("table:wrong")
    assert "wrong" not in postgres.tables()


def test_a_wrong_folder_never_appears(duck: Bench, tmp_path, monkeypatch) -> None:
    release = shoal.anonymize(duck.load(PEOPLE), ASKED)
    spoiled = partial(map, lambda piece: piece.slice(1))
    monkeypatch.setattr("shoal.engines.backends.duckdb.in_pieces", lambda *given: spoiled(in_pieces(*given)))
    for target in ("out", "out.csv", "out.parquet"):
        with pytest.raises(VerificationError):
            release.save(tmp_path / target)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_changes_meanwhile_is_not_released(database: Bench) -> None:
    table = database.load(PEOPLE)
    release = shoal.anonymize(table, ASKED)
    statement = f"INSERT INTO {table.get_name()} SELECT * FROM {table.get_name()} LIMIT 1"
    database.con.con.execute(statement)
    with pytest.raises(VerificationError, match="did the table change"):
        release.save("table:changed")
    assert "changed" not in database.tables()


# ── figures ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_and_measure_count_in_the_engine(database: Bench) -> None:
    table = database.load(PEOPLE)
    assert not shoal.check(table, ASKED).holds
    local = shoal.measure(PEOPLE, quasi=["q0", "q1"], sensitive=["s"])
    assert dict(shoal.measure(table, quasi=["q0", "q1"], sensitive=["s"])) == dict(local)
    release = shoal.anonymize(table, ASKED)
    release.save(f"table:{database.name}_kept")
    kept = database.con.table(f"{database.name}_kept")
    assert shoal.check(kept, ASKED, original=table) == release.verdicts
    assert shoal.check(kept, ASKED, original=PEOPLE) == release.verdicts


def test_rows_stay_where_they_are(duck: Bench) -> None:
    release = shoal.anonymize(duck.load(PEOPLE), ASKED)
    with pytest.raises(DataError, match="stay in their engine"):
        _ = release.engine.table
    assert type(release.table).__module__.startswith("ibis.")


# ── what cannot be reached ──────────────────────────────────────────────────────────────────────────────────

SECRET = "hunter2"


@pytest.mark.parametrize(
    "uri",
    [
        f"postgresql://amy:{SECRET}@127.0.0.1:1/hospital",
        f"postgresql://amy:{SECRET}@127.0.0.1:1/hospital?options=-c%20password%3D{SECRET}",
        f"postgres://127.0.0.1:1/hospital?user=amy&password={SECRET}",
    ],
)
def test_a_password_is_in_no_message(uri: str) -> None:
    with pytest.raises(ShoalError) as caught:
        connect.connected(uri, table="people")
    assert SECRET not in str(caught.value)
    assert "127.0.0.1:1/hospital" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert SECRET not in safe_uri(uri)


def test_a_password_is_in_no_certificate(server: str, postgres: Bench) -> None:
    with postgres.con.begin() as cursor:
        cursor.execute(f"CREATE ROLE amy LOGIN SUPERUSER PASSWORD '{SECRET}'")
    table = postgres.load(PEOPLE).get_name()
    host = server.partition("?")[2]
    engine = connect.connected(f"postgresql://amy:{SECRET}@/postgres?{host}", table=table)
    release = shoal.anonymize(engine, ASKED)
    proof = release.save("table:amys")
    assert SECRET not in str(proof)
    assert SECRET not in str(release.findings)
    with pytest.raises(DataError, match="has no table 'nobody'") as caught:
        connect.connected(f"postgresql://amy:{SECRET}@/postgres?{host}", table="nobody")
    assert SECRET not in str(caught.value)


def test_errors_of_the_driver_are_not_passed_on(postgres: Bench) -> None:
    release = shoal.anonymize(postgres.load(PEOPLE), ASKED)
    postgres.con.con.execute(f"DROP TABLE {release.engine.expression.get_name()}")
    with pytest.raises(OutputError) as caught:
        release.save("table:gone")
    assert "UndefinedTable" in str(caught.value)
    assert "t_" not in str(caught.value)


@pytest.mark.parametrize("moment", ["before it writes", "while it writes"])
def test_a_lost_connection_is_told_and_leaves_nothing(server: str, postgres: Bench, moment: str, monkeypatch) -> None:
    name = postgres.load(PEOPLE).get_name()
    other = ibis.connect(server)
    release = shoal.anonymize(other.table(name), ASKED)
    pid = other.con.info.backend_pid
    judge = type(release.engine).groups

    def dropped(*given):
        postgres.con.con.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
        return judge(*given)

    if moment == "while it writes":  # the table is there, in a transaction, and is being counted
        monkeypatch.setattr(type(release.engine), "groups", dropped)
    else:
        postgres.con.con.execute(f"SELECT pg_terminate_backend({pid}, 5000)")
    with pytest.raises(ShoalError, match="nothing was kept"):
        release.save("table:lost")
    assert "lost" not in postgres.tables()
    other.disconnect()


def test_a_full_disk_of_the_server_is_told_and_leaves_nothing(postgres: Bench) -> None:
    release = shoal.anonymize(postgres.load(PEOPLE), ASKED)
    con = postgres.con.con
    con.execute("""
        CREATE FUNCTION full() RETURNS event_trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$
    """)
    con.execute(
        "CREATE EVENT TRIGGER full_disk ON ddl_command_end WHEN TAG IN ('CREATE TABLE AS') EXECUTE FUNCTION full()"
    )
    try:
        with pytest.raises(OutputError, match=r"DiskFull 53100\)\n.*disk is full"):
            release.save("table:full")
    finally:
        con.execute("DROP EVENT TRIGGER full_disk")
    assert "full" not in postgres.tables()
    release.save("table:full")


def test_who_may_not_write_is_told(server: str, postgres: Bench) -> None:
    name = postgres.load(PEOPLE).get_name()
    with postgres.con.begin() as cursor:
        cursor.execute("CREATE ROLE reader LOGIN")
        cursor.execute(f"GRANT SELECT ON {name} TO reader")
    other = ibis.connect(server.replace("postgres:@", "reader:@"))
    release = shoal.anonymize(other.table(name), ASKED)
    other.con.execute("SET default_transaction_read_only = on")
    with pytest.raises(OutputError, match="read-only"):
        release.save("table:denied")
    other.disconnect()
    assert "denied" not in postgres.tables()


# ── files, out of core ──────────────────────────────────────────────────────────────────────────────────────


def test_a_csv_file_is_read_as_in_memory(tmp_path) -> None:
    text = (
        '\ufeff"q0";q1;s;serial;person\r\n'
        + "".join(f'{a or ""};"{b}";{c};{i:03};"p\n{i}"\r\n' for i, (a, b, c) in enumerate(TASKS["nulls"].rows))
        + '"";6;flu;998;p\r\n\r\n;6;"a;""b""";999;"é"\r\n'
    )
    path = tmp_path / "people.csv"
    path.write_text(text, encoding="utf-8", newline="")
    asked = TASKS["nulls"].policy("optimal")
    here = shoal.anonymize(path, asked)
    there = shoal.anonymize(connect.from_files(path, memory="200MB"), asked)
    assert here.save(tmp_path / "here.csv")["output"] == there.save(tmp_path / "there.csv")["output"]
    assert here.receipt["input"] == there.receipt["input"]
    with pytest.raises(OutputError, match="the input itself"):
        there.save(path, force=True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"q0,q1\n1,2\n1,2,secret\n", "first in line 3: 3 found, 2 expected"),
        (b"q0,q0\n1,2\n", "more than once"),
        ("q0,q1\n1,secret\n".encode("utf-16-le"), "NUL byte"),
        (b"", "is empty"),
    ],
)
def test_files_that_cannot_be_read(tmp_path, content: bytes, words: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    asked = shoal.Policy.of(
        {
            "columns": {"q0": {"role": "quasi"}, "q1": {"role": "quasi"}},
            "require": [{"model": "k-anonymity", "k": 2}],
        }
    )
    with pytest.raises(DataError, match=words) as caught:
        shoal.anonymize(connect.from_files(path), asked)
    assert "secret" not in str(caught.value)


def test_columns_that_hold_no_single_value(duck: Bench) -> None:
    table = duck.load(pa.table({"q0": [[1, 2]], "q1": ["1"]}))
    asked = shoal.Policy.of(
        {"columns": {n: {"role": "quasi"} for n in ("q0", "q1")}, "require": [{"model": "k-anonymity", "k": 1}]}
    )
    with pytest.raises(DataError, match="one plain value per cell"):
        shoal.anonymize(table, asked)


def test_what_is_no_table_of_a_known_engine() -> None:
    with pytest.raises(DataError, match="no connection"):
        shoal.anonymize(ibis.table({"q0": "string"}, name="t"), ASKED)
    with pytest.raises(DataError, match="no table"):
        shoal.anonymize(ibis.table({"q0": "string"}, name="t").q0, ASKED)
    with pytest.raises(DataError, match="which table"):
        connect.connected("postgresql://host/db")
    with pytest.raises(DataError, match="which rows"):
        connect.connected("spark://host:7077")
    with pytest.raises(DataError, match="does not exist"):
        connect.connected("duckdb:///none.db", table="people")


# ── no room, no right ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("target", ["release.csv", "release.parquet", "release"])
def test_a_place_that_cannot_be_written(duck: Bench, target: str) -> None:
    release = shoal.anonymize(duck.load(PEOPLE), ASKED)
    with pytest.raises(OutputError, match="cannot be written"):
        release.save(f"/proc/{target}")


def test_a_database_that_is_read_only(duck: Bench, tmp_path) -> None:
    path = tmp_path / "people.db"
    duck.con.con.execute(f"ATTACH '{path}' AS fixed")
    duck.con.con.execute(f"CREATE TABLE fixed.people AS FROM {duck.load(PEOPLE).get_name()}")
    duck.con.con.execute("DETACH fixed")
    con = ibis.duckdb.connect(path, read_only=True)
    with pytest.raises(OutputError, match="DuckDB could not write the release"):
        shoal.anonymize(con.table("people"), ASKED).save("table:release")
    con.disconnect()


# No file of this process grows beyond a limit: the system refuses to write on, as it does on a full disk.
FULL = """
import resource, sys
import pyarrow.parquet as pq
import shoal
from shoal.engines import connect
source, policy, database, *targets = sys.argv[1:]
asked = shoal.Policy.load(policy)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
for target in targets:
    data = connect.connected(f"duckdb://{database}", table="people") if target.startswith("table:") else (
        connect.from_files(__import__("pathlib").Path(source)))
    try:
        shoal.anonymize(data, asked).save(target)
    except shoal.errors.OutputError as error:
        print(str(error).replace(chr(10), " "), flush=True)
"""


def test_a_full_disk_leaves_nothing(duck: Bench, tmp_path) -> None:
    n = 100_000
    people = pa.table({"q0": ["11"] * n, "q1": ["6"] * n, "s": ["flu"] * n, "serial": [f"{i:09}" for i in range(n)]})
    people = people.append_column("person", people["serial"])
    source, database, out = tmp_path / "people.parquet", tmp_path / "people.db", tmp_path / "out"
    out.mkdir()
    pq.write_table(people, source)
    duck.con.con.execute(f"ATTACH '{database}' AS small")
    duck.con.con.execute(f"CREATE TABLE small.people AS FROM '{source}'")
    duck.con.con.execute("DETACH small")
    TASKS["k"].policy("optimal").save(tmp_path / "policy.toml")
    targets = [out / "release.csv", out / "release.parquet", out / "release", "table:release"]
    arguments = [source, tmp_path / "policy.toml", database, *targets]
    done = subprocess.run(
        [sys.executable, "-c", FULL, *map(str, arguments)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == 4
    assert all("cannot be written: File too large" in line for line in told[:3])
    assert "DuckDB could not write the release" in told[3]
    assert "is the disk full" in told[3]
    assert list(out.iterdir()) == []
    con = ibis.duckdb.connect(database)
    assert con.con.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("people",)]
    con.disconnect()


def test_no_room_to_spill_is_told(tmp_path) -> None:
    n = 300_000
    people = pa.table({"q0": [f"{i:020}" for i in range(n)], "q1": [f"{i * 7:020}" for i in range(n)]})
    pq.write_table(people, tmp_path / "people.parquet")
    engine = connect.from_files(tmp_path / "people.parquet", memory="20MB")
    engine.backend.ibis.con.execute("SET max_temp_directory_size = '1MB'")
    columns = {name: {"role": "quasi", "hierarchy": {"mask": "right"}} for name in people.column_names}
    asked = shoal.Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    with pytest.raises(DataError, match=r"OutOfMemoryException.*\n.*limit of memory"):
        shoal.anonymize(engine, asked)


def test_what_is_held_here_is_taken_off_the_memory(tmp_path, monkeypatch) -> None:
    pq.write_table(PEOPLE, tmp_path / "people.parquet")
    engine = connect.from_files(tmp_path / "people.parquet", memory="10GB")
    limits, short = [], []
    for held in (0, 3 * 10**9, 9.9 * 10**9):
        monkeypatch.setattr("shoal.engines.memory.resident", lambda held=int(held): held)
        release = shoal.anonymize(engine, ASKED)
        short.append(any("more than 10.0 GB of memory" in note.fact for note in release.findings))
        release.save(tmp_path / "out.parquet", force=True)
        limits.append(engine.backend.ibis.con.execute("SELECT current_setting('memory_limit')").fetchall()[0][0])
    assert [memory.parse_size(limit) / 10**9 for limit in limits] == pytest.approx([8.52, 5.89, 1.25], abs=0.1)
    assert short == [False, False, True]
    with pytest.raises(DataError, match="not a size"):
        connect.from_files(tmp_path / "people.parquet", memory="much")
