"""Texts are written in plain English, as far as a test can tell."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sources import MODULES, SOURCES, walked

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("*.md")), ROOT / "benchmarks" / "README.md"]
TEMPLATES = sorted(SOURCES.rglob("*.html"))
pytestmark = pytest.mark.xdist_group("sources")  # parsed once

# Turns of phrase that readers stumble over, each with what to write instead.
QUAINT = {
    "its policy is none": "contains no valid policy",
    "count as was foreseen": "match the expected counts",
    "being told to stop": "signal handling",
    "the file its name": "renames the file into place",
    "given its name": "renamed into place",
    "beside its original": "compared with its original",
    "proved to lose the least": "smallest loss with one level per column, proved",
    "be laid side by side": "be compared",
    "what was asked and what was found": "requirements",
    "whoever knows": "someone who knows",
    "the words, each in a sentence": "glossary",
    "how to get there": "options of the release",
    "tells persons apart": "identifies people",
}
FEWEST_WORDS = 4


def docstrings(module: Path) -> Iterator[tuple[str, str]]:
    for node in walked(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield getattr(node, "name", "the module"), text


def texts(module: Path) -> Iterator[str]:
    """Every string of a module: docstrings, messages, and the fixed parts of formatted ones."""
    for node in walked(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def quaint(text: str) -> list[str]:
    plain = re.sub(r"\s+", " ", text).lower()
    return [phrase for phrase in QUAINT if phrase in plain]


def test_a_docstring_says_something() -> None:
    short = [
        f"{module.relative_to(SOURCES)}, {name}: {text}"
        for module in MODULES
        for name, text in docstrings(module)
        if len(text.split()) < FEWEST_WORDS
    ]
    assert short == []


def test_messages_and_docstrings_have_no_quaint_phrase() -> None:
    found = [
        f"{module.relative_to(SOURCES)}: {phrase}"
        for module in MODULES
        for text in texts(module)
        for phrase in quaint(text)
    ]
    assert found == []


def test_pages_have_no_quaint_phrase() -> None:
    pages = [*PAGES, *TEMPLATES]
    found = [f"{page.name}: {phrase}" for page in pages for phrase in quaint(page.read_text(encoding="utf-8"))]
    assert found == []


def test_a_quaint_phrase_is_found() -> None:
    assert quaint("certificate: its policy\n  is none") == ["its policy is none"]
