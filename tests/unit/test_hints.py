"""Messages and hints fit whoever reads them: no flags of the command line in Python."""

import ast
import re
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import shoal
from shoal.cli.commands import app
from shoal.errors import OutputError, ShoalError
from sources import MODULES, SOURCES, walked

FLAG = re.compile(r"(?<![\w-])(--[a-z]|-[opq]\b)")


def speaks_of_flags(source: Path) -> list[int]:
    """The lines with a text that names a flag, unless it is a docstring or told as ``option``."""
    allowed = set()
    for node in walked(source):
        of_option = (isinstance(node, ast.keyword) and node.arg == "option") or (
            isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "option"
        )
        if of_option or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            allowed |= {id(part) for part in ast.walk(node)}
    return [
        node.lineno
        for node in walked(source)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in allowed
        if FLAG.search(node.value) and " " in node.value.strip()
    ]


@pytest.mark.xdist_group("sources")  # parsed once
def test_only_the_command_line_speaks_of_its_flags() -> None:
    found = {
        str(path.relative_to(SOURCES)): lines
        for path in MODULES
        if path.relative_to(SOURCES).parts[0] not in ("cli", "web") and (lines := speaks_of_flags(path))
    }
    assert found == {}


def test_the_command_line_adds_the_flag_that_python_does_not_tell(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    people = pa.table({"age": ["31", "31", "32", "32"]})
    policy = {"columns": {"age": {"role": "quasi"}}, "require": [{"model": "k-anonymity", "k": 2}]}
    release = shoal.anonymize(people, policy)
    release.save("release.csv")
    with pytest.raises(OutputError, match="use force to overwrite it") as caught:
        release.save("release.csv")
    assert "--" not in str(caught.value)
    shoal.Policy.of(policy).save("policy.toml")
    Path("people.csv").write_text("age\n31\n31\n32\n32\n", encoding="utf-8")
    done = CliRunner().invoke(app, ["anonymize", "people.csv", "-p", "policy.toml", "-o", "release.csv"])
    assert done.exit_code == 2
    assert "use force to overwrite it (--force)" in done.output


def test_an_error_without_a_hint_has_no_option_either() -> None:
    assert ShoalError("no").on_command_line == "no"
    assert ShoalError("no", "do", option="--this").on_command_line == "no\nHint: do (--this)"
    assert str(ShoalError("no", "do", option="--this")) == "no\nHint: do"
