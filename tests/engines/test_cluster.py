"""A Spark cluster: the same release, a full disk, a worker that dies, a driver that is killed."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from benches import Bench
from contract import TASKS
from shoal.errors import OutputError

TASK = TASKS["k and distinct values"]
PEOPLE = pa.Table.from_pandas(TASK.frame, preserve_index=False)
ASKED = TASK.policy("optimal")
PATIENCE = 600  # seconds: longer than any machine takes


def rows_in_order(table: pa.Table) -> list[tuple]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True))


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian_relaxed"])
def test_a_recoding_is_that_of_memory(clustered: Bench, cluster, algorithm: str, tmp_path: Path) -> None:
    asked = TASK.policy(algorithm)
    release = shoal.anonymize(clustered.load(PEOPLE), asked)
    release.save(tmp_path / "out")
    assert rows_in_order(pq.read_table(tmp_path / "out")) == rows_in_order(shoal.anonymize(PEOPLE, asked).rows.table)


N, FEWER = 100_000, 20_000


def people(n: int) -> pa.Table:
    draw = np.random.default_rng(1)
    return pa.table(
        {
            "q0": draw.integers(10, 60, n).astype(str),
            "q1": draw.integers(1, 9, n).astype(str),
            "s": np.array(["flu", "cold", "gout"])[draw.integers(0, 3, n)],
            "serial": np.arange(n).astype(str),
            "person": np.arange(n).astype(str),
        }
    )


@pytest.fixture(scope="module")
def many(clustered: Bench) -> str:
    """The name of a table that takes a while to write."""
    return clustered.load(people(N)).get_name()


def limit(processes: list[int], n_bytes: int) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):  # an executor of a driver that has ended
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (n_bytes, resource.RLIM_INFINITY))


def test_a_full_disk_leaves_nothing(clustered: Bench, many: str, cluster, tmp_path) -> None:
    # In one piece: a task that fails ends the job, and another could still begin a file when all has been deleted.
    clustered.con._session.table(many).coalesce(1).createOrReplaceTempView("in_one_piece")
    release = shoal.anonymize(clustered.con.table("in_one_piece"), ASKED)
    executors = cluster.executors()
    assert executors
    limit(executors, 100_000)  # no file of theirs grows beyond this, as on a full disk
    try:
        with pytest.raises(OutputError, match="Spark could not write the release"):
            release.save(tmp_path / "out")
    finally:
        limit(executors, resource.RLIM_INFINITY)
    assert list(tmp_path.iterdir()) == []


def test_a_worker_may_die_in_the_middle_of_a_job(clustered: Bench, many: str, cluster, tmp_path, monkeypatch) -> None:
    release = shoal.anonymize(clustered.con.table(many), ASKED)
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


# One that is killed late, as by a machine that stalls, has not published either.
DRIVER = """
import time
import shoal
from shoal.cli import main
shoal.Release._verify = lambda *_: time.sleep(3600)
main()
"""


def test_folders_of_a_cluster_are_whole_or_not_there(cluster, clustered: Bench, tmp_path: Path) -> None:
    source, target = tmp_path / "people", tmp_path / "out" / "release"
    for folder in (source, target.parent):
        folder.mkdir()
    pq.write_table(people(FEWER), source / "people.parquet")
    ASKED.save(tmp_path / "policy.toml")
    cluster.spare()
    arguments = [cluster.url, "--parquet", source, "-p", tmp_path / "policy.toml", "-o", target]
    with (tmp_path / "log").open("wb") as log:
        victim = subprocess.Popen(
            [sys.executable, "-c", DRIVER, "anonymize", *map(str, arguments)],
            env=cluster.env,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + PATIENCE
        while not list(target.parent.iterdir()):  # nothing is written yet
            assert victim.poll() is None, (tmp_path / "log").read_text()
            assert time.monotonic() < until, "the driver does not write"
            time.sleep(0.01)
        victim.kill()
        assert victim.wait() == -signal.SIGKILL
        assert all(entry.name.startswith(".shoal-") for entry in target.parent.iterdir())
        release = shoal.anonymize(clustered.con.read_parquet(str(source)), ASKED)
        release.save(target)
        assert pq.read_table(target).num_rows == release.rows.n_records
        assert pq.read_table(source).num_rows == FEWER
        assert [entry for entry in target.parent.iterdir() if not entry.name.startswith(".")] == [target]
    finally:
        with contextlib.suppress(ProcessLookupError):  # its virtual machine, if that has not noticed yet
            os.killpg(victim.pid, signal.SIGKILL)
