"""Run: how the release is searched for, the runs so far side by side, and the start of another."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any, get_args

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import shoal
from shoal.policy.options import Algorithm, Objective, Options
from shoal.search.full_domain.visits import Visits
from shoal.search.problem import Progress
from shoal.web.jobs import Job, LivePoint
from shoal.web.nodes import LISTED
from shoal.web.pages import draft_of, field_text, get, number_in, pages_of, post, redirect, texts, workspace_of
from shoal.web.prepared import prepare
from shoal.web.workspace import Draft, WebRun, Workspace

PURPOSES = ("analysis", "tables")
CHOICES: dict[str, tuple[str, ...]] = {
    "algorithm": get_args(Algorithm),
    "objective": get_args(Objective),
    "suppressed": ("drop", "keep"),
    "nulls": ("category", "wildcard", "forbid"),
    "ranges": ("text", "bounds", "midpoint"),
}
NUMBERS = ("max_suppression", "time_budget", "seed")


def _show(request: Request) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    options = {name: info.default for name, info in Options.model_fields.items()} | dict(
        draft.fields.get("release", {})
    )
    runs = [run for run in workspace.runs.values() if run.draft.table is draft.table]
    return pages.render(
        "run.html",
        "run",
        draft=draft,
        problem=draft.problem,
        options=options,
        about={name: Options.model_fields[name].description for name in (*CHOICES, *NUMBERS)},
        choices=CHOICES,
        numbers=NUMBERS,
        purpose=purpose_of(draft),
        purposes=PURPOSES,
        runs=runs[::-1],
        policy=None if draft.problem else draft.policy.to_toml(),
    )


def purpose_of(draft: Draft) -> str:
    """What the options were proposed for, where they still are such."""
    algorithm = draft.fields.get("release", {}).get("algorithm", "optimal")
    if algorithm in ("single_dimensional", "optimal"):
        return "tables"
    return "analysis" if algorithm in ("local", "mondrian") else ""


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    action = field_text(form, "action")
    purpose = field_text(form, "purpose")
    if (purpose and purpose not in PURPOSES) or (action == "purpose" and not purpose):
        raise HTTPException(400, texts().run.no_purpose)
    if purpose and purpose != purpose_of(draft):  # also at the start: what is marked is what is run
        draft = workspace.edit(draft, texts().run.changed, lambda fields: set_purpose(fields, draft, purpose))
    if action == "options":
        draft = workspace.edit(draft, texts().run.changed, lambda fields: _set_options(fields, form))
    elif action == "start":
        return pages.follow(start(workspace, draft))
    elif action != "purpose":
        raise HTTPException(400)
    return redirect(pages.url(f"/d/{draft.number}/run"))


def set_purpose(fields: dict[str, Any], draft: Draft, purpose: str) -> None:
    """The search, and what cells between two levels are written as, as `inspect --for` proposes them."""
    inspection = replace(draft.table.inspection, purpose=purpose)  # type: ignore[arg-type]
    release = fields.setdefault("release", {})
    for name in ("algorithm", "dimension", "max_suppression", "time_budget"):
        release.pop(name, None)
    proposed = inspection.policy.release.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    release |= {n: v for n, v in proposed.items() if n in ("algorithm", "dimension", "max_suppression", "time_budget")}
    for column in inspection.columns:
        settings = fields["columns"].get(column.name, {})
        if settings.get("role") != "quasi":
            continue
        settings.pop("cells", None)
        if purpose == "analysis" and column.proposal is not None and column.proposal.cells != "hierarchy":
            settings["cells"] = column.proposal.cells


def _set_options(fields: dict[str, Any], form: FormData) -> None:
    release = fields.setdefault("release", {})
    for name, choices in CHOICES.items():
        chosen = field_text(form, name)
        if chosen and chosen not in choices:
            raise HTTPException(400)
        if chosen:
            release[name] = chosen
    for name in NUMBERS:
        if name in form:
            release.pop(name, None)
            if text := field_text(form, name):
                release[name] = number_in(text, name)


def start(workspace: Workspace, draft: Draft, since: int | None = None) -> Job:
    """Make the release that a draft asks for, as `shoal anonymize` does, and keep it."""
    policy = draft.policy  # raises here, where something is missing
    workspace.folders.require_files(policy)

    visits = Visits()

    def live() -> list[LivePoint]:
        visited = list(visits.of.values())[-LISTED:]
        return [(v.risk, v.loss, "holds" if v.feasible else "fails", "", "") for v in visited]

    def work(progress: Progress) -> str:
        began = time.monotonic()
        release = shoal.anonymize(draft.table.engine, policy, progress=progress, visits=visits)
        run = workspace.add_run(draft, release, time.monotonic() - began)
        run.visits, run.since = visits, since
        try:
            run.figures = figures_of(run)
            prepare(run, progress)
        except BaseException:  # cancelled
            workspace.runs.pop(run.number, None)
            raise
        return f"/runs/{run.number}/explore"

    return workspace.jobs.start(texts().run.searching, work, f"/d/{draft.number}/run", live)


def figures_of(run: WebRun) -> dict[str, Any]:
    """What stands in the list of runs."""
    release = run.release
    assert release is not None
    objective = release.policy.release.objective
    return {
        "asked": "; ".join(verdict.asked for verdict in release.verdicts.verdicts),
        "algorithm": release.policy.release.algorithm,
        "objective": objective,
        "loss": release.loss[objective],
        "risk": 1 / release.measured["k"] if release.measured["k"] else 0.0,
        "classes": release.classes,
        "suppressed": release.suppressed,
        "levels": release.levels,
        "proved": release.recoding.proved,
    }


ROUTES = [get("/d/{draft:int}/run", _show), post("/d/{draft:int}/run", _change)]
