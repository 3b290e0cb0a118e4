"""If these fail, help() and editors say too little of a public name, or show an example that does not run."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import shoal
from shoal import errors, he, smc, testing

NAMES = [name for name in shoal.__all__ if name != "Data"]  # a union of types
WITH_EXAMPLE = [name for name in NAMES if name == "ShoalError" or not hasattr(errors, name)]  # the base stands for all


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_is(name: str) -> None:
    first, _, _ = (inspect.getdoc(getattr(shoal, name)) or "").partition("\n")
    assert len(first.split()) > 3


FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(shoal, name))]
CHECKS = [getattr(testing, name) for name in dir(testing) if name.startswith("check_")]
PARTS = [getattr(part, name) for part in (he, smc) for name in part.__all__ if inspect.isfunction(getattr(part, name))]


def sections(text: str) -> dict[str, list[tuple[str, str]]]:
    """The sections of a docstring in numpydoc's form: each name with what is said of it."""
    parts = re.split(r"\n\n(\w+)\n-{3,}\n", f"\n\n{text}")
    return {
        title: re.findall(r"^(\S.*)\n((?:    \S.*(?:\n|$))+)", body, re.MULTILINE)
        for title, body in zip(parts[1::2], parts[2::2], strict=True)
    }


@pytest.mark.parametrize("function", [*(getattr(shoal, name) for name in FUNCTIONS), *CHECKS, *PARTS])
def test_a_public_function_says_each_of_its_parameters(function: Callable[..., object]) -> None:
    signature = inspect.signature(function)
    found = sections(inspect.getdoc(function) or "")
    told = [name for names, _ in found["Parameters"] for name in names.split(", ")]
    assert told == list(signature.parameters)
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values())
    assert not any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in signature.parameters.values())
    returned = {"Returns"} if signature.return_annotation not in ("None", None) else set()
    assert {"Parameters", "Raises", "Examples", *returned} == set(found)
    assert all(found[title] for title in {"Parameters", "Raises", *returned})


@pytest.mark.parametrize("function", PARTS)
def test_the_example_of_a_function_of_a_part_runs(function: Callable[..., object]) -> None:
    [example] = doctest.DocTestFinder(recurse=False).find(function, function.__name__, globs={})
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


@pytest.mark.parametrize("name", WITH_EXAMPLE)
def test_the_example_of_a_public_name_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [example] = doctest.DocTestFinder(recurse=False).find(getattr(shoal, name), name, globs={})
    assert example.examples
    told: list[str] = []
    assert doctest.DocTestRunner().run(example, out=told.append).failed == 0, "".join(told)
    assert list(tmp_path.iterdir()) == []
