"""What the suite itself promises to whoever runs it: which warnings fail it, and which tests an option chooses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.long  # each test starts pytest anew

WARNS = """
import warnings
import pytest

CASES = {
    "ours": (RuntimeWarning, "shoal.compiled.grouping"),
    "announced": (DeprecationWarning, "shoal.demo.hospital"),
    "theirs": (UserWarning, "pandas.core.frame"),
    "allowed": (DeprecationWarning, "ibis.backends.duckdb"),
}

@pytest.mark.parametrize("name", CASES)
def test_warns(name):
    category, module = CASES[name]
    text = "fetch_arrow_table() is deprecated" if name == "allowed" else "something"
    warnings.warn_explicit(text, category, "somewhere.py", 1, module=module)
"""
NAMES = {"ours", "announced", "theirs", "allowed"}


def pytest_in(folder: Path, *arguments: str, **environment: str) -> str:
    """What the suite's own settings make of other tests, or of a choice of its own."""
    settings = [
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(folder),
        "-p",
        "conftest",
        "-p",
        "no:cacheprovider",
    ]
    inherited = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
    done = processes.run(
        [sys.executable, "-m", "pytest", "-n", "0", *settings, *arguments],
        cwd=folder,
        env={**inherited, "PYTHONPATH": os.pathsep.join([str(ROOT / "tests"), *sys.path]), **environment},
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("environment", "failing"),
    [({}, {"ours"}), ({"CI": "true"}, {"ours", "announced", "theirs"})],
    ids=["at home", "on CI"],
)
def test_warnings_that_fail_a_run(environment: dict[str, str], failing: set[str], tmp_path: Path) -> None:
    (tmp_path / "test_warns.py").write_text(WARNS, encoding="utf-8")
    said = pytest_in(tmp_path, "-rA", "--disable-warnings", "test_warns.py", **environment)
    passed = {name for name in NAMES if f"PASSED test_warns.py::test_warns[{name}]" in said}
    assert NAMES - passed == failing, said
    assert f"{len(failing)} failed" in said


ENGINES = """
import pytest

@pytest.fixture(params=["duckdb", "postgres", "spark"])
def bench(request):
    return request.param

@pytest.fixture
def server():
    return None

def test_bench(bench): pass
def test_server(server): pass
def test_none(): pass

@pytest.fixture
def browser():
    return None

def test_page(browser): pass

@pytest.mark.long
def test_matrix(bench): pass
"""


ALL, REST = ("duckdb", "postgres", "spark"), ("server", "none", "page")


@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        ([], {"bench[duckdb]", "bench[postgres]", "server", "none"}),
        (["-m", ""], {*(f"bench[{engine}]" for engine in ALL), *(f"matrix[{engine}]" for engine in ALL), *REST}),
        (["--engine", "spark"], {"bench[spark]", "none"}),
        (["--engine", "duckdb"], {"bench[duckdb]", "none"}),
        (["--engine", "duckdb", "--engine", "postgres"], {"bench[duckdb]", "bench[postgres]", "server", "none"}),
        (["--engine", "local"], {"none"}),
        (["-m", "long", "--engine", "spark"], {"matrix[spark]", "page"}),
    ],
    ids=lambda given: " ".join(sorted(given)) if isinstance(given, set) else " ".join(given),
)
def test_engines_are_chosen(options: list[str], chosen: set[str], tmp_path: Path) -> None:
    (tmp_path / "test_engines.py").write_text(ENGINES, encoding="utf-8")
    said = pytest_in(tmp_path, "--collect-only", *options, "test_engines.py")
    found = {line.partition("::test_")[2] for line in said.splitlines() if "::test_" in line}
    assert found == chosen, said


def test_the_parts_for_other_pythons_and_versions_exist() -> None:
    """A path that a move left behind would run no test there."""
    lists = "part on_another_python with_lowest_versions"
    script = f"""source <(grep -E '^({lists.replace(" ", "|")})=' .ci/run)
    printf '%s\\n' "${{part[@]}}" "${{on_another_python[@]}}" "${{with_lowest_versions[@]}}" """
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    paths = done.stdout.split()
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []
