"""What do other models cost than k-anonymity, and what does a million rows cost?

    python benchmarks/models.py [--data ADULT_FOLDER] [--page]

Adult without occupation, which is sensitive; k = 5 and one more model, arx-loss, beside ARX where a compiled one is
named by SHOAL_ARX_CLASSPATH. Then two sensitive columns; then Adult drawn a million times with a fifth of the cells
redrawn: nine columns and k = 5, and eight columns with each model. ``--page`` writes the tables into
docs/performance_sensitive.md.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from optimal import Census, census
from page import DOCS, between, folded
from page import table as written

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import loss_of
from shoal.tables.frequency import FrequencyTable, count_records

MODELS: dict[str, dict[str, Any]] = {
    "distinct 3-diversity": {"model": "distinct-l-diversity", "l": 3},
    "entropy 5-diversity": {"model": "entropy-l-diversity", "l": 5},
    "recursive (2, 3)-diversity": {"model": "recursive-l-diversity", "c": 2, "l": 3},
    "0.2-closeness, equal": {"model": "t-closeness", "t": 0.2},
    "0.1-closeness, ordered": {"model": "t-closeness", "t": 0.1, "distance": "ordered"},
    "0.15-closeness, hierarchical": {"model": "t-closeness", "t": 0.15, "distance": "hierarchical"},
    "basic 1-likeness": {"model": "basic-beta-likeness", "beta": 1},
}
# The same for the driver of ARX. Its order of the values is another than ours, so the losses of "ordered" differ.
OF_ARX = dict(
    zip(
        MODELS,
        ("distinct:3", "entropy:5", "recursive:2:3", "equal:0.2", "ordered:0.1", "hierarchical:0.15", "likeness:1"),
        strict=True,
    )
)
REPEATS = 5
SHARES = (0.0, 0.02, 0.05)


def policy_of(data: Census, model: dict[str, Any], share: float, *sensitive: str) -> Policy:
    """k = 5 and the model on the sensitive columns, occupation unless others are named."""
    columns = {
        name: {
            "role": "sensitive" if name in (sensitive or ("occupation",)) else "quasi",
            "hierarchy": str(path.resolve()),
        }
        for name, path in data.hierarchies.items()
    }
    require = [{"model": "k-anonymity", "k": 5}, model]
    return Policy.of(
        {"columns": columns, "require": require, "release": {"objective": "arx-loss", "max_suppression": share}}
    )


class Solution(NamedTuple):
    """What one search cost and found."""

    seconds: float
    seen: int
    nodes: int
    loss: float
    suppressed: int

    def row(self, model_name: str, share: float) -> tuple[str, ...]:
        """Write it as a row of a table."""
        figures = (f"{self.seconds:.3f}", f"{self.seen:,}", f"{self.nodes:,}", f"{self.loss:.7f}")
        return (model_name, f"{share:.0%}", *figures, f"{self.suppressed:,}")


def solved(table: FrequencyTable, policy: Policy, repeats: int = 1) -> Solution:
    """Search some times; the seconds are the best."""
    best = math.inf
    for _ in range(repeats):
        start = time.process_time()
        problem = Problem.of(table, policy)
        recoding = SEARCHES["optimal"](problem)
        best = min(best, time.process_time() - start)
    parts = recoding.parts(problem.table)
    loss = loss_of(problem, recoding.released, parts, problem.objective_name)
    return Solution(best, recoding.n_evaluated, recoding.n_nodes, loss, parts.n_suppressed)


class PeerFigures(NamedTuple):
    """What ARX needed for the same problem."""

    seconds: float
    loss: str
    nodes: int


def arx(data: Census) -> dict[tuple[str, float], PeerFigures]:
    """Run ARX on every problem, warm, one thread's CPU time, the best of five; nothing where none is named."""
    classpath = os.environ.get("SHOAL_ARX_CLASSPATH")
    if not classpath or data.name != "Adult":
        return {}
    problems = [(model_name, share) for model_name in MODELS for share in SHARES]
    with tempfile.TemporaryDirectory() as classes:
        driver = Path(__file__).parent / "arx" / "Models.java"
        subprocess.run(["javac", "-d", classes, "-cp", classpath, str(driver)], check=True)
        arguments = [part for model_name, share in problems for part in (OF_ARX[model_name], str(share), str(REPEATS))]
        command = ["java", "-cp", f"{classes}{os.pathsep}{classpath}", "Models", str(data.table.parent), *arguments]
        finished = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split() for line in finished.stdout.splitlines() if len(line.split()) == 5]
    return {
        problem: PeerFigures(float(seconds), loss, int(nodes))
        for problem, (_, _, seconds, loss, nodes) in zip(problems, lines, strict=True)
    }


def redrawn(table: FrequencyTable, n: int, share: float) -> FrequencyTable:
    """``n`` rows drawn from the table, a share of their cells drawn again from their columns."""
    rng = np.random.default_rng(0)
    rows = np.repeat(table.codes, table.counts, axis=0)
    # The sensitive values of the records in the same order, class by class.
    value_pools = {h.domain: np.repeat(h.values, h.counts) for h in table.sensitive.values()}
    drawn = rng.integers(0, len(rows), n)
    again = np.column_stack([column[rng.integers(0, len(rows), n)] for column in rows.T])
    codes = np.where(rng.random((n, rows.shape[1])) < share, again, rows[drawn]).astype(np.int32)
    sensitive = {domain: values[drawn] for domain, values in value_pools.items() if domain is not None}
    return count_records(table.columns, codes, sensitive, None, table.hierarchies)[0]


def geometric(ratios: Sequence[float]) -> float:
    """The geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


HEAD = ("k = 5 and", "suppress at most", "CPU s", "nodes seen", "of", "loss", "suppressed")


def one_column(data: Census, engine: LocalEngine, of_arx: dict[tuple[str, float], PeerFigures]) -> str:
    """Each model and share on Adult, beside ARX."""
    rows = []
    faster: dict[float, list[float]] = {share: [] for share in SHARES}
    n_same = 0
    for model_name, model in MODELS.items():
        for share in SHARES:
            policy = policy_of(data, model, share)
            table = engine.count(policy).table
            solved(table, policy)  # warm
            solution = solved(table, policy, REPEATS)
            other = of_arx.get((model_name, share))
            if other is None:
                rows.append(solution.row(model_name, share))
                continue
            ratio = other.seconds / solution.seconds
            faster[share].append(ratio)
            n_same += abs(float(other.loss) - solution.loss) < 1e-6
            rows.append((*solution.row(model_name, share), f"{other.seconds:.3f}", f"{other.nodes:,}", f"{ratio:.1f}"))
    if not of_arx:
        return folded("Every search", written(HEAD, rows))
    suppressing = [ratio for share, ratios in faster.items() if share for ratio in ratios]
    return (
        f"With suppression {geometric(suppressing):.1f} times as fast as ARX in the geometric mean, at least "
        f"{min(suppressing):.1f} times; without, {geometric(faster[0.0]):.1f} and {min(faster[0.0]):.1f} times. "
        f"Both find the same loss in {n_same} of {len(rows)} problems.\n\n"
        + folded("Every search", written((*HEAD, "ARX, CPU s", "nodes", "× faster"), rows))
    )


def two_columns(data: Census, engine: LocalEngine) -> str:
    """Each model on two sensitive columns."""
    rows = []
    for model_name, model in MODELS.items():
        policy = policy_of(data, model, 0.02, "occupation", "education")
        table = engine.count(policy).table
        solved(table, policy)
        rows.append(solved(table, policy, 3).row(model_name, 0.02))
    return written(HEAD, rows)


def million_rows(data: Census, engine: LocalEngine) -> str:
    """k-anonymity alone, then each model, on a million rows."""
    plain = Policy.parse(data.policy(5, 0.02))
    million = redrawn(engine.count(plain).table, 1_000_000, 0.2)
    alone = "nothing else, nine columns"
    rows = [solved(million, Policy.parse(data.policy(5, share))).row(alone, share) for share in SHARES]
    million = redrawn(engine.count(policy_of(data, MODELS["distinct 3-diversity"], 0.02)).table, 1_000_000, 0.2)
    rows += [
        solved(million, policy_of(data, model, 0.02)).row(model_name, 0.02) for model_name, model in MODELS.items()
    ]
    return written(HEAD, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--page", action="store_true", help="write the tables into docs/performance_sensitive.md")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        data = census(arguments.data, Path(name))
        engine = LocalEngine.of(data.table)
        of_arx = arx(data)
        parts = {
            "one sensitive column": one_column(data, engine, of_arx),
            "two sensitive columns": two_columns(data, engine),
            "a million rows": million_rows(data, engine),
        }
    for title, text in parts.items():
        print(f"{data.name}, {title}\n\n{text}\n")
        if arguments.page:
            between(DOCS / "performance_sensitive.md", f"models.py, {title},", text)


if __name__ == "__main__":
    main()
