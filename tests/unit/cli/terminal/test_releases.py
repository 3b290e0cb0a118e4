"""If these fail, the terminal says something else of a release than its verdicts and figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import shoal
from shoal.cli.terminal.releases import show_release
from shoal.findings import finding
from shoal.policy import Policy


def released(**options: Any) -> shoal.Release:
    data = pa.table({
        "a[bold]ge": ["21", "22", "31", "32", "91"],
        "town": pa.array([None, None, None, None, "x"], pa.string()),
        "note": [f"n{i}" for i in range(5)],
    })  # fmt: skip
    policy = Policy.of({
        "columns": {
            "a[bold]ge": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "town": {"role": "quasi"},
            "note": {"role": "plain"},
        },
        "require": [{"model": "k-anonymity", "k": 2}],
        "release": {"max_suppression": 0.2, **options},
    })  # fmt: skip
    return shoal.anonymize(data, policy)


def test_a_release_in_ten_lines(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "release.csv"
    release = released()
    show_release(release, output)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 11
    assert lines[0].startswith("Do not publish: column 'note' (4 of 4 records) is plain but nearly unique")
    assert lines[1:6] == [
        "The policy holds: 2-anonymity; 4 records in 2 classes.",
        "Someone who knows a[bold]ge and town finds at least 2 records that match: the probability of "
        "picking the right one is at most 1 in 2, on average 1 in 2.",
        # a bracket is not markup
        "Kept: town and note. Generalized: a[bold]ge. 1 of 5 records (20.0 %) was suppressed.",
        "The policy declares no sensitive column, so inference was not assessed.",
        f"Loss {release.loss['loss']:.4f} (0: every value kept, 1: all suppressed): the smallest with one level per "
        "column, proved.",
    ]
    assert lines[6].startswith("Do not publish: Column 'note' (4 of 4 records) is plain but nearly unique")
    assert lines[-1] == f"Written and verified: {output}"


def test_a_release_with_all_its_figures(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    output = tmp_path / "release.csv"
    show_release(released(), output, verbose=True)
    text = capsys.readouterr().out
    lines = {line.split()[0]: line.split() for line in text.splitlines() if line.strip()}
    assert lines["a[bold]ge"] == ["a[bold]ge", "1", "2", "30-39"]
    assert lines["town"] == ["town", "0", "1", "(missing)"]
    for name in ("loss", "discernibility", "precision"):
        assert name in lines
    assert "optimal: loss the smallest with one level per column, proved; " in text
    assert "1 of 5 records suppressed (dropped)." in text
    assert "Do not publish: Column 'note' (4 of 4 records) is plain but nearly unique" in text
    assert str(output) in text.replace("\n", "")
    assert "Certificate" not in text
    beside = {"certificate": Path("proof.json"), "report": None, "recoding": Path("codes.json")}
    show_release(released(algorithm="datafly", max_suppression=0.4), output, companions=beside)
    text = capsys.readouterr().out
    assert "not proved optimal" in text
    assert "Certificate: proof.json" in text
    assert "do not publish it): codes.json" in text
    assert "Report" not in text


def test_no_finding_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"age": ["31", "34"] * 4, **{f"s{i}": ["x", "y", "z", "w"] * 2 for i in range(6)}})
    columns = {"age": {"role": "quasi"}, **{f"s{i}": {"role": "sensitive"} for i in range(6)}}
    policy = Policy.of({"columns": columns, "require": [{"model": "k-anonymity", "k": 4}]})
    release = shoal.anonymize(table, policy)
    [unprotected] = [each for each in release.findings if each.kind == "unprotected"]
    assert unprotected.columns == tuple(f"s{i}" for i in range(6))  # six of a kind are one
    show_release(release, "out.csv", [finding("writing", "2 cells got an apostrophe", "")])
    brief = " ".join(capsys.readouterr().out.split())
    assert brief.count("No requirement protects") == 1
    assert str(unprotected) in brief
    for i in range(6):
        assert f"'s{i}'" in brief
    assert "Note: 2 cells got an apostrophe." in brief
    for each in release.findings:
        assert str(each) in brief
    show_release(release, "out.csv", verbose=True)
    full = " ".join(capsys.readouterr().out.split())
    for each in release.findings:
        assert str(each) in full


def test_a_sensitive_column_of_which_nothing_is_asked_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"age": ["31", "34"] * 2, "disease": ["flu", "flu", "flu", "hiv"]})
    columns = {"age": {"role": "quasi"}, "disease": {"role": "sensitive"}}
    asked: list[dict[str, object]] = [{"model": "k-anonymity", "k": 4}]
    show_release(shoal.anonymize(table, Policy.of({"columns": columns, "require": asked})), "out.csv")
    told = "No requirement protects 'disease'. In one class, 75.0 % of the records share a value."
    assert told in " ".join(capsys.readouterr().out.split())
    asked.append({"model": "distinct-l-diversity", "l": 2})
    show_release(shoal.anonymize(table, Policy.of({"columns": columns, "require": asked})), "out.csv")
    assert "No requirement" not in capsys.readouterr().out
