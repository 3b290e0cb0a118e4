"""Solve many related policies at once: how the loss grows with stricter requirements.

The table is counted once, and the searches share the tables of the lattice's nodes, because the classes of a node do
not depend on k. Each search starts from the solutions of the others.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from shoal.engines.base import Counted, Engine
from shoal.engines.data import Data
from shoal.engines.opening import original_of, population_of
from shoal.errors import CannotTellError, InfeasibleError, OutOfTimeError, PolicyError, ShoalError, VerificationError
from shoal.forbidden.suppress_forbidden import with_hidden_results
from shoal.judge import judge_release, require
from shoal.pipeline import finished
from shoal.policy import Policy, PolicySource, policy_of
from shoal.recoding import FullDomain, Recoding
from shoal.search import PARTING, SEARCHES, Problem
from shoal.search.cells.classes import released
from shoal.search.full_domain.lattice import Node
from shoal.search.full_domain.rollup import Rollup
from shoal.search.losses.cells import loss_of
from shoal.search.problem import Progress, silent
from shoal.tables.frequency import FrequencyTable
from shoal.text.log import logged
from shoal.text.showing import Shown

# refused: an answer was found, and anonymize would refuse to release it, as attacks on it reach more than is allowed.
PointOutcome = Literal["found", "infeasible", "refused", "out of time", "cannot be told"]
_STATES: dict[type[ShoalError], PointOutcome] = {
    InfeasibleError: "infeasible",
    VerificationError: "refused",
    OutOfTimeError: "out of time",
    CannotTellError: "cannot be told",
}


@dataclass(frozen=True)
class Point:
    """One release of the frontier: its requirements and its cost."""

    asked: dict[str, float]  # the swept parameters: k, l, t, max_suppression
    feasible: bool | None  # None where that is not known: the time budget ended, or a limit cannot be told
    loss: float | None = None  # the policy's objective
    levels: dict[str, int | None] | None = None
    suppressed: int | None = None
    classes: int | None = None
    risk: float | None = None  # one in the smallest class
    proved: bool | None = None
    evaluated: int | None = None  # nodes looked at
    state: PointOutcome = "found"
    reason: str = ""  # why there is no release

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Frontier(Shown):
    """The points, in the order in which the parameters were given."""

    objective: str
    points: tuple[Point, ...]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def __len__(self) -> int:
        return len(self.points)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {"objective": self.objective, "points": [point.as_dict() for point in self.points]}


@dataclass(frozen=True, eq=False)
class Start:
    """A counted table, for any number of frontiers around one policy."""

    counted: Counted
    population: FrequencyTable | None
    engine: Engine  # whose rows are attacked, where a policy limits what attacks may find

    @classmethod
    def from_data(cls, data: Data, policy: Policy) -> Start:
        """Count the table where its rows are."""
        engine, outside = original_of(data, policy), population_of(policy)
        counted = engine.count(policy, outside, apart=policy.release.algorithm in PARTING)
        return cls(counted, None if outside is None else outside.people(policy, counted.table.hierarchies), engine)


SWEPT = ("k", "l", "t", "max_suppression")
LARGEST = 2**63  # of a whole number


def frontier(
    data: Data,
    policy: PolicySource,
    *,
    k: Sequence[int] = (),
    l: Sequence[float] = (),
    t: Sequence[float] = (),
    max_suppression: Sequence[float] = (),
    progress: Progress = silent,
) -> Frontier:
    """Solve the policy for every combination of the given values; what is not given stays as the policy has it.

    Parameters
    ----------
    data
        A path, a pandas, polars or pyarrow frame, or an Ibis table, whose rows stay in place.
    policy
        A ``Policy``, the path of a TOML file, or a dict.
    k
        Values of k, for every requirement that has one.
    l
        Values of ℓ, for every requirement that has one.
    t
        Values of t, for every requirement that has one.
    max_suppression
        Shares of records that may be suppressed.
    progress
        Called with the current task and the share of it that is done.

    Returns
    -------
    Frontier
        A point for each combination: what it loses, its risk, or that it is infeasible.

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
    >>> [(point.asked["k"], point.state) for point in shoal.frontier(people, policy, k=[2, 4, 5])]
    [(2, 'found'), (4, 'found'), (5, 'infeasible')]
    """
    policy = policy_of(policy)
    grid = grid_of({"k": k, "l": l, "t": t, "max_suppression": max_suppression})
    return solve(Start.from_data(data, policy), policy, grid, progress)


def grid_of(parameter_values: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the values of each parameter that has some."""
    grid = {name: numbers for name, values in parameter_values.items() if (numbers := _numbers(name, values))}
    if not grid:
        raise PolicyError("frontier: specify at least one parameter to vary", f"parameters: {', '.join(SWEPT)}")
    return grid


def solve(
    start: Start,
    policy: Policy,
    grid: Mapping[str, Sequence[float]],
    progress: Progress,
    on_point: Callable[[Point], None] | None = None,
) -> Frontier:
    """Solve for every combination of the values in ``grid``; ``on_point`` is called with each solved point."""
    progress = logged(progress)
    table, population = start.counted.table, start.population
    rollup = Rollup(table)
    answers: list[Node] = []
    points = []
    combinations = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    for i, combination in enumerate(combinations):
        progress(
            "solving " + ", ".join(f"{name} = {value:g}" for name, value in combination.items()), i / len(combinations)
        )
        posed = with_parameters(policy, combination)
        problem = Problem.of(table, posed, population=population, rollup=rollup, hints=answers)
        try:
            recoding = SEARCHES[policy.release.algorithm](problem)
            if isinstance(recoding, FullDomain):
                answers.append(recoding.node)
            recoding = with_hidden_results(start.engine, start.counted, recoding, posed)
            require_answer(start.engine, start.counted, problem, recoding, posed, population)
        except tuple(_STATES) as error:
            state = next(state for kind, state in _STATES.items() if isinstance(error, kind))
            settled = state in ("infeasible", "refused")
            points.append(Point(combination, False if settled else None, state=state, reason=error_reason(error)))
            if on_point is not None:
                on_point(points[-1])
            continue
        parts = recoding.parts(table)
        persons = released(problem, recoding).persons
        points.append(
            Point(
                combination,
                feasible=True,
                loss=loss_of(problem, recoding.released, parts, policy.release.objective),
                levels=recoding.levels,
                suppressed=parts.n_suppressed,
                classes=len(persons),
                risk=1 / int(persons.min()),
                proved=recoding.proved,
                evaluated=recoding.n_evaluated,
            )
        )
        if on_point is not None:
            on_point(points[-1])
    return Frontier(policy.release.objective, tuple(points))


def require_answer(
    engine: Engine,
    counted: Counted,
    problem: Problem,
    recoding: Recoding,
    policy: Policy,
    population: FrequencyTable | None,
) -> None:
    """Raise the error that ``anonymize`` would raise when judging this solution.

    Limits on attacks, forbidden results and people of a population take the rows; all else is judged on the classes
    of the answer.
    """
    if policy.limits or policy.forbid or population is not None:
        verdicts = finished(engine, counted, recoding, policy, population)[-1]
    else:
        verdicts = judge_release(released(problem, recoding), policy)
    require(verdicts)


def error_reason(error: ShoalError) -> str:
    """Return why there is no release, without the note that nothing was written."""
    return error.message.removesuffix("; nothing was written")


def _numbers(name: str, values: Any) -> list[float]:
    """Convert the values of a parameter, which need not be Python's own numbers."""
    listed = not isinstance(values, str) and isinstance(values, Iterable)
    try:
        numbers: list[float] = np.asarray(list(values)).tolist() if listed else []
    except ValueError:  # lists within lists
        listed = False
    if not listed or not all(isinstance(value, float) or _is_sane(value) for value in numbers):
        raise PolicyError(f"frontier: {name} takes a list of numbers, as in {name}=[2, 3, 5]")
    return numbers


def _is_sane(value: Any) -> bool:
    return isinstance(value, int) and abs(value) < LARGEST


def parameters(texts: Sequence[str]) -> dict[str, Any]:
    """Parse ``k=2,3,5`` from the command line into values."""
    parsed: dict[str, Any] = {}
    for text in texts:
        name, _, values = text.partition("=")
        if name not in SWEPT or name in parsed:
            raise PolicyError(
                f"frontier: write each parameter once, as in k=2,3,5; not {name!r}", f"parameters: {', '.join(SWEPT)}"
            )
        try:
            parsed[name] = [int(value) if name == "k" else float(value) for value in values.split(",")]
        except ValueError:
            raise PolicyError(f"frontier: {name} takes numbers separated by commas, as in {name}=2,3,5") from None
    return parsed


def with_parameters(policy: Policy, parameter_values: dict[str, float]) -> Policy:
    """Return the policy with other parameters."""
    fields = policy.model_dump(mode="json", exclude_none=True)
    for name, value in parameter_values.items():
        if name == "max_suppression":
            fields["release"]["max_suppression"] = value
            continue
        holders = [model for model in fields["require"] if name in model]
        if not holders:
            raise PolicyError(f"frontier: no requirement of the policy has a parameter {name!r}")
        for model in holders:
            # The ℓ of distinct and recursive diversity is a count.
            model[name] = int(value) if name == "l" and float(value).is_integer() else value
    return Policy.of(fields, policy.folder)
