"""How quickly the page answers: the first screen of `shoal web`, and every screen over a large table.

python benchmarks/web.py [RECORDS]
"""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pyarrow as pa
import pyarrow.csv

RECORDS = 1_000_000


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
        _, headers, text = self.ask("GET", f"/?token={token}")
        self.cookie = headers["set-cookie"].partition(";")[0]
        self.room = re.findall(r'href="(/[0-9a-f]+)/', text)[0]
        self.csrf = re.findall(r'name="csrf" value="([^"]+)"', self.ask("GET", f"{self.room}/")[2])[0]

    def ask(self, method: str, path: str, body: str | None = None) -> tuple[int, dict[str, str], str]:
        connection = http.client.HTTPConnection(self.host)
        headers = {"Cookie": self.cookie, "Origin": f"http://{self.host}"}
        headers |= {"Content-Type": "application/x-www-form-urlencoded"} if body is not None else {}
        connection.request(method, path, body, headers)
        found = connection.getresponse()
        told = found.status, {name.lower(): value for name, value in found.getheaders()}, found.read().decode()
        connection.close()
        return told

    def timed(self, what: str, path: str, **fields: str) -> str:
        """The first answer to a click, which may be the progress of a job; then wait for that. Where it leads."""
        begin = time.perf_counter()
        body = urlencode({"csrf": self.csrf, **fields}) if fields else None
        status, headers, text = self.ask("POST" if fields else "GET", self.room + path, body)
        where = self.room + path
        if status == 303:
            where = headers["location"].partition("#")[0]
            status, headers, text = self.ask("GET", where)
        answered = time.perf_counter() - begin
        while status == 303 or 'id="job"' in text:
            where = headers.get("location", where).partition("#")[0]
            time.sleep(0.02)
            status, headers, text = self.ask("GET", where)
        assert status == 200, (what, status)
        print(f"{what:<24}{1000 * answered:>8,.0f} ms{time.perf_counter() - begin:>10.1f} s", flush=True)
        return where.removeprefix(self.room)


def main(records: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        table(Path(folder) / "people.csv", records)
        begin = time.perf_counter()
        command = [sys.executable, "-m", "shoal", "web", "--no-browser", folder]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert server.stderr is not None
        browser = Browser(server.stderr.readline().partition(": ")[2].strip())
        print(f"first screen of shoal web: {time.perf_counter() - begin:.2f} s")
        print(f"{records:,} records       first answer        done")
        draft = browser.timed("open", "/open", data="people.csv").split("/")[2]
        for screen in ("table", "columns", "column/0", "column/5", "promises", "run"):
            browser.timed(screen, f"/d/{draft}/{screen}")
        browser.timed("picture of a column", f"/d/{draft}/bars/0.svg")
        draft = browser.timed("purpose: tables", f"/d/{draft}/run", action="purpose", purpose="tables").split("/")[2]
        run = browser.timed("run", f"/d/{draft}/run", action="start").split("/")[2]
        for screen in ("explore", "rows", "publish"):
            browser.timed(screen, f"/runs/{run}/{screen}")
        browser.timed("compare", f"/runs/{run}/sweep", all="1")
        server.terminate()
        print(f"stopped with exit code {server.wait()}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else RECORDS)
