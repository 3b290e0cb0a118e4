"""Open a table: a path, a database, an upload, or the demo; then what it holds."""

from __future__ import annotations

import shutil
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import Response

from shoal.errors import DataError, PolicyError, ShoalError
from shoal.web.folders import TABLES, Folders
from shoal.web.loading import loaded
from shoal.web.pages import draft_of, get, given, pages_of, post, texts, workspace_of
from shoal.web.workspace import BARS, Opened, Workspace

if TYPE_CHECKING:
    from shoal.search.problem import Progress
    from shoal.web.jobs import Job

# What reads tables is imported in the functions that do: it takes a second, and the first screen does without.
SAMPLE = 20  # rows that are shown when asked


def _show(request: Request) -> Response:
    pages, workspace = pages_of(request), workspace_of(request)
    folders = workspace.folders
    listing = folders.listing(request.query_params.get("folder", str(folders.roots[0])))
    tables = sorted({draft.table.number: draft for draft in workspace.drafts.values()}.values(), key=lambda d: d.number)
    return pages.render(
        "open.html",
        "open",
        listing=listing,
        roots=folders.roots,
        policies=folders.policies(),
        drafts=tables[::-1][:10],
        endings=", ".join(TABLES),
    )


def _open(request: Request, form: FormData) -> Response:
    pages, workspace = pages_of(request), workspace_of(request)
    named, policy = given(form, "data"), given(form, "policy")
    if given(form, "demo"):
        job = workspace.jobs.start(texts().open.reading, lambda progress: _demo(workspace, progress), "/")
    elif not named:
        raise DataError(texts().open.nothing)
    else:
        table = given(form, "table") or None
        job = open_in(workspace, named, policy, table)
    return pages.follow(job)


def open_in(
    workspace: Workspace, named: str, policy: str = "", table: str | None = None, parquet: str | None = None
) -> Job:
    """Start to read what a path or a URI names."""
    data, table, parquet = _allowed(workspace.folders, named, table, parquet)
    chosen = workspace.folders.path(policy) if policy else None

    def work(progress: Progress) -> str:
        return _read(workspace, data, progress, chosen, table, parquet)

    return workspace.jobs.start(texts().open.reading, work, "/")


def _allowed(
    folders: Folders, named: str, table: str | None, parquet: str | None
) -> tuple[str, str | None, str | None]:
    """Return what to open, its table and its folder, if files are in an opened folder: what is checked is opened."""
    if "://" not in named:
        return str(folders.table(named)), table, parquet
    loaded()
    from shoal.engines.opening import located

    uri, table, folder = located(named, table, parquet)
    if uri.startswith("duckdb://"):
        uri = f"duckdb://{folders.path(uri.removeprefix('duckdb://'))}"
    if folder is not None and parquet is None:  # Spark reads it; one that the command line names is the user's choice
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
) -> str:
    progress(texts().open.reading, 0)
    loaded()
    from shoal.engines.opening import is_uri, opened
    from shoal.engines.scratch import confined_to

    settings, uri = workspace.settings, is_uri(data)
    with confined_to(workspace.folder):  # releases are written there and read back
        engine = opened(
            data,
            table=table,
            parquet=parquet,
            engine=settings.engine,
            memory=settings.memory,
            separator=None if uri else settings.separator,
            encoding=None if uri else settings.encoding,
            header=None if uri else settings.header,
            read_only=True,
        )
    shown = _without_password(data) if uri else data
    options = ["--table", table] if uri and table and "#" not in data else []
    flags = {"--parquet": parquet, "--engine": settings.engine if settings.engine != "auto" and not uri else None}
    flags |= {"--memory": settings.memory, "--separator": settings.separator, "--encoding": settings.encoding}
    options += [text for name, value in flags.items() if value for text in (name, value)]
    if settings.header is not None:
        options.append("--header" if settings.header else "--no-header")
    return _kept(workspace, engine, progress, Path(data).name if not uri else shown, shown, tuple(options), policy)


def _without_password(uri: str) -> str:
    from shoal.engines.backends.connection_errors import safe_uri

    return safe_uri(uri)


def _kept(
    workspace: Workspace,
    engine: Any,
    progress: Progress,
    name: str,
    argument: str,
    options: tuple[str, ...] = (),
    policy: Path | None = None,
    *,
    text: str | None = None,
    before: str = "",
) -> str:
    """Look at the columns, and start a draft from a policy or from what is proposed."""
    from shoal.inspection.inspect import inspect
    from shoal.policy import Policy

    progress(texts().open.looking, 0.3)
    found = inspect(engine)
    frequencies = {}
    for i, name_of_column in enumerate(engine.columns):
        progress(texts().open.looking, 0.7 + 0.3 * i / len(engine.columns))
        frequencies[name_of_column] = [int(n) for n in engine.frequencies(name_of_column)[:BARS]]
    sample = _sample(engine)
    folder = Path() if policy is None else policy.parent
    if policy is not None:
        asked = Policy.load(policy)
        workspace.folders.require_files(asked)
        if strange := [column for column in asked.columns if column not in engine.columns]:
            raise PolicyError(f"the policy is of another table: {len(strange)} of its columns are not in this one")
        text = asked.to_toml()
    if text is None:
        try:
            text = found.toml()
        except ShoalError:  # all columns look like identifiers: the user says which are not
            text = ""
    fields = tomllib.loads(text)
    fields.setdefault("columns", {column.name: {"role": column.role} for column in found.columns})
    fields.setdefault("require", [] if "preset" in fields else [{"model": "k-anonymity", "k": 5}])
    table = workspace.add_table(
        lambda number: Opened(number, name, argument, engine, found, options, before, frequencies, sample)
    )
    draft = workspace.add_draft(table, fields, folder)
    return f"/d/{draft.number}/table"


def _demo(workspace: Workspace, progress: Progress) -> str:
    """The hospital of `shoal demo`, in the folder of this server."""
    loaded()
    from shoal.demo.hospital import POLICY, hospital
    from shoal.demo.run import PATIENTS
    from shoal.engines.formats import table_files
    from shoal.engines.opening import opened

    path = workspace.place() / PATIENTS
    table_files.write_table_file(hospital(), path, force=True, verify=lambda _: None)
    engine = opened(str(path))
    before = "shoal demo"
    return _kept(workspace, engine, progress, PATIENTS, f"shoal-demo/{PATIENTS}", text=POLICY, before=before)


def _upload(request: Request, form: FormData) -> Response:
    """A file that the browser sends; it is kept as long as the server runs."""
    pages, workspace = pages_of(request), workspace_of(request)
    sent = form.get("file")
    if not isinstance(sent, UploadFile) or not sent.filename:
        raise DataError(texts().open.nothing)
    ending = Path(sent.filename).suffix.lower()
    if ending not in TABLES:
        raise DataError(texts().open.kind, f"{', '.join(TABLES)}")
    # The name is the browser's word: of it only the ending is used.
    path = workspace.place() / f"upload{ending}"
    with path.open("xb") as file:
        shutil.copyfileobj(sent.file, file, 2**20)
    path.chmod(0o600)
    name = Path(sent.filename.replace("\\", "/")).name

    def work(progress: Progress) -> str:
        loaded()
        from shoal.engines.opening import opened

        settings = workspace.settings
        engine = opened(
            str(path),
            engine=settings.engine,
            memory=settings.memory,
            separator=settings.separator,
            encoding=settings.encoding,
            header=settings.header,
        )
        return _kept(workspace, engine, progress, name, name)

    return pages.follow(workspace.jobs.start(texts().open.reading, work, "/"))


def _table(request: Request) -> Response:
    pages, draft = pages_of(request), draft_of(request)
    found = draft.table.inspection
    cells = found.records * len(found.columns)
    missing = sum(column.nulls for column in found.columns)
    sample = draft.table.sample if request.query_params.get("sample") else None
    return pages.render(
        "table.html",
        "open",
        draft=draft,
        found=found,
        missing=missing,
        missing_share=missing / cells if cells else 0.0,
        notes=(*draft.table.engine.notes, *found.notes),
        sample=sample,
    )


def _sample(engine: Any) -> list[list[str]]:
    """The first rows as text: values of the data, for whoever holds them."""
    rows = engine.first(SAMPLE)
    columns = [["" if cell is None else str(cell) for cell in column.to_pylist()] for column in rows.columns]
    return [list(row) for row in zip(*columns, strict=True)]


ROUTES = [
    get("/", _show),
    post("/open", _open),
    post("/upload", _upload),
    get("/d/{draft:int}/table", _table),
]
