"""If these fail, a public name is missing, is something else after an import, or has a table without a type."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing

import pytest

import shoal
from shoal import errors
from shoal.engines.base import Released
from shoal.engines.data import Data, ReleasedTable


def test_public_names_stay_what_they_are_whatever_is_imported() -> None:
    code = (
        "import importlib, pkgutil, types, warnings, shoal\n"
        "warnings.simplefilter('ignore')\n"
        "for module in pkgutil.walk_packages(shoal.__path__, 'shoal.'):\n"
        "    importlib.import_module(module.name)\n"
        "print([name for name in dir(shoal) if isinstance(getattr(shoal, name), types.ModuleType)])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['he', 'smc']"


def test_only_public_names_are_there() -> None:
    assert {"Policy", "Release", "ShoalError", "anonymize", "check", "inspect", "measure", "replay"} <= {*shoal.__all__}
    for name in shoal.__all__:
        assert getattr(shoal, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'anonymise'"):
        shoal.anonymise  # noqa: B018
    assert importlib.import_module("shoal") is shoal
    assert pkgutil.resolve_name("shoal:anonymize") is shoal.anonymize


def test_dir_lists_the_public_names_and_nothing_else() -> None:
    importlib.import_module("shoal.pipeline")
    assert dir(shoal) == sorted([*shoal.__all__, "Anonymizer", "__version__", "he", "smc"])


def test_every_error_can_be_caught_by_its_public_name() -> None:
    kinds = [kind for kind in vars(errors).values() if inspect.isclass(kind) and issubclass(kind, shoal.ShoalError)]
    assert len(kinds) > 10
    assert [kind.__name__ for kind in kinds if getattr(shoal, kind.__name__) is not kind] == []
    assert {kind.__name__ for kind in kinds} <= set(shoal.__all__)


def test_tables_have_a_type() -> None:
    assert shoal.Data is Data
    functions = {name: value for name in shoal.__all__ if inspect.isfunction(value := getattr(shoal, name))}
    tables = ("data", "original", "release", "previous", "population", "register", "control")
    found = {
        f"{name}({parameter.name}: {parameter.annotation})"
        for name, function in functions.items()
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name in tables
    }
    assert len(found) > 15
    assert [each for each in found if "Data" not in each] == []
    assert typing.get_type_hints(vars(Released)["table"].func)["return"] is ReleasedTable
