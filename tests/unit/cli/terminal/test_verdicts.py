"""If these fail, the terminal says something else of a check than its verdicts."""

from __future__ import annotations

import pytest

from shoal.cli.terminal.verdicts import show_verdicts
from shoal.models.verdict import Verdict, Verdicts


def test_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    verdicts = Verdicts(
        (
            Verdict("5-anonymity", "fails", "k", 1.0, 12, 1234),
            Verdict("recursive (3, 2)-diversity", "holds", "recursive_c", float("inf"), 0, 0),
        ),
        ("na[m]e",),
        10_000,
        321,
    )
    show_verdicts(verdicts)
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == ["5-anonymity", "k", "=", "1", "12", "1,234", "FAILS"]
    assert lines[2].split()[-4:] == ["∞", "0", "0", "holds"]
    assert lines[3].split() == ["identifier", "na[m]e", "not", "removed", "FAILS"]
    assert lines[4] == "The policy does not hold: 10,000 records in 321 classes."


def test_a_policy_that_holds(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts(Verdicts((Verdict("1-anonymity", "holds", "k", 1.0, 0, 0),), (), 2, 2))
    assert capsys.readouterr().out.splitlines()[-1] == "The policy holds: 2 records in 2 classes."


def test_no_colour_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    show_verdicts(Verdicts((Verdict("1-anonymity", "holds", "k", 1.0, 0, 0),), (), 2, 2))
    assert "\x1b" not in capsys.readouterr().out
