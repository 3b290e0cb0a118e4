"""Explore: a release beside what it was made of, what else could be taken, and what attackers would find."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow.compute as pc
import vl_convert
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

import shoal
from shoal.alternatives.frontier import replaced
from shoal.alternatives.recommend import Exploration
from shoal.engines.base import Rows
from shoal.release import Release
from shoal.report import charts
from shoal.report.essentials import essentials, gone, proof
from shoal.report.html import sentence
from shoal.report.intrusion import within_budget
from shoal.search.problem import Progress
from shoal.web.pages import get, given, number_in, pages_of, post, run_of, texts, workspace_of
from shoal.web.prepared import prepare, release_of, summary_of
from shoal.web.screens.run import start
from shoal.web.workspace import Draft, WebRun, Workspace

PAGE = 20  # records before and after on one page
MATES = 50  # records of a class that are shown


def _show(request: Request) -> Response:
    pages, run = pages_of(request), run_of(request)
    release = release_of(run)
    if "charts" not in run.cache:
        prepare(run)
    told = summary_of(run)
    attacks = run.attacks or release.attacks
    found: Exploration | None = run.cache.get("exploration")
    return pages.render(
        "explore.html",
        "explore",
        run=run,
        release=release,
        told=told,
        sentence=sentence(release),
        before=run.cache["before"],
        answers=essentials(release, told.columns, attacks),
        gone=gone(release),
        proof=proof(release.recoding),
        charts=run.cache["charts"],
        exploration=found,
        points=[] if found is None else list(enumerate(found.frontier)),
        nodes=run.cache["nodes"],
        columns=_limits(run),
        attacks=attacks,
        rows_here=_has_rows(release),
    )


# ── other points and nodes ──────────────────────────────────────────────────────────────────────────────────


def _limits(run: WebRun) -> list[dict[str, Any]]:
    """Per quasi column: the levels that it may take, and those that the draft allows now."""
    release = release_of(run)
    found = []
    for hierarchy in release.recoding.hierarchies:
        own = run.draft.column(hierarchy.column)
        found.append(
            {
                "name": hierarchy.column,
                "top": hierarchy.number_of_top,
                "now": release.levels.get(hierarchy.column),
                "least": own.get("min_level", 0),
                "most": own.get("max_level", hierarchy.number_of_top),
                "weight": own.get("weight", 1),
            }
        )
    return found


def _take(request: Request, form: FormData) -> Response:
    """Another point of the frontier, another node or other limits: a new draft, run as any other."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    action = given(form, "action")
    if action == "point":
        draft = _of_point(workspace, run, given(form, "point"))
    elif action == "node":
        draft = _of_node(workspace, run, given(form, "levels"))
    elif action == "limits":
        draft = _of_limits(workspace, run, form)
    else:
        raise HTTPException(400)
    return pages.follow(start(workspace, draft))


def _of_point(workspace: Workspace, run: WebRun, place: str) -> Draft:
    found: Exploration | None = run.cache.get("exploration")
    if found is None or not place.isdigit() or int(place) >= len(found.frontier):
        raise HTTPException(400)
    asked = found.frontier.points[int(place)].asked
    policy = replaced(run.draft.policy, asked)

    def edit(fields: dict[str, Any]) -> None:
        require = policy.model_dump(mode="json", exclude_none=True, exclude_defaults=True).get("require", [])
        fields["require"] = [
            {"model": model.model, **given} for model, given in zip(policy.require, require, strict=True)
        ]
        if "max_suppression" in asked:
            fields.setdefault("release", {})["max_suppression"] = asked["max_suppression"]

    told = ", ".join(f"{name} = {value:g}" for name, value in asked.items())
    return workspace.edit(run.draft, told, edit)


def _of_node(workspace: Workspace, run: WebRun, text: str) -> Draft:
    """Each column is held on its level; what the search then finds is this node, or nothing."""
    hierarchies = release_of(run).recoding.hierarchies
    levels = text.split(",")
    if len(levels) != len(hierarchies) or not all(level.isdigit() for level in levels):
        raise HTTPException(400)

    def edit(fields: dict[str, Any]) -> None:
        for hierarchy, level in zip(hierarchies, levels, strict=True):
            fields["columns"][hierarchy.column] |= {"min_level": int(level), "max_level": int(level)}
        fields.setdefault("release", {})["algorithm"] = "optimal"

    return workspace.edit(run.draft, texts().explore.node_taken, edit)


def _of_limits(workspace: Workspace, run: WebRun, form: FormData) -> Draft:
    limits = _limits(run)

    def edit(fields: dict[str, Any]) -> None:
        for i, limit in enumerate(limits):
            own = fields["columns"][limit["name"]]
            most, least, weight = (given(form, f"{what}-{i}") for what in ("most", "least", "weight"))
            own.pop("max_level", None)
            own.pop("min_level", None)
            own.pop("weight", None)
            if most and int(number_in(most, "most")) < limit["top"]:
                own["max_level"] = int(number_in(most, "most"))
            if least and int(number_in(least, "least")) > 0:
                own["min_level"] = int(number_in(least, "least"))
            if weight and number_in(weight, "weight") != 1:
                own["weight"] = number_in(weight, "weight")

    return workspace.edit(run.draft, texts().explore.limits_changed, edit)


def _sweep(request: Request, _: FormData) -> Response:
    """Solve for other parameters around the policy, as `shoal explore` does."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    release_of(run)

    def work(progress: Progress) -> str:
        found = shoal.explore(run.draft.table.engine, run.draft.policy, progress=progress)
        run.cache["exploration"] = found
        chart = charts.frontier_chart(found.frontier, found.own, texts().explore.this)
        run.cache["frontier"] = vl_convert.vegalite_to_vega(chart.to_dict(validate=False))
        run.cache["charts"]["frontier"] = charts.inlined(chart, "frontier", texts().explore.frontier)
        return f"/runs/{run.number}/explore#frontier-h"

    return pages.follow(workspace.jobs.start(texts().explore.sweeping, work, f"/runs/{run.number}/explore"))


def _frontier(request: Request) -> Response:
    """The chart for a script to draw, with the place of each point."""
    run = run_of(request)
    found: Exploration | None = run.cache.get("exploration")
    if found is None:
        raise HTTPException(404)
    asked = [", ".join(f"{name} = {value:g}" for name, value in point.asked.items()) for point in found.frontier]
    return JSONResponse({"spec": run.cache["frontier"], "asked": asked})


# ── attacks ─────────────────────────────────────────────────────────────────────────────────────────────────


def _attack(request: Request, _: FormData) -> Response:
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    release = release_of(run)

    def work(progress: Progress) -> str:
        progress(texts().explore.attacking, 0)
        run.attacks = within_budget(release)
        return f"/runs/{run.number}/explore#attacks-h"

    return pages.follow(workspace.jobs.start(texts().explore.attacking, work, f"/runs/{run.number}/explore"))


# ── rows ────────────────────────────────────────────────────────────────────────────────────────────────────


def _has_rows(release: Release) -> bool:
    rows = release.rows
    return isinstance(rows, Rows) and rows.sources is not None


def _rows(request: Request) -> Response:
    """Records before and after, and of one the class that it is in now."""
    pages, run = pages_of(request), run_of(request)
    release = release_of(run)
    rows = release.rows
    if not isinstance(rows, Rows) or rows.sources is None:
        raise HTTPException(404)
    names = list(release.policy.quasi)
    first = _whole(request, "first")
    chosen = request.query_params.get("record", "")
    places = np.arange(rows.n_records)
    if chosen.isdigit() and int(chosen) < rows.n_records:
        same = np.ones(rows.n_records, np.bool_)
        for name in names:
            column = rows.table[name]
            value = column[int(chosen)].as_py()
            found = column.is_null() if value is None else _equal(column, value)
            same &= np.asarray(found).astype(np.bool_)
        places = np.flatnonzero(same)
    n = len(places)
    first = min(first, max(0, n - 1))
    shown = places[first : first + (MATES if chosen else PAGE)]
    before = release.engine.table.select(names).take(rows.sources[shown]).to_pylist()
    after = rows.table.select(names).take(shown).to_pylist()
    records = [
        {"place": int(place), "cells": [(_cell(was[name]), _cell(now[name])) for name in names]}
        for place, was, now in zip(shown, before, after, strict=True)
    ]
    return pages.render(
        "rows.html",
        "explore",
        run=run,
        names=names,
        records=records,
        chosen=int(chosen) if chosen.isdigit() else None,
        first=first,
        page=PAGE,
        n=n,
    )


def _equal(column: Any, value: Any) -> Any:
    return pc.fill_null(pc.equal(column, value), False)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _whole(request: Request, name: str) -> int:
    text = request.query_params.get(name, "0")
    return int(text) if text.isdigit() and len(text) < 12 else 0


ROUTES = [
    get("/runs/{run:int}/explore", _show),
    get("/runs/{run:int}/rows", _rows),
    get("/runs/{run:int}/frontier.json", _frontier),
    post("/runs/{run:int}/take", _take),
    post("/runs/{run:int}/sweep", _sweep),
    post("/runs/{run:int}/attack", _attack),
]
