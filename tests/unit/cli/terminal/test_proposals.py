"""If these fail, a proposal on the terminal shows a value of the data, or does not fit the screen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from shoal.cli.terminal.proposals import show_inspection
from shoal.engines.local import LocalEngine
from shoal.inspection.inspect import inspect


def test_an_inspection_shows_no_value(capsys: pytest.CaptureFixture[str]) -> None:
    data = pa.table({"name": ["Wilhelmina Secret", "Bo Secret"] * 15, "age": [str(20 + i) for i in range(30)]})
    found = inspect(LocalEngine.of(data).table)
    show_inspection(found, ["the separator could also be ';'"], None)
    text = capsys.readouterr().out
    assert "30 records" in text
    assert "identifier" in text
    assert "quasi" in text
    assert "Note: the separator could also be ';'" in text
    assert "-o policy.toml" in text
    assert "Secret" not in text
    show_inspection(found, [], Path("mine.toml"))
    assert "shoal anonymize DATA -p mine.toml" in capsys.readouterr().out


def test_columns_are_grouped_by_role_and_each_reason_is_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(5)
    names = [f"{letter}zz" for letter in "abcdefghijklmnopqrst"]
    data = pa.table({name: draw.integers(0, 14 + i, 300) for i, name in enumerate(names)})
    found = inspect(data)
    show_inspection(found, found.notes, None)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert sum("does not say whether others know" in line for line in lines) == 1
    for name in names:
        assert sum(line.strip().startswith(f"{name} ") for line in lines) >= 1


def test_a_wide_survey_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    draw = np.random.default_rng(5)
    answers = {f"q{i}": draw.integers(1, 6, 200) for i in range(297)}
    data = pa.table({**answers, "age": draw.integers(18, 80, 200), "sex": draw.integers(0, 2, 200)})
    found = inspect(data)
    show_inspection(found, found.notes, None)
    shown = capsys.readouterr().out
    assert len(shown.splitlines()) <= 40
    assert "q0 … q296 (297 columns)" in shown
    assert "one decision" in shown
