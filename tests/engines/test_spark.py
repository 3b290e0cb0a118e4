"""Spark: folders, the command line, and a worker that dies in the middle of a job."""

import contextlib
import resource
import threading
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from contract import TASKS
from shoal.cli.commands import app
from shoal.errors import OutputError, VerificationError

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.fixture(autouse=True)
def as_it_runs_elsewhere(spark: Bench) -> Iterator[None]:
    """Here Spark writes code for its plans, as it does by itself: slow for tables as small as those of other tests."""
    usual = {"spark.sql.codegen.factoryMode": "FALLBACK", "spark.sql.codegen.wholeStage": "true"}
    before = {name: spark.con._session.conf.get(name) for name in usual}
    for name, value in usual.items():
        spark.con._session.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.con._session.conf.set(name, value)


def test_a_folder_is_written_aside_and_renamed(spark: Bench, tmp_path, monkeypatch) -> None:
    release = shoal.anonymize(spark.load(PEOPLE), ASKED)
    target = tmp_path / "out"
    release.save(target)
    assert rows_of(pq.read_table(target)) == rows_of(shoal.anonymize(PEOPLE, ASKED).rows.table)
    with pytest.raises(OutputError, match="exists"):
        release.save(target)
    release.save(target, force=True)
    with pytest.raises(OutputError, match="does not exist"):
        release.save(tmp_path / "none" / "out")
    with pytest.raises(OutputError, match="Parquet"):
        release.save(tmp_path / "out.csv")

    def refused(*_: object) -> None:
        raise VerificationError("no")

    monkeypatch.setattr(type(release), "_verify", refused)
    for name in (tmp_path / "wrong", "table:wrong"):
        with pytest.raises(VerificationError):
            release.save(name)
    assert [entry.name for entry in tmp_path.iterdir() if not entry.name.endswith(".crc")] == ["out"]
    tables = [row.tableName for row in spark.con._session.sql("SHOW TABLES").collect() if not row.isTemporary]
    assert not [name for name in tables if name.startswith(("wrong", "shoal_"))]


def test_the_command_line_reads_a_folder_and_writes_one(spark: Bench, master: str, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(PEOPLE, tmp_path / "in" / "people.parquet")
    ASKED.save(tmp_path / "policy.toml")
    arguments = [master, "--parquet", tmp_path / "in", "-p", tmp_path / "policy.toml"]
    done = CliRunner().invoke(app, ["anonymize", *map(str, arguments), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert rows_of(pq.read_table(tmp_path / "out")) == rows_of(shoal.anonymize(PEOPLE, ASKED).rows.table)
    arguments[2] = tmp_path / "out"
    assert CliRunner().invoke(app, ["check", *map(str, arguments)]).exit_code == 0


N = 400_000


@pytest.fixture(scope="module")
def many(spark: Bench) -> str:
    """The name of a table that takes a while to write."""
    draw = np.random.default_rng(1)
    table = pa.table(
        {
            "q0": draw.integers(10, 60, N).astype(str),
            "q1": draw.integers(1, 9, N).astype(str),
            "s": np.array(["flu", "cold", "gout"])[draw.integers(0, 3, N)],
            "serial": np.arange(N).astype(str),
            "person": np.arange(N).astype(str),
        }
    )
    return spark.load(table).get_name()


def test_a_place_that_cannot_be_written(spark: Bench) -> None:
    release = shoal.anonymize(spark.load(PEOPLE), ASKED)
    with pytest.raises(OutputError, match="Spark could not write the release"):
        release.save("/proc/release")


def limit(processes: list[int], n_bytes: int) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):  # an executor of a driver that has ended
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


@pytest.mark.long
def test_a_full_disk_leaves_nothing(spark: Bench, many: str, cluster, tmp_path) -> None:
    # In one piece: a task that fails ends the job, and another could still begin a file when all has been deleted.
    spark.con._session.table(many).coalesce(1).createOrReplaceTempView("in_one_piece")
    release = shoal.anonymize(spark.con.table("in_one_piece"), ASKED)
    executors = cluster.executors()
    assert executors
    limit(executors, 100_000)  # no file of theirs grows beyond this, as on a full disk
    try:
        with pytest.raises(OutputError, match="Spark could not write the release"):
            release.save(tmp_path / "out")
    finally:
        limit(executors, resource.RLIM_INFINITY)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.long
def test_a_worker_may_die_in_the_middle_of_a_job(spark: Bench, many: str, cluster, tmp_path, monkeypatch) -> None:
    release = shoal.anonymize(spark.con.table(many), ASKED)
    saved: list[object] = []
    dead = threading.Event()
    verify = shoal.Release._verify

    def verify_later(*given: object) -> None:  # it is the middle, however long this thread is kept waiting
        dead.wait()
        verify(*given)

    monkeypatch.setattr(shoal.Release, "_verify", verify_later)
    job = threading.Thread(target=lambda: saved.append(release.save(tmp_path / "out")))
    job.start()
    victim = cluster.workers()[0]
    cluster.worker()  # its place is taken by another
    try:
        while job.is_alive() and not list(tmp_path.rglob("*.parquet")):
            time.sleep(0.01)
        assert job.is_alive()
    finally:
        victim.kill()
        victim.wait()
        dead.set()
    job.join(600)
    assert saved, "the job did not finish"
    assert pq.read_table(tmp_path / "out").num_rows == N
