"""What the documentation shows is run, and what a policy can say is documented."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.main import get_command

from shoal import policy
from shoal.cli import app
from shoal.models.closeness import DISTANCES
from shoal.policy import Policy
from shoal.search import SEARCHES
from shoal.search.loss import LOSSES
from shoal.table.builders import BY_KEY
from shoal.table.dates import UNITS

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOAL = "from shoal.cli import main; main()"

# What a fragment of a policy leaves out.
REST: dict[str, Any] = {
    "columns": {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 2}],
}


def blocks(page: Path, *languages: str) -> list[str]:
    return [text for language, text in BLOCK.findall(page.read_text(encoding="utf-8")) if language in languages]


def examples(*languages: str) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.stem}-{i}")
        for page in PAGES
        for i, text in enumerate(blocks(page, *languages), start=1)
    ]


def run(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "100"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", examples("python"))
def test_python_blocks_run(code: str, tmp_path: Path) -> None:
    run("-W", "error", "-c", code, folder=tmp_path)


@pytest.mark.parametrize("text", examples("toml"))
def test_toml_blocks_are_policies_that_read_back_equal(text: str) -> None:
    parsed = Policy.of(REST | tomllib.loads(text))
    assert Policy.parse(parsed.to_toml()) == parsed


@pytest.fixture(scope="module")
def demonstrated(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("readme")
    return folder, run("-c", SHOAL, "demo", folder=folder)


def test_the_commands_of_the_readme_run(demonstrated: tuple[Path, str]) -> None:
    lines = [line for text in blocks(PAGES[0], "sh", "console") for line in text.splitlines()]
    commands = [shlex.split(line.removeprefix("$ ")) for line in lines if line.removeprefix("$ ").startswith("shoal")]
    assert {"inspect", "anonymize", "check"} <= {command[1] for command in commands}
    for command in commands:
        run("-c", SHOAL, *command[1:], folder=demonstrated[0])


def test_the_demo_prints_what_the_readme_shows(demonstrated: tuple[Path, str]) -> None:
    shown = [line.rstrip() for text in blocks(PAGES[0], "text") for line in text.splitlines() if line.strip("… ")]
    printed = [line.rstrip() for line in demonstrated[1].splitlines()]
    # An ellipsis stands for what may change without being wrong, such as how many nodes the search needs.
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in shown]
    assert len(shown) > 10
    assert [p for p in patterns if not any(re.fullmatch(p, line) for line in printed)] == []


@pytest.mark.parametrize("job", ["shoal demo", "python -m pytest"])
def test_the_readme_has_one_line_for_each_of_the_two_jobs(job: str) -> None:
    lines = [line for text in blocks(PAGES[0], "sh") for line in text.splitlines()]
    assert sum(line.startswith("python -m pip install ") and line.endswith(f" && {job}") for line in lines) == 1


def test_the_reference_names_all_that_a_policy_can_say() -> None:
    models = [model.model_fields["model"].default for model in policy._MODELS]
    parts: list[Any] = [policy.Column, policy.Options, *policy._MODELS, *BY_KEY.values()]
    fields = {name for part in parts for name in part.model_fields}
    values = {value for part in (policy.Column, policy.Options) for value in _choices(part)}
    names = {*models, *fields, *values, *SEARCHES, *LOSSES, *DISTANCES, *UNITS}
    page = (ROOT / "docs" / "policy.md").read_text(encoding="utf-8")
    spoken = set(re.findall(r'`"?([\w-]+)"?`', page)) | set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    assert sorted(names - spoken) == []


def _choices(part: Any) -> list[str]:
    return [
        value for field in part.model_fields.values() for value in get_args(field.annotation) if isinstance(value, str)
    ]


def test_searches_and_losses_can_all_be_asked_for() -> None:
    assert set(get_args(policy.Algorithm)) == set(SEARCHES)
    assert set(get_args(policy.Objective)) == set(LOSSES)


def test_every_command_and_option_is_on_the_page_of_the_command_line() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    assert sorted(re.findall(r"^## shoal (\w+)", page, re.MULTILINE)) == sorted(commands)
    for name, command in commands.items():
        section = page.split(f"## shoal {name}", 1)[1].split("\n## ", 1)[0]
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
        assert [option for option in options if f"`{option}" not in section] == [], name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (page.parent / target).exists(), target
