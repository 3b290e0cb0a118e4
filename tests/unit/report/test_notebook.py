"""If these fail, a notebook leaves out a figure, a finding or a verdict."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pyarrow as pa
import pytest
from IPython.core.formatters import DisplayFormatter

import shoal
from shoal.alternatives.recommend import explore
from shoal.policy import Policy
from shoal.verify.certified import verify_certificate

SCRIPT = "<script>alert(1)</script>"

TABLE = pa.table({SCRIPT: ["a", "a", "b", "b"], "s & t": ["x", "y", "x", "y"], "name": list("pqrs")})
POLICY = Policy.of({
    "columns": {SCRIPT: {"role": "quasi"}, "s & t": {"role": "sensitive"}, "name": {"role": "identifier"}},
    "require": [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "l": 2, "column": "s & t"}],
})  # fmt: skip


class Cells(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.tags[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def shown(value: object) -> Cells:
    html = value._repr_html_()  # type: ignore[attr-defined]
    found = Cells(html)
    assert "script" not in found.tags
    for tag in ("table", "tr", "th", "td"):  # every one is closed
        assert len(re.findall(rf"<{tag}[ >]", html)) == html.count(f"</{tag}>")
    return found


def test_figures() -> None:
    figures = shoal.measure(TABLE, quasi=[SCRIPT], sensitive=["s & t"])
    head, *rows = shown(figures).rows
    assert head == ["figure", "worst", "s & t"]
    assert [row[0] for row in rows] == list(figures)
    assert {row[0]: row[1:] for row in rows}["l"] == ["2", "2"]
    assert {row[0]: row[1:] for row in rows}["k"] == ["2", ""]
    assert shown(shoal.measure(TABLE, quasi=[SCRIPT])).rows[0] == ["figure", "value"]


def test_findings_are_shown_below() -> None:
    table = pa.table({"age": ["30"] * 4, "disease": ["flu"] * 4})
    columns = {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}}
    asked = Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 2}]})
    release = shoal.anonymize(table, asked)
    for shown in (release, shoal.check(release.table, asked)):
        told = unescape(shown._repr_html_())
        assert told.count("<p>Do not publish: No requirement protects 'disease'.") == 1


def test_verdicts() -> None:
    rows = shown(shoal.check(TABLE, POLICY)).rows
    assert rows[1] == ["2-anonymity", "k = 2", "0", "0", "holds"]
    assert rows[2] == ["distinct 2-diversity on s & t", "l = 2", "0", "0", "holds"]
    assert rows[3] == ["identifier name", "not removed", "", "", "fails"]
    assert "The policy does not hold: 4 records in 2 classes." in shoal.check(TABLE, POLICY)._repr_html_()


def test_an_exploration_and_a_verification(tmp_path: Path) -> None:
    found = explore(TABLE, POLICY, swept={"k": [2, 3]})
    head, first, second = shown(found).rows
    assert head == ["", "k", "loss", "suppressed", "classes", "worst risk", "levels"]
    assert first == ["1. *", "2", "0", "0", "2", "1 in 2", "0"]
    assert second[:2] == ["2.", "3"]
    html = found._repr_html_()
    assert "For data of low sensitivity" in html
    assert "&lt;" not in re.sub("&lt;/?script&gt;", "", html)  # the parts are put together as HTML
    assert html.count("<svg") == 1
    release = shoal.anonymize(TABLE, POLICY)
    certificate = release.save(tmp_path / "release.csv")
    told = verify_certificate(certificate, tmp_path / "release.csv")
    rows = {row[0]: row[1:] for row in shown(told).rows}
    assert rows["measured.k"] == ["2", "2", "holds"]
    assert "nothing contradicts the certificate" in told._repr_html_()
    certificate["measured"]["k"] = 3
    told = verify_certificate(certificate, tmp_path / "release.csv")
    assert {row[0]: row[1:] for row in shown(told).rows}["measured.k"] == ["3", "2", "fails"]
    assert "The certificate does not hold" in told._repr_html_()


def test_attacks_a_frontier_and_a_comparison() -> None:
    release = shoal.anonymize(TABLE, POLICY)
    attacks = shoal.attack(release.table, original=TABLE, policy=POLICY)
    head, *rows = shown(attacks).rows
    assert head == ["attack", "targets", "worked", "95 %", "control", "beyond", "bound"]
    assert [row[0] for row in rows] == [r.name if r.column is None else f"{r.name}, {r.column}" for r in attacks]
    html = attacks._repr_html_()
    for answer in attacks.answers():
        assert answer.sentence.replace("&", "&amp;") in html
    assert html.index("<details>") > html.index("inference: ")
    frontier = shoal.frontier(TABLE, POLICY, k=[2, 3])
    assert shown(frontier).rows[1][:6] == ["1.", "2", "0", "0", "2", "1 in 2"]
    compared = shown(shoal.compare(TABLE, POLICY, algorithms=["optimal", "suppress_columns"]))
    assert compared.rows[0] == ["algorithm", "loss", "classes", "suppressed", "time", "memory", ""]
    assert compared.rows[1][:4] == ["optimal", "0", "2", "0"]


def test_the_longest_claim_is_a_hash_and_is_cut(tmp_path: Path) -> None:
    release = shoal.anonymize(TABLE, POLICY)
    told = verify_certificate(release.save(tmp_path / "release.csv"), tmp_path / "release.csv")
    assert max(len(cell) for row in shown(told).rows for cell in row[1:3]) <= 40


def test_a_policy_is_shown_as_its_file() -> None:
    html = POLICY._repr_html_()
    assert html.startswith("<pre>[columns]")
    assert "<script" not in html


def test_charts_are_shown_side_by_side_without_a_network() -> None:
    charts = shoal.anonymize(TABLE, POLICY).charts()
    html = charts._repr_html_()
    assert html.count("<svg") == html.count("<figcaption") == len(charts)
    assert "<script" not in html
    assert "src=" not in html
    del charts["sizes"]
    assert charts._repr_html_().count("<svg") == html.count("<svg") - 1
    assert charts["risk"]._repr_html_().count("<svg") == 1


def test_ipython_takes_the_html() -> None:
    release = shoal.anonymize(TABLE, POLICY)
    explored = explore(TABLE, POLICY, swept={"k": [2, 3]})
    formats = DisplayFormatter()
    for result in (
        release,
        release.measured,
        release.verdicts,
        release.charts(),
        explored,
        explored.chart(),
        explored.frontier,
        shoal.attack(release.table, original=TABLE, policy=POLICY),
        shoal.compare(TABLE, POLICY, algorithms=["optimal"]),
        POLICY,
    ):
        data, _ = formats.format(result)
        assert re.match(r"<(table|pre|figure|p )", data["text/html"]), type(result)


def test_what_is_printed_has_no_value_of_the_data() -> None:
    secret = pa.table({"zip": ["11111", "22222", "33333", "44444"] * 3, "disease": ["kuru", "flu", "gout"] * 4})
    asked = Policy.of({
        "columns": {"zip": {"role": "quasi", "hierarchy": {"mask": "right"}}, "disease": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 6}],
    })  # fmt: skip
    release = shoal.anonymize(secret, asked)
    assert repr(release) == "<Release of 12 records in 1 class: decide first; 6-anonymity holds>"
    seen = (release, release.recoding, release.recoding.released, release.reference, release.counted)
    for value in seen:
        assert not re.search("11111|kuru", repr(value)), type(value)


def test_charts_are_those_of_the_report() -> None:
    release = shoal.anonymize(TABLE, POLICY).attacked()
    charts = release.charts(frontier=shoal.frontier(TABLE, POLICY, k=[2, 4]), columns=())
    assert {"risk", "sizes", "columns", "search", "attacks-0", "frontier"} <= set(charts)
    assert all(chart.title and chart.description and chart.svg().startswith("<svg") for chart in charts.values())


@pytest.mark.parametrize("algorithm", ["optimal", "mondrian"])
def test_a_release(algorithm: str) -> None:
    asked = Policy.of({
        **POLICY.model_dump(mode="json", exclude_none=True),
        "release": {"algorithm": algorithm},
    })  # fmt: skip
    release = shoal.anonymize(TABLE, asked)
    found = shown(release)
    assert found.tags.count("table") == 2
    assert found.rows[-1] == [SCRIPT, "mixed" if algorithm == "mondrian" else "0", "1"]
    assert "0 of 4 records suppressed" in release._repr_html_()
