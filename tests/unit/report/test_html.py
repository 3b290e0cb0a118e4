"""The report: what it tells, what it must not tell, and that nothing of the data becomes markup."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from decimal import Decimal
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

import shoal
from shoal.attacks.risk import Control, Risk
from shoal.attacks.stories import stories
from shoal.engines.local import LocalEngine
from shoal.errors import OutputError, PolicyError
from shoal.policy import Policy
from shoal.report.drawings import size_plot
from shoal.report.html import SECTIONS, compact_json, render_report, sentence
from shoal.report.intrusion import within_budget
from shoal.report.lettering import PALETTE, style_rules, wrapped_label
from shoal.report.summary import MOST_VALUES, SIZES, summary
from shoal.report.svg import plot_svg
from shoal.text.figures import format_interval, format_number, visible

SCRIPT = "<script>alert(1)</script>"
LINK = '=HYPERLINK("http://example.org","x")'


def policy(*require: dict[str, Any], columns: dict[str, Any] | None = None, **release: Any) -> Policy:
    return Policy.of({
        "columns": {
            "name": {"role": "identifier"},
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}},
            "zip": {"role": "quasi", "hierarchy": {"mask": "right"}},
            "disease": {"role": "sensitive"},
            **(columns or {}),
        },
        "require": list(require) or [{"model": "k-anonymity", "k": 4}],
        "release": release,
    })  # fmt: skip


def people(n: int = 60) -> pa.Table:
    """Ages from 20 to 49, one person each of 97 and in a village; a name for everybody."""
    rng = np.random.default_rng(7)
    ages = [str(20 + i % 30) for i in range(n - 1)] + ["97"]
    zips = [("02138", "02139", "02141")[i % 3] for i in range(n - 1)] + ["99929"]
    diseases = [str(rng.choice(["flu", "asthma", "stroke"])) for _ in range(n - 1)] + ["kuru"]
    return pa.table({"name": [f"Person{i:03}" for i in range(n)], "age": ages, "zip": zips, "disease": diseases})


LENIENT = policy(max_suppression=0.05)


@pytest.fixture(scope="module")
def made() -> shoal.Release:
    return shoal.anonymize(people(), LENIENT)


@pytest.fixture(scope="module")
def page(made: shoal.Release) -> str:
    return render_report(made)


class Texts(HTMLParser):
    """The words of a page, the tags it has, and the attributes that could run or load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words, self.tags, self.loads = [""], set[str](), list[str]()
        self.ids: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.loads += [
            f"{tag} {name}={value}"
            for name, value in attrs
            if name.startswith("on") or (name in ("src", "href", "xlink:href") and not (value or "").startswith("#"))
        ]

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_verdict_and_three_answers_come_first(made: shoal.Release, page: str) -> None:
    seen = Texts(page)
    assert len(seen.ids) == len(set(seen.ids))
    text = "".join(seen.words)
    assert (
        sentence(made)
        == f"This release satisfies its policy: the requirement holds for 59 records in {made.classes} classes."
    )
    head = text[: text.index(SECTIONS["columns"])]
    k = int(made.measured["k"])
    found = f"Someone who knows age and zip finds at least {k} records that match: "
    found += "the probability of picking the right one is "
    found += f"at most 1 in {k}, on average 1 in "
    left = "Kept: zip and disease. Generalized: age. Removed: name. 1 of 60 records (1.7 %) was suppressed."
    inferred = (
        f"In the most revealing class, {100 * made.measured['alpha']:.1f} % of the records have the same disease."
    )
    places = [head.index(words) for words in (sentence(made), found, left, inferred)]
    assert places == sorted(places)
    assert head.count("<svg") == 0
    assert page.partition("<nav")[0].count("<svg") == 1  # one picture
    assert "everybody" not in head
    assert "people" not in head
    assert "the smallest with one level per column, proved" in text


def test_only_sections_with_something_in_them_are_there(made: shoal.Release, page: str) -> None:
    assert [name for name in SECTIONS if name in Texts(page).ids] == [name for name in SECTIONS if name != "frontier"]
    bare = shoal.anonymize(pa.table({"q": ["a", "b"] * 5}), Policy.of({
        "columns": {"q": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 2}],
    }))  # fmt: skip
    page = render_report(bare, attacks=())
    assert [name for name in SECTIONS if name in Texts(page).ids] == ["columns", "requirements", "experts"]
    assert "The policy declares no sensitive column" in page
    links = re.findall('<a href="#([a-z]+)">', page.partition("<nav")[2].partition("</nav>")[0])
    assert links == ["columns", "requirements", "experts"]
    whole = render_report(made, frontier=shoal.frontier(people(), LENIENT, k=[2, 4]))
    assert set(SECTIONS) <= set(Texts(whole).ids)


def test_persons_are_named_only_where_the_policy_tells_them_apart() -> None:
    table = pa.table({"who": [f"p{i // 2}" for i in range(40)], "town": ["Rome", "Padua"] * 20})
    fields: dict[str, Any] = {
        "columns": {"who": {"role": "identifier"}, "town": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 3}],
    }
    records = render_report(shoal.anonymize(table, Policy.of(fields)), attacks=())
    persons = render_report(shoal.anonymize(table, Policy.of({**fields, "release": {"entity": "who"}})), attacks=())
    assert "finds at least 20 records that match" in records
    assert "persons that" not in records
    assert "finds at least 20 persons that match" in persons


def test_losses_lattice_policy_and_certificate_are_closed(page: str) -> None:
    experts = page[page.index('<h2 id="experts">') :]
    assert experts.index("<details>") < experts.index("discernibility")
    assert "<details open" not in page
    for words in ("discernibility", "lattice-chart", "shoal-certificate/", "columns.age"):
        assert words not in page[: page.index('<h2 id="experts">')]
        assert words in experts or words == "columns.age"


def test_the_page_has_no_record_of_the_input_unless_it_is_allowed(made: shoal.Release) -> None:
    rows = set(zip(*(people()[name].to_pylist() for name in ("age", "zip")), strict=True))
    released = set(zip(*(made.table[name].to_pylist() for name in ("age", "zip")), strict=True))
    real, invented = summary(made, originals=True).rows, summary(made).rows
    assert len(real) == len(invented) == 5
    for row in real:
        assert row.before in rows
    for row in (*real, *invented):
        assert row.after in released
    counts = {name: people()[name].to_pylist() for name in ("age", "zip")}
    for row in invented:  # zips are shared by twenty people, ages by two: these are made up from the range
        assert counts["zip"].count(row.before[1]) >= 5 or row.before[1] in ("0213*", "0214*", "021**", "…")
        low, _, high = row.after[0].partition("-")
        assert row.before[0] == str((int(low) + int(high)) // 2)
    assert "constructed examples: the released labels are real" in render_report(made, attacks=())
    allowed = render_report(made, attacks=(), originals=True)
    assert "from the original table" in allowed
    assert "invented" not in allowed


def test_the_same_release_gives_the_same_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    pages = [render_report(shoal.anonymize(people(), LENIENT).with_key(bytes(32))) for _ in range(2)]
    assert pages[0] == pages[1]


def test_attacks_that_would_read_too_much_are_left_out_and_named(
    made: shoal.Release, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.report.intrusion.CELLS", 100)
    text = "".join(Texts(render_report(made)).words)
    assert "Skipped: all attacks: 60 records are too many for the report" in text
    assert "cannot be determined" not in text


def test_nothing_runs_and_nothing_is_loaded(page: str) -> None:
    seen = Texts(page)
    assert not seen.tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base"}
    assert seen.loads == []
    assert "@import" not in page
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_no_identifier_and_no_rare_value_of_the_input(page: str) -> None:
    assert "Person" not in page
    for rare in ("99929", "97", "kuru"):  # the one record that was suppressed
        assert not re.search(rf"(?<![\w.]){rare}(?![\w.])", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)), rare
    assert "kuru" not in page


def test_the_distribution_is_that_of_the_release(made: shoal.Release) -> None:
    # With that of the original the difference would tell what the suppressed record said.
    (found,) = summary(made).sensitive
    released = made.table["disease"].to_pylist()
    assert set(found.values) == set(released)
    assert found.release == pytest.approx([released.count(value) / len(released) for value in found.values])
    for skewed in found.classes:
        labels = dict(skewed.worst.labels)
        members = [
            row["disease"] for row in made.table.to_pylist() if {name: row[name] for name in labels} == labels
        ]  # fmt: skip
        assert len(members) == skewed.worst.records
        assert skewed.shares == pytest.approx([members.count(value) / len(members) for value in found.values])
        apart = sum(abs(a - b) for a, b in zip(skewed.shares, found.release, strict=True)) / 2
        assert skewed.distance == pytest.approx(apart)


def test_sizes_before_and_after_counted_by_hand(made: shoal.Release) -> None:
    told = summary(made)
    assert [each.name for each in told.bins] == list(SIZES)

    def sizes(table: pa.Table) -> list[int]:
        keys = list(zip(table["age"].to_pylist(), table["zip"].to_pylist(), strict=True))
        return [keys.count(key) for key in keys]

    for table, of in ((people(), "before"), (made.table, "after")):
        records = sizes(table)
        for each in told.bins:
            low, _, high = each.name.partition(" to ")
            most = int(high) if high else int(low) if low.isdigit() else 10**9
            inside = sum(int(low.split()[0]) <= n <= most for n in records)
            assert getattr(each, of) == pytest.approx(inside / len(records)), (of, each.name)
    assert sum(each.classes for each in told.bins) == made.classes


def test_the_columns_lose_what_the_release_loses(made: shoal.Release) -> None:
    columns = summary(made).columns
    assert [column.name for column in columns] == ["age", "zip"]
    # Of the released records alone; the suppressed one, which loses everything, is told apart.
    mean = np.mean([column.loss for column in columns])
    assert (59 * mean + 1) / 60 == pytest.approx(made.loss["loss"])
    assert [column.kind for column in columns] == ["coarsened", "kept"]


@pytest.mark.parametrize(("town", "kind"), [(["Rome", "Padua"], "kept"), ([f"t{i}" for i in range(20)], "hidden")])
def test_a_column_is_kept_or_hidden(town: list[str], kind: str) -> None:
    table = pa.table({"town": town * (20 // len(town))})
    asked = Policy.of({"columns": {"town": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 4}]})
    release = shoal.anonymize(table, asked)
    (column,) = summary(release).columns
    assert (column.kind, column.loss) == (kind, 0.0 if kind == "kept" else 1.0)
    assert ("kept unchanged" in render_report(release)) == (kind == "kept")


def test_cells_of_a_column_that_differ_are_counted() -> None:
    asked = policy({"model": "k-anonymity", "k": 3}, algorithm="suppress_cells")
    release = shoal.anonymize(people(), asked)
    assert "of the cells kept" in render_report(release, attacks=())
    for column in summary(release).columns:
        cells = release.table[column.name].to_pylist()
        assert column.hidden_share == pytest.approx(cells.count("*") / len(cells))
        assert column.kept_share == pytest.approx(1 - column.hidden_share)


def test_examples_are_labels_that_a_crowd_shares() -> None:
    asked = policy({"model": "k-anonymity", "k": 10}, max_suppression=0.05)
    release = shoal.anonymize(people(), asked)
    originals = people()
    for column in summary(release).columns:
        values = originals[column.name].to_pylist()
        assert release.table[column.name].to_pylist().count(column.released_label) >= 10
        if column.original_label in values:
            assert values.count(column.original_label) >= 10
    by_name = {column.name: column for column in summary(release).columns}
    # No age is shared by ten people, so none is shown; a decade is.
    assert (
        by_name["age"].original_label is None
        or "-" in by_name["age"].original_label
        or by_name["age"].original_label == "*"
    )


def test_a_crowd_is_one_of_persons_not_of_records() -> None:
    table = pa.table({
        "who": ["a"] * 20 + [f"p{i}" for i in range(10)],
        "city": ["Rome"] * 20 + ["Padua"] * 5 + ["Siena"] * 5,
    })  # fmt: skip
    asked = Policy.of({
        "columns": {"who": {"role": "identifier"}, "city": {"role": "quasi"}},
        "require": [{"model": "k-anonymity", "k": 5}],
        "release": {"entity": "who"},
    })  # fmt: skip
    release = shoal.anonymize(table, asked)
    (column,) = summary(release).columns
    assert column.released_label == "*"
    assert column.original_label in {"Padua", "Siena", None}  # twenty records of Rome are one person
    assert column.original_label is not None
    assert "Rome" not in render_report(release)


def test_somebody_alone_is_not_described() -> None:
    release = shoal.anonymize(people(), policy({"model": "k-anonymity", "k": 1}))
    told = summary(release)
    assert told.worst[0] is not None
    assert told.worst[0].labels == ()
    assert "not shown: a single person" in render_report(release)


def test_the_lattice_says_what_every_node_is(made: shoal.Release) -> None:
    told = summary(made)
    assert told.n_nodes == len(told.lattice) == 4 * 6
    assert sum(node.state == "chosen" for node in told.lattice) == 1
    chosen = next(node for node in told.lattice if node.state == "chosen")
    assert chosen.height == sum(level for level in made.levels.values() if level is not None)
    assert next(node for node in told.lattice if node.height == 0).state == "unsafe"
    assert next(node for node in told.lattice if node.height == 8).state == "safe"


@pytest.mark.parametrize("algorithm", ["mondrian", "top_down", "local_suppression", "forest"])
def test_other_recodings_are_drawn_as_rectangles(algorithm: str) -> None:
    asked = policy({"model": "k-anonymity", "k": 3}, algorithm=algorithm, max_suppression=0.1)
    release = shoal.anonymize(people(), asked)
    told = summary(release)
    assert told.lattice == ()
    assert told.n_nodes is None
    if told.partition is not None:
        assert {told.partition.across, told.partition.up} == {"age", "zip"}
        assert sum(box.records for box in told.partition.boxes) == release.verdicts.records
        assert all(box.left < box.right and box.bottom < box.top for box in told.partition.boxes)
    page = render_report(release)
    assert ("partition-chart" in page) == (told.partition is not None)


def test_values_of_the_data_never_become_markup() -> None:
    names = {"name": "<b>id</b>", "age": "<i>age</i>", "zip": 'z"ip', "disease": SCRIPT}
    n = 40
    table = pa.table({
        names["name"]: [f"P{i}" for i in range(n)],
        names["age"]: [SCRIPT, LINK, "</title><script>alert(2)</script>", "{{ 7*7 }}"] * (n // 4),
        names["zip"]: ["&amp;", "a]b[datum.value", "\u2028", "'+alert(3)+'"] * (n // 4),
        names["disease"]: [SCRIPT, LINK, "</svg>", "{{ 7*7 }}"] * (n // 4),
    })  # fmt: skip
    asked = Policy.of({
        "columns": {
            names["name"]: {"role": "identifier"},
            names["age"]: {"role": "quasi"},
            names["zip"]: {"role": "quasi"},
            names["disease"]: {"role": "sensitive"},
        },
        "require": [{"model": "k-anonymity", "k": 3}],
    })  # fmt: skip
    page = render_report(shoal.anonymize(table, asked))
    seen = Texts(page)
    assert "script" not in seen.tags
    assert not {"b", "i"} & seen.tags
    assert seen.loads == []
    text = "".join(seen.words)
    assert SCRIPT in text
    assert LINK in text
    assert "{{ 7*7 }}" in text


def test_attacks_and_a_frontier_are_shown_where_they_were_made(made: shoal.Release) -> None:
    control = Control(50, 5.0, "people who were not in the table")
    risk = Risk("homogeneity", "inference", "disease", 100, 20.0, control, 0.25, "Of 100 people 20 were <exposed>.")
    page = render_report(made, attacks=[risk], frontier=shoal.frontier(people(), LENIENT, k=[2, 4, 1000]))
    text = "".join(Texts(page).words)
    assert "Of 100 people 20 were <exposed>." in text
    assert "20.0 %" in text
    assert "10.0 %" in text
    assert "infeasible" in text
    assert {"attack-chart-0-t", "frontier-chart-t"} <= set(Texts(page).ids)
    assert "* The policy itself." in text
    assert re.findall(r"\d\. \*", text) == ["2. *"]  # k = 4


def test_a_few_people_before_and_after_are_told_without_their_values(made: shoal.Release, page: str) -> None:
    part = page[page.index("A few people before and after") :]
    part = unescape(part[: part.index("</details>")])
    told = {story.why: story for story in stories(made)}
    assert told["suppressed"].known["age"] == "97"
    for story in told.values():
        assert f"{story.title}:" in part
    assert "A person whose record was suppressed:</dt> <dd>in the original, 1 record matches: it is theirs." in part
    assert "In the release, no record matches." in part
    assert not {"97", "99929", "kuru", "flu", "asthma", "stroke", "02138", "Theirs"} & set(re.findall(r"\w+", part))
    assert "A few people" not in render_report(made, attacks=())


def test_a_report_is_written_whole_and_not_over_anything(made: shoal.Release, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    made.report(path)
    assert path.read_text(encoding="utf-8").endswith("</html>")
    with pytest.raises(OutputError, match="exists"):
        made.report(path)
    made.report(path, force=True)
    source = tmp_path / "people.csv"
    people().to_pandas().to_csv(source, index=False)
    with pytest.raises(OutputError, match="is the input itself"):
        shoal.anonymize(source, LENIENT).report(source, force=True)


def test_an_engine_that_counted_something_else_since() -> None:
    engine = LocalEngine.of(people())
    release = shoal.anonymize(engine, LENIENT)
    expected = summary(release)
    shoal.anonymize(engine, policy({"model": "k-anonymity", "k": 2}, algorithm="mondrian"))
    assert summary(release) == expected
    assert release.counted.n_records == 60


def test_many_values_are_summed_up_and_many_numbers_become_ranges(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    n = 400
    table = pa.table({
        "age": [str(20 + i % 4) for i in range(n)],
        "job": [f"job{i}" for i in rng.integers(0, 30, n)],
        "cost": [int(x) for x in rng.integers(0, 8000, n)],
    })  # fmt: skip
    asked = Policy.of({
        "columns": {"age": {"role": "quasi"}, "job": {"role": "sensitive"}, "cost": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 5}],
    })  # fmt: skip
    release = shoal.anonymize(table, asked)
    job, cost = summary(release).sensitive
    assert len(job.values) == len(cost.values) == MOST_VALUES
    assert job.values[-1].endswith(" others")
    assert " to " in cost.values[0]
    assert (job.metric, cost.metric) == ("equal", "numeric")
    assert all(skewed.distance < 0.2 for skewed in cost.classes)  # costs are as likely anywhere; few occur twice
    for found in (job, cost):
        assert sum(found.release) == pytest.approx(1)
        assert all(sum(skewed.shares) == pytest.approx(1) for skewed in found.classes)
    monkeypatch.setattr("shoal.report.summary.MAX_DISTANCES", 1_000)  # too many classes and numbers to compare each
    assert [each.metric for each in summary(release).sensitive] == ["equal", "equal"]


@pytest.mark.parametrize(("first", "step"), [("1152921504606846976", "1"), ("-1.5e308", "5e306")])
def test_numbers_whose_ranges_floats_cannot_tell_are_drawn_one_by_one(first: str, step: str) -> None:
    costs = [str(Decimal(first) + i * Decimal(step)) for i in range(60)]
    table = pa.table({"age": ["20", "30"] * 30, "cost": costs})
    asked = Policy.of({
        "columns": {"age": {"role": "quasi"}, "cost": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 5}],
    })  # fmt: skip
    (cost,) = summary(shoal.anonymize(table, asked)).sensitive
    assert cost.values[-1].endswith(" others")


def test_what_fills_a_skewed_class_is_drawn_even_where_it_is_rare_elsewhere() -> None:
    common = [f"job{i % 12}" for i in range(240)]
    table = pa.table({"age": ["20"] * 240 + ["30"] * 6, "job": [*common, *["miner"] * 6]})
    asked = Policy.of({
        "columns": {"age": {"role": "quasi"}, "job": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 5}],
    })  # fmt: skip
    (job,) = summary(shoal.anonymize(table, asked)).sensitive
    assert len(job.values) == MOST_VALUES
    assert job.values[-1] == "6 others"
    assert "miner" in job.values
    worst = job.classes[0]
    assert worst.shares[job.values.index("miner")] == 1
    assert list(job.release[:-1]) == sorted(job.release[:-1], reverse=True)


def test_missing_values_are_told_as_such() -> None:
    table = pa.table({"q": pa.array([None, "", "a"] * 10), "s": pa.array([None, "x", "y"] * 10)})
    fields: dict[str, Any] = {
        "columns": {"q": {"role": "quasi"}, "s": {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 2}],
    }
    text = "".join(Texts(render_report(shoal.anonymize(table, Policy.of(fields)))).words)
    assert "(missing)" in text
    wild = shoal.anonymize(table, Policy.of({**fields, "release": {"nulls": "wildcard"}}))
    told = summary(wild)
    assert sum(each.before for each in told.bins) == pytest.approx(1)
    # A null could be anybody: ten nulls are one of thirty, the others one of twenty.
    assert {each.name: each.before for each in told.bins if each.before} == {"20 to 49": pytest.approx(1)}


def test_one_record_and_one_column() -> None:
    table = pa.table({"q": ["a"]})
    asked = Policy.of({"columns": {"q": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 1}]})
    page = render_report(shoal.anonymize(table, asked))
    assert "1 record in 1 class" in page
    assert "Someone who knows q can identify some people with certainty: 100.0 % of the records" in page
    assert "The policy declares no sensitive column" in page


def test_colours_of_charts_are_exchanged_by_the_page() -> None:
    rules = style_rules()
    for name, colour in PALETTE.items():
        assert f'[fill="{colour}"] {{ fill: var(--{name}); }}' in rules
    bins = summary(shoal.anonymize(people(), LENIENT)).bins
    drawn = plot_svg(size_plot(bins), "x", "<t>")
    used = set(re.findall(r'(?:fill|stroke)="(#[0-9a-fA-F]+)"', drawn))
    assert used
    assert used <= set(PALETTE.values())
    assert "&lt;t&gt;" in drawn


def test_a_release_that_would_not_hold_says_so(made: shoal.Release) -> None:
    failed = replace(made.verdicts.verdicts[0], outcome="fails", classes=2, records=3)
    broken = replace(made, verdicts=replace(made.verdicts, verdicts=(failed,)))
    assert sentence(broken).startswith("This release does not satisfy its policy: 1 of 1 requirement failed")
    row = next(line for line in render_report(broken).splitlines() if 'class="fails"' in line)
    assert re.findall(r">([^<>]+)</td>", row)[-3:] == ["2", "3", "fails"]
    named = replace(made, verdicts=replace(made.verdicts, identifiers=("name",)))
    assert sentence(named).startswith("This release does not satisfy its policy: 0 of 1 requirement failed")
    assert "1 identifier not removed" in sentence(named)
    assert "identifier name" in "".join(Texts(render_report(named)).words)


LIMITED = policy(
    {"model": "k-anonymity", "k": 4}, {"model": "linkage-risk", "max": 0.3}, max_suppression=0.05
)  # fmt: skip


def test_a_sensitive_column_of_which_nothing_is_asked_is_named_beside_the_verdict(made: shoal.Release) -> None:
    head = render_report(made).partition("<nav")[0]
    most = made.measured.columns["disease"]["alpha"]
    assert f"No requirement protects 'disease'. In one class, {100 * most:.1f} % of the records share" in unescape(head)
    diverse = {"model": "distinct-l-diversity", "l": 2}
    for guard in (diverse, {**diverse, "column": "disease"}):
        guarded = shoal.anonymize(people(), policy({"model": "k-anonymity", "k": 4}, guard, max_suppression=0.05))
        assert "No requirement protects" not in render_report(guarded)


def test_every_picture_has_a_title_and_a_sentence_that_stands_below_it(made: shoal.Release) -> None:
    frontier = shoal.frontier(people(), LENIENT, k=[2, 4, 8])
    page = render_report(made.attacked(), frontier=frontier)
    figures = re.findall(r"<figure>(.*?)</figure>", page, flags=re.DOTALL)
    assert len(figures) == 1 + 1 + 2 + 2 + 1  # risk; search; two classes; two kinds of attacks; frontier
    for figure in figures:
        (name,) = re.findall(r'aria-describedby="([^"]+)"', figure)
        assert re.search(rf'<figcaption id="{name}">\S.*\.</figcaption>', figure), figure[-200:]
        assert re.search(r"<title [^>]*>[^<]+</title>", figure)


def test_limits_on_attacks_are_part_of_the_verdict() -> None:
    release = shoal.anonymize(people(), LIMITED)
    assert sentence(release).startswith("This release satisfies its policy: all 2 requirements hold")
    page = render_report(release)
    assert 'class="verdict do-not-publish"' not in page
    text = "".join(Texts(page).words)
    assert "linkage risk at most 0.3, measured" in text
    assert "identity linking" in text  # the release's own attacks are shown without being asked for
    linked = Risk("identity linking", "linkability", None, 100, 90.0, None, None, "Ninety were linked.")
    failed = render_report(release, attacks=[linked])
    assert 'class="verdict do-not-publish"' in failed
    assert "does not satisfy its policy: 1 of 2 requirements failed" in failed
    assert "Linkability: possible (identity linking, 90 % above the control)." in failed
    assert "sets no limit on attacks" not in failed
    # What was not measured does not hold either.
    unmeasured = render_report(replace(release, attacks=None), attacks=())
    assert 'class="verdict decide-first"' in unmeasured
    assert "not measured" in unmeasured


def test_what_attacks_answer_stands_beside_the_verdict(made: shoal.Release) -> None:
    page = render_report(made)  # without being asked for
    text = "".join(Texts(page).words)
    assert render_report(made.attacked()).partition("<h2")[0] == page.partition("<h2")[0]
    for question in ("Singling out", "Linkability", "Inference"):
        assert f"{question}: " in text
    head = "".join(Texts(page.partition("<nav")[0]).words)
    best = made.attacked().attacks
    assert best is not None
    assert "attack guessed disease correctly for" in head or "no better with the release than without" in head
    assert "The policy sets no limit on attacks, so its verdict does not depend on them." in text
    assert "Skipped: complementary release" in text
    assert "Disclosure of disease" in text


def test_the_certificate_is_that_of_the_release(made: shoal.Release, tmp_path: Path) -> None:
    saved = made.save(tmp_path / "out.csv")
    page = "".join(Texts(render_report(made, certificate=saved)).words)
    shown = page[page.index('{\n  "schema"') : page.rindex("}") + 1]
    assert json.loads(shown) == saved
    assert json.loads(compact_json(saved)) == saved
    assert json.loads(compact_json({"a": [1, {}, [], "x" * 200], "b": None})) == {
        "a": [1, {}, [], "x" * 200],
        "b": None,
    }
    other = shoal.anonymize(people(), policy({"model": "k-anonymity", "k": 5}, max_suppression=0.05))
    with pytest.raises(OutputError, match="does not belong to this release"):
        render_report(other, certificate=saved)
    with pytest.raises(OutputError, match="does not belong to this release"):
        render_report(made, certificate={})


def test_a_lattice_is_cut_in_two_columns(made: shoal.Release, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = summary(made)
    assert whole.slice is None
    cut = summary(made, ["zip", "age"]).slice
    assert cut is not None
    assert (cut.across, cut.up) == ("zip", "age")
    # Levels are named by labels: no age is shared by five people, so the ages themselves are a number.
    zips, ages = cut.labels
    assert zips[0] in ("02138", "02139", "02141")
    assert (ages[0], zips[-1], ages[-1]) == ("0", "*", "*")
    # There are no other columns, so the cut is the lattice itself: as many nodes of each kind on every height.
    assert sorted((node.position + node.height, node.state) for node in cut.nodes) == sorted(
        (node.height, node.state) for node in whole.lattice
    )
    chosen = next(node for node in cut.nodes if node.state == "chosen")
    assert {"zip": chosen.position, "age": chosen.height} == made.levels
    monkeypatch.setattr("shoal.report.summary.MOST_NODES", 10)
    page = render_report(made)
    assert "slice-chart-t" in Texts(page).ids
    assert "differ from the chosen one in\nage and zip only" in page
    with pytest.raises(PolicyError, match="two different columns"):
        summary(made, ["age", "disease"])
    with pytest.raises(PolicyError, match="two different columns"):
        summary(made, ["age", "age"])


def test_the_columns_of_a_partition_can_be_chosen_and_only_common_values_are_named() -> None:
    asked = policy({"model": "k-anonymity", "k": 3}, algorithm="mondrian", max_suppression=0.1)
    release = shoal.anonymize(people(), asked)
    part = summary(release, ("zip", "age")).partition
    assert part is not None
    assert (part.across, part.up) == ("zip", "age")
    zips, ages = part.ticks
    values = people()
    assert zips
    for name, ticks in (("zip", zips), ("age", ages)):
        for tick in ticks:
            assert values[name].to_pylist().count(tick.label) >= 5
    assert not ages  # nobody shares an age with four others


STEERING = "a\x07b\x1b[31m\u202ec\ufffe"


def test_characters_that_steer_are_shown_as_signs() -> None:
    table = pa.table({STEERING: [STEERING, "b"] * 10, "s" + STEERING: [STEERING, "y"] * 10})
    asked = Policy.of({
        "columns": {STEERING: {"role": "quasi"}, "s" + STEERING: {"role": "sensitive"}},
        "require": [{"model": "k-anonymity", "k": 3}],
    })  # fmt: skip
    page = render_report(shoal.anonymize(table, asked))  # the drawing of charts would end the process
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e\ufffe]", page)
    assert visible(STEERING) == "a\u2407b\u241b[31m\ufffdc\ufffd"
    assert visible(STEERING) in "".join(Texts(page).words)
    assert visible("a\tb\nçé漢 👩‍👩‍👧") == "a\tb\nçé漢 👩‍👩‍👧"


def test_numbers() -> None:
    assert format_number(2**60) == "1.15 × 10^18"
    assert format_number(-1e15) == "-1.00 × 10^15"
    assert format_number(999_999_999_999_999) == "999,999,999,999,999"
    assert format_interval((0.00101, 0.00109)) == "0.1–0.2 %"
    assert format_interval((0.0, 1.0)) == "0.0–100.0 %"


def test_labels_of_charts_are_broken_between_words() -> None:
    assert wrapped_label("short") == ["short"]
    assert wrapped_label("external knowledge attack") == ["external knowledge", "attack"]
    assert wrapped_label("x" * 500) == ["x" * 17 + "…"]
    assert wrapped_label("漢" * 20) == ["漢" * 8 + "…"]
    assert wrapped_label("a\nb") == ["a b"]
    assert wrapped_label("") == [""]


def test_charts_are_well_formed_and_every_mark_has_a_finite_place() -> None:
    drawn: list[Any] = []
    for algorithm in ("optimal", "mondrian"):
        release = shoal.anonymize(people(), policy(max_suppression=0.05, algorithm=algorithm))
        drawn += release.charts(attacks=within_budget(release)).values()
    assert len(drawn) > 8
    for chart in drawn:
        root = ElementTree.fromstring(chart.svg())
        places = [
            number
            for element in root.iter()
            for name in ("x", "y", "width", "height", "d", "transform")
            for number in re.findall(r"nan|inf|-?\d+(?:\.\d+)?", element.get(name, ""))
        ]
        assert len(places) > 20
        assert all(math.isfinite(float(number)) for number in places), chart.name
