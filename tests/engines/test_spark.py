"""Spark: folders and the command line."""

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


def test_a_place_that_cannot_be_written(spark: Bench) -> None:
    release = shoal.anonymize(spark.load(PEOPLE), ASKED)
    with pytest.raises(OutputError, match="Spark could not write the release"):
        release.save("/proc/release")
