"""The whole path with forms alone, as in a browser without scripts; what comes out is what the command line makes."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import processes
from demonstrations import Demonstration
from serving import NASTY, Answer, Client, Served, served
from shoal.web.screens.publish import CHECKS


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    (folder / "nasty.csv").write_text(NASTY)
    return folder


@pytest.fixture(scope="module")
def page(root: Path) -> Iterator[Served]:
    with served(root) as found:
        yield found


def draft_in(found: Answer) -> int:
    return int(re.findall(r"/d/(\d+)/", found.path)[0])


def opened(user: Client, name: str) -> int:
    """The draft of a table, for one level per column, which needs little compiling and visits nodes."""
    draft = draft_in(user.finished(user.post("/open", data=name, header="names")))
    return draft_in(user.post(f"/d/{draft}/run", action="options", algorithm="optimal"))


def run_in(found: Answer) -> int:
    return int(re.findall(r"/runs/(\d+)/", found.path)[0])


def published(user: Client, run: int, **more: str) -> Answer:
    ticked = {f"check-{name}": "on" for name in CHECKS}
    return user.finished(user.post(f"/runs/{run}/publish", **ticked, **more))


def commands_on(found: Answer) -> list[str]:
    import html

    shown = re.findall(r"<pre[^>]*>(.*?)</pre>", found.text, flags=re.S)[0]
    return [html.unescape(line) for line in shown.strip().splitlines()]


def test_the_demo_by_forms_alone_is_what_the_command_line_makes(
    page: Served, demonstration: Demonstration, tmp_path: Path
) -> None:
    user = page.user()
    found = user.finished(user.post("/open", demo="1"))
    assert "10,000" in found.text  # records
    draft = draft_in(found)
    found = user.post(f"/d/{draft}/columns", next="promises")
    assert found.path.endswith("/promises")
    found = user.post(f"/d/{draft}/promises", action="k", k="7")
    draft = draft_in(found)
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    assert "This release satisfies its policy" in found.text
    run = run_in(found)
    found = published(user, run)
    for name in ("release.csv", "certificate.json", "report.html", "policy.toml", "recoding.json", "receipt.json"):
        sent = user.request("GET", f"{user.room}/runs/{run}/files/{name}")
        assert sent.status == 200
        assert sent.headers["content-disposition"].startswith("attachment")
        (tmp_path / name).write_bytes(sent.body)
    assert "k = 7" in (tmp_path / "policy.toml").read_text()
    make_table, make, check = commands_on(found)
    assert make_table == "shoal demo"
    (tmp_path / "release.csv").rename(tmp_path / "by_the_page.csv")
    for name in ("certificate.json", "report.html"):
        (tmp_path / name).unlink()
    (tmp_path / "shoal-demo").symlink_to(demonstration.folder)  # which the first command has made
    for command in (make, check):
        processes.run([sys.executable, "-m", *command.split()], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "release.csv").read_bytes() == (tmp_path / "by_the_page.csv").read_bytes()


def test_names_and_values_of_any_kind_are_shown_as_they_are(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    found = user.get(f"/d/{draft}/table?sample=1")
    screens = [found, *(user.get(f"/d/{draft}/{name}") for name in ("columns", "promises", "run"))]
    roles = {f"role-{i}": role for i, role in enumerate(["identifier", "quasi", "quasi", "quasi", "sensitive"])}
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **roles))
    screens.append(user.get(f"/d/{draft}/columns"))
    draft = draft_in(user.post(f"/d/{draft}/promises", action="sensitive", model="distinct-l-diversity", l="2"))
    screens.append(user.get(f"/d/{draft}/promises"))
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    screens += [found, user.get(f"/d/{draft}/run"), published(user, run_in(found))]
    for screen in screens:
        assert screen.status == 200
        assert "<script>alert" not in screen.text
        assert "<img src=x" not in screen.text
        assert "<b>p" not in screen.text
        assert "49" not in re.sub(r"[0-9a-f]{16}|\d\.\d+|[\d,]+ ", "", re.sub(r"<[^>]*>", " ", screen.text)).split()
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in screens[1].text
    assert "{{7*7}}" in screens[1].text


def test_the_page_asks_what_the_first_line_is_where_that_is_unclear(page: Served) -> None:
    user = page.user()
    unclear = user.finished(user.post("/open", data="nasty.csv"))
    assert unclear.status == 400
    assert "is the first line a line of column names" in unclear.text
    assert "First line of a text file" in user.get("/").text
    for header, records, option in (("names", "200", "--header"), ("record", "201", "--no-header")):
        opened = user.finished(user.post("/open", data="nasty.csv", header=header))
        assert f"<dd>{records}</dd>" in opened.text
        assert page.workspace.drafts[draft_in(opened)].table.options == (option,)


def test_an_edit_has_an_address_and_the_one_before_stays(page: Served) -> None:
    user = page.user()
    first = opened(user, "nasty.csv")
    second = draft_in(user.post(f"/d/{first}/promises", action="k", k="9"))
    assert second != first
    assert 'value="9"' in user.get(f"/d/{second}/promises").text
    assert 'value="9"' not in user.get(f"/d/{first}/promises").text
    assert f"/d/{first}/promises" in user.get(f"/d/{second}/promises").text  # undo


def test_nothing_is_published_before_the_list_is_ticked(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    run = run_in(user.finished(user.post(f"/d/{draft}/run", action="start")))
    refused = user.post(f"/runs/{run}/publish", **{f"check-{name}": "on" for name in CHECKS[:-1]})
    assert refused.status == 400
    assert user.request("GET", f"{user.room}/runs/{run}/files/release.csv").status == 404


def test_a_sensitive_column_without_a_requirement_is_named_on_both_screens(page: Served, root: Path) -> None:
    rows = "".join(f"{20 + i // 40},{35100 + i // 60},{['flu', 'cold'][i // 120 % 2]}\n" for i in range(240))
    (root / "alike.csv").write_text("age,zip,disease\n" + rows)
    user = page.user()
    draft = opened(user, "alike.csv")
    unprotected = "No requirement protects disease"
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **{"role-2": "sensitive"}))
    assert unprotected in user.get(f"/d/{draft}/promises").text
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    rest = found.text.partition("satisfies its policy")[2]
    assert rest.index("No requirement protects &#39;disease&#39;") < rest.index('id="safe-h"')
    draft = draft_in(
        user.post(f"/d/{draft}/promises", action="sensitive", model="t-closeness", column="disease", t="0.9")
    )
    assert unprotected not in user.get(f"/d/{draft}/promises").text


def test_a_run_that_cannot_keep_its_promises_says_why(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    draft = draft_in(user.post(f"/d/{draft}/promises", action="k", k="100000"))
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    assert found.status == 400
    assert "no release" in found.text or "cannot" in found.text or "records" in found.text


def test_a_wrong_number_is_told_and_changes_nothing(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    before = len(page.workspace.drafts)
    assert user.post(f"/d/{draft}/promises", action="k", k="many").status == 400
    assert len(page.workspace.drafts) == before
    for number in reversed(range(1, len(page.workspace.drafts[draft].policy.require))):
        draft = draft_in(user.post(f"/d/{draft}/promises", action="remove", number=str(number)))
    incomplete = user.post(f"/d/{draft}/promises", action="remove", number="0")
    assert "at least one model" in incomplete.text


def test_a_cancelled_run_leaves_nothing(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import shoal

    begun, go_on = threading.Event(), threading.Event()
    real = shoal.anonymize

    def slow(*given: object, progress: object, **more: object) -> object:
        begun.set()
        go_on.wait(60)
        return real(*given, progress=progress, **more)  # type: ignore[arg-type]

    monkeypatch.setattr("shoal.pipeline.anonymize", slow)
    user = page.user()
    draft = opened(user, "nasty.csv")
    runs = len(page.workspace.runs)
    found = user.post(f"/d/{draft}/run", action="start")
    begun.wait(60)
    waiting = user.post(f"/d/{draft}/run", action="start")  # one at a time: it waits for the first
    assert "Waiting for 1" in waiting.text
    user.post(f"{waiting.path.removeprefix(user.room)}/cancel")
    number = found.path.removeprefix(user.room)
    page.workspace.jobs.cancel(page.workspace.jobs[int(number.rpartition("/")[2])])
    go_on.set()
    page.workspace.jobs[int(number.rpartition("/")[2])].over.wait(60)
    assert "Cancelled" in user.get(number).text
    assert len(page.workspace.runs) == runs


def test_a_job_shows_what_it_has_found_so_far(page: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    import threading

    import shoal

    found, go_on = threading.Event(), threading.Event()
    real = shoal.anonymize

    def held(*given: object, visits: object, **more: object) -> object:
        made = real(*given, visits=visits, **more)  # type: ignore[arg-type, call-overload]
        found.set()
        go_on.wait(60)
        return made

    monkeypatch.setattr("shoal.pipeline.anonymize", held)
    user = page.user()
    draft = opened(user, "nasty.csv")
    shown = user.post(f"/d/{draft}/run", action="start")
    found.wait(60)
    shown = user.get(shown.path.removeprefix(user.room))
    assert "Solutions so far" in shown.text
    assert "Best: loss" in shown.text
    assert 'fill="#0b5cad"' in shown.text  # a point that satisfies the requirements
    go_on.set()
    assert "This release satisfies its policy" in user.finished(shown).text


def test_a_hierarchy_is_built_edited_and_undone_by_forms(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    roles = {f"role-{i}": role for i, role in enumerate(["identifier", "quasi", "quasi", "quasi", "sensitive"])}
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **roles))
    tried = user.get(f"/d/{draft}/column/1?build=intervals&numbers=10,20")
    assert "Preview" in tried.text
    assert "Every label has one parent" in tried.text
    refused = user.get(f"/d/{draft}/column/1?build=intervals&numbers=10,15")
    assert "Every label has one parent" not in refused.text  # 15 is no multiple of 10
    first = draft_in(user.post(f"/d/{draft}/column/1", action="build", build="intervals", numbers="10,20"))
    moved = user.post(f"/d/{first}/column/1", action="move", level="1", member="20", name="<i>other")
    assert "&lt;i&gt;other" in moved.text
    assert f"/d/{first}/column/1" in moved.text  # undo
    assert "&lt;i&gt;other" not in user.get(f"/d/{first}/column/1").text
    outside = user.get(f"/d/{first}/column/1?build=file&file=/etc/passwd")
    assert "not in a folder that was opened" in outside.text


def test_every_way_to_build_a_hierarchy_and_to_change_its_groups(page: Served, root: Path) -> None:
    lines = [f"{20 + i % 40},{2138 + i % 5:05},19{50 + i % 40}-0{1 + i % 9}-15,{'abc'[i % 3]}" for i in range(60)]
    (root / "kinds.csv").write_text("\n".join(["age,zip,birth,blood", *lines]) + "\n")
    (root / "blood.csv").write_text("a;common;*\nb;common;*\nc;rare;*\n")
    user = page.user()
    draft = opened(user, "kinds.csv")
    roles = {f"role-{i}": "quasi" for i in range(4)}
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **roles))

    def labels(column: int, **described: str) -> str:
        """The labels with records that a description would give; then it is used."""
        asked = "&".join(f"{name}={value}" for name, value in described.items())
        tried = user.finished(user.get(f"/d/{draft}/column/{column}?{asked}"))
        assert "Every label has one parent" in tried.text
        used = user.finished(user.post(f"/d/{draft}/column/{column}", action="build", **described))
        assert draft_in(used) != draft
        return re.sub(r"<[^>]+>", " ", used.text)

    assert "20-39 (40)" in labels(0, build="intervals", numbers="10,20")
    assert "18-29 (20)" in labels(0, build="boundaries", numbers="18,30,65")
    assert "**138 (12)" in labels(1, build="mask", side="left")
    assert "1950-Q1" in labels(2, build="dates", **{"unit-quarter": "on", "unit-year": "on"})
    assert "common (40)" in labels(3, build="file", file=str(root / "blood.csv"))
    (root / "twice.csv").write_text("a;common;*\na;rare;*\nb;common;*\nc;rare;*\n")
    refused = user.finished(user.get(f"/d/{draft}/column/3?build=file&file={root / 'twice.csv'}"))
    assert "Every label has one parent" not in refused.text  # a has two
    assert "hierarchy" in refused.text

    here = draft_in(
        user.finished(user.post(f"/d/{draft}/column/3", action="build", build="file", file=f"{root}/blood.csv"))
    )

    def groups(found: Answer) -> dict[str, int]:
        named = re.findall(r'data-group="([^"]*)"><legend>[^<]*\(([\d,]+)\)', found.text)
        return {name: int(n.replace(",", "")) for name, n in named}

    def change(action: str, **more: str) -> Answer:
        nonlocal here
        found = user.finished(user.post(f"/d/{here}/column/3", action=action, level="1", **more))
        assert f"/d/{here}/column" in found.text  # undo
        here = draft_in(found)
        return found

    assert groups(user.get(f"/d/{here}/column/3")) == {"common": 40, "rare": 20}
    assert groups(change("rename", group="rare", name="seldom")) == {"common": 40, "seldom": 20}
    assert groups(change("move", member="b", name="other")) == {"common": 20, "other": 20, "seldom": 20}  # split
    before = here
    assert groups(change("rename", group="other", name="seldom")) == {"common": 20, "seldom": 40}  # merged
    assert groups(change("move", member="b", group="common")) == {"common": 40, "seldom": 20}
    levels = change("add-level").text.count("?level=")
    assert change("remove-level").text.count("?level=") == levels - 1
    assert groups(user.get(f"/d/{before}/column/3")) == {"common": 20, "other": 20, "seldom": 20}  # undone


def test_another_node_another_point_and_other_limits_are_built_and_verified(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    roles = {f"role-{i}": role for i, role in enumerate(["identifier", "quasi", "quasi", "quasi", "sensitive"])}
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **roles))
    found = user.finished(user.post(f"/d/{draft}/run", action="start"))
    run = run_in(found)
    levels = dict(page.workspace.runs[run].release.levels)  # type: ignore[union-attr]
    nodes = re.findall(r'class="holds">holds</span>.*?name="levels" value="([^"]+)"', found.text)
    taken = page.workspace.runs[run_in(user.finished(user.post(f"/runs/{run}/take", action="node", levels=nodes[-1])))]
    assert taken.release is not None
    assert list(taken.release.levels.values()) == [int(level) for level in nodes[-1].split(",")]
    assert taken.release.verdicts.holds
    found = user.finished(user.post(f"/runs/{run}/sweep"))
    points = re.findall(r'name="point" value="(\d+)"', found.text)
    asked = page.workspace.runs[run].cache["exploration"].frontier.points[int(points[-1])].asked
    taken = page.workspace.runs[run_in(user.finished(user.post(f"/runs/{run}/take", action="point", point=points[-1])))]
    assert taken.release is not None
    assert taken.release.policy.release.max_suppression == asked.get("max_suppression", 0.05)
    assert user.post(f"/runs/{run}/algorithms", algorithm="no such").status == 400
    compared = user.finished(user.post(f"/runs/{run}/algorithms", algorithm="datafly"))
    assert 'href="#algorithm-datafly"' in compared.text  # a mark in the picture, which leads to its row
    for kind in ("node", "point", "algorithm"):
        rows = set(re.findall(rf'href="#({kind}-[^"]+)"', compared.text))
        assert rows
        assert all(f'id="{row}"' in compared.text for row in rows)
    taken = page.workspace.runs[
        run_in(user.finished(user.post(f"/runs/{run}/take", action="algorithm", algorithm="datafly")))
    ]
    assert taken.release is not None
    assert taken.release.policy.release.algorithm == "datafly"
    assert taken.release.verdicts.holds
    assert "Compared with the release before" in user.get(f"/runs/{taken.number}/explore").text
    again = user.finished(user.post(f"/runs/{run}/take", action="limits", **{"least-0": "1", "weight-0": "3"}))
    taken = page.workspace.runs[run_in(again)]
    assert taken.release is not None
    assert taken.release.policy.columns[next(iter(levels))].min_level == 1
    assert "singling out" in user.finished(user.post(f"/runs/{run}/attack")).text
    assert "Record 20" in user.get(f"/runs/{run}/rows").text
    assert "records look like this one in the release" in user.get(f"/runs/{run}/rows?record=0").text


def test_a_run_starts_with_the_purpose_that_is_marked(page: Served) -> None:
    user = page.user()
    draft = draft_in(user.finished(user.post("/open", data="nasty.csv", header="names")))
    draft = draft_in(user.post(f"/d/{draft}/run", action="purpose", purpose="analysis"))
    assert page.workspace.drafts[draft].policy.release.algorithm == "local"
    assert user.post(f"/d/{draft}/run", action="purpose").status == 400
    run = run_in(user.finished(user.post(f"/d/{draft}/run", action="start", purpose="tables")))
    assert page.workspace.runs[run].draft.policy.release.algorithm == "single_dimensional"


def test_stories_of_people_show_original_values_only_when_asked(page: Served, root: Path) -> None:
    lines = [f"{20 + i},{'fm'[i % 2]},{'abc'[i % 3]}secret{i % 4}" for i in range(48)]
    (root / "told.csv").write_text("\n".join(["age,sex,ill", *lines]) + "\n")
    user = page.user()
    draft = opened(user, "told.csv")
    roles = {f"role-{i}": role for i, role in enumerate(["quasi", "quasi", "sensitive"])}
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **roles))
    run = run_in(user.finished(user.post(f"/d/{draft}/run", action="start")))
    assert user.get(f"/runs/{run}/stories").status == 404  # there are none yet
    attacked = user.finished(user.post(f"/runs/{run}/attack"))
    assert "singling out" in attacked.text
    assert "The person most exposed now: 1 record matched in the original" in attacked.text
    told = user.get(f"/runs/{run}/stories")
    assert "1 record matches: it is theirs." in told.text
    assert "secret" not in told.text
    assert "What is known" not in told.text
    shown = user.post(f"/runs/{run}/stories")
    stories = page.workspace.runs[run].cache["stories"]
    for story in stories:
        assert f"<td>{story.known['age']}</td><td>{story.known['sex']}</td>" in shown.text
        assert f"(ill: {story.before.learned[0].value})" in shown.text
        if story.record is not None:
            mates = user.get(f"/runs/{run}/rows?record={story.record}")
            assert f"{story.after.records} records look like this one in the release" in mates.text
            assert re.search(rf'class="marked"><th scope="row"><a [^>]*record={story.record}"', mates.text)
    assert user.get(f"/runs/{run}/rows?record=48").status == 404


def test_a_list_in_a_requirement_is_typed_with_commas(page: Served) -> None:
    user = page.user()
    draft = opened(user, "nasty.csv")
    draft = draft_in(user.post(f"/d/{draft}/columns", next="columns", **{"role-2": "quasi"}))
    draft = draft_in(user.post(f"/d/{draft}/promises", action="save", number="0", k="3", columns="{{7*7}}"))
    assert page.workspace.drafts[draft].policy.require[0].model_dump()["columns"] == ("{{7*7}}",)
