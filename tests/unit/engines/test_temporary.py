"""Private folders go with their process, or with the next one."""

import os
import stat
import tempfile
from pathlib import Path

import pytest

from shoal.engines.temporary import LOCK, private_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not() -> None:
    killed, living = private_folder(), private_folder("shoal-web-")
    (killed.path / "table.csv").touch()
    assert killed.lock is not None
    os.close(killed.lock)  # as the system does when a process ends
    assert killed.path.exists()
    newest = private_folder()
    assert not killed.path.exists()
    assert (living.path / LOCK).exists()
    for folder in (living, newest):
        folder.remove()
        assert not folder.path.exists()


def test_other_folders_stay(temporary: Path) -> None:
    """One that has no lock yet is being made; a link may lead anywhere."""
    (temporary / "shoal-new").mkdir()
    (temporary / "other").mkdir()
    (temporary / "other" / LOCK).touch()
    (temporary / "shoal-link").symlink_to(temporary / "other")
    private_folder().remove()
    assert {path.name for path in temporary.iterdir()} == {"shoal-new", "other", "shoal-link"}
    assert (temporary / "other" / LOCK).exists()


def test_nobody_else_reads_it() -> None:
    folder = private_folder()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / LOCK).stat().st_mode) == 0o600
    folder.remove()
