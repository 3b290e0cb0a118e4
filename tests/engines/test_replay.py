"""A recoding replayed on new rows where they are: the same release and the same counts as in memory."""

import json
import secrets

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from benches import Bench
from shoal.cli.commands import app
from shoal.engines import connect
from shoal.errors import InfeasibleError, OutputError, VerificationError
from shoal.release.replay import Replay, described, replay


def people(n: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)
    zips = [None, "", "100", "101", "110", "111"]
    return pa.table(
        {
            "name": [f"person {i // 2}" for i in range(n)],
            "age": draw.integers(20, 30, n),
            "zip": pa.array([zips[i] for i in draw.integers(0, len(zips), n)]),
            "weight": pa.array(np.array([0.0, -0.0, 70.5, np.nan])[draw.integers(0, 4, n)], pa.float64()),
            "disease": pa.array([("flu", None, "gout", "é")[i] for i in draw.integers(0, 4, n)]),
            "note": [f"note {i}" for i in range(n)],
        }
    )


OLD, NEW = people(600, 1), people(200, 2)
STRANGE = NEW.set_column(2, "zip", pa.array(["x9"] * len(NEW)))


def policy(algorithm: str = "optimal", **release) -> shoal.Policy:
    return shoal.Policy.of(
        {
            "columns": {
                "name": {"role": "identifier"},
                "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
                "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
                "weight": {"role": "quasi"},
                "disease": {"role": "sensitive"},
                "note": {"role": "plain"},
            },
            "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
            "release": {"algorithm": algorithm, "max_suppression": 0.1, **release},
        }
    )


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def compare(bench: Bench, asked: shoal.Policy, new: pa.Table) -> Replay:
    kept = described(shoal.anonymize(OLD, asked))
    local, there = replay(kept, new), replay(kept, bench.load(new))
    there.save("table:replayed", force=True)
    written = bench.read("replayed")
    assert written.column_names == local.rows.table.column_names
    assert rows_of(written) == rows_of(local.rows.table)
    assert there.verdicts.same(local.verdicts)
    told, expected = there.as_dict(), local.as_dict()
    assert {**told, "verdicts": None} == {**expected, "verdicts": None}
    assert there.held_back + there.rows.n_records == len(new)
    return there


@pytest.mark.parametrize("algorithm", ["optimal", "top_down", "mondrian_relaxed", "suppress_cells"])
def test_new_rows_become_what_they_become_in_memory(database: Bench, algorithm: str) -> None:
    done = compare(database, policy(algorithm), NEW)
    assert done.failing + done.unknown > 0


def test_on_a_cluster(spark: Bench) -> None:
    compare(spark, policy("mondrian_relaxed"), NEW)


def test_persons_are_counted_not_records(database: Bench) -> None:
    one = pa.array(["one" if age < 25 else f"person {i}" for i, age in enumerate(NEW["age"].to_pylist())])
    new = NEW.set_column(0, "name", one)
    assert compare(database, policy(entity="name"), new).failing > compare(database, policy(), new).failing


def test_values_that_are_not_known_are_held_back(database: Bench) -> None:
    kept = described(shoal.anonymize(OLD, policy("mondrian")))
    with pytest.raises(InfeasibleError, match="all 200 records are held back: 200"):
        replay(kept, database.load(STRANGE))
    both = pa.concat_tables([NEW, STRANGE])
    assert compare(database, policy("mondrian"), both).unknown >= len(NEW)


def test_an_engine_keeps_the_recoding_that_memory_keeps(database: Bench) -> None:
    for algorithm in ("optimal", "mondrian"):
        here, there = (described(shoal.anonymize(data, policy(algorithm))) for data in (OLD, database.load(OLD)))
        assert here == there


def test_a_file_is_the_same_to_the_byte(tmp_path) -> None:
    kept = described(shoal.anonymize(OLD, policy()))
    pq.write_table(NEW, tmp_path / "new.parquet")
    replay(kept, tmp_path / "new.parquet").save(tmp_path / "here.parquet")
    there = replay(kept, connect.from_files(tmp_path / "new.parquet", memory="200MB"))
    there.save(tmp_path / "there.parquet")
    assert pq.read_table(tmp_path / "there.parquet")["weight"].type == pa.float64()  # nothing was done to it
    assert (tmp_path / "there.parquet").read_bytes() == (tmp_path / "here.parquet").read_bytes()
    with pytest.raises(OutputError, match="the input itself"):
        there.save(tmp_path / "new.parquet", force=True)
    with pytest.raises(OutputError, match="saved to a file"):
        replay(kept, NEW).save("table:replayed")


def test_rows_that_change_meanwhile_are_not_released(database: Bench) -> None:
    table = database.load(NEW)
    done = replay(described(shoal.anonymize(OLD, policy())), table)
    database.con.con.execute(f"INSERT INTO {table.get_name()} SELECT * FROM {table.get_name()}")
    with pytest.raises(VerificationError, match="nothing was released"):
        done.save("table:changed")
    assert "changed" not in database.tables()


def test_the_command_line(server: str, postgres: Bench, tmp_path) -> None:
    def run(*arguments: object):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    pq.write_table(OLD, tmp_path / "old.parquet")
    pq.write_table(NEW, tmp_path / "new.parquet")
    policy().save(tmp_path / "policy.toml")
    kept, target = tmp_path / "recoding.json", f"r_{secrets.token_hex(4)}"
    first = [tmp_path / "old.parquet", "--engine", "duckdb", "-p", tmp_path / "policy.toml", "--recoding", kept, "-q"]
    assert run("anonymize", *first, "-o", tmp_path / "old-safe.parquet").exit_code == 0
    done = run("apply", kept, tmp_path / "new.parquet", "--memory", "300MB", "-o", tmp_path / "new-safe.parquet")
    assert done.exit_code == 0, done.output
    assert "records held back" in done.stdout
    told = run("apply", kept, server, "--table", postgres.load(NEW).get_name(), "-o", f"table:{target}", "--json")
    assert told.exit_code == 0, told.output
    assert json.loads(told.stdout)["records"] == pq.read_table(tmp_path / "new-safe.parquet").num_rows
    assert rows_of(postgres.read(target)) == rows_of(pq.read_table(tmp_path / "new-safe.parquet"))
    again = run("apply", kept, tmp_path / "new.parquet", "--engine", "duckdb", "-o", tmp_path / "new-safe.parquet")
    assert again.exit_code == 2
    assert "already exists and was not overwritten" in again.stderr


def test_releases_are_laid_side_by_side_in_an_engine(database: Bench, tmp_path) -> None:
    asked, other = policy(), policy("mondrian")
    for name, of in (("first", asked), ("second", other)):
        shoal.anonymize(OLD, of).save(tmp_path / f"{name}.parquet")
    first, second = (pq.read_table(tmp_path / f"{name}.parquet") for name in ("first", "second"))
    here = shoal.check(first, asked, original=OLD, previous=[second])
    assert not here.holds
    assert shoal.check(first, asked, original=OLD).holds
    there = shoal.check(database.load(first), asked, original=database.load(OLD), previous=[database.load(second)])
    assert there.same(here)
