"""If these fail, a module or a test is not where CONTRIBUTING.md says, or knows a room that stands above it."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from sources import MODULES, SOURCES, parsed, walked

CONTRIBUTING = Path(__file__).resolve().parents[2] / "CONTRIBUTING.md"
pytestmark = pytest.mark.xdist_group("sources")  # parsed once

# Modules with imports inside functions, and why: what is loaded late makes the program start faster, or may be absent.
# None is there to get round a cycle.
LATE = {
    "alternatives/compare": "resource is not on Windows",
    "attacks/candidates": "SciPy's trees and solvers, where values were changed only",
    "attacks/confidence": "SciPy, for intervals only",
    "attacks/limits": "attacks need SciPy, and few policies limit them",
    "cli/alternatives": "a command loads what it runs: --help and --version start in a tenth of a second",
    "cli/check": "a command loads what it runs",
    "cli/demo": "a command loads what it runs",
    "cli/encrypt": "a command loads what it runs",
    "cli/exits": "ctypes is loaded only to guard a run of the program",
    "cli/integral": "a command loads what it runs",
    "cli/options": "a command loads the engine that its data needs",
    "cli/output": "a command loads what it runs",
    "cli/propose": "a command loads what it runs",
    "cli/publish": "a command loads what it runs",
    "cli/share": "a command loads what it runs",
    "cli/query": "a command loads what it runs",
    "cli/targets": "a command loads the formats that it writes",
    "cli/web": "a command loads what it runs, and Starlette may not be installed",
    "results/dp/ledger": "fcntl is not on Windows",
    "results/dp/noise": "OpenDP takes a second, and may not be installed",
    "errors": "difflib is loaded only for a name that is misspelt",
    "engines/backends/spark": "PySpark takes seconds, and may not be installed",
    "engines/cells": "Ibis takes a second",
    "engines/formats/arrow_json": "Feather needs a part of Arrow that few files need",
    "engines/formats/unread_content": "Parquet loads Arrow's file systems, and only a check of a Parquet file needs it",
    "engines/formats/table_files": "Parquet loads Arrow's file systems, which a CSV file does not need",
    "engines/formats/raw_cells": "Parquet loads Arrow's file systems, and only a check of a Parquet file needs it",
    "engines/frames": "narwhals and DuckDB's relations are loaded only where such a frame is given",
    "engines/opening": "Ibis takes a second",
    "engines/temporary": "fcntl is not on Windows",
    "results/he/keys": "TenSEAL may not be installed",
    "results/he/passwords": "cryptography may not be installed",
    "forbidden/fewest_cells": "SciPy's solver, for forbidden results only",
    "original/comparison": "only a comparison with the original needs SciPy",
    "linkage/distance": "SciPy's solver, for assignments only",
    "results/output/ledger": "fcntl is not on Windows",
    "pipeline": "only checks with the original need SciPy; proposals are made only without a policy",
    "inspection/inspect": "the searches are run only where columns are to be kept",
    "release/release": "attacks need SciPy, a release does not",
    "release/signatures": "cryptography may not be installed",
    "report/notebook": "the rest of a report takes a while",
    "risk/__init__": "only some risks need SciPy",
    "risk/keys": "only a population needs SciPy",
    "search/cells/cell_suppression": "SciPy's solver, for small tables only",
    "results/smc/parties": "cryptography may not be installed",
    "results/smc/share": "cryptography may not be installed",
    "compiled/jit": "fcntl is not on Windows; a small table needs no Numba",
    "utility/classifier": "scikit-learn may not be installed",
    "verify/check": "only a comparison with the original needs SciPy",
    "web/app": "the first screen needs no rules for charts",
    "web/loading": "the first screen stands before the rest of shoal is loaded",
    "web/progress": "the first screen stands before the rest of shoal is loaded",
    "web/screens/open": "the first screen stands before the rest of shoal is loaded",
    "web/workspace": "the first screen stands before the rest of shoal is loaded",
}


def rooms() -> list[str]:
    """The rooms of CONTRIBUTING.md, lowest first."""
    tree = CONTRIBUTING.read_text(encoding="utf-8").partition("```text\n")[2].partition("```")[0]
    return [name.rstrip("/") for name in re.findall(r"^(\S+)\s+\S", tree, flags=re.M)]


ROOMS = rooms()


def room_of(module: str) -> str:
    """The top folder of a module, or its own name where it lies at the root."""
    return module.split(".")[1] if "." in module else "__init__"


def name_of(path: Path) -> str:
    """Where a module lies in the package, as in ``cli/check``."""
    return path.relative_to(SOURCES).with_suffix("").as_posix()


@cache
def statements(path: Path) -> tuple[ast.AST, ...]:
    """Everything in a module but what it imports for types alone."""
    for_types = {
        id(part)
        for node in walked(path)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for part in ast.walk(node)
    }
    return tuple(node for node in walked(path) if id(node) not in for_types)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Modules of the package that a module imports, also within functions, but not for types alone."""
    for node in statements(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "shoal":
            for alias in node.names:
                # ``from shoal import pipeline`` names a room, ``from shoal import __version__`` nothing that is one.
                yield node.lineno, f"shoal.{alias.name}" if node.module == "shoal" else str(node.module)
        elif isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names if alias.name.startswith("shoal."))


def test_every_folder_is_a_room_of_the_list() -> None:
    own = {name_of(path).partition("/")[0] for path in MODULES if name_of(path) != "__init__"}
    assert own == set(ROOMS)


def test_imports_point_down() -> None:
    """A room may know the rooms before it only; the front door leads everywhere."""
    upward = [
        f"{name_of(path)}, line {line}: {module}"
        for path in MODULES
        if (own := path.relative_to(SOURCES).with_suffix("").parts[0]) != "__init__"
        for line, module in imported(path)
        if (room := room_of(module)) in ROOMS and ROOMS.index(room) > ROOMS.index(own)
    ]
    assert not upward, f"the order of the rooms is {', '.join(ROOMS)}"


def test_no_two_modules_need_each_other_even_inside_functions() -> None:
    names = {"shoal." + name_of(path).replace("/", ".").removesuffix(".__init__"): path for path in MODULES}
    needs: dict[str, set[str]] = {name: set() for name in names}
    for name, path in names.items():
        for node in statements(path):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shoal."):
                parts = (f"{node.module}.{alias.name}" for alias in node.names)
                needs[name] |= {part if part in names else str(node.module) for part in parts}
            elif isinstance(node, ast.Import):
                needs[name] |= {alias.name for alias in node.names if alias.name in names}
    assert len(list(TopologicalSorter(needs).static_order())) >= len(names)  # a cycle raises, and is named


def test_imports_inside_functions_are_there_for_a_reason() -> None:
    late = {
        name_of(path)
        for path in MODULES
        for function in statements(path)
        if isinstance(function, ast.FunctionDef)
        and any(isinstance(node, ast.Import | ast.ImportFrom) for node in ast.walk(function))
    }
    assert sorted(late) == sorted(LATE)


def classes(path: Path) -> Iterator[str]:
    """The classes of a module, without the underscore of private ones."""
    return (node.name.lstrip("_") for node in parsed(path).body if isinstance(node, ast.ClassDef))


def test_no_two_classes_have_the_same_name() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for name in classes(path):
            found.setdefault(name, []).append(str(path.relative_to(SOURCES)))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


# Functions in two modules that share a name, and why; all others have names of their own.
SAME_FUNCTION_NAME = dict.fromkeys(
    [
        "anonymize",
        "attack",
        "check",
        "compare",
        "compute",
        "decrypt",
        "demo",
        "encrypt",
        "explore",
        "hierarchy",
        "inspect",
        "query",
        "share",
        "synthesize",
    ],
    "a command has the name of the function that it runs",
)


def test_no_two_functions_have_the_same_name() -> None:
    found: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(name_of(path))
    twice = {name: where for name, where in found.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in SAME_FUNCTION_NAME} == {}
    for name in SAME_FUNCTION_NAME:
        assert [where.partition("/")[0] == "cli" for where in sorted(twice[name])].count(True) == 1, twice[name]
        assert len(twice[name]) == 2, twice[name]


OF_ENGINES = re.compile(r"LocalEngine|IbisEngine")


def test_only_engines_tell_engines_apart() -> None:
    """Elsewhere an engine is asked, whatever it is; data are opened by ``engines.opening`` alone."""
    calls = (
        (path, call)
        for path in MODULES
        if path.relative_to(SOURCES).parts[0] != "engines"
        for call in walked(path)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name | ast.Attribute | ast.Call)
    )
    asked = [
        f"{name_of(path)}, line {call.lineno}: {ast.unparse(call)}"
        for path, call in calls
        if ((called := ast.unparse(call.func)) == "isinstance" and OF_ENGINES.search(ast.unparse(call.args[1])))
        or called in ("LocalEngine", "LocalEngine.of", "IbisEngine", "type(engine)")
    ]
    assert not asked, "ask the engine (engines/base.py), and open data with engine_of or rows_of (engines/opening.py)"


UNIT = Path(__file__).resolve().parent


def test_unit_tests_lie_where_the_module_lies_that_they_test() -> None:
    """tests/unit/hierarchies/test_codes.py tests hierarchies/codes.py; of several rooms, none."""
    astray = []
    for path in sorted(UNIT.rglob("test_*.py")):
        folder, name = path.parent.relative_to(UNIT), path.stem.removeprefix("test_")
        tested = (SOURCES / folder / f"{name}.py", SOURCES / folder / name)
        of_folder = name == folder.name and (SOURCES / folder / "__init__.py").exists()
        if folder.parts and not of_folder and not any(each.exists() for each in tested):
            astray.append(str(path.relative_to(UNIT)))
    assert astray == [], "name a test after its module, or put it into tests/unit or tests/oracles"


def test_every_test_file_says_in_its_first_line_what_it_is_for() -> None:
    silent = [path.name for path in sorted(UNIT.parent.rglob("test_*.py")) if ast.get_docstring(parsed(path)) is None]
    assert silent == []
