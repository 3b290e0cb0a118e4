"""The tutorial prints what it says, and what it says is what the lectures and papers say."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

# Worked figures of the sources, beside the words that they stand with on the page.
WORKED = [
    "40 of 288 nodes are 2-anonymous, with at most 0 suppressed\n"
    "106 of 288 nodes are 2-anonymous, with at most 2 suppressed",
    "(1, 2, 0, 1, 2) height 6 classes 3\n(1, 2, 0, 2, 1) height 6 classes 3\n(0, 3, 1, 2, 2) height 8 classes 3",
    "(1, 2, 0, 2, 1)\n2.567",
    "(0, 2, 0, 2, 1) height 5\n(1, 1, 0, 2, 1) height 5\n(1, 2, 0, 1, 1) height 5\n(1, 2, 0, 2, 0) height 5\n"
    "(0, 3, 1, 1, 2) height 7\n(1, 3, 1, 0, 2) height 7",
    "[2, 12, 2, 3]",
    "suppressed 2 released 10",
    "homogeneity 3.0 of 9\nsingle: {'23'}\nmen: [11, 178]",
    "class 1 distinct 4 entropy 1.2540\nclass 2 distinct 5 entropy 0.6426\nclass 3 distinct 5 entropy 1.4701\n"
    "class 4 distinct 3 entropy 0.8877\nclass 5 distinct 5 entropy 1.4104",
    "20-29 distinct 2\n40-59 distinct 3\n30-39 distinct 1",
    "heart table 0.2500 class 0.2500\nflu table 0.1667 class 0.5000",
    "[3, 4, 5] t 0.3750\n[6, 8, 11] t 0.1667",
]


@pytest.mark.parametrize(("code", "printed"), STEPS, ids=[f"step-{i}" for i in range(1, len(STEPS) + 1)])
def test_a_step_prints_what_the_page_shows(code: str, printed: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "tutorial", "exec"), {"__name__": "tutorial"})
    assert said.getvalue() == printed


def test_every_piece_of_code_is_followed_by_what_it_prints() -> None:
    assert len(STEPS) == PAGE.count("```python\n") == PAGE.count("```text\n") > 8


@pytest.mark.parametrize("figures", WORKED)
def test_worked_figures_are_on_the_page(figures: str) -> None:
    assert any(figures in printed for _, printed in STEPS)
