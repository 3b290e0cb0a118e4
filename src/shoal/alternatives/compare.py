"""Compare several algorithms on the same table and policy: their loss, time and proofs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from shoal.alternatives.frontier import error_reason, require_answer
from shoal.engines.base import Counted, Engine
from shoal.engines.data import Data
from shoal.engines.local import LocalEngine
from shoal.engines.opening import original_of, population_of
from shoal.errors import (
    CannotTellError,
    DataError,
    HierarchyError,
    InfeasibleError,
    OutOfTimeError,
    PolicyError,
    VerificationError,
)
from shoal.forbidden.suppress_forbidden import with_hidden_results
from shoal.hierarchies.hierarchy import Hierarchy
from shoal.inspection.inspection import Purpose
from shoal.policy import Policy, PolicySource, policy_of
from shoal.recoding import Recoding
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.cells.classes import released
from shoal.search.losses.cells import losses
from shoal.search.problem import Progress, silent
from shoal.tables.frequency import FrequencyTable
from shoal.text.log import logged
from shoal.text.showing import Shown, represent
from shoal.utility.queries import query_error

# refused: an answer was found, and anonymize would refuse to release it; cannot be told: whether it would.
EntryOutcome = Literal["found", "declined", "infeasible", "refused", "out of time", "cannot be told"]


@dataclass(frozen=True)
class Entry:
    """The result of one algorithm."""

    algorithm: str
    outcome: EntryOutcome
    reason: str = ""  # why there is no answer
    kind: str = ""  # full domain, cuts, or cells
    loss: dict[str, float] = field(default_factory=dict)
    classes: int | None = None
    suppressed: int | None = None  # records
    risk: float | None = None  # one in the smallest class
    proved: bool | None = None  # that no other answer of its kind has less of the objective
    claim: str = ""  # what else it proved
    seconds: float | None = None  # of search; the first run of a loop compiles it
    memory: float | None = None  # peak growth of the process in megabytes, if the system reports it
    query_error: dict[str, Any] | None = None  # of random counts on the release, if requested
    purpose: Purpose | None = None  # the purpose for which it is the best answer, if any

    @property
    def name(self) -> str:
        """The algorithm and its purpose."""
        return self.algorithm if self.purpose is None else f"{self.algorithm} for {self.purpose}"


@dataclass(frozen=True)
class Comparison(Shown):
    """The entries, in the order in which the algorithms were named."""

    objective: str
    records: int
    entries: tuple[Entry, ...]
    purposes: tuple[Entry, ...] = ()  # the best for tables and for analysis, where no algorithms are named

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def chart(self) -> Any:
        """Draw the loss of each algorithm, as a chart that a notebook displays and ``save`` writes as SVG."""
        return represent(self, "chart")


def compare(
    data: Data,
    policy: PolicySource,
    *,
    algorithms: Sequence[str] = (),
    utility: bool = False,
    progress: Progress = silent,
    each: Callable[[Entry], None] | None = None,
) -> Comparison:
    """Run several algorithms on the same problem; all of them where none is named. Writes nothing.

    Where none is named, ``purposes`` has what ``inspect`` would propose for tables and for analysis.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    algorithms
        The names of the algorithms; by default all.
    utility
        Apply every answer, and compare random counting queries on release and original.
    progress
        Called with the current task and the share of it that is done.
    each
        Called with every entry as soon as it is ready.

    Returns
    -------
    Comparison
        One entry for each algorithm: loss, classes, suppressed records, time, or why it found nothing.

    Raises
    ------
    PolicyError
        If the policy, or an argument, cannot be applied to the table.
    DataError
        If the table cannot be read, or lacks a column.

    Examples
    --------
    >>> import pyarrow as pa, shoal
    >>> people = pa.table({"age": [31, 34, 36, 38], "disease": ["flu", "flu", "hiv", "flu"]})
    >>> policy = {
    ...     "columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "disease": {"role": "sensitive"}},
    ...     "require": [{"model": "k-anonymity", "k": 2}],
    ... }
    >>> found = shoal.compare(people, policy, algorithms=["optimal", "datafly"])
    >>> [(entry.algorithm, entry.loss["loss"], entry.proved) for entry in found]
    [('optimal', 1.0, True), ('datafly', 1.0, False)]
    """
    policy, progress = policy_of(policy), logged(progress)
    names = tuple(algorithms) or tuple(name for name in SEARCHES if name not in _ORACLES)
    if strange := [name for name in names if name not in SEARCHES]:
        raise PolicyError(f"unknown algorithm: {', '.join(map(repr, strange))}", f"algorithms: {', '.join(SEARCHES)}")
    engine = original_of(data, policy)
    if utility and not engine.in_memory:
        raise DataError("utility is measured on rows in memory", "omit utility, or compare on a sample in a file")
    outside = population_of(policy)
    counts = {
        parting: engine.count(policy, outside, apart=parting) for parting in sorted({name in PARTING for name in names})
    }
    population = None if outside is None else outside.people(policy, next(iter(counts.values())).table.hierarchies)
    entries = []
    for i, name in enumerate(names):

        def heard(step: str, share: float, name: str = name, i: int = i) -> None:
            progress(f"{name}: {step}", (i + min(share, 1.0)) / len(names))

        counted = counts[name in PARTING]
        entry, recoding = _entry(engine, name, counted, policy, population, heard)
        if utility and recoding is not None:
            entry = replace(entry, query_error=_query_error(engine, counted, recoding, policy))
        entries.append(entry)
        if each is not None:
            each(entry)
    records = next(iter(counts.values())).n_records
    purposes = () if algorithms else _purposes(engine, policy, outside, entries, progress)
    return Comparison(policy.release.objective, records, tuple(entries), purposes)


def _purposes(
    engine: Engine,
    policy: Policy,
    outside: LocalEngine | None,
    entries: Sequence[Entry],
    progress: Progress,
) -> tuple[Entry, ...]:
    """Return the algorithm of each purpose; that for analysis runs again if the policy does not set cells."""
    tables, analysis = (next(e for e in entries if e.algorithm == name) for name in ("single_dimensional", "local"))
    finer = _with_ranges_and_sets(policy, engine.count(policy, outside, apart=True).table.hierarchies)
    if finer is not policy:
        counted = engine.count(finer, outside, apart=True)
        people = None if outside is None else outside.people(finer, counted.table.hierarchies)
        analysis, _ = _entry(engine, "local", counted, finer, people, progress)
    return replace(tables, purpose="tables"), replace(analysis, purpose="analysis")


def _with_ranges_and_sets(policy: Policy, hierarchies: Sequence[Hierarchy]) -> Policy:
    """Return the policy with cells as ``inspect`` proposes them; unchanged if it sets cells itself."""
    if any(policy.columns[name].cells != "hierarchy" for name in policy.quasi):
        return policy
    cells = {h.column: "range" if h.leaf_order in ("numeric", "time") else "set" for h in hierarchies}
    columns = {
        name: column.model_copy(update={"cells": cells[name]}) if name in cells and column.only is None else column
        for name, column in policy.columns.items()
    }
    return policy.model_copy(update={"columns": columns})


_ORACLES = ("exhaustive", "mingen")  # they look at every node, and find what optimal finds


def _query_error(engine: Engine, counted: Counted, recoding: Recoding, policy: Policy) -> dict[str, Any]:
    released = engine.released(engine.apply(counted, recoding, policy))
    return query_error(engine, released, policy, seed=policy.release.seed)


def _entry(
    engine: Engine,
    name: str,
    counted: Counted,
    policy: Policy,
    population: FrequencyTable | None,
    progress: Progress,
) -> tuple[Entry, Recoding | None]:
    with _grown() as grown:
        begin = time.perf_counter()
        try:
            problem = Problem.of(counted.table, policy, population=population, progress=progress)
            recoding = with_hidden_results(engine, counted, SEARCHES[name](problem), policy)
        except (PolicyError, HierarchyError, InfeasibleError, OutOfTimeError) as error:
            return Entry(name, _outcome(error), error.message), None
        seconds = time.perf_counter() - begin
    try:
        require_answer(engine, counted, problem, recoding, policy, population)
    except (VerificationError, CannotTellError) as error:
        return Entry(name, _outcome(error), error_reason(error)), None
    released_classes = released(problem, recoding)
    entry = Entry(
        name,
        "found",
        kind=recoding.kind,
        loss=losses(problem, recoding),
        classes=released_classes.n_classes,
        suppressed=recoding.parts(counted.table).n_suppressed,
        risk=1 / int(released_classes.persons.min()),
        proved=recoding.proved,
        claim=recoding.claim,
        seconds=seconds,
        memory=max(grown, default=None),
    )
    return entry, recoding


_OUTCOMES: dict[type[Exception], EntryOutcome] = {
    InfeasibleError: "infeasible",
    OutOfTimeError: "out of time",
    VerificationError: "refused",
    CannotTellError: "cannot be told",
}


def _outcome(error: Exception) -> EntryOutcome:
    return next((outcome for kind, outcome in _OUTCOMES.items() if isinstance(error, kind)), "declined")


@contextmanager
def _grown() -> Iterator[list[float]]:
    """Measure the memory growth of the process in megabytes, sampled every few milliseconds; empty if unavailable."""
    status = Path("/proc/self/statm")
    growth: list[float] = []
    if not status.exists():
        yield growth
        return
    finished = threading.Event()
    before = _resident(status)

    def watch() -> None:
        while not finished.wait(0.005):
            growth.append(max(0.0, _resident(status) - before))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield growth
    finally:
        finished.set()
        watcher.join()
        growth.append(max(0.0, _resident(status) - before))


def _resident(status: Path) -> float:
    import resource

    return int(status.read_text().split()[1]) * resource.getpagesize() / 2**20
