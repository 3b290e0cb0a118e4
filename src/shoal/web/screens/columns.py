"""Columns: what each is to an intruder, with what speaks for it; roles are chosen here."""

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
from shoal.web.pages import draft_of, get, given, pages_of, post, redirect, texts, workspace_of
from shoal.web.workspace import BARS, Draft, Opened

BAR = "#3b82d0"  # between the accents of the light and of the dark page: a picture does not know which it is on
ROLES = ("identifier", "quasi", "sensitive", "plain")


def _show(request: Request) -> Response:
    pages, draft = pages_of(request), draft_of(request)
    found = draft.table.inspection
    cards = [
        {
            "column": column,
            "role": draft.column(column.name).get("role", "plain"),
            "told": _told(found, column.name),
            "decision": next((d.sentence for d in found.decisions if d.column == column.name), ""),
        }
        for column in found.columns
    ]
    return pages.render(
        "columns.html",
        "columns",
        draft=draft,
        found=found,
        cards=cards,
        roles=ROLES,
        counts=Counter(card["role"] for card in cards),
        strongest=[best for size in (1, 2, 3) for best in found.strongest(size, 1)],
        release=draft.fields.get("release", {}),
    )


def _told(found: Inspection, name: str) -> list[Separation]:
    """How many people the column tells apart alone, and in the strongest pair and triple that it is in."""
    best: dict[int, Separation] = {}
    for separation in found.separations:
        if name in separation.columns:
            best.setdefault(len(separation.columns), separation)
    return [best[size] for size in sorted(best)]


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    columns = draft.table.inspection.columns
    roles = {}
    for i, column in enumerate(columns):
        role = given(form, f"role-{i}")
        if role and role not in ROLES:
            raise HTTPException(400)
        if role and role != draft.column(column.name).get("role"):
            roles[column.name] = role

    def edit(fields: dict[str, Any]) -> None:
        for name, role in roles.items():
            fields["columns"][name] = with_role(draft.table, name, role)
        release = fields.setdefault("release", {})
        for key in ("entity", "household"):
            named = given(form, key)
            if key in form:
                release.pop(key, None)
                if named.isdigit() and int(named) < len(columns):
                    name = columns[int(named)].name
                    release[key] = name
                    if fields["columns"].get(name, {}).get("role") != "identifier":
                        fields["columns"][name] = with_role(draft.table, name, "identifier")
            if key in release and fields["columns"].get(release[key], {}).get("role") != "identifier":
                del release[key]
        _drop_what_lost_its_column(fields)

    told = texts().columns.changed.format(len(roles))
    new = workspace.edit(draft, told, edit)
    onward = given(form, "next") == "promises"
    return redirect(pages.url(f"/d/{new.number}/{'promises' if onward else 'columns'}"))


def _drop_what_lost_its_column(fields: dict[str, Any]) -> None:
    """Requirements and options that speak of a sensitive column that no longer is one."""
    sensitive = {name for name, of in fields["columns"].items() if of.get("role") == "sensitive"}
    quasi = {name for name, of in fields["columns"].items() if of.get("role") == "quasi"}
    fields["require"] = [one for one in fields.get("require", []) if one.get("column", None) in {None, *sensitive}]
    if fields.get("release", {}).get("label") not in {None, *sensitive}:
        del fields["release"]["label"]
    for of in fields["columns"].values():
        if of.get("after") not in {None, *quasi}:
            del of["after"]


def with_role(table: Opened, name: str, role: str) -> dict[str, Any]:
    """The fields of a column with this role; as it was inspected where that is the role it was taken for."""
    column = next(each for each in table.inspection.columns if each.name == name)
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
    there = coded.codes >= 0
    counts = np.bincount(coded.codes[there], None if rows.weights is None else rows.weights[there], len(coded.texts))
    return propose(column.name, coded.texts, counts.astype(np.int64))


def column_of(request: Request, draft: Draft) -> InspectedColumn:
    """The column whose number is in the address."""
    columns = draft.table.inspection.columns
    number = request.path_params["column"]
    if number >= len(columns):
        raise HTTPException(404)
    found: InspectedColumn = columns[number]
    return found


def _bars(request: Request) -> Response:
    """The distribution of a column as a small picture: how often values occur, not which."""
    draft = draft_of(request)
    column = column_of(request, draft)
    shown = draft.table.frequencies.get(column.name, ())
    most = int(shown[0]) if len(shown) else 1
    bars = "".join(
        f'<rect x="{10 * i}" y="{40 - max(1, round(38 * int(n) / most))}" width="8" '
        f'height="{max(1, round(38 * int(n) / most))}" fill="{BAR}"/>'
        for i, n in enumerate(shown)
    )
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {10 * BARS} 40">{bars}</svg>'
    return Response(svg, media_type="image/svg+xml")


ROUTES = [
    get("/d/{draft:int}/columns", _show),
    post("/d/{draft:int}/columns", _change),
    get("/d/{draft:int}/bars/{column:int}.svg", _bars),
]
