"""The report of a check: what fails, where, by how much and what to do, and no value of the table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest
from playwright.sync_api import Browser
from typer.testing import CliRunner

import shoal
from browsing import AXE, CLIPPED, browser, opened
from shoal.cli.commands import app
from shoal.errors import OutputError
from shoal.judge import judge_release
from shoal.policy import Policy
from shoal.report.failing import check_report, render_check
from shoal.verify.check import checked

__all__ = ["browser"]  # a fixture

TABLE = pa.table({
    "name": [f"Wilhelmina{i}" for i in range(24)],
    "town": ["Ancona", "Bari"] * 12,
    "code": [f"c{i}" if i < 6 else "cc" for i in range(24)],
    "illness": ["gout", "measles", "scurvy"] * 8,
})  # fmt: skip
FIELDS: dict[str, Any] = {
    "columns": {
        "name": {"role": "identifier"},
        "town": {"role": "quasi"},
        "code": {"role": "quasi"},
        "illness": {"role": "sensitive"},
    },
    "require": [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "l": 2}],
}
POLICY = Policy.of(FIELDS)


def test_who_is_at_fault_counted_by_hand() -> None:
    verdicts, table = checked(TABLE, POLICY, None)
    found = check_report(verdicts, table, POLICY)
    classes = Counter(zip(TABLE["town"].to_pylist(), TABLE["code"].to_pylist(), strict=True))
    small = [n for n in classes.values() if n < 3]
    assert found.at_fault == sum(small) == 6
    assert [(size.name, size.classes, size.records) for size in found.sizes] == [("1", 6, 6)]
    # Without the code two towns of twelve are left; without the town the six codes are still alone.
    assert found.failing_without == (("code", 0), ("town", 6))
    assert found.sentence == (
        "This table does not satisfy its policy: 2 of 2 requirements failed, 1 identifier not removed; 24 records in 8 "
        "classes."
    )
    assert found.fails[0] == "3-anonymity: the worst value is k = 1; 6 of 24 records (25.0 %) in 6 classes fail."
    assert len(found.fails) == 2
    assert found.steps[0] == "Remove 'name': declared as identifier."
    assert found.steps[1] == "Generalize 'code' first: without it, 0 instead of 6 records fail."
    assert "6 records (25.0 %)" in found.steps[2]


def test_records_are_not_called_persons_where_the_column_of_persons_is_gone() -> None:
    # Six visits each of two people: six records that look alike are of two persons.
    visits = pa.table({"pid": [f"p{i // 6}" for i in range(12)], "sex": ["f"] * 12, "ill": ["gout", "flu"] * 6})
    fields = {
        "columns": {"pid": {"role": "identifier"}, "sex": {"role": "quasi"}, "ill": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"entity": "pid"},
    }
    asked, released = Policy.of(fields), visits.drop_columns(["pid"])
    verdicts, table = checked(released, asked, None)
    assert verdicts.outcome == "unknown"
    page = render_check(verdicts, table, asked)
    assert "at least 12 records that match" in page
    assert "How many people these records belong to cannot be determined." in page
    assert "persons that match" not in page
    verdicts, table = checked(released, asked, visits)  # the original tells
    assert verdicts.outcome == "fails"
    assert "at least 2 persons that match" in render_check(verdicts, table, asked)


def test_no_value_of_the_table_is_on_the_page() -> None:
    verdicts, table = checked(TABLE, POLICY, None)
    page = render_check(verdicts, table, POLICY)
    for value in ("Wilhelmina", "Ancona", "Bari", "cc", "gout", "measles"):
        assert value not in page.partition("</style>")[2], value
    assert "<script" not in page
    for finding in verdicts.findings:
        assert finding.fact.partition("'")[0] in page


def test_a_table_that_holds_and_one_that_cannot_be_told() -> None:
    safe = TABLE.select(["town", "illness"])
    fields = {**FIELDS, "columns": {name: FIELDS["columns"][name] for name in ("town", "illness")}}
    verdicts, table = checked(safe, Policy.of(fields), None)
    found = check_report(verdicts, table, Policy.of(fields))
    assert found.sentence == "This table satisfies its policy: all 2 requirements hold; 24 records in 2 classes."
    assert (found.fails, found.sizes, found.steps, found.failing_without) == ((), (), (), ())
    limited = Policy.of({**fields, "require": [*FIELDS["require"], {"model": "linkage-risk", "max": 0.5}]})
    unknown = check_report(judge_release(table, limited), table, limited)
    assert unknown.sentence.startswith(
        "Whether this table satisfies its policy cannot be determined: 1 of 3 requirements"
    )
    assert len(unknown.steps) == 1


def test_from_python_and_from_the_command_line(tmp_path: Path) -> None:
    data, policy, page = (tmp_path / name for name in ("table.csv", "policy.toml", "check.html"))
    pyarrow.csv.write_csv(TABLE, data)
    POLICY.save(policy)
    assert not shoal.check(data, policy, report=page).holds
    text = page.read_text(encoding="utf-8")
    assert "does not satisfy its policy" in text
    with pytest.raises(OutputError, match="was not overwritten"):
        shoal.check(data, policy, report=page)
    with pytest.raises(OutputError, match="is the input itself"):
        shoal.check(data, policy, report=data, force=True)
    arguments = ["check", str(data), "-p", str(policy), "--report", str(page)]
    assert CliRunner().invoke(app, arguments).exit_code == 2
    for engine in ("local", "duckdb"):
        done = CliRunner().invoke(app, [*arguments, "--force", "--engine", engine, "-q"])
        assert done.exit_code == 1, done.output
        again = page.read_text(encoding="utf-8")
        assert again.partition("Created on")[0] == text.partition("Created on")[0]
    assert "is the input itself" in CliRunner().invoke(app, [*arguments[:-1], str(data), "--force"]).output


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_it_can_be_read_in_a_browser(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    path = tmp_path / "check.html"
    shoal.check(TABLE, POLICY, report=path)
    page, events = opened(browser, path, width, scheme)
    assert events == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CLIPPED) == []
    page.evaluate(AXE)
    found = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice']})")
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found["violations"]] == []
    page.context.close()
