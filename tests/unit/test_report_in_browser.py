"""Reports opened in a real browser: nothing runs, nothing is fetched, everything can be read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from playwright.sync_api import Browser

import shoal
from browsing import browser, opened, require_readable
from demonstrations import Demonstration
from shoal.policy import Policy

__all__ = ["browser"]  # a fixture

SCRIPT = "<script>alert(1)</script>"
LINK = '=HYPERLINK("http://example.org","x")'


@pytest.fixture(scope="module")
def pages(demonstration: Demonstration, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    hostile = pa.table({
        SCRIPT: [SCRIPT, LINK, "<img src=x onerror=alert(1)>", "</svg></title>"] * 10,
        "a very long name of a column that nobody would ever write but somebody will": ["x" * 200, "y" * 200] * 20,
        "disease": [SCRIPT, LINK, "</style>", "javascript:alert(1)", "w" * 150] * 8,
    })  # fmt: skip
    first, second, third = hostile.column_names
    asked = Policy.of({
        "columns": {first: {"role": "quasi"}, second: {"role": "quasi"}, third: {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
    })  # fmt: skip
    release = shoal.anonymize(hostile, asked).attacked()
    release.report(folder / "hostile.html", frontier=shoal.frontier(hostile, asked, k=[2, 3, 5, 100]))
    mixed = Policy.of({**asked.model_dump(mode="json", exclude_none=True), "release": {"algorithm": "mondrian"}})
    shoal.anonymize(hostile, mixed).report(folder / "mixed.html")
    return {name: (demonstration.folder if name == "demo" else folder) / path for name, path in PLACES.items()}


PLACES = {"demo": "report.html", "hostile": "hostile.html", "mixed": "mixed.html"}


NARROW, WIDE = (360, "light"), (1440, "dark")


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [(name, *look) for name in PLACES for look in (NARROW, WIDE)],
)
def test_a_report_in_a_browser(browser: Browser, pages: dict[str, Path], name: str, width: int, scheme: str) -> None:
    page, events = opened(browser, pages[name], width, scheme)
    assert events == [pages[name].as_uri()]  # the file itself, and nothing else
    require_readable(page, width)
    page.context.close()


def test_colours_of_the_charts_change_with_the_page(browser: Browser, pages: dict[str, Path]) -> None:
    seen = {}
    for scheme in ("light", "dark"):
        page, _ = opened(browser, pages["demo"], 1440, scheme)
        seen[scheme] = page.evaluate("getComputedStyle(document.querySelector('.chart [fill=\"#0b5cad\"]')).fill")
        page.context.close()
    assert seen == {"light": "rgb(11, 92, 173)", "dark": "rgb(124, 184, 255)"}


@pytest.mark.parametrize("name", PLACES)
def test_nothing_is_cut_off_on_paper(browser: Browser, pages: dict[str, Path], name: str) -> None:
    page, _ = opened(browser, pages[name], 680, "dark")  # A4 less its margins
    page.emulate_media(media="print")
    cut = "[...document.querySelectorAll('.table, figure')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    assert page.evaluate(cut) == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('nav')).display") == "none"
    page.context.close()


def test_the_sections_are_reached_by_keyboard(browser: Browser, pages: dict[str, Path]) -> None:
    page, _ = opened(browser, pages["demo"], 360, "light")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "table"  # which a key scrolls
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('nav') !== null")
    page.keyboard.press("Enter")
    page.wait_for_url("**#columns")
    page.context.close()
