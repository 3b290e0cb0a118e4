"""One column: its values, and the hierarchy along which it may be generalized."""

from __future__ import annotations

import copy
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import shoal
from shoal.errors import PolicyError, ShoalError
from shoal.propose.inspect import InspectedColumn
from shoal.propose.preview import KINDS, Preview
from shoal.table.dates import UNITS
from shoal.table.spelling import Spelling
from shoal.web import groups
from shoal.web.pages import draft_of, get, given, number_in, pages_of, post, redirect, texts, workspace_of
from shoal.web.screens.columns import column_of
from shoal.web.workspace import Draft, Workspace

LABELS = 12  # of each level that are shown
VALUES = 50  # of a distribution
EDITABLE = 400  # values up to which groups are changed one by one
WAYS = ("intervals", "boundaries", "mask", "dates", "kind", "file")


def _show(request: Request) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    column = column_of(request, draft)
    fields = draft.column(column.name)
    tried = _asked(workspace, draft, dict(request.query_params))
    generalized = fields.get("role") in ("quasi", "sensitive")  # others may have as many values as records
    preview, error = _preview(workspace, draft, column, tried) if generalized else (None, None)
    rows = groups.rows_of(preview) if preview is not None and len(preview.hierarchy.leaves) <= EDITABLE else None
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
        tried=tried,
        query={"build": "", "numbers": "", "kind": ""} | dict(request.query_params),
        most=LABELS,
        units=UNITS,
        kinds=KINDS,
        level=at,
        n_levels=0 if rows is None else len(rows),
        groups=groups.groups_on(rows, at, preview.counts.tolist()) if rows and preview is not None and at else [],
        values=_values(preview),
        undo=draft.parent,
    )


def _values(preview: Preview | None) -> list[tuple[str | None, int]]:
    """The most frequent values."""
    if preview is None:
        return []
    found = zip(preview.hierarchy.leaves, preview.counts.tolist(), strict=True)
    return sorted(found, key=lambda pair: -pair[1])[:VALUES]


def _preview(
    workspace: Workspace, draft: Draft, column: InspectedColumn, tried: Any
) -> tuple[Preview | None, ShoalError | None]:
    """The hierarchy that is tried, or the column's own, or what is proposed; C1 and C2 are checked as it is built."""
    spec = tried if tried is not None else draft.column(column.name).get("hierarchy", {"flat": True})
    try:
        if isinstance(spec, str):
            spec = workspace.folders.path(str(draft.folder / spec))
        engine = draft.table.engine.spelled(_spellings(draft, column))
        return shoal.hierarchy(engine, column.name, given=spec), None
    except ShoalError as error:
        return None, error


def _spellings(draft: Draft, column: InspectedColumn) -> dict[str, Any]:
    """How the cells of the column are spelled, whatever else the draft still lacks."""
    own = draft.column(column.name)
    missing = own.get("missing", draft.fields.get("missing", ()))
    return {column.name: Spelling(tuple(missing), own.get("decimal", "."), own.get("thousands"))}


def _asked(workspace: Workspace, draft: Draft, asked: dict[str, str]) -> Any:
    """The hierarchy that a form describes, as a policy writes it; None where none is asked for."""
    way = asked.get("build", "")
    if way not in WAYS:
        return None
    if way in ("intervals", "boundaries"):
        return {way: [number_in(part.strip(), way) for part in asked.get("numbers", "").split(",") if part.strip()]}
    if way == "mask":
        return {"mask": "left" if asked.get("side") == "left" else "right"}
    if way == "dates":
        return {"dates": [unit for unit in UNITS if asked.get(f"unit-{unit}")]}
    if way == "kind":
        if asked.get("kind") not in KINDS:
            raise HTTPException(400)
        return copy.deepcopy(KINDS[asked["kind"]])
    return str(workspace.folders.path(str(draft.folder / asked.get("file", ""))))


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    column, number = column_of(request, draft), request.path_params["column"]
    action = given(form, "action")
    level = given(form, "level")
    at = int(level) if level.isdigit() else 0
    if action == "build":
        asked = {name: value for name, value in form.items() if isinstance(value, str)}
        spec = _asked(workspace, draft, asked)
        if spec is None:
            raise PolicyError(texts().hierarchy.nothing)
        preview, error = _preview(workspace, draft, column, spec)
        if error is not None:
            raise error
    else:
        preview, error = _preview(workspace, draft, column, None)
        if preview is None:
            raise error or HTTPException(400)
        spec = groups.tree_of(_edited(groups.rows_of(preview), action, at, form))

    def edit(fields: dict[str, Any]) -> None:
        own = fields["columns"].setdefault(column.name, {"role": "quasi"})
        own["hierarchy"] = spec
        if action != "build":  # levels are counted from the values now, and labels are their own
            own.pop("min_level", None)
            own.pop("max_level", None)

    new = workspace.edit(draft, texts().hierarchy.changed.format(column.name), edit)
    return redirect(pages.url(f"/d/{new.number}/column/{number}?level={max(1, at)}"))


def _edited(rows: groups.Labels, action: str, level: int, form: FormData) -> groups.Labels:
    if action == "move":
        chosen = {value for value in form.getlist("member") if isinstance(value, str)}
        return groups.moved(rows, level, chosen, given(form, "name") or given(form, "group"))
    if action == "rename":
        return groups.renamed(rows, level, given(form, "group"), given(form, "name"))
    if action == "add-level":
        return groups.with_level(rows, level)
    if action == "remove-level":
        return groups.without_level(rows, level)
    raise HTTPException(400)


ROUTES = [
    get("/d/{draft:int}/column/{column:int}", _show),
    post("/d/{draft:int}/column/{column:int}", _change),
]
