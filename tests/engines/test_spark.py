"""Spark: folders, the command line, and a worker that dies in the middle of a job."""

import resource
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from contract import TASKS
from shoal.cli import app
from shoal.errors import OutputError, VerificationError

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")


def rows_of(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


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
    tables = [table.name for table in spark.con._session.catalog.listTables() if table.tableType == "MANAGED"]
    assert not [name for name in tables if name.startswith(("wrong", "shoal_"))]


def test_the_command_line_reads_a_folder_and_writes_one(spark: Bench, cluster, tmp_path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(PEOPLE, tmp_path / "in" / "people.parquet")
    ASKED.save(tmp_path / "policy.toml")
    arguments = [cluster.url, "--parquet", tmp_path / "in", "-p", tmp_path / "policy.toml"]
    done = CliRunner().invoke(app, ["anonymize", *map(str, arguments), "-o", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert rows_of(pq.read_table(tmp_path / "out")) == rows_of(shoal.anonymize(PEOPLE, ASKED).rows.table)
    arguments[2] = tmp_path / "out"
    assert CliRunner().invoke(app, ["check", *map(str, arguments)]).exit_code == 0


N = 400_000


@pytest.fixture(scope="module")
def large(spark: Bench) -> shoal.Release:
    """A release that takes a while to write."""
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
    return shoal.anonymize(spark.load(table), ASKED)


def test_a_place_that_cannot_be_written(spark: Bench) -> None:
    release = shoal.anonymize(spark.load(PEOPLE), ASKED)
    with pytest.raises(OutputError, match="Spark could not write the release"):
        release.save("/proc/release")


def test_a_full_disk_leaves_nothing(large: shoal.Release, cluster, tmp_path) -> None:
    executors = cluster.executors()
    assert executors
    for pid in executors:  # no file of theirs grows beyond this, as on a full disk
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
    try:
        with pytest.raises(OutputError, match="Spark could not write the release"):
            large.save(tmp_path / "out")
    finally:
        for pid in executors:
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert list(tmp_path.iterdir()) == []


def test_a_worker_may_die_in_the_middle_of_a_job(large: shoal.Release, cluster, tmp_path) -> None:
    saved: list[object] = []
    job = threading.Thread(target=lambda: saved.append(large.save(tmp_path / "out")))
    job.start()
    time.sleep(0.8)
    cluster.worker()  # its place is taken by another
    victim = cluster.daemons[1]
    assert job.is_alive()
    victim.kill()
    victim.wait()
    job.join(180)
    assert saved, "the job did not finish"
    assert pq.read_table(tmp_path / "out").num_rows == N
