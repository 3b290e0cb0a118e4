"""Signed certificates."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import DataError, OutputError, ShoalError
from shoal.release.signatures import canonical, make_keys, read_private, sign, signed_by
from shoal.verify.certified import verify_certificate

POLICY = """
columns.age     = { role = "quasi", hierarchy = { intervals = [10] } }
columns.disease = { role = "sensitive" }
require         = [{ model = "k-anonymity", k = 2 }]
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "people.csv").write_text("age,disease\n30,flu\n31,gout\n45,flu\n46,gout\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args):
    return CliRunner().invoke(app, list(map(str, args)))


def released(*more):
    files = ["-o", "release.csv", "--certificate", "certificate.json", "--force"]
    found = run("anonymize", "people.csv", "-p", "policy.toml", *files, *more)
    assert found.exit_code == 0, found.stderr
    return json.loads(Path("certificate.json").read_text())


def verified(*more):
    return run("verify", "certificate.json", "release.csv", *more)


def told(*more):
    """The exit code, and what is said of the signature."""
    found = verified("--json", *more)
    (line,) = (line for line in json.loads(found.stdout)["lines"] if line["name"] == "signature")
    return found.exit_code, line["holds"], line["why"]


def test_from_keys_to_a_verified_signature(place):
    assert run("keys", "amy").exit_code == 0
    certificate = released("--sign", "amy.key")
    assert certificate["signature"]["algorithm"] == "Ed25519"
    found = verified("--key", "amy.pub")
    assert found.exit_code == 0
    assert any(
        line.split()[0] == "signature" and line.split()[-1] == "holds" for line in found.stdout.splitlines() if line
    )
    assert signed_by(certificate, "amy.pub")
    assert verify_certificate(certificate, "release.csv", key="amy.pub").holds


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_an_unsigned_certificate_says_so(engine, place):
    make_keys("amy")
    released("--engine", engine)
    found = verified()
    assert found.exit_code == 0
    assert "The certificate is unsigned" in found.stdout
    assert told("--key", "amy.pub") == (1, False, "unsigned")


def test_a_signature_that_nobody_checked_says_so(place):
    make_keys("amy")
    released("--sign", "amy.key")
    found = verified()
    assert found.exit_code == 0
    assert "The certificate is signed, not checked" in found.stdout


def test_another_key_does_not_fit(place):
    make_keys("amy")
    make_keys("eve")
    released("--sign", "eve.key")
    assert told("--key", "amy.pub") == (1, False, "signed with another key")


def changed(certificate, path, value):
    *way, last = path
    part = certificate
    for step in way:
        part = part[step]
    part[last] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["seed"], 1),
        (["created"], "2001-01-01T00:00:00+00:00"),
        (["findings"], []),
        (["input", "records"], 5),
        (["input", "hmac_sha256"], "0" * 64),
        (["measured", "k"], 2.0),  # a whole number is another text, even where it is the same number
        (["signature", "value"], "0" * 128),
        (["a new field"], 1),
    ],
)
def test_a_changed_certificate_fails(path, value, place):
    make_keys("amy")
    certificate = released("--sign", "amy.key")
    changed(certificate, path, value)
    (place / "certificate.json").write_text(json.dumps(certificate))
    assert told("--key", "amy.pub") == (1, False, "modified after it was signed")


def test_how_the_file_is_laid_out_does_not_matter(place):
    make_keys("amy")
    certificate = released("--sign", "amy.key")
    turned = dict(reversed(certificate.items()))
    (place / "certificate.json").write_text(json.dumps(turned, indent=1, ensure_ascii=True))
    assert verified("--key", "amy.pub").exit_code == 0


def test_what_is_signed_is_canonical():
    certificate = {"b": [1, 0.1, 1e300, None, True], "a": {"é": "\u2028\t", "A": "/"}, "signature": {"value": "x"}}
    expected = 'shoal certificate\n{"a":{"A":"/","é":"\u2028\\t"},"b":[1,0.1,1e+300,null,true]}'
    assert canonical(certificate) == expected.encode()


def test_a_private_key_is_private_and_may_have_a_password(place):
    before = os.umask(0)
    try:
        (place / "word").write_text("open sesame\n")
        assert run("keys", "amy", "--password-file", "word").exit_code == 0
    finally:
        os.umask(before)
    assert stat.S_IMODE((place / "amy.key").stat().st_mode) == 0o600
    assert b"ENCRYPTED" in (place / "amy.key").read_bytes()
    released("--sign", "amy.key", "--password-file", "word")
    assert verified("--key", "amy.pub").exit_code == 0
    for password, hint in ((None, "password"), ("wrong", "password")):
        with pytest.raises(DataError, match=hint):
            read_private("amy.key", password=password)
    options = ["-o", "other.csv", "--sign", "amy.key"]
    found = run("anonymize", "people.csv", "-p", "policy.toml", *options)
    assert found.exit_code == 2
    assert not (place / "other.csv").exists()  # it is told before the long work


def test_keys_that_cannot_be_written(place):
    with pytest.raises(OutputError, match="cannot be written"):
        make_keys("a" * 300)
    with pytest.raises(DataError, match=r"more than 1,023 bytes"):
        make_keys("amy", password="é" * 600)
    assert not [*place.glob("*.key"), *place.glob("*.pub")]


def test_keys_are_not_overwritten(place):
    make_keys("amy")
    with pytest.raises(OutputError, match="exists"):
        make_keys("amy")
    assert run("keys", "amy").exit_code == 2
    assert run("keys", "amy", "--force").exit_code == 0


@pytest.mark.parametrize(
    "content", [b"", b"not a key", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_what_is_no_key_is_refused(content, place):
    (place / "x").write_bytes(content)
    released()
    for found in (
        verified("--key", "x"),
        verified("--key", "nowhere"),
        run("anonymize", "people.csv", "-p", "policy.toml", "-o", "o.csv", "--sign", "x"),
    ):
        assert found.exit_code == 2
        assert "Traceback" not in found.stderr


def test_the_private_key_does_not_verify_and_the_public_one_does_not_sign(place):
    make_keys("amy")
    released()
    assert verified("--key", "amy.key").exit_code == 2
    assert run("anonymize", "people.csv", "-p", "policy.toml", "-o", "o.csv", "--sign", "amy.pub").exit_code == 2


def test_in_python(place):
    private, public = shoal.make_keys("amy", password="secret")
    certificate = shoal.anonymize("people.csv", shoal.Policy.load("policy.toml")).save("release.csv")
    signed = shoal.sign(certificate, private, password="secret")
    assert "signature" not in certificate
    assert signed_by(signed, public)
    assert not signed_by(certificate, public)
    again = sign(signed, private, password="secret")
    assert again == signed  # Ed25519 draws nothing, and a signature is not signed


def test_without_the_package_it_says_what_to_install(place, monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    released()  # needs none
    assert verified().exit_code == 0
    for found in (run("keys", "amy"), verified("--key", "amy.pub")):
        assert found.exit_code == 2
        assert "pip install 'shoal[sign]'" in found.stderr
    with pytest.raises(ShoalError, match="cryptography"):
        sign({}, "amy.key")
