"""How quickly the page answers, and how quickly somebody has a first release of a new table by clicking alone.

python benchmarks/web.py [RECORDS]  # the first screen of `shoal web`, and every screen over a large table
python benchmarks/web.py wide       # the same over 300 columns
python benchmarks/web.py clicks     # from opening to the release in Chromium (pip install statsmodels playwright)
"""

from __future__ import annotations

import http.client
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.csv

RECORDS = 1_000_000
COLUMNS, RECORDS_OF_WIDE = 300, 2_000
PACE = 3.0  # seconds that a person takes for a click, with what is read and decided before it
TABLES = ("fair", "heart", "anes96", "modechoice")  # of statsmodels, as somebody brings them: nothing is prepared


def table(path: Path, records: int) -> None:
    draw = np.random.default_rng(0)
    columns = {
        "age": draw.integers(18, 95, records),
        "zip": draw.integers(35100, 35200, records),
        "sex": draw.choice(["female", "male"], records),
        "job": draw.choice([f"job {i}" for i in range(30)], records),
        "disease": draw.choice(["flu", "cold", "asthma", "none"], records),
        "name": np.char.add("person ", np.arange(records).astype(str)),
    }
    pyarrow.csv.write_csv(pa.table(columns), path)


class Browser:
    def __init__(self, address: str) -> None:
        self.host, _, token = address.removeprefix("http://").partition("/?token=")
        self.cookie = self.room = self.csrf = ""
        _, headers, text = self.request("GET", f"/?token={token}")
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.room = re.findall(r'href="(/[0-9a-f]+)/', text)[0]
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', self.request("GET", f"{self.room}/")[2])[0]

    def request(self, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(self.host)
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        reply = (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read().decode(),
        )
        connection.close()
        return reply

    def timed(self, title: str, path: str, **fields: str) -> str:
        """The first answer to a click, which may be the progress of a job; then wait for that. Where it leads."""
        begin = time.perf_counter()
        body = urlencode({"csrf": self.csrf, **fields}) if fields else None
        status, headers, text = self.request("POST" if fields else "GET", self.room + path, body)
        where = self.room + path
        if status == 303:
            where = headers["location"].partition("#")[0]
            status, headers, text = self.request("GET", where)
        answered = time.perf_counter() - begin
        while status == 303 or 'id="job"' in text:
            where = headers.get("location", where).partition("#")[0]
            time.sleep(0.02)
            status, headers, text = self.request("GET", where)
        assert status == 200, (title, status)
        print(f"{title:<24}{1000 * answered:>8,.0f} ms{time.perf_counter() - begin:>10.1f} s", flush=True)
        return where.removeprefix(self.room)


def wide_table(path: Path, records: int) -> None:
    draw = np.random.default_rng(0)
    columns = {f"column {i}": draw.integers(0, 2 + i % 40, records) for i in range(COLUMNS)}
    pyarrow.csv.write_csv(pa.table(columns), path)


@contextmanager
def serving(folder: str) -> Iterator[str]:
    """The first address of `shoal web` over a folder."""
    command = [sys.executable, "-m", "shoal", "web", "--no-browser", folder]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    yield server.stderr.readline().partition(": ")[2].strip()
    server.terminate()
    print(f"stopped with exit code {server.wait()}")


def screens(records: int, make: Callable[[Path, int], None], last: int) -> None:
    """Every screen of a table; ``last`` is the number of a column to look at beside the first."""
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder) / "people.csv", records)
        begin = time.perf_counter()
        with serving(folder) as address:
            browser = Browser(address)
            print(f"first screen of shoal web: {time.perf_counter() - begin:.2f} s")
            print(f"{records:,} records       first answer        done")
            draft = browser.timed("open", "/open", data="people.csv").split("/")[2]
            for screen in ("table", "columns", "column/0", f"column/{last}", "promises", "run"):
                browser.timed(screen, f"/d/{draft}/{screen}")
            browser.timed("picture of a column", f"/d/{draft}/bars/0.svg")
            if make is wide_table:  # three that a register has; the others are left alone
                roles = {f"role-{i}": "quasi" if i < 3 else "plain" for i in range(COLUMNS)}
                draft = browser.timed("roles", f"/d/{draft}/columns", next="columns", **roles).split("/")[2]
            purpose = {"action": "purpose", "purpose": "tables"}
            draft = browser.timed("purpose: tables", f"/d/{draft}/run", **purpose).split("/")[2]
            run = browser.timed("run", f"/d/{draft}/run", action="start").split("/")[2]
            for screen in ("explore", "rows", "publish"):
                browser.timed(screen, f"/runs/{run}/{screen}")
            browser.timed("compare", f"/runs/{run}/sweep", all="1")


def clicks() -> None:
    """From the table in the list to the release on disk, taking what is proposed."""
    import statsmodels.api as sm
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name in TABLES:
            getattr(sm.datasets, name).load_pandas().data.to_csv(Path(folder) / f"{name}.csv", index=False)
        with serving(folder) as address:
            launched = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            page = launched.new_page()
            page.set_default_timeout(600_000)
            page.goto(address)
            for name in TABLES:
                page.get_by_role("link", name="shoal", exact=True).click()
                begin, n = time.perf_counter(), 0
                way = [("button", f"{name}.csv"), ("link", "Continue to the columns"), ("button", "Save and continue")]
                way += [("link", "Continue to the run"), ("button", "Start"), ("link", "Continue to publish")]
                for role, text in way:
                    page.get_by_role(role, name=text, exact=True).first.click()  # type: ignore[arg-type]
                    n += 1
                page.get_by_role("button", name="Write the files").wait_for()
                for box in page.get_by_role("checkbox").all():
                    box.check()
                    n += 1
                page.get_by_role("button", name="Write the files").click()
                with page.expect_download() as download:
                    page.get_by_role("link", name="release.csv").click()
                n += 2
                size = Path(download.value.path()).stat().st_size
                machine = time.perf_counter() - begin
                print(
                    f"{name:<12}{n} clicks, {machine:5.1f} s of the machine, {machine + PACE * n:5.1f} s "
                    f"with {PACE:g} s for each click, {size:,} bytes of release",
                    flush=True,
                )
            launched.close()


if __name__ == "__main__":
    size_argument = sys.argv[1] if len(sys.argv) > 1 else str(RECORDS)
    if size_argument == "clicks":
        clicks()
    elif size_argument == "wide":
        screens(RECORDS_OF_WIDE, wide_table, COLUMNS - 1)
    else:
        screens(int(size_argument), table, 5)
