"""What the screens show of a release, computed once, while the run still tells its progress."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException

import shoal
from shoal.recoding import FullDomain
from shoal.release import Release
from shoal.report import charts
from shoal.report.essentials import found_in
from shoal.report.summary import MOST_WORK, Summary, summary
from shoal.report.wording import unit
from shoal.search import Problem
from shoal.web.pages import texts
from shoal.web.workspace import WebRun


def release_of(run: WebRun) -> Release:
    """The release, if it is still in memory."""
    if run.release is None:
        raise HTTPException(410, texts().explore.forgotten)
    return run.release


def summary_of(run: WebRun) -> Summary:
    """What a report tells of the release, computed once."""
    if "summary" not in run.cache:
        run.cache["summary"] = summary(release_of(run))
    found: Summary = run.cache["summary"]
    return found


def prepare(run: WebRun) -> None:
    """Compute what the screen shows, while the run still tells its progress."""
    release, told = release_of(run), summary_of(run)
    title = texts().explore.risk
    run.cache["charts"] = {"risk": charts.inlined(charts.risk_chart(told.bins, unit(release.policy)), "risk", title)}
    run.cache["before"] = _before(run)
    run.cache["nodes"] = _neighbours(run)


def _before(run: WebRun) -> str:
    """How many people could be found in the table as it was."""
    policy = release_of(run).policy
    measured = shoal.measure(run.draft.table.engine, quasi=policy.quasi)
    return found_in(measured, policy, run.draft.table.inspection.records, "record")


def _neighbours(run: WebRun) -> list[dict[str, Any]]:
    """The nodes of the lattice that differ by one level in one column: whether each keeps the policy, and its loss."""
    release = release_of(run)
    recoding = release.recoding
    if not isinstance(recoding, FullDomain):
        return []
    original = release.counted.table
    if 2 * len(recoding.node) * original.n_classes > MOST_WORK:
        return []
    problem = Problem.of(original, release.policy, population=release.reference.population)
    found = []
    for j, hierarchy in enumerate(recoding.hierarchies):
        for step in (-1, 1):
            levels = list(recoding.node)
            levels[j] += step
            if not 0 <= levels[j] <= hierarchy.height:
                continue
            node = tuple(levels)
            seen = problem.evaluate(node)
            found.append(
                {
                    "column": hierarchy.column,
                    "from": hierarchy.number(recoding.node[j]),
                    "to": hierarchy.number(levels[j]),
                    "levels": ",".join(
                        str(h.number(level)) for h, level in zip(recoding.hierarchies, node, strict=True)
                    ),
                    # Limits on attacks are measured on the rows, once the node is built: until then nobody knows.
                    "keeps": None if seen.feasible and release.policy.limits else seen.feasible,
                    "suppressed": seen.n_suppressed,
                }
            )
    return found
