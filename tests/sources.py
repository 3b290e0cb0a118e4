"""The modules of the package as syntax trees, each parsed and walked once for all tests that read the code."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import shoal

SOURCES = Path(shoal.__file__).resolve().parent
MODULES = sorted(SOURCES.rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def walked(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))
