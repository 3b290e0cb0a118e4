"""Draw the pictures of web.md: the page over the demo, as a browser shows it. Needs Chromium.

python docs/web_pictures.py [FOLDER]
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from shoal.web.server import serve
from shoal.web.workspace import Workspace

PICTURES = Path(__file__).parent / "pictures"


def draw(folder: Path, width: int = 1000, height: int = 750, scheme: Any = "light") -> None:
    """Walk through the demo and keep a picture of each screen."""
    workspace = Workspace([Path(tempfile.mkdtemp())])
    ready = threading.Event()
    addresses: list[str] = []

    def answering(address: str) -> None:
        addresses.append(address)
        ready.set()

    options = {"browser": False, "ready": answering}
    server = threading.Thread(target=serve, args=(workspace,), kwargs=options, daemon=True)
    server.start()
    ready.wait()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.set_default_timeout(300_000)
        page = context.new_page()

        def keep(name: str) -> None:
            page.wait_for_load_state("networkidle")
            page.screenshot(path=folder / f"web-{name}.png")

        page.goto(addresses[0])
        page.get_by_role("button", name="Open the demo").click()
        page.get_by_role("link", name="Continue to the columns").click()
        page.get_by_role("heading", name="Roles of the columns").wait_for()
        keep("columns")
        page.get_by_role("group", name="job").get_by_role("link").click()
        page.get_by_text("Levels now").wait_for()
        keep("hierarchy")
        page.get_by_role("link", name="Requirements").click()
        page.get_by_text("Original table").first.wait_for()
        keep("promises")
        page.get_by_role("link", name="Run", exact=True).click()
        page.get_by_role("button", name="Start").click()
        page.get_by_role("heading", name="The release", exact=True).wait_for()
        keep("explore")
        page.get_by_role("heading", name="Cost of other requirements").click()  # which unfolds it
        page.get_by_role("button", name="Compare", exact=True).click()
        page.get_by_role("group", name="Cost of other requirements").wait_for()
        page.locator("#frontier-h").scroll_into_view_if_needed()
        keep("frontier")
        page.get_by_role("button", name="Attack the release").click()
        page.get_by_role("link", name="Read their stories").click()
        page.get_by_role("heading", name="Who would be re-identified").wait_for()
        page.get_by_role("button", name="Show their values").click()  # the people of the demo do not exist
        page.get_by_text("What is known").first.wait_for()
        keep("stories")
        page.get_by_role("link", name="Publish", exact=True).click()
        page.get_by_role("heading", name="Publish", exact=True).wait_for()
        keep("publish")
        browser.close()
    workspace.stopping.set()
    server.join()


if __name__ == "__main__":
    draw(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
