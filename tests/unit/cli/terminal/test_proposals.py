from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from shoal.cli.terminal.proposals import show_inspection
from shoal.engines.local import LocalEngine
from shoal.propose.inspect import inspect


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
