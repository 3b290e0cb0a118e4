"""How far from the least possible loss is local recoding? Many rounds of the bound that `local` reports after a few.

    python benchmarks/local_bound.py [--data ADULT_FOLDER] [--k 2 5 10] [--models] [--page]

A recoding of cells is a partition into classes of k or more, and a class costs each of its records what the narrowest
labels over all of them cost. Give every record a price, so that no k records of a class together are paid more than the
class costs: then no partition costs less than all prices together. The highest such prices are the dual of the linear
programme that may take half a class here and a third there (`search/cells/local_bound.py`); every round is a proof.

Costs are linear in the cells. ARX's loss is not: it is taken by its tangent at the answer that `local` found, as the
search itself does; the other bound is of the mean cell loss, where nothing is approximated.

With ``--models``, requirements on a sensitive column instead: the bound that knows only the smallest size of a class,
and those that know its values, after one round, as in a run without a time budget, and after all that one with a budget
makes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from local import DOCS, plain
from models import asked
from optimal import Census, census
from page import between
from page import table as written

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.cells.local_bound import (
    PASSING_ROUNDS,
    PricedTuples,
    PricedValues,
    least_costs,
    least_costs_of_passing,
)
from shoal.search.cells.local_boxes import Space
from shoal.search.cells.local_rules import class_rules_of
from shoal.search.cells.local_start import partition_of
from shoal.search.losses.cells import losses
from shoal.tables.frequency import FrequencyTable

ROUNDS = 16
MODELS: dict[str, dict[str, Any]] = {
    "0.2-closeness": {"model": "t-closeness", "t": 0.2},
    "distinct 3-diversity": {"model": "distinct-l-diversity", "l": 3},
    "entropy 3-diversity": {"model": "entropy-l-diversity", "l": 3},
    "recursive (2, 3)-diversity": {"model": "recursive-l-diversity", "c": 2, "l": 3},
}


def nearness(table: FrequencyTable, k: int) -> dict[str, float]:
    """What `local` loses, and what no partition can lose less than, in two prices; above cells that are not recoded."""
    problem = plain(table, k)()
    answer = SEARCHES["local"](problem)
    partition, space = partition_of(answer, problem), Space(problem)
    found = {"loss": losses(problem, answer)["arx-loss"]}
    sums = []
    for weights in np.eye(len(space.columns)):
        of = PricedTuples.of(space, weights, partition)
        sums.append(float(of.cost @ of.counts) + of.ground * table.n_records)
    for name, weights in (("mean cell loss", space.loss.slopes), ("tangent", space.weights(np.array(sums)))):
        start = time.process_time()
        tuples = PricedTuples.of(space, weights, partition)
        found[name] = float(tuples.cost @ tuples.counts) / table.n_records
        for total in least_costs(problem, tuples, ROUNDS):
            found[f"{name}, bound"] = total / table.n_records - tuples.ground
        found[f"{name}, seconds"] = time.process_time() - start
    return found


def with_values(data: Census, model: dict[str, Any]) -> dict[str, float]:
    """The mean cell loss of `local` under one requirement, what none is below, and the seconds of each bound."""
    policy = asked(data, model, 0.0)
    problem = Problem.of(LocalEngine.of(data.table).count(policy, apart=True).table, policy)
    answer = SEARCHES["local"](problem)
    partition, space, rules = partition_of(answer, problem), Space(problem), class_rules_of(problem)
    tuples = PricedTuples.of(space, space.loss.slopes, partition, rules.least)
    n = problem.n_records
    found = {"mean cell loss": float(tuples.cost @ tuples.counts) / n, "smallest class": rules.least}
    start = time.process_time()
    found["by size"] = max(least_costs(problem, tuples, 2)) / n - tuples.ground
    found["by size, seconds"] = time.process_time() - start
    problem.time_budget = 3600  # which only says that there is time for all rounds
    for what, rounds in (("one round", 1), ("all rounds", PASSING_ROUNDS)):
        start = time.process_time()
        values = PricedValues.of(space, tuples, partition, rules)
        proved = max(least_costs_of_passing(problem, values, rounds), default=0.0)
        found[what] = max(found["by size"], proved / n - tuples.ground)
        found[f"{what}, seconds"] = time.process_time() - start
    return found


def of_models(data: Census) -> str:
    """The table of the page."""
    found = {what: with_values(data, model) for what, model in MODELS.items()}
    return written(
        ("", *found),
        [
            ("smallest class that can pass", *(f"{of['smallest class']}" for of in found.values())),
            ("mean cell loss", *(f"{of['mean cell loss']:.4f}" for of in found.values())),
            *(
                (
                    f"none is below, {what}",
                    *(f"{of[what]:.4f} ({of[f'{what}, seconds']:.1f} s)" for of in found.values()),
                )
                for what in ("by size", "one round", "all rounds")
            ),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--k", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--models", action="store_true", help="requirements on a sensitive column instead")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/local.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = census(arguments.data, Path(folder))
        table = LocalEngine.of(data.table).count(Policy.parse(data.policy(5, 0.0)), apart=True).table
        SEARCHES["local"](plain(table.selected(range(300)), 5)())  # compiles
        if arguments.models:
            text = of_models(data)
            print(text)
            if arguments.page:
                between(DOCS / "local.md", "local_bound.py, other requirements,", text)
            return
    found = {k: nearness(table, k) for k in arguments.k}
    text = written(
        ("", *(f"k = {k}" for k in found)),
        [
            ("ARX's loss", *(f"{of['loss']:.4f}" for of in found.values())),
            ("by its tangent", *(f"{of['tangent']:.4f}" for of in found.values())),
            ("no partition is below", *(f"{of['tangent, bound']:.4f}" for of in found.values())),
            ("mean cell loss", *(f"{of['mean cell loss']:.4f}" for of in found.values())),
            ("no partition is below", *(f"{of['mean cell loss, bound']:.4f}" for of in found.values())),
            ("CPU seconds of this bound", *(f"{of['mean cell loss, seconds']:.1f}" for of in found.values())),
        ],
    )
    print(text)
    if arguments.page:
        between(DOCS / "local.md", Path(__file__).name, text)


if __name__ == "__main__":
    main()
