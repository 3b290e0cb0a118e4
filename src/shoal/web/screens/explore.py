"""Explore: whether a release is safe, what it lost, and what could be released instead."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import shoal
from shoal.alternatives.compare import Entry
from shoal.alternatives.frontier import Point, with_parameters
from shoal.alternatives.recommend import Exploration
from shoal.report.drawings import frontier_plot, parameters_in_words
from shoal.report.essentials import essentials, loss_sentence
from shoal.report.html import sentence
from shoal.report.rows import attack_grid, column_grid, requirement_grid
from shoal.report.svg import plot_svg
from shoal.report.wording import counted_unit
from shoal.search import SEARCHES
from shoal.search.problem import Progress
from shoal.web.jobs import LivePoint
from shoal.web.nodes import WIDTH, drawn_beside_table, marks_of, scatter_of
from shoal.web.pages import field_text, get, number_in, pages_of, post, run_of, texts, workspace_of
from shoal.web.prepared import prepare, release_of
from shoal.web.screens.rows import has_rows
from shoal.web.screens.run import start
from shoal.web.workspace import Draft, WebRun, Workspace

ALGORITHMS = tuple(name for name in SEARCHES if name not in ("exhaustive", "mingen"))  # which find what optimal finds


def _show(request: Request) -> Response:
    pages, run = pages_of(request), run_of(request)
    release = release_of(run)
    if "charts" not in run.cache:
        prepare(run)
    columns = run.cache["columns"]
    attacks = run.attacks or release.attacks
    exploration: Exploration | None = run.cache.get("exploration")
    entries: list[Entry] = run.cache.get("entries", [])
    objective = release.policy.release.objective
    marks = marks_of(run.cache["nodes"], () if exploration is None else exploration.frontier, entries, objective)
    return pages.render(
        "explore.html",
        "explore",
        run=run,
        release=release,
        sentence=sentence(release),
        before=run.cache["before"],
        answers=essentials(release, columns, attacks),
        loss_sentence=loss_sentence(release),
        charts=run.cache["charts"],
        exploration=exploration,
        points=[] if exploration is None else list(enumerate(exploration.frontier)),
        nodes=run.cache["nodes"],
        lattice=drawn_beside_table(run.cache["lattice"], "lattice", texts().explore.nodes),
        scatter=drawn_beside_table(scatter_of(marks, objective), "others", texts().explore.others),
        entries=entries,
        algorithms=ALGORITHMS,
        since=_since(workspace_of(request), run),
        steps_of=_costs_of_steps(run.cache["nodes"]),
        columns=column_grid(columns),
        requirements=requirement_grid(release.verdicts.verdicts),
        limits=_limits(run),
        attacks=attacks,
        attack_rows=attack_grid(attacks or ()),
        unit=counted_unit(release.policy),
        stories=run.cache.get("stories", ()),
        rows_here=has_rows(release),
    )


def _since(workspace: Workspace, run: WebRun) -> dict[str, Any] | None:
    """The figures of the run that this one was taken from."""
    before = workspace.runs.get(run.since or -1)
    return None if before is None else {"number": before.number, **before.figures}


def _costs_of_steps(nodes: list[dict[str, Any]]) -> dict[str, dict[str, dict[str, Any]]]:
    """Per column: what one level finer and one level coarser would cost, as the search saw it."""
    costs: dict[str, dict[str, dict[str, Any]]] = {}
    for node in nodes:
        if node["near"]:
            ((column, before, after),) = node["changed"]
            costs.setdefault(column, {})["finer" if after < before else "coarser"] = node
    return costs


# ── other points and nodes ──────────────────────────────────────────────────────────────────────────────────


def _limits(run: WebRun) -> list[dict[str, Any]]:
    """Per quasi column: the levels that it may take, and those that the draft allows now."""
    release = release_of(run)
    limits = []
    for hierarchy in release.recoding.hierarchies:
        fields = run.draft.column(hierarchy.column)
        limits.append(
            {
                "name": hierarchy.column,
                "top": hierarchy.number_of_top,
                "now": release.levels.get(hierarchy.column),
                "least": fields.get("min_level", 0),
                "most": fields.get("max_level", hierarchy.number_of_top),
                "weight": fields.get("weight", 1),
            }
        )
    return limits


def _make(request: Request, form: FormData) -> Response:
    """Another point of the frontier, another node or other limits: a new draft, run as any other."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    action = field_text(form, "action")
    if action == "point":
        draft = _of_point(workspace, run, field_text(form, "point"))
    elif action == "node":
        draft = _of_node(workspace, run, field_text(form, "levels"))
    elif action == "algorithm":
        draft = _of_algorithm(workspace, run, field_text(form, "algorithm"))
    elif action == "limits":
        draft = _of_limits(workspace, run, form)
    else:
        raise HTTPException(400)
    return pages.follow(start(workspace, draft, run.number))


def _of_point(workspace: Workspace, run: WebRun, number: str) -> Draft:
    exploration: Exploration | None = run.cache.get("exploration")
    if exploration is None or not number.isdigit() or int(number) >= len(exploration.frontier):
        raise HTTPException(400)
    parameters = exploration.frontier.points[int(number)].asked
    policy = with_parameters(run.draft.policy, parameters)

    def edit(fields: dict[str, Any]) -> None:
        require = policy.model_dump(mode="json", exclude_none=True, exclude_defaults=True).get("require", [])
        fields["require"] = [
            {"model": model.model, **options} for model, options in zip(policy.require, require, strict=True)
        ]
        if "max_suppression" in parameters:
            fields.setdefault("release", {})["max_suppression"] = parameters["max_suppression"]

    return workspace.edit(run.draft, parameters_in_words(parameters), edit)


def _of_algorithm(workspace: Workspace, run: WebRun, name: str) -> Draft:
    if name not in SEARCHES:
        raise HTTPException(400)

    def edit(fields: dict[str, Any]) -> None:
        fields.setdefault("release", {})["algorithm"] = name

    return workspace.edit(run.draft, texts().explore.algorithm_taken.format(name), edit)


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
            settings = fields["columns"][limit["name"]]
            highest, lowest, weight = (field_text(form, f"{bound}-{i}") for bound in ("most", "least", "weight"))
            settings.pop("max_level", None)
            settings.pop("min_level", None)
            settings.pop("weight", None)
            if highest and int(number_in(highest, "most")) < limit["top"]:
                settings["max_level"] = int(number_in(highest, "most"))
            if lowest and int(number_in(lowest, "least")) > 0:
                settings["min_level"] = int(number_in(lowest, "least"))
            if weight and number_in(weight, "weight") != 1:
                settings["weight"] = number_in(weight, "weight")

    return workspace.edit(run.draft, texts().explore.limits_changed, edit)


def _sweep(request: Request, _: FormData) -> Response:
    """Solve for other parameters around the policy, as `shoal explore` does."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    release_of(run)

    solved: list[Point] = []

    def live() -> list[LivePoint]:
        return marks_of([], list(solved), [], "")

    def work(progress: Progress) -> str:
        exploration = shoal.explore(run.draft.table.engine, run.draft.policy, progress=progress, each=solved.append)
        run.cache["exploration"] = exploration
        if any(point.feasible for point in exploration.frontier):
            plot = frontier_plot(exploration.frontier, exploration.own, texts().explore.this, "#point-")
            run.cache["charts"]["frontier"] = plot_svg(
                replace(plot, outer_width=WIDTH), "frontier", texts().explore.frontier
            )
        return f"/runs/{run.number}/explore#frontier-h"

    return pages.follow(workspace.jobs.start(texts().explore.sweeping, work, f"/runs/{run.number}/explore", live))


def _compare_algorithms(request: Request, form: FormData) -> Response:
    """Solve the same policy by other algorithms, as `shoal compare` does."""
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    objective = release_of(run).policy.release.objective
    names = [str(name) for name in form.getlist("algorithm")]
    if not names or any(name not in ALGORITHMS for name in names):
        raise HTTPException(400, texts().explore.no_algorithm)
    solved: list[Entry] = []

    def live() -> list[LivePoint]:
        return marks_of([], [], list(solved), objective)

    def work(progress: Progress) -> str:
        engine, policy = run.draft.table.engine, run.draft.policy
        comparison = shoal.compare(engine, policy, algorithms=names, progress=progress, each=solved.append)
        run.cache["entries"] = list(comparison)
        return f"/runs/{run.number}/explore#algorithms-h"

    return pages.follow(workspace.jobs.start(texts().explore.comparing, work, f"/runs/{run.number}/explore", live))


ROUTES = [
    get("/runs/{run:int}/explore", _show),
    post("/runs/{run:int}/take", _make),
    post("/runs/{run:int}/sweep", _sweep),
    post("/runs/{run:int}/algorithms", _compare_algorithms),
]
