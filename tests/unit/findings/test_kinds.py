"""The registry of kinds, the order of findings, and many of a kind told as one."""

import ast
import re
from pathlib import Path

import pytest

from shoal.findings import FINDERS, KINDS, Finding, finding, headline, publication
from shoal.findings.kinds import ALIKE, ordered

FOLDER = Path(__file__).resolve().parents[3] / "src" / "shoal"


def test_every_kind_is_raised_somewhere_and_registered() -> None:
    """The first argument of every call of ``finding`` in the package is a registered kind, and none is left over."""
    raised = {
        call.args[0].value
        for path in FOLDER.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "finding"
        and isinstance(call.args[0], ast.Constant)
    }
    assert raised == set(KINDS)


def test_a_kind_has_the_gravest_severity_first_and_no_other_than_its_own() -> None:
    order = ["stop", "decide", "note"]
    for kind, severities in KINDS.items():
        assert list(severities) == sorted(set(severities), key=order.index), kind
        assert finding(kind, "Fact", "Remedy").severity == severities[0]
        for other in set(order) - set(severities):
            with pytest.raises(ValueError, match="cannot have the severity"):
                finding(kind, "Fact", "Remedy", severity=other)  # type: ignore[arg-type]
    with pytest.raises(KeyError):
        finding("unheard-of", "Fact", "Remedy")


def test_finders_have_names_of_their_own() -> None:
    assert len({finder.__name__ for finder in FINDERS}) == len(FINDERS)


def test_the_gravest_come_first() -> None:
    note, decide, stop = (
        finding("half-lost", "Lost", "Less"),
        finding("near-numbers", "Near", "Far"),
        finding("unique-plain", "Unique", "Remove"),
    )
    assert ordered([note, decide, stop]) == (stop, decide, note)


def test_many_of_a_kind_are_one_with_all_columns() -> None:
    many = [finding("unprotected", f"Nothing protects 'c{i}'", "Require it", [f"c{i}"], i) for i in range(11)]
    [merged] = ordered(many)
    assert merged.columns == ("c10", *(f"c{i}" for i in range(10)))
    assert merged.people == 10  # the worst, which is told in full
    assert str(merged) == (
        "Nothing protects 'c10'. The same holds for 'c0', 'c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7', 'c8' and 'c9'. "
        "Require it."
    )
    assert len(ordered(many[: ALIKE - 1])) == ALIKE - 1
    mild = [finding("unprotected", "Mild", "Require it", ["d"], severity="decide")]
    assert [each.severity for each in ordered([*many, *mild])] == ["stop", "decide"]


def test_the_publication_verdict_and_its_headline() -> None:
    stop, decide = finding("unique-plain", "Column 'x' is unique", "Remove"), finding("near-numbers", "Near", "Far")
    note = finding("half-lost", "Lost", "Less")
    assert publication("holds", [note]) == "ready"
    assert publication("holds", [note, decide]) == "decide first"
    assert publication("unknown", []) == "decide first"
    assert publication("fails", []) == "do not publish"
    assert publication("unknown", [decide, stop]) == "do not publish"
    assert headline("holds", [note]) == "Ready to publish."
    assert headline("holds", [stop, decide]) == "Do not publish: column 'x' is unique."
    assert headline("fails", [stop]) == "Do not publish: the policy does not hold (and 1 more reason)."
    assert headline("unknown", [decide]) == (
        "Decide first: whether the policy holds cannot be determined (and 1 more reason)."
    )


def test_a_finding_survives_json() -> None:
    one = Finding("unique-plain", "stop", "Fact", "Remedy", ("a", "b"), 3)
    assert Finding.from_dict(one.as_dict()) == one
    assert str(one) == "Fact. Remedy."
    assert str(finding("reading", "It was read.", "")) == "It was read."


def test_the_page_about_findings_has_every_kind_with_its_severities() -> None:
    page = (FOLDER.parents[1] / "docs" / "findings.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| ([a-z, ]+) \|", page, re.M))
    assert rows == {kind: ", ".join(severities) for kind, severities in KINDS.items()}
