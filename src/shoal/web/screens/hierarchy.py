"""One column: its values, and the hierarchy along which it may be generalized."""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import shoal
from shoal.errors import PolicyError, ShoalError
from shoal.hierarchies.dates import UNITS
from shoal.hierarchies.spelling import Spelling
from shoal.inspection.inspection import InspectedColumn
from shoal.inspection.preview import KINDS, Preview
from shoal.search.problem import Progress
from shoal.web import groups
from shoal.web.jobs import Job
from shoal.web.pages import AT_ONCE, draft_of, field_text, get, number_in, pages_of, post, redirect, texts, workspace_of
from shoal.web.screens.columns import column_of
from shoal.web.workspace import Draft, Workspace

LABELS = 12  # of each level that are shown
VALUES = 50  # of a distribution
EDITABLE = 400  # values up to which groups are changed one by one
EDITS = ("move", "rename", "add-level", "remove-level")
WAYS = ("intervals", "boundaries", "mask", "dates", "kind", "file")


def _show(request: Request) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    column = column_of(request, draft)
    fields = draft.column(column.name)
    described = _described(workspace, draft, dict(request.query_params))
    generalized = fields.get("role") in ("quasi", "sensitive")  # others may have as many values as records
    shown: ShownHierarchy | Job = ShownHierarchy()
    if generalized:
        shown = _shown_or_job(workspace, draft, column, described, f"{request.url.path}?{request.url.query}")
    if isinstance(shown, Job):  # it takes longer than a moment
        return redirect(pages.url(f"/jobs/{shown.number}"))
    preview, error = shown.preview, shown.problem
    rows = groups.preview_rows(preview) if preview is not None and len(preview.hierarchy.leaves) <= EDITABLE else None
    level = request.query_params.get("level", "1")
    at = min(max(1, int(level) if level.isdigit() else 1), len(rows) - 2) if rows and len(rows) > 2 else 0
    return pages.render(
        "hierarchy.html",
        "columns",
        draft=draft,
        column=column,
        number=request.path_params["column"],
        fields=fields,
        role=fields.get("role"),
        preview=preview,
        problem=error,
        tried=described,
        query={"build": "", "numbers": "", "kind": ""} | dict(request.query_params),
        most=LABELS,
        units=UNITS,
        kinds=KINDS,
        level=at,
        n_levels=0 if rows is None else len(rows),
        groups=groups.groups_on(rows, at, preview.counts.tolist()) if rows and preview is not None and at else [],
        values=shown.values,
        undo=draft.parent,
    )


@dataclass(frozen=True)
class ShownHierarchy:
    """What is shown of a hierarchy."""

    preview: Preview | None = None
    problem: ShoalError | None = None
    values: Sequence[tuple[str | None, int]] = ()


def _shown_or_job(
    workspace: Workspace, draft: Draft, column: InspectedColumn, described: Any, address: str
) -> ShownHierarchy | Job:
    """What is shown of the hierarchy, or the job that finds it out where that takes longer than a moment."""
    settings = dict(draft.column(column.name))
    spec = described if described is not None else settings.get("hierarchy")
    changed = (draft.folder / spec).stat().st_mtime_ns if isinstance(spec, str) and _is_file(draft, spec) else 0
    key = json.dumps(
        [draft.table.number, column.name, described, settings, draft.fields.get("missing"), changed], default=str
    )
    if (cached := workspace.previews.get(key)) is not None:
        return cast("ShownHierarchy", cached)

    def work(progress: Progress) -> str:
        progress(texts().hierarchy.building, 0)
        preview, problem = _preview(workspace, draft, column, described)
        if preview is not None:
            _ = preview.levels
        workspace.keep_preview(key, ShownHierarchy(preview, problem, _values(preview)))
        return address[address.index("/d/") :]

    job = workspace.jobs.start(texts().hierarchy.building, work, f"/d/{draft.number}/columns")
    job.over.wait(AT_ONCE)
    shown: ShownHierarchy | None = workspace.previews.get(key)
    return job if shown is None else shown


def _is_file(draft: Draft, spec: str) -> bool:
    try:
        return (draft.folder / spec).is_file()
    except (OSError, ValueError):
        return False


def _values(preview: Preview | None) -> list[tuple[str | None, int]]:
    """The most frequent values."""
    if preview is None:
        return []
    pairs = zip(preview.hierarchy.leaves, preview.counts.tolist(), strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])[:VALUES]


def _preview(
    workspace: Workspace, draft: Draft, column: InspectedColumn, described: Any
) -> tuple[Preview | None, ShoalError | None]:
    """The hierarchy that is tried, or the column's own, or what is proposed; C1 and C2 are checked as it is built."""
    spec = described if described is not None else draft.column(column.name).get("hierarchy", {"flat": True})
    try:
        if isinstance(spec, str):
            spec = workspace.folders.path(str(draft.folder / spec))
        engine = draft.table.engine.spelled(_spellings(draft, column))
        return shoal.hierarchy(engine, column.name, given=spec), None
    except ShoalError as error:
        return None, error


def _spellings(draft: Draft, column: InspectedColumn) -> dict[str, Any]:
    """How the cells of the column are spelled, whatever else the draft still lacks."""
    settings = draft.column(column.name)
    missing = settings.get("missing", draft.fields.get("missing", ()))
    return {column.name: Spelling(tuple(missing), settings.get("decimal", "."), settings.get("thousands"))}


def _described(workspace: Workspace, draft: Draft, form: dict[str, str]) -> Any:
    """Return the hierarchy that a form describes, as a policy writes it; None if it describes none."""
    way = form.get("build", "")
    if way not in WAYS:
        return None
    if way in ("intervals", "boundaries"):
        return {way: [number_in(part.strip(), way) for part in form.get("numbers", "").split(",") if part.strip()]}
    if way == "mask":
        return {"mask": "left" if form.get("side") == "left" else "right"}
    if way == "dates":
        return {"dates": [unit for unit in UNITS if form.get(f"unit-{unit}")]}
    if way == "kind":
        if form.get("kind") not in KINDS:
            raise HTTPException(400)
        return copy.deepcopy(KINDS[form["kind"]])
    return str(workspace.folders.path(str(draft.folder / form.get("file", ""))))


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    column, number = column_of(request, draft), request.path_params["column"]
    action = field_text(form, "action")
    level = field_text(form, "level")
    at = int(level) if level.isdigit() else 0
    if action not in ("build", *EDITS):
        raise HTTPException(400)
    fields_of_form = {name: value for name, value in form.items() if isinstance(value, str)}
    described = _described(workspace, draft, fields_of_form) if action == "build" else None
    if action == "build" and described is None:
        raise PolicyError(texts().hierarchy.nothing)
    chosen = {value for value in form.getlist("member") if isinstance(value, str)}

    def work(progress: Progress) -> str:
        progress(texts().hierarchy.building, 0)
        preview, error = _preview(workspace, draft, column, described)
        if preview is None:
            raise error or PolicyError(texts().hierarchy.nothing)
        spec = described if action == "build" else groups.tree_of(_edited(preview, action, at, fields_of_form, chosen))

        def edit(fields: dict[str, Any]) -> None:
            settings = fields["columns"].setdefault(column.name, {"role": "quasi"})
            settings["hierarchy"] = spec
            if action != "build":  # levels are counted from the values now, and labels are their own
                settings.pop("min_level", None)
                settings.pop("max_level", None)

        new = workspace.edit(draft, texts().hierarchy.changed.format(column.name), edit)
        return f"/d/{new.number}/column/{number}?level={max(1, at)}"

    return pages.follow(workspace.jobs.start(texts().hierarchy.building, work, f"/d/{draft.number}/column/{number}"))


def _edited(
    preview: Preview, action: str, level: int, form: Mapping[str, str], chosen: Collection[str]
) -> groups.Labels:
    rows = groups.preview_rows(preview)
    name, group = form.get("name", "").strip(), form.get("group", "").strip()
    if action == "move":
        return groups.moved(rows, level, chosen, name or group)
    if action == "rename":
        return groups.renamed(rows, level, group, name)
    return groups.with_level(rows, level) if action == "add-level" else groups.without_level(rows, level)


ROUTES = [
    get("/d/{draft:int}/column/{column:int}", _show),
    post("/d/{draft:int}/column/{column:int}", _change),
]
