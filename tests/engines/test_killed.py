"""Killed at any moment: never a partial release, never a lost input, and the next run works."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from benches import Bench
from shoal.engines import connect

# A parent that has imported everything forks the runs, so that they are killed at work and not while importing: the
# first when it has written all and published nothing, the others at random moments.
VICTIMS = """
import os, random, signal, sys, time
import shoal, shoal.pipeline
from shoal.engines import connect
source, policy, target, n, longest = sys.argv[1:6]
asked = shoal.Policy.load(policy)
draw = random.Random(5)
killed = 0
reached, reach = os.pipe()

def linger(*_):
    os.write(reach, b".")
    while True:
        time.sleep(60)

for i in range(int(n)):
    child = os.fork()
    if not child:
        if i == 0:
            shoal.Release._verify = linger
        data = connect.connected(*source.split("|")[:1], table=source.split("|")[1]) if "|" in source else (
            connect.from_files(__import__("pathlib").Path(source)))
        shoal.anonymize(data, asked).save(target, force=True)
        os._exit(0)
    os.read(reached, 1) if i == 0 else time.sleep(draw.uniform(0.05, float(longest)))
    os.kill(child, signal.SIGKILL)
    killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    print("kill", flush=True)
print(killed)
"""

N = 20_000
PATIENCE = 600  # seconds: longer than any machine takes


def people() -> pa.Table:
    draw = np.random.default_rng(3)
    return pa.table(
        {
            "age": draw.integers(18, 90, N).astype(str),
            "zip": draw.integers(100, 999, N).astype(str),
            "s": np.array(["flu", "cold", "gout"])[draw.integers(0, 3, N)],
        }
    )


ASKED = shoal.Policy.of(
    {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "s": {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"max_suppression": 0.02},
    }
)


def victims(folder: Path, source: object, target: object, n: int) -> int:
    ASKED.save(folder / "policy.toml")
    command = [sys.executable, "-c", VICTIMS, str(source), str(folder / "policy.toml"), str(target), str(n), "0.6"]
    env = os.environ | {"TMPDIR": str(folder)}  # where a killed run leaves its folder to spill in
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return int(done.stdout.split()[-1])


@pytest.mark.long
def test_files_are_whole_or_not_there(tmp_path: Path) -> None:
    source, target, folder = tmp_path / "people.parquet", tmp_path / "release.parquet", tmp_path / "release"
    pq.write_table(people(), source)
    before = source.read_bytes()
    complete = tmp_path / "complete.parquet"
    shoal.anonymize(source, ASKED).save(complete)
    assert victims(tmp_path, source, target, 5) > 0
    assert not target.exists() or target.read_bytes() == complete.read_bytes()
    assert victims(tmp_path, source, folder, 3) > 0
    assert not folder.exists() or pq.read_table(folder).equals(pq.read_table(complete))
    assert source.read_bytes() == before
    shoal.anonymize(connect.from_files(source), ASKED).save(target, force=True)
    assert target.read_bytes() == complete.read_bytes()
    # What a killed run leaves is hidden, and says by its name that it is nobody's release.
    assert all(entry.name.startswith(".shoal-") for entry in tmp_path.iterdir() if entry.name.startswith("."))


@pytest.mark.long
def test_tables_are_whole_or_not_there(server: str, postgres: Bench, tmp_path: Path) -> None:
    source = postgres.load(people()).get_name()
    n_before = postgres.con.table(source).count().to_pyarrow().as_py()
    assert victims(tmp_path, f"{server}|{source}", "table:killed", 5) > 0
    whole = len(shoal.anonymize(people(), ASKED).rows.table)
    if "killed" in postgres.tables():
        assert len(postgres.read("killed")) == whole
    assert postgres.con.table(source).count().to_pyarrow().as_py() == n_before
    shoal.anonymize(postgres.con.table(source), ASKED).save("table:killed", force=True)
    assert len(postgres.read("killed")) == whole
    left = postgres.con.con.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    assert not [name for (name,) in left if name.startswith("shoal_")]
