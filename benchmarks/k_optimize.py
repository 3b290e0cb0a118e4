"""How much of the gap does k_optimize close on Adult in a minute?

    python benchmarks/k_optimize.py [--data ADULT_FOLDER] [--budget SECONDS] [--page]

Nine quasi-identifiers, 157 values that may start an interval, k = 5, discernibility, with a time budget: the best cut
found, and what no cut can be below. The budget is counted in CPU seconds, so that other processes take nothing of it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from optimal import census
from page import between
from page import table as written

from shoal.engines.local import LocalEngine
from shoal.policy import Policy
from shoal.search import SEARCHES, Problem
from shoal.search.losses.cells import loss_of
from shoal.tables.frequency import FrequencyTable

DOCS = Path(__file__).resolve().parents[1] / "docs"
K, SHARES = 5, (0.0, 0.02, 1.0)


def row(table: FrequencyTable, policy: Policy, share: float) -> tuple[str, ...]:
    """Search once, timed; a line of the page."""
    problem = Problem.of(table, policy)
    start = time.process_time()
    recoding = SEARCHES["k_optimize"](problem)
    cpu = time.process_time() - start
    parts = recoding.parts(problem.table)
    loss = loss_of(problem, recoding.released, parts, problem.objective_name)
    proof = "proved" if recoding.proved else f"{recoding.bound:,.0f}"
    return f"{share:.0%}", f"{loss:,.0f}", proof, f"{parts.n_suppressed:,}", f"{recoding.n_evaluated:,}", f"{cpu:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--budget", type=float, default=60, help="seconds for each search")
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="of records that may be suppressed")
    parser.add_argument("--page", action="store_true", help="write the figures into docs/algorithms.md")
    arguments = parser.parse_args()
    time.monotonic = time.process_time  # the clock of time budgets
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        data = census(arguments.data, Path(folder))
        for seconds in (9, arguments.budget):  # the first time, loops are compiled or loaded
            lines = []
            for share in arguments.shares if seconds == arguments.budget else SHARES[:1]:
                text = data.policy(K, share).replace("arx-loss", "discernibility")
                policy = Policy.parse(f'{text}\nalgorithm = "k_optimize"\ntime_budget = {seconds}')
                table = LocalEngine.of(data.table).count(policy).table
                lines.append(row(table, policy, share))
    head = ("suppress at most", "discernibility", "none below", "suppressed", "evaluated", "CPU s")
    text = written(head, lines)
    print(f"{data.name}\n{text}")
    if arguments.page:
        between(DOCS / "algorithms.md", Path(__file__).name, text)


if __name__ == "__main__":
    main()
