"""What do other models cost than k-anonymity, and what does a million rows cost?

    python benchmarks/models.py [--data ADULT_FOLDER]

Adult without occupation, which is sensitive; k = 5 and one more model, arx-loss. Then Adult drawn a million times with
a fifth of the cells redrawn, nine columns, k = 5.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from optimal import Census, census

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import loss_of
from shoal.table.frequency import FrequencyTable, counted

MODELS: dict[str, dict[str, Any]] = {
    "distinct 3-diversity": {"model": "distinct-l-diversity", "l": 3},
    "entropy 5-diversity": {"model": "entropy-l-diversity", "l": 5},
    "recursive (2, 3)-diversity": {"model": "recursive-l-diversity", "c": 2, "l": 3},
    "0.2-closeness, equal": {"model": "t-closeness", "t": 0.2},
    "0.1-closeness, ordered": {"model": "t-closeness", "t": 0.1, "distance": "ordered"},
    "0.15-closeness, hierarchical": {"model": "t-closeness", "t": 0.15, "distance": "hierarchical"},
    "basic 1-likeness": {"model": "basic-beta-likeness", "beta": 1},
}
SHARES = (0.0, 0.02, 0.05)


def asked(data: Census, model: dict[str, Any], share: float) -> Policy:
    """k = 5 and the model on occupation."""
    columns = {
        name: {"role": "sensitive" if name == "occupation" else "quasi", "hierarchy": str(path.resolve())}
        for name, path in data.hierarchies.items()
    }
    require = [{"model": "k-anonymity", "k": 5}, model]
    return Policy.of(
        {"columns": columns, "require": require, "release": {"objective": "arx-loss", "max_suppression": share}}
    )


def solved(table: FrequencyTable, policy: Policy) -> str:
    """One line of figures."""
    start = time.process_time()
    problem = Problem.of(table, policy)
    recoding = SEARCHES["optimal"](problem)
    seconds = time.process_time() - start
    parts = recoding.parts(problem.table)
    loss = loss_of(problem, recoding.released, parts, problem.objective_name)
    return f"{seconds:9.3f} {recoding.n_evaluated:8,} {recoding.n_nodes:8,} {loss:10.7f} {parts.n_suppressed:8,}"


def redrawn(table: FrequencyTable, n: int, share: float) -> FrequencyTable:
    """``n`` rows drawn from the table, a share of their cells drawn again from their columns."""
    rng = np.random.default_rng(0)
    rows = np.repeat(table.codes, table.counts, axis=0)
    drawn = rows[rng.integers(0, len(rows), n)]
    again = np.column_stack([column[rng.integers(0, len(rows), n)] for column in rows.T])
    codes = np.where(rng.random(drawn.shape) < share, again, drawn).astype(np.int32)
    return counted(table.columns, codes, {}, None, table.hierarchies)[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = census(arguments.data, Path(name))
        engine = LocalEngine.of(data.table)
        head = f"{'CPU s':>9} {'seen':>8} {'of':>8} {'loss':>10} {'suppr.':>8}"
        print(f"{data.name}\n{'k = 5 and':<30} {'share':>6} {head}")
        for what, model in MODELS.items():
            for share in SHARES:
                policy = asked(data, model, share)
                table = engine.count(policy).table
                solved(table, policy)  # warm
                print(f"{what:<30} {share:>6.0%} {solved(table, policy)}")
        plain = Policy.parse(data.policy(5, 0.02))
        million = redrawn(engine.count(plain).table, 1_000_000, 0.2)
        print(f"\na million rows, {million.n_classes:,} distinct tuples, k = 5\n{'':<30} {'share':>6} {head}")
        for share in SHARES:
            print(f"{'':<30} {share:>6.0%} {solved(million, Policy.parse(data.policy(5, share)))}")


if __name__ == "__main__":
    main()
