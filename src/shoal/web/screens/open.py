"""Open a table (a path, a database, an upload, or the demo), and show its size and first rows."""

from __future__ import annotations

import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from shoal.errors import DataError, PolicyError, ShoalError
from shoal.web.folders import TABLE_ENDINGS, Folders
from shoal.web.loading import load_screens
from shoal.web.pages import draft_of, field_text, get, pages_of, post, texts, workspace_of
from shoal.web.workspace import N_BARS, Opened, Settings, Workspace

if TYPE_CHECKING:
    from shoal.search.problem import Progress
    from shoal.web.jobs import Job

# What reads tables is imported in the functions that do: it takes a second, and the first screen does without.
N_SAMPLE = 20  # rows that are shown on request
HEADERS = {"names": True, "record": False}  # what the first line of a text file is, where the user says so


def _show(request: Request) -> Response:
    pages, workspace = pages_of(request), workspace_of(request)
    folders = workspace.folders
    listing = folders.listing(request.query_params.get("folder", str(folders.roots[0])))
    drafts = sorted({draft.table.number: draft for draft in workspace.drafts.values()}.values(), key=lambda d: d.number)
    return pages.render(
        "open.html",
        "open",
        listing=listing,
        roots=folders.roots,
        policies=folders.policies(),
        drafts=drafts[::-1][:10],
        endings=", ".join(TABLE_ENDINGS),
        headers=HEADERS,
    )


def _open(request: Request, form: FormData) -> Response:
    pages, workspace = pages_of(request), workspace_of(request)
    name, policy = field_text(form, "data"), field_text(form, "policy")
    if field_text(form, "demo"):
        job = workspace.jobs.start(texts().open.reading, lambda progress: _demo(workspace, progress), "/")
    elif not name:
        raise DataError(texts().open.nothing)
    else:
        job = open_in(workspace, name, policy, field_text(form, "table") or None, settings=_settings(workspace, form))
    return pages.follow(job)


def _settings(workspace: Workspace, form: FormData) -> Settings:
    """The options of the command line, and what a form says about the first line."""
    header = HEADERS.get(field_text(form, "header"), workspace.settings.header)
    return replace(workspace.settings, header=header)


def open_in(
    workspace: Workspace,
    name: str,
    policy: str = "",
    table: str | None = None,
    parquet: str | None = None,
    settings: Settings | None = None,
) -> Job:
    """Start to read the table with this path or URI."""
    data, table, parquet = _allowed(workspace.folders, name, table, parquet)
    policy_path = workspace.folders.path(policy) if policy else None

    def work(progress: Progress) -> str:
        return _read(workspace, data, progress, policy_path, table, parquet, settings or workspace.settings)

    return workspace.jobs.start(texts().open.reading, work, "/")


def _allowed(folders: Folders, name: str, table: str | None, parquet: str | None) -> tuple[str, str | None, str | None]:
    """Return the URI or path to open, its table and its folder; files must be in an opened folder."""
    if "://" not in name:
        return str(folders.table(name)), table, parquet
    load_screens()
    from shoal.engines.opening import located

    uri, table, folder = located(name, table, parquet)
    if uri.startswith("duckdb://"):
        uri = f"duckdb://{folders.path(uri.removeprefix('duckdb://'))}"
    if folder is not None and parquet is None:  # Spark reads it; one from the command line is the user's choice
        scheme, mark, rest = folder.partition(":")
        if not mark or "/" in scheme or scheme.lower() == "file":
            folder = str(folders.table(f"/{rest.lstrip('/')}" if mark and "/" not in scheme else folder))
    return uri, table, folder


def _read(
    workspace: Workspace,
    data: str,
    progress: Progress,
    policy: Path | None,
    table: str | None,
    parquet: str | None,
    settings: Settings,
) -> str:
    progress(texts().open.reading, 0)
    load_screens()
    from shoal.engines.backends.connection_errors import safe_uri
    from shoal.engines.opening import is_database, is_uri

    uri = is_uri(data)
    database = uri or is_database(data)
    if database:  # which has neither separator nor header
        settings = replace(settings, separator=None, encoding=None, header=None)
    engine = _engine(workspace, data, settings, table=table, parquet=parquet, read_only=True)
    argument = safe_uri(data) if uri else data
    options = ["--table", table] if database and table and "#" not in data else []
    flags = {"--parquet": parquet, "--engine": settings.engine if settings.engine != "auto" and not uri else None}
    flags |= {"--memory": settings.memory, "--separator": settings.separator, "--encoding": settings.encoding}
    options += [text for name, value in flags.items() if value for text in (name, value)]
    if settings.header is not None:
        options.append("--header" if settings.header else "--no-header")
    return _add(workspace, engine, progress, argument if uri else Path(data).name, argument, tuple(options), policy)


def _engine(workspace: Workspace, data: str, settings: Settings, **options: Any) -> Any:
    """Open a table; a database reads no file but those that releases are written to and read from."""
    from shoal.engines.opening import opened
    from shoal.engines.scratch import confined_to

    with confined_to(workspace.folder):
        return opened(
            data,
            engine=settings.engine,
            memory=settings.memory,
            separator=settings.separator,
            encoding=settings.encoding,
            header=settings.header,
            **options,
        )


def _add(
    workspace: Workspace,
    engine: Any,
    progress: Progress,
    name: str,
    argument: str,
    options: tuple[str, ...] = (),
    policy_path: Path | None = None,
    *,
    policy: str | None = None,
    setup_command: str = "",
) -> str:
    """Inspect the columns and start a draft, from a policy or from the proposal; return its first screen."""
    from shoal.inspection.inspect import inspect
    from shoal.policy import Policy

    progress(texts().open.looking, 0.3)
    inspection = inspect(engine)
    frequencies = {}
    for i, column in enumerate(engine.columns):
        progress(texts().open.looking, 0.7 + 0.3 * i / len(engine.columns))
        frequencies[column] = [int(n) for n in engine.frequencies(column)[:N_BARS]]
    sample = _sample(engine)
    if policy_path is not None:
        loaded = Policy.load(policy_path)
        workspace.folders.require_files(loaded)
        if unknown := [column for column in loaded.columns if column not in engine.columns]:
            raise PolicyError(f"the policy is of another table: {len(unknown)} of its columns are not in this one")
        policy = loaded.to_toml()
    if policy is None:
        try:
            policy = inspection.toml()
        except ShoalError:  # all columns look like identifiers: the user corrects the roles
            policy = ""
    fields = tomllib.loads(policy)
    fields.setdefault("columns", {column.name: {"role": column.role} for column in inspection.columns})
    fields.setdefault("require", [] if "preset" in fields else [{"model": "k-anonymity", "k": 5}])
    table = workspace.add_table(
        lambda number: Opened(number, name, argument, engine, inspection, options, setup_command, frequencies, sample)
    )
    draft = workspace.add_draft(table, fields, Path() if policy_path is None else policy_path.parent)
    return f"/d/{draft.number}/table"


def _demo(workspace: Workspace, progress: Progress) -> str:
    """Open the hospital of `shoal demo`, written to the folder of this server."""
    load_screens()
    from shoal.demo.hospital import POLICY, hospital
    from shoal.demo.run import PATIENTS
    from shoal.engines.formats import table_files

    path = workspace.new_folder() / PATIENTS
    table_files.write_table_file(hospital(), path, force=True, verify=lambda _: None)
    engine = _engine(workspace, str(path), Settings())
    argument = f"shoal-demo/{PATIENTS}"
    return _add(workspace, engine, progress, PATIENTS, argument, policy=POLICY, setup_command="shoal demo")


def _upload(request: Request, form: FormData) -> Response:
    """Open a file that the browser sends; it is kept until the server stops."""
    pages, workspace = pages_of(request), workspace_of(request)
    upload = form.get("file")
    if not isinstance(upload, UploadFile) or not upload.filename:
        raise DataError(texts().open.nothing)
    ending = Path(upload.filename).suffix.lower()
    if ending not in TABLE_ENDINGS:
        raise DataError(texts().open.kind, f"{', '.join(TABLE_ENDINGS)}")
    # The browser chose the name: only its ending is used.
    path = workspace.new_folder() / f"upload{ending}"
    with path.open("xb") as file:
        shutil.copyfileobj(upload.file, file, 2**20)
    path.chmod(0o600)
    name, settings = Path(upload.filename.replace("\\", "/")).name, _settings(workspace, form)

    def work(progress: Progress) -> str:
        load_screens()
        return _add(workspace, _engine(workspace, str(path), settings, read_only=True), progress, name, name)

    return pages.follow(workspace.jobs.start(texts().open.reading, work, "/"))


def _table(request: Request) -> Response:
    pages, draft = pages_of(request), draft_of(request)
    inspection = draft.table.inspection
    cells = inspection.records * len(inspection.columns)
    missing = sum(column.nulls for column in inspection.columns)
    return pages.render(
        "table.html",
        "open",
        draft=draft,
        inspection=inspection,
        missing=missing,
        missing_share=missing / cells if cells else 0.0,
        notes=(*draft.table.engine.notes, *inspection.notes),
        sample=draft.table.sample if request.query_params.get("sample") else None,
    )


def _sample(engine: Any) -> list[list[str]]:
    """Return the first rows as text; they are original values and shown only on request."""
    rows = engine.first(N_SAMPLE)
    columns = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in rows.columns]
    return [list(row) for row in zip(*columns, strict=True)]


ROUTES = [
    get("/", _show),
    post("/open", _open),
    post("/upload", _upload),
    get("/d/{draft:int}/table", _table),
]
