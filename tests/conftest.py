"""Fixtures and options for all tests."""

from __future__ import annotations

import functools
import os
from pathlib import Path

import pytest
import typer.testing
from hypothesis import HealthCheck, settings

from demonstrations import Demonstration, demonstrated_in
from examples import examples

CI = bool(os.environ.get("CI"))

# What a machine says of its terminal and of the date changes what is printed.
for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "SOURCE_DATE_EPOCH"):
    os.environ.pop(name, None)

# A machine that is slow, or stalls, fails nothing, and on CI each run draws the same examples.
settings.register_profile(
    "shoal",
    examples(100),  # where a test does not say how many
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
    **({"derandomize": True, "database": None, "print_blob": True} if CI else {}),
)
settings.load_profile("shoal")

# Typer makes all commands of a program anew for each call of a test: a quarter of the time of most such tests.
typer.testing._get_command = functools.cache(typer.testing._get_command)

# ── Warnings ────────────────────────────────────────────────────────────────────────────────────────────────

# On CI every warning is an error. Elsewhere those of our own code are, except that a dependency's new release, which
# announces that it will change something, fails nobody's first run: such warnings are shown at the end.
ANNOUNCED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
WARNINGS = ["error"] if CI else ["default", r"error:::shoal(\.|$)", *(f"default::{kind}" for kind in ANNOUNCED)]


def pytest_configure(config: pytest.Config) -> None:
    """Put the rules for warnings before the exceptions that pyproject.toml lists, since the last match decides."""
    config.getini("filterwarnings")[:0] = WARNINGS


# ── Engines ─────────────────────────────────────────────────────────────────────────────────────────────────


ENGINES = ("duckdb", "postgres", "spark")
NEEDS = {"duck": "duckdb", "server": "postgres", "postgres": "postgres", "cluster": "spark", "spark": "spark"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--engine",
        action="append",
        choices=[*ENGINES, "local"],
        help="run the tests of this engine and those that need none; may be repeated (default: all engines)",
    )


def engines_of(item: pytest.Item) -> set[str]:
    """The engines that a test starts, from its fixtures and their parameters."""
    chosen = getattr(item, "callspec", None)
    parameters = {} if chosen is None else chosen.params
    names = {NEEDS[name] for name in getattr(item, "fixturenames", ()) if name in NEEDS}
    named = {value for name, value in parameters.items() if name in ("bench", "database", "any_engine")}
    return names | (named - {"local"})


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drop the engines that were not chosen; the tests of a server go to one worker, where it starts once.

    A browser and Java are what pip cannot bring, and slow: where nobody names Spark, they are for the long run.
    """
    chosen = config.getoption("--engine")
    left, dropped = [], []
    for item in items:
        needed = engines_of(item)
        pages = "browser" in getattr(item, "fixturenames", ())
        if pages or ("spark" in needed and not chosen):
            item.add_marker(pytest.mark.long)
        if pages and item.get_closest_marker("xdist_group") is None:  # one browser a file, and the pages made once
            item.add_marker(pytest.mark.xdist_group(f"browser of {item.path.relative_to(config.rootpath)}"))
        (dropped if chosen and not needed <= set(chosen) else left).append(item)
        for server in needed - {"duckdb"}:
            item.add_marker(pytest.mark.xdist_group(server))
    left.sort(key=lambda item: "cluster" in getattr(item, "fixturenames", ()))  # a process has one Spark at a time
    items[:] = left
    if dropped:
        config.hook.pytest_deselected(items=dropped)


# ── Fixtures ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference tables and oracles, which lies beside the repository."""
    folder = Path(__file__).parents[2] / "shared"
    if not folder.is_dir():
        reason = "the folder 'shared' with reference tables is not beside the repository"
        if CI:
            pytest.fail(reason)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def demonstration(tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """The demo from the command line, run once however many workers there are."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent  # each worker has a folder of its own in that of the run
    return demonstrated_in(place / "demonstration")
