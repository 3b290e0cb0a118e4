"""The site is built strictly, and is read from disk in a real browser."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from playwright.sync_api import Browser, Page
from sphinx.errors import SphinxError

from browsing import AXE, MISSING, browser  # noqa: F401  (a fixture)

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
NAMES = sorted(page.stem for page in DOCS.glob("*.md"))
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]

pytestmark = pytest.mark.xdist_group("site")


def build(source: Path, output: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", str(DOCS), str(source), str(output)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(DOCS, folder)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[tuple[Page, list[str]]]:  # noqa: F811
    """A page, and whatever it says or asks of the network."""
    page = browser.new_context().new_page()
    page.set_default_timeout(MISSING)
    events: list[str] = []
    page.on("console", lambda message: events.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: events.append(f"error: {error}"))
    page.on("requestfailed", lambda request: events.append(f"missing: {request.url}"))
    page.on("request", lambda request: events.append(request.url) if _foreign(request.url) else None)
    yield page, events
    page.context.close()


def _foreign(url: str) -> bool:
    return not url.startswith(("file:", "data:"))


@pytest.mark.long
def test_every_page_and_schema_is_there(site: Path) -> None:
    assert {page.stem for page in site.glob("*.html")} == {*NAMES, "search"}
    for name, source in {"policy": DOCS / "schemas", "certificate": ROOT / "src" / "shoal" / "report"}.items():
        published = (site / "schemas" / f"{name}.schema.json").read_text(encoding="utf-8")
        assert published == (source / f"{name}.schema.json").read_text(encoding="utf-8")
    for page in site.glob("*.html"):
        for target in re.findall(r'href="(schemas/[^"]+)"', page.read_text(encoding="utf-8")):
            assert (site / target).is_file()


@pytest.mark.long
def test_a_dead_link_a_dead_anchor_and_a_lost_page_stop_the_build(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# Start\n\n[page](nowhere.md) [part](idea.md#nothing)\n", encoding="utf-8")
    (tmp_path / "idea.md").write_text("# The idea\n", encoding="utf-8")
    (tmp_path / "lost.md").write_text("# In no list of pages\n", encoding="utf-8")
    done = build(tmp_path, tmp_path / "out")
    assert done.returncode != 0
    assert re.search(r"index\.md.*'nowhere\.md'", done.stderr)
    assert re.search(r"index\.md.*'nothing'", done.stderr)
    assert re.search(r"lost\.md.*toctree", done.stderr)


def test_a_wrong_figure_stops_the_build() -> None:
    computed = runpy.run_path(str(DOCS / "conf.py"))["computed"]
    assert computed("page", "print(1 + 1)\n", "2\n") == "```python\nprint(1 + 1)\n```\n\n```text\n2\n```"
    with pytest.raises(SphinxError, match=r"page\.md shows\n3\nwhere its code prints\n2\n"):
        computed("page", "print(1 + 1)\n", "3\n")


def test_figures_of_all_pages_are_computed() -> None:
    step = runpy.run_path(str(DOCS / "reference.py"))["STEP"]
    for name in NAMES:
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        shown = re.findall(r"^```python\n(?:(?!```).*\n)*```\n\s*```text$", text, re.MULTILINE)
        assert len(step.findall(text)) == len(shown)


@pytest.mark.parametrize("name", [*NAMES, "search"])
def test_a_page_opens_from_disk(name: str, site: Path, tab: tuple[Page, list[str]]) -> None:
    page, events = tab
    events.clear()
    page.emulate_media(color_scheme="light")
    page.goto((site / f"{name}.html").as_uri())
    assert page.locator("h1").count() == (name != "search")
    assert page.evaluate("[...document.images].filter((image) => !image.naturalWidth).length") == 0
    for width in (360, 1440):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert events == []


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [
        ("index", 360, "light"),
        ("tutorial", 1440, "dark"),
        ("policy", 360, "dark"),
        ("performance", 1440, "light"),
    ],
)
def test_a_page_can_be_read_by_all(name: str, width: int, scheme: Any, site: Path, tab: tuple[Page, list[str]]) -> None:
    page, _ = tab
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto((site / f"{name}.html").as_uri())
    page.evaluate(AXE)
    # preload: axe would fetch the style sheets again, which a page from disk may not.
    found = page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}, preload: false, resultTypes: ['violations']}})")
    assert [(rule["id"], rule["nodes"][0]["html"][:200]) for rule in found["violations"]] == []
    assert any(rule["id"] == "color-contrast" for rule in found["passes"])


def test_the_search_works_from_disk(site: Path, tab: tuple[Page, list[str]]) -> None:
    page, events = tab
    events.clear()
    page.goto((site / "search.html").as_uri() + "?q=skewness")
    page.wait_for_selector("#search-results li a[href*='tutorial.html']")  # results come one after the other
    assert events == []


def test_the_reference_is_what_the_code_says() -> None:
    reference = runpy.run_path(str(DOCS / "reference.py"))
    assert reference["stale"]() == [], "run python docs/reference.py"
    marked = [part for name in reference["PAGES"] for part in _marked(name)]
    assert sorted(marked) == sorted(reference["PARTS"])


def _marked(name: str) -> list[str]:
    return re.findall(r"<!-- code: ([\w -]+) -->", (DOCS / name).read_text(encoding="utf-8"))


def test_the_schema_of_a_policy_accepts_what_the_pages_show_and_nothing_else() -> None:
    schema = json.loads((DOCS / "schemas" / "policy.schema.json").read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)  # once: jsonschema.validate would each time
    validate = kind(schema).validate
    rest = {"columns": {"age": {"role": "quasi"}}}
    shown = re.findall(
        r"^```toml\n(.*?)^```$", (DOCS / "policy.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert len(shown) > 10
    for text in shown:
        validate(rest | tomllib.loads(text))
    for wrong in (
        {"columns": {"age": {"role": "quasy"}}},
        {"columns": {"age": {"role": "quasi", "hierarchy": {}}}},
        {"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": ["5"]}}}},
        rest | {"require": [{"k": 5}]},
        rest | {"require": [{"model": "k-anonymity", "k": 0}]},
        rest | {"release": {"algorithm": "magic"}},
        rest | {"folder": "."},
    ):
        with pytest.raises(jsonschema.ValidationError):
            validate(wrong)
