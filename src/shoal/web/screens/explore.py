"""Explore: a release beside what it was made of, and what else could be taken."""

from __future__ import annotations

from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shoal.release import Release
from shoal.report import charts
from shoal.report.essentials import essentials, gone, proof
from shoal.report.html import sentence
from shoal.report.summary import Summary, summary
from shoal.report.wording import unit
from shoal.web.pages import get, pages_of, run_of, texts
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


def _show(request: Request) -> Response:
    pages, run = pages_of(request), run_of(request)
    release, told = release_of(run), summary_of(run)
    drawn: dict[str, Any] = run.cache.setdefault("charts", {})
    if "risk" not in drawn:
        drawn["risk"] = charts.inlined(charts.risk_chart(told.bins, unit(release.policy)), "risk", texts().explore.risk)
    return pages.render(
        "explore.html",
        "explore",
        run=run,
        release=release,
        told=told,
        sentence=sentence(release),
        answers=essentials(release, told.columns, run.attacks or release.attacks),
        gone=gone(release),
        proof=proof(release.recoding),
        charts=drawn,
    )


ROUTES = [get("/runs/{run:int}/explore", _show)]
