"""Templates, texts and forms: what every screen needs to answer a request."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from secrets import compare_digest
from types import SimpleNamespace
from typing import Any

import jinja2
import python_multipart  # noqa: F401  (Starlette reads forms with it, and would say only then that it is missing)
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from shoal import __version__
from shoal.errors import PolicyError, ShoalError
from shoal.text.figures import format_count, format_interval, format_number, format_share, visible
from shoal.web.jobs import Failure, Job, unexpected
from shoal.web.security import Secrets
from shoal.web.workspace import Draft, WebRun, Workspace

FOLDER = Path(__file__).parent
AT_ONCE = 0.1  # seconds that an answer waits for a job before it shows its progress
MOST_FIELDS = 50_000  # of a form: a table may have thousands of columns
STEPS = ("open", "columns", "promises", "run", "explore", "publish")


@cache
def texts(language: str = "en") -> SimpleNamespace:
    """Every text of the page, by screen; one file a language."""
    return _namespace(tomllib.loads((FOLDER / "texts" / f"{language}.toml").read_text(encoding="utf-8")))


def _namespace(value: Mapping[str, Any]) -> SimpleNamespace:
    return SimpleNamespace(**{k: _namespace(v) if isinstance(v, Mapping) else v for k, v in value.items()})


class Pages:
    """Renders the templates; every text of the data is escaped and made visible."""

    def __init__(self, workspace: Workspace, secrets: Secrets) -> None:
        self.workspace = workspace
        self.secrets = secrets
        self._environment = jinja2.Environment(
            loader=jinja2.FileSystemLoader([FOLDER / "templates", FOLDER.parent / "report" / "templates"]),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=lambda value: visible(value) if type(value) is str else value,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters.update(
            number=format_number,
            counted=format_count,
            percent=lambda value: format_share(value, 1),
            interval=format_interval,
            seconds=_seconds,
        )

    def url(self, path: str) -> str:
        """The address of a screen."""
        return self.secrets.room + path

    def render(
        self,
        template: str,
        step: str,
        *,
        status: int = 200,
        draft: Draft | None = None,
        run: WebRun | None = None,
        **fields: Any,
    ) -> HTMLResponse:
        """A screen; ``draft`` and ``run`` decide where the steps lead."""
        draft = run.draft if run is not None else draft
        common: dict[str, Any] = {
            "t": texts(),
            "url": self.url,
            "csrf": self.secrets.csrf,
            "version": __version__,
            "step": step,
            "draft": draft,
            "run": run,
            "steps": self._steps(draft, run),
            "refresh": None,
        }
        page = self._environment.get_template(template).render(common | fields)
        return HTMLResponse(page, status)

    def _steps(self, draft: Draft | None, run: WebRun | None) -> list[tuple[str, str | None]]:
        """The steps with their addresses, None where one cannot go yet."""
        if run is None and draft is not None:  # the last run of the same policy
            runs = [other for other in self.workspace.runs.values() if other.draft is draft]
            run = runs[-1] if runs else None
        addresses: dict[str, str | None] = dict.fromkeys(STEPS)
        addresses["open"] = self.url("/" if draft is None else f"/d/{draft.number}/table")
        if draft is not None:
            addresses |= {name: self.url(f"/d/{draft.number}/{name}") for name in ("columns", "promises", "run")}
        if run is not None:
            addresses |= {name: self.url(f"/runs/{run.number}/{name}") for name in ("explore", "publish")}
        return list(addresses.items())

    def failed(self, failure: Failure, back: str, status: int = 400) -> HTMLResponse:
        """What went wrong, and the way back."""
        return self.render("error.html", "", status=status, failure=failure, back=back)

    def follow(self, job: Job) -> Response:
        """Where a job leads, if it is over in a moment; else its progress."""
        job.over.wait(AT_ONCE)
        return redirect(self.url(job.target if job.state == "done" else f"/jobs/{job.number}"))


def _seconds(value: float) -> str:
    return f"{value:.1f} s" if value < 60 else f"{int(value // 60)} min {int(value % 60)} s"


def redirect(address: str) -> RedirectResponse:
    """Go there with GET."""
    return RedirectResponse(address, 303)


def pages_of(request: Request) -> Pages:
    """What renders the answer to a request."""
    pages: Pages = request.app.state.pages
    return pages


def workspace_of(request: Request) -> Workspace:
    """What a request works on."""
    return pages_of(request).workspace


def draft_of(request: Request) -> Draft:
    """The draft in the address."""
    draft = workspace_of(request).drafts.get(request.path_params["draft"])
    if draft is None:
        raise HTTPException(404, texts().errors.gone)
    return draft


def run_of(request: Request) -> WebRun:
    """The run in the address."""
    run = workspace_of(request).runs.get(request.path_params["run"])
    if run is None:
        raise HTTPException(404, texts().errors.gone)
    return run


def field_text(form: FormData, name: str) -> str:
    """The text of a field, without outer blanks."""
    text = form.get(name, "")
    return text.strip() if isinstance(text, str) else ""


def number_in(text: str, name: str) -> float | int:
    """The number that was typed, whole where it was written so."""
    try:
        value = float(text)
    except ValueError:
        raise PolicyError(texts().errors.no_number.format(name)) from None
    return int(text) if text.lstrip("+-").isdigit() else value


Answer = Callable[[Request], Response]
Change = Callable[[Request, FormData], Response]


def get(path: str, show: Answer) -> Route:
    """Return the route of a screen."""

    async def answer(request: Request) -> Response:
        return await _guarded(request, show, request)

    return Route(path, answer, methods=["GET"])


def post(path: str, change: Change) -> Route:
    """A change: the form must carry the token of our own pages."""

    async def answer(request: Request) -> Response:
        async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
            sent = form.get("csrf")
            if not isinstance(sent, str) or not compare_digest(sent.encode(), pages_of(request).secrets.csrf.encode()):
                raise HTTPException(403, texts().errors.csrf)
            return await _guarded(request, change, request, form)

    return Route(path, answer, methods=["POST"])


async def _guarded(request: Request, work: Callable[..., Response], *arguments: Any) -> Response:
    """The answer, computed in a thread; errors become pages on which no value of the data stands."""
    pages = pages_of(request)
    back = (
        pages.url(request.url.path.removeprefix(pages.secrets.room)) if request.method == "GET" else _referrer(request)
    )
    try:
        return await run_in_threadpool(work, *arguments)
    except HTTPException:
        raise
    except ShoalError as error:
        return pages.failed(Failure(error.message, error.hint or ""), back)
    except Exception as error:
        return pages.failed(unexpected(error), back, 500)


def _referrer(request: Request) -> str:
    """The page that the form was on."""
    room = pages_of(request).secrets.room
    page_prefix = f"{request.url.scheme}://{request.headers['host']}{room}/"
    sent = request.headers.get("referer", "")
    return sent.removeprefix(page_prefix[: -len(room) - 1]) if sent.startswith(page_prefix) else f"{room}/"
