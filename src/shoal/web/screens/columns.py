"""Columns: the proposed role of each with the reason, and the choice of another."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from shoal.inspection.hierarchy_proposal import propose
from shoal.inspection.inspection import InspectedColumn, Inspection
from shoal.inspection.uniqueness import Separation
from shoal.web.pages import draft_of, field_text, get, pages_of, post, redirect, texts, workspace_of
from shoal.web.workspace import N_BARS, Draft, Opened

BAR = "#3b82d0"  # between the accents of the light and of the dark page: a picture does not know which it is on
ROLES = ("identifier", "quasi", "sensitive", "plain")


def _show(request: Request) -> Response:
    pages, draft = pages_of(request), draft_of(request)
    inspection = draft.table.inspection
    cards = [
        {
            "column": column,
            "role": draft.column(column.name).get("role", "plain"),
            "told": _separations(inspection, column.name),
            "decision": next((d.sentence for d in inspection.decisions if d.column == column.name), ""),
        }
        for column in inspection.columns
    ]
    return pages.render(
        "columns.html",
        "columns",
        draft=draft,
        found=inspection,
        cards=cards,
        roles=ROLES,
        counts=Counter(card["role"] for card in cards),
        strongest=[best for size in (1, 2, 3) for best in inspection.strongest(size, 1)],
        release=draft.fields.get("release", {}),
    )


def _separations(inspection: Inspection, name: str) -> list[Separation]:
    """Return how many records the column singles out alone, and in its strongest pair and triple."""
    strongest: dict[int, Separation] = {}
    for separation in inspection.separations:
        if name in separation.columns:
            strongest.setdefault(len(separation.columns), separation)
    return [strongest[size] for size in sorted(strongest)]


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    columns = draft.table.inspection.columns
    roles = {}
    for i, column in enumerate(columns):
        role = field_text(form, f"role-{i}")
        if role and role not in ROLES:
            raise HTTPException(400)
        if role and role != draft.column(column.name).get("role"):
            roles[column.name] = role

    def edit(fields: dict[str, Any]) -> None:
        for name, role in roles.items():
            fields["columns"][name] = with_role(draft.table, name, role)
        release = fields.setdefault("release", {})
        for key in ("entity", "household"):
            position = field_text(form, key)
            if key in form:
                release.pop(key, None)
                if position.isdigit() and int(position) < len(columns):
                    name = columns[int(position)].name
                    release[key] = name
                    if fields["columns"].get(name, {}).get("role") != "identifier":
                        fields["columns"][name] = with_role(draft.table, name, "identifier")
            if key in release and fields["columns"].get(release[key], {}).get("role") != "identifier":
                del release[key]
        _drop_stale_references(fields)

    change = texts().columns.changed.format(len(roles))
    new = workspace.edit(draft, change, edit)
    onward = field_text(form, "next") == "promises"
    return redirect(pages.url(f"/d/{new.number}/{'promises' if onward else 'columns'}"))


def _drop_stale_references(fields: dict[str, Any]) -> None:
    """Requirements and options that speak of a sensitive column that no longer is one."""
    sensitive = {name for name, settings in fields["columns"].items() if settings.get("role") == "sensitive"}
    quasi = {name for name, settings in fields["columns"].items() if settings.get("role") == "quasi"}
    fields["require"] = [
        requirement
        for requirement in fields.get("require", [])
        if requirement.get("column", None) in {None, *sensitive}
    ]
    if fields.get("release", {}).get("label") not in {None, *sensitive}:
        del fields["release"]["label"]
    for settings in fields["columns"].values():
        if settings.get("after") not in {None, *quasi}:
            del settings["after"]


def with_role(table: Opened, name: str, role: str) -> dict[str, Any]:
    """The fields of a column with this role; as it was inspected where that is the role it was taken for."""
    column = next(other for other in table.inspection.columns if other.name == name)
    if column.role == role:
        return column.fields(table.inspection.purpose)
    if role == "quasi":
        return replace(column, role="quasi", proposal=proposal_for(table, column)).fields(table.inspection.purpose)
    return replace(column, role=role, proposal=None).fields("analysis")  # type: ignore[arg-type]


def proposal_for(table: Opened, column: InspectedColumn) -> Any:
    """The hierarchy that is proposed for a column, as `inspect` does."""
    engine = table.engine
    if column.missing or column.decimal != "." or column.thousands:
        engine = engine.spelled(table.inspection.policy.spellings)
    rows = engine.tally([column.name])
    coded = rows.coded(column.name)
    present = coded.codes >= 0
    counts = np.bincount(
        coded.codes[present], None if rows.weights is None else rows.weights[present], len(coded.texts)
    )
    return propose(column.name, coded.texts, counts.astype(np.int64))


def column_of(request: Request, draft: Draft) -> InspectedColumn:
    """The column whose number is in the address."""
    columns = draft.table.inspection.columns
    number = request.path_params["column"]
    if number >= len(columns):
        raise HTTPException(404)
    column: InspectedColumn = columns[number]
    return column


def _bars(request: Request) -> Response:
    """The distribution of a column as a small picture: how often values occur, not which."""
    draft = draft_of(request)
    column = column_of(request, draft)
    counts = draft.table.frequencies.get(column.name, ())
    largest = int(counts[0]) if len(counts) else 1
    bars = "".join(
        f'<rect x="{10 * i}" y="{40 - max(1, round(38 * int(n) / largest))}" width="8" '
        f'height="{max(1, round(38 * int(n) / largest))}" fill="{BAR}"/>'
        for i, n in enumerate(counts)
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * N_BARS} 40">{bars}</svg>'
    return Response(svg, media_type="image/svg+xml")


ROUTES = [
    get("/d/{draft:int}/columns", _show),
    post("/d/{draft:int}/columns", _change),
    get("/d/{draft:int}/bars/{column:int}.svg", _bars),
]
