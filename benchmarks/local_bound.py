"""How far from the least possible loss is local recoding? Many rounds of the bound that `local` reports after a few.

    python benchmarks/local_bound.py [--data ADULT_FOLDER] [--k 2 5 10] [--page]

A recoding of cells is a partition into classes of k or more, and a class costs each of its records what the narrowest
labels over all of them cost. Give every record a price, so that no k records of a class together are paid more than the
class costs: then no partition costs less than all prices together. The highest such prices are the dual of the linear
programme that may take half a class here and a third there (`search/local/bound.py`); every round is a proof.

Costs are linear in the cells. ARX's loss is not: it is taken by its tangent at the answer that `local` found, as the
search itself does; the other bound is of the mean cell loss, where nothing is approximated.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from local import DOCS, plain
from optimal import census
from page import between
from page import table as written

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES
from shoal.search.local.bound import PricedTuples, least_costs
from shoal.search.local.boxes import Space
from shoal.search.local.start import partition_of
from shoal.search.losses.cells import losses
from shoal.tables.frequency import FrequencyTable

ROUNDS = 16


def nearness(table: FrequencyTable, k: int) -> dict[str, float]:
    """What `local` loses, and what no partition can lose less than, in two prices; above cells that are not recoded."""
    problem = plain(table, k)()
    answer = SEARCHES["local"](problem)
    partition, space = partition_of(answer, problem), Space(problem)
    figures = {"loss": losses(problem, answer)["arx-loss"]}
    sums = []
    for weights in np.eye(len(space.columns)):
        priced = PricedTuples.of(space, weights, partition)
        sums.append(float(priced.cost @ priced.counts) + priced.ground * table.n_records)
    for name, weights in (("mean cell loss", space.loss.slopes), ("tangent", space.weights(np.array(sums)))):
        start = time.process_time()
        tuples = PricedTuples.of(space, weights, partition)
        figures[name] = float(tuples.cost @ tuples.counts) / table.n_records
        for total in least_costs(problem, tuples, ROUNDS):
            figures[f"{name}, bound"] = total / table.n_records - tuples.ground
        figures[f"{name}, seconds"] = time.process_time() - start
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--k", type=int, nargs="+", default=[2, 5, 10])
    parser.add_argument("--page", action="store_true", help="write the figures into docs/local.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = census(arguments.data, Path(folder))
        table = LocalEngine.of(data.table).count(Policy.parse(data.policy(5, 0.0)), apart=True).table
        SEARCHES["local"](plain(table.selected(range(300)), 5)())  # compiles
    by_k = {k: nearness(table, k) for k in arguments.k}
    text = written(
        ("", *(f"k = {k}" for k in by_k)),
        [
            ("ARX's loss", *(f"{figures['loss']:.4f}" for figures in by_k.values())),
            ("by its tangent", *(f"{figures['tangent']:.4f}" for figures in by_k.values())),
            ("no partition is below", *(f"{figures['tangent, bound']:.4f}" for figures in by_k.values())),
            ("mean cell loss", *(f"{figures['mean cell loss']:.4f}" for figures in by_k.values())),
            ("no partition is below", *(f"{figures['mean cell loss, bound']:.4f}" for figures in by_k.values())),
            ("CPU seconds of this bound", *(f"{figures['mean cell loss, seconds']:.1f}" for figures in by_k.values())),
        ],
    )
    print(text)
    if arguments.page:
        between(DOCS / "local.md", Path(__file__).name, text)


if __name__ == "__main__":
    main()
