"""A real browser for the tests that open pages, and what must be true of every page."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, sync_playwright

from shoal.report.html import SECTIONS

if TYPE_CHECKING:
    from serving import Served

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

PATIENCE = 600.0  # seconds: longer than any job takes, on any machine
MISSING = 60_000  # milliseconds after which an element of a page that has arrived is missing

# Elements whose own words are cut off or stick out of the page, scrolling tables aside.
CLIPPED = """() => {
  const found = [];
  for (const element of document.querySelectorAll('body *:not(svg *)')) {
    const style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    if (element.closest('.table, details:not([open])') || element.matches('.skip')) continue;
    const words = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!words) continue;
    if (box.right > innerWidth + 1 || box.left < -1) found.push(element.outerHTML.slice(0, 120));
    if (style.overflow !== 'visible' && element.scrollWidth > element.clientWidth + 1) {
      found.push(element.outerHTML.slice(0, 120));
    }
  }
  for (const text of document.querySelectorAll('svg.chart text')) {
    const box = text.getBoundingClientRect();
    if (box.width && (box.right > innerWidth + 1 || box.left < -1)) found.push(text.textContent);
  }
  for (const table of document.querySelectorAll('.table')) {
    if (table.scrollWidth > table.clientWidth + 1 && table.tabIndex !== 0) found.push('a table that no key scrolls');
  }
  return found;
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium on this machine: the reports were not opened")
        pytest.skip("no Chromium: install it (apt-get install chromium) to open the reports in a browser")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"], timeout=MISSING)
        yield found
        found.close()


def opened(browser: Browser, path: Path, width: int, scheme: Any) -> tuple[Any, list[str]]:
    """The page, and whatever it said, asked for or popped up."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    context.set_default_timeout(MISSING)
    page = context.new_page()
    events: list[str] = []
    page.on("console", lambda message: events.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: events.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (events.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: events.append(request.url))
    page.goto(path.as_uri())
    return page, events


def require_readable(page: Any, width: int) -> None:
    """All sections that are linked are there, no text is cut off, and axe-core finds nothing against WCAG AA."""
    linked = page.evaluate("[...document.querySelectorAll('nav a')].map((a) => a.getAttribute('href').slice(1))")
    assert {"columns", "requirements", "experts"} <= set(linked) <= set(SECTIONS)
    for section in linked:
        assert page.locator(f"h2#{section}").is_visible()
    assert page.locator("#verdict").inner_text().startswith("This release satisfies its policy")
    assert page.locator("script").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
    assert page.evaluate(CLIPPED) == []
    page.evaluate(AXE)
    rules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
    found = page.evaluate(f"axe.run({{runOnly: {rules}, resultTypes: ['violations']}})")  # of the others, one node each
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == []
    assert any(passed["id"] == "color-contrast" for passed in found["passes"])


class Tab:
    """A page that remembers what it said and asked for."""

    def __init__(self, browser: Browser, served: Served, **given: Any) -> None:
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **given)
        self.context.set_default_timeout(MISSING)
        self.page = self.context.new_page()
        self.events: list[str] = []
        self.asked: list[str] = []
        self.page.on("console", lambda message: self.events.append(f"console: {message.text}"))
        self.page.on("pageerror", lambda error: self.events.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.events.append("dialog"), dialog.dismiss()))
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.served = served
        self.page.goto(served.new_address())
        self.page.wait_for_selector("nav .steps")
        self.page.wait_for_load_state("load")  # with its style sheet

    def open(self, name: str) -> None:
        """Open a table from the list, whose first line has the names of its columns."""
        self.page.get_by_label("First line of a text file").first.select_option("names")
        self.press(name)

    def press(self, name: str) -> None:
        """Press a button and wait for the page that it leads to, behind any job."""
        self.start(name)
        self.finish()

    def start(self, name: str) -> None:
        """Press a button and wait for the next page, which may show the progress of a job."""
        with self.page.expect_navigation():
            self.click(name)

    def finish(self) -> None:
        """Wait for the end of the job whose progress is shown, and require that it did not fail."""
        end = time.monotonic() + PATIENCE
        while self.page.locator("#job").count():
            assert time.monotonic() < end, self.page.url
            self.page.wait_for_timeout(100)
        self.page.wait_for_load_state("load")
        problem = self.page.locator(".problem[role=alert]")
        assert not problem.count(), problem.inner_text()

    def click(self, name: str) -> None:
        """Press a button without waiting for the page that it leads to."""
        self.page.get_by_role("button", name=name, exact=True).first.click()

    def choose_algorithm(self, name: str) -> None:
        """Choose the search on the screen of the run."""
        self.page.get_by_text("Expert options").click()
        self.page.locator("select[name=algorithm]").select_option(name)
        self.press("Save the options")

    def unfold(self, heading: str) -> None:
        """Open a section that is folded in."""
        section = self.page.locator("details", has=self.page.get_by_role("heading", name=heading))
        section.evaluate("(section) => { section.open = true; }")

    def follow(self, name: str) -> None:
        with self.page.expect_navigation():
            self.page.get_by_role("link", name=name, exact=True).first.click()

    def leave(self, address: str) -> None:
        """Wait for another page. Not by a function in the page, which the content policy would refuse."""
        old = address.partition("#")[0]
        self.page.wait_for_url(lambda url: url.partition("#")[0] != old, wait_until="commit")

    def heading(self, text: str) -> None:
        """Wait for the page with this heading."""
        self.page.get_by_role("heading", name=text, level=1, exact=True).wait_for()

    def require_calm(self) -> None:
        """No script failed, nothing popped up, nobody else was asked."""
        assert self.events == []
        assert [url for url in self.asked if not url.startswith(f"http://{self.served.host}/")] == []

    def require_readable(self, looks: list[tuple[int, str]]) -> None:
        for width, scheme in looks:
            self.page.set_viewport_size({"width": width, "height": 900})
            self.page.emulate_media(color_scheme=scheme)
            assert self.page.evaluate("document.documentElement.scrollWidth") <= width, self.page.url
            self.page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            self.page.evaluate(AXE)
            found = self.page.evaluate(
                "axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'], "
                "resultTypes: ['violations']})"
            )
            assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == [], (self.page.url, width)
        self.page.set_viewport_size({"width": 1280, "height": 900})
