"""Tables in files and databases, policies found in the folder, uploads and signatures: each through the page."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

import processes
import shoal
from serving import Answer, Client, Served, served
from shoal.cli import app
from shoal.web.screens.publish import CHECKS
from shoal.web.workspace import Settings

TABLE = "age,zip,disease\n" + "".join(
    f"{20 + i % 40},{35100 + i % 12},{['flu', 'cold', 'asthma'][i % 3]}\n" for i in range(240)
)
POLICY = """
[columns]
age = { role = "quasi", hierarchy = { intervals = [5, 10, 20] } }
zip = { role = "quasi", hierarchy = { mask = "right" } }
disease = { role = "sensitive" }
[[require]]
model = "k-anonymity"
k = 6
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    (folder / "people.csv").write_text(TABLE)
    (folder / "policy.toml").write_text(POLICY)
    with duckdb.connect(folder / "people.db") as con:
        con.execute(f"CREATE TABLE people AS FROM read_csv('{folder / 'people.csv'}', types = {{'zip': 'VARCHAR'}})")
    shoal.make_keys(folder / "office")
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


@pytest.fixture(scope="module")
def out_of_core(root: Path) -> Iterator[Served]:
    """As `shoal web --engine duckdb`."""
    with served(root, Settings(engine="duckdb")) as found:
        yield found


def released(user: Client, data: str, **publishing: str) -> tuple[int, Answer]:
    """The run and the last screen: open with the policy, run, publish."""
    found = user.finished(user.post("/open", data=data, policy="policy.toml"))
    assert found.path.endswith("/table"), found.text
    draft = re.findall(r"/d/(\d+)/", found.path)[0]
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    assert "This release satisfies its policy" in found.text, found.text
    run = re.findall(r"/runs/(\d+)/", found.path)[0]
    ticked = {f"check-{name}": "on" for name in CHECKS}
    found = user.finished(user.post(f"/runs/{run}/publish", **ticked, **publishing))
    return int(run), found


@pytest.mark.parametrize(("served_by", "data"), [("page", "duckdb://people.db#people"), ("out_of_core", "people.csv")])
def test_a_database_and_the_engine_on_disk_give_what_the_command_line_gives(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, served_by: str, data: str
) -> None:
    page: Served = request.getfixturevalue(served_by)
    user = page.user()
    run, found = released(user, data)
    sent = user.request("GET", f"{user.room}/runs/{run}/files/release.csv").body
    shown = re.findall(r"<pre[^>]*>(shoal anonymize .*?)\n", found.text)[0].replace("&#39;", "'")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.toml").write_bytes(page.workspace.runs[run].files["policy.toml"].read_bytes())
    if served_by == "page":  # in another process, which DuckDB lets in only where nobody may write to the file
        processes.run([sys.executable, "-m", *shown.split()], check=True, capture_output=True)
    else:
        assert CliRunner().invoke(app, shown.split()[1:]).exit_code == 0
    assert (tmp_path / "release.csv").read_bytes() == sent
    opened = page.workspace.tables[max(page.workspace.tables)]
    assert ("--engine" in shown) == (served_by == "out_of_core")
    assert opened.engine.in_memory is False


def test_a_certificate_is_signed_where_a_key_is(page: Served, root: Path, tmp_path: Path) -> None:
    user = page.user()
    run, found = released(user, "people.csv", key="office.key")
    files = page.workspace.runs[run].files
    proof = json.loads(files["certificate.json"].read_text())
    assert shoal.verify_certificate(proof, files["release.csv"], key=root / "office.pub").holds
    assert not shoal.verify_certificate({**proof, "findings": []}, files["release.csv"], key=root / "office.pub").holds
    assert "igned" in found.text


def test_a_key_outside_of_the_folders_is_refused(page: Served, tmp_path: Path) -> None:
    shoal.make_keys(tmp_path / "other")
    user = page.user()
    _, found = released(user, "people.csv", key=str(tmp_path / "other.key"))
    assert found.status == 400
    assert "not in a folder that was opened" in found.text


def test_the_policies_in_the_folder_are_offered_newest_first(page: Served, root: Path) -> None:
    import os

    newer = root / "newer.toml"
    newer.write_text(POLICY)
    (root / "settings.toml").write_text("[tool]\nx = 1\n")
    os.utime(root / "policy.toml", (1, 1))
    shown = page.user().get("/").text
    assert shown.index("newer.toml") < shown.index("policy.toml")
    assert "settings.toml" not in shown
    newer.unlink()
    (root / "settings.toml").unlink()


def test_an_upload_is_kept_no_longer_than_the_server(root: Path) -> None:
    with served(root) as page:
        user = page.user()
        assert user.finished(user.upload("people.csv", TABLE.encode())).path.endswith("/table")
        kept = list(page.workspace.folder.rglob("upload.csv"))
        assert len(kept) == 1
    assert not kept[0].exists()
    assert not page.workspace.folder.exists()
