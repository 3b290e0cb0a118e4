"""The page in a real browser: the whole path by mouse and by keyboard, readable by everybody, and talking to nobody."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browsing import Tab, browser  # noqa: F401  (a fixture)
from serving import NASTY, Served, served

WIDE = 300
TABLE = "age,zip,sex,<img src=x onerror=alert(1)>,disease,name\n" + "".join(
    f"{20 + i % 60},{35100 + i % 40},{'mf'[i % 2]},{{{{7*7}}}}{i % 4},{['flu', 'cold', '=cmd'][i % 3]},person {i}\n"
    for i in range(400)
)
LOOKS = [(400, "dark"), (1280, "light")]  # another where a table is strange: test_long_walks.py


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "people.csv").write_text(TABLE)
    names = [f"c{i} {'<b>' if i % 7 == 0 else ''}" for i in range(WIDE)]
    rows = [",".join(str((i * j) % (2 + j % 5)) for j in range(WIDE)) for i in range(40)]
    (folder / "wide.csv").write_text("\n".join([",".join(names), *rows]) + "\n")
    (folder / "nasty.csv").write_text(NASTY)
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


def walk(tab: Tab, looks: list[tuple[int, str]]) -> None:
    """Open, choose roles, edit a hierarchy, promise, run, take another node, publish."""
    page = tab.page
    tab.require_readable(looks)
    tab.open("people.csv")
    tab.heading("people.csv")
    tab.follow("Show the first rows")
    tab.require_readable(looks)
    tab.follow("Continue to the columns")
    tab.heading("Roles of the columns")
    # By mouse, and by keyboard: arrows move within the roles of a column.
    page.get_by_role("group", name="disease").get_by_label("Sensitive").check()
    page.get_by_role("group", name="sex").get_by_label("Plain").focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert page.get_by_role("group", name="sex").get_by_label("Quasi-identifier").is_checked()
    page.get_by_role("group", name="name", exact=True).get_by_label("Identifier identifies").check()
    tab.press("Save the roles")
    tab.require_readable(looks)
    page.get_by_role("group", name="zip").get_by_role("link").click()
    tab.heading("Hierarchy of zip")
    page.get_by_label("Width on each level, with commas").fill("10, 20")
    page.get_by_text("Preview").wait_for()  # as one types
    tab.press("Use this hierarchy")
    page.get_by_text("Levels now").wait_for()
    tab.require_readable(looks)
    groups = page.locator("fieldset.group").count()
    page.locator("fieldset.group .member input").first.check()
    page.get_by_label("or to a new group").fill("<script>alert(2)</script>")
    tab.press("Move")
    page.wait_for_url("**level=1")
    assert page.locator("fieldset.group").count() == groups + 1
    member = page.locator("fieldset.group .member").first
    member.drag_to(page.locator("fieldset.group").nth(1))
    expect(page.locator("fieldset.group")).to_have_count(groups)
    tab.follow("Columns")
    tab.press("Save and continue")
    tab.heading("Requirements on the release")
    page.get_by_label("At least", exact=True).fill("4")
    tab.press("Require this number")
    page.get_by_text("Original table").first.wait_for()
    tab.require_readable(looks)
    tab.follow("Continue to the run")
    tab.choose_algorithm("optimal")
    tab.require_readable(looks)
    tab.press("Start")
    tab.heading("The release")
    tab.require_readable(looks)
    before = page.url
    page.locator("#lattice-t ~ g a:has(path[fill='#0b5cad'])").first.click()  # a node of the lattice
    page.get_by_role("dialog").get_by_role("button", name="Make this release").click()
    tab.leave(before)
    page.get_by_text("Compared with the release before").wait_for()
    page.get_by_role("link", name="Back to that one").click()
    first = page.url
    page.wait_for_selector("#verdict")
    tab.unfold("Cost of other requirements")
    tab.press("Compare")
    points = page.get_by_role("group", name="Cost of other requirements").get_by_role("link")
    points.first.wait_for()
    tab.require_readable(looks)
    points.first.focus()
    page.keyboard.press("Tab")  # from point to point
    chosen = points.nth(1)
    expect(chosen).to_be_focused()
    row = chosen.get_attribute("href")
    assert row is not None
    assert page.locator(f"tr{row} th").inner_text().split(",")[0] in (chosen.get_attribute("aria-label") or "")
    page.keyboard.press("Enter")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    points.last.click()  # drawn last: on top
    page.get_by_role("dialog").get_by_role("button", name="Make this release").click()
    tab.leave(first)
    page.wait_for_selector("#verdict")
    taken = page.url
    tab.unfold("Nodes of the lattice")
    page.get_by_role("button", name="Make this release").first.wait_for()
    safe = page.locator("tr", has=page.locator(".holds")).get_by_role("button").first
    safe.click()
    tab.leave(taken)
    page.wait_for_selector("#verdict, .problem")
    tab.press("Attack the release")
    tab.follow("Read their stories")
    tab.require_readable(looks)
    tab.press("Show their values")
    page.get_by_text("What is known").first.wait_for()
    tab.require_readable(looks)
    tab.follow("Back to the release")
    page.get_by_text("All attacks with their figures").click()
    page.get_by_text("singling out").first.wait_for()
    tab.follow("Records before and after")
    tab.require_readable(looks)
    tab.follow("Record 1")
    page.get_by_text("records look like this one in the release").wait_for()
    tab.follow("Back to the release")
    tab.follow("Continue to publish")
    for box in page.get_by_role("checkbox").all():
        box.check()
    tab.require_readable(looks)
    for box in page.get_by_role("checkbox").all():
        box.check()
    tab.press("Write the files")
    page.get_by_role("link", name="release.csv").wait_for()
    tab.require_readable(looks)
    with page.expect_download() as download:
        page.get_by_role("link", name="release.csv").click()
    sent = Path(download.value.path()).read_bytes()
    run = tab.served.workspace.runs[max(tab.served.workspace.runs)]
    assert sent == run.files["release.csv"].read_bytes()
    page.go_back()
    page.go_back()
    tab.heading("The release")


def test_the_whole_path_by_mouse_and_keyboard(browser: Browser, page: Served) -> None:  # noqa: F811
    tab = Tab(browser, page)
    walk(tab, LOOKS)
    tab.require_calm()
    tab.context.close()


@pytest.mark.parametrize("name", ["nasty.csv", "wide.csv"])
def test_strange_tables_run_no_script_and_fit_the_page(browser: Browser, page: Served, name: str) -> None:  # noqa: F811
    tab = Tab(browser, page)
    tab.open(name)
    tab.follow("Show the first rows")
    tab.page.get_by_text("First rows").wait_for()
    tab.follow("Continue to the columns")
    tab.heading("Roles of the columns")
    assert tab.page.get_by_role("group").count() >= (WIDE if name == "wide.csv" else 5)
    if name != "wide.csv":  # axe takes minutes for so many fields, which all are alike
        tab.require_readable([(400, "dark")])
    tab.page.set_viewport_size({"width": 400, "height": 900})
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 400
    tab.require_calm()
    tab.context.close()


def test_a_run_is_cancelled_wherever_it_is_and_the_next_one_works(
    browser: Browser,  # noqa: F811
    page: Served,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(*_: object, **__: object) -> None:
        while True:  # it never tells its progress
            sum(range(1000))

    tab = Tab(browser, page)
    tab.open("people.csv")
    tab.follow("Continue to the columns")
    tab.press("Save and continue")
    tab.follow("Continue to the run")
    tab.choose_algorithm("optimal")
    runs, kept = len(page.workspace.runs), sorted(page.workspace.folder.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr("shoal.pipeline.anonymize", endless)
        tab.start("Start")
        tab.heading("Searching for the release")
        tab.require_readable(LOOKS[:1])
        tab.click("Cancel")  # the page may notice the end by itself before the answer comes
        tab.page.get_by_text("Cancelled").wait_for()
        tab.require_readable(LOOKS[:1])
    assert len(page.workspace.runs) == runs
    assert sorted(page.workspace.folder.rglob("*")) == kept
    tab.page.get_by_role("link", name="Back", exact=False).first.click()
    tab.press("Start")
    tab.heading("The release")
    tab.require_calm()
    tab.context.close()


def test_a_page_that_is_gone_is_readable_and_leads_back(browser: Browser, page: Served) -> None:  # noqa: F811
    tab = Tab(browser, page)
    tab.page.goto(tab.page.url + "nowhere")
    tab.heading("Something went wrong")
    tab.require_readable(LOOKS[:1])
    tab.follow("Go back")
    tab.page.get_by_role("button", name="people.csv", exact=True).wait_for()
    tab.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_printed_on_white_and_without_buttons(browser: Browser, page: Served, scheme: Any) -> None:  # noqa: F811
    tab = Tab(browser, page)
    tab.page.emulate_media(media="print", color_scheme=scheme)
    look = "getComputedStyle(document.body)"
    assert tab.page.evaluate(f"{look}.backgroundColor") == "rgb(255, 255, 255)"
    assert tab.page.evaluate(f"{look}.color") == "rgb(27, 36, 48)"
    assert not tab.page.locator("button:visible").count()
    tab.context.close()


def test_it_works_without_scripts(browser: Browser, page: Served) -> None:  # noqa: F811
    tab = Tab(browser, page, java_script_enabled=False)
    tab.page.get_by_label("First line of a text file").first.select_option("names")
    tab.press("people.csv")  # the progress reloads itself
    tab.follow("Continue to the columns")
    tab.heading("Roles of the columns")
    assert tab.events == []
    tab.context.close()


def test_another_server_on_this_computer_does_not_get_the_cookie(browser: Browser, page: Served) -> None:  # noqa: F811
    """Nor can a page of it send a form of ours, or read what we answer."""
    seen: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers.get('Cookie', '')}")
            body = b"<!doctype html><title>other</title>"
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    other = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    tab = Tab(browser, page)
    room = page.user().room
    before = len(page.workspace.tables)
    tab.page.goto(f"http://127.0.0.1:{other.server_port}/")
    assert tab.page.title() == "other"
    assert not any("shoal" in line for line in seen)
    answers = tab.page.evaluate(
        """async (address) => {
          const found = [];
          const form = {method: 'POST', body: 'demo=1'};
          for (const given of [{}, form, {mode: 'no-cors', ...form}]) {
            const asked = fetch(address, {credentials: 'include', ...given});
            found.push(await asked.then((answer) => answer.status, () => -1));
          }
          return found;
        }""",
        f"http://{page.host}{room}/open",
    )
    assert set(answers) <= {-1, 0}  # nothing that it could read
    assert len(page.workspace.tables) == before
    other.shutdown()
    other.server_close()
    tab.context.close()
