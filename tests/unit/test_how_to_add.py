"""If these fail, adding a model, a loss, a search or a preset takes more than CONTRIBUTING.md says.

One of each is added to a copy of the package, in the files that the page names and in no others. The copy is then used
as anybody would use it: the new names are accepted, do what they say, and are in the reference that the docs print.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import shoal

SOURCES = Path(shoal.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## How to add")[2].partition("\n## ")[0]


@dataclass(frozen=True)
class Addition:
    """What is written for one new thing: whole files, and lines put after others."""

    files: dict[str, str] = field(default_factory=dict)  # new ones
    lines: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # (after which text, what)


ADDITIONS = {
    "A model": Addition(
        files={
            "models/pairs.py": '''"""How many pairs."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from shoal.models.base import Merging, Passing, PrivacyModel, Scores
from shoal.tables.frequency import FrequencyTable


class Pairs(PrivacyModel):
    """At least ``pairs`` pairs of records in every class."""

    model: Literal["pairs"] = "pairs"
    pairs: int = Field(ge=1)
    merging: ClassVar[Merging] = "absorbing"
    figure: ClassVar[str] = "pairs"
    lowest_is_worst: ClassVar[bool] = True

    def scores(self, table: FrequencyTable) -> Scores:
        return (table.counts // 2).astype(float)

    def passes(self, table: FrequencyTable) -> Passing:
        return table.counts >= 2 * self.pairs

    @property
    def summary(self) -> str:
        return f"pairs ≥ {self.pairs}"
'''
        },
        lines={
            "models/__init__.py": [
                ("from shoal.models.release import ", "from shoal.models.pairs import Pairs\n"),
                ("Requirement = Annotated[\n", "    Pairs |\n"),
            ]
        },
    ),
    "A loss": Addition(
        lines={
            "search/losses/definitions.py": [
                (
                    "# --- losses of classes ---",
                    '''class SquaredLoss(CellLoss):
    """Mean over cells of the squared share; a suppressed cell is 1."""

    measure = "share"

    @staticmethod
    def price(measured: Floats, hierarchy: Hierarchy) -> Floats:
        return measured**2


''',
                ),
                ("LOSSES: dict[str, type[CellLoss] | type[ClassLoss]] = {\n", '    "squared": SquaredLoss,\n'),
            ],
            "policy/options.py": [("Objective = Literal[\n", '    "squared",\n')],
        }
    ),
    "A search": Addition(
        files={
            "search/full_domain/top.py": '''"""Top: every column at its highest level.

Needs  a top that satisfies.
Finds  the top, whatever it costs.
Costs  one node.
"""

from __future__ import annotations

from shoal.recoding import Recoding
from shoal.search.problem import Problem


def top(problem: Problem) -> Recoding:
    seen = problem.evaluate(problem.lattice.top)
    if not seen.feasible:
        raise problem.infeasible()
    return problem.best_node(seen, "top", proved=False)
'''
        },
        lines={
            "search/__init__.py": [
                (
                    "SEARCHES: dict[str, Callable[[Problem], Recoding]] = {\n",
                    '    "top": Search("full_domain.top:top"),\n',
                ),
            ],
            "policy/options.py": [("Algorithm = Literal[\n", '    "top",\n')],
        },
    ),
    "A preset": Addition(
        lines={
            "policy/presets.py": [
                ("PresetName = Literal[\n", '    "nine",\n'),
                (
                    "PRESETS: dict[PresetName, Preset] = {\n",
                    '    "nine": Preset("a rule of nine", (KAnonymity(k=9),)),\n',
                ),
            ]
        }
    ),
}

USED = """
import json, sys
import pyarrow as pa
import shoal
import reference
from shoal import testing
from shoal.engines.local import LocalEngine
from shoal.models.pairs import Pairs
from shoal.policy import policy_of
from shoal.search.local.boxes import Space
from shoal.search import SEARCHES
from shoal.search.losses.definitions import LOSSES
from shoal.search.problem import Problem

rows = pa.table({"age": [str(20 + i % 30) for i in range(60)], "sex": ["fm"[i % 7 > 2] for i in range(60)]})

def policy(**release):
    asked = {"require": [{"model": "pairs", "pairs": 2}], "release": release}
    if "preset" in release:
        asked = {"preset": release.pop("preset"), "release": release}
    columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 15]}}, "sex": {"role": "quasi"}}
    return {"columns": columns, **asked}

found = {}
TABLES = ("models of classes", "merging", "families of tables", "disclosure")
for algorithm in ("optimal", "exhaustive", "top_down", "genetic", "mondrian", "top"):
    release = shoal.anonymize(rows, policy(algorithm=algorithm, objective="squared"))
    problem = Problem.of(LocalEngine.of(rows).count(release.policy).table, release.policy)
    parts = release.recoding.parts(problem.table)
    by_hand = sum(
        float(parts.counts @ values.shares[parts.codes[:, j]] ** 2)
        for j, values in enumerate(release.recoding.released)
    ) / (60 * 2)
    found[algorithm] = [release.loss["squared"], by_hand, release.measured["k"], release.levels]
release = shoal.anonymize(rows, policy(objective="squared"))
release.save(sys.argv[1])
found["holds"] = [verdict.asked for verdict in shoal.check(sys.argv[1], policy()).verdicts if verdict.holds]
found["local"] = type(Space(problem).loss).__name__
found["preset"] = [model.k for model in policy_of(policy(preset="nine")).models]
testing.check_model(Pairs, tables=5)
testing.check_loss(LOSSES["squared"], tables=5)
testing.check_search(SEARCHES["top"], tables=5)
found["error"] = ""
try:
    policy_of(policy(objective="beauty"))
except shoal.ShoalError as error:
    found["error"] = str(error)
for part in ("objectives", "algorithms", "presets", "requirements of classes", *TABLES):
    found[part] = reference.PARTS[part]()
print(json.dumps(found))
"""


def named(thing: str) -> set[str]:
    """The files of the package that the page names for a thing."""
    told = re.search(rf"^- \*\*{thing}\*\*: (.*?)(?=^- |\n\n)", PAGE, re.MULTILINE | re.DOTALL)
    assert told, f"CONTRIBUTING.md does not say how to add {thing.lower()}"
    return set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?)`", told[1]))


@pytest.mark.parametrize("thing", ADDITIONS)
def test_it_takes_the_files_that_the_page_names(thing: str) -> None:
    addition = ADDITIONS[thing]
    folders = {path.split("/")[0] + "/" for path in addition.files}
    assert folders | set(addition.lines) == named(thing)


pytestmark = [pytest.mark.xdist_group("how to add"), pytest.mark.long]  # one copy of the package, compiled anew


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a copy of the package with one more of each does."""
    folder = tmp_path_factory.mktemp("copy")
    copy = folder / "shoal"
    shutil.copytree(SOURCES, copy)  # with what is compiled already: times of files are copied too
    for addition in ADDITIONS.values():
        for name, text in addition.files.items():
            assert not (copy / name).exists()
            (copy / name).write_text(text, encoding="utf-8")
        for name, lines in addition.lines.items():
            text = (copy / name).read_text(encoding="utf-8")
            for place, new in lines:
                assert text.count(place) == 1, f"{name}: {place!r} is not there once"
                before_it = place.startswith(("from ", "#"))
                text = text.replace(place, new + place if before_it else place + new)
            (copy / name).write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", USED, str(folder / "safe.csv")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "docs")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("algorithm", ["optimal", "exhaustive", "top_down", "genetic", "mondrian", "top"])
def test_every_search_can_minimize_a_new_loss(found: dict[str, Any], algorithm: str) -> None:
    loss, by_hand, k, _ = found[algorithm]
    assert loss == pytest.approx(by_hand)
    assert k >= 4  # two pairs
    assert found["optimal"][0] <= loss or algorithm in ("top_down", "genetic", "mondrian")
    assert found["local"] == "SquaredLoss"


def test_a_new_loss_is_minimized(found: dict[str, Any]) -> None:
    assert found["optimal"][0] == pytest.approx(found["exhaustive"][0])
    assert found["optimal"][0] < found["top"][0]


def test_a_new_search_is_run(found: dict[str, Any]) -> None:
    assert found["top"][3] == {"age": 3, "sex": 1}


def test_a_new_model_is_judged_in_the_written_file(found: dict[str, Any]) -> None:
    assert found["holds"] == ["pairs ≥ 2"]


def test_a_new_preset_requires_what_it_says(found: dict[str, Any]) -> None:
    assert found["preset"] == [9]


def test_adding_a_model_takes_two_files() -> None:
    addition = ADDITIONS["A model"]
    assert len(addition.files) + len(addition.lines) == 2


def test_the_tables_of_models_are_written_from_the_class(found: dict[str, Any]) -> None:
    assert (
        "| `pairs` | At least `pairs` pairs of records in every class. |  | absorbing | `pairs` |"
        in (found["models of classes"])
    )
    assert "`pairs`" in next(line for line in found["merging"].splitlines() if line.startswith("| absorbing |"))
    assert "`pairs`" in found["families of tables"]
    assert "`pairs`" in next(line for line in found["disclosure"].splitlines() if "| Boolean | identity |" in line)


def test_new_names_are_offered_and_documented(found: dict[str, Any]) -> None:
    assert "'squared'" in found["error"]
    assert "| `squared` | Mean over cells of the squared share" in found["objectives"]
    assert "`top`" in found["algorithms"]
    assert "the top, whatever it costs" in found["algorithms"]
    assert "| `nine` |" in found["presets"]
    assert "At least `pairs` pairs of records in every class." in found["requirements of classes"]
