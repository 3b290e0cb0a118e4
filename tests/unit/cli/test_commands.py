"""If these fail, a command has another exit code, writes something else, or writes where it must not."""

from __future__ import annotations

import csv
import datetime as dt
import errno
import hashlib
import io
import itertools
import json
import os
import pty
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import processes
import shoal
from demonstrations import Demonstration
from people import HEADER, POLICY, SECRET, Place
from shoal.cli.commands import app
from shoal.cli.options import Printing
from shoal.compiled import jit
from shoal.demo.hospital import hospital
from shoal.engines.formats import table_files
from shoal.engines.formats.table_files import read_table_file

MAIN = [sys.executable, "-c", "from shoal.cli.commands import main; main()"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def failure(arguments: list[str], code: int = 2) -> str:
    """The one message of a command that must fail; it holds neither a traceback nor a value."""
    result = run(*arguments)
    assert result.exit_code == code, result.output
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stderr
    kind, _, message = result.stderr.partition(": ")
    assert kind.endswith("Error")
    assert len([line for line in result.stderr.splitlines() if "Error: " in line]) == 1
    return message


def strict_json(text: str) -> Any:
    """JSON as every reader takes it: no Infinity, no NaN."""
    return json.loads(text, parse_constant=pytest.fail)


# ── help and usage ──────────────────────────────────────────────────────────────────────────────────────────


def test_help() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ("demo", "inspect", "anonymize", "check"):
        assert command in result.stdout
        assert run(command, "--help").exit_code == 0
    assert "Usage" in run().output


@pytest.mark.parametrize(
    "arguments",
    [
        ["frobnicate"],
        ["anonymize"],
        ["anonymize", "people.csv"],
        ["anonymize", "people.csv", "-o", "x.csv"],
        ["check", "people.csv"],
        ["check", "people.csv", "-p"],
        ["inspect"],
        ["demo", "a", "b"],
        ["check", "people.csv", "-p", "policy.toml", "--frobnicate"],
    ],
    ids=" ".join,
)
def test_usage_errors_end_with_2(arguments: list[str]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Error" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import shoal",
        "import shoal.cli.commands",
        "import sys; sys.argv[1:] = ['--help']; from shoal.cli.commands import main; main()",
    ],
)
def test_help_loads_nothing_heavy(code: str) -> None:
    heavy = ("numpy", "pyarrow", "duckdb", "numba", "pandas", "polars", "pydantic", "narwhals", "rich.console")
    tell = f"import atexit, sys; atexit.register(lambda: print([m for m in {heavy} if m in sys.modules]))\n"
    done = subprocess.run([sys.executable, "-c", tell + code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


# ── anonymize ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_release_is_written_and_shown(place: Place) -> None:
    result = run(*place.anonymize())
    assert result.exit_code == 0
    assert result.stderr == ""
    for word in ("2-anonymity", "holds", "Written and verified"):
        assert word in result.stdout
    assert place.names() == sorted([*place.inputs, "release.csv"])
    with place.output.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["age", "zip", "disease", "note"]
    assert Counter((row["age"], row["zip"]) for row in rows) == {("20-29", "02138"): 2, ("30-39", "02139"): 2}


def test_json_is_the_certificate(place: Place) -> None:
    certificate = place.folder / "certificate.json"
    result = run(*place.anonymize("--json", "--certificate", certificate))
    assert result.exit_code == 0
    shown = strict_json(result.stdout)
    assert shown == strict_json(certificate.read_text(encoding="utf-8"))
    assert shown["output"]["sha256"] == hashlib.sha256(place.output.read_bytes()).hexdigest()
    assert hashlib.sha256(place.data.read_bytes()).hexdigest() not in result.stdout
    assert shown["measured"]["delta"] == "inf"  # some disease is absent from some class
    assert shown["measured"]["k"] == 2


def test_quiet_is_silent(place: Place) -> None:
    result = run(*place.anonymize("-q"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    assert place.output.exists()
    result = run(*place.anonymize("-q", "--json", "--force"))
    assert strict_json(result.stdout)["output"]["records"] == 4
    result = run(*place.check(place.output, "-q"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")
    result = run(*place.check(place.data, "-q"))
    assert (result.exit_code, result.stdout, result.stderr) == (1, "", "")
    result = run("inspect", str(place.output), "-q", "-o", str(place.folder / "proposed.toml"))
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_quiet_does_not_silence_errors(place: Place) -> None:
    place.policy.write_text(POLICY.replace("k = 2", "k = 5"), encoding="utf-8")
    assert "5-anonymity" in failure(place.anonymize("-q"), 1)


def test_a_parquet_table_and_a_parquet_release(place: Place) -> None:
    place.data = place.folder / "people.parquet"
    table = read_table_file(place.folder / "people.csv").table.set_column(
        1, "age", pa.array([21, 24, 38, 33], pa.int8())
    )
    pq.write_table(table, place.data)
    place.output = place.folder / "release.parquet"
    assert run(*place.anonymize("-q")).exit_code == 0
    released = pq.read_table(place.output)
    assert released.column_names == ["age", "zip", "disease", "note"]
    assert run(*place.check(place.output, "-q")).exit_code == 0


def test_separator_and_encoding(place: Place) -> None:
    text = place.data.read_text(encoding="utf-8").replace("x", "ж").replace(",", "|")
    place.data.write_bytes(text.encode("cp1251"))
    assert run(*place.anonymize("-q", "--encoding", "cp1251", "--separator", "|")).exit_code == 0
    assert "ж" in place.output.read_text(encoding="cp1251")  # as the file that it was made from
    assert "encoding" in failure(place.anonymize("--encoding", "klingon", "--force"))
    assert "separator" in failure(place.anonymize("--separator", "||", "--force"))


def test_the_same_run_gives_the_same_bytes(place: Place) -> None:
    receipt = place.folder / "receipt.json"
    assert run(*place.anonymize("--receipt", receipt)).exit_code == 0
    runs = []
    for seed in ("0", "1"):  # of Python's hashes, not of the policy
        environment = {**os.environ, "PYTHONHASHSEED": seed, "SOURCE_DATE_EPOCH": "0"}
        command = [*MAIN, *place.anonymize("--json", "--force", "--receipt-key", receipt)]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        runs.append((done.stdout, place.output.read_bytes()))
    assert runs[0] == runs[1]


def test_what_cannot_be_kept_ends_with_1_and_writes_nothing(place: Place) -> None:
    place.policy.write_text(POLICY.replace("k = 2", "k = 5"), encoding="utf-8")
    certificate = place.folder / "certificate.json"
    message = failure(place.anonymize("--certificate", certificate), 1)
    assert "5-anonymity" in message
    assert "4 of 4 records" in message
    assert "Hint: " in message
    assert place.names() == place.inputs


def test_a_release_that_does_not_count_ends_with_1_and_is_not_there(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = table_files._write_csv
    monkeypatch.setattr(table_files, "_write_csv", lambda tables, *rest: write((t.slice(1) for t in tables), *rest))
    assert "does not hold" in failure(place.anonymize(), 1)
    assert place.names() == place.inputs


# ── nothing is overwritten ──────────────────────────────────────────────────────────────────────────────────


def test_an_existing_output_is_kept_unless_forced(place: Place) -> None:
    place.output.write_text("mine", encoding="utf-8")
    assert "exists" in failure(place.anonymize())
    assert place.output.read_text(encoding="utf-8") == "mine"
    assert run(*place.anonymize("--force", "-q")).exit_code == 0
    assert place.output.read_text(encoding="utf-8").startswith("age,zip")


@pytest.mark.parametrize(
    ("one", "other"), list(itertools.combinations(["-o", "--certificate", "--report", "--recoding"], 2))
)
def test_a_file_has_one_use_even_if_forced(place: Place, one: str, other: str) -> None:
    # A recoding lists values of the data: in the place of the release it would be published.
    same = place.output if one == "-o" else place.folder / "same.json"
    flags = [other, same] if one == "-o" else [one, same, other, place.folder / "." / "same.json"]
    message = failure(place.anonymize("--force", *flags))
    assert f"{same.name} is given for both " in message
    assert place.names() == place.inputs


def test_an_existing_certificate_is_kept_unless_forced(place: Place) -> None:
    certificate = place.folder / "certificate.json"
    certificate.write_text("mine", encoding="utf-8")
    assert "exists" in failure(place.anonymize("--certificate", certificate))
    assert certificate.read_text(encoding="utf-8") == "mine"
    assert not place.output.exists()
    assert run(*place.anonymize("--force", "-q", "--certificate", certificate)).exit_code == 0
    assert strict_json(certificate.read_text(encoding="utf-8"))["schema"]


def test_what_is_read_is_never_overwritten(place: Place) -> None:
    tree = place.folder / "zip.csv"
    tree.write_text("02138;0213*\n02139;0213*\n", encoding="utf-8")
    place.policy.write_text(POLICY.replace('{ mask = "right" }', '"zip.csv"'), encoding="utf-8")
    link = place.folder / "link.csv"
    link.symlink_to(place.data)
    before = {path: path.read_bytes() for path in (place.data, place.policy, tree)}
    for target in (place.data, tree, link, place.folder / "." / "people.csv"):
        place.output = target
        assert "is the input itself" in failure(place.anonymize("--force"))
    place.output = place.policy
    assert "is the input itself" in failure(place.anonymize("--force"))
    place.output = place.folder / "release.csv"
    for target in (*before, link):
        assert "is the input itself" in failure(place.anonymize("--force", "--certificate", target))
    assert "two different files" in failure(
        place.anonymize("--force", "--certificate", place.folder / "." / "release.csv")
    )
    assert "is the input itself" in failure(["inspect", str(place.data), "-o", str(place.data), "--force"])
    assert not place.output.exists()
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.parametrize(
    ("name", "words"),
    [("release.ods", "extension"), ("none/release.csv", "does not exist"), (".", "extension"), ("d.csv", "directory")],
)
def test_targets_that_are_refused_before_the_work(place: Place, name: str, words: str) -> None:
    (place.folder / "d.csv").mkdir()
    place.output = place.folder / name
    place.data.unlink()  # it is not even looked at
    assert words in failure(place.anonymize("--force"))


def test_a_full_disk_leaves_no_half_of_a_policy(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("shoal.engines.formats.table_files.os.fsync", full)
    target = place.folder / "proposed.toml"
    assert "No space left on device" in failure(["inspect", str(place.data), "-o", str(target)])
    assert "No space left on device" in failure(place.anonymize())
    assert place.names() == place.inputs


def test_certificates_that_are_refused_before_the_work(place: Place) -> None:
    place.data.unlink()
    assert "folder does not exist" in failure(place.anonymize("--certificate", place.folder / "none" / "c.json"))
    assert "is a directory" in failure(place.anonymize("--force", "--certificate", place.folder))


# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_tells_by_its_exit_code(place: Place) -> None:
    raw = run(*place.check(place.data))
    assert raw.exit_code == 1
    assert "FAILS" in raw.stdout
    assert "identifier name not removed FAILS" in " ".join(raw.stdout.split())
    assert raw.stderr == ""
    assert SECRET not in raw.stdout
    run(*place.anonymize("-q"))
    released = run(*place.check(place.output))
    assert released.exit_code == 0
    assert "The policy holds: 4 records in 2 classes." in released.stdout


def test_check_says_what_a_promise_rests_on(tmp_path: Path) -> None:
    columns = 'columns.a = { role = "quasi" }\ncolumns.b = { role = "plain" }\n'
    asked = 'require = [{ model = "k-anonymity", k = 2 }]\nrelease.nulls = "wildcard"\n'
    (tmp_path / "policy.toml").write_text(columns + asked)
    (tmp_path / "t.csv").write_text("a,b\nx,1\n,2\n,3\n")
    done = CliRunner().invoke(app, ["check", str(tmp_path / "t.csv"), "-p", str(tmp_path / "policy.toml")])
    assert done.exit_code == 0
    assert "Decide first: 2-anonymity holds for 1 of 3 records only because" in " ".join(done.output.split())


def test_check_as_json(place: Place) -> None:
    result = run(*place.check(place.data, "--json"))
    assert result.exit_code == 1
    shown = strict_json(result.stdout)
    assert shown["holds"] is False
    assert shown["identifiers"] == ["name"]
    assert [(v["asked"], v["worst"], v["classes"], v["records"]) for v in shown["verdicts"]] == [
        ("2-anonymity", 1.0, 4, 4),
        ("distinct 2-diversity", 1.0, 4, 4),
    ]
    infinite = POLICY.replace('model = "distinct-l-diversity"\n', 'model = "recursive-l-diversity"\nc = 3\n')
    place.policy.write_text(infinite, encoding="utf-8")
    assert strict_json(run(*place.check(place.data, "--json")).stdout)["verdicts"][1]["worst"] == "inf"


def test_check_against_an_original(place: Place) -> None:
    place.policy.write_text(
        POLICY.replace('model = "distinct-l-diversity"\nl = 2', 'model = "t-closeness"\nt = 0.3'), encoding="utf-8"
    )
    part = place.folder / "part.csv"
    part.write_text("age,zip,disease\n21,02138,flu\n21,02138,hiv\n", encoding="utf-8")
    assert run(*place.check(part, "-q")).exit_code == 0
    # In the original flu is 1/2 and hiv 1/4: ½ (0 + 1/4 + 1/4) away.
    assert run(*place.check(part, "-q", "--original", place.data)).exit_code == 0
    place.policy.write_text(place.policy.read_text(encoding="utf-8").replace("0.3", "0.2"), encoding="utf-8")
    assert run(*place.check(part, "-q", "--original", place.data)).exit_code == 1
    assert "does not exist" in failure(place.check(part, "--original", place.folder / "none.csv"))


# ── bad inputs ──────────────────────────────────────────────────────────────────────────────────────────────

ROW = f"{SECRET},21,02138,{SECRET},{SECRET}\n"
BAD_TABLES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "empty"),
    "blank": (b" \n\n", "empty"),
    "header only": (HEADER.encode(), "no rows"),
    "a name twice": (f"name,age,zip,disease,age\n{ROW}".encode(), "(columns 2, 5)"),
    "a name without letters": (f"name,age,zip,disease,\n{ROW}".encode(), "column 5 of 5 has no name"),
    "names that differ in case": (f"name,age,zip,disease,AGE\n{ROW}".encode(), "differ only in case"),
    "a ragged line": (f"{HEADER}{ROW}{SECRET},21\n{ROW}".encode(), "line 3"),
    "a NUL byte": (f"{HEADER}{ROW}{SECRET}\0,21,02138,flu,x\n".encode(), "NUL byte"),
    "an open quote": (f'{HEADER}{ROW}"{SECRET},21,02138,flu,x\n'.encode(), "quote is never closed"),
    "UTF-16 without its mark": ((HEADER + ROW).encode("utf-16-le"), "NUL byte"),
    "neither UTF-8 nor Windows-1252": (f"{HEADER}{ROW}".encode() + b"\x81\xff,1,2,3,4\n", "neither UTF-8"),
}


@pytest.mark.parametrize("what", BAD_TABLES)
def test_bad_tables(place: Place, what: str) -> None:
    content, words = BAD_TABLES[what]
    place.data.write_bytes(content)
    proposed = place.folder / "proposed.toml"
    for arguments in (
        place.anonymize(),
        place.anonymize("--json"),
        place.check(place.data),
        ["inspect", str(place.data), "-o", str(proposed)],
    ):
        assert words in failure(arguments)
    assert place.names() == place.inputs


def test_tables_that_are_not_there(place: Place) -> None:
    place.data.unlink()
    for arguments in (place.anonymize(), place.check(place.data), ["inspect", str(place.data)]):
        assert "does not exist" in failure(arguments)
    place.output.write_text("mine", encoding="utf-8")
    assert "does not exist" in failure(place.anonymize("--force"))
    place.data.mkdir()
    for arguments in (place.anonymize("--force"), place.check(place.data), ["inspect", str(place.data)]):
        assert "is a directory" in failure(arguments)
    assert place.output.read_text(encoding="utf-8") == "mine"


def test_a_broken_parquet_file(place: Place) -> None:
    place.data = place.folder / "people.parquet"
    place.data.write_bytes(b"PAR1" + SECRET.encode() + b"PAR1")
    for arguments in (place.anonymize(), place.check(place.data), ["inspect", str(place.data)]):
        assert "not a complete Parquet file" in failure(arguments)


TREE = 'zip     = { role = "quasi", hierarchy = "zip.csv" }'
MASK = 'zip     = { role = "quasi", hierarchy = { mask = "right" } }'
WITH_TREE = POLICY.replace(MASK, TREE)
WITH_DISTANCE = POLICY.replace('"distinct-l-diversity"\nl = 2', '"t-closeness"\nt = 1\ndistance = "numeric"')
BAD_FITS: dict[str, tuple[str, str, str]] = {  # the policy, the hierarchy file, what is said
    "a column without a role": (POLICY.replace('note    = { role = "plain" }\n', ""), "", "'note' of the table is not"),
    "a value without a place": (WITH_TREE, f"02138;*\n{SECRET};*\n", "1 of 2 distinct values are missing from"),
    "C1": (WITH_TREE, f"02138;{SECRET};*\n02138;a;*\n02139;a;*\n", "C1"),
    "C2": (WITH_TREE, f"02138;{SECRET}\n02139;*\n", "C2"),
    "rows of other lengths": (WITH_TREE, f"02138;{SECRET};*\n02139;*\n", "line 2 has 2 fields"),
    "texts for numbers": (
        POLICY.replace('"plain"', '"quasi", hierarchy = { intervals = [5] }'),
        "",
        "column 'note': 3 of 3 distinct values are missing from",
    ),
    "a distance that needs numbers": (WITH_DISTANCE, "", "column 'disease': distance 'numeric' needs numbers"),
    "a distance that needs a tree": (
        WITH_DISTANCE.replace("numeric", "hierarchical"),
        "",
        "column 'disease': distance 'hierarchical' needs a hierarchy",
    ),
}


@pytest.mark.parametrize("what", BAD_FITS)
def test_policies_that_do_not_fit_the_table(place: Place, what: str) -> None:
    policy, tree, words = BAD_FITS[what]
    place.policy.write_text(policy, encoding="utf-8")
    (place.folder / "zip.csv").write_text(tree, encoding="utf-8")
    assert words in failure(place.anonymize())
    assert place.names() == sorted([*place.inputs, "zip.csv"])


def test_a_column_that_is_not_in_the_table(place: Place) -> None:
    lines = [line.rpartition(",")[0] for line in place.data.read_text(encoding="utf-8").splitlines()]
    place.data.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert "'note' of the policy is not in the table" in failure(place.anonymize())
    assert place.names() == place.inputs


def test_a_hierarchy_file_that_is_not_there(place: Place) -> None:
    place.policy.write_text(POLICY.replace(MASK, TREE), encoding="utf-8")
    assert "zip.csv" in failure(place.anonymize())


def test_nulls_that_are_forbidden(place: Place) -> None:
    place.policy.write_text(POLICY + '[release]\nnulls = "forbid"\n', encoding="utf-8")
    place.data.write_text(f"{HEADER}Ada,,02138,flu,x\n{SECRET},21,02138,{SECRET},x\n", encoding="utf-8")
    for arguments in (place.anonymize(), place.check(place.data)):
        assert "column 'age': 1 of 2 values are missing" in failure(arguments)


def test_errors_go_to_stderr_of_the_process_without_a_traceback(place: Place) -> None:
    place.data.write_text(f"{HEADER}{SECRET},21\n", encoding="utf-8")
    done = processes.run([*MAIN, *place.anonymize()], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("DataError: people.csv: 1 record(s)")
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stderr
    assert place.names() == place.inputs


def test_a_mistake_of_ours_is_not_taken_for_an_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("not an answer")

    monkeypatch.setattr("shoal.pipeline.anonymize", broken)
    result = run(*place.anonymize())
    assert result.exit_code == 70
    assert place.names() == place.inputs


# ── text stays text ─────────────────────────────────────────────────────────────────────────────────────────


def test_text_stays_text_from_file_to_file(place: Place) -> None:
    texts = [
        "02138",
        "NO",
        "1e5",
        " leading",
        "trailing ",
        "",
        None,
        "é漢😀",
        'say "hi"',
        "a;b",
        "two\nlines",
        "NA",
        "-0",
    ]
    table = pa.table({name: pa.array(texts * 2, pa.string()) for name in ("age", "zip", "disease", "note", "name")})
    place.data.unlink()
    table_files.write_table_file(table, place.data, verify=lambda _: None)
    place.policy.write_text(
        "[columns]\nname = { role = 'identifier' }\nage = { role = 'quasi' }\nzip = { role = 'quasi' }\n"
        "disease = { role = 'sensitive' }\nnote = { role = 'plain' }\n[[require]]\nmodel = 'k-anonymity'\nk = 2\n",
        encoding="utf-8",
    )
    for name in ("release.csv", "release.tsv", "release.parquet"):
        place.output = place.folder / name
        assert run(*place.anonymize("-q")).exit_code == 0
        released = read_table_file(place.output).table
        for column in ("age", "zip", "disease", "note"):
            assert Counter(released[column].to_pylist()) == Counter(table[column].to_pylist())
    lines = (place.folder / "release.csv").read_bytes().split(b"\n")
    assert b'"","","",""' in lines  # empty text
    assert b",,," in lines  # null


# ── inspect, then anonymize ─────────────────────────────────────────────────────────────────────────────────


def small_table(path: Path) -> None:
    """Numbers, dates, nulls, an e-mail column and a row number."""
    draw = random.Random(7)
    lines = ["row,email,age,born,zip,income,disease"]
    for i in range(60):
        born = dt.date(1950, 1, 1) + dt.timedelta(days=draw.randrange(20_000))
        age = "" if i % 15 == 0 else str(draw.randrange(18, 90))
        zip_code = draw.choice(["02138", "02139", "02141", "99501", ""])
        cells = (i + 1, f"user{i}@example.org", age, born, zip_code, draw.randrange(10, 99) * 1000)
        lines.append(",".join([*map(str, cells), draw.choice(["flu", "hiv", ""])]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("which", ["hospital", "small"])
def test_a_proposed_policy_runs_as_it_is(tmp_path: Path, which: str) -> None:
    data, policy, output = (tmp_path / name for name in ("data.csv", "policy.toml", "release.csv"))
    if which == "small":
        small_table(data)
    else:
        table_files.write_table_file(hospital(2000), data, verify=lambda _: None)
    result = run("inspect", str(data), "-o", str(policy))
    assert result.exit_code == 0
    assert str(policy) in result.stdout.replace("\n", "")
    assert run("anonymize", str(data), "-p", str(policy), "-o", str(output), "-q").exit_code == 0
    assert run("check", str(output), "-p", str(policy), "-q").exit_code == 0
    asked = shoal.Policy.load(policy)
    gone = {"small": {"row", "email"}, "hospital": {"name"}}[which]
    assert set(asked.identifiers) == gone
    released = read_table_file(output).table
    assert gone.isdisjoint(released.column_names)
    classes = Counter(zip(*(released[name].to_pylist() for name in asked.quasi), strict=True))
    assert min(classes.values()) >= 5


def test_inspect_shows_and_writes(place: Place) -> None:
    policy = place.folder / "proposed.toml"
    result = run("inspect", str(place.data), "--json")
    assert result.exit_code == 0
    assert [column["name"] for column in strict_json(result.stdout)["columns"]] == HEADER.strip().split(",")
    assert place.names() == place.inputs
    result = run("inspect", str(place.data))
    assert "-o policy.toml" in result.stdout
    assert SECRET not in result.stdout
    assert run("inspect", str(place.data), "-q", "-o", str(policy)).exit_code == 0
    written = policy.read_bytes()
    assert "already exists" in failure(["inspect", str(place.data), "-o", str(policy)])
    assert policy.read_bytes() == written
    assert run("inspect", str(place.data), "-q", "-o", str(policy), "--force").exit_code == 0
    assert "folder does not exist" in failure(["inspect", str(place.data), "-o", str(place.folder / "none" / "p.toml")])
    assert place.names() == sorted([*place.inputs, "proposed.toml"])


# ── demo ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_demo_from_the_command_line(tmp_path: Path, demonstration: Demonstration) -> None:
    folder = tmp_path / "made" / "for it"
    result = run("demo", str(folder), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    shown = strict_json(result.stdout)
    assert shown["before"]["named"] > 0
    assert shown["after"]["singled_out"] == 0
    assert shown["after"]["chance"] <= 1 / 5
    assert "Without their names, is the table safe?" in demonstration.printed
    assert demonstration.errors == ""
    assert (demonstration.folder / "release.csv").read_bytes() == (folder / "release.csv").read_bytes()
    assert run("check", str(folder / "release.csv"), "-p", str(folder / "policy.toml"), "-q").exit_code == 0


def test_the_demo_leaves_other_folders_alone(place: Place) -> None:
    assert "do not belong to the demo" in failure(["demo", str(place.folder)])
    assert place.names() == place.inputs


# ── progress ────────────────────────────────────────────────────────────────────────────────────────────────


def on_a_terminal(arguments: list[str]) -> tuple[int, str, str]:
    """Exit code, stdout and what a terminal as stderr got."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = processes.Forked([*MAIN, *arguments], stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    assert process.stdout is not None
    out = process.stdout.read().decode()
    process.stdout.close()
    os.close(ours)
    return process.wait(), out, seen.decode()


def test_progress_is_shown_on_stderr_only(place: Place) -> None:
    code, out, seen = on_a_terminal(place.anonymize("--json"))
    assert code == 0
    assert strict_json(out)["output"]["records"] == 4
    assert "reading" in seen or "counting" in seen or "writing" in seen
    code, out, seen = on_a_terminal(place.anonymize("--json", "--force", "-q"))
    assert (code, seen) == (0, "")
    assert strict_json(out)["output"]["records"] == 4


def test_progress_says_why_the_first_run_takes_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with Printing().progress() as progress:
        progress("searching", 0.5)
        assert jit._announce is not None
        jit._announce()
    assert "compiling, on the first run only" in terminal.getvalue()
    assert jit._announce is None


def test_a_terminal_of_few_letters_is_no_reason_to_fail(place: Place) -> None:
    place.policy.write_text(POLICY.replace("note ", '"nöté–漢" '), encoding="utf-8")
    place.data.write_text(place.data.read_text(encoding="utf-8").replace("note", "nöté–漢"), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    done = subprocess.run(
        [*MAIN, "inspect", str(place.data), "--json"], capture_output=True, env=environment, check=True
    )
    columns = strict_json(done.stdout.decode("latin-1"))["columns"]
    assert columns[-1]["name"] == "nöté–漢"
    done = subprocess.run([*MAIN, "inspect", str(place.data)], capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
