"""What does the second core save, search by search, and is the answer the same?

    python benchmarks/cores.py [--rows ROWS ...] [--only ALGORITHM ...] [--page]

Every algorithm on Adult and on the census-like tables of ``census.py``: k = 5 alone with at most 2 % suppressed, and
with 0.2-closeness of the occupation, where nothing is suppressed: then every algorithm accepts the policy. Each search
has a process of its own that runs it with one thread and with two, in turns, the best of several. What takes less than
a second, or more than the limit, is only named. ``--page`` writes the table into docs/performance.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import growth
import numpy as np
from models import MODELS, policy_of
from optimal import Census, census
from page import DOCS, between, folded
from page import table as written

from shoal.compiled import threads
from shoal.engines.local import LocalEngine
from shoal.errors import ShoalError
from shoal.models.base import PrivacyModel
from shoal.models.closeness import TCloseness
from shoal.models.size import KAnonymity
from shoal.policy import Policy
from shoal.recoding import Recoding
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.problem import Terms
from shoal.tables.frequency import FrequencyTable

ROWS = (100_000, 1_000_000)
SHARE = 0.02
LONG = 1.0  # seconds from which a second core is worth having
MAX_SECONDS = 60.0  # seconds of one run; what takes longer is only named
REPEATS = 3
LOADING = 5_000  # tuples of a first search, which is not measured
CLOSENESS: dict[bool, tuple[PrivacyModel, ...]] = {False: (), True: (TCloseness(t=0.2),)}


def tables(data: Census, rows: list[int]) -> Iterator[tuple[str, bool, Callable[[bool], FrequencyTable]]]:
    """The name of each table, whether its occupation is protected, and how it is counted, apart or not."""
    engine = LocalEngine.of(data.table)
    plain, with_occupation = Policy.parse(data.policy(5, SHARE)), policy_of(data, MODELS["0.2-closeness, equal"], 0.0)
    yield data.name, False, lambda by_sensitive_value: engine.count(plain, apart=by_sensitive_value).table
    yield data.name, True, lambda by_sensitive_value: engine.count(with_occupation, apart=by_sensitive_value).table
    for n in rows:
        for close in (False, True):
            yield (
                f"{n:,} rows",
                close,
                lambda by_sensitive_value, n=n, close=close: _generated(
                    n, close=close, by_sensitive_value=by_sensitive_value
                ),
            )


def _generated(rows: int, *, close: bool, by_sensitive_value: bool) -> FrequencyTable:
    table = growth.counted(rows, 9, None, apart=by_sensitive_value and close)
    return table if close else replace(table, sensitive={})


def solved(table: FrequencyTable, algorithm: str, *, close: bool) -> Recoding:
    """The answer of an algorithm; the one that only suppresses records may suppress all of them."""
    share = 1.0 if algorithm == "suppress_records" else 0.0 if close else SHARE
    terms = Terms(limit=int(share * table.n_records), objective="arx-loss")
    return SEARCHES[algorithm](Problem(table, (KAnonymity(k=5), *CLOSENESS[close]), terms))


def digest(recoding: Recoding, table: FrequencyTable) -> str:
    """One text for all that an answer says: every cell, and what is claimed of it."""
    parts = recoding.parts(table)
    arrays = [parts.row, parts.counts, parts.codes, parts.suppressed]
    contents = [
        [v.labels for v in recoding.released],
        recoding.n_evaluated,
        recoding.claim,
        recoding.proved,
        recoding.bound,
    ]
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays) + repr(contents).encode()).hexdigest()


def searched(path: Path, algorithm: str, close: bool, repeats: int) -> dict[str, Any]:
    """Read a table, search with one thread and with two, and tell what it took."""
    table: FrequencyTable = pickle.loads(path.read_bytes())
    with suppress(ShoalError):  # if a part of the table has no answer, compiled loops are loaded all the same
        solved(table.selected(np.arange(min(LOADING, table.n_classes))), algorithm, close=close)
    cores = threads.THREADS
    took: dict[int, list[tuple[float, float]]] = {1: [], cores: []}
    answers = set()
    for i in range(repeats):
        for n in took:
            threads.THREADS = n
            start, cpu = time.perf_counter(), time.process_time()
            try:
                outcome = digest(solved(table, algorithm, close=close), table)
            except ShoalError as error:
                outcome = f"{type(error).__name__}: {error}"
            took[n].append((time.perf_counter() - start, time.process_time() - cpu))
            answers.add(outcome)
        if i == 0 and min(took[1])[0] < LONG:
            break
    return {
        "one": min(took[1])[0],
        "one_cpu": min(cpu for _, cpu in took[1]),
        "two": min(took[cores])[0],
        "two_cpu": min(cpu for _, cpu in took[cores]),
        "same": len(answers) == 1,
        "error": next((a.partition(":")[0] for a in answers if "Error" in a), ""),
    }


def measured(path: Path, algorithm: str, close: bool, max_seconds: float, repeats: int) -> dict[str, Any] | None:
    """The same in a process of its own; nothing if it takes too long."""
    call = [sys.executable, __file__, "--one", str(path), algorithm, str(int(close)), str(repeats)]
    try:
        finished = subprocess.run(call, check=True, capture_output=True, text=True, timeout=2 * repeats * max_seconds)
    except subprocess.TimeoutExpired:
        return None
    return dict(json.loads(finished.stdout.splitlines()[-1]))


HEAD = ("", "table", "CPU s, one thread", "two", "wall s, one thread", "two", "× faster", "same answer")


def row(algorithm: str, name: str, timings: dict[str, Any]) -> tuple[str, ...]:
    """A line of the table."""
    figures = [f"{timings[key]:.2f}" for key in ("one_cpu", "two_cpu", "one", "two")]
    same_answer = "yes" if timings["same"] else "NO"
    return (f"`{algorithm}`", name, *figures, f"{timings['one'] / timings['two']:.2f}", timings["error"] or same_answer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder with adult.csv and its hierarchies")
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS), help="rows of the generated tables")
    parser.add_argument("--only", nargs="+", default=list(SEARCHES), help="algorithms")
    parser.add_argument(
        "--most", type=float, default=MAX_SECONDS, help="seconds of one run; what takes longer is named"
    )
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--page", action="store_true", help="write the table into docs/performance.md")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)  # a search in a process of its own
    arguments = parser.parse_args()
    if arguments.one:
        path, algorithm, close, repeats = arguments.one
        print(json.dumps(searched(Path(path), algorithm, bool(int(close)), int(repeats))))
        return
    lines, slow = [], []
    with tempfile.TemporaryDirectory() as folder:
        data = census(arguments.data, Path(folder))
        for name, close, count in tables(data, arguments.rows):
            name += ", 0.2-closeness" if close else ""
            for algorithm in arguments.only:
                path = Path(folder) / str(algorithm in PARTING)
                if not path.exists():
                    path.write_bytes(pickle.dumps(count(algorithm in PARTING)))
                timings = measured(path, algorithm, close, arguments.most, arguments.repeats)
                if timings is None:
                    slow.append(f"`{algorithm}` ({name})")
                elif timings["one"] >= LONG:
                    lines.append(row(algorithm, name, timings))
                    print(*lines[-1], sep="  ", flush=True)
            for path in (Path(folder) / "True", Path(folder) / "False"):
                path.unlink(missing_ok=True)
    text = folded("Every search that takes longer than a second", written(HEAD, lines))
    if slow:
        text += f"\n\nNot finished in time: {', '.join(slow)}."
    print(f"\n{text}")
    if arguments.page:
        between(DOCS / "performance.md", "cores.py", text)


if __name__ == "__main__":
    main()
