"""The page from a second client: whatever does not come from the user's browser and our own forms is refused."""

import asyncio
import http.client
import socket
import stat
import sys
import threading
from collections.abc import Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import duckdb
import pytest

from serving import PATIENCE, Served, served
from shoal.web import security, server
from shoal.web.folders import Folders

SECRET = "Rumpelstiltskin"
TABLE = f"name,age,zip,disease\n{SECRET},31,35121,flu\nAnn,32,35122,cold\nBob,33,35123,flu\n"
SCREENS = ("/", "/open", "/upload", "/d/1/columns", "/runs/1/publish", "/jobs/1", "/jobs/1/events", "/static/web.css")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("opened")
    (folder / "people.csv").write_text(TABLE)
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[Served]:
    with served(root, upload_bytes=2**20) as found:
        yield found


# ── who ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", SCREENS)
def test_without_the_cookie_nothing_is_told(page: Served, path: str) -> None:
    stranger, user = page.stranger(), page.user()
    for address in (path, user.room + path):
        found = stranger.request("GET", address)
        assert found.status == 403
        assert user.room.encode() not in found.body
        assert user.csrf.encode() not in found.body
        assert b"people.csv" not in found.body


def test_a_wrong_token_is_refused(page: Served) -> None:
    for token in ("", "x", page.token[:-1], page.token + "x", page.token.swapcase()):
        found = page.stranger().request("GET", f"/?token={token}")
        assert found.status == 403
        assert "set-cookie" not in found.headers


def test_an_address_opens_the_page_once(root: Path) -> None:
    """It stays in the history of the browser, and in the list of processes while the browser starts."""
    with served(root) as page:
        first = f"/?token={page.token}"
        for method, headers in (("HEAD", {}), ("GET", {"Sec-Purpose": "prefetch;prerender"})):  # nobody has seen it
            assert page.stranger().request(method, first, headers).status == 403
        assert "set-cookie" in page.stranger().request("GET", first).headers
        for _ in range(3):
            found = page.stranger().request("GET", first)
            assert found.status == 403
            assert "set-cookie" not in found.headers
        assert len(page.addresses) == 2  # its user reads the next one in the terminal, and nobody can ask for many
        assert "set-cookie" in page.stranger().request("GET", f"/?token={page.token}").headers


def test_the_cookie_is_for_this_server_alone(page: Served) -> None:
    """HttpOnly and SameSite=Strict; and as cookies do not tell ports apart, for a path that no other server knows."""
    page.new_address()
    found = page.stranger().request("GET", f"/?token={page.token}")
    name, *attributes = found.headers["set-cookie"].split("; ")
    assert name.startswith("shoal=")
    assert set(attributes) == {f"Path={page.user().room}/", "HttpOnly", "SameSite=Strict"}


def test_the_cookie_alone_opens_no_other_path(page: Served) -> None:
    user = page.user()
    assert user.request("GET", "/").status == 403
    assert user.request("GET", f"{user.room}x/").status == 403


# ── from where ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", ""])
def test_a_wrong_host_is_refused(page: Served, host: str) -> None:
    """As where a name of the attacker's leads to this computer: DNS rebinding."""
    user = page.user()
    assert user.request("GET", user.room + "/", {"Host": host}).status == 400
    assert user.request("GET", f"/?token={page.token}", {"Host": host}).status == 400


def test_two_hosts_are_refused(page: Served) -> None:
    user = page.user()
    said = _raw(page, f"GET {user.room}/ HTTP/1.1\r\nHost: {page.host}\r\nHost: evil.example\r\n\r\n".encode())
    assert said.startswith(b"HTTP/1.1 400")


def test_two_hosts_are_refused_by_the_gate_too() -> None:
    """Whatever server is before it."""
    reached, told = [], []

    async def app(*_: object) -> None:
        reached.append(1)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    async def send(message: MutableMapping[str, Any]) -> None:
        told.append(message)

    known = security.Secrets()
    gate = security.Gate(app, known, hosts=frozenset({"127.0.0.1:80"}), upload_bytes=1)
    hosts = [(b"host", b"127.0.0.1:80"), (b"host", b"evil.example")]
    scope = {"type": "http", "method": "GET", "path": f"{known.room}/", "query_string": b""}
    cookie = (b"cookie", f"shoal={known.cookie}".encode())
    asyncio.run(gate({**scope, "headers": [*hosts, cookie]}, receive, send))
    assert (reached, told[0]["status"]) == ([], 400)
    asyncio.run(gate({**scope, "headers": [hosts[0], cookie]}, receive, send))
    assert reached == [1]


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1"])
def test_a_foreign_origin_is_refused(page: Served, origin: str) -> None:
    user = page.user()
    assert user.request("GET", user.room + "/", {"Origin": origin}).status == 403
    assert user.post_once("/open", {"demo": "1"}, {"Origin": origin}).status == 403
    assert not page.workspace.tables


def test_a_form_without_origin_is_refused(page: Served) -> None:
    user = page.user()
    body = f"csrf={user.csrf}&demo=1".encode()
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    assert user.request("POST", user.room + "/open", kind, body).status == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_cookie_that_another_site_made_the_browser_send_is_refused(page: Served, site: str) -> None:
    """A browser says who asked; another port of this computer is the same site, and not the same page."""
    user = page.user()
    assert user.request("GET", user.room + "/", {"Sec-Fetch-Site": site}).status == 403
    assert user.post_once("/open", {"demo": "1"}, {"Sec-Fetch-Site": site}).status == 403
    assert user.request("GET", user.room + "/", {"Sec-Fetch-Site": "same-origin"}).status == 200


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_form_without_our_token_is_refused(page: Served, token: str) -> None:
    user = page.user()
    before = len(page.workspace.tables)
    for path in ("/open", "/upload", "/jobs/1/cancel"):
        assert user.post_once(path, {"csrf": token, "demo": "1"}).status == 403
    assert len(page.workspace.tables) == before


def test_what_changes_something_is_not_done_by_get(page: Served) -> None:
    user = page.user()
    for path in ("/open", "/upload"):
        assert user.request("GET", f"{user.room}{path}?demo=1&csrf={user.csrf}").status in (404, 405)
    assert user.request("PUT", user.room + "/").status == 405


# ── what ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "~/.bashrc", "people.csv\0", ".."])
def test_a_path_outside_of_the_folders_is_refused(page: Served, path: str) -> None:
    found = page.user().post("/open", data=path)
    assert found.status == 400
    assert "not in a folder that was opened" in found.text


def test_a_link_that_leads_out_of_the_folders_is_refused(page: Served, root: Path, tmp_path: Path) -> None:
    (tmp_path / "private.csv").write_text(TABLE)
    (root / "link.csv").symlink_to(tmp_path / "private.csv")
    (root / "folder").symlink_to(tmp_path)
    user = page.user()
    try:
        for path in ("link.csv", "folder", "folder/private.csv"):
            assert "not in a folder that was opened" in user.post("/open", data=path).text
        assert user.get(f"/?folder={root}/folder").status == 400
        listing = user.get("/").text
        assert "people.csv" in listing
        assert "link.csv" not in listing
        assert ">folder/<" not in listing
    finally:
        (root / "link.csv").unlink()
        (root / "folder").unlink()


def test_what_is_opened_is_the_file_and_not_the_link(root: Path) -> None:
    """A link could be made to lead elsewhere after it was checked."""
    (root / "inner.csv").symlink_to(root / "people.csv")
    try:
        assert Folders([root]).path("inner.csv") == (root / "people.csv").resolve()
    finally:
        (root / "inner.csv").unlink()


def test_a_database_file_outside_of_the_folders_is_refused(page: Served) -> None:
    for uri in ("duckdb:///etc/passwd", "duckdb:///etc/passwd#users", "duckdb://../x.db"):
        assert "not in a folder that was opened" in page.user().post("/open", data=uri, table="users").text


@pytest.mark.parametrize("folder", ["/etc", "file:///etc", "file:/etc", "FILE:/etc", "/nowhere/../etc"])
def test_nor_does_spark_read_a_folder_outside_of_them(page: Served, folder: str) -> None:
    found = page.user().post("/open", data=f"spark://local[1]#{folder}")
    assert found.status == 400
    assert "not in a folder that was opened" in found.text


def test_the_database_that_is_checked_is_the_one_that_is_opened(page: Served, root: Path) -> None:
    with duckdb.connect(root / "people.db") as con:
        con.execute("CREATE TABLE people AS SELECT 'x' || (i % 3) AS zip, i % 2 AS sex FROM range(30) t(i)")
    user = page.user()
    # Relative to the folder that was opened, wherever the server was started.
    found = user.finished(user.post("/open", data="duckdb://people.db#people"))
    assert found.path.endswith("/table"), found.text
    assert "not in a folder" in user.post("/open", data="duckdb://people.db#/../../x.db", table="people").text
    (root / "people.db").unlink()


def test_nor_does_a_view_of_a_database_that_is_named_as_a_file_or_uploaded(
    page: Served, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "private.csv").write_text(TABLE)
    with duckdb.connect(root / "views.duckdb") as con:
        con.execute(f"CREATE VIEW people AS SELECT * FROM read_csv('{tmp_path / 'private.csv'}')")
    user = page.user()
    for opened in (user.post("/open", data="views.duckdb", table="people"), user.upload("v.duckdb", _bytes(root))):
        found = user.finished(opened)
        assert found.status == 400, found.text
        assert SECRET not in found.text
    with duckdb.connect(root / "views.duckdb") as con:
        con.execute("DROP VIEW people")
        con.execute("CREATE TABLE zips AS SELECT 'x' || (i % 3) AS zip, i % 2 AS sex FROM range(30) t(i)")
    for opened in (user.post("/open", data="views.duckdb", table="zips"), user.upload("v.duckdb", _bytes(root))):
        assert user.finished(opened).path.endswith("/table")
    (root / "views.duckdb").unlink()


def _bytes(root: Path) -> bytes:
    return (root / "views.duckdb").read_bytes()


@pytest.mark.parametrize("reads", ["read_csv('{0}')", "read_text('{0}')", "glob('{0}')", "leaking()"])
def test_a_view_of_a_database_reads_no_file(page: Served, root: Path, tmp_path: Path, reads: str) -> None:
    """Whoever made the database could otherwise show what is in any folder of this computer."""
    name = f"{reads[:6]}.db"
    (tmp_path / "private.csv").write_text(TABLE)
    with duckdb.connect(root / name) as con:
        con.execute(f"CREATE MACRO leaking() AS TABLE SELECT * FROM read_csv('{tmp_path}/private.csv')")
        con.execute(f"CREATE VIEW people AS SELECT * FROM {reads.format(tmp_path / 'private.csv')}")
        con.execute("CREATE TABLE zips AS SELECT 'x' || (i % 3) AS zip, i % 2 AS sex FROM range(30) t(i)")
    user = page.user()
    try:
        for _ in range(2):  # an open database stays confined
            found = user.finished(user.post("/open", data=f"duckdb://{name}", table="people"))
            assert not found.path.endswith("/table")
            assert SECRET not in found.text
        found = user.finished(user.post("/open", data=f"duckdb://{name}", table="zips"))
        assert found.path.endswith("/table"), found.text
    finally:
        (root / name).unlink()


def test_a_folder_with_a_link_that_leads_out_is_no_table(page: Served, root: Path, tmp_path: Path) -> None:
    (tmp_path / "private.parquet").write_bytes(b"PAR1")
    (root / "many").mkdir()
    (root / "many" / "a.parquet").symlink_to(tmp_path / "private.parquet")
    found = page.user().post("/open", data="many")
    assert found.status == 400
    assert "holds a link" in found.text
    (root / "many" / "a.parquet").unlink()
    (root / "many").rmdir()


def test_a_policy_leads_to_no_file_outside_of_the_folders(page: Served, root: Path, tmp_path: Path) -> None:
    (tmp_path / "zip.csv").write_text("35121;3512*;*\n")
    (root / "strange.toml").write_text(
        f'[columns]\nzip = {{ role = "quasi", hierarchy = "{tmp_path}/zip.csv" }}\n'
        '[[require]]\nmodel = "k-anonymity"\nk = 2\n'
    )
    user = page.user()
    found = user.finished(user.post("/open", data="people.csv", policy=str(root / "strange.toml")))
    assert "names a file that is not in a folder that was opened" in found.text
    (root / "strange.toml").unlink()


@pytest.mark.parametrize(
    "name", ["../pages.py", "..%2Fpages.py", "%2e%2e/pages.py", "web.css%00", "templates/base.html"]
)
def test_no_file_of_the_program_is_served_but_those_of_the_page(page: Served, name: str) -> None:
    user = page.user()
    assert user.request("GET", f"{user.room}/static/{name}").status == 404


def test_the_name_of_an_upload_leads_nowhere(page: Served) -> None:
    user = page.user()
    found = user.finished(user.upload("../../../evil.csv", TABLE.encode()))
    assert "evil.csv" in found.text
    kept = [path for path in page.workspace.folder.rglob("*") if path.is_file()]
    assert [path.name for path in kept if path.suffix == ".csv"] == ["upload.csv"]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in kept)


# ── how much, how slowly, how often ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "size"), [("/upload", 2**20 + 1), ("/open", security.FORM_BYTES + 1), ("/open", 10**30)]
)
def test_an_upload_that_is_too_large_is_refused(page: Served, path: str, size: int) -> None:
    user = page.user()
    head = (
        f"POST {user.room}{path} HTTP/1.1\r\nHost: {page.host}\r\nOrigin: http://{page.host}\r\n"
        f"Cookie: {user.cookie}\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: {size}\r\n\r\n"
    )
    assert _raw(page, head.encode()).startswith((b"HTTP/1.1 413", b"HTTP/1.1 400"))


def test_an_upload_that_does_not_say_how_large_it_is_is_cut_off(page: Served) -> None:
    user = page.user()
    connection = http.client.HTTPConnection(page.host, timeout=PATIENCE)
    headers = {
        "Cookie": user.cookie,
        "Origin": f"http://{page.host}",
        "Content-Type": "multipart/form-data; boundary=b",
        "Transfer-Encoding": "chunked",
    }

    def pieces() -> Iterator[bytes]:
        yield f'--b\r\nContent-Disposition: form-data; name="csrf"\r\n\r\n{user.csrf}\r\n'.encode()
        yield b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        for _ in range(40):
            yield b"x" * 2**16
        yield b"\r\n--b--\r\n"

    try:
        connection.request("POST", user.room + "/upload", pieces(), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
    finally:
        connection.close()
    assert not list(page.workspace.folder.rglob("a.csv"))


@pytest.mark.parametrize("path", ["/upload", "/open"])
def test_who_sends_too_much_sees_why_and_not_a_broken_connection(page: Served, path: str) -> None:
    """A browser reads the answer once it has sent everything, so the server must take it all, and drop it."""
    user = page.user()
    headers = {"Origin": f"http://{page.host}", "Content-Type": "multipart/form-data; boundary=b"}
    found = user.request("POST", user.room + path, headers, b"x" * (24 * 2**20))
    assert found.status == 413
    assert "MB are taken" in found.text
    assert user.get("/").status == 200


def test_a_form_that_does_not_arrive_is_given_up(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "FORM_SECONDS", 0.2)
    with served(root) as page:
        user = page.user()
        head = (
            f"POST {user.room}/open HTTP/1.1\r\nHost: {page.host}\r\nOrigin: http://{page.host}\r\n"
            f"Cookie: {user.cookie}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\n"
        )
        assert _raw(page, head.encode() + b"csrf=").startswith(b"HTTP/1.1 408")


def test_a_connection_that_says_nothing_is_closed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.2)
    with served(root) as page:
        assert _raw(page, b"GET / HTTP/1.1\r\nHost:") == b""
        assert page.user().get("/").status == 200


def test_two_hundred_requests_at_once_do_not_get_in_nor_stop_the_server(page: Served) -> None:
    user = page.user()

    def knock(i: int) -> int:
        try:
            return page.stranger().request("GET", user.room + SCREENS[i % len(SCREENS)]).status
        except ConnectionError:  # it had not been read when others came: the oldest make way
            return 0

    with ThreadPoolExecutor(200) as pool:
        found = set(pool.map(knock, range(200)))
    assert 403 in found <= {0, 403}
    assert user.get("/").status == 200


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\nHost:"])
def test_silent_connections_do_not_lock_the_user_out(root: Path, said: bytes) -> None:
    with served(root) as page:
        user = page.user()
        host, _, port = page.host.partition(":")
        with ExitStack() as held:
            silent = []
            for _ in range(80):
                silent.append(held.enter_context(socket.create_connection((host, int(port)), PATIENCE)))
                silent[-1].sendall(said)
            assert user.request("GET", user.room + "/").status == 200
            for connection in silent[: 80 - server.MAX_SILENT]:
                with suppress(ConnectionResetError):  # closed before it read our bytes
                    assert connection.recv(1) == b""  # closed: the oldest make way
            assert user.request("GET", user.room + "/").status == 200


# ── what is left behind ─────────────────────────────────────────────────────────────────────────────────────


def test_every_answer_has_the_safe_headers(page: Served) -> None:
    user = page.user()
    answers = [user.get("/"), user.get("/nowhere"), user.post("/open", csrf="x"), page.stranger().request("GET", "/")]
    for found in answers:
        for name, value in security.HEADERS.items():
            assert found.headers[name] == value
        assert "unsafe" not in found.headers["content-security-policy"]
        assert "server" not in {name.lower() for name in found.headers}


def test_nothing_of_the_data_stands_in_logs_or_error_pages(
    page: Served, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def quote(*_: object, **__: object) -> None:
        raise RuntimeError(SECRET)

    user = page.user()
    monkeypatch.setattr("shoal.inspection.inspect.inspect", quote)
    failed = user.finished(user.post("/open", data="people.csv"))
    monkeypatch.setattr("shoal.web.folders.Folders.listing", quote)
    broken = user.get("/")
    assert "unexpected error: RuntimeError" in failed.text
    assert broken.status == 500
    printed = capfd.readouterr()
    assert "RuntimeError" in printed.err
    for text in (failed.text, broken.text, printed.err, printed.out):
        assert SECRET not in text
        assert page.token not in text


def test_nor_in_what_the_server_itself_would_log(
    root: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a screen is reached, and where a connection is looked after; nor is it logged who asked for what."""
    called = threading.Event()

    def quote(*_: object) -> None:
        called.set()
        raise RuntimeError(SECRET)

    caplog.set_level("DEBUG")
    monkeypatch.setattr(server, "HEADER_SECONDS", 0.1)
    monkeypatch.setattr(server._Protocol, "_close_if_silent", quote)
    with served(root) as page:
        user = page.user()
        assert called.wait(PATIENCE)
        monkeypatch.setattr(security, "_cookie", quote)
        assert user.request("GET", user.room + "/").status == 500
    printed = capfd.readouterr()
    for text in (caplog.text, printed.out, printed.err):
        assert SECRET not in text
        assert page.token not in text


def test_the_folder_is_private_and_goes_with_the_server(root: Path) -> None:
    with served(root) as page:
        user = page.user()
        user.finished(user.upload("people.csv", TABLE.encode()))
        folder = page.workspace.folder
        for path in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
            assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert not folder.exists()


@pytest.mark.parametrize("options", [["--host", "0.0.0.0"], ["--host", "0.0.0.0", "--i-know-what-i-do"],
                                     ["--host", "0.0.0.0", "--tls-certificate", "c.pem", "--tls-key", "k.pem"],
                                     ["--host", "::"], ["--host", "example.org", "--i-know-what-i-do"]])  # fmt: skip
def test_other_computers_are_not_let_in(options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from shoal.cli import app

    for name in ("c.pem", "k.pem"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    served_to: list[object] = []
    monkeypatch.setattr(server, "serve", lambda *_, **given: served_to.append(given))
    found = CliRunner().invoke(app, ["web", "--no-browser", *options])
    assert found.exit_code == 2
    assert "served to this computer only" in found.output
    assert served_to == []


def _raw(page: Served, sent: bytes) -> bytes:
    """What the server says to these bytes before it closes the connection."""
    host, _, port = page.host.partition(":")
    with socket.create_connection((host, int(port)), PATIENCE) as connection:
        connection.sendall(sent)
        found = b""
        while piece := connection.recv(2**16):
            found += piece
            if b"\r\n\r\n" in found:
                break
        return found


def test_without_its_packages_the_command_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from shoal.cli import app

    monkeypatch.delitem(sys.modules, "shoal.web.server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    found = CliRunner().invoke(app, ["web", "--no-browser"])
    assert found.exit_code == 2
    assert "pip install 'shoal[web]'" in found.output
