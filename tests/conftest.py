"""Fixtures for all tests."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What a machine says of its terminal and of the date changes what is printed.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "SOURCE_DATE_EPOCH"):
    os.environ.pop(name, None)

# A machine that is slow, or stalls, fails nothing, and on CI each run draws the same examples.
settings.register_profile(
    "shoal",
    settings.get_profile("default"),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    **({"derandomize": True, "database": None, "print_blob": True} if os.environ.get("CI") else {}),
)
settings.load_profile("shoal")


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
