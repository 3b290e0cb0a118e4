"""From opening a table to its release, in a real browser, over tables that are strange, wide or long."""

import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import Browser

from browsing import Tab, browser  # noqa: F401  (a fixture)
from examples import THOROUGH
from serving import NASTY, Served, served

WIDE, LONG = 300, 1_000_000
LOOKS = [(1280, "dark")]  # others where a table is plain: test_browser.py


@dataclass(frozen=True)
class Walked:
    """A table, and which of its columns play a part."""

    name: str
    quasi: Sequence[str]
    sensitive: str
    looks: Sequence[Any] = ()


TABLES = [  # the wide one in a thorough run: test_browser.py opens it too
    Walked("nasty.csv", ("<script>alert(1)</script>", "{{7*7}}", "=cmd|' /C calc'!A0"), "disease", LOOKS),
    Walked("wide.csv", ("c4", "c7 <b>", "c299"), "c3"),
    Walked("long.csv", ("age", "zip", "sex"), "disease"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "nasty.csv").write_text(NASTY)
    names = [f"c{i}{' <b>' if i % 7 == 0 else ''}" for i in range(WIDE)]
    rows = [",".join(str((i * j) % (2 + j % 5)) for j in range(WIDE)) for i in range(60)]
    (folder / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    draw = np.random.default_rng(0)
    people = {
        "age": draw.integers(18, 95, LONG),
        "zip": draw.integers(35100, 35200, LONG),
        "sex": draw.choice(["female", "male"], LONG),
        "disease": draw.choice(["flu", "cold", "asthma", "none"], LONG),
    }
    pa.csv.write_csv(pa.table(people), folder / "long.csv")
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


def endless(*_: object, **__: object) -> None:
    while True:
        sum(range(1000))


@pytest.mark.parametrize("table", TABLES if THOROUGH else TABLES[::2], ids=lambda table: table.name)
def test_from_open_to_a_release_that_is_the_command_lines(
    browser: Browser,  # noqa: F811
    page: Served,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: Walked,
) -> None:
    tab = Tab(browser, page)
    here, looks = tab.page, list(table.looks)

    def role(column: str, name: str) -> Any:
        return here.get_by_role("group", name=column, exact=True).get_by_label(name)

    tab.open(table.name)
    tab.heading(table.name)
    tab.require_readable(looks)
    tab.follow("Continue to the columns")
    tab.heading("Roles of the columns")
    here.locator("input[value=plain]").evaluate_all("all => all.forEach((one) => { one.checked = true; })")
    role(table.quasi[0], "Quasi-identifier").check()  # by mouse
    for column in table.quasi[1:]:  # by keyboard: arrows move within the roles of a column
        role(column, "Plain").focus()
        here.keyboard.press("ArrowUp")
        here.keyboard.press("ArrowUp")
        assert role(column, "Quasi-identifier").is_checked()
    role(table.sensitive, "Sensitive").check()
    tab.press("Save the roles")
    tab.heading("Roles of the columns")
    tab.require_readable(looks)
    here.get_by_role("group", name=table.quasi[0], exact=True).get_by_role("link").click()
    tab.heading(f"Hierarchy of {table.quasi[0]}")
    here.get_by_label("Width on each level, with commas").fill("10, 20")
    tab.press("Use this hierarchy")
    here.get_by_text("Levels now").wait_for()
    groups = here.locator("fieldset.group").count()
    here.locator("fieldset.group .member input").first.check()
    here.get_by_label("or to a new group").fill("{{7*7}}")
    tab.press("Move")
    here.wait_for_url("**level=1")
    assert here.locator("fieldset.group").count() >= groups
    tab.require_readable(looks)
    tab.follow("Columns")
    tab.press("Save and continue")
    here.get_by_label("At least", exact=True).fill("3")
    tab.press("Require this number")
    here.get_by_text("Original table").first.wait_for()
    tab.require_readable(looks)
    tab.follow("Continue to the run")
    tab.choose_algorithm("optimal")
    with monkeypatch.context() as patch:
        patch.setattr("shoal.pipeline.anonymize", endless)
        tab.start("Start")
        tab.heading("Searching for the release")
        tab.require_readable(looks)
        tab.click("Cancel")  # the page may notice the end by itself before the answer comes
        here.get_by_text("Cancelled").wait_for()
        tab.require_readable(looks)
    here.get_by_role("link", name="Back", exact=False).first.click()
    tab.press("Start")
    tab.heading("The release")
    before = here.url
    tab.unfold("Nodes of the lattice")
    here.locator("tr", has=here.locator(".holds")).get_by_role("button").first.click()  # another node
    tab.leave(before)
    here.get_by_text("Compared with the release before").wait_for()
    tab.require_readable(looks)
    tab.follow("Continue to publish")
    for box in here.get_by_role("checkbox").all():
        box.check()
    tab.press("Write the files")
    here.get_by_role("link", name="release.csv").wait_for()
    tab.require_readable(looks)
    for name in ("release.csv", "policy.toml"):
        with here.expect_download() as download:
            here.get_by_role("link", name=name).click()
        (tmp_path / name).write_bytes(Path(download.value.path()).read_bytes())
    sent = (tmp_path / "release.csv").read_bytes()
    (tmp_path / "release.csv").unlink()
    shown = [line for line in here.locator("pre").first.inner_text().splitlines() if line.startswith("shoal anonymize")]
    command = [sys.executable, "-m", *shlex.split(shown[0])]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "release.csv").read_bytes() == sent
    tab.require_calm()
    tab.context.close()
