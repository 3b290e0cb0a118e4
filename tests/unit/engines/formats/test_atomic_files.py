"""Who may read what is written: nobody but the owner while it is unfinished, and never where it holds originals."""

import os
import stat

import pyarrow as pa
import pytest

import shoal
from shoal.engines.connect import from_files
from shoal.engines.formats import atomic_files, table_files
from shoal.release.replay import save_recoding

pytestmark = pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")

PEOPLE = "age,disease\n" + "30,flu\n30,gout\n40,flu\n40,gout\n" * 3
POLICY = {
    "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 2}],
}


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o027, 0o077])
def umask(request):
    before = os.umask(request.param)
    yield request.param
    assert os.umask(before) == request.param  # as it was found


def seen_aside(folder):
    return {path.name: mode(path) for path in folder.iterdir() if path.name.startswith(".shoal-")}


def test_a_release_is_private_until_it_is_verified(umask, tmp_path):
    modes = []
    table = pa.table({"a": ["x"]})
    table_files.write_table_file(table, tmp_path / "r.csv", verify=lambda hidden: modes.append(mode(hidden)))
    assert modes == [0o600]
    assert mode(tmp_path / "r.csv") == 0o666 & ~umask


@pytest.mark.parametrize("force", [False, True])
def test_a_private_file_is_private_whatever_was_there(umask, force, tmp_path):
    target = tmp_path / "r.json"
    if force:
        target.write_text("{}")
        target.chmod(0o666)
    atomic_files.write_text(target, "{}", force=force, private=True)
    assert mode(target) == 0o600


def test_a_recoding_is_private_and_a_report_is_not(umask, tmp_path):
    (tmp_path / "people.csv").write_text(PEOPLE)
    release = shoal.anonymize(tmp_path / "people.csv", shoal.Policy.of(POLICY))
    save_recoding(release, tmp_path / "recoding.json")
    atomic_files.write_text(tmp_path / "report.html", "<p>")
    assert mode(tmp_path / "recoding.json") == 0o600
    assert mode(tmp_path / "report.html") == 0o666 & ~umask


def test_a_folder_of_duckdb_is_private_until_it_is_verified(umask, tmp_path, monkeypatch):
    (tmp_path / "people.csv").write_text(PEOPLE)
    release = shoal.anonymize(from_files(tmp_path / "people.csv"), shoal.Policy.of(POLICY))
    modes = []
    verify = shoal.release.release.Release._verify
    monkeypatch.setattr(
        shoal.release.release.Release,
        "_verify",
        lambda self, written: (modes.extend(seen_aside(tmp_path).values()), verify(self, written)),
    )
    release.save(tmp_path / "out")
    assert modes == [0o700]
    assert mode(tmp_path / "out") == 0o777 & ~umask
