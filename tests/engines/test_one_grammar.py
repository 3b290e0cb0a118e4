"""The reader in memory and the one out of core take a file alike: the same rows, or the same words."""

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.engines import connect, scratch
from shoal.engines.formats import sql_files, table_files
from shoal.engines.local import LocalEngine
from shoal.engines.opening import opened
from shoal.errors import DataError

SECRET = "Wilhelmina"

POLICY = """
[columns]
zip = { role = "quasi" }
disease = { role = "sensitive" }
[[require]]
model = "k-anonymity"
k = 2
"""


def reading(path: Path, engine: str, header: bool | None = None) -> tuple[list[dict[str, Any]], tuple[str, ...]]:
    """The rows of a file in an order of their own, and what is noted."""
    rows = opened(str(path), engine=engine, header=header)
    table = rows.table if isinstance(rows, LocalEngine) else rows.backend.fetch(rows.expression)
    return sorted(table.to_pylist(), key=repr), rows.notes


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


READ = {
    "LF": b"zip,disease\n1,flu\n2,\n",
    "CRLF": b"zip,disease\r\n1,flu\r\n2,\r\n",
    "CR": b"zip,disease\r1,flu\r2,",
    "mixed": b"zip,disease\n1,flu\r\n2,cold\r3,\n",
    "CRLF with breaks in values": b'zip,disease\r\n1,"a\nb"\r\n2,"c\r\nd"\r\n',
    "blank lines": b"\r\n\nzip,disease\n\n1,flu\n\r\n2,\n\n",
    "one column": b"zip\n1\n\n\n2\n",
    "one column, CRLF": b'zip\r\n"\r\n"\r\n\r\n1\r\n',
    "byte order mark": b"\xef\xbb\xbfzip,disease\n1,flu\n",
    "trailing empty fields": b'zip,disease,n\n1,"",\n2,,\n3,"",""',
    "quoted before an empty end": b'zip,disease\n"1",',
    "quotes as letters": b'zip,disease\n5\'11",x"y"z\n',
    "blanks before a quote": b'zip,disease\n "1", "flu"\n',
    "break in a quoted name": b'zip,"dis\rease"\n1,"a\nb"\n',
    "index of pandas": b",zip\n0,1\n1,2\n",
    "UTF-16": "zip,disease\n1,grippé\n".encode("utf-16"),
    "Windows-1252": "zip,disease\n1,grippé €\n".encode("cp1252"),
    "Latin-1": "zip,disease\n1,grippé\n".encode("latin-1"),
}

REFUSED = {
    "open quote": (f'zip,disease\n1,flu\n2,"{SECRET}\n3,cold\n', "never closed in the record that starts in line 3"),
    "open quote in the header": (f'zip,"disease\n1,{SECRET}\n', "never closed in the record that starts in line 1"),
    "behind a closing quote": (f'zip,disease\n1,"flu"x\n2,{SECRET}\n3,"y"\n', "follows a closing quote in line 2"),
    "two stray quotes": (f'zip,disease\n1,"flu\n2,{SECRET}\n3,"cold\n', "follows a closing quote in line 4"),
    "too many fields": (f"zip,disease\n1,flu\n2,cold,{SECRET}\n", "first in line 3: 3 found, 2 expected"),
    "too few fields": (f"zip,disease\n1,flu\n{SECRET}\n", "first in line 3: 1 found, 2 expected"),
    "one empty field too many": (f"zip,disease\n1,flu,\n2,{SECRET},\n", "2 record(s)"),
    "NUL": (f"zip,disease\n1,flu\n2,\0{SECRET}\n", "NUL byte (first in line 3)"),
    "a name twice": (f"zip,zip\n1,{SECRET}\n", "more than once"),
    "names that differ in case": (f"zip,ZIP\n1,{SECRET}\n", "differ only in case"),
    "no name": (f"zip,,n\n1,{SECRET},2\n", "column 2 of 3 has no name"),
    "rows in a name": (f'zip,"disease\n1,{SECRET}\n2,x"\n3,y\n', "the name of column 2 of 2 spans 3 lines"),
    "many lines in a name": (f'"zip\n{SECRET}\n2\n3"\n4\n', "the name of column 1 of 1 spans 4 lines"),
    "no rows": ("zip,disease\n", "no rows"),
    "nothing": ("", "is empty"),
}


@pytest.mark.parametrize("content", READ.values(), ids=READ)
def test_both_read_the_same(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    assert reading(path, "local") == reading(path, "duckdb")
    packed = tmp_path / "people.csv.gz"
    packed.write_bytes(gzip.compress(content))
    assert reading(packed, "duckdb")[0] == reading(path, "local")[0]


@pytest.mark.parametrize(("content", "words"), REFUSED.values(), ids=REFUSED)
def test_both_refuse_with_the_same_words(tmp_path: Path, content: str, words: str) -> None:
    path, policy = tmp_path / "people.csv", tmp_path / "policy.toml"
    path.write_text(content, encoding="utf-8", newline="")
    policy.write_text(POLICY, encoding="utf-8")
    told = []
    for engine in ("local", "duckdb"):
        for command in (["check"], ["anonymize", "-o", tmp_path / "safe.csv"]):
            done = run(*command, path, "-p", policy, "--engine", engine)
            assert done.exit_code == 2, done.output
            assert words in done.output
            assert SECRET not in done.output
            told.append(done.output)
    assert len(set(told)) == 1
    assert not (tmp_path / "safe.csv").exists()


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_bytes_in_no_encoding_are_refused_with_their_line(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"zip,disease\n1,flu\n2,\x81" + SECRET.encode())
    with pytest.raises(DataError, match="neither UTF-8 nor Windows-1252: undecodable bytes in line 3"):
        opened(str(path), engine=engine)


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_nobody_hides_behind_an_open_quote(tmp_path: Path, engine: str) -> None:
    """Half of the table lies behind the quote, people who are unique among it: no verdict without them."""
    path, policy = tmp_path / "people.csv", tmp_path / "policy.toml"
    safe = "".join(f"{i % 5},flu\n" for i in range(500))
    path.write_text(f'zip,disease\n{safe}1,"\n' + "".join(f"u{i},{SECRET}\n" for i in range(499)))
    policy.write_text(POLICY)
    done = run("check", path, "-p", policy, "--engine", engine)
    assert done.exit_code == 2
    assert "never closed in the record that starts in line 502" in done.output
    assert SECRET not in done.output


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_encodings_and_the_index_are_told_in_the_release(tmp_path: Path, engine: str) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(",zip,disease\n0,1,é\n1,1,é\n2,1,x\n".encode("utf-16"))
    policy = shoal.Policy.parse(POLICY.replace("[columns]", '[columns]\n"Unnamed: 0" = { role = "identifier" }'))
    release = shoal.anonymize(opened(str(path), engine=engine), policy)
    assert any("was read as UTF-16" in finding.fact for finding in release.findings)
    assert any("'Unnamed: 0'" in finding.fact for finding in release.findings)
    release.save(tmp_path / "safe.csv")
    assert (tmp_path / "safe.csv").read_text(encoding="utf-16").splitlines()[0] == "zip,disease"


def test_a_copy_that_duckdb_reads_is_nobody_elses(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes("zip,disease\n1,é\n".encode("utf-16"))
    folder = Path(scratch.spilling()["temp_directory"])
    before = set(folder.glob("*.csv"))
    connect.from_files(path)
    (copy,) = set(folder.glob("*.csv")) - before
    assert copy.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_records_that_duckdb_loses_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "people.csv"
    path.write_text("zip,disease\n1,flu\n2,cold\n3,flu\n", encoding="utf-8")
    source = sql_files.sql_source
    monkeypatch.setattr(sql_files, "sql_source", lambda *given, **named: f"(FROM {source(*given, **named)} LIMIT 2)")
    with pytest.raises(DataError, match="3 records were counted but 2 were read"):
        connect.from_files(path)


def test_records_that_go_missing_later_are_found_out(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_text("zip,disease\n1,flu\n2,cold\n3,flu\n", encoding="utf-8")
    engine = connect.from_files(path)
    path.write_text("zip,disease\n1,flu\n2,cold\n", encoding="utf-8")
    with pytest.raises(DataError, match="3 records were counted but 2 were read"):
        engine.tally(["zip"])


# ── Parquet ─────────────────────────────────────────────────────────────────────────────────────────────────

COLUMNS = {
    "decimal256 of many digits": (pa.array([1, 2]).cast(pa.decimal256(50, 2)), "more than the 38 digits"),
    "decimal256 of few digits": (pa.array([1, 2]).cast(pa.decimal256(30, 2)), None),
    "decimal128": (pa.array([1, 2]).cast(pa.decimal128(38, 2)), None),
    "duration": (pa.array([1, 2], pa.duration("s")), "does not hold one plain value"),
    "duration in nanoseconds": (pa.array([1, 2], pa.duration("ns")), "does not hold one plain value"),
    "bytes that are text": (pa.array([b"a", b"b"]), None),
    "bytes of a fixed size": (pa.array([b"ab", b"cd"], pa.binary(2)), "does not hold one plain value"),
    "lists": (pa.array([[1], [2]]), "does not hold one plain value"),
    "instants in a zone": (pa.array([1, 10**15], pa.timestamp("us", "Europe/Berlin")), None),
    "instants in nanoseconds": (pa.array([1, 10**18 + 1], pa.timestamp("ns", "UTC")), None),
    "nanoseconds": (pa.array([1, 10**18 + 1], pa.timestamp("ns")), None),
    "nothing": (pa.nulls(2), None),
}


@pytest.mark.parametrize(("column", "words"), COLUMNS.values(), ids=COLUMNS)
def test_types_of_parquet(tmp_path: Path, column: pa.Array, words: str | None) -> None:
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"x": column, "y": ["p", "q"]}), path)
    if words is None:
        here, there = opened(str(path), engine="local"), opened(str(path), engine="duckdb").tally(["x", "y"])
        assert here.coded("x").texts == there.coded("x").texts
        assert opened(str(path), engine="local").notes == opened(str(path), engine="duckdb").notes
        return
    told = set()
    for engine in ("local", "duckdb"):
        with pytest.raises(DataError, match=words) as caught:
            opened(str(path), engine=engine)
        told.add(str(caught.value))
    assert len(told) == 1


def test_the_second_count_reads_the_same_records(tmp_path: Path) -> None:
    """What ``write`` makes is counted by DuckDB as it is read by Arrow."""
    table = pa.table({"zip": ["1", None, "", ' "x"', "a\r\nb"], "disease": ["", None, "x", '"', "y"]})
    for rows in (table, table.select(["zip"])):
        path = tmp_path / f"{rows.num_columns}.csv"
        table_files.write_table_file(rows, path, verify=lambda _: None)
        found = duckdb.sql(f"FROM {sql_files.sql_source(path, None, rows.column_names)}").to_arrow_table()
        assert table_files.read_table_file(path, separator=",", header=True).table.to_pylist() == rows.to_pylist()
        assert reading(path, "duckdb", header=True)[0] == sorted(rows.to_pylist(), key=repr)
        assert len(found) == len(rows)
