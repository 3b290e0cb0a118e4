"""``shoal keypair``, ``encrypt``, ``compute`` and ``decrypt``: the way there and back, and what is refused on it."""

import json
import stat
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from shoal.cli.commands import app
from shoal.results.he.container import read_container, write_container

RUN = CliRunner()
ENCRYPT = ["--bounds", "age=0:120", "--bounds", "cost=0:9999", "--decimals", "cost=2", "--indicator", "infected=yes"]


def shoal(*arguments: str | Path) -> str:
    result = RUN.invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: str | Path) -> str:
    result = RUN.invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 2
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def hospital(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, two pairs of keys, the encrypted table and a result."""
    folder = tmp_path_factory.mktemp("hospital")
    rows = ["31,100.50,yes", "45,2000,no", "28,33.25,yes", "70,410,yes"]
    (folder / "patients.csv").write_text("age,cost,infected\n" + "\n".join(rows) + "\n")
    shoal("keypair", folder / "own")
    shoal("keypair", folder / "other", "--scheme", "ckks", "-q")
    key = ["--key", folder / "own.public.key"]
    shoal("encrypt", folder / "patients.csv", *key, *ENCRYPT, "-o", folder / "patients.encrypted")
    asked = ["--mean", "age", "--sum", "cost", "--sum", "infected=yes", "--regression", "cost=age"]
    shoal("compute", folder / "patients.encrypted", *key, *asked, "-o", folder / "figures.result")
    return folder


def test_there_and_back(hospital: Path) -> None:
    shown = shoal("decrypt", hospital / "figures.result", "--key", hospital / "own.secret.key")
    assert "mean of age: 43.5 (unverified)\n" in shown
    assert "sum of cost: 2543.75 (unverified)\n" in shown
    assert "sum of infected=yes: 3 (unverified)\n" in shown
    assert "about 4 rows only" in shown
    told = json.loads(shoal("decrypt", hospital / "figures.result", "--key", hospital / "own.secret.key", "--json"))
    assert told["result"]["mean of age"] == 43.5
    slope, intercept = np.polyfit([31, 45, 28, 70], [100.5, 2000, 33.25, 410], 1)
    assert told["result"]["regression of cost"] == pytest.approx({"intercept": intercept, "age": slope})
    assert told["measured_error"] == 0


def test_scores_go_to_a_file_that_only_the_owner_reads(hospital: Path, tmp_path: Path) -> None:
    made = tmp_path / "risk.result"
    key = ["--key", hospital / "own.public.key"]
    shoal("compute", hospital / "patients.encrypted", *key, "--score", "risk=0.5*age-3", "-o", made)
    assert "name a file for them" in refused("decrypt", made, "--key", hospital / "own.secret.key")
    shoal("decrypt", made, "--key", hospital / "own.secret.key", "-o", tmp_path / "risk.csv")
    assert (tmp_path / "risk.csv").read_text().split() == ['"risk"', "12.5", "19.5", "11", "32"]
    assert stat.S_IMODE((tmp_path / "risk.csv").stat().st_mode) == 0o600


def test_the_key_to_compare_by_telephone_is_printed(tmp_path: Path, hospital: Path) -> None:
    shown = shoal("keypair", tmp_path / "new")
    told = json.loads(shoal("keypair", tmp_path / "new", "--force", "--json"))
    assert "compare it by telephone" in shown
    assert told["key"] not in shown  # another pair
    again = ["encrypt", hospital / "patients.csv", "--key", tmp_path / "new.public.key", "--bounds", "age=0:120"]
    assert told["key"] in shoal(*again, "-o", tmp_path / "a.encrypted")


def test_the_wrong_key_shows_nothing(hospital: Path, tmp_path: Path) -> None:
    assert "belongs to another pair of keys" in refused(
        "decrypt", hospital / "figures.result", "--key", hospital / "other.secret.key"
    )
    assert "is a public key, not a secret key" in refused(
        "decrypt", hospital / "figures.result", "--key", hospital / "own.public.key"
    )
    for command in (
        ["compute", hospital / "patients.encrypted", "--sum", "age"],
        ["encrypt", hospital / "patients.csv"],
    ):
        told = refused(*command, "--key", hospital / "own.secret.key", "-o", tmp_path / "a")
        assert "is a secret key, not a public key" in told
    assert not (tmp_path / "a").exists()


def test_a_ciphertext_from_other_parameters_is_refused(hospital: Path, tmp_path: Path) -> None:
    other = ["--key", hospital / "other.public.key"]
    told = refused("compute", hospital / "patients.encrypted", *other, "--sum", "age", "-o", tmp_path / "a")
    assert "belongs to another pair of keys" in told
    # Also where somebody changed the header to say otherwise.
    header, parts = read_container(hospital / "patients.encrypted", "table")
    theirs, _ = read_container(hospital / "other.public.key", "public key")
    forged = {**header, "key": theirs["key"], "parameters": theirs["parameters"]}
    path = write_container(tmp_path / "forged.encrypted", forged, parts, force=False)
    assert "Error" in refused("compute", path, *other, "--sum", "age", "-o", tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("scheme", ["bfv", "ckks"])
def test_weak_parameters_are_refused(scheme: str, tmp_path: Path) -> None:
    told = refused("keypair", tmp_path / "weak", "--scheme", scheme, "--degree", "4096")
    assert "fewer than 128 bits of security" in told
    assert list(tmp_path.iterdir()) == []


def test_a_weak_key_of_somebody_else_is_refused(hospital: Path, tmp_path: Path) -> None:
    header, parts = read_container(hospital / "own.public.key", "public key")
    weak = {**header, "parameters": header["parameters"] | {"degree": 4096}}
    path = write_container(tmp_path / "weak.public.key", weak, parts, force=False)
    told = refused("encrypt", hospital / "patients.csv", "--key", path, "--bounds", "age=0:120", "-o", tmp_path / "a")
    assert "fewer than 128 bits of security" in told


def test_a_sum_that_would_wrap_is_refused(hospital: Path, tmp_path: Path) -> None:
    key = ["--key", hospital / "own.public.key"]
    wide = ["--bounds", "age=0:100000000000000000"]
    shoal("encrypt", hospital / "patients.csv", *key, *wide, "-o", tmp_path / "wide.encrypted")
    told = refused("compute", tmp_path / "wide.encrypted", *key, "--regression", "age=age2", "-o", tmp_path / "a")
    assert "'age2' is not in the encrypted table" in told
    many = [tmp_path / "wide.encrypted"] * 3
    assert "overflow" in refused("compute", *many, *key, "--sum", "age", "-o", tmp_path / "a")
    assert not (tmp_path / "a").exists()
