"""Every public name says what it is, and its Example runs as it is printed."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path

import pytest

import shoal
from shoal import errors

NAMES = [name for name in shoal.__all__ if name != "Data"]  # a union of types
WITH_EXAMPLE = [name for name in NAMES if name == "ShoalError" or not hasattr(errors, name)]  # the base stands for all


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name: str) -> None:
    first, _, _ = (inspect.getdoc(getattr(shoal, name)) or "").partition("\n")
    assert len(first.split()) > 3


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_example_of_a_public_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(shoal, name), name, globs={})
    assert example.examples
    told: list[str] = []
    assert doctest.DocTestRunner().run(example, out=told.append).failed == 0, "".join(told)
    assert list(tmp_path.iterdir()) == []
