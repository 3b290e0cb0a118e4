"""What a plain run loads: no more than is listed here, since a person waits for it each time."""

import subprocess
import sys
from pathlib import Path

RUN = """
import sys
before = set(sys.modules)  # what an installed package loads into every process
from shoal.cli.commands import app

try:
    app(["anonymize", "people.csv", "-p", "policy.toml", "-o", "release.csv", "--json"])
except SystemExit as end:
    assert not end.code, end.code
print("LOADED", *(set(sys.modules) - before))
"""
POLICY = """
[columns]
age = { role = "quasi", hierarchy = { intervals = [5, 10] } }
disease = { role = "sensitive" }
[[require]]
model = "k-anonymity"
k = 2
"""
# All that a plain run may load: packages that shoal depends on, what those load, and our own rooms.
PACKAGES = {"duckdb", "numpy", "pyarrow", "pydantic", "rich", "typer"}
THEIRS = {
    "annotated_doc",  # typer
    "annotated_types",  # pydantic
    "cloudpickle",  # pyarrow, where it is installed
    "cython_runtime",
    "dateutil",  # pyarrow, where it is installed
    "pydantic_core",
    "shellingham",  # typer
    "six",  # dateutil
    "typing_extensions",
    "typing_inspection",  # pydantic
}
ROOMS = {
    "shoal",
    "shoal.alternatives",  # which points of a frontier are beaten; none is solved
    "shoal.attacks",
    "shoal.cli",
    "shoal.compiled",
    "shoal.engines",
    "shoal.errors",
    "shoal.findings",
    "shoal.forbidden",
    "shoal.hierarchies",
    "shoal.inspection",
    "shoal.judge",
    "shoal.models",
    "shoal.notation",
    "shoal.original",
    "shoal.pipeline",
    "shoal.policy",
    "shoal.recoding",
    "shoal.release",
    "shoal.report",
    "shoal.risk",
    "shoal.search",
    "shoal.tables",
    "shoal.text",
    "shoal.verify",
}
SEARCH_PARTS = {"shoal.search.full_domain", "shoal.search.losses", "shoal.search.problem"}
# Of these rooms and packages, what only some runs need.
LATE = {
    "pyarrow.parquet",
    "shoal.alternatives.frontier",
    "shoal.attacks.run",
}


def test_a_plain_run_loads_only_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("age,disease\n31,flu\n34,flu\n36,hiv\n38,flu\n", encoding="utf-8")
    (tmp_path / "policy.toml").write_text(POLICY, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", RUN], cwd=tmp_path, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.partition("LOADED ")[2].split())
    assert {"pyarrow", "duckdb", "shoal.search.full_domain.optimal"} <= loaded  # what it does need is seen
    packages = {name.partition(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"shoal"}
    assert {name for name in packages if not name.startswith("_")} <= PACKAGES | THEIRS
    assert packages >= PACKAGES
    assert _first(2, loaded, "shoal") == ROOMS
    assert _first(3, loaded, "shoal.search.") == SEARCH_PARTS
    assert not LATE & loaded


def _first(n: int, modules: set[str], start: str) -> set[str]:
    """The first ``n`` parts of the names that start so."""
    return {".".join(name.split(".")[:n]) for name in modules if name.startswith(start)}


LATER = """
import sys
import pyarrow as pa
import shoal.notation.codec
assert pa.array(["a"]).to_pylist() == ["a"] and "pandas" not in sys.modules
import pandas as pd
from importlib.machinery import SourceFileLoader
assert type(pd.__loader__) is type(pd.__spec__.loader) is SourceFileLoader
column = pd.Series([1.0, float("nan")])
assert pa.array(column).to_pylist() == [1.0, None]  # of a frame NaN is missing: pyarrow knows it for one
frame = pa.table({"a": [1, 2]}).to_pandas()
assert type(frame) is pd.DataFrame and pa.Table.from_pandas(frame)["a"].to_pylist() == [1, 2]
assert not [finder for finder in sys.meta_path if type(finder).__module__.startswith("shoal")]
print("known")
"""


def test_pyarrow_knows_pandas_as_soon_as_somebody_imports_it() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=False)
    assert done.stdout == "known\n", done.stderr
