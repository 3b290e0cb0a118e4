"""If these fail, the tutorial shows what its code no longer prints, or figures other than those of the lectures."""

from __future__ import annotations

import ast
import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

import shoal

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

# Worked figures of the sources, beside the words that they stand with on the page.
WORKED = [
    "(1, 2, 0, 1, 2) height 6 classes 3\n(1, 2, 0, 2, 1) height 6 classes 3\n(0, 3, 1, 2, 2) height 8 classes 3",
    "[23, 23, 23]\nM    been_married           [178, 11]\nhomogeneity 3.0 of 9\nexclusion 5.0 of 9",
    "class 1 distinct 4 entropy 1.2540\nclass 2 distinct 5 entropy 0.6426\nclass 3 distinct 5 entropy 1.4701\n"
    "class 4 distinct 3 entropy 0.8877\nclass 5 distinct 5 entropy 1.4104",
    "40-59    0.2500  0.5000   0.25  0.0000\nAll      0.4167  0.1667   0.25  0.1667",
    "[3, 4, 5] t 0.3750\n[6, 8, 11] t 0.1667",
]


@pytest.fixture(scope="module")
def outputs() -> list[str]:
    """What each step prints; they continue each other."""
    namespace: dict[str, Any] = {"__name__": "tutorial"}
    texts = []
    for code, _ in STEPS:
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            exec(compile(code, "tutorial", "exec"), namespace)
        texts.append(output.getvalue())
    return texts


@pytest.mark.parametrize("step", range(len(STEPS)))
def test_a_step_prints_what_the_page_shows(step: int, outputs: list[str]) -> None:
    assert outputs[step] == STEPS[step][1]


def test_every_piece_of_code_is_followed_by_what_it_prints() -> None:
    assert len(STEPS) == PAGE.count("```python\n") == PAGE.count("```text\n") > 8


@pytest.mark.parametrize("figures", WORKED)
def test_worked_figures_are_on_the_page(figures: str) -> None:
    assert any(figures in printed for _, printed in STEPS)


def test_only_public_names_are_used() -> None:
    imports = [
        node for code, _ in STEPS for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    modules = {node.module if isinstance(node, ast.ImportFrom) else node.names[0].name for node in imports}
    assert not any(module is None or module.startswith("shoal.") for module in modules)
    names = {name for code, _ in STEPS for name in re.findall(r"\bshoal\.(\w+)", code)}
    assert names <= set(shoal.__all__)
