"""A server of the page in this process, and a client that speaks to it as a browser does, or as it should not."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from shoal.web.server import serve
from shoal.web.workspace import Settings, Workspace

PATIENCE = 600.0  # seconds: longer than any machine takes, so that only what never comes fails

# Names and values that would do harm in a page, a template or a spreadsheet.
NASTY = "name,<script>alert(1)</script>,{{7*7}},=cmd|' /C calc'!A0,disease\n" + "".join(
    f'<b>p{i}</b>,{20 + i % 40},"{{{{7*7}}}}{i % 3}",=1+{i % 5},"{["flu", "<img src=x>", "a&b"][i % 3]}"\n'
    for i in range(200)
)


@dataclass
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Client:
    """Without a cookie it is a stranger."""

    host: str
    cookie: str = ""
    room: str = ""
    csrf: str = ""
    more: dict[str, str] = field(default_factory=dict)

    def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(self.host, timeout=PATIENCE)
        try:
            given = {"Cookie": self.cookie} if self.cookie else {}
            connection.request(method, path, body, {**given, **self.more, **(headers or {})})
            found = connection.getresponse()
            return Answer(found.status, dict(found.getheaders()), found.read(), path)
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Answer:
        """A screen, behind its redirects."""
        found = self.request("GET", self.room + path, headers)
        return self._followed(found)

    def post(self, path: str, **fields: Any) -> Answer:
        """A form of our own page."""
        return self._followed(self.post_once(path, fields))

    def post_once(self, path: str, fields: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        given = {"Origin": f"http://{self.host}", "Content-Type": "application/x-www-form-urlencoded"}
        return self.request(
            "POST", self.room + path, {**given, **(headers or {})}, urlencode({"csrf": self.csrf, **fields}).encode()
        )

    def upload(self, name: str, content: bytes) -> Answer:
        """A file, as a browser sends it."""
        body = (
            f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{self.csrf}\r\n'
            f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        ).encode()
        headers = {"Origin": f"http://{self.host}", "Content-Type": "multipart/form-data; boundary=b"}
        sent = body + content + b"\r\n--b--\r\n"
        return self._followed(self.request("POST", self.room + "/upload", headers, sent))

    def _followed(self, found: Answer) -> Answer:
        while found.status == 303:
            found = self.request("GET", found.headers["location"].partition("#")[0])
        return found

    def finished(self, found: Answer) -> Answer:
        """Where a job leads, once it is over."""
        end = time.monotonic() + PATIENCE
        while "/jobs/" in found.path and 'id="job"' in found.text:
            assert time.monotonic() < end
            time.sleep(0.05)
            found = self.get(found.path.removeprefix(self.room))
        return found


@dataclass
class Served:
    workspace: Workspace
    addresses: list[str]  # with the token; the last one opens the page
    entered: Client | None = None
    opened: int = 0  # how many of the addresses

    @property
    def address(self) -> str:
        """The address that the terminal shows."""
        return self.addresses[-1]

    def new_address(self) -> str:
        """An address that opens the page; tried once more, a used one is replaced."""
        if self.opened == len(self.addresses):
            assert self.stranger().request("GET", f"/?{urlsplit(self.address).query}").status == 403
        self.opened += 1
        assert self.opened == len(self.addresses)
        return self.address

    @property
    def host(self) -> str:
        return urlsplit(self.address).netloc

    @property
    def token(self) -> str:
        return self.address.partition("token=")[2]

    def stranger(self) -> Client:
        return Client(self.host)

    def user(self) -> Client:
        """Whose browser has opened the page; it opens the address once."""
        self.entered = self.entered or user_at(self.new_address())
        return replace(self.entered, more={})


def user_at(address: str) -> Client:
    """Who has opened the first address, as a browser does."""
    client = Client(urlsplit(address).netloc)
    found = client.request("GET", f"/?{urlsplit(address).query}")
    client.cookie = found.headers["set-cookie"].partition(";")[0]
    client.room = re.findall(r'href="(/[0-9a-f]+)/', found.text)[0]
    client.csrf = re.findall(r'name="csrf" value="([^"]+)"', client.get("/").text)[0]
    return client


@contextmanager
def served(root: Path, settings: Settings | None = None, **given: Any) -> Iterator[Served]:
    """The page over a folder, on a free port, until the end of the block."""
    workspace = Workspace([root], settings)
    addresses: list[str] = []
    ready = threading.Event()

    def answering(address: str) -> None:
        addresses.append(address)
        ready.set()

    thread = threading.Thread(
        target=serve, daemon=True, args=(workspace,), kwargs={"browser": False, "ready": answering, **given}
    )
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield Served(workspace, addresses)
    finally:
        workspace.stopping.set()
        thread.join(PATIENCE)
        assert not thread.is_alive()
