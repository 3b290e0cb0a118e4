"""What a certificate tells besides what its release does, and what the receipt keeps instead."""

import hashlib
import itertools
import json
import os
import stat
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.engines.connect import from_files
from shoal.errors import DataError, OutputError
from shoal.policy import Policy
from shoal.release.certificate import neutral, rounded
from shoal.release.receipt import key_of, keyed, new_key, read_receipt
from shoal.verify.certified import verify_certificate

DISEASES = ["flu", "hiv", "gout"]
SIX = [("31", "flu"), ("33", "hiv"), ("35", "flu"), ("41", "gout"), ("43", "flu"), ("45", "hiv")]
POLICY = """
columns.age     = { role = "quasi", hierarchy = { intervals = [10] } }
columns.job     = { role = "quasi", hierarchy = "jobs of clinic 7.csv" }
columns.disease = { role = "sensitive" }
require         = [{ model = "k-anonymity", k = 3 }]
"""


def table_of(diseases):
    lines = [f"{age},cook,{disease}\n" for (age, _), disease in zip(SIX, diseases, strict=True)]
    return "age,job,disease\n" + "".join(lines)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "jobs of clinic 7.csv").write_text("cook;trade;*\nclerk;office;*\n")
    (tmp_path / "patients of clinic 7.csv").write_text(table_of([disease for _, disease in SIX]))
    return tmp_path


def released(place, engine="local", *more):
    run = CliRunner().invoke(app, [
        "anonymize", str(place / "patients of clinic 7.csv"), "-p", str(place / "policy.toml"), "--engine", engine,
        "-o", str(place / "release.csv"), "--certificate", str(place / "certificate.json"),
        "--report", str(place / "report.html"), "--receipt", str(place / "receipt.json"), "--force", *map(str, more),
    ])  # fmt: skip
    assert run.exit_code == 0, run.output
    return run


def verified(place, *more):
    run = CliRunner().invoke(
        app, ["verify", str(place / "certificate.json"), str(place / "release.csv"), "--json", *map(str, more)]
    )
    told = {line["name"]: line for line in json.loads(run.stdout)["lines"]} if run.stdout else {}
    return run, told


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_guesses_are_not_confirmed(engine, place):
    released(place, engine)
    published = (place / "certificate.json").read_text() + (place / "report.html").read_text()
    key = key_of(read_receipt(place / "receipt.json"))
    right = 0
    for guess in itertools.product(DISEASES, repeat=6):
        sha256 = hashlib.sha256(table_of(guess).encode()).hexdigest()
        assert sha256 not in published
        # Nor is a digest without a key, or with a known one, that of any guess.
        assert keyed(b"\0" * 32, "input", sha256) not in published
        right += keyed(key, "input", sha256) in published
    assert right == 1  # for whoever has the receipt, and for nobody else


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_names_of_files_are_not_published(engine, place):
    run = released(place, engine)
    for name in ("certificate.json", "report.html"):
        assert "clinic" not in (place / name).read_text()
    assert "jobs of clinic 7.csv" in (place / "receipt.json").read_text()
    assert json.loads((place / "certificate.json").read_text())["policy"]["columns"]["job"]["hierarchy"] == "job.csv"
    assert "clinic" not in run.stderr


def test_a_note_about_the_file_does_not_name_it(tmp_path):
    path = tmp_path / "clinic 7.csv"
    path.write_bytes("age,city\n30,Zürich\n30,Zürich\n".encode("cp1252"))
    policy = Policy.of({"columns": {"age": {"role": "quasi"}, "city": {"role": "plain"}},
                        "require": [{"model": "k-anonymity", "k": 2}]})  # fmt: skip
    release = shoal.anonymize(path, policy)
    assert any("1252" in str(note) for note in release.findings)
    assert any("1252" in note["fact"] for note in release.certificate["findings"])
    assert "clinic" not in json.dumps(release.certificate)


@pytest.mark.parametrize("umask", [0o000, 0o022])
def test_a_receipt_is_private(umask, place):
    before = os.umask(umask)
    try:
        released(place)
        release = shoal.anonymize(place / "patients of clinic 7.csv", Policy.load(place / "policy.toml"))
        release.save(place / "other.csv", receipt=place / "other.json")
    finally:
        os.umask(before)
    for name in ("receipt.json", "other.json"):
        assert stat.S_IMODE((place / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((place / "certificate.json").stat().st_mode) == 0o666 & ~umask


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_the_receipt_shows_which_table_it_was(engine, place):
    released(place, engine)
    _, told = verified(place)
    assert told["input.hmac_sha256"]["holds"] is None
    assert told["input.hmac_sha256"]["why"] == "needs the receipt"
    original = place / "patients of clinic 7.csv"
    run, told = verified(place, "--receipt", place / "receipt.json", "--original", original, "--engine", engine)
    assert run.exit_code == 0
    assert [
        told[name]["holds"] for name in ("receipt", "input.hmac_sha256", "hierarchies", "original.hmac_sha256")
    ] == [True] * 4
    original.write_text(table_of(DISEASES * 2))
    run, told = verified(place, "--receipt", place / "receipt.json", "--original", original, "--engine", engine)
    assert run.exit_code == 1
    assert told["original.hmac_sha256"]["holds"] is False
    assert told["input.hmac_sha256"]["holds"] is True


def test_a_receipt_of_another_release_fails(place):
    released(place)
    other = json.loads((place / "receipt.json").read_text()) | {"key": new_key().hex()}
    (place / "other.json").write_text(json.dumps(other))
    run, told = verified(place, "--receipt", place / "other.json")
    assert run.exit_code == 1
    assert told["input.hmac_sha256"]["holds"] is False
    assert told["hierarchies"]["holds"] is False


def test_the_original_alone_does_not_tell_whether_it_is_the_table(place):
    released(place)
    run, told = verified(place, "--original", place / "patients of clinic 7.csv")
    assert run.exit_code == 0
    assert told["input.hmac_sha256"]["holds"] is None
    assert "original.hmac_sha256" not in told


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "shoal-receipt/1"}', '{"schema": "shoal-receipt/1", "key": "ab"}']
)
def test_what_is_no_receipt_is_refused(text, place):
    released(place)
    (place / "receipt.json").write_text(text)
    run, _ = verified(place, "--receipt", place / "receipt.json")
    assert run.exit_code == 2
    assert "Traceback" not in run.stderr


def test_a_receipt_that_lacks_a_part_is_refused(place):
    released(place)
    receipt = json.loads((place / "receipt.json").read_text())
    for part in ("input", "output", "hierarchies"):
        with pytest.raises(DataError, match="is incomplete"):
            read_receipt({name: value for name, value in receipt.items() if name != part})


def test_the_key_of_an_earlier_receipt_gives_the_same_certificate(place, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    released(place)
    first = (place / "certificate.json").read_bytes(), (place / "release.csv").read_bytes()
    (place / "receipt.json").rename(place / "first.json")
    released(place)
    other = (place / "certificate.json").read_bytes(), (place / "release.csv").read_bytes()
    assert other[0] != first[0]  # a key of its own
    assert other[1] == first[1]  # the release does not depend on it
    released(place, "local", "--receipt-key", place / "first.json")
    assert ((place / "certificate.json").read_bytes(), (place / "release.csv").read_bytes()) == first
    assert (place / "receipt.json").read_bytes() == (place / "first.json").read_bytes()


def test_a_key_has_256_bits():
    release = shoal.anonymize(pa.table({"age": ["30"] * 3}), k3())
    with pytest.raises(OutputError, match="a key must have 32 bytes, not 5"):
        release.with_key(b"short")
    assert release.with_key(bytes(32)).receipt["key"] == "00" * 32


def test_an_old_certificate_is_told_apart(place):
    released(place)
    certificate = json.loads((place / "certificate.json").read_text())
    certificate["schema"] = "shoal-certificate/1"
    (place / "certificate.json").write_text(json.dumps(certificate))
    run, _ = verified(place)
    assert run.exit_code == 2
    assert (
        "the format shoal-certificate/1 of an earlier version of shoal; this version reads shoal-certificate/3"
        in run.stderr
    )


def test_a_field_that_is_there_twice_is_refused(place):
    released(place)
    text = (place / "certificate.json").read_text()
    (place / "certificate.json").write_text(text.replace('"seed": 0,', '"seed": 1, "seed": 0,', 1))
    run, _ = verified(place)
    assert run.exit_code == 2
    assert "contains a field twice" in run.stderr


# ── figures ─────────────────────────────────────────────────────────────────────────────────────────────────


def k3(**release):
    return Policy.of({"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}},
                      "require": [{"model": "k-anonymity", "k": 3}], "release": release})  # fmt: skip


def test_losses_do_not_give_the_range_of_a_column_back():
    """With all digits, the loss of one column of intervals is its width by the range of the data."""
    for objective in ("loss", "entropy", "precision", "ambiguity"):
        told = {}
        for oldest in range(80, 100):
            ages = ["30", "32", "35", "51", "52", "58", "71", "75", str(oldest)]
            release = shoal.anonymize(pa.table({"age": ages}), k3(objective=objective))
            certificate = release.certificate
            assert set(certificate["loss"]) == {objective, "discernibility", "average-class"}
            told.setdefault(certificate["loss"][objective], []).append(oldest)
            assert release.receipt["loss"][objective] == release.loss[objective]
        assert all(len(could_be) > 1 for could_be in told.values())


def test_distances_from_the_original_are_rounded_only_where_records_were_dropped(tmp_path):
    rows = [{"age": age, "disease": d} for age, d in [("30", "flu"), ("30", "hiv"), ("30", "flu"),
            ("40", "flu"), ("40", "hiv"), ("40", "gout"), ("99", "gout")]]  # fmt: skip
    policy = Policy.of({"columns": {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
                        "require": [{"model": "k-anonymity", "k": 3}, {"model": "t-closeness", "t": 0.5}],
                        "release": {"max_suppression": 0.2}})  # fmt: skip
    dropped = shoal.anonymize(pa.Table.from_pylist(rows), policy)
    assert dropped.suppressed == 1
    worst = [line["worst"] for line in dropped.certificate["requirements"]]
    exact = [verdict.worst for verdict in dropped.verdicts.verdicts]
    assert worst[0] == exact[0] == 3
    assert worst[1] != exact[1]
    assert worst[1] == dropped.certificate["measured"]["t"] == float(f"{exact[1]:.2g}")
    assert dropped.receipt["requirements"][1]["worst"] == exact[1]
    certificate = dropped.save(tmp_path / "release.csv")
    original = pa.Table.from_pylist(rows)
    assert verify_certificate(certificate, tmp_path / "release.csv", original=original).holds
    certificate["requirements"][1]["worst"] -= 0.01
    assert verify_certificate(certificate, tmp_path / "release.csv", original=original).outcome == "fails"
    kept = shoal.anonymize(pa.Table.from_pylist(rows[:-1]), policy)
    assert kept.suppressed == 0
    assert kept.certificate["measured"] == kept.receipt["measured"]


def test_attacks_are_told_without_numbers_of_people():
    rows = [{"age": str(20 + i % 17), "disease": DISEASES[i * i % 3]} for i in range(101)]
    policy = Policy.of({"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
                                    "disease": {"role": "sensitive"}},
                        "require": [{"model": "k-anonymity", "k": 3}]})  # fmt: skip
    release = shoal.anonymize(pa.Table.from_pylist(rows), policy).attacked()
    told = json.dumps(release.certificate["attacks"])
    assert '"share"' in told
    assert not any(word in told for word in ('"attempts"', '"successes"', '"sentence"'))
    assert all(len(str(risk["share"]).strip("0.")) <= 2 for risk in release.certificate["attacks"]["attacks"])
    assert '"attempts"' in json.dumps(release.receipt["attacks"])


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.123456, 0.12), (0.0012345, 0.0012), (123.45, 120.0), (-0.4567, -0.46), (3, 3), (123.0, 123.0), (0.0, 0.0),
     (float("inf"), float("inf")), (None, None), ("inf", "inf"), (True, True)],
)  # fmt: skip
def test_two_digits(value, told):
    assert rounded(value) == told


def test_the_length_of_the_longest_code_is_not_told():
    columns = {"zip": {"role": "quasi", "hierarchy": {"mask": "right"}, "min_level": 2}}
    policy = Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 3}]})
    short = pa.table({"zip": ["11111", "22222", "33333"]})
    long = pa.table({"zip": ["11111", "22222", "33333-4444"]})
    certificates = [shoal.anonymize(table, policy).certificate for table in (short, long)]
    assert certificates[0]["levels"] == certificates[1]["levels"] == {"zip": "top"}
    assert certificates[0]["output"] == certificates[1]["output"]
    assert certificates[0]["search"] == certificates[1]["search"]


def test_neutral_names_are_apart_and_read_back():
    hierarchies = {"job": "/home/amy/jobs.csv", "job title/2": "C:\\\\x.csv", "..": "x.csv", "column 3": "y.csv"}
    policy = Policy.of({
        "columns": {name: {"role": "quasi", "hierarchy": file} for name, file in hierarchies.items()},
        "require": [{"model": "k-map", "k": 3, "population": "/home/amy/register.csv"}],
    })  # fmt: skip
    told = neutral(policy)
    names = [told.columns[name].hierarchy.path for name in hierarchies]
    assert names == ["job.csv", "column 2.csv", "column 3.csv", "column 4.csv"]
    assert told.population == "population.csv"
    assert Policy.of(told.model_dump(mode="json", exclude_none=True)) == told


def test_python_verifies_with_receipt_and_original(place):
    path = place / "patients of clinic 7.csv"
    release = shoal.anonymize(from_files(path), Policy.load(place / "policy.toml"))
    certificate = release.save(place / "release.parquet", receipt=place / "receipt.json")
    found = verify_certificate(certificate, place / "release.parquet", receipt=place / "receipt.json", original=path)
    assert found.holds
    assert {line.name: line.holds for line in found}["original.hmac_sha256"] is True
    assert release.receipt["key"] == json.loads(Path(place / "receipt.json").read_text())["key"]
