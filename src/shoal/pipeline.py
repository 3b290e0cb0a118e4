"""The whole path on one screen: rows → frequency table → recoding → released rows → counted again → release."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from shoal.engines.base import Rows
from shoal.engines.local import LocalEngine
from shoal.errors import PolicyError
from shoal.measure import Figures, figures
from shoal.models.closeness import TCloseness
from shoal.models.diversity import RecursiveDiversity
from shoal.policy import Policy
from shoal.release import Release
from shoal.search import SEARCHES, Problem
from shoal.search.base import Progress, silent
from shoal.search.loss import losses
from shoal.table.domain import domain_of
from shoal.table.frequency import FrequencyTable
from shoal.verify import Verdicts, judged, recount, recounted, require, warnings_of


def anonymize(data: Any, policy: Policy, *, progress: Progress = silent) -> Release:
    """Turn a table into a release that satisfies the policy, at the least loss the algorithm finds.

    ``data`` is a path or a pandas, polars or pyarrow frame. Raises InfeasibleError where no release satisfies.
    """
    engine = _engine(data)
    progress("counting", 0)
    table = engine.count(policy)  # rows → frequency table
    problem = _problem(table, policy, progress)
    recoding = SEARCHES[policy.release.algorithm](problem)  # frequency table → recoding
    progress("recoding", 0)
    rows = engine.apply(recoding, policy)  # rows → released rows
    progress("counting again", 0)
    whole = engine.domains(policy)
    released = recounted(rows, policy, whole)
    verdicts = judged(released, policy)
    require(verdicts)  # raises before anything is written
    chosen = problem.chosen(recoding)
    return Release(
        rows,
        engine,
        recoding,
        policy,
        whole,
        verdicts,
        _figures(released, policy),
        losses(problem, chosen),
        chosen.n_suppressed,
        (*engine.notes, *warnings_of(rows, released, policy)),
    )


def check(data: Any, policy: Policy, *, original: Any = None) -> Verdicts:
    """Whether a table, as it stands, keeps the promises of a policy; identifiers must be gone.

    Distributions are compared with the whole of ``original`` where it is given, else with the table's own.
    """
    engine = _engine(data)
    names = engine.table.column_names
    if absent := [name for name in (*policy.quasi, *policy.sensitive) if name not in names]:
        raise PolicyError(f"not in the table: column {', '.join(map(repr, absent))} of the policy")
    if policy.release.entity is not None and policy.release.entity not in names:
        raise PolicyError(
            f"column {policy.release.entity!r} tells persons apart and is not in the table: nobody can count them",
            "the certificate holds what was counted when the release was made",
        )
    whole = (engine if original is None else _engine(original)).domains(policy)
    table = recounted(Rows(engine.table, engine.persons(policy)), policy, whole)
    return judged(table, policy, identifiers=[name for name in policy.identifiers if name in names])


def measure(data: Any, *, quasi: Sequence[str], sensitive: Sequence[str] = (), l: int = 2) -> Figures:
    """What a table satisfies as it stands: k, ℓ, t and their kin, and the risks; ``l`` is the ℓ of ``recursive_c``."""
    engine = _engine(data)
    for name in (*quasi, *sensitive):
        if name not in engine.table.column_names:
            raise PolicyError(f"column {name!r} is not in the table")
    if not quasi:
        raise PolicyError("quasi: name at least one column that an intruder could link on")
    whole = {name: domain_of(name, engine.coded(name), None)[0] for name in sensitive}
    with duckdb.connect() as connection:
        connection.register("rows", engine.table)
        return figures(recount(connection, "rows", quasi, whole), l=l)


def _engine(data: Any) -> LocalEngine:
    return data if isinstance(data, LocalEngine) else LocalEngine.of(data)


def _problem(table: FrequencyTable, policy: Policy, progress: Progress) -> Problem:
    return Problem(
        table,
        policy.require,
        limit=policy.allowance(table.n_records),
        objective=policy.release.objective,
        wildcard=policy.release.nulls == "wildcard",
        keep_suppressed=policy.release.suppressed == "keep",
        progress=progress,
    )


def _figures(table: FrequencyTable, policy: Policy) -> Figures:
    """The figures, with the distances and the ℓ that the policy names."""
    distances: dict[str, str] = {}
    l = 2
    for model in policy.require:
        if isinstance(model, TCloseness):
            distances |= dict.fromkeys([model.column] if model.column else policy.sensitive, model.distance)
        if isinstance(model, RecursiveDiversity):
            l = model.l
    return figures(table, l=l, distances=distances)
