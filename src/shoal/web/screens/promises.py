"""Requirements: by question, by a published rule or by name; each is judged on the original table."""

from __future__ import annotations

from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

import shoal
from shoal.errors import ShoalError
from shoal.findings.sensitive_columns import unprotected_columns
from shoal.models import Requirement
from shoal.models.measured import Limit, MeasuredLimit
from shoal.models.verdict import Verdicts
from shoal.policy.presets import PRESETS
from shoal.search.problem import Progress
from shoal.web.jobs import Job
from shoal.web.pages import (
    AT_ONCE,
    draft_of,
    field_text,
    get,
    number_in,
    pages_of,
    post,
    redirect,
    texts,
    workspace_of,
)
from shoal.web.workspace import Draft, Workspace

MODELS: dict[str, type[BaseModel]] = {
    model.model_fields["model"].default: model
    for model in (*get_args(get_args(Requirement)[0]), *get_args(get_args(Limit)[0]))
}
# First values of the parameters of a requirement that is added by name.
FIRST = {
    "k": 5, "l": 2, "c": 3.0, "t": 0.2, "alpha": 0.5, "beta": 1.0, "delta": 1.0, "p": 2, "max": 0.09,
    "min": 0.0, "epsilon": 1.0,
}  # fmt: skip
PICTURES = {"k": "size", "p": "variety", "l": "variety", "c": "variety", "t": "closeness", "max": "attack"}


def _show(request: Request) -> Response:
    pages, draft = pages_of(request), draft_of(request)
    verdicts, job = _judged(workspace_of(request), draft)
    required = draft.fields.get("require", [])
    preset = draft.fields.get("preset")
    of_preset = 0 if preset is None else len(PRESETS[preset].models)
    cards = []
    for i, requirement in enumerate(required):
        model = MODELS[requirement["model"]]
        cards.append(
            {
                "number": i,
                "model": requirement["model"],
                "about": (model.__doc__ or "").split("\n\n")[0].replace("``", "").replace("\n", " ").strip(),
                "inputs": [_input(name, settings, requirement, draft) for name, settings in _parameters(model)],
                "picture": next((PICTURES[n] for n, _ in _parameters(model) if n in PICTURES), "size"),
                "verdict": _verdict(verdicts, draft, i, of_preset),
            }
        )
    sensitive = [name for name, settings in draft.fields["columns"].items() if settings.get("role") == "sensitive"]
    return pages.render(
        "promises.html",
        "promises",
        draft=draft,
        problem=draft.problem,
        cards=cards,
        verdicts=verdicts if isinstance(verdicts, Verdicts) else None,
        of_preset=verdicts.verdicts[:of_preset] if isinstance(verdicts, Verdicts) else (),
        untold=verdicts if isinstance(verdicts, ShoalError) else None,
        job=job,
        refresh=1 if job is not None else None,
        presets=PRESETS,
        preset=preset,
        models=MODELS,
        sensitive=sensitive,
        unprotected=[] if draft.problem else unprotected_columns(draft.policy),
        k=next((requirement["k"] for requirement in required if requirement["model"] == "k-anonymity"), None),
    )


def _parameters(model: type[BaseModel]) -> list[tuple[str, FieldInfo]]:
    return [(name, info) for name, info in model.model_fields.items() if name != "model"]


def _input(name: str, info: FieldInfo, requirement: dict[str, Any], draft: Draft) -> dict[str, Any]:
    """One field of a form: a number, a choice or a text."""
    kinds = [kind for kind in (get_args(info.annotation) or (info.annotation,)) if kind is not type(None)]
    default = None if info.is_required() else info.get_default(call_default_factory=True)
    field: dict[str, Any] = {"name": name, "value": requirement.get(name, default), "kind": "text", "choices": ()}
    field["needed"] = info.is_required()
    if name == "column":
        names = [name for name, fields in draft.fields["columns"].items() if fields.get("role") == "sensitive"]
        field |= {"kind": "choice", "choices": ["", *names]}
    elif all(isinstance(kind, str) for kind in kinds):  # a Literal
        field |= {"kind": "choice", "choices": kinds}
    elif bool in kinds:
        field |= {"kind": "choice", "choices": ["true", "false"], "value": str(field["value"]).lower()}
    elif str(info.annotation).startswith("tuple"):
        field |= {"kind": "list", "value": ", ".join(field["value"] or ())}
    elif int in kinds or float in kinds:
        field |= {"kind": "number", "step": "any" if float in kinds else "1"}
    return field


def _verdict(verdicts: Verdicts | ShoalError | None, draft: Draft, i: int, of_preset: int) -> Any:
    """Return the verdict on a requirement; those on classes come first, the preset's before the draft's."""
    if not isinstance(verdicts, Verdicts):
        return None
    policy = draft.policy
    requirement = policy.require[i]
    limit = isinstance(requirement, MeasuredLimit)
    before = sum(isinstance(other, MeasuredLimit) == limit for other in policy.require[:i])
    index = len(policy.models) + len(policy.limits) - sum(isinstance(e, MeasuredLimit) for e in policy.require) + before
    index = index if limit else of_preset + before
    return verdicts.verdicts[index] if index < len(verdicts.verdicts) else None


def _judged(workspace: Workspace, draft: Draft) -> tuple[Verdicts | ShoalError | None, Job | None]:
    """Judge the original table by the draft; return the running job if that takes longer than a moment."""
    try:
        workspace.folders.require_files(draft.policy)
    except ShoalError as error:
        return error, None
    key = f"{draft.table.number}:{draft.policy.to_toml()}"
    if key not in workspace.verdicts:
        job = workspace.judging.get(key)
        if job is None or job.over.is_set():

            def work(progress: Progress) -> str:
                progress(texts().promises.judging, 0)
                try:
                    workspace.verdicts[key] = shoal.check(draft.table.engine, draft.policy)
                except ShoalError as error:
                    workspace.verdicts[key] = error
                return f"/d/{draft.number}/promises"

            job = workspace.jobs.start(texts().promises.judging, work, f"/d/{draft.number}/columns")
            workspace.judging[key] = job
        job.over.wait(AT_ONCE)
        if job.failure is not None:
            return ShoalError(job.failure.message, job.failure.hint), None
    verdicts = workspace.verdicts.get(key)
    return verdicts, None if verdicts is not None else workspace.judging.get(key)


def _change(request: Request, form: FormData) -> Response:
    pages, workspace, draft = pages_of(request), workspace_of(request), draft_of(request)
    action = field_text(form, "action")
    change = _ACTIONS.get(action)
    if change is None:
        raise HTTPException(400)
    new = workspace.edit(draft, texts().promises.changed, lambda fields: change(fields, form, draft))
    return redirect(pages.url(f"/d/{new.number}/promises"))


def _set_k(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    k = number_in(field_text(form, "k"), "k")
    present = [requirement for requirement in fields["require"] if requirement["model"] == "k-anonymity"]
    if present:
        present[0]["k"] = k
    else:
        fields["require"].insert(0, {"model": "k-anonymity", "k": k})


def _add_for_sensitive(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    model, parameter = field_text(form, "model"), {"distinct-l-diversity": "l", "t-closeness": "t"}
    if model not in parameter:
        raise HTTPException(400)
    name = parameter[model]
    requirement: dict[str, Any] = {"model": model, name: number_in(field_text(form, name), name)}
    if column := field_text(form, "column"):
        requirement["column"] = column
    duplicate = {"model": model, "column": requirement.get("column")}
    fields["require"] = [other for other in fields["require"] if {k: other.get(k) for k in duplicate} != duplicate]
    fields["require"].append(requirement)


def _set_preset(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    preset = field_text(form, "preset")
    fields.pop("preset", None)
    if preset:
        if preset not in PRESETS:
            raise HTTPException(400)
        fields["preset"] = preset


def _add(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    name = field_text(form, "model")
    if name not in MODELS:
        raise HTTPException(400)
    needed: dict[str, Any] = {n: FIRST.get(n) for n, info in _parameters(MODELS[name]) if info.is_required()}
    for parameter, value in needed.items():
        typed = field_text(form, parameter)
        if typed:
            needed[parameter] = typed
        elif value is None:
            needed[parameter] = ""
    fields["require"].append({"model": name, **needed})


def _save(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    i = _index(form, fields)
    requirement = fields["require"][i]
    for name, info in _parameters(MODELS[requirement["model"]]):
        if name not in form:
            continue
        text, field = field_text(form, name), _input(name, info, requirement, draft)
        requirement.pop(name, None)
        if text:
            number = field["kind"] == "number"
            truth = field["choices"] == ["true", "false"]
            listed = [part.strip() for part in text.split(",") if part.strip()] if field["kind"] == "list" else text
            requirement[name] = number_in(text, name) if number else text == "true" if truth else listed


def _remove(fields: dict[str, Any], form: FormData, draft: Draft) -> None:
    del fields["require"][_index(form, fields)]


def _index(form: FormData, fields: dict[str, Any]) -> int:
    text = field_text(form, "number")
    if not text.isdigit() or int(text) >= len(fields["require"]):
        raise HTTPException(400)
    return int(text)


_ACTIONS = {
    "k": _set_k,
    "sensitive": _add_for_sensitive,
    "preset": _set_preset,
    "add": _add,
    "save": _save,
    "remove": _remove,
}

ROUTES = [get("/d/{draft:int}/promises", _show), post("/d/{draft:int}/promises", _change)]
