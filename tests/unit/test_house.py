"""Where things are: the rooms of the package, in which order they may know each other, and the page that says so."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import shoal

SOURCES = Path(shoal.__file__).parent
CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
MODULES = sorted(path for path in SOURCES.rglob("*.py"))


def listed() -> dict[str, list[str]]:
    """The rooms of CONTRIBUTING.md, lowest first, each with the modules that its line names."""
    tree = CONTRIBUTING.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    lines = re.findall(r"^(\S+)\s{2,}(.*?)\s*\[(.*)\]$", tree.replace("\n    ", " "), flags=re.M)
    return {room.rstrip("/"): names.split() for room, _, names in lines}


ROOMS = list(listed())


def room_of(module: str) -> str:
    """The top folder of a module, or its own name where it lies at the root."""
    return module.split(".")[1] if "." in module else "__init__"


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Modules of the package that a module imports, also within functions, but not for types alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for_types = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "shoal":
            for alias in node.names:
                # ``from shoal import pipeline`` names a room, ``from shoal import __version__`` nothing that is one.
                yield node.lineno, f"shoal.{alias.name}" if node.module == "shoal" else str(node.module)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("shoal."))


def test_every_module_is_in_the_room_that_the_page_lists_it_in() -> None:
    there: dict[str, list[str]] = {}
    for path in MODULES:
        parts = path.relative_to(SOURCES).with_suffix("").parts
        if parts[-1] != "__init__":
            room = parts[0] if len(parts) > 1 else "/".join(parts)
            there.setdefault(room, []).append("/".join(parts[1:]) or parts[0])
    assert {room: sorted(names) for room, names in listed().items()} == {
        room: sorted(names) for room, names in there.items()
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCES)))
def test_imports_point_down(path: Path) -> None:
    own = path.relative_to(SOURCES).with_suffix("").parts[0]
    if own == "__init__":  # the front door leads everywhere
        return
    upward = [
        f"line {line}: {module}"
        for line, module in imported(path)
        if (room := room_of(module)) in ROOMS and ROOMS.index(room) > ROOMS.index(own)
    ]
    assert not upward, f"{own} may know the rooms before it only: {', '.join(ROOMS[: ROOMS.index(own)])}"
