"""If these fail, the documentation shows something that does not run, or leaves out what the code can do."""

import dataclasses
import math
import os
import re
import runpy
import shlex
import shutil
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any, get_args

import pytest
from pyarrow import csv, parquet
from typer.main import get_command
from typer.testing import CliRunner

import processes
import shoal
from demonstrations import Demonstration
from shoal.alternatives.frontier import SWEPT, Point
from shoal.cli.commands import app
from shoal.findings import KINDS
from shoal.hierarchies.builders import BY_KEY, SafeHarbor
from shoal.hierarchies.dates import UNITS
from shoal.models.closeness import DISTANCES
from shoal.models.size import KAnonymity
from shoal.policy import Column, Options, Policy, explain
from shoal.policy.options import Algorithm, Objective
from shoal.policy.presets import PRESETS
from shoal.search import SEARCHES
from shoal.search.losses.definitions import LOSSES, WITH_LABEL

ROOT = Path(__file__).resolve().parents[2]
ELSEWHERE = {"benchmarks.md", "changes.md", "contributing.md"}  # pages of the site that lie elsewhere in the repository
PAGES = [ROOT / "README.md", *(page for page in sorted((ROOT / "docs").glob("*.md")) if page.name not in ELSEWHERE)]
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
SHOAL = "from shoal.cli.commands import main; main()"

# What a fragment of a policy leaves out.
REST: dict[str, Any] = {
    "columns": {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}},
    "require": [{"model": "k-anonymity", "k": 2}],
}


def blocks(page: Path, *languages: str) -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, language, text in found if language in languages]


def examples(*languages: str, elsewhere: tuple[str, ...] = ()) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.stem}-{i}")
        for page in PAGES
        if page.stem not in elsewhere
        for i, text in enumerate(blocks(page, *languages), start=1)
    ]


def read(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def run(*arguments: str, folder: Path) -> str:
    done = processes.run(
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


@pytest.mark.parametrize(
    "code", examples("python", elsewhere=("families", "tutorial"))
)  # which have tests of their own
def test_python_blocks_run(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where they may write
    exec(compile(code, "page", "exec"), {"__name__": "page"})


@pytest.mark.parametrize("text", examples("toml"))
def test_toml_blocks_are_policies_that_read_back_equal(text: str) -> None:
    parsed = Policy.of(REST | tomllib.loads(text))
    assert Policy.parse(parsed.to_toml()) == parsed


@pytest.fixture(scope="module")
def demonstrated(demonstration: Demonstration, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo, and beside it the files that the pages speak of."""
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(demonstration.folder, folder / "shoal-demo")
    hospital = csv.read_csv(folder / "shoal-demo" / "hospital.csv")
    csv.write_csv(hospital[:6_000], folder / "march.csv")
    csv.write_csv(hospital[4_000:], folder / "april.csv")
    parquet.write_table(hospital, folder / "big.parquet")
    shutil.copy(folder / "shoal-demo" / "policy.toml", folder / "policy.toml")
    return folder


def commands(page: Path) -> list[list[str]]:
    lines = [line for text in blocks(page, "sh", "console") for line in text.splitlines()]
    return [shlex.split(line.removeprefix("$ ")) for line in lines if line.removeprefix("$ ").startswith("shoal")]


TOGETHER = (ROOT / "README.md", ROOT / "docs" / "index.md")  # which run one after the other, below
ALONE = [page for page in PAGES if page not in TOGETHER and commands(page)]


@pytest.mark.parametrize("page", ALONE, ids=lambda page: page.stem)
def test_shell_blocks_run(page: Path, demonstrated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = shutil.copytree(demonstrated, tmp_path / "here")
    monkeypatch.chdir(folder)
    if any("inspect" in command for command in commands(page)):
        (folder / "policy.toml").unlink()
    for command in commands(page):
        # What is behind a URI runs in tests/engines; the demo has run.
        if command[1] != "demo" and not any("://" in argument for argument in command):
            done = CliRunner().invoke(app, command[1:])
            assert done.exit_code == 0, (command, done.output)


@pytest.mark.long
def test_readme_and_quick_start_run_one_after_the_other_in_one_folder(
    demonstration: Demonstration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(demonstration.folder, tmp_path / "shoal-demo")  # what the first command leaves
    ran = []
    for page in TOGETHER:
        for kind, text in re.findall(r"^ *```(sh|python)\n(.*?)^ *```$", page.read_text(encoding="utf-8"), re.M | re.S):
            if kind == "python":
                exec(compile(text, page.name, "exec"), {"__name__": "page"})
                continue
            for command in map(shlex.split, text.splitlines()):
                if command[0] == "shoal" and command[1] != "demo":
                    done = CliRunner().invoke(app, command[1:])
                    assert done.exit_code == 0, (page.name, command, done.output)
                    ran.append(command[1])
    assert ran == ["inspect", "anonymize", "check", "inspect", "anonymize", "check", "verify", "attack"]


def test_the_page_of_the_policy_opens_with_one_screen() -> None:
    opening = read("policy.md").split("\n## ", 1)[0]
    assert len(opening.splitlines()) < 60
    assert all(f'role = "{role}"' in opening for role in ("identifier", "quasi", "sensitive", "plain"))


def test_a_table_below_a_command_is_what_it_prints(demonstrated: Path) -> None:
    below = re.compile(r"^```sh\n(shoal .*)\n```\n\n```text\n((?:(?!```).*\n)*)```$", re.MULTILINE)
    found = [pair for page in PAGES for pair in below.findall(page.read_text(encoding="utf-8"))]
    assert found
    for command, shown in found:
        printed = run("-c", SHOAL, *shlex.split(command)[1:], folder=demonstrated).splitlines()
        lines = [line.split() for line in shown.splitlines()]
        assert [line.split() for line in printed][: len(lines)] == lines
        assert len(lines) == len(printed) > 1


def test_every_block_is_of_a_kind_that_is_run_or_cannot_be() -> None:
    fence = re.compile(r"^ *```([^\n]+)$", re.MULTILINE)
    fences = {page.name: fence.findall(page.read_text(encoding="utf-8")) for page in PAGES}
    # A pycon block is the Example of a docstring, which runs there.
    assert set().union(*fences.values()) == {"python", "toml", "sh", "console", "text", "java", "r", "py", "pycon"}
    foreign = {name for name, kinds in fences.items() if {"java", "r", "py"} & set(kinds)}
    assert foreign == {"migrate.md", "ranges.md"}  # of other tools, which are not installed here


def test_the_demo_prints_what_the_quick_start_shows(demonstration: Demonstration) -> None:
    (text,) = (text for text in blocks(ROOT / "docs" / "index.md", "text") if "voters" in text)
    shown = [line.rstrip() for line in text.splitlines() if line.strip("… ")]
    printed = [line.rstrip() for line in demonstration.printed.splitlines()]
    # An ellipsis stands for what may change without being wrong, such as how many nodes the search needs.
    patterns = [".*".join(map(re.escape, line.split("…"))) for line in shown]
    assert len(shown) > 7
    assert [p for p in patterns if not any(re.fullmatch(p, line) for line in printed)] == []


@pytest.mark.parametrize("job", ["shoal demo", "python -m pytest"])
def test_the_readme_has_one_line_for_each_of_the_two_jobs(job: str) -> None:
    lines = [line for text in blocks(PAGES[0], "sh") for line in text.splitlines()]
    assert sum(line.startswith("python -m pip install ") and line.endswith(f" && {job}") for line in lines) == 1


def test_the_reference_names_all_that_a_policy_can_say() -> None:
    models = [model.model_fields["model"].default for model in explain.MODELS]
    parts: list[Any] = [Column, Options, *explain.MODELS, *BY_KEY.values()]
    fields = {name for part in parts for name in part.model_fields} | set(Policy.model_fields) - {"folder"}
    values = {value for part in (Column, Options, SafeHarbor) for value in _choices(part)}
    points = {field.name for field in dataclasses.fields(Point)}
    names = {*models, *fields, *values, *SEARCHES, *LOSSES, *DISTANCES, *UNITS, *PRESETS, *SWEPT, *points}
    page = read("policy.md")
    spoken = set(re.findall(r'`[\["]*([\w-]+)[\]"]*`', page)) | set(re.findall(r"^### (\w+)$", page, re.MULTILINE))
    spoken |= set(re.findall(r'`"([^\w"]+)"`', page))  # marks
    assert sorted(names - spoken) == []


def _choices(part: Any) -> list[str]:
    given = [value for field in part.model_fields.values() for value in get_args(field.annotation)]
    return [value for one in given for value in (get_args(one) or [one]) if isinstance(value, str)]


SECTIONS = set(re.findall(r"^### ([\w-]+)$", (ROOT / "docs" / "models.md").read_text(encoding="utf-8"), re.MULTILINE))
WITH_SECTION = [model for model in explain.MODELS if model.model_fields["model"].default in SECTIONS]


@pytest.mark.parametrize("model", WITH_SECTION, ids=lambda model: model.model_fields["model"].default)
def test_the_section_of_a_model_says_what_it_takes_reports_and_allows_to_prune(model: Any) -> None:
    name = model.model_fields["model"].default
    (chapter,) = (part for part in read("models.md").split("\n## ") if f"\n### {name}\n" in part)
    section = chapter.split(f"\n### {name}\n", 1)[1].split("\n### ", 1)[0]
    spoken = set(re.findall(r"`(\w+)[^`]*`", section))
    assert sorted({*model.model_fields, model.figure} - {"model", "column"} - spoken) == []
    assert ("`column`" in chapter.split("\n### ", 1)[0]) == ("column" in model.model_fields)
    assert model.merging in section
    assert "*Use it*" in section


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_told_with_what_it_requires_and_where_it_is_written(name: str) -> None:
    page = read("choosing.md")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` "))
    preset = PRESETS[name]
    source, _, rule = preset.citation.rpartition(": ")
    assert source in page
    assert rule in (row if "the same" not in row or ": " in row else page)
    for model in preset.models:
        # maximum risk: the least k whose 1/k does not exceed it
        k = model.k if isinstance(model, KAnonymity) else math.ceil(1 / model.max)  # type: ignore[attr-defined]
        assert f"k = {k} |" in row


def test_the_names_that_can_be_imported_are_told() -> None:
    told = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in shoal.__all__ if f"shoal.{name}" not in told] == []


def test_searches_and_losses_can_all_be_asked_for() -> None:
    assert set(get_args(Algorithm)) == set(SEARCHES)
    assert set(get_args(Objective)) == LOSSES.keys() | WITH_LABEL.keys()


def test_every_command_and_option_is_on_the_page_of_the_command_line() -> None:
    page = read("cli.md")
    commands: dict[str, Any] = get_command(app).commands  # type: ignore[attr-defined]
    assert sorted(re.findall(r"^## shoal (\w+)", page, re.MULTILINE)) == sorted(commands)
    for name, command in commands.items():
        section = page.split(f"## shoal {name}", 1)[1].split("\n## ", 1)[0]
        options = [option for parameter in command.params for option in parameter.opts if option.startswith("-")]
        assert [option for option in options if f"`{option}" not in section] == [], name


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.stem)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target, part in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        goal = page.parent / target if target else page
        assert goal.exists(), target
        assert not part or part in anchors(goal), f"{target}#{part}"


def anchors(page: Path) -> set[str]:
    """Headings as GitHub names them in a link."""
    headings = re.findall(r"^#+ (.+)$", BLOCK.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme_in_two_steps() -> None:
    assert "(docs/index.md)" in PAGES[0].read_text(encoding="utf-8")
    quick_start = read("index.md")
    assert [page.name for page in PAGES[1:] if page.name != "index.md" and f"({page.name}" not in quick_start] == []


def test_every_kind_of_finding_has_a_row() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE)) == tuple(KINDS)


def test_the_page_of_families_places_every_result() -> None:
    page = read("families.md")
    tables = [part.partition("\n## ")[0] for part in page.split("\n## ")[1:3]]
    results = ["integral_privacy", "query", "synthesize", "smc.share", "he.compute", "check_output", *explain.RESULTS]
    for table in tables:
        assert [name for name in results if f"`{name}`" not in table] == []


@pytest.mark.parametrize("page", ["families", "integral_privacy", "result_privacy"])
def test_a_page_shows_what_its_code_prints(page: str) -> None:
    reference = runpy.run_path(str(ROOT / "docs" / "reference.py"))
    ((code, text),) = reference["STEP"].findall(read(f"{page}.md"))
    assert reference["printed"](code) == text
