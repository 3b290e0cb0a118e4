"""How much does local recoding lose, after how long, and what do the others lose?

    python benchmarks/local.py [--data ADULT_FOLDER] [--json FILE] [--page] [--no-million | --models]

Adult, from the frequency table to the recoding, ARX's loss: Mondrian, which `local` starts from, the best node of
the lattice, and `local` with its default effort; then other requirements, and a million rows for a minute. CPU
seconds, those of both threads added up; one run each, after one on a small table that compiles. ``--page`` writes the
figures into docs/local.md and draws docs/local.svg. ``--models`` measures, and writes, the other requirements alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from charts import lines, save_panels
from models import policy_of, redrawn
from optimal import census
from page import between
from page import table as written

from shoal.engines.local import LocalEngine
from shoal.models.size import KAnonymity
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.report.svg import Plot
from shoal.search import SEARCHES, Problem
from shoal.search.cells.mondrian import BY
from shoal.search.losses.cells import losses
from shoal.search.problem import Terms, silent
from shoal.tables.frequency import FrequencyTable

KS = (2, 5, 10)
MODELS = {
    "0.2-closeness": {"model": "t-closeness", "t": 0.2},
    "distinct 3-diversity": {"model": "distinct-l-diversity", "l": 3},
}
OTHERS = ("optimal", "datafly", "top_down", "mondrian", "mondrian_relaxed")  # that honour those
CELLS: dict[str, Callable[[str], str]] = {
    "labels": lambda _: "hierarchy",
    "labels, ages ranges": lambda name: "range" if name == "age" else "hierarchy",
    "ranges": lambda _: "range",
    "sets": lambda _: "set",
}
DOCS = Path(__file__).resolve().parents[1] / "docs"


def measured(search: Callable[[Problem], Recoding], make: Callable[..., Problem]) -> dict[str, Any]:
    """What an answer loses, what it took, and the curve of the losses on the way."""
    curve: list[tuple[float, float]] = []
    start = time.process_time()

    def heard(what: str, _share: float) -> None:
        if what.startswith("loss "):
            curve.append((time.process_time() - start, float(what.removeprefix("loss "))))

    wall = time.perf_counter()
    problem = make(progress=heard)
    answer = search(problem)
    seconds = time.process_time() - start
    lost = losses(problem, answer)
    return {
        "objective": problem.objective_name,
        "loss": lost[problem.objective_name],
        "average class": lost["average-class"],
        "cpu": seconds,
        "wall": time.perf_counter() - wall,
        "bound": answer.bound,
        "claim": answer.claim,
        "steps": answer.n_evaluated,
        "curve": curve,
    }


def plain(table: FrequencyTable, k: int, **others: Any) -> Callable[..., Problem]:
    """A problem of k-anonymity, made anew for every search."""
    terms = Terms(**({"objective": "arx-loss"} | others))
    return lambda progress=silent: Problem(table, (KAnonymity(k=k),), terms, progress=progress)


def sides(table: FrequencyTable, k: int) -> dict[str, dict[str, Any]]:
    """Every way to recode Adult under one k."""
    searches = {
        "optimal": SEARCHES["optimal"],
        "mondrian_relaxed": SEARCHES["mondrian_relaxed"],
        "local": SEARCHES["local"],
    }
    return {name: measured(search, plain(table, k)) for name, search in searches.items()}


def ncp(table: FrequencyTable, cells: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """Mondrian, each way to choose a column, and ``local`` for two seconds."""
    make = partial(plain, table, 10, objective="loss", cells=[cells(name) for name in table.columns])
    found = {f"mondrian, {by}": measured(SEARCHES["mondrian"], make(dimension=by)) for by in BY}
    return found | {"local": measured(SEARCHES["local"], make(time_budget=2))}


def without(table: FrequencyTable, column: str) -> FrequencyTable:
    """The same records with one quasi-identifier less; equal rows may occur."""
    kept = [j for j, name in enumerate(table.columns) if name != column]
    return replace(
        table,
        columns=tuple(table.columns[j] for j in kept),
        codes=table.codes[:, kept],
        hierarchies=tuple(table.hierarchies[j] for j in kept),
    )


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────


def figures(found: dict[str, Any]) -> str:
    """The part of the page that is written by this program."""
    rows = [
        (name, *(f"{of[k][name]['loss']:.4f} ({of[k][name]['cpu']:.1f} s)" for k in of))
        for of in [found["adult"]]
        for name in next(iter(of.values()))
    ]
    rows.append(("no recoding is below", *(f"{of['local']['bound']:.4f}" for of in found["adult"].values())))
    claims = "; ".join(f"k = {k}: {of['local']['claim']}" for k, of in found["adult"].items())
    lines = [
        f"{found['name']}, {found['records']:,} records, nine quasi-identifiers, ARX's loss, nothing suppressed "
        "(in brackets CPU seconds, of both threads):",
        "",
        written(("", *(f"k = {k}" for k in found["adult"])), rows),
        "",
        f"In the words of the claims: {claims}.",
        "",
        "![Loss over CPU seconds](local.svg)",
        "",
        "Without `salary-class`, k = 10, objective `loss` (NCP), two seconds given to `local`, by what cells may be:",
        "",
        written(
            ("", *found["ncp"]),
            [
                (name, *(f"{of[name]['loss']:.4f} ({of[name]['wall']:.1f} s)" for of in found["ncp"].values()))
                for name in next(iter(found["ncp"].values()))
            ],
        ),
    ]
    if (million := found.get("million")) is not None:
        lines += [
            "",
            f"A million rows of the same with a fifth of the cells redrawn ({million['distinct']:,} distinct tuples), "
            f"k = 5, a minute given: {million['local']['loss']:.4f} with at most {million['peak']:,.0f} MB; "
            f"`mondrian_relaxed` {million['mondrian_relaxed']['loss']:.4f} in "
            f"{million['mondrian_relaxed']['cpu']:.1f} s.",
        ]
    return "\n".join(lines)


def of_models(found: dict[str, Any]) -> str:
    """The part of the page about other requirements."""
    return "\n".join(
        [
            "Other requirements on the same records, `occupation` sensitive, eight quasi-identifiers, k = 5:",
            "",
            written(
                ("", *found["models"]),
                [
                    (name, *(f"{of[name]['loss']:.4f} ({of[name]['cpu']:.1f} s)" for of in found["models"].values()))
                    for name in (*OTHERS, "local")
                ],
            ),
        ]
    )


def drawn(found: dict[str, Any]) -> Plot:
    """The loss while time passes, one line for each k, from where it starts."""
    curves = {
        f"k = {k}": [
            (0.0, of["mondrian_relaxed"]["loss"]),
            *of["local"]["curve"],
            (of["local"]["cpu"], of["local"]["loss"]),
        ]
        for k, of in found["adult"].items()
    }
    return lines(curves, ("CPU seconds", "ARX's loss"), logs=(False, False), size=(600, 280))


def put(found: dict[str, Any]) -> None:
    """Into docs/local.md, between the marks, and docs/local.svg."""
    between(DOCS / "local.md", "local.py, other requirements,", of_models(found))
    if "adult" not in found:
        return
    between(DOCS / "local.md", "local.py", figures(found))
    save_panels([[drawn(found)]], DOCS / "local.svg", "Loss over CPU seconds")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--page", action="store_true", help="write docs/local.md and docs/local.svg")
    parser.add_argument("--no-million", action="store_true", help="leave the million rows out")
    parser.add_argument("--models", action="store_true", help="only the requirements beyond k")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = census(arguments.data, Path(name))
        engine = LocalEngine.of(data.table)
        adult = engine.count(Policy.parse(data.policy(5, 0.0)), apart=True).table
        SEARCHES["local"](plain(adult.selected(range(300)), 5)())  # compiles
        found: dict[str, Any] = {"name": data.name, "records": adult.n_records}
        if not arguments.models:
            found["adult"] = {k: sides(adult, k) for k in KS}
            for k, of in found["adult"].items():
                print(k, {who: (round(each["loss"], 4), round(each["cpu"], 1)) for who, each in of.items()}, flush=True)
            eight = without(adult, "salary-class")
            found["ncp"] = {what: ncp(eight, cells) for what, cells in CELLS.items()}
            for what, of in found["ncp"].items():
                print("NCP", what, {who: (round(each["loss"], 4), round(each["wall"], 2)) for who, each in of.items()})
        found["models"] = {}
        for what, model in MODELS.items():
            policy = policy_of(data, model, 0.0)
            apart = engine.count(policy, apart=True).table
            searches = {name: SEARCHES[name] for name in OTHERS}
            searches |= {"local": SEARCHES["local"]}
            found["models"][what] = {
                name: measured(search, partial(Problem.of, apart, policy)) for name, search in searches.items()
            }
            print(what, {who: round(each["loss"], 4) for who, each in found["models"][what].items()}, flush=True)
        if not (arguments.no_million or arguments.models):
            million = redrawn(adult, 1_000_000, 0.2)
            found["million"] = {
                "distinct": million.n_classes,
                "mondrian_relaxed": measured(SEARCHES["mondrian_relaxed"], plain(million, 5)),
                "local": measured(SEARCHES["local"], plain(million, 5, time_budget=60)),
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
            print("million", round(found["million"]["local"]["loss"], 4), f"{found['million']['peak']:.0f} MB")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    if arguments.page:
        put(found)


if __name__ == "__main__":
    main()
