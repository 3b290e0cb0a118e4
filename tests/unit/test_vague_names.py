"""If these fail, too many names say nothing about what they hold, such as ``found`` or ``place``."""

import ast
import re
from collections.abc import Iterator

import pytest

from sources import MODULES, SOURCES, parsed

pytestmark = pytest.mark.xdist_group("sources")  # parsed once

# Words that say nothing about what a value is. A name is vague if it consists of such words alone.
WORDS = """
    another as both each here it its others own same some such that them then there these this those
    few least less like many more most much none once one
    apart beside else from of to when which who whose why what within without
    became begun came done ended gave get given goes gone got had has have held kept
    ask asked asks found known let made place said saw seen shown so still take taken tell telling told turn
    used was were
"""
VAGUE = frozenset(WORDS.split())

MAX_SHARE = 0.01  # of the names that the package binds; some are fixed, such as ``of`` in policies


def is_vague(name: str) -> bool:
    words = re.findall("[a-z0-9]+", name.lower())
    return len(name) > 1 and bool(words) and VAGUE.issuperset(words)


def bound_names(tree: ast.AST) -> Iterator[str]:
    """Yield what is assigned, looped over, a parameter, a function, a class, or an attribute that is set."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


def test_names_made_of_vague_words_alone_are_told_from_others() -> None:
    tree = ast.parse("def found(of, n_found, a):\n    for kept, self.most in a:\n        place_of, node = kept.told")
    assert sorted(filter(is_vague, bound_names(tree))) == ["found", "kept", "most", "of", "place_of"]


def test_names_say_what_they_are() -> None:
    names = [(path.relative_to(SOURCES), name) for path in MODULES for name in bound_names(parsed(path))]
    vague = [f"{path}: {name}" for path, name in names if is_vague(name)]
    assert len(vague) <= MAX_SHARE * len(names), "\n".join(vague)
