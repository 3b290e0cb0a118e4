"""Publish: the release and what belongs to it, once the person who answers for it has ticked the list."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from shoal.engines.formats.atomic_files import write_text
from shoal.models.finding import Finding, headline, publication
from shoal.release import replay
from shoal.release.receipt import receipt_of, write_receipt
from shoal.release.signatures import read_private, sign
from shoal.search.problem import Progress
from shoal.web.pages import field_text, get, pages_of, post, run_of, texts, workspace_of
from shoal.web.prepared import release_of
from shoal.web.workspace import WebRun, Workspace

ENDINGS = (".csv", ".parquet", ".xlsx", ".sav", ".dta")
CHECKS = ("roles", "promises", "findings", "rights", "answer")
CERTIFICATE, REPORT, POLICY, RECODING, RECEIPT = (
    "certificate.json",
    "report.html",
    "policy.toml",
    "recoding.json",
    "receipt.json",
)
PRIVATE = (RECODING, RECEIPT)


def _show(request: Request) -> Response:
    pages, run = pages_of(request), run_of(request)
    findings = (
        [Finding.from_dict(line) for line in run.certificate["findings"]]
        if run.certificate
        else release_of(run).findings
    )
    files = [(name, name in PRIVATE, path.stat().st_size) for name, path in run.files.items() if path.exists()]
    return pages.render(
        "publish.html",
        "publish",
        run=run,
        checks=[(name, getattr(texts().checklist, name)) for name in CHECKS],
        endings=ENDINGS,
        files=files,
        findings=findings,
        publication=publication("holds", findings),  # nothing else is released
        headline=headline("holds", findings),
        commands=commands(run),
        policy=run.draft.policy.to_toml(),
        beside=[path.name for path in run.draft.policy.files],
        signed=bool(run.certificate and "signature" in run.certificate),
    )


def commands(run: WebRun) -> list[str]:
    """What does the same on the command line."""
    table = run.draft.table
    name = next((name for name in run.files if name.startswith("release.")), "release.csv")
    make = ["shoal", "anonymize", table.argument, *table.options, "-p", POLICY, "-o", name]
    make += ["--certificate", CERTIFICATE, "--report", REPORT]
    check = ["shoal", "verify", CERTIFICATE, name]
    return [*([table.setup_command] if table.setup_command else []), shlex.join(make), shlex.join(check)]


def _publish(request: Request, form: FormData) -> Response:
    pages, workspace, run = pages_of(request), workspace_of(request), run_of(request)
    release_of(run)
    if missing := [name for name in CHECKS if field_text(form, f"check-{name}") != "on"]:
        raise HTTPException(400, texts().publish.unticked.format(len(missing)))
    ending = field_text(form, "ending") or ENDINGS[0]
    if ending not in ENDINGS:
        raise HTTPException(400)
    key = workspace.folders.path(field_text(form, "key")) if field_text(form, "key") else None
    password = field_text(form, "password") or None

    def work(progress: Progress) -> str:
        _write(workspace, run, f"release{ending}", key, password, progress)
        return f"/runs/{run.number}/publish"

    return pages.follow(workspace.jobs.start(texts().publish.writing, work, f"/runs/{run.number}/publish"))


def _write(
    workspace: Workspace, run: WebRun, name: str, key: Path | None, password: str | None, progress: Progress
) -> None:
    """As `shoal anonymize` writes them: the release is counted again before it appears, the certificate comes last."""
    release, folder = release_of(run), workspace.new_folder()
    signer = None if key is None else read_private(key, password=password)
    progress(texts().publish.writing, 0)
    proof: dict[str, Any] = release.save(folder / name)
    write_receipt(receipt_of(release, proof), folder / RECEIPT)
    if signer is not None:
        proof = dict(sign(proof, signer))
    write_text(folder / CERTIFICATE, json.dumps(proof, indent=2, ensure_ascii=False) + "\n")
    progress(texts().publish.reporting, 0.4)
    replay.save_recoding(release, folder / RECODING)
    release.report(folder / REPORT, certificate=proof)
    run.draft.policy.save(folder / POLICY)
    progress(texts().publish.reporting, 1.0)
    files = {file: folder / file for file in (name, CERTIFICATE, REPORT, POLICY, RECODING, RECEIPT)}
    run.files, run.certificate = files, proof  # together: a job may be cancelled between two calls


def _file(request: Request) -> Response:
    """A file that was written, to be saved: never shown as a page of ours."""
    run = run_of(request)
    path = run.files.get(request.path_params["name"])
    if path is None or not path.is_file():
        raise HTTPException(404)
    return FileResponse(path, media_type="application/octet-stream", filename=path.name)


ROUTES = [
    get("/runs/{run:int}/publish", _show),
    post("/runs/{run:int}/publish", _publish),
    get("/runs/{run:int}/files/{name}", _file),
]
