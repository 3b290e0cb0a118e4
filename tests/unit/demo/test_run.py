"""If these fail, `shoal demo` does not run, or shows an attack that succeeds on the release."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

import shoal
from demonstrations import Demonstration
from shoal.demo import run
from shoal.demo.hospital import POLICY, hospital
from shoal.demo.run import Demo, claim, demo, owners
from shoal.errors import OutputError
from shoal.policy import Policy

pytestmark = pytest.mark.xdist_group("demo")  # one worker makes the demo that they look at

FILES = [
    "analysis.csv",
    "analysis.toml",
    "certificate.json",
    "hospital.csv",
    "policy.toml",
    "receipt.json",
    "release.csv",
    "report.html",
    "voters.csv",
]
TIMED = {"certificate.json", "receipt.json", "report.html"}  # which tell when they were made, or have a key
K, L = 5, 3  # what the bundled policy asks


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Demo]:
    """A demo in the folder of an earlier one."""
    folder = tmp_path_factory.mktemp("demo")
    for name in FILES:
        (folder / name).write_text("old", encoding="utf-8")
    return folder, demo(folder)


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_attack_works_before_and_fails_after(shown: tuple[Path, Demo]) -> None:
    _, found = shown
    assert found.patients == 10_000
    before, after = found.before, found.after
    assert before.people == after.people > 5_000
    assert before.singled_out >= before.named > before.people / 3
    assert before.chance == 1.0
    assert (after.singled_out, after.named) == (0, 0)
    assert 0 < after.chance <= 1 / K
    assert after.matched > 0
    finer = found.after_analysis
    assert (finer.people, finer.singled_out, finer.named) == (after.people, 0, 0)
    assert 0 < finer.chance <= 1 / K


def test_the_release_for_analysis_keeps_the_policy_and_loses_less(shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    policy = Policy.load(folder / "analysis.toml")
    assert policy.require == Policy.load(folder / "policy.toml").require
    released = rows(folder / "analysis.csv")
    diseases = defaultdict(list)
    for row in released:
        diseases[tuple(row[name] for name in policy.quasi)].append(row["disease"])
    assert min(map(len, diseases.values())) >= K
    assert min(len(set(values)) for values in diseases.values()) >= L
    assert len(released) == 10_000
    assert shoal.check(folder / "analysis.csv", policy, original=folder / "hospital.csv").holds
    assert found.analysis.loss["loss"] < found.release.loss["loss"] / 3
    for name in policy.quasi:  # no column is wiped
        assert len({row[name] for row in released}) > 1


def test_one_patient_is_shown_three_times(shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    for name, path in (("before", "hospital.csv"), ("for tables", "release.csv"), ("for analysis", "analysis.csv")):
        patient = found.patient[name]
        assert any(all(row[column] == patient[column] for column in patient) for row in rows(folder / path))
    assert found.patient["before"]["sex"] in (found.patient["for tables"]["sex"], "*")
    assert "from the original table" in (folder / "report.html").read_text(encoding="utf-8")


def test_the_release_keeps_the_policy_counted_from_its_file(shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    policy = Policy.load(folder / "policy.toml")
    released = rows(folder / "release.csv")
    assert list(released[0]) == ["birth", "zip", "sex", "job", "marital", "disease", "cost"]
    diseases = defaultdict(list)
    for row in released:
        diseases[tuple(row[name] for name in policy.quasi)].append(row["disease"])
    assert min(map(len, diseases.values())) >= K
    assert min(len(set(values)) for values in diseases.values()) >= L
    assert len(diseases) == found.release.classes
    assert len(released) + found.release.suppressed == 10_000
    assert found.release.suppressed <= 200


def test_a_link_by_plain_python_says_the_same(shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    patients = Counter((row["birth"], row["zip"], row["sex"]) for row in rows(folder / "hospital.csv"))
    seen = [patients[row["birth"], row["zip"], row["sex"]] for row in rows(folder / "voters.csv")]
    assert sum(n > 0 for n in seen) == found.before.matched
    assert sum(n == 1 for n in seen) == found.before.singled_out
    names = Counter((r["name"], r["birth"], r["zip"], r["sex"]) for r in rows(folder / "hospital.csv"))
    named = sum(
        patients[row["birth"], row["zip"], row["sex"]] == 1
        and (row["name"], row["birth"], row["zip"], row["sex"]) in names
        for row in rows(folder / "voters.csv")
    )
    assert named == found.before.named


def test_what_is_left_in_the_folder(shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    assert sorted(entry.name for entry in folder.iterdir()) == FILES
    assert (folder / "policy.toml").read_text(encoding="utf-8") == POLICY
    certificate = json.loads((folder / "certificate.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert certificate == found.certificate
    receipt = json.loads((folder / "receipt.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)
    for part, proof, name in (("input", receipt, "hospital.csv"), ("output", certificate, "release.csv")):
        assert proof[part]["sha256"] == hashlib.sha256((folder / name).read_bytes()).hexdigest()
    assert "name" not in rows(folder / "release.csv")[0]


def test_what_was_left_is_checked_by_anybody(shown: tuple[Path, Demo]) -> None:
    folder, _ = shown
    policy = Policy.load(folder / "policy.toml")
    assert shoal.check(folder / "release.csv", policy, original=folder / "hospital.csv").holds
    assert not shoal.check(folder / "hospital.csv", policy).holds


@pytest.mark.long
def test_again_into_the_same_folder_with_the_same_bytes(demonstration: Demonstration, shown: tuple[Path, Demo]) -> None:
    folder, found = shown
    assert sorted(entry.name for entry in folder.iterdir()) == FILES
    for name in set(FILES) - TIMED:
        assert (folder / name).read_bytes() == (demonstration.folder / name).read_bytes(), name
    printed = [line.split() for line in demonstration.printed.splitlines()]
    for figure in ("people", "matched", "singled_out", "named"):
        linkages = (found.before, found.after, found.after_analysis)
        figures = [f"{getattr(linkage, figure):,}" for linkage in linkages]
        assert any(line[-3:] == figures for line in printed), figure


def test_another_seed_draws_other_patients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hospital(seed=1) != hospital(seed=0)

    def drawn(*, seed: int) -> None:
        raise LookupError(f"seed {seed}")

    monkeypatch.setattr(run, "hospital", drawn)
    with pytest.raises(LookupError, match="seed 1"):
        demo(tmp_path / "other", seed=1)


def test_plain_values(shown: tuple[Path, Demo]) -> None:
    plain = shown[1].as_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert set(plain) == {"patients", "before", "after", "certificate", "analysis"}


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="contains 1 files that do not belong to the demo"):
        demo(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.txt"]
    with pytest.raises(OutputError, match=r"cannot use .* as a folder"):
        demo(tmp_path / "thesis.txt")
    with pytest.raises(OutputError, match=r"cannot use .* as a folder"):
        demo(tmp_path / "thesis.txt" / "below")


def test_a_folder_of_an_earlier_demo_may_be_taken(tmp_path: Path) -> None:
    claim(tmp_path / "new")
    (tmp_path / "new" / run.RELEASE).write_text("old", encoding="utf-8")
    claim(tmp_path / "new")


def test_the_referee_compares_names() -> None:
    patients = pa.table({"name": ["Ada", "Bo"], "birth": ["1", "2"], "zip": ["x", "y"], "sex": ["f", "m"]})
    voters = pa.table(
        {"name": ["Bo", "Ada", "Bo"], "birth": ["2", "9", "2"], "zip": ["y", "x", "z"], "sex": list("mfm")}
    )
    assert owners(patients, voters) == {0: 1}
