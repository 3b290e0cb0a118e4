"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference tables and oracles, which lies beside the repository."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        reason = "the folder 'shared' with reference tables is not beside the repository"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return folder
