"""The progress of a job: a page that follows it, with a script or without, and a way to cancel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from shoal.web.jobs import OVER, Job, LivePoint
from shoal.web.pages import get, pages_of, post, redirect, texts, workspace_of

EVERY = 0.2  # seconds between two reports of a job


def _job(request: Request) -> Job:
    try:
        return workspace_of(request).jobs[request.path_params["job"]]
    except KeyError:
        raise HTTPException(404, texts().errors.gone) from None


def _show(request: Request) -> Response:
    pages, job = pages_of(request), _job(request)
    if job.state == "done":
        return redirect(pages.url(job.target))
    if job.failure is not None:
        return pages.failed(job.failure, pages.url(job.back))
    waiting = workspace_of(request).jobs.waiting(job)
    refresh = None if job.state in OVER else 1
    points = [] if job.live is None else job.live()
    best = min((point for point in points if point[2] != "fails"), key=lambda point: point[1], default=None)
    return pages.render(
        "progress.html",
        "",
        job=job,
        waiting=waiting,
        refresh=refresh,
        back=pages.url(job.back),
        n_found=len(points),
        best=best,
        scatter=_drawn(points),
    )


def _drawn(points: list[LivePoint]) -> Any:
    if not points:
        return None
    from shoal.web.nodes import drawn_beside_table, scatter_of  # which load shoal, as a job with a point has

    return drawn_beside_table(scatter_of(points, texts().run.loss), "found", texts().run.loss)


def _cancel(request: Request, _: FormData) -> Response:
    pages, job = pages_of(request), _job(request)
    workspace_of(request).jobs.cancel(job)
    job.over.wait(1.0)
    return redirect(pages.url(f"/jobs/{job.number}"))


async def _events(request: Request) -> Response:
    """The state of a job whenever it changes, until it is over or the browser goes away."""
    job, stopping = _job(request), workspace_of(request).stopping

    async def events() -> AsyncIterator[str]:
        last = ""
        while not stopping.is_set():
            over = job.state in OVER
            state = json.dumps(job.as_dict())
            if state != last:
                yield f"data: {state}\n\n"
                last = state
            if over or await request.is_disconnected():
                return
            await asyncio.sleep(EVERY)

    return StreamingResponse(events(), media_type="text/event-stream")


ROUTES = [
    get("/jobs/{job:int}", _show),
    post("/jobs/{job:int}/cancel", _cancel),
    Route("/jobs/{job:int}/events", _events, methods=["GET"]),
]
