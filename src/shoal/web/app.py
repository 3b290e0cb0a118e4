"""The application: every screen behind the gate."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Router

from shoal.web import progress
from shoal.web.jobs import Failure, unexpected
from shoal.web.loading import load_screens
from shoal.web.pages import FOLDER, Pages, get, pages_of, texts
from shoal.web.screens import open
from shoal.web.security import App, Gate, Receive, Scope, Secrets, Send
from shoal.web.workspace import Workspace

UPLOAD_BYTES = 500 * 2**20


def application(
    workspace: Workspace,
    secrets: Secrets,
    *,
    hosts: frozenset[str],
    scheme: str = "http",
    upload_bytes: int = UPLOAD_BYTES,
    first: str = "/",
) -> App:
    """The page over a workspace, for a browser that calls this server by one of ``hosts`` (with the port).

    ``first`` is the screen that the entrance leads to.
    """
    routes = [*open.ROUTES, *progress.ROUTES, get("/static/{name}", _static), Mount("", app=_Later())]
    inner = Starlette(
        routes=[Mount(secrets.room, routes=routes)],
        exception_handlers={HTTPException: _refused, Exception: _failed},
    )
    inner.state.pages = Pages(workspace, secrets)
    return Gate(inner, secrets, hosts=hosts, scheme=scheme, upload_bytes=upload_bytes, first=first)


class _Later:
    """The other screens, imported on their first request, with the whole of shoal."""

    def __init__(self) -> None:
        self._router: Router | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._router is None:
            self._router = Router(await run_in_threadpool(load_screens))
        await self._router(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    pages = pages_of(request)
    status = error.status_code if isinstance(error, HTTPException) else 500
    message = error.detail if isinstance(error, HTTPException) and status != 404 else texts().errors.gone
    return pages.failed(Failure(message), pages.url("/"), status)


async def _failed(request: Request, error: Exception) -> Response:
    pages = pages_of(request)
    return pages.failed(unexpected(error), pages.url("/"), 500)


KINDS = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
FILES = ("web.css", "charts.css", "web.js", "icon.svg")


def _static(request: Request) -> Response:
    """Our style sheets and script; nothing of the data, so that the browser may keep them for a while."""
    name = request.path_params["name"]
    if name not in FILES:
        raise HTTPException(404)
    kind = KINDS[Path(name).suffix]
    return Response(_content(name), media_type=kind, headers={"cache-control": "private, max-age=3600"})


@cache
def _content(name: str) -> str:
    if name == "charts.css":
        from shoal.report.lettering import style_rules

        return style_rules()
    return (FOLDER / "static" / name).read_text(encoding="utf-8")
